"""``graphmatch bench all``: the users' benefits as a list of claims, each measured in one run.

suite.toml lists the runs: a workload with columns (`graphmatch.bench.runner`), or a function of
`graphmatch.bench.measures`, in a process of its own. A claim compares two of its columns, or one
with a number.
"""

from __future__ import annotations

import platform
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import inf
from os import cpu_count
from pathlib import Path
from typing import Any, Literal, TypeAlias

from graphmatch.bench import report
from graphmatch.bench.measures import MEASURES
from graphmatch.bench.process import Row
from graphmatch.bench.runner import MICROS, asked
from graphmatch.console import CommandConsole, styled

Scale: TypeAlias = Literal["small", "full"]

SECONDS: Mapping[Scale, float] = {"small": 2.0, "full": 10.0}
"""The time limit of each column."""
EVENTS = 200
_UNITS = {
    MICROS: "µs",
    "microseconds": "µs",
    "seconds": "s",
    "megabytes": "MB",
    "bytes_per_subscription": "bytes",
    "per_second": "a second",
}
_SHOWN = {name: name for name in ("what", "measured", "beside", "ratio", "wanted", "holds")}


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim about a run; suite.toml documents the fields."""

    what: str
    of: str
    beside: str | None = None
    key: str = MICROS
    most: float | None = None
    least: float | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """The measurement of one process: a workload, or one of `MEASURES`."""

    name: str
    measured: str
    sizes: Mapping[Scale, int]
    claims: Sequence[Claim]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    columns: Sequence[str] = ()

    def all_columns(self) -> list[str]:
        """Return the columns, those in claims first."""
        mentioned = [name for claim in self.claims for name in (claim.of, claim.beside) if name]
        return list(dict.fromkeys([*mentioned, *self.columns]))


def _runs() -> Iterator[Run]:
    said = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    for one in said["run"]:
        yield Run(**{**one, "claims": [Claim(**claim) for claim in one["claims"]]})


RUNS: Sequence[Run] = tuple(_runs())


def run(
    names: Sequence[str], scale: Scale, seed: int, feeds: Path | None, *, json: bool = False
) -> int:
    """Measure all runs, or those with these names; print their claims; return the exit status.

    Raise `InputError` for an unknown name.
    """
    out, err = CommandConsole(), CommandConsole(stderr=True)
    known = {one.name: one for one in RUNS}
    chosen = report.named(names, known, "bench all")
    status, shown = 0, list[Row]()
    for one in [known[name] for name in chosen] or RUNS:
        with err.status(one.name) if err.is_terminal else nullcontext():
            found = measured(one, scale, seed, feeds)
        if "wrong" in found:
            err.print(styled((f"{one.name}: ", "red"), found["wrong"]))
            status = 2
            continue
        claims = list(claims_of(one, found["rows"]))
        shown += claims
        if json:
            about = {"run": one.name, "scale": scale, "subscriptions": one.sizes[scale]}
            out.write_json({**about, "rows": found["rows"], "claims": claims})
    if not json and shown:
        machine = f"{cpu_count()} cores, Python {platform.python_version()}"
        out.print(f"{scale} scale, seed {seed}, {machine}\n")
        out.print(report.markdown([_written(row) for row in shown], _SHOWN))
    return status


def measured(one: Run, scale: Scale, seed: int, feeds: Path | None) -> Row:
    """Measure a run in a process of its own; return its rows, and an error in ``wrong``, if any."""
    size, parameters = [one.sizes[scale], EVENTS, seed], dict(one.parameters)
    if one.measured in MEASURES:
        return asked("measures", [one.measured], size, parameters=parameters)
    if one.measured == "keywords" and feeds is not None:
        parameters["feeds"] = str(feeds)
    columns, seconds = one.all_columns(), SECONDS[scale]
    return asked(one.measured, columns, size, parameters=parameters, seconds=seconds)


def claims_of(one: Run, rows: Sequence[Row]) -> Iterator[Row]:
    """Yield a row for each claim: measured values, their ratio, and whether the claim holds."""
    by_column = {row["column"]: row for row in rows}
    for claim in one.claims:
        value = by_column[claim.of][claim.key]
        other = by_column[claim.beside][claim.key] if claim.beside else None
        ratio = value / other if value is not None and other else None
        judged, holds = ratio if claim.beside else value, None
        if judged is not None and (claim.most, claim.least) != (None, None):
            holds = (claim.least or 0) <= judged <= (inf if claim.most is None else claim.most)
        said = {"measured": value, "beside": other, "unit": _UNITS[claim.key], "ratio": ratio}
        wanted = {"most": claim.most, "least": claim.least, "holds": holds}
        yield {"run": one.name, "what": claim.what, **said, **wanted}


def _written(row: Row) -> Row:
    """Return a claim with its numbers and bounds as strings."""
    unit = row["unit"] if row["ratio"] is None else ""
    words = {"most": "at most", "least": "at least"}
    bounds = (f"{words[b]} {_number(row[b], unit)}" for b in words if row[b] is not None)
    return {
        "what": f"{row['run']}: {row['what']}",
        **{name: _number(row[name], row["unit"]) for name in ("measured", "beside")},
        "ratio": _number(row["ratio"], ""),
        "wanted": next(bounds, ""),
        "holds": {None: "", True: "yes", False: "no"}[row["holds"]],
    }


def _number(value: float | None, unit: str) -> str:
    if value is not None and unit == "µs" and value >= 1000:
        value, unit = value / 1000, "ms"
    return "" if value is None else f"{report.number(float(value))} {unit}".rstrip()
