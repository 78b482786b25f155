"""``graphmatch bench all``: what users get, measured beside what they could use instead.

suite.toml lists the runs: a workload with columns (`graphmatch.bench.runner`), or a function of
`graphmatch.bench.measures`, each in a process of its own. `graphmatch.bench.summary` shows results.
"""

from __future__ import annotations

import json as json_format
import platform
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from os import cpu_count
from pathlib import Path
from typing import Any, Literal, TypeAlias

from graphmatch.bench import report
from graphmatch.bench.measures import MEASURES
from graphmatch.bench.process import Row
from graphmatch.bench.runner import MICROS, asked
from graphmatch.console import CommandConsole, styled, to_json
from semantic.errors import InputError, Place, Problem

Scale: TypeAlias = Literal["small", "full"]

SECONDS: Mapping[Scale, float] = {"small": 2.0, "full": 10.0}
"""The time limit of each column."""
EVENTS = 200
MEMORY = "bytes_per_subscription"
RESULTS = Path(__file__).with_name("suite.json")
"""The results of the last full run, which the documentation shows."""


@dataclass(frozen=True, slots=True)
class Run:
    """The measurement of one process: a workload, or one of `MEASURES`.

    suite.toml documents the fields.
    """

    name: str
    section: str
    title: str
    measured: str
    sizes: Mapping[Scale, int]
    compared: Sequence[Sequence[str]]
    key: str = MICROS
    parameters: Mapping[str, Any] = field(default_factory=dict)
    passes: int = 1
    memory: str = ""

    def columns(self) -> list[str]:
        """Return the columns, each once."""
        return list(dict.fromkeys(column for pair in self.compared for column in pair))


def _runs() -> Iterator[Run]:
    said = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    for one in said["run"]:
        yield Run(**one)


RUNS: Mapping[str, Run] = {one.name: one for one in _runs()}
"""The runs by name."""


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
    from graphmatch.bench import summary

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
