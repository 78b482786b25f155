"""One workload, all engines in this process, on one core: the only way in which events are timed.

What is measured is a *column*: an engine, the form in which it is given events, and whether these
come again or are new (`Column`). Engines are rehearsed on a few subscriptions, so that libraries
are imported and loops compiled, and then built one after the other. Each column in turn matches the
same block of events, so that times of one run can be compared whatever else the machine does. What
is given is made before it is timed. Before that, events that come again are matched once, others a
few times. A column that has used up its time sits out the rest.

The matches of each event are compared among the columns: speed says nothing without that.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from statistics import median
from time import perf_counter
from typing import Any
from zlib import crc32

import numpy as np

from graphmatch.bench.peers import make_peer
from graphmatch.bench.peers.peer import Asked, Peer
from graphmatch.bench.process import OneCore, Row, resident_bytes
from graphmatch.bench.workloads import workload_class
from graphmatch.bench.workloads.workload import Size, Workload

BLOCK = 50
WARM_NEW, WARM_SECONDS = 20, 3.0
LEAST_EVENTS = 3
"""Each column matches at least so many events, and then goes on for at most its time."""

SECONDS = 20.0
REHEARSAL, REHEARSED = 200, 3
"""How many subscriptions and events a rehearsal has."""


@dataclass(frozen=True, slots=True)
class Column:
    """What is measured beside each other.

    Parameters
    ----------
    engine
        As `graphmatch.bench.peers.PEERS` names it, or a published algorithm.
    form
        How it is given events: one of its `Peer.forms`.
    new
        Whether events are new ones.
    subscriptions
        How many it has, where that is not the size of the run: a number, or ``/10`` for a tenth.
    parameters
        Of the workload, where they differ from the run's: as ``name=value&name=value``.
    """

    engine: str
    form: str
    new: bool = False
    subscriptions: str = ""
    parameters: str = ""

    @classmethod
    def of(cls, text: str) -> Column:
        """Read ``ENGINE:FORM``, ``ENGINE:FORM+new``, ``ENGINE:FORM@SUBSCRIPTIONS?NAME=NUMBER``.

        Examples
        --------
        >>> str(Column.of("graphmatch:nt+new"))
        'graphmatch:nt+new'
        >>> column = Column.of("graphmatch:feed@100?topics=0.5")
        >>> column.size(5000), column.changed({"topics": 0, "heard": 3})
        (100, {'topics': 0.5, 'heard': 3})
        >>> Column.of("graphmatch:nt@/10").size(5000)
        500
        """
        rest, _, parameters = text.partition("?")
        rest, _, size = rest.partition("@")
        engine, _, form = rest.partition(":")
        new = form.endswith("+new")
        form = form.removesuffix("+new")
        return cls(engine, form, new, size, parameters)

    def __str__(self) -> str:
        size = f"@{self.subscriptions}" if self.subscriptions else ""
        parameters = f"?{self.parameters}" if self.parameters else ""
        return f"{self.engine}:{self.form}{'+new' if self.new else ''}{size}{parameters}"

    def size(self, of_run: int) -> int:
        """Return how many subscriptions the column has in a run with so many."""
        if self.subscriptions.startswith("/"):
            return max(1, of_run // int(self.subscriptions[1:]))
        return int(self.subscriptions or of_run)

    def changed(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of the column's workload in a run with these."""
        own = (pair.partition("=") for pair in self.parameters.split("&") if pair)
        return {**parameters, **{name: json.loads(value) for name, _, value in own}}


@dataclass(slots=True)
class _Built:
    """An engine with its subscriptions."""

    peer: Peer
    workload: Workload
    seconds: float
    resident: int | None


@dataclass(slots=True)
class _Measured:
    """What one column did."""

    column: Column
    built: _Built
    seconds: float
    micros: list[float] = field(default_factory=list)
    spent: float = 0.0
    matched: dict[int, tuple[int, int]] = field(default_factory=dict)

    def is_done(self) -> bool:
        """Say whether the column has used up its time."""
        return len(self.micros) >= LEAST_EVENTS and self.spent > self.seconds

    def asked(self, block: range, serials: Callable[[], int]) -> list[Asked]:
        """Return what is asked of the workload: new events have a serial number of their own."""
        return [(number, serials() if self.column.new else None) for number in block]


def measure(asked: str) -> Row:
    """Measure what a JSON object asks for: the arguments of `measured`, in a process of its own."""
    given = json.loads(asked)
    return {
        "rows": measured(given["workload"], given["columns"], Size(*given["size"]), **given["more"])
    }


def measured(
    name: str,
    columns: Sequence[str],
    size: Size,
    parameters: Mapping[str, Any],
    seconds: float = SECONDS,
) -> list[Row]:
    """Measure columns on a workload.

    Parameters
    ----------
    name
        As `WORKLOADS` names it.
    columns
        See `Column.of`; each engine knows the workload, and is installed.
    parameters
        Of the workload, those that differ from its defaults.
    seconds
        How long a column may match.

    Returns
    -------
    list of rows
        One for each column, in their order; docs/benchmarks.md says what is in it.

    Examples
    --------
    >>> rows = measured("attributes", ["scan:integers"], Size(100, 5), {"attributes": 2})
    >>> rows[0]["engine"], rows[0]["subscriptions"], rows[0]["events"], rows[0]["agrees"]
    ('scan', 100, 5, True)
    """
    several = [Column.of(column) for column in columns]
    serials = count().__next__
    with OneCore():
        rehearsal = Size(min(REHEARSAL, size.subscriptions), REHEARSED, size.seed)
        for engine in _built(name, several, rehearsal, parameters, alike=True, seconds=seconds):
            _warm(engine, serials)
            engine.built.peer.close()
        runs = _built(name, several, size, parameters, alike=False, seconds=seconds)
        gc.collect()
        gc.freeze()  # so that no engine's objects cost another one's time
        for run in runs:
            _warm(run, serials)
        for start in range(0, size.events, BLOCK):
            block = range(start, min(start + BLOCK, size.events))
            for run in runs:
                if not run.is_done():
                    _match(run, block, serials)
        gc.unfreeze()
    wrong = _disagreements(runs)
    rows = [_row(run, size, wrong) for run in runs]
    for peer in {id(run.built.peer): run.built.peer for run in runs}.values():
        peer.close()
    return rows


def _built(
    name: str,
    columns: Sequence[Column],
    size: Size,
    parameters: Mapping[str, Any],
    *,
    alike: bool,
    seconds: float,
) -> list[_Measured]:
    """Build each engine once for all of its columns; `alike`, all of one size."""
    class_ = workload_class(name)
    workloads: dict[tuple[int, str], Workload] = {}
    engines: dict[tuple[str, int, str], _Built] = {}
    found = []
    for column in columns:
        wanted = size.subscriptions if alike else column.size(size.subscriptions)
        key = wanted, column.parameters
        if key not in workloads:
            own = class_.parameters_class(**column.changed(parameters))
            workloads[key] = class_(Size(wanted, size.events, size.seed), own)
        if (column.engine, *key) not in engines:
            engines[column.engine, *key] = _build(column.engine, workloads[key])
        found.append(_Measured(column, engines[column.engine, *key], seconds))
    return found


def _build(engine: str, workload: Workload) -> _Built:
    """Build one engine; memory is what the process has more, its input given back."""
    peer = make_peer(engine)
    before = resident_bytes()
    given: list[Any] = [peer.given(workload)]
    started = perf_counter()
    peer.build(given.pop())
    seconds = perf_counter() - started
    after = resident_bytes()
    more = None if before is None or after is None else max(0, after - before)
    return _Built(peer, workload, seconds, more)


def _warm(run: _Measured, serials: Callable[[], int]) -> None:
    started = perf_counter()
    events = run.built.workload.size.events
    for start in range(0, min(events, WARM_NEW) if run.column.new else events, WARM_NEW):
        block = range(start, min(start + WARM_NEW, events))
        form = run.column.form
        for event in run.built.peer.prepare(run.built.workload, run.asked(block, serials), form):
            run.built.peer.match(event, form)
            if perf_counter() - started > WARM_SECONDS:
                return


def _match(run: _Measured, block: range, serials: Callable[[], int]) -> None:
    """Match a block of events, each timed alone, a table's together."""
    peer, form = run.built.peer, run.column.form
    numbers = iter(block)
    for event in peer.prepare(run.built.workload, run.asked(block, serials), form):
        started = perf_counter()
        answers = peer.match(event, form)
        took = perf_counter() - started
        run.spent += took
        run.micros += [took / len(answers) * 1e6] * len(answers)
        for answer in answers:
            found = np.sort(peer.numbers(answer))
            run.matched[next(numbers)] = (found.size, crc32(found.tobytes()))
        if run.is_done():
            return


def _disagreements(runs: Sequence[_Measured]) -> str | None:
    """Say of the first event of which columns report different matches what each reports."""
    groups: dict[tuple[int, bool, int], dict[str, tuple[int, int]]] = {}
    for run in runs:
        workload = id(run.built.workload)
        for number, found in run.matched.items():
            if run.built.peer.matches:
                groups.setdefault((number, run.column.new, workload), {})[str(run.column)] = found
    for (number, _, _), said in sorted(groups.items()):
        if len(set(said.values())) > 1:
            parts = (f"{of} {many} (checksum {sum_:08x})" for of, (many, sum_) in said.items())
            return f"event {number}: {', '.join(parts)}"
    return None


def _row(run: _Measured, size: Size, wrong: str | None) -> Row:
    column, peer, workload = run.column, run.built.peer, run.built.workload
    count = workload.size.subscriptions
    reported = peer.reported_bytes()
    matches = sum(many for many, _ in run.matched.values()) / len(run.matched)
    row: Row = {
        "workload": workload.name,
        "column": str(column),
        "engine": column.engine,
        "form": column.form,
        "documents": "new" if column.new else "again",
        "subscriptions": count,
        "events": len(run.micros),
        "build_seconds": run.built.seconds,
        "subscriptions_per_second": count / max(run.built.seconds, 1e-9),
        "bytes_per_subscription": None
        if run.built.resident is None
        else run.built.resident / count,
        "reported_bytes_per_subscription": None if reported is None else reported / count,
        "median_microseconds_per_event": median(run.micros),
        "matches_per_event": matches if peer.matches else None,
        "parameters": {"seed": size.seed, **workload.described()},
        "agrees": wrong is None,
    }
    if wrong is not None:
        row["disagreement"] = wrong
    return row
