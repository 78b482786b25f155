"""REIN: constraints without the value are marked, and the rest match.

Qian, Cao, Zhu, Li: "REIN: A fast event matching approach for content-based publish/subscribe
systems", INFOCOM 2014; reconstructed from Fan, Liu, Tang (DEXIN, sections 1.1 and 4).

Each attribute has two lists of buckets that divide its domain evenly: one has the low ends of all
constraints, one the high ends. For an event's value in bucket *b*:

1. Low ends in the buckets after *b* are too high, and high ends in those before it too low. Their
   subscriptions are marked in a bit array without a comparison.
2. Each end in the two buckets *b* is compared, and marked if it is on the wrong side.

The subscriptions that are not marked after the last attribute match.

Cost: O(constraints that do not hold + constraints in two buckets) per attribute; two entries for
each constraint. It is fastest if constraints are wide.

Notes
-----
- DEXIN's comparison does not give the number of buckets. It is 1,000 here, from memory of the
  original.
- Events of the paper have all attributes. A missing attribute marks all its constraints.
- The bit array is one of bytes.
"""

from __future__ import annotations

import numpy as np
from pyoxigraph import NamedNode

from graphmatch.published.attribute_matcher import (
    DOMAIN,
    AttributeEvent,
    AttributeMatcher,
    Buckets,
    Row,
    Tally,
    all_ends,
)
from semantic.ontology.ontology import Ontology


class Rein(AttributeMatcher):
    """REIN (Qian et al. 2014): mark each subscription with an interval that excludes the value.

    The unmarked ones match. Each attribute has two lists, of the low and the high ends of
    intervals, with `buckets` buckets each.

    Examples
    --------
    >>> from graphmatch.published.attribute_matcher import Conjunction, Interval
    >>> rein, price = Rein(Ontology()), NamedNode("urn:price")
    >>> rein.add(Conjunction("s", price, ({price: Interval(100.0, 400.0)},)))
    >>> [rein.matched(AttributeEvent({}, {price: v}), Tally()) for v in (400.0, 401.0)]
    [[0], []]
    """

    def __init__(
        self, ontology: Ontology, *, domain: tuple[float, float] = DOMAIN, buckets: int = 1000
    ) -> None:
        self._buckets = buckets
        super().__init__(ontology, domain)

    def clear(self) -> None:
        self.lists: dict[NamedNode, tuple[Buckets, Buckets]] = {}
        """The buckets of the low ends, and of the high ends, of each attribute."""

    def insert(self, number: int, row: Row) -> None:
        for attribute, low, high in all_ends(row):
            if attribute not in self.lists:
                self.lists[attribute] = Buckets(self._buckets), Buckets(self._buckets)
            lows, highs = self.lists[attribute]
            lows.add(self.cell(low, self._buckets), number, low)
            highs.add(self.cell(high, self._buckets), number, high)

    def matched(self, event: AttributeEvent, tally: Tally) -> list[int]:
        left = np.ones(len(self.ids), bool)
        for attribute, (lows, highs) in self.lists.items():
            value = event.numbers.get(attribute)
            if value is None:
                left[lows.arrays()[1]] = False
                continue
            b = self.cell(value, self._buckets)
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
