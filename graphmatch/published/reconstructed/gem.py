"""GEM: constraints are points of a triangle, and an event's value cuts it into six parts.

Fan, Liu, Tang and others: "GEM: an analytic geometrical approach to fast event matching for
multi-dimensional content-based publish/subscribe services", INFOCOM 2016; reconstructed from Zhang,
Wang, Huang, Yung (CTPS, sections 4.2 and 5.3, Algorithms 5 and 9).

Each attribute has T x T cells over (lower, upper): a constraint ``[lower, upper]`` is in cell (y,
x), where y is the box of *upper* and x that of *lower*; since lower <= upper, only the triangle x
<= y is used. An event's value that is in box *r* cuts the triangle into parts (section 5.3)::

    upper                          A  upper is too low           marked, one by one
      | F | F | D | B | B |        B  lower is too high          marked, one by one
      | F | F | D | B |            C  upper is near the value    upper is compared
    r | C | C | E |                D  lower is near the value    lower is compared
      | A | A |                    E  both are                   both are compared
      | A |                        F  contains the value         not looked at
      +--------r----------> lower

What is not marked after the last attribute matches.

Cost: O(T² + constraints that do not hold + 2n/T) an attribute for n constraints; one cell for each
constraint.

Notes
-----
- The venue is from memory. The original's abstract names more than CTPS describes: a second method,
  which looks at what is left instead of the parts, a decision between the two for each event, and a
  cache. This is the first method alone, for every attribute.
- CTPS changes A and B to operations on bit arrays, and skips in C to E what is marked already. The
  original (section 5.3) walks all of them; so does this.
- Algorithm 9 has ``cell[x][r]`` in line 19, where x is not defined; part D is ``cell[r][y]``.
  Text and figure have (y, x), the algorithm ``cell[x][y]``; it is one triangle.
- T is open (5 in the example). It is 50 here, which took least time of 20 to 100 at 100,000
  subscriptions: fewer boxes compare more, more boxes have cells of few constraints.
- Only the triangle is stored: cell (y, x) is number y(y + 1)/2 + x. So part A is one run of cells,
  part C with E one, and part B one in each row above r.
- Boxes divide a domain from 0 in the paper (Rm); it may begin anywhere here. Ends and values beyond
  it are in the first or last box: the order is kept, so the answer is right for any domain.
- Events of the paper have all attributes. An attribute that is missing marks all that ask for it.
- Cells are read one after the other in an array, which is made anew when an event comes after their
  attribute was subscribed to.
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
    Numbers,
    Row,
    Tally,
    all_ends,
    cell_of,
)
from semantic.ontology.ontology import Ontology


class Gem(FlatMatcher):
    """The GEM index.

    Parameters
    ----------
    domain
        Between what most values of an attribute are.
    boxes
        How many boxes each axis has: T of the paper.

    Attributes
    ----------
    triangles
        Attribute to the cells of its triangle.

    Examples
    --------
    >>> from graphmatch.subscription import SubscriptionParser
    >>> gem = Gem(Ontology())
    >>> text = "SELECT ?e { ?e <urn:price> ?v FILTER(?v >= 100 && ?v < 400) }"
    >>> gem.subscribe(SubscriptionParser().parse("s", text))
    >>> price = NamedNode("urn:price")
    >>> [gem.matched(Event({}, {price: value}), Tally()) for value in (399.0, 400.0)]
    [[0], []]
    """

    def __init__(self, ontology: Ontology, *, domain: Domain = DOMAIN, boxes: int = 50) -> None:
        super().__init__(ontology)
        self._domain, self._boxes = domain, boxes
        self.triangles: dict[NamedNode, Buckets] = {}
        self._there = bytearray()
        """1 for each number that a conjunction has."""

    def insert(self, number: int, row: Row) -> None:
        """Put each constraint into its cell (CTPS, Algorithm 5)."""
        self._there[number : number + 1] = b"\1"
        for attribute, lower, upper in all_ends(row):
            if attribute not in self.triangles:
                self.triangles[attribute] = Buckets(self.cell(0, self._boxes))
            cell = self.cell(self.box(lower), self.box(upper))
            self.triangles[attribute].add(cell, number, (lower, upper))

    def remove(self, number: int, row: Row) -> None:
        """Take each constraint out of its cell."""
        self._there[number] = 0
        for attribute, lower, upper in all_ends(row):
            cell = self.cell(self.box(lower), self.box(upper))
            self.triangles[attribute].discard(cell, number)
            if self.asked[attribute] == 1:
                del self.triangles[attribute]

    def matched(self, event: Event, tally: Tally) -> list[int]:
        """Mark what does not contain the event's values, and return the rest (Algorithm 9)."""
        left = np.array(self._there, bool)
        for attribute, cells in self.triangles.items():
            value = event.numbers.get(attribute)
            if value is None:
                left[cells.arrays()[1]] = False
            else:
                left[self._outside(cells, value, tally)] = False
        found: list[int] = np.flatnonzero(left).tolist()
        return found

    def _outside(self, cells: Buckets, value: float, tally: Tally) -> Numbers:
        """Return who has a constraint, of one attribute, that does not contain a value."""
        r = self.box(value)
        start, numbers, ends = cells.arrays()
        marked = numbers[: start[self.cell(0, r)]]  # part A
        outside = [marked]
        row = slice(start[self.cell(0, r)], start[self.cell(r, r) + 1])  # parts C and E
        outside.append(numbers[row][ends[row, 1] < value])
        tally.candidates += len(marked) + len(numbers[row])
        for y in range(r, self._boxes):
            cell = self.cell(r, y)
            own = slice(start[cell], start[cell + 1])  # part D, and for y = r part E
            outside.append(numbers[own][ends[own, 0] > value])
            marked = numbers[start[cell + 1] : start[self.cell(0, y + 1)]]  # part B
            outside.append(marked)
            tally.candidates += len(numbers[own]) + len(marked)
        tally.probes += self.cell(0, self._boxes) - r * (self._boxes - r - 1) + 1  # without F
        return np.concatenate(outside)

    def cell(self, x: int, y: int) -> int:
        """Return the number of cell (y, x); that of (T, 0) is how many there are."""
        return y * (y + 1) // 2 + x

    def box(self, value: float) -> int:
        """Return the box of a number (section 4.2).

        Examples
        --------
        >>> gem = Gem(Ontology(), domain=(0, 100), boxes=5)
        >>> gem.box(20), gem.box(0), gem.box(45), gem.box(100)
        (1, 0, 2, 4)
        """
        return cell_of(value, self._domain, self._boxes)
