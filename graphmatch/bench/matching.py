"""``graphmatch bench graph|attributes|concepts|keywords``: engines beside each other.

Each size is measured in a process of its own, with all engines in it (`graphmatch.bench.runner`),
so that the times of one size can be compared, and a process that runs out of memory takes only
its size with it.
"""

from __future__ import annotations

import json as json_format
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from graphmatch.bench.peers import PEERS, peer_class
from graphmatch.bench.process import Row, in_own_process
from graphmatch.command.console import CommandConsole, styled
from semantic.errors import InputError, Place, Problem

_COLUMNS = (
    ("engine", "engine"),
    ("events", "events"),
    ("built in s", "build_seconds"),
    ("bytes a subscription", "bytes_per_subscription"),
    ("µs an event", "median_microseconds_per_event"),
    ("matches an event", "matches_per_event"),
)


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


def run(asked: Asked, *, json: bool = False) -> int:
    """Measure, print a table or one JSON object a line, and return the exit status.

    Raises
    ------
    InputError
        When there is no such engine, or it does not know the workload, or none is left.
    """
    out, err = CommandConsole(), CommandConsole(stderr=True)
    engines = _installed(asked, err)
    status = 0
    for size in asked.sizes:
        chosen = _able(asked, engines, size, err)
        rows = _measured(asked, chosen, size, err)
        if "failed" in rows[0]:
            err.print(styled((f"{asked.workload}, {size:,} subscriptions failed: ", "red")))
            err.print(styled(str(rows[0]["failed"])))
            status = 2
            continue
        _show(asked, rows, out, json=json)
        if not rows[0]["agrees"]:
            err.print(
                styled(
                    ("the engines do not agree, so their times say nothing: ", "red"),
                    str(rows[0]["disagreement"]),
                )
            )
            status = 2
    return status


def _installed(asked: Asked, err: CommandConsole) -> list[str]:
    """Return the engines that were named, or all that know the workload; those that are there."""
    _check_names(asked)
    classes = [peer_class(name) for name in dict.fromkeys(asked.engines or PEERS)]
    knowing = [peer for peer in classes if asked.workload in peer.workloads]
    missing = [peer.name for peer in knowing if not peer.is_installed()]
    if missing:
        which = ", ".join(missing)
        err.print(styled(f"left out, not installed: {which} (pip install 'graphmatch[bench]')"))
    left = [peer.name for peer in knowing if peer.name not in missing]
    if not left:
        what, remedy = "no engine is left to measure", "Install them: pip install graphmatch[bench]"
        raise InputError(Problem(what, Place("--engines"), f"{remedy}."))
    return left


def _check_names(asked: Asked) -> None:
    for name in asked.engines or ():
        if name not in PEERS:
            remedy = f"There are: {', '.join(PEERS)}."
            raise InputError(Problem(f"no engine is called '{name}'", Place("--engines"), remedy))
        if asked.workload not in peer_class(name).workloads:
            know = [other for other in PEERS if asked.workload in peer_class(other).workloads]
            what = f"the engine {name} does not know the workload {asked.workload}"
            raise InputError(Problem(what, Place("--engines"), f"These do: {', '.join(know)}."))


def _able(asked: Asked, engines: Sequence[str], size: int, err: CommandConsole) -> list[str]:
    """Leave out engines that would take too long for so many, unless they were named."""
    if asked.engines is not None:
        return list(engines)
    most = {name: peer_class(name).most for name in engines}
    over = {name: number for name, number in most.items() if number is not None and number < size}
    if over:
        which = ", ".join(f"{name} (at most {number:,})" for name, number in over.items())
        err.print(styled(f"{size:,} subscriptions: left out unless named: {which}"))
    return [name for name in engines if name not in over]


def _measured(asked: Asked, engines: Sequence[str], size: int, err: CommandConsole) -> list[Row]:
    request = {
        "workload": asked.workload,
        "engines": list(engines),
        "size": [size, asked.events, asked.seed],
        "parameters": dict(asked.parameters),
    }
    text = json_format.dumps(request, default=str)
    said = f"{asked.workload}, {size:,} subscriptions: {', '.join(engines)}"
    with err.status(said) if err.is_terminal else nullcontext():
        answer = in_own_process("graphmatch.bench.one_size", text)
    rows: list[Row] = answer.get("rows", [answer])
    return rows


def _show(asked: Asked, rows: Sequence[Row], out: CommandConsole, *, json: bool) -> None:
    if json:
        for row in rows:
            out.write_json(row)
        return
    parameters = ", ".join(f"{name} {value}" for name, value in rows[0]["parameters"].items())
    title = f"{asked.workload}, {rows[0]['subscriptions']:,} subscriptions ({parameters})"
    table = Table(title=title, title_justify="left")
    for heading, name in _COLUMNS:
        table.add_column(heading, justify="left" if name == "engine" else "right")
    for row in rows:
        table.add_row(*(_cell(row[name]) for _, name in _COLUMNS))
    out.print(table)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
