"""DEXIN: for each event, attributes in the best order, each by the cheaper of two methods.

Fan, Liu, Tang: "DEXIN: A fast content-based multi-attribute event matching algorithm using dynamic
exclusive and inclusive methods", Future Generation Computer Systems 2017, sections 3 and 4.3.

Each attribute has two arrays of slots that divide its domain evenly, with the low and the high ends
of all constraints (section 3.3.1). The *exclusive* method removes each subscription with an end
that excludes the value (algorithm 1). The *inclusive* method tests each remaining subscription
(algorithm 2). For each event the matching rate of every attribute is estimated from the sizes of
the slots (formula 3). The Low-Matching-Rate-First-Fit algorithm (algorithm 4) then puts attributes
into a pipeline, lowest matching rate first, and gives each a method. Attributes are assumed to be
independent; costs are fractions of all subscriptions.

Cost: the plan is O(M log M), the exclusive method O(slots + constraints that do not hold), the
inclusive one O(remaining subscriptions). Two entries of 16 bytes for each constraint, and two ends
for each attribute and subscription.

Notes
-----
- Algorithm 1 removes all of slot β (line 20), including ends above the value. The text says "the
  slots before β", which is implemented here. A slot is a sorted array instead of an RB-tree.
- Rule 3 accepts a value at one closed end whatever the other end is. Rule 1 does not, as for
  ``[5, 5)``. Rule 3 does not cover constraints without ends. Both ends are tested here.
- An absent end is in no array. A constraint with neither end has an infinite high end in the array,
  for events without the attribute.
- Formula 3 counts the value's own slots as a whole. It may fall below 0, which would invert the
  accumulated rate. It is 0 then. It takes O(slots), which section 3.4.2 calls constant.
- Algorithm 4, like this module, compares the accumulated rate with δ; the text has "the matching
  rate". Formula 9 leaves out the first attribute, which costs 1 (formula 5).
- The partial result is a hash map with a linked list in the paper. Here it is an array of booleans,
  and from the first inclusive step on an array of numbers.
- Events and subscriptions of the paper have all attributes. Here a subscription without a
  constraint on an attribute has no entries, and passes the inclusive test. An event that lacks an
  attribute is outside of all its constraints.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from math import inf, nan
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode

from graphmatch.published.attribute_matcher import (
    DOMAIN,
    AttributeEvent,
    AttributeMatcher,
    Row,
    Tally,
    Values,
    all_ends,
)
from semantic.ontology.ontology import Ontology

SLOTS = 1500
"""Slots in each array (section 4)."""
SEARCHED = 22
"""The most attributes that `optimal` searches (the largest M in figure 15)."""

# --- The pipeline (sections 3.4 and 3.5) --------------------------------------------------------


class Method(IntEnum):
    """The method that finds the subscriptions that do not match: the paper's d_k."""

    EXCLUSIVE = 0
    INCLUSIVE = 1


class Step(NamedTuple):
    """A step of a plan: an attribute, its method, and its estimated matching rate and cost."""

    attribute: NamedNode
    method: Method
    rate: float
    cost: float


Plan: TypeAlias = tuple[Step, ...]
"""The vectors Q and D, with the rates and costs."""
Rates: TypeAlias = Mapping[NamedNode, float]
"""The fraction of subscriptions that an event's value passes, for each attribute."""


def price(rates: Rates, order: Iterable[NamedNode], methods: Iterable[Method]) -> Plan:
    """Return the plan of attributes in `order` with `methods`, and its costs (formulas 4 and 5)."""
    plan, left = [], 1.0
    for attribute, method in zip(order, methods, strict=True):
        rate = rates[attribute]
        plan.append(Step(attribute, method, rate, left if method else 1 - rate))
        left *= rate
    return tuple(plan)


def cost(plan: Plan) -> float:
    """Return the cost of a plan, the sum over its steps (formula 6)."""
    return sum(step.cost for step in plan)


def low_matching_rate_first_fit(rates: Rates) -> Plan:
    """Return a near-optimal plan in O(M log M) (algorithm 4).

    The exclusive method is used while it is cheaper than the inclusive one.
    """
    order = sorted(rates, key=rates.__getitem__)
    accumulated, exclusive = 1.0, 0
    for attribute in order:
        if exclusive and accumulated <= 1 - rates[attribute]:
            break
        accumulated *= rates[attribute]
        exclusive += 1
    rest = [Method.INCLUSIVE] * (len(order) - exclusive)
    return price(rates, order, [Method.EXCLUSIVE] * exclusive + rest)


def optimal(rates: Rates) -> Plan:
    """Return the cheapest plan (section 4.3) by a search in O(2^M).

    The search keeps to observations 1 to 3: the exclusive method comes first, and attributes of the
    inclusive one are in ascending order of their rates. With more than `SEARCHED` attributes, or
    none, return the plan of `low_matching_rate_first_fit`.
    """
    if not 0 < len(rates) <= SEARCHED:
        return low_matching_rate_first_fit(rates)
    order = sorted(rates, key=rates.__getitem__)
    exclusive = np.arange(1, 2 ** len(order))  # choices of attributes, as bits
    total, left = np.zeros(exclusive.size), np.ones(exclusive.size)
    for method in Method:
        for place, attribute in enumerate(order):
            chosen = exclusive >> place & 1 != method
            total += chosen * (left if method else 1 - rates[attribute])
            left *= np.where(chosen, rates[attribute], 1.0)
    best = int(exclusive[total.argmin()])
    pipeline = sorted((Method(~best >> place & 1), place) for place in range(len(order)))
    return price(rates, [order[place] for _, place in pipeline], [method for method, _ in pipeline])


def only_exclusive(rates: Rates) -> Plan:
    """Return the plan that uses the exclusive method for all attributes (formula 8)."""
    return price(rates, sorted(rates, key=rates.__getitem__), [Method.EXCLUSIVE] * len(rates))


def only_inclusive(rates: Rates) -> Plan:
    """Return the cheapest plan that uses the inclusive method for all attributes (formula 9)."""
    return price(rates, sorted(rates, key=rates.__getitem__), [Method.INCLUSIVE] * len(rates))


# --- The index ----------------------------------------------------------------------------------


class Slots:
    """The low or the high ends of an attribute's constraints, in slots that divide its domain.

    `ends` has the ends in each slot, ascending, `numbers` their conjunctions, `sizes` their counts.
    """

    def __init__(self, count: int) -> None:
        self.ends = [array("d") for _ in range(count)]
        self.numbers = [array("q") for _ in range(count)]
        self.sizes: NDArray[np.int64] = np.zeros(count, np.int64)

    def insert(self, slot: int, end: float, number: int) -> None:
        """Add an end, and the number of its conjunction, to a slot in ascending order."""
        place = bisect_right(self.ends[slot], end)
        self.ends[slot].insert(place, end)
        self.numbers[slot].insert(place, number)
        self.sizes[slot] += 1


@dataclass(slots=True)
class DexinIndex:
    """The index of one attribute.

    `lows` and `highs` have the ends in slots. `ends`, of shape ``(numbers, 2)``, has both ends of
    each conjunction's constraint by number, or NaN without a constraint.
    """

    lows: Slots
    highs: Slots
    ends: Values


class Dexin(AttributeMatcher):
    """DEXIN (Fan et al. 2017): check attributes in a planned order, each by one of two methods.

    Each of an attribute's two arrays has `slots` slots.

    Examples
    --------
    >>> from graphmatch.published.attribute_matcher import Conjunction, Interval
    >>> dexin, price = Dexin(Ontology()), NamedNode("urn:price")
    >>> dexin.add(Conjunction("s", price, ({price: Interval(100.0, 400.0)},)))
    >>> events = [AttributeEvent({}, {price: value}) for value in (400.0, 401.0)]
    >>> [list(dexin.matched(event, Tally())) for event in events]
    [[0], []]
    """

    planner: ClassVar[Callable[[Rates], Plan]] = staticmethod(low_matching_rate_first_fit)

    def __init__(
        self, ontology: Ontology, *, domain: tuple[float, float] = DOMAIN, slots: int = SLOTS
    ) -> None:
        self._slots = slots
        super().__init__(ontology, domain)

    def clear(self) -> None:
        self._attributes: dict[NamedNode, DexinIndex] = {}
        self._room = 64

    def insert(self, number: int, row: Row) -> None:
        """Put each constraint's ends into their slots."""
        if number >= self._room:
            self._room *= 2
            for index in self._attributes.values():
                index.ends = np.concatenate([index.ends, np.full_like(index.ends, nan)])
        for attribute, low, high in all_ends(row):
            if attribute not in self._attributes:
                ends = np.full((self._room, 2), nan)
                self._attributes[attribute] = DexinIndex(
                    Slots(self._slots), Slots(self._slots), ends
                )
            index = self._attributes[attribute]
            index.ends[number] = low, high
            if low > -inf:
                index.lows.insert(self._slot(low), low, number)
            if high < inf or low == -inf:
                index.highs.insert(self._slot(high), high, number)

    def _slot(self, value: float) -> int:
        return self.cell(value, self._slots)

    def plan(self, event: AttributeEvent) -> Plan:
        """Return the pipeline for an event: order, methods, estimated rates and costs."""
        rates = {}
        for attribute, index in self._attributes.items():
            value = event.numbers.get(attribute)
            alpha, beta = (0, self._slots - 1) if value is None else [self._slot(value)] * 2
            outside = index.lows.sizes[alpha:].sum() + index.highs.sizes[: beta + 1].sum()
            rates[attribute] = max(0.0, 1 - int(outside) / len(self.ids))  # formula 3
        return type(self).planner(rates)

    def matched(self, event: AttributeEvent, tally: Tally) -> Iterable[int]:
        """Send all subscriptions through the pipeline, and return the matches (algorithm 3).

        Probes are the entries of slots that were read, index hits the subscriptions they removed.
        Candidates are the comparisons: ends in a value's own slots, and constraints.
        """
        plan = self.plan(event)
        left = np.ones(len(self.ids), np.bool_)
        for attribute, method, _, _ in plan:
            if method is Method.EXCLUSIVE:
                index, value = self._attributes[attribute], event.numbers.get(attribute)
                left[self._outside(index, value, tally)] = False
        numbers = np.flatnonzero(left)
        tally.index_hits += left.size - numbers.size
        for attribute, method, _, _ in plan:
            if method is Method.INCLUSIVE:
                tally.candidates += numbers.size
                low, high = self._attributes[attribute].ends.take(numbers, axis=0).T
                value = event.numbers.get(attribute)
                if value is None:
                    numbers = numbers[np.isnan(low)]
                else:  # NaN, for no constraint, is neither above nor below
                    numbers = numbers[~((low > value) | (high < value))]
        found: list[int] = numbers.tolist()
        return found

    def _outside(self, index: DexinIndex, value: float | None, tally: Tally) -> NDArray[np.int64]:
        """Return the conjunctions with an end that excludes a value (algorithm 1).

        Without a value, return all that constrain the attribute, some of them twice.
        """
        lows, highs = index.lows, index.highs
        slots = [*lows.numbers, *highs.numbers]
        if value is not None:
            alpha = beta = self._slot(value)
            first = bisect_right(lows.ends[alpha], value)
            last = bisect_left(highs.ends[beta], value)
            slots = [lows.numbers[alpha][first:], *lows.numbers[alpha + 1 :]]
            slots += [*highs.numbers[:beta], highs.numbers[beta][:last]]
            tally.candidates += int(lows.sizes[alpha] + highs.sizes[beta])
        numbers = np.frombuffer(b"".join(slots), np.int64)
        tally.probes += numbers.size
        return numbers


class DexinExclusive(Dexin):
    """DEXIN with the exclusive method alone (section 4.4)."""

    planner: ClassVar[Callable[[Rates], Plan]] = staticmethod(only_exclusive)


class DexinInclusive(Dexin):
    """DEXIN with the inclusive method alone (section 4.4)."""

    planner: ClassVar[Callable[[Rates], Plan]] = staticmethod(only_inclusive)


class DexinOptimal(Dexin):
    """DEXIN with the best plan by the cost model (section 4.3)."""

    planner: ClassVar[Callable[[Rates], Plan]] = staticmethod(optimal)
