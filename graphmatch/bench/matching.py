"""Every ``graphmatch bench`` but ``ontology``: engines beside each other.

Each size is measured in a process of its own, with all engines in it (`graphmatch.bench.runner`,
`graphmatch.bench.subscribing`), so that the times of one size can be compared, and a process that
runs out of memory takes only its size with it.
"""

from __future__ import annotations

import json as json_format
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from graphmatch.bench.peers import PEERS, peer_class
from graphmatch.bench.peers.peer import Listed
from graphmatch.bench.process import Row, in_own_process
from graphmatch.bench.subscribing import SOURCES
from graphmatch.bench.tables import table_of
from graphmatch.bench.takers import TAKERS, taker_class
from graphmatch.bench.workloads.ingest import SYNTAXES
from graphmatch.command.console import CommandConsole, styled
from semantic.errors import InputError, Place, Problem

_VARIANTS: Mapping[str, tuple[str, Sequence[str]]] = {
    "ingest": ("syntax", SYNTAXES),
    "subscribe": ("source", SOURCES),
}
"""What of a workload is measured one after the other, unless one is chosen."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be measured.

    Parameters
    ----------
    workload
        As `graphmatch.bench.workloads.WORKLOADS` names it.
    sizes
        How many subscriptions; each is a run of its own.
    engines
        By their names; ``None`` for all that know the workload and can hold that many.
    parameters
        Of the workload, where they differ from its defaults.
    """

    workload: str
    sizes: Sequence[int]
    events: int
    seed: int
    engines: Sequence[str] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def called(self) -> str:
        """Return what is measured, for messages: the workload, and which variant of it."""
        variant = self.parameters.get(_VARIANTS.get(self.workload, ("", ()))[0])
        return self.workload if variant is None else f"{self.workload} ({variant})"


def run(asked: Asked, *, json: bool = False) -> int:
    """Measure, print a table or one JSON object a line, and return the exit status.

    Raises
    ------
    InputError
        When there is no such engine, or it does not know the workload, or none is left.
    """
    out, err = CommandConsole(), CommandConsole(stderr=True)
    engines = _installed(asked, err)
    runs = [(size, variant) for size in asked.sizes for variant in _variants(asked, err)]
    told = [_run(variant, engines, size, out, err, json=json) for size, variant in runs]
    return max(told, default=2)


def _variants(asked: Asked, err: CommandConsole) -> list[Asked]:
    """Return one run for each variant of the workload, or the one that was chosen."""
    name, variants = _VARIANTS.get(asked.workload, ("", ()))
    if not variants:
        return [asked]
    chosen = [asked.parameters[name]] if name in asked.parameters else list(variants)
    if "arrow" in chosen and find_spec("pyarrow") is None:
        err.print(styled("left out, not installed: pyarrow (pip install 'graphmatch[spark]')"))
        chosen.remove("arrow")
    return [replace(asked, parameters={**asked.parameters, name: one}) for one in chosen]


def _run(
    asked: Asked,
    engines: Sequence[str],
    size: int,
    out: CommandConsole,
    err: CommandConsole,
    *,
    json: bool,
) -> int:
    """Measure one size, print it, and return the exit status."""
    chosen = _able(asked, engines, size, err)
    if not chosen:
        return 0
    rows = _measured(asked, chosen, size, err)
    if "failed" in rows[0]:
        err.print(styled((f"{asked.called()}, {size:,} subscriptions failed: ", "red")))
        err.print(styled(str(rows[0]["failed"])))
        return 2
    if json:
        for row in rows:
            out.write_json(row)
    else:
        out.print(table_of(rows))
    if rows[0]["agrees"]:
        return 0
    said = "the engines do not agree, so their times say nothing: "
    err.print(styled((said, "red"), str(rows[0]["disagreement"])))
    return 2


def _installed(asked: Asked, err: CommandConsole) -> list[str]:
    """Return the engines that were named, or all that know the workload; those that are there."""
    _check_names(asked)
    classes = _classes(asked.workload)
    chosen = [classes[name] for name in dict.fromkeys(asked.engines or classes)]
    knowing = [peer for peer in chosen if asked.workload in peer.workloads]
    missing = [peer.name for peer in knowing if not peer.is_installed()]
    if missing:
        which = ", ".join(missing)
        err.print(styled(f"left out, not installed: {which} (pip install 'graphmatch[bench]')"))
    left = [peer.name for peer in knowing if peer.name not in missing]
    if not left:
        what, remedy = "no engine is left to measure", "Install them: pip install graphmatch[bench]"
        raise InputError(Problem(what, Place("--engines"), f"{remedy}."))
    return left


def _classes(workload: str) -> dict[str, type[Listed]]:
    """Return all that there is for a workload of this kind, by name."""
    if workload == "subscribe":
        return {name: taker_class(name) for name in TAKERS}
    return {name: peer_class(name) for name in PEERS}


def _check_names(asked: Asked) -> None:
    classes = _classes(asked.workload)
    for name in asked.engines or ():
        if name not in classes:
            remedy = f"There are: {', '.join(classes)}."
            raise InputError(Problem(f"no engine is called '{name}'", Place("--engines"), remedy))
        if asked.workload not in classes[name].workloads:
            know = [other for other in classes if asked.workload in classes[other].workloads]
            what = f"the engine {name} does not know the workload {asked.workload}"
            raise InputError(Problem(what, Place("--engines"), f"These do: {', '.join(know)}."))


def _able(asked: Asked, engines: Sequence[str], size: int, err: CommandConsole) -> list[str]:
    """Leave out engines that cannot take what is given, or would take too long, unless named."""
    classes = _classes(asked.workload)
    able = [name for name in engines if classes[name].takes(asked.parameters)]
    if asked.engines is not None:
        if unable := [name for name in engines if name not in able]:
            err.print(styled(f"{asked.called()}: left out, for they cannot: {', '.join(unable)}"))
        return able
    most = {name: classes[name].most for name in able}
    over = {name: number for name, number in most.items() if number is not None and number < size}
    if over:
        which = ", ".join(f"{name} (at most {number:,})" for name, number in over.items())
        err.print(styled(f"{size:,} subscriptions: left out unless named: {which}"))
    return [name for name in able if name not in over]


def _measured(asked: Asked, engines: Sequence[str], size: int, err: CommandConsole) -> list[Row]:
    request = {
        "workload": asked.workload,
        "engines": list(engines),
        "size": [size, asked.events, asked.seed],
        "parameters": dict(asked.parameters),
    }
    text = json_format.dumps(request, default=str)
    said = f"{asked.called()}, {size:,} subscriptions: {', '.join(engines)}"
    with err.status(said) if err.is_terminal else nullcontext():
        answer = in_own_process("graphmatch.bench.one_size", text)
    rows: list[Row] = answer.get("rows", [answer])
    return rows
