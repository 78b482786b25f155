"""``graphmatch bench graph|attributes|concepts|keywords``: engines beside each other.

Each size is measured in a process of its own, with all engines in it (`graphmatch.bench.runner`),
so that a process that runs out of memory takes only its size with it.
"""

from __future__ import annotations

import json as json_format
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from graphmatch.bench.peers import PEERS, peer_class
from graphmatch.bench.peers.peer import Peer
from graphmatch.bench.process import in_own_process
from graphmatch.bench.tables import MATCHING, table_of, with_ratio
from graphmatch.bench.workloads import workload_class
from graphmatch.command.console import CommandConsole, styled
from semantic.errors import InputError, Place, Problem

CORE = "core"
DEFAULT_FORMS: Mapping[str, Sequence[str]] = {
    "graph": ("nt", "objects"),
    "keywords": ("feed", "objects"),
    "attributes": ("arrow", "dicts"),
    "concepts": ("arrow", "dicts"),
}
"""How the engine is given events, unless something else is said."""


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
    forms
        How the engine is given events; ``None`` for `DEFAULT_FORMS`.
    core
        Whether the core alone is measured, too.
    documents
        ``again``, ``new`` or ``both``.
    parameters
        Of the workload, where they differ from its defaults.
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

    Raises
    ------
    InputError
        When there is no such engine or form, or none is left.
    """
    out, err = CommandConsole(), CommandConsole(stderr=True)
    engines, status = _engines(asked, err), 0
    for size in asked.sizes:
        columns = list(_columns(asked, _able(asked, engines, size, err)))
        if not columns:
            continue
        request = {
            "workload": asked.workload,
            "columns": columns,
            "size": [size, asked.events, asked.seed],
            "more": {"parameters": dict(asked.parameters)},
        }
        said = f"{asked.workload}, {size:,} subscriptions: {', '.join(columns)}"
        with err.status(said) if err.is_terminal else nullcontext():
            text = json_format.dumps(request, default=str)
            found = in_own_process("graphmatch.bench.runner", text)
        if "failed" in found:
            err.print(styled((f"{asked.workload}, {size:,} subscriptions failed: ", "red")))
            err.print(styled(str(found["failed"])))
            status = 2
            continue
        rows = with_ratio(found["rows"])
        if json:
            for row in rows:
                out.write_json(row)
        else:
            out.print(table_of(rows, MATCHING))
        if not rows[0]["agrees"]:
            said = "the engines do not agree, so their times say nothing: "
            err.print(styled((said, "red"), str(rows[0]["disagreement"])))
            status = 2
    return status


def _engines(asked: Asked, err: CommandConsole) -> list[type[Peer]]:
    """Return the engines that were named, or all that know the workload; those that are there."""
    classes = {name: peer_class(name) for name in PEERS}
    knowing = [name for name in classes if asked.workload in classes[name].forms]
    for name in asked.engines or ():
        if name not in classes:
            remedy = f"There are: {', '.join(classes)}."
            raise InputError(Problem(f"no engine is called '{name}'", Place("--engines"), remedy))
        if name not in knowing:
            what = f"the engine {name} does not know the workload {asked.workload}"
            raise InputError(Problem(what, Place("--engines"), f"These do: {', '.join(knowing)}."))
    known = peer_class("graphmatch").forms[asked.workload]
    for form in asked.forms or ():
        if form not in known:
            what, remedy = (
                f"{asked.workload} has no form '{form}'",
                f"There are: {', '.join(known)}.",
            )
            raise InputError(Problem(what, Place("--forms"), remedy))
    chosen = [classes[name] for name in dict.fromkeys(asked.engines or knowing)]
    missing = [peer.name for peer in chosen if not peer.is_installed()]
    if missing:
        which = ", ".join(missing)
        err.print(styled(f"left out, not installed: {which} (pip install 'graphmatch[bench]')"))
    left = [peer for peer in chosen if peer.name not in missing]
    if not left:
        what, remedy = "no engine is left to measure", "Install them: pip install graphmatch[bench]"
        raise InputError(Problem(what, Place("--engines"), f"{remedy}."))
    return left


def _able(
    asked: Asked, engines: Sequence[type[Peer]], size: int, err: CommandConsole
) -> list[type[Peer]]:
    """Leave out engines that cannot take what is given, or would take too long, unless named."""
    able = [peer for peer in engines if peer.takes(asked.parameters)]
    if asked.engines is not None:
        return able
    over = [peer for peer in able if peer.most is not None and peer.most < size]
    if over:
        which = ", ".join(f"{peer.name} (at most {peer.most:,})" for peer in over)
        err.print(styled(f"{size:,} subscriptions: left out unless named: {which}"))
    return [peer for peer in able if peer not in over]


def _columns(asked: Asked, peers: Sequence[type[Peer]]) -> Iterator[str]:
    """Yield each engine in each form, with events that come again and new ones."""
    wanted = [*(asked.forms or DEFAULT_FORMS[asked.workload]), *([CORE] if asked.core else [])]
    documents = ("", "+new") if asked.documents == "both" else ("",)
    if asked.documents == "new":
        documents = ("+new",)
    if not workload_class(asked.workload).renews:
        documents = ("",)
    for peer in peers:
        forms = peer.forms[asked.workload]
        own = [form for form in dict.fromkeys(wanted) if form in forms]
        if not own and peer.matches:
            own = list(forms) if len(forms) == 1 else []
        for form in own:
            for which in documents:
                if form != CORE or not which:  # what is prepared is not new
                    yield f"{peer.name}:{form}{which}"
