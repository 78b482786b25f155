"""How many subscriptions a second are taken in, and forgotten again.

Subscriptions come from a source: SPARQL texts of two workloads, or rows of constraints on
attributes from JSON Lines or Arrow. Each taker (`graphmatch.bench.takers`) gets them in `CHUNKS`
parts; the rate is the median of the parts', so that it is that of an engine that is half full.
Takers follow one another, and all stay in memory, as elsewhere (`graphmatch.bench.runner`).

What the ways of one taker have taken in is compared: all have to match the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Literal, TypeAlias
from zlib import crc32

import numpy as np

from graphmatch.bench.memory import resident_bytes
from graphmatch.bench.process import OneCore, Row
from graphmatch.bench.takers import taker_class
from graphmatch.bench.takers.taker import Taker
from graphmatch.bench.workloads.attributes import AttributeParameters, AttributeWorkload
from graphmatch.bench.workloads.graph import GraphParameters, GraphWorkload
from graphmatch.bench.workloads.keywords import FEEDS, KeywordParameters, KeywordWorkload
from graphmatch.bench.workloads.workload import Size, Workload

Source: TypeAlias = Literal["graph", "keywords", "lines", "arrow"]

SOURCES: tuple[Source, ...] = ("graph", "keywords", "lines", "arrow")
CHUNKS = 20
MOST_SECONDS = 120.0
"""No more parts are taken in after so long."""
CHECKED = 3
"""How many events are matched to see whether all has been taken in."""

REHEARSAL = 200
DROP = "drop"
"""The way of forgetting."""


@dataclass(frozen=True, slots=True)
class SubscribeParameters:
    """What can be chosen.

    Parameters
    ----------
    source
        Where subscriptions come from.
    shapes
        How many of them differ in more than constants; keywords have three.
    attributes, absent
        As in `graphmatch.bench.workloads.attributes.AttributeParameters`; for rows.
    feeds
        As in `graphmatch.bench.workloads.keywords.KeywordParameters`.
    """

    source: Source = "graph"
    shapes: int = 100
    attributes: int = 10
    absent: float = 0.0
    feeds: Path = FEEDS

    def workload(self, size: Size) -> Workload:
        """Generate the subscriptions, and events to check them by."""
        match self.source:
            case "graph":
                return GraphWorkload(size, GraphParameters(shapes=self.shapes))
            case "keywords":
                return KeywordWorkload(size, KeywordParameters(self.feeds))
        of = AttributeParameters(self.attributes, self.absent, shapes=self.shapes)
        return AttributeWorkload(size, of)

    def described(self) -> dict[str, object]:
        """Return what makes the subscriptions, for the output."""
        match self.source:
            case "graph":
                return {"source": self.source, "shapes": self.shapes}
            case "keywords":
                return {"source": self.source, "feeds": str(self.feeds)}
        rows = {"attributes": self.attributes, "absent": self.absent, "shapes": self.shapes}
        return {"source": self.source, **rows}


def measure(engines: Sequence[str], size: Size, parameters: Mapping[str, Any]) -> list[Row]:
    """Measure each engine in each of its ways.

    Parameters
    ----------
    engines
        As `TAKERS` names them; each takes the source, and is installed.
    size
        The number of events says nothing.
    parameters
        Of `SubscribeParameters`, those that differ from its defaults.

    Returns
    -------
    list of rows
        One for each engine and way; docs/reference/command.md names what is in it.

    Examples
    --------
    >>> rows = measure(["pyoxigraph"], Size(100, 1), {})
    >>> rows[0]["engine"], rows[0]["way"], rows[0]["held"], rows[0]["agrees"]
    ('pyoxigraph', 'one', 100, True)
    """
    given = SubscribeParameters(**parameters)
    with OneCore():
        _all(engines, given, Size(REHEARSAL, CHECKED, size.seed))
        done = _all(engines, given, Size(size.subscriptions, CHECKED, size.seed))
    wrong = _disagreement(done, size.subscriptions)
    described = {"seed": size.seed, **given.described()}
    rows = [_row(one, size.subscriptions, described) for one in done]
    for row in rows:
        row["agrees"] = wrong is None
        if wrong is not None:
            row["disagreement"] = wrong
    return rows


@dataclass(frozen=True, slots=True)
class _Done:
    """What a taker did in one way.

    `rates` are subscriptions a second, part by part; `held` is how many subscriptions it has
    afterwards, and `more` by how many bytes the process has grown; `matched` says for some events
    how many subscriptions matched, and their checksum.
    """

    engine: str
    way: str
    source: str
    seconds: float
    rates: list[float]
    expected: int
    held: int
    more: int | None
    matched: tuple[tuple[int, int], ...] = ()


def _all(engines: Sequence[str], given: SubscribeParameters, size: Size) -> list[_Done]:
    """Measure each way of each engine; all are kept until the end, so that none reuses memory."""
    workload = given.workload(size)
    rows: list[_Done] = []
    takers: list[tuple[Taker, _Done]] = []
    for name in engines:
        class_ = taker_class(name)
        for way in class_.ways:
            before = resident_bytes()
            taker = class_(given.source, workload)
            done = _taken(taker, way, before)
            takers.append((taker, done))
    for taker, done in takers:
        rows.append(done)
        if taker.drops and done.way == taker.ways[-1]:
            rows.append(_dropped(taker, done))
        taker.close()
    return rows


def _taken(taker: Taker, way: str, before: int | None) -> _Done:
    bounds = _bounds(taker.workload.size.subscriptions)
    chunks = taker.chunks(bounds)
    times: list[float] = []
    while len(times) < len(bounds) and sum(times) <= MOST_SECONDS:
        chunk = chunks[len(times)]
        started = perf_counter()
        taker.take(chunk, way)
        times.append(perf_counter() - started)
        chunks[len(times) - 1] = chunk = None  # what the taker keeps is its own
    chunks.clear()
    done = _Done(
        engine=taker.name,
        way=way,
        source=taker.source,
        seconds=sum(times),
        rates=_rates(bounds, times),
        expected=sum(map(len, bounds[: len(times)])),
        held=len(taker),
        more=_grown(before),
    )
    return replace(done, matched=tuple(_matched(taker)))


def _dropped(taker: Taker, taken: _Done) -> _Done:
    """Let a taker forget all again, in another order; its memory is what remains."""
    ids = [str(n) for n in np.random.default_rng(1).permutation(len(taker)).tolist()]
    bounds = _bounds(len(ids))
    before = resident_bytes()
    times: list[float] = []
    for part in bounds:
        started = perf_counter()
        taker.drop(ids[part.start : part.stop])
        times.append(perf_counter() - started)
    more = _grown(before)
    left = None if more is None or taken.more is None else max(0, taken.more + more)
    return replace(
        taken,
        way=DROP,
        seconds=sum(times),
        rates=_rates(bounds, times),
        expected=0,
        held=len(taker),
        more=left,
        matched=(),
    )


def _grown(before: int | None) -> int | None:
    """Return by how many bytes the process has grown since it had so many."""
    after = resident_bytes()
    return None if before is None or after is None else after - before


def _rates(bounds: Sequence[range], times: Sequence[float]) -> list[float]:
    return [len(part) / time for part, time in zip(bounds, times, strict=False)]


def _bounds(count: int) -> list[range]:
    """Divide numbers into at most `CHUNKS` parts, as large as each other as far as that goes.

    Examples
    --------
    >>> [len(part) for part in _bounds(3)], {len(part) for part in _bounds(110)}
    ([1, 1, 1], {5, 6})
    """
    ends = np.linspace(0, count, min(CHUNKS, count) + 1).astype(int).tolist()
    return [range(start, end) for start, end in pairwise(ends)]


def _matched(taker: Taker) -> Iterator[tuple[int, int]]:
    for number in range(CHECKED):
        ids = taker.matched(number)
        if ids is not None:
            yield ids.size, crc32(ids.tobytes())


def _disagreement(done: Sequence[_Done], count: int) -> str | None:
    """Say who has not taken in what it was given, or which two match differently."""
    for one in done:
        if one.held != one.expected:
            return f"{one.engine} ({one.way}) has {one.held:,} subscriptions, not {one.expected:,}"
    whole = [one for one in done if one.matched and one.held == count]
    for one, other in pairwise(whole):
        if one.matched != other.matched:
            return (
                f"{one.engine} ({one.way}) matches {one.matched}, "
                f"{other.engine} ({other.way}) {other.matched}"
            )
    return None


def _row(one: _Done, count: int, described: Mapping[str, object]) -> Row:
    matches = [matched for matched, _ in one.matched]
    return {
        "workload": "subscribe",
        "engine": one.engine,
        "source": one.source,
        "way": one.way,
        "subscriptions": count,
        "held": one.held,
        "build_seconds": one.seconds,
        "bytes_per_subscription": None if one.more is None else max(0, one.more) / count,
        "subscriptions_per_second": median(one.rates),
        "matches_per_event": sum(matches) / len(matches) if matches else None,
        "parameters": dict(described),
    }
