"""REIN: what does not contain the value is marked, and the rest matches.

Qian, Cao, Zhu, Li: "REIN: A fast event matching approach for content-based publish/subscribe
systems", INFOCOM 2014; here as Fan, Liu, Tang (DEXIN, sections 1.1 and 4) describe it.

Each attribute has two lists of buckets that divide its domain evenly: one has the low ends of all
constraints, one the high ends. For an event's value that falls into bucket *b*, low ends in the
buckets after *b* are too high, and high ends in those before it too low: their subscriptions are
marked in a bit array without a comparison; within *b* each end is compared. What is not marked
after the last attribute matches.

Cost: O(constraints that do not hold + constraints in two buckets) an attribute; two entries for
each constraint. Fastest where constraints are wide. Compiled.

Notes
-----
- The number of buckets is left open in DEXIN's comparison; it is 1,000 here, from memory of the
  original.
- Events of the paper have all attributes. An attribute that is missing marks all that ask for it.
- Values beyond the domain fall into the first or last bucket: the order is kept, so the answer is
  right for any domain.
- The bit array is one of bytes; numbers that no conjunction has are left out by a second one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
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
from graphmatch.published.flat.buckets import Arrays, Buckets
from graphmatch.published.jit import kernel
from semantic.ontology.ontology import Ontology

Marks: TypeAlias = NDArray[np.uint8]

BUCKETS = 1000


class Rein(FlatMatcher):
    """The REIN index.

    Parameters
    ----------
    domain
        Between what most values of an attribute are.
    buckets
        How many each list has.

    Examples
    --------
    >>> from graphmatch.subscription import SubscriptionParser
    >>> rein = Rein(Ontology())
    >>> text = "SELECT ?e { ?e <urn:price> ?v FILTER(?v >= 100 && ?v < 400) }"
    >>> rein.subscribe(SubscriptionParser().parse("s", text))
    >>> price = NamedNode("urn:price")
    >>> [list(rein.matched(Event({}, {price: value}), Tally())) for value in (399.0, 400.0)]
    [[0], []]
    """

    capabilities: ClassVar = RANGES

    def __init__(
        self,
        ontology: Ontology,
        *,
        domain: Domain = DOMAIN,
        buckets: int = BUCKETS,
    ) -> None:
        super().__init__(ontology)
        self._domain, self._buckets = domain, buckets
        self._lists: dict[NamedNode, tuple[Buckets, Buckets]] = {}
        self._there: Marks = np.zeros(64, np.uint8)

    @property
    def nbytes(self) -> int:
        """How large the index is."""
        lists = sum(low.nbytes + high.nbytes for low, high in self._lists.values())
        return lists + self._there.nbytes

    def insert(self, number: int, row: Row) -> None:
        """Put each constraint's ends into their buckets."""
        if number >= self._there.size:
            self._there = np.concatenate([self._there, np.zeros_like(self._there)])
        self._there[number] = 1
        for attribute, low, high in all_ends(row):
            lists = self._lists.get(attribute)
            if lists is None:
                lists = self._lists[attribute] = Buckets(self._buckets), Buckets(self._buckets)
            lists[0].append(self._bucket(low), number, low)
            lists[1].append(self._bucket(high), number, high)

    def remove(self, number: int, row: Row) -> None:
        """Take each constraint's ends out."""
        self._there[number] = 0
        for attribute, low, high in all_ends(row):
            lists = self._lists[attribute]
            lists[0].discard(self._bucket(low), number, low)
            lists[1].discard(self._bucket(high), number, high)
            if not len(lists[0]):
                del self._lists[attribute]

    def matched(self, event: Event, tally: Tally) -> Iterable[int]:
        """Mark what does not contain the event's values, and return the rest."""
        left = self._there.copy()
        for attribute, (lows, highs) in self._lists.items():
            value = event.numbers.get(attribute)
            if value is None:
                bucket, value = self._buckets, 0.0  # every high end is too low
            else:
                bucket = self._bucket(value)
            marked, compared = _mark(lows.arrays, highs.arrays, bucket, value, left)
            tally.probes += marked
            tally.candidates += compared
        return map(int, np.flatnonzero(left))

    def _bucket(self, value: float) -> int:
        """Return the bucket of a number; those beyond the domain are in the first or last."""
        return cell_of(value, self._domain, self._buckets)


@kernel
def _mark(lows: Arrays, highs: Arrays, bucket: int, value: float, left: Marks) -> tuple[int, int]:
    """Mark what does not contain a value: how many were marked, and compared."""
    marked, compared = 0, 0
    begin, size, numbers, values = lows
    for b in range(bucket + 1, size.size):
        for place in range(begin[b], begin[b] + size[b]):
            left[numbers[place]] = 0
            marked += 1
    if bucket < size.size:
        for place in range(begin[bucket], begin[bucket] + size[bucket]):
            compared += 1
            if values[place] > value:
                left[numbers[place]] = 0
                marked += 1
    begin, size, numbers, values = highs
    for b in range(min(bucket, size.size)):
        for place in range(begin[b], begin[b] + size[b]):
            left[numbers[place]] = 0
            marked += 1
    if bucket < size.size:
        for place in range(begin[bucket], begin[bucket] + size[bucket]):
            compared += 1
            if values[place] < value:
                left[numbers[place]] = 0
                marked += 1
    return marked, compared
