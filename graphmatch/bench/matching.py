"""``graphmatch bench graph|attributes|concepts|keywords``: a comparison of engines.

Each size is measured in a process of its own, with all engines in it (`graphmatch.bench.runner`).
So a process that runs out of memory only loses its own size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from graphmatch.bench import report, runner
from graphmatch.bench.adapters import ENGINES, adapter
from graphmatch.bench.peers import PEERS
from graphmatch.bench.workloads import Size, workload_class
from graphmatch.console import CommandConsole

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


def run(
    workload: str,
    sizes: Sequence[Size],
    parameters: Mapping[str, Any],
    engines: Sequence[str] = (),
    forms: Sequence[str] = (),
    *,
    json: bool = False,
) -> int:
    """Measure each size; print a table, or one JSON object per line; return the exit status.

    Raise `InputError` if an engine or form is unknown.
    """
    out, err = CommandConsole(), CommandConsole(stderr=True)
    columns = list(columns_of(workload, parameters, engines, forms))
    status = 0
    for size in sizes:
        said = f"{workload}, {size.subscriptions:,} subscriptions"
        with err.status(f"{said}: {', '.join(columns)}") if err.is_terminal else nullcontext():
            found = runner.asked(workload, columns, size, parameters=parameters)
        status = report.show_problems(err, said, found) or status
        rows = found["rows"]
        for row in rows:
            row["ratio"] = row[runner.MICROS] / rows[0][runner.MICROS]
            if json:
                out.write_json(row)
        if rows and not json:
            described = ", ".join(f"{name} {v}" for name, v in rows[0]["parameters"].items())
            out.print(f"{said} ({described})\n{report.table(rows, _COLUMNS)}")
    return status


def columns_of(
    workload: str, parameters: Mapping[str, Any], engines: Sequence[str], forms: Sequence[str]
) -> Iterator[str]:
    """Yield the columns to measure: each engine in each form, with repeated and with new events.

    The engines and forms are the named ones. By default, the engines are all of `ENGINES` that
    support the workload, and the forms those of `DEFAULT_FORMS`.
    """
    every = (*ENGINES, *PEERS)
    known = {name: one for name in every if workload in (one := adapter(name)).forms}
    usual = [name for name in ENGINES if name in known]
    engines = report.named(engines or usual, known, "--engines")
    if not parameters.get("whole"):
        engines = [name for name in engines if not (known[name].whole and workload == "keywords")]
    if parameters.get("topics"):
        engines = [name for name in engines if known[name].topics]
    every_form = known["graphmatch"].forms[workload]
    wanted = report.named(forms or DEFAULT_FORMS[workload], every_form, "--forms")
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
