"""GEM: constraints are points of a triangle, and an event's value cuts it into six parts.

Fan, Liu, Tang and others: "GEM: an analytic geometrical approach to fast event matching for
multi-dimensional content-based publish/subscribe services", INFOCOM 2016; reconstructed from Zhang,
Wang, Huang, Yung (CTPS, sections 4.2 and 5.3, Algorithms 5 and 9).

Each attribute has T x T cells over (lower, upper). A constraint ``[lower, upper]`` is in cell (y,
x), where y is the box of *upper* and x that of *lower*. Since lower <= upper, only the triangle x
<= y is used. An event's value in box *r* cuts the triangle into parts (section 5.3)::

    upper                          A  upper is too low           marked, one by one
      | F | F | D | B | B |        B  lower is too high          marked, one by one
      | F | F | D | B |            C  upper is near the value    upper is compared
    r | C | C | E |                D  lower is near the value    lower is compared
      | A | A |                    E  both are                   both are compared
      | A |                        F  contains the value         not looked at
      +--------r----------> lower

The constraints that are not marked after the last attribute match.

Cost: O(T² + constraints that do not hold + 2n/T) per attribute for n constraints; one cell for each
constraint.

Notes
-----
- The venue is from memory. The original's abstract names more than CTPS describes: a second method,
  which reads the remaining constraints instead of the parts, a decision between the two for each
  event, and a cache. This is the first method alone, for every attribute.
- Algorithm 9 has ``cell[x][r]`` in line 19, where x is not defined; part D is ``cell[r][y]``. Text
  and figure have (y, x), the algorithm ``cell[x][y]``; it is one triangle.
- CTPS leaves T open (5 in the example). 50 was the fastest of 20 to 100 at 100,000
  subscriptions.
- Only the triangle is stored: cell (y, x) is number y(y + 1)/2 + x. So part A is one run of cells,
  part C with E one, and part B one in each row above r.
- Boxes divide a domain from 0 in the paper (Rm). Here it may begin anywhere.
- Events of the paper have all attributes. A missing attribute marks all its constraints.
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


class Gem(AttributeMatcher):
    """GEM (Fan et al. 2016): each attribute has a triangle of cells with its constraints.

    The triangle is `boxes` wide and high: T of the paper.

    Examples
    --------
    >>> from graphmatch.published.attribute_matcher import Conjunction, Interval
    >>> gem, price = Gem(Ontology()), NamedNode("urn:price")
    >>> gem.add(Conjunction("s", price, ({price: Interval(100.0, 400.0)},)))
    >>> [gem.matched(AttributeEvent({}, {price: v}), Tally()) for v in (400.0, 401.0)]
    [[0], []]
    """

    def __init__(
        self, ontology: Ontology, *, domain: tuple[float, float] = DOMAIN, boxes: int = 50
    ) -> None:
        self._boxes = boxes
        super().__init__(ontology, domain)

    def clear(self) -> None:
        self.triangles: dict[NamedNode, Buckets] = {}

    def insert(self, number: int, row: Row) -> None:
        """Put each constraint of a conjunction into its cell (CTPS, Algorithm 5)."""
        for attribute, lower, upper in all_ends(row):
            if attribute not in self.triangles:
                self.triangles[attribute] = Buckets(self._number(0, self._boxes))
            cell = self._number(self.box(lower), self.box(upper))
            self.triangles[attribute].add(cell, number, (lower, upper))

    def matched(self, event: AttributeEvent, tally: Tally) -> list[int]:
        """Mark the conjunctions with a false constraint; return the others (Algorithm 9)."""
        left = np.ones(len(self.ids), bool)
        for attribute, cells in self.triangles.items():
            start, numbers, ends = cells.arrays()
            value = event.numbers.get(attribute)
            if value is None:
                left[numbers] = False
                continue
            r = self.box(value)
            marked = numbers[: start[self._number(0, r)]]  # part A
            left[marked] = False
            row = slice(start[self._number(0, r)], start[self._number(r, r) + 1])  # parts C and E
            left[numbers[row][ends[row, 1] < value]] = False
            tally.candidates += len(marked) + len(numbers[row])
            for y in range(r, self._boxes):
                cell = self._number(r, y)
                own = slice(start[cell], start[cell + 1])  # part D, and for y = r part E
                left[numbers[own][ends[own, 0] > value]] = False
                marked = numbers[start[cell + 1] : start[self._number(0, y + 1)]]  # part B
                left[marked] = False
                tally.candidates += len(numbers[own]) + len(marked)
            without_f = self._number(0, self._boxes) - r * (self._boxes - r - 1)
            tally.probes += without_f + 1
        found: list[int] = np.flatnonzero(left).tolist()
        return found

    def _number(self, x: int, y: int) -> int:
        """Return the number of cell (y, x); that of (T, 0) is the number of cells."""
        return y * (y + 1) // 2 + x

    def box(self, value: float) -> int:
        """Return the box that contains a number, from 0 (section 4.2)."""
        return self.cell(value, self._boxes)
