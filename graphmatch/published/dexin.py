"""DEXIN: for each event, attributes in the best order, each by the cheaper of two methods.

Fan, Liu, Tang: "DEXIN: A fast content-based multi-attribute event matching algorithm using dynamic
exclusive and inclusive methods", Future Generation Computer Systems 2017.

Each attribute has two arrays of slots that divide its domain evenly, with the low and the high ends
of all constraints in ascending order (section 3.3.1). The *exclusive* method walks over the ends
that a value is outside of, and takes their subscriptions out of the partial result. The *inclusive*
method tests each subscription that is left (3.3.2). For each event the matching rate of every
attribute is estimated from how full slots are (formula 3). The Low-Matching-Rate-First-Fit
algorithm (3.5) then puts attributes into a pipeline, those that few subscriptions pass first, and
gives each a method; it is in `flat.pipeline`, and so are the cost model and the optimal order.

Cost: the estimates are O(slots) an attribute and the plan is O(M log M); the exclusive method is
O(constraints that do not hold), the inclusive one O(subscriptions left). Two entries and two ends
for each constraint. Compiled (`graphmatch.published.flat.methods`).

Notes
-----
- Algorithm 1 removes all of slot β (line 20), those above the value too; the text says "the slots
  before β", and so it is here.
- An open end is a closed one at the next double: entries in order of values are in order of types
  too, and the loops over equal values (lines 3 to 9 and 25 to 31) are part of the search.
- A slot is a sorted list, not an RB-tree: inserting moves half a slot's entries.
- Rule 3 lets through a value at one closed end whatever the other end is, which rule 1 does not
  (for ``[5, 5)``), and knows no constraint without ends. Both ends are tested here.
- An absent end is in no array. A constraint with neither end is in that of high ends, as infinite,
  for an event without the attribute.
- Formula 3 counts the value's own slots wholly, and may fall below 0, which would turn the
  accumulated rate around; it is 0 then. It takes O(slots), which section 3.4.2 calls constant.
- Algorithm 4 compares the accumulated rate with δ, the text with "the matching rate". It is δ
  here: those are the costs of the two methods (formulas 4 and 5).
- Observations 1 to 3 hold where one subscription costs either method the same, as formulas 1 and 2
  have it. A processor reads the first attribute's column in order, and slots from all over.
- Formula 9 leaves out the first attribute, which costs 1 (formula 5).
- The partial result is a hash map with a linked list in the paper. The exclusive method only needs
  to take out, the inclusive one only to walk, and it comes last: so it is an array of bytes, and
  from the first inclusive step on a list of numbers, which each step makes shorter. Between them is
  one pass over the bytes; copying S (algorithm 3, line 2) is another.
- Events and subscriptions of the paper have all attributes, and so a column of ends has a place for
  each subscription here. One without a constraint has no entries, and passes the inclusive test. An
  event that lacks an attribute is outside of all its constraints; by the exclusive method both
  arrays are walked over.
- Values beyond the domain are in the first or last slot, so the answer is right for any domain.
- ``dexin-inclusive`` takes attributes in ascending order of rates, so it has the arrays, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isnan, nan
from typing import ClassVar

import numpy as np
from pyoxigraph import NamedNode

from graphmatch.published.base import (
    DOMAIN,
    RANGES,
    Domain,
    Event,
    FlatMatcher,
    Row,
    Tally,
    all_ends,
    cell_of,
)
from graphmatch.published.flat.buckets import Buckets, Numbers, Values
from graphmatch.published.flat.methods import Marks, collect, exclude, include, outside
from graphmatch.published.flat.pipeline import (
    Method,
    Plan,
    Planner,
    low_matching_rate_first_fit,
    only_exclusive,
    only_inclusive,
    optimal,
)
from semantic.ontology.ontology import Ontology

SLOTS = 1500
"""Of each array (section 4, τ)."""


@dataclass(slots=True)
class _Attribute:
    """What there is of one attribute.

    Parameters
    ----------
    lows, highs
        The two arrays of slots.
    ends
        Shape ``(numbers, 2)``: each constraint's ends, NaN where there is none.
    """

    lows: Buckets
    highs: Buckets
    ends: Values


class Dexin(FlatMatcher):
    """The DEXIN index.

    Parameters
    ----------
    domain
        Between what most values of an attribute are.
    slots
        How many each array has.

    Examples
    --------
    >>> from graphmatch.subscription import SubscriptionParser
    >>> dexin = Dexin(Ontology())
    >>> text = "SELECT ?e { ?e <urn:price> ?v FILTER(?v >= 100 && ?v < 400) }"
    >>> dexin.subscribe(SubscriptionParser().parse("s", text))
    >>> price = NamedNode("urn:price")
    >>> [list(dexin.matched(Event({}, {price: value}), Tally())) for value in (399.0, 400.0)]
    [[0], []]
    """

    capabilities: ClassVar = RANGES
    planner: ClassVar[Planner] = staticmethod(low_matching_rate_first_fit)

    def __init__(
        self,
        ontology: Ontology,
        *,
        domain: Domain = DOMAIN,
        slots: int = SLOTS,
    ) -> None:
        super().__init__(ontology)
        self._domain, self._slots = domain, slots
        self._attributes: dict[NamedNode, _Attribute] = {}
        self._there: Marks = np.zeros(64, np.bool_)
        self._count = 0

    @property
    def nbytes(self) -> int:
        """How large the index is."""
        several = self._attributes.values()
        return self._there.nbytes + sum(
            a.lows.nbytes + a.highs.nbytes + a.ends.nbytes for a in several
        )

    def insert(self, number: int, row: Row) -> None:
        """Put each constraint's ends into their slots."""
        if number >= self._there.size:
            self._double()
        self._there[number] = True
        self._count += 1
        for attribute, low, high in all_ends(row):
            index = self._attributes.get(attribute)
            if index is None:
                ends = np.full((self._there.size, 2), nan)
                index = _Attribute(Buckets(self._slots), Buckets(self._slots), ends)
                self._attributes[attribute] = index
            index.ends[number] = low, high
            if low > -inf:
                index.lows.insert(self._slot(low), number, low)
            if high < inf or low == -inf:
                index.highs.insert(self._slot(high), number, high)

    def remove(self, number: int, row: Row) -> None:
        """Take each constraint's ends out."""
        self._there[number] = False
        self._count -= 1
        for attribute in row:
            index = self._attributes[attribute]
            low, high = index.ends[number].tolist()
            index.ends[number] = nan
            if low > -inf:
                index.lows.discard(self._slot(low), number, low)
            if high < inf or low == -inf:
                index.highs.discard(self._slot(high), number, high)
            if not len(index.lows) + len(index.highs):
                del self._attributes[attribute]

    def plan(self, event: Event) -> Plan:
        """Return the pipeline for an event: order, methods, estimated rates and costs."""
        rates = {}
        for attribute, index in self._attributes.items():
            starts = self._starts(self._value(event, attribute))
            gone = outside(index.lows.size, index.highs.size, *starts)
            rates[attribute] = max(0.0, 1 - gone / self._count)
        return type(self).planner(rates)

    def matched(self, event: Event, tally: Tally) -> Iterable[int]:
        """Send all subscriptions through the pipeline, and return those that are left.

        Probes are entries of slots that were walked over, gates the subscriptions that this took
        out, and candidates the ends or constraints that were compared with a value.
        """
        plan = self.plan(event) if self._count else ()
        left = self._there.copy()
        for step in plan:
            if step.method is Method.EXCLUSIVE:
                index, value = self._attributes[step.attribute], self._value(event, step.attribute)
                slots = self._starts(value)
                walked, compared = exclude(
                    index.lows.arrays, index.highs.arrays, slots, value, left
                )
                tally.probes += walked
                tally.candidates += compared
        survivors: Numbers = np.empty(left.size, np.int32)
        count = collect(left, survivors)
        tally.gates += self._count - count
        for step in plan:
            if step.method is Method.INCLUSIVE:
                index, value = self._attributes[step.attribute], self._value(event, step.attribute)
                tally.candidates += count
                count = include(index.ends, value, survivors, count)
        matched: list[int] = survivors[:count].tolist()
        return matched

    def _value(self, event: Event, attribute: NamedNode) -> float:
        """Return a value as the loops take it: NaN where there is none."""
        return event.numbers.get(attribute, nan)

    def _starts(self, value: float) -> tuple[int, int]:
        """Return alpha and beta: from which slot on low ends, up to which high ends are walked."""
        return (-1, self._slots) if isnan(value) else (self._slot(value), self._slot(value))

    def _slot(self, value: float) -> int:
        """Return the slot of a number; those beyond the domain are in the first or last."""
        return cell_of(value, self._domain, self._slots)

    def _double(self) -> None:
        """Make room for twice as many numbers."""
        self._there = np.concatenate([self._there, np.zeros_like(self._there)])
        for index in self._attributes.values():
            index.ends = np.concatenate([index.ends, np.full_like(index.ends, nan)])


class DexinExclusive(Dexin):
    """DEXIN with the exclusive method alone (section 4.4)."""

    planner: ClassVar[Planner] = staticmethod(only_exclusive)


class DexinInclusive(Dexin):
    """DEXIN with the inclusive method alone (section 4.4)."""

    planner: ClassVar[Planner] = staticmethod(only_inclusive)


class DexinOptimal(Dexin):
    """DEXIN with the plan that the cost model says is best (section 4.3)."""

    planner: ClassVar[Planner] = staticmethod(optimal)
