"""``graphmatch bench paper``: running experiments, and saying what they gave.

Each point is measured in a process of its own (`graphmatch.bench.paper.measuring`), one after the
other. An algorithm that cannot express a workload, or that would take too long, is left out, and a
line says so. Where exact algorithms report different matches the point
says nothing, and the run ends with status 2.
"""

from __future__ import annotations

import json as json_format
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from graphmatch.bench.paper import EXPERIMENTS, experiment
from graphmatch.bench.paper.experiment import Experiment, Line, Point, Scale
from graphmatch.bench.paper.measuring import Asked
from graphmatch.bench.paper.results import Measured, Results
from graphmatch.bench.paper.section import section_of
from graphmatch.bench.paper.shown import called, list_of, rows_of, table_of, verdict_line
from graphmatch.bench.process import Row, in_own_process
from graphmatch.command.console import CommandConsole, styled, to_json
from semantic.errors import InputError, Place, Problem

LIST = "LIST"

Measure: TypeAlias = Callable[[Asked], Row]
"""Measures one point."""


def run(names: Sequence[str], scale: Scale, output: Path, *, json: bool = False) -> int:
    """Run experiments one after the other, or list them, and return the exit status.

    Raises
    ------
    InputError
        When an experiment is not there, or the folder cannot be written to.
    """
    out, err = CommandConsole(), CommandConsole(stderr=True)
    if not names or LIST in names:
        for row in rows_of(map(experiment, EXPERIMENTS)) if json else ():
            out.write_json(row)
        if not json:
            out.print(*list_of(map(experiment, EXPERIMENTS)), sep="\n")
        return 0
    for name in names:
        if name not in EXPERIMENTS:
            remedy = "`graphmatch bench paper LIST` names them."
            raise InputError(Problem(f"no experiment is called '{name}'", Place("NAME"), remedy))
    told = [_run(experiment(name), scale, output, out, err, json=json) for name in names]
    return max(told)


def _run(
    of: Experiment,
    scale: Scale,
    output: Path,
    out: CommandConsole,
    err: CommandConsole,
    *,
    json: bool,
) -> int:
    """Run one experiment, write it, and print it."""
    measured = _measure(of, scale, err)
    _tell(measured, err)
    write(measured, output, err)
    if json:
        for row in _flat(measured):
            out.write_json(row)
    else:
        out.print(table_of(measured))
        for verdict in measured.verdicts():
            out.print(verdict_line(verdict))
    return 0 if measured.is_sound() else 2


def _measure(of: Experiment, scale: Scale, err: CommandConsole) -> Results:
    with err.status(of.name) if err.is_terminal else nullcontext() as status:

        def in_process(asked: Asked) -> Row:
            if status is not None:
                status.update(f"{of.name}: {asked.size[0]:,} subscriptions, {asked.parameters}")
            return in_own_process(
                "graphmatch.bench.paper.measuring", json_format.dumps(asdict(asked))
            )

        return measured_by(in_process, of, scale)


def measured_by(measure: Measure, of: Experiment, scale: Scale) -> Results:
    """Measure all points of an experiment."""
    effort, found = of.efforts[scale], []
    for point in of.points[scale]:
        lines, left_out = chosen(of.lines, point)
        asked = Asked(
            of.workload,
            dict(point.parameters),
            [point.subscriptions, effort.events, of.seed],
            [
                {"algorithm": one.algorithm, "label": one.called, "options": dict(one.options)}
                for one in lines
            ],
            effort.seconds,
            of.forgets,
        )
        found.append(Measured.of(point, measure(asked), left_out))
    return Results(of, scale, found)


def chosen(lines: Sequence[Line], point: Point) -> tuple[list[Line], list[Mapping[str, str]]]:
    """Return the algorithms that are measured at a point, and why the others are not."""
    able: list[Line] = []
    left_out: list[Mapping[str, str]] = []
    for line in lines:
        if line.most is not None and point.subscriptions > line.most:
            why = f"it is given at most {line.most:,} subscriptions"
            left_out.append({"label": line.called, "why": why})
        else:
            able.append(line)
    return able, left_out


def _tell(results: Results, err: CommandConsole) -> None:
    """Say what was left out, once each, and what went wrong."""
    said = dict.fromkeys(
        (each["label"], each["why"]) for one in results.measured for each in one.left_out
    )
    for label, why in said:
        err.print(styled(f"{results.experiment.name}: left out: {label} ({why})"))
    for one in results.measured:
        where = f"{results.experiment.name}, {called(one.point)}"
        if one.failed is not None:
            err.print(styled((f"{where} failed: ", "red"), one.failed))
        if one.disagreement is not None:
            said_ = "the algorithms do not agree, so their times say nothing: "
            err.print(styled((f"{where}: {said_}", "red"), one.disagreement))


def write(results: Results, output: Path, err: CommandConsole) -> None:
    """Write NAME.json, NAME.md, NAME.svg and NAME.png.

    Raises
    ------
    InputError
        When the folder cannot be written to.
    """
    name = results.experiment.name
    try:
        output.mkdir(parents=True, exist_ok=True)
        text = to_json(results.as_json())
        (output / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        (output / f"{name}.md").write_text(section_of(results), encoding="utf-8")
        if find_spec("matplotlib") is None:
            what = "no picture is drawn, not installed: matplotlib"
            err.print(styled(f"{what} (pip install 'graphmatch[bench]')"))
            return
        from graphmatch.bench.paper.picture import draw

        draw(results, output)
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise InputError(Problem(what, Place(str(output)), "Give another --output.")) from error


def _flat(results: Results) -> list[dict[str, object]]:
    """Return a row for each algorithm and point."""
    return [
        {
            "experiment": results.experiment.name,
            "scale": results.scale,
            "sweep": one.point.sweep,
            "variant": one.point.variant,
            "x": one.point.x,
            "subscriptions": one.point.subscriptions,
            **row,
            "agrees": one.disagreement is None,
        }
        for one in results.measured
        for row in one.rows
    ]
