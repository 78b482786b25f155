"""``graphmatch bench graph|attributes|concepts|keywords``: a comparison of engines.

Each size is measured in a process of its own, with all engines in it (`graphmatch.bench.runner`).
So a process that runs out of memory only loses its own size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from graphmatch.bench import report, runner
from graphmatch.bench.adapters import ENGINES, adapter
from graphmatch.bench.peers import PEERS
from graphmatch.bench.workloads import workload_class
from graphmatch.console import CommandConsole, styled

DEFAULT_FORMS: Mapping[str, Sequence[str]] = {
    "graph": ("nt", "objects"),
    "keywords": ("feed", "objects"),
    "attributes": ("arrow", "dicts"),
    "concepts": ("arrow", "dicts"),
}
"""The default forms of events."""
_COLUMNS = {
    "engine": "engine",
    "form": "given",
    "documents": "documents",
    "build_seconds": "built in s",
    "bytes_per_subscription": "bytes each",
    runner.MICROS: "µs an event",
    "ratio": "times",
    "matches_per_event": "matches",
}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The sizes of a comparison, and the compared engines and forms of events.

    Parameters
    ----------
    sizes
        The numbers of subscriptions, one run each.
    events
        The number of events.
    seed
        Determines the generated data.
    engines, forms
        The compared engines and forms of events; the usual ones by default.
    core
        Whether to measure the core alone, too.
    """

    sizes: Sequence[int] = (10_000,)
    events: int = 200
    seed: int = 1
    engines: Sequence[str] = ()
    forms: Sequence[str] = ()
    core: bool = False


def run(
    workload: str, chosen: RunOptions, parameters: Mapping[str, Any], *, json: bool = False
) -> int:
    """Measure each size; print a table, or one JSON object per line; return the exit status.

    Raise `InputError` if an engine or form is unknown.
    """
    out, err = CommandConsole(), CommandConsole(stderr=True)
    columns = list(columns_of(workload, chosen, parameters))
    status = 0
    for size in chosen.sizes:
        said = f"{workload}, {size:,} subscriptions"
        with err.status(f"{said}: {', '.join(columns)}") if err.is_terminal else nullcontext():
            whole = [size, chosen.events, chosen.seed]
            found = runner.asked(workload, columns, whole, parameters=parameters)
        for engine, how in found.get("missing", {}).items():
            err.print(styled((f"{said}: ", "yellow"), f"{engine} is left out. Install it: {how}"))
        if "wrong" in found:
            err.print(styled((f"{said}: ", "red"), found["wrong"]))
            status = 2
        rows = found["rows"]
        for row in rows:
            row["ratio"] = row[runner.MICROS] / rows[0][runner.MICROS]
            if json:
                out.write_json(row)
        if rows and not json:
            described = ", ".join(f"{name} {v}" for name, v in rows[0]["parameters"].items())
            out.print(f"{said} ({described})\n{report.table(rows, _COLUMNS)}")
    return status


def columns_of(workload: str, chosen: RunOptions, parameters: Mapping[str, Any]) -> Iterator[str]:
    """Yield the columns to measure: each engine in each form, with repeated and with new events.

    The engines are the named ones, or all of `ENGINES` that support the workload.
    """
    every = (*ENGINES, *PEERS)
    known = {name: one for name in every if workload in (one := adapter(name)).forms}
    usual = [name for name in ENGINES if name in known]
    engines = report.named(chosen.engines or usual, known, "--engines")
    if not parameters.get("whole"):
        engines = [name for name in engines if not (known[name].whole and workload == "keywords")]
    if parameters.get("topics"):
        engines = [name for name in engines if known[name].topics]
    forms = known["graphmatch"].forms[workload]
    wanted = chosen.forms or DEFAULT_FORMS[workload]
    wanted = report.named(wanted, forms, "--forms")
    wanted += ["core"] if chosen.core else []
    documents = ("", "+new") if workload_class(workload).renews else ("",)
    for name in engines:
        takes = known[name].forms[workload]
        own = [form for form in wanted if form in takes]
        if not own and known[name].matches and len(takes) == 1:
            own = list(takes)
        for form in own:
            for which in documents:
                if form != "core" or not which:  # prepared events are not new
                    yield f"{name}:{form}{which}"
