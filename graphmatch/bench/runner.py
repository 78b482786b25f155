"""One size of one workload, all engines in this process, on one core.

After a rehearsal on a few subscriptions, in which libraries are imported and loops compiled, each
engine is built, and then each in turn matches the same block of events, so that times of one run
can be compared whatever else the machine does. A block is prepared (events read, stores filled)
before it is timed. An engine that has used up its time sits out the rest.

The matches of each event are compared among the engines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any
from zlib import crc32

import numpy as np

from graphmatch.bench.memory import resident_bytes
from graphmatch.bench.peers import peer_class
from graphmatch.bench.peers.peer import Peer
from graphmatch.bench.process import OneCore, Row
from graphmatch.bench.workloads import workload_class
from graphmatch.bench.workloads.workload import Size, Workload

BLOCK = 10
WARM_EVENTS, WARM_SECONDS = 10, 1.0
LEAST_EVENTS, MOST_SECONDS = 3, 20.0
"""Each engine matches at least so many events, and then goes on for at most so long."""

REHEARSAL = Size(200, 3)


@dataclass(slots=True)
class _Measured:
    """What one engine did."""

    peer: Peer
    build_seconds: float
    resident: int | None
    micros: list[float] = field(default_factory=list)
    matched: dict[int, tuple[int, int]] = field(default_factory=dict)
    counted: list[Mapping[str, int]] = field(default_factory=list)

    def is_done(self) -> bool:
        """Say whether the engine has used up its time."""
        return len(self.micros) >= LEAST_EVENTS and sum(self.micros) > MOST_SECONDS * 1e6

    def matches(self) -> float | None:
        """Return how many subscriptions an event matched, on average."""
        if not self.peer.matches:
            return None
        return sum(count for count, _ in self.matched.values()) / len(self.matched)

    def counters(self) -> dict[str, float]:
        """Return the means of the engine's counters."""
        names = self.counted[0]
        return {name: sum(row[name] for row in self.counted) / len(self.counted) for name in names}


def measure(
    name: str, engines: Sequence[str], size: Size, parameters: Mapping[str, Any]
) -> list[Row]:
    """Measure each engine on a workload.

    Parameters
    ----------
    name, engines
        As `WORKLOADS` and `PEERS` name them; each engine knows the workload, and is installed.
    parameters
        Of the workload, those that differ from its defaults.

    Returns
    -------
    list of rows
        One for each engine, in their order; docs/reference/command.md names what is in it.

    Examples
    --------
    >>> rows = measure("attributes", ["scan"], Size(100, 5), {"attributes": 2})
    >>> rows[0]["engine"], rows[0]["subscriptions"], rows[0]["events"], rows[0]["agrees"]
    ('scan', 100, 5, True)
    """
    made = _workload(name, size, parameters)
    with OneCore():
        _rehearse(name, engines, parameters)
        measured = [_build(engine, made) for engine in engines]
        for one in measured:
            _warm(one.peer, made)
        for start in range(0, size.events, BLOCK):
            block = range(start, min(start + BLOCK, size.events))
            for one in measured:
                if not one.is_done():
                    _match(one, made, block)
    wrong = _disagreements(measured)
    rows = [_row(one, made, wrong) for one in measured]
    for one in measured:
        one.peer.close()
    return rows


def _workload(name: str, size: Size, parameters: Mapping[str, Any]) -> Workload:
    class_ = workload_class(name)
    return class_(size, class_.parameters_class(**parameters))


def _rehearse(name: str, engines: Sequence[str], parameters: Mapping[str, Any]) -> None:
    made = _workload(name, REHEARSAL, parameters)
    for engine in engines:
        peer = peer_class(engine)()
        peer.build(peer.given(made))
        _warm(peer, made)
        peer.close()


def _build(engine: str, made: Workload) -> _Measured:
    """Build one engine; memory is what the process has more, its input given back."""
    peer = peer_class(engine)()
    before = resident_bytes()
    given: list[Any] = [peer.given(made)]
    seconds = _timed(lambda: peer.build(given.pop()))
    after = resident_bytes()
    more = None if before is None or after is None else max(0, after - before)
    return _Measured(peer, seconds, more)


def _timed(run: Callable[[], object]) -> float:
    started = perf_counter()
    run()
    return perf_counter() - started


def _warm(peer: Peer, made: Workload) -> None:
    started = perf_counter()
    for number in range(min(WARM_EVENTS, made.size.events)):
        peer.match(peer.event(made, number))
        if perf_counter() - started > WARM_SECONDS:
            return


def _match(one: _Measured, made: Workload, block: range) -> None:
    """Match a block of events, each timed alone."""
    events = [one.peer.event(made, number) for number in block]
    for number, event in zip(block, events, strict=True):
        started = perf_counter()
        found = one.peer.match(event)
        one.micros.append((perf_counter() - started) * 1e6)
        ids = np.sort(one.peer.numbers(found))
        one.matched[number] = (ids.size, crc32(ids.tobytes()))
        one.counted.append(one.peer.counters(found))
        if one.is_done():
            return


def _disagreements(measured: Sequence[_Measured]) -> dict[int, list[str]]:
    """Return the events of which engines report different matches, and what each reports."""
    measured = [one for one in measured if one.peer.matches]
    events = sorted({number for one in measured for number in one.matched})
    found = {}
    for number in events:
        said = {one.peer.name: one.matched[number] for one in measured if number in one.matched}
        if len(set(said.values())) > 1:
            found[number] = [
                f"{engine} {count} (checksum {sum_:08x})" for engine, (count, sum_) in said.items()
            ]
    return found


def _row(one: _Measured, made: Workload, wrong: Mapping[int, list[str]]) -> Row:
    count = made.size.subscriptions
    reported = one.peer.reported_bytes()
    row: Row = {
        "workload": made.name,
        "engine": one.peer.name,
        "subscriptions": count,
        "events": len(one.micros),
        "build_seconds": one.build_seconds,
        "bytes_per_subscription": None if one.resident is None else one.resident / count,
        "reported_bytes_per_subscription": None if reported is None else reported / count,
        "median_microseconds_per_event": median(one.micros),
        "matches_per_event": one.matches(),
        "counters": one.counters(),
        "parameters": {"seed": made.size.seed, **made.described()},
        "agrees": not wrong,
        **made.row(),
    }
    if wrong:
        number = min(wrong)
        row["disagreement"] = f"event {number}: {', '.join(wrong[number])}"
    return row
