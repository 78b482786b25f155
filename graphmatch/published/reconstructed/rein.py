"""REIN: what does not contain the value is marked, and the rest matches.

Qian, Cao, Zhu, Li: "REIN: A fast event matching approach for content-based publish/subscribe
systems", INFOCOM 2014; reconstructed from Fan, Liu, Tang (DEXIN, sections 1.1 and 4).

Each attribute has two lists of buckets that divide its domain evenly: one has the low ends of all
constraints, one the high ends. For an event's value that falls into bucket *b*:

1. Low ends in the buckets after *b* are too high, and high ends in those before it too low: their
   subscriptions are marked in a bit array without a comparison.
2. Each end in the two buckets *b* is compared, and marked if it is on the wrong side.

What is not marked after the last attribute matches.

Cost: O(constraints that do not hold + constraints in two buckets) an attribute; two entries for
each constraint. Fastest where constraints are wide.

Notes
-----
- The number of buckets is left open in DEXIN's comparison; it is 1,000 here, from memory of the
  original.
- Events of the paper have all attributes. An attribute that is missing marks all that ask for it.
- Values beyond the domain fall into the first or last bucket: the order is kept, so the answer is
  right for any domain.
- Buckets are read one after the other in an array, which is made anew when an event comes after
  their attribute was subscribed to. The bit array is one of bytes.
"""

from __future__ import annotations

import numpy as np
from pyoxigraph import NamedNode

from graphmatch.published.base import (
    DOMAIN,
    Buckets,
    Domain,
    Event,
    FlatMatcher,
    Row,
    Tally,
    all_ends,
    cell_of,
)
from semantic.ontology.ontology import Ontology


class Rein(FlatMatcher):
    """The REIN index.

    Parameters
    ----------
    domain
        Between what most values of an attribute are.
    buckets
        How many each list has.

    Attributes
    ----------
    lists
        Attribute to the buckets of its low ends, and those of its high ends.

    Examples
    --------
    >>> from graphmatch.subscription import SubscriptionParser
    >>> rein = Rein(Ontology())
    >>> text = "SELECT ?e { ?e <urn:price> ?v FILTER(?v >= 100 && ?v < 400) }"
    >>> rein.subscribe(SubscriptionParser().parse("s", text))
    >>> price = NamedNode("urn:price")
    >>> [rein.matched(Event({}, {price: value}), Tally()) for value in (399.0, 400.0)]
    [[0], []]
    """

    def __init__(self, ontology: Ontology, *, domain: Domain = DOMAIN, buckets: int = 1000) -> None:
        super().__init__(ontology)
        self._domain, self._buckets = domain, buckets
        self.lists: dict[NamedNode, tuple[Buckets, Buckets]] = {}
        self._there = bytearray()
        """1 for each number that a conjunction has."""

    def insert(self, number: int, row: Row) -> None:
        """Put each constraint's ends into their buckets."""
        self._there[number : number + 1] = b"\1"
        for attribute, low, high in all_ends(row):
            if attribute not in self.lists:
                self.lists[attribute] = Buckets(self._buckets), Buckets(self._buckets)
            lows, highs = self.lists[attribute]
            lows.add(self._bucket(low), number, low)
            highs.add(self._bucket(high), number, high)

    def remove(self, number: int, row: Row) -> None:
        """Take each constraint's ends out."""
        self._there[number] = 0
        for attribute, low, high in all_ends(row):
            lows, highs = self.lists[attribute]
            lows.discard(self._bucket(low), number)
            highs.discard(self._bucket(high), number)
            if self.asked[attribute] == 1:
                del self.lists[attribute]

    def matched(self, event: Event, tally: Tally) -> list[int]:
        """Mark what does not contain the event's values, and return the rest."""
        left = np.array(self._there, bool)
        for attribute, (lows, highs) in self.lists.items():
            value = event.numbers.get(attribute)
            if value is None:
                left[lows.arrays()[1]] = False
                continue
            b = self._bucket(value)
            start, numbers, ends = lows.arrays()
            own, after = slice(start[b], start[b + 1]), slice(start[b + 1], None)
            too_high = numbers[own][ends[own] > value]
            left[numbers[after]] = left[too_high] = False
            tally.probes += len(numbers[after]) + len(too_high)
            tally.candidates += len(numbers[own])

            start, numbers, ends = highs.arrays()
            before, own = slice(0, start[b]), slice(start[b], start[b + 1])
            too_low = numbers[own][ends[own] < value]
            left[numbers[before]] = left[too_low] = False
            tally.probes += len(numbers[before]) + len(too_low)
            tally.candidates += len(numbers[own])
        found: list[int] = np.flatnonzero(left).tolist()
        return found

    def _bucket(self, value: float) -> int:
        """Return the bucket of a number; those beyond the domain are in the first or last."""
        return cell_of(value, self._domain, self._buckets)
