"""Numbers and few values: ``attributes``, ``ranges`` and ``equalities``.

``attributes`` and ``ranges`` are DEXIN's (Fan, Liu, Tang, FGCS 2017, section 4 and table 1), with
integers up to 1,000,000 instead of 0 to 1. With Zipf's law (exponent 1, in its continuous form) a
range has the same share of the values as without. ``attributes`` has ranges of one width, which
follows from the share of matches: of c ranges, each matches with the c-th root of that share. In
``ranges`` with a matching rate ξ, subscriptions are taken from 1/ξ events (section 4.1.7). Each has
a constraint on one attribute that only its event satisfies. On the other attributes, its event
satisfies the constraints, too.

``equalities`` is the simulated load of Gryphon's tree (Aguilera and others, PODC 1999, section on
performance); the paper's numbers are missing in our copy. A subscription without a test gets one of
the first attribute.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.workloads import UNBOUNDED, Column, TabularData, TabularWorkload

Values: TypeAlias = Literal["uniform", "zipf"]
Shares: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int64]
Pair: TypeAlias = tuple[Places, Places]

LARGEST = 1_000_000
POPULAR, FALLING = 0.95, 0.85
"""The probability that ``equalities`` test the first attribute, and its factor per further one."""
TRIED = 30
"""The number of events drawn for each kept one."""
SAMPLED = 100_000
"""The number of subscriptions in which an event's share of matches is counted."""


@dataclass(eq=False)
class AttributeWorkload(TabularWorkload):
    """Ranges of one width; `matching` is the share of subscriptions that an event matches."""

    attributes: int = 10
    matching: float = 0.01
    values: Values = "uniform"

    def __post_init__(self) -> None:
        size = self.size
        attributes, matching = self.attributes, self.matching
        width = matching ** (1 / attributes)
        more = replace(size, events=size.events * TRIED)
        tried = RangeWorkload(more, attributes, 0.0, self.values, width, LARGEST, points=0.0)
        best = np.argsort(_away(tried.rows, matching), kind="stable")[: size.events]
        self.rows = replace(tried.rows, values=tried.rows.values[best])
        self.columns = tried.columns


@dataclass(eq=False)
class RangeWorkload(TabularWorkload):
    """Points and ranges, with the paper's M, ξ, θ, η and λ.

    They are `attributes`, `matching` (0: constraints and events are drawn independently), `width`,
    `cardinality` and `points`. A width of ``None`` means random widths. If `mixed`, each attribute
    has one of the two distributions (section 4.3).
    """

    attributes: int = 10
    matching: float = 0.0
    values: Values = "uniform"
    width: float | None = None
    cardinality: int = 10_000
    points: float = 0.1
    mixed: bool = False

    def __post_init__(self) -> None:
        size = self.size
        random = np.random.default_rng(size.seed)
        columns, count, share = self.attributes, size.subscriptions, self.matching
        zipf = np.full(columns, self.values == "zipf")
        if self.mixed:
            zipf = random.random(columns) < 0.5
        low = np.empty((columns, count), np.int32)
        high = np.empty_like(low)
        published = size.events if not share else max(1, min(round(1 / share), count))
        values = np.empty((published, columns), np.int32)
        if share:
            of = np.arange(count) % published
            only = random.integers(0, columns, count)
        step = LARGEST // self.cardinality
        for column in range(columns):
            draw = _Drawing(random, self, bool(zipf[column]))
            if share:
                events = draw.distinct(published)
                first, last = draw.around(events[of])
                alone = only == column
                first[alone], last[alone] = draw.alone(events, of[alone])
            else:
                events = draw.places(random.random(published))
                first, last = draw.anywhere(count)
            low[column], high[column], values[:, column] = first * step, last * step, events * step
        self.rows = TabularData(low, high, values[np.arange(size.events) % published])
        self.columns = [Column(f"a{number}") for number in range(columns)]


@dataclass(eq=False)
class EqualityWorkload(TabularWorkload):
    """Subscriptions of equality tests: `attributes` attributes, `values` values each.

    Tests have values by Zipf's law, events uniform ones.
    """

    attributes: int = 10
    values: int = 5

    def __post_init__(self) -> None:
        size = self.size
        random = np.random.default_rng(size.seed)
        columns, count = self.attributes, self.values
        weights = 1 / np.arange(1, count + 1)
        shape = size.subscriptions, columns
        drawn = random.choice(count, shape, p=weights / weights.sum())
        tests = random.random(shape) < POPULAR * FALLING ** np.arange(columns)
        tests[~tests.any(axis=1), 0] = True
        low, high = (np.where(tests, drawn, none).T.astype(np.int32) for none in UNBOUNDED)
        events = random.integers(0, count, (size.events, columns))
        self.rows = TabularData(low, high, events.astype(np.int32))
        names = [f"v{value}" for value in range(count)]
        self.columns = [Column(f"a{number}", names) for number in range(columns)]


def _away(rows: TabularData, matching: float) -> Shares:
    """Return how far each event's expected share of matches is from `matching`.

    The measure is the binary logarithm of their ratio; 0 within factor 2. A column's share is
    counted in the first rows; columns are assumed to be independent.
    """
    logarithm: Shares = np.full(len(rows.values), -np.log2(matching))
    for low, high, of in zip(rows.low, rows.high, rows.values.T, strict=True):
        low, high = np.sort(low[:SAMPLED]), np.sort(high[:SAMPLED])
        met = np.searchsorted(low, of, side="right") - np.searchsorted(high, of)
        logarithm += np.log2(np.maximum(met, 0.5) / low.size)
    found: Shares = np.maximum(np.abs(logarithm) - 1, 0)
    return found


@dataclass(frozen=True, slots=True)
class _Drawing:
    """Draws an attribute's values, and constraints on it, at random.

    Values are places from 0 to η - 1; constraints are their first and last places.
    """

    random: np.random.Generator
    of: RangeWorkload
    zipf: bool

    def places(self, share: Shares) -> Places:
        """Return the places below which these shares of all values lie."""
        count = self.of.cardinality
        found = np.floor((count + 1) ** share - 1 if self.zipf else share * count)
        places: Places = np.clip(found, 0, count - 1).astype(np.int64)
        return places

    def distinct(self, count: int) -> Places:
        """Draw `count` different places, with the probabilities of the distribution."""
        every = np.arange(self.of.cardinality)
        weights = 1 / (every + 1.0) if self.zipf else np.ones(every.size)
        found: Places = self.random.choice(every, count, replace=False, p=weights / weights.sum())
        return found

    def anywhere(self, count: int) -> Pair:
        """Draw `count` ranges and points anywhere; return their first and last places."""
        width = self._widths(count)
        start = self.random.random(count) * (1 - width)
        point = self.places(self.random.random(count))
        return self._points(point, self.places(start), self.places(start + width))

    def around(self, places: Places) -> Pair:
        """Draw a range or point around each place; return their first and last places."""
        width, count = self._widths(places.size), self.of.cardinality
        share: Shares = (places + 0.5) / count
        if self.zipf:
            share = np.minimum(np.log(places + 1.5) / np.log(count + 1), 1.0)
        least, most = np.maximum(share - width, 0), np.minimum(share, 1 - width)
        start = least + (most - least) * self.random.random(places.size)
        low = np.minimum(self.places(start), places)
        return self._points(places, low, np.maximum(self.places(start + width), places))

    def alone(self, events: Places, of: Places) -> Pair:
        """Draw a range or point around each event in `of` that contains no other event.

        `events` has the place of each event. Return the first and last places.
        """
        ends = np.concatenate([[-1], np.sort(events), [self.of.cardinality]])
        place = events[of]
        rank = np.searchsorted(ends, place)
        below = self.random.integers(0, place - ends[rank - 1])
        above = self.random.integers(0, ends[rank + 1] - place)
        return self._points(place, place - below, place + above)

    def _widths(self, count: int) -> Shares:
        if self.of.width is not None:
            return np.full(count, self.of.width)
        return self.random.uniform(0.2, 0.8, count)

    def _points(self, point: Places, low: Places, high: Places) -> Pair:
        """Replace the share `points` of ranges by points; return their first and last places."""
        is_point = self.random.random(point.size) < self.of.points
        return np.where(is_point, point, low), np.where(is_point, point, high)
