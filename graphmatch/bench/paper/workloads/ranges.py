"""``ranges``: the workload of DEXIN.

Fan, Liu, Tang: "DEXIN: A fast content-based multi-attribute event matching algorithm using dynamic
exclusive and inclusive methods", FGCS 2017, section 4 and table 1, with its letters.

An event has one of η values for each of M attributes. A subscription has a constraint on each of
them: with probability λ it is a point, otherwise a range of width θ that begins anywhere where it
fits. Unless θ is given it is drawn for each range from 0.2 to 0.8 (section 4.1.1). The domain of an
attribute is 0 to 1,000,000 instead of 0 to 1.

With Zipf's law (exponent 1, in its continuous form: the logarithm of a value is uniform) values
and ends of ranges are drawn alike, and a range has the same share of all values as before. *Mixed*:
each attribute has one of the two distributions (section 4.3).

With a matching rate ξ subscriptions are cut out of 1/ξ events (section 4.1.7): each has a
constraint on one attribute that only its event meets, among these events, and constraints on the
others that its event meets, too. Those events are then matched, so each matches the share ξ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode

from graphmatch.bench.paper.workloads.flat import FlatWorkload
from graphmatch.bench.workloads.attributes import LARGEST, AttributeParameters, AttributeWorkload
from graphmatch.bench.workloads.workload import Rows, Size, Workload
from graphmatch.published.base import Event, Interval

Shares: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int64]

NARROWEST, WIDEST = 0.2, 0.8
"""Between what θ is drawn (section 4.1.1)."""

CARDINALITY, POINTS = 10_000, 0.1
"""η and λ where they are not varied (section 4.1.1)."""

BATCH = 10_000
"""How many subscriptions are made objects at a time."""


@dataclass(frozen=True, slots=True)
class RangeParameters(AttributeParameters):
    """What can be chosen, beside the number of attributes (M) and how values are spread.

    Parameters
    ----------
    matching
        ξ; 0 leaves it to the constraints.
    width
        θ; ``None`` for another one for each range.
    cardinality
        η: how many values an attribute has.
    points
        λ: the share of the constraints that are points.
    mixed
        Whether each attribute has a distribution of its own.
    """

    matching: float = 0.0
    width: float | None = None
    cardinality: int = CARDINALITY
    points: float = POINTS
    mixed: bool = False


class RangeWorkload(AttributeWorkload, FlatWorkload):
    """Points and ranges over numeric attributes.

    Parameters
    ----------
    size
        How much is generated.
    parameters
        See `RangeParameters`.

    Examples
    --------
    >>> made = RangeWorkload(Size(100, 5), RangeParameters(attributes=2, points=1.0))
    >>> row = made.conjunctions[0].rows[0]
    >>> len(row), all(constraint.low == constraint.high for constraint in row.values())
    (2, True)
    """

    name: ClassVar = "ranges"
    parameters_class: ClassVar = RangeParameters
    kinds: ClassVar = frozenset({Interval})
    parameters: RangeParameters

    def __init__(self, size: Size, parameters: RangeParameters) -> None:
        Workload.__init__(self, size, parameters)
        random = np.random.default_rng(size.seed)
        columns = parameters.attributes
        self._attributes = [NamedNode(f"urn:a:{column}") for column in range(columns)]
        zipf = np.full(columns, parameters.values == "zipf")
        if parameters.mixed:
            zipf = random.random(columns) < 0.5
        low = np.empty((columns, size.subscriptions), np.int32)
        high = np.empty_like(low)
        published = self._published(size)
        values = np.empty((published, columns), np.int32)
        if parameters.matching:
            of = np.arange(size.subscriptions) % published
            only = random.integers(0, columns, size.subscriptions)
        for column in range(columns):
            scale = _Scale(parameters.cardinality, bool(zipf[column]))
            if parameters.matching:
                events = scale.distinct(random, published)
                first, last = _around(random, scale, events[of], parameters)
                alone = only == column
                first[alone], last[alone] = _alone(random, events, of[alone], parameters)
            else:
                events = scale.of(random.random(published))
                first, last = _anywhere(random, scale, size.subscriptions, parameters)
            step = LARGEST // parameters.cardinality
            low[column], high[column], values[:, column] = first * step, last * step, events * step
        again = np.arange(size.events) % published
        self.rows = Rows(low, high, values[again])

    def _published(self, size: Size) -> int:
        """Return how many different events there are."""
        share = self.parameters.matching
        return size.events if not share else max(1, min(round(1 / share), size.subscriptions))

    def constrained(self) -> Iterator[dict[NamedNode, Interval]]:
        """Yield an interval for each attribute."""
        for start in range(0, self.size.subscriptions, BATCH):
            part = slice(start, start + BATCH)
            low, high = (
                bound[:, part].astype(float).T.tolist() for bound in (self.rows.low, self.rows.high)
            )
            for lows, highs in zip(low, high, strict=True):
                yield dict(zip(self._attributes, map(Interval, lows, highs), strict=True))

    def event(self, number: int) -> Event:
        """Return an event as its values."""
        values = self.rows.values[number].tolist()
        terms = dict(zip(self._attributes, map(Literal, values), strict=True))
        return Event(terms, dict(zip(self._attributes, map(float, values), strict=True)))


@dataclass(frozen=True, slots=True)
class _Scale:
    """An attribute's values, as places from 0 on, and which share of all is below each."""

    cardinality: int
    zipf: bool

    def of(self, share: Shares) -> Places:
        """Return the place below which that share of all values lies."""
        count = self.cardinality
        found = np.floor((count + 1) ** share) - 1 if self.zipf else np.floor(share * count)
        places: Places = np.clip(found, 0, count - 1).astype(np.int64)
        return places

    def share(self, places: Places) -> Shares:
        """Return a share whose place each is: the middle of those that are."""
        count = self.cardinality
        shares: Shares = (places + 0.5) / count
        if self.zipf:
            shares = np.minimum(np.log(places + 1.5) / np.log(count + 1), 1.0)
        return shares

    def distinct(self, random: np.random.Generator, count: int) -> Places:
        """Draw so many different places, as they are spread."""
        every = np.arange(self.cardinality)
        weights = 1 / (every + 1.0) if self.zipf else np.ones(every.size)
        found: Places = random.choice(every, count, replace=False, p=weights / weights.sum())
        return found


def _widths(random: np.random.Generator, count: int, parameters: RangeParameters) -> Shares:
    if parameters.width is not None:
        return np.full(count, parameters.width)
    return random.uniform(NARROWEST, WIDEST, count)


def _anywhere(
    random: np.random.Generator, scale: _Scale, count: int, parameters: RangeParameters
) -> tuple[Places, Places]:
    """Draw ranges and points."""
    width = _widths(random, count, parameters)
    start = random.random(count) * (1 - width)
    point = scale.of(random.random(count))
    is_point = random.random(count) < parameters.points
    low = np.where(is_point, point, scale.of(start))
    return low, np.where(is_point, point, scale.of(start + width))


def _around(
    random: np.random.Generator, scale: _Scale, places: Places, parameters: RangeParameters
) -> tuple[Places, Places]:
    """Draw ranges and points that these places are in."""
    width, share = _widths(random, places.size, parameters), scale.share(places)
    least, most = np.maximum(share - width, 0), np.minimum(share, 1 - width)
    start = least + (most - least) * random.random(places.size)
    is_point = random.random(places.size) < parameters.points
    low = np.where(is_point, places, np.minimum(scale.of(start), places))
    return low, np.where(is_point, places, np.maximum(scale.of(start + width), places))


def _alone(
    random: np.random.Generator, events: Places, of: Places, parameters: RangeParameters
) -> tuple[Places, Places]:
    """Draw ranges and points around some events' places in which no other event's place is."""
    order = np.argsort(events)
    ends = np.concatenate([[-1], events[order], [parameters.cardinality]])
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    place, before, after = events[of], ends[rank[of]], ends[rank[of] + 2]
    below = np.floor(random.random(of.size) * (place - before)).astype(np.int64)
    above = np.floor(random.random(of.size) * (after - place)).astype(np.int64)
    is_point = random.random(of.size) < parameters.points
    return np.where(is_point, place, place - below), np.where(is_point, place, place + above)
