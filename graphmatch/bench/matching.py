"""``graphmatch bench graph|attributes|concepts|keywords``: engines beside each other.

Each size is measured in a process of its own, with all engines in it (`graphmatch.bench.runner`),
so that a process that runs out of memory takes only its size with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from graphmatch.bench import report, runner
from graphmatch.bench.adapters import ENGINES, Adapter, adapter
from graphmatch.bench.workloads import workload_class
from graphmatch.command.console import CommandConsole, styled
from semantic.errors import InputError, Place, Problem

DEFAULT_FORMS: Mapping[str, Sequence[str]] = {
    "graph": ("nt", "objects"),
    "keywords": ("feed", "objects"),
    "attributes": ("arrow", "dicts"),
    "concepts": ("arrow", "dicts"),
}
"""How the engine is given events, unless something else is said."""
_MICROS = "median_microseconds_per_event"
_COLUMNS = {
    "engine": "engine",
    "form": "given",
    "documents": "documents",
    "build_seconds": "built in s",
    "bytes_per_subscription": "bytes each",
    _MICROS: "µs an event",
    "ratio": "times",
    "matches_per_event": "matches",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be measured: a run for each size.

    `engines` by their names (``None`` for all that know the workload and can hold that many);
    `forms` in which the engine is given events (``None`` for `DEFAULT_FORMS`), and whether the core
    alone is measured, too; `documents` that come ``again``, ``new`` ones or ``both``; parameters of
    the workload, where they differ from its defaults.
    """

    workload: str
    sizes: Sequence[int]
    events: int
    seed: int
    engines: Sequence[str] | None = None
    forms: Sequence[str] | None = None
    core: bool = False
    documents: str = "both"
    parameters: Mapping[str, Any] = field(default_factory=dict)


def run(asked: Asked, *, json: bool = False) -> int:
    """Measure, print a table or one JSON object a line, and return the exit status.

    Raises `InputError` when there is no such engine or form, or none is left.
    """
    out, err = CommandConsole(), CommandConsole(stderr=True)
    engines, status = _engines(asked, err), 0
    for size in asked.sizes:
        columns = list(columns_of(asked, _able(asked, engines, size, err)))
        if not columns:
            continue
        said = f"{asked.workload}, {size:,} subscriptions"
        with err.status(f"{said}: {', '.join(columns)}") if err.is_terminal else nullcontext():
            whole = [size, asked.events, asked.seed]
            found = runner.asked(asked.workload, columns, whole, parameters=asked.parameters)
        if "wrong" in found:
            err.print(styled((f"{said}: ", "red"), found["wrong"]))
            status = 2
        if not found["rows"]:
            continue
        rows = [{**row, "ratio": row[_MICROS] / found["rows"][0][_MICROS]} for row in found["rows"]]
        for row in rows if json else ():
            out.write_json(row)
        if not json:
            parameters = ", ".join(f"{name} {v}" for name, v in rows[0]["parameters"].items())
            out.print(f"{said} ({parameters})\n{report.table(rows, _COLUMNS)}")
    return status


def _engines(asked: Asked, err: CommandConsole) -> dict[str, Adapter]:
    """Return the engines that were named, or all that know the workload; those that are there."""
    every = {name: adapter(name) for name in ENGINES}
    knowing = [name for name in every if asked.workload in every[name].forms]
    for name in asked.engines or ():
        if name not in every:
            remedy = f"There are: {', '.join(every)}."
            raise InputError(Problem(f"no engine is called '{name}'", Place("--engines"), remedy))
        if name not in knowing:
            what = f"the engine {name} does not know the workload {asked.workload}"
            raise InputError(Problem(what, Place("--engines"), f"These do: {', '.join(knowing)}."))
    known = every["graphmatch"].forms[asked.workload]
    for form in asked.forms or ():
        if form not in known:
            what = f"{asked.workload} has no form '{form}'"
            raise InputError(Problem(what, Place("--forms"), f"There are: {', '.join(known)}."))
    chosen = dict.fromkeys(asked.engines or knowing)
    missing = [name for name in chosen if not every[name].is_installed()]
    if missing:
        which = ", ".join(missing)
        err.print(styled(f"left out, not installed: {which} (pip install 'graphmatch[bench]')"))
    left = {name: every[name] for name in chosen if name not in missing}
    if not left:
        what, remedy = "no engine is left to measure", "Install them: pip install graphmatch[bench]"
        raise InputError(Problem(what, Place("--engines"), f"{remedy}."))
    return {n: one for n, one in left.items() if one.topics or not asked.parameters.get("topics")}


def _able(
    asked: Asked, engines: Mapping[str, Adapter], size: int, err: CommandConsole
) -> dict[str, Adapter]:
    """Leave out engines that would take too long, unless they are named."""
    over = {n: most for n, one in engines.items() if (most := one.most) is not None and most < size}
    if asked.engines is not None or not over:
        return dict(engines)
    which = ", ".join(f"{name} (at most {most:,})" for name, most in over.items())
    err.print(styled(f"{size:,} subscriptions: left out unless named: {which}"))
    return {name: one for name, one in engines.items() if name not in over}


def columns_of(asked: Asked, engines: Mapping[str, Adapter]) -> Iterator[str]:
    """Yield each engine in each form, with events that come again and new ones."""
    wanted = [*(asked.forms or DEFAULT_FORMS[asked.workload]), *(["core"] if asked.core else [])]
    documents = {"both": ("", "+new"), "new": ("+new",)}.get(asked.documents, ("",))
    if not workload_class(asked.workload).renews:
        documents = ("",)
    for name, one in engines.items():
        forms = one.forms[asked.workload]
        own = [form for form in dict.fromkeys(wanted) if form in forms]
        if not own and one.matches and len(forms) == 1:
            own = list(forms)
        for form in own:
            for which in documents:
                if form != "core" or not which:  # what is prepared is not new
                    yield f"{name}:{form}{which}"
