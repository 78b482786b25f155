"""Numbers and few values: ``attributes`` and ``ranges`` as DEXIN is measured, ``equalities``.

Fan, Liu, Tang: "DEXIN: A fast content-based multi-attribute event matching algorithm using dynamic
exclusive and inclusive methods", FGCS 2017, section 4 and table 1. An event has an integer from 0
to 1,000,000 (the paper: 0 to 1) for each attribute. With Zipf's law (exponent 1, in its continuous
form: the logarithm of a value is uniform) a range has as large a share of the values as without.

``attributes``
    A closed range for each of a subscription's attributes, all of one width, beginning anywhere
    where they fit; the width follows from the share of subscriptions that are to match: of c ranges
    each is met with the c-th root of it. A value in the middle meets more of them than one at an
    end, so events would differ by factors of a thousand; those are kept whose expected share is
    within a factor of 2.
``ranges``
    As the paper has it, with its letters: one of η values for each of M attributes; a constraint on
    each of them, with probability λ a point, otherwise a range of width θ. Unless θ is given it is
    drawn for each range from 0.2 to 0.8 (section 4.1.1). With a matching rate ξ subscriptions are
    cut out of 1/ξ events (section 4.1.7): each has a constraint on one attribute that only its
    event meets, among these events, and on the others constraints that its event meets, too.
``equalities``
    The simulated load of the Gryphon matching tree (Aguilera, Strom, Sturman, Astley, Chandra:
    "Matching events in a content-based subscription system", PODC 1999, section on performance).
    The first attribute is tested with the highest probability, each further one with less by a
    factor. The values that are tested follow Zipf's law; events have any value, all as often. The
    paper's numbers are not in the text at hand; those here are ours. A subscription that would test
    nothing tests the first attribute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.workloads import UNBOUNDED, Column, Rows, Size, TabularWorkload

Values: TypeAlias = Literal["uniform", "zipf"]
Shares: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int64]
Pair: TypeAlias = tuple[Places, Places]

LARGEST = 1_000_000
TRIED = 30
"""How many events are drawn for each that is kept."""
SAMPLED = 100_000
"""In how many subscriptions it is counted which share an event matches."""


@dataclass(frozen=True, slots=True)
class AttributeParameters:
    """What can be chosen of ``attributes``.

    How many attributes an event has, and which share of them a subscription says nothing of; which
    share of the subscriptions an event matches; how values are spread; and how many different sets
    of attributes (`shapes`) subscriptions have at the most.
    """

    attributes: int = 10
    absent: float = 0.0
    matching: float = 0.01
    values: Values = "uniform"
    shapes: int = 100


@dataclass(frozen=True, slots=True)
class RangeParameters:
    """What can be chosen of ``ranges``: M, ξ (0 leaves it to the constraints), θ, η and λ.

    A width of ``None`` is another one for each range; *mixed*, each attribute has one of the two
    distributions (section 4.3).
    """

    attributes: int = 10
    matching: float = 0.0
    values: Values = "uniform"
    width: float | None = None
    cardinality: int = 10_000
    points: float = 0.1
    mixed: bool = False


@dataclass(frozen=True, slots=True)
class EqualityParameters:
    """What can be chosen of ``equalities``.

    How many attributes there are, and how many values each has; how likely the first attribute is
    tested (`popular`), and by which factor each further one is less likely to be.
    """

    attributes: int = 10
    values: int = 5
    popular: float = 0.95
    falling: float = 0.85


class AttributeWorkload(TabularWorkload):
    """Ranges of one width over numeric attributes.

    Examples
    --------
    >>> made = AttributeWorkload(Size(100, 5), AttributeParameters(attributes=2))
    >>> made.rows.low.shape, made.rows.values.shape, len(made.publications(0)[0].triples)
    ((2, 100), (5, 2), 2)
    """

    name: ClassVar = "attributes"
    parameters_class: ClassVar = AttributeParameters

    def __init__(self, size: Size, parameters: AttributeParameters) -> None:
        super().__init__(size, parameters)
        random = np.random.default_rng(size.seed)
        count, columns = size.subscriptions, parameters.attributes
        sets = _sets(random, parameters)
        chosen = random.integers(0, len(sets), count)
        width = parameters.matching ** (1 / int(sets[0].sum()))
        low, high = (np.full((columns, count), bound, np.int32) for bound in UNBOUNDED)
        for column in range(columns):
            has = sets[chosen, column]
            start = random.random(count)[has] * (1 - width)
            low[column, has] = _value(start, parameters.values)
            high[column, has] = _value(start + width, parameters.values)
        drawn = _value(random.random((size.events * TRIED, columns)), parameters.values)
        away = _away(Rows(low, high, drawn), sets, parameters.matching)
        self.rows = Rows(low, high, drawn[np.argsort(away, kind="stable")[: size.events]])
        self.columns = [Column(f"a{number}") for number in range(columns)]


class RangeWorkload(TabularWorkload):
    """Points and ranges over numeric attributes."""

    name: ClassVar = "ranges"
    parameters_class: ClassVar = RangeParameters

    def __init__(self, size: Size, parameters: RangeParameters) -> None:
        super().__init__(size, parameters)
        random = np.random.default_rng(size.seed)
        columns, count, share = parameters.attributes, size.subscriptions, parameters.matching
        zipf = np.full(columns, parameters.values == "zipf")
        if parameters.mixed:
            zipf = random.random(columns) < 0.5
        low = np.empty((columns, count), np.int32)
        high = np.empty_like(low)
        published = size.events if not share else max(1, min(round(1 / share), count))
        values = np.empty((published, columns), np.int32)
        if share:
            of = np.arange(count) % published
            only = random.integers(0, columns, count)
        step = LARGEST // parameters.cardinality
        for column in range(columns):
            draw = _Drawing(random, parameters, bool(zipf[column]))
            if share:
                events = draw.distinct(published)
                first, last = draw.around(events[of])
                alone = only == column
                first[alone], last[alone] = draw.alone(events, of[alone])
            else:
                events = draw.places(random.random(published))
                first, last = draw.anywhere(count)
            low[column], high[column], values[:, column] = first * step, last * step, events * step
        self.rows = Rows(low, high, values[np.arange(size.events) % published])
        self.columns = [Column(f"a{number}") for number in range(columns)]


class EqualityWorkload(TabularWorkload):
    """Equalities with one of few values."""

    name: ClassVar = "equalities"
    parameters_class: ClassVar = EqualityParameters

    def __init__(self, size: Size, parameters: EqualityParameters) -> None:
        super().__init__(size, parameters)
        random = np.random.default_rng(size.seed)
        columns, count = parameters.attributes, parameters.values
        weights = 1 / np.arange(1, count + 1)
        shape = size.subscriptions, columns
        drawn = random.choice(count, shape, p=weights / weights.sum())
        tests = random.random(shape) < parameters.popular * parameters.falling ** np.arange(columns)
        tests[~tests.any(axis=1), 0] = True
        low, high = (np.where(tests, drawn, none).T.astype(np.int32) for none in UNBOUNDED)
        events = random.integers(0, count, (size.events, columns))
        self.rows = Rows(low, high, events.astype(np.int32))
        names = [f"v{value}" for value in range(count)]
        self.columns = [Column(f"a{number}", names) for number in range(columns)]


def _sets(random: np.random.Generator, parameters: AttributeParameters) -> NDArray[np.bool_]:
    """Draw different sets of attributes, shape ``(sets, attributes)``; none is empty."""
    columns = parameters.attributes
    size = max(1, round(columns * (1 - parameters.absent)))
    if size == columns:
        return np.ones((1, columns), np.bool_)
    drawn: dict[tuple[int, ...], None] = {}
    for _ in range(10 * parameters.shapes):
        drawn[tuple(sorted(random.permutation(columns)[:size].tolist()))] = None
        if len(drawn) == parameters.shapes:
            break
    return np.array([np.isin(np.arange(columns), chosen) for chosen in drawn])


def _away(rows: Rows, sets: NDArray[np.bool_], matching: float) -> Shares:
    """Return how far each event's expected share is from what it should be; 0 within a factor of 2.

    A column's share is counted in the first rows; columns are independent of each other.
    """
    logarithm = np.empty(rows.values.shape)
    for column, of in enumerate(rows.values.T):
        low, high = rows.low[column, :SAMPLED], rows.high[column, :SAMPLED]
        low, high = np.sort(low[low != UNBOUNDED[0]]), np.sort(high[high != UNBOUNDED[1]])
        met = np.searchsorted(low, of, side="right") - np.searchsorted(high, of)
        logarithm[:, column] = np.log(np.maximum(met, 0.5) / max(low.size, 1))
    shares = np.exp(logarithm @ sets.T).mean(axis=1)
    found: Shares = np.maximum(np.abs(np.log2(shares / matching)) - 1, 0)
    return found


def _value(share: Shares, values: Values) -> NDArray[np.int32]:
    """Return the value below which that share of all values lies."""
    uniform = values == "uniform"
    found = np.floor(share * (LARGEST + 1) if uniform else (LARGEST + 1) ** share - 1)
    return np.clip(found, 0, LARGEST).astype(np.int32)


@dataclass(frozen=True, slots=True)
class _Drawing:
    """Draws the values of an attribute, as places from 0 to η - 1, and constraints on it."""

    random: np.random.Generator
    parameters: RangeParameters
    zipf: bool

    def places(self, share: Shares) -> Places:
        """Return the places below which these shares of all values lie."""
        count = self.parameters.cardinality
        found = np.floor((count + 1) ** share - 1 if self.zipf else share * count)
        places: Places = np.clip(found, 0, count - 1).astype(np.int64)
        return places

    def distinct(self, count: int) -> Places:
        """Draw so many different places, as they are spread."""
        every = np.arange(self.parameters.cardinality)
        weights = 1 / (every + 1.0) if self.zipf else np.ones(every.size)
        found: Places = self.random.choice(every, count, replace=False, p=weights / weights.sum())
        return found

    def anywhere(self, count: int) -> Pair:
        """Draw ranges and points."""
        width = self._widths(count)
        start = self.random.random(count) * (1 - width)
        point = self.places(self.random.random(count))
        return self._points(point, self.places(start), self.places(start + width))

    def around(self, places: Places) -> Pair:
        """Draw ranges and points that these places are in."""
        width, count = self._widths(places.size), self.parameters.cardinality
        share: Shares = (places + 0.5) / count
        if self.zipf:
            share = np.minimum(np.log(places + 1.5) / np.log(count + 1), 1.0)
        least, most = np.maximum(share - width, 0), np.minimum(share, 1 - width)
        start = least + (most - least) * self.random.random(places.size)
        low = np.minimum(self.places(start), places)
        return self._points(places, low, np.maximum(self.places(start + width), places))

    def alone(self, events: Places, of: Places) -> Pair:
        """Draw ranges and points around some events' places in which no other event's place is."""
        order = np.argsort(events)
        ends = np.concatenate([[-1], events[order], [self.parameters.cardinality]])
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        place, before, after = events[of], ends[rank[of]], ends[rank[of] + 2]
        below = np.floor(self.random.random(of.size) * (place - before)).astype(np.int64)
        above = np.floor(self.random.random(of.size) * (after - place)).astype(np.int64)
        return self._points(place, place - below, place + above)

    def _widths(self, count: int) -> Shares:
        if self.parameters.width is not None:
            return np.full(count, self.parameters.width)
        return self.random.uniform(0.2, 0.8, count)

    def _points(self, point: Places, low: Places, high: Places) -> Pair:
        """Put points in the places of some ranges."""
        is_point = self.random.random(point.size) < self.parameters.points
        return np.where(is_point, point, low), np.where(is_point, point, high)
