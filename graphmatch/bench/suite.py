"""``graphmatch bench all``: what users get, measured beside what they could use instead.

Each run (`graphmatch.bench.runs`) is measured in a process of its own. `graphmatch.bench.summary`
shows results.
"""

from __future__ import annotations

import json as json_format
import platform
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from os import cpu_count
from pathlib import Path

from graphmatch.bench import report, summary
from graphmatch.bench.measures import MEASURES
from graphmatch.bench.process import Row
from graphmatch.bench.runner import asked
from graphmatch.bench.runs import MEMORY, RUNS, Run, Scale
from graphmatch.console import CommandConsole, styled, to_json
from semantic.errors import InputError, Place, Problem

SECONDS: Mapping[Scale, float] = {"small": 2.0, "full": 10.0}
"""The time limit of each column."""
EVENTS = 200
RESULTS = Path(__file__).with_name("suite.json")
"""The results of the last full run, which the documentation shows."""


def run(
    names: Sequence[str],
    scale: Scale,
    seed: int,
    feeds: Path | None,
    output: Path | None,
    *,
    json: bool = False,
) -> int:
    """Measure all runs, or those with these names; print their results; return the exit status.

    If there is a folder `output`, also write them to suite.json in it, besides those of other runs.
    Raise `InputError` for an unknown name, or if that file cannot be written.
    """
    out, err = CommandConsole(), CommandConsole(stderr=True)
    status, results = 0, dict[str, Row]()
    for name in report.named(names, RUNS, "bench all") or RUNS:
        one = RUNS[name]
        with err.status(name) if err.is_terminal else nullcontext():
            found = measured(one, scale, seed, feeds)
        for engine, how in found.get("missing", {}).items():
            err.print(styled((f"{name}: ", "yellow"), f"{engine} is left out. Install it: {how}"))
        if "wrong" in found:
            err.print(styled((f"{name}: ", "red"), found["wrong"]))
            status = 2
            continue
        rows = {row["column"]: row for row in found["rows"]}
        kept = {
            column: {
                key: float(f"{rows[column][key]:.5g}")
                for key in (one.key, MEMORY)
                if rows[column].get(key) is not None
            }
            for column in one.columns()
            if column in rows
        }
        machine = f"{scale} scale, seed {seed}, {_machine()}"
        results[name] = {"size": one.sizes[scale], "machine": machine, "columns": kept}
        if output:
            _write(output / RESULTS.name, {name: results[name]})
        if json:
            out.write_json({"run": name, **results[name], "rows": found["rows"]})
    if not json and results:
        out.print(summary.table(results))
    return status


def _machine() -> str:
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    return f"{platform.machine()}, {cpu_count()} cores, Python {platform.python_version()}, {day}"


def _write(file: Path, results: Mapping[str, Row]) -> None:
    """Add results to those in a file: a line for each run, in the order of `RUNS`."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        known = {**read_results(file), **results}
        lines = [f"{to_json(name)}: {to_json(known[name])}" for name in RUNS if name in known]
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise InputError(Problem(what, Place(str(file)), "Give another --output.")) from error


def read_results(file: Path = RESULTS) -> dict[str, Row]:
    """Return the results of runs by name; empty if the file does not exist."""
    found: dict[str, Row] = json_format.loads(file.read_text("utf-8")) if file.is_file() else {}
    return found


def measured(one: Run, scale: Scale, seed: int, feeds: Path | None) -> Row:
    """Measure a run in a process of its own; return its rows, and an error in ``wrong``, if any."""
    size, parameters = [one.sizes[scale], EVENTS, seed], dict(one.parameters)
    if one.measured in MEASURES:
        return asked("measures", [one.measured], size, parameters=parameters)
    if one.measured == "keywords" and feeds is not None:
        parameters["feeds"] = str(feeds)
    more = {"parameters": parameters, "seconds": SECONDS[scale], "passes": one.passes}
    return asked(one.measured, one.columns(), size, **more)
