"""GEM: constraints are points of a triangle, and an event's value cuts it into six parts.

Fan, Liu, Tang and others: "GEM: an analytic geometrical approach to fast event matching for
multi-dimensional content-based publish/subscribe services", INFOCOM 2016; here as Zhang, Wang,
Huang, Yung (CTPS, sections 4.2 and 5.3) describe it.

Each attribute has T x T cells over (lower, upper): a constraint ``[lower, upper]`` is in cell (y,
x), where y is the box of *upper* and x that of *lower*; since lower <= upper, only the triangle x
<= y is used. An event's value that is in box *r* cuts the triangle into parts (section 5.3):

- A, y < r: *upper* is too low, and B, x > r: *lower* is too high. All subscriptions of these cells
  are marked, one by one.
- C, y = r, x < r: *upper* is compared; D, x = r, y > r: *lower* is compared; E, x = y = r: both.
- F, x < r < y: they hold, and are not looked at.

What is not marked after the last attribute matches.

Cost: O(T² + constraints that do not hold + 2n/T) an attribute for n constraints; one cell for each
constraint. Compiled.

Notes
-----
- The original is not at hand; the venue is from memory. Its abstract names more than CTPS
  describes: a second method, which looks at what is left instead of the parts, a decision between
  the two for each event, and a cache. This is the first method alone, for every attribute.
- CTPS changes A and B to operations on bit arrays, and skips in C to E what is marked already. The
  original (section 5.3) walks all of them; so does this.
- Algorithm 9 has ``cell[x][r]`` in line 19, where x is not defined; part D is ``cell[r][y]``.
  Text and figure have (y, x), the algorithm ``cell[x][y]``; it is one triangle.
- T is open (5 in the example). It is 50 here, which took least time of 20 to 100 at 100,000
  subscriptions: fewer boxes compare more, more boxes have cells of few constraints.
- Only the triangle is stored: cell (y, x) is number y(y + 1)/2 + x, so that A is one range.
- Boxes divide a domain from 0 in the paper (Rm); it may begin anywhere here. Ends and values beyond
  it are in the first or last box: the order is kept, so the answer is right for any domain.
- Events of the paper have all attributes. An attribute that is missing marks all that ask for it.
- A cell is two lists, of lower and of upper ends: 24 bytes a constraint, as in REIN.
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

BOXES = 50
"""T of the paper."""


class Gem(FlatMatcher):
    """The GEM index.

    Parameters
    ----------
    domain
        Between what most values of an attribute are.
    boxes
        How many boxes each axis has.

    Examples
    --------
    >>> from graphmatch.subscription import SubscriptionParser
    >>> gem = Gem(Ontology())
    >>> text = "SELECT ?e { ?e <urn:price> ?v FILTER(?v >= 100 && ?v < 400) }"
    >>> gem.subscribe(SubscriptionParser().parse("s", text))
    >>> price = NamedNode("urn:price")
    >>> [list(gem.matched(Event({}, {price: value}), Tally())) for value in (399.0, 400.0)]
    [[0], []]
    """

    capabilities: ClassVar = RANGES

    def __init__(
        self,
        ontology: Ontology,
        *,
        domain: Domain = DOMAIN,
        boxes: int = BOXES,
    ) -> None:
        super().__init__(ontology)
        self._domain, self._boxes = domain, boxes
        self._triangles: dict[NamedNode, tuple[Buckets, Buckets]] = {}
        self._there: Marks = np.zeros(64, np.uint8)

    @property
    def nbytes(self) -> int:
        """How large the index is."""
        cells = sum(lower.nbytes + upper.nbytes for lower, upper in self._triangles.values())
        return cells + self._there.nbytes

    def insert(self, number: int, row: Row) -> None:
        """Put each constraint into its cell (CTPS, Algorithm 5)."""
        if number >= self._there.size:
            self._there = np.concatenate([self._there, np.zeros_like(self._there)])
        self._there[number] = 1
        for attribute, lower, upper in all_ends(row):
            cells = self._triangles.get(attribute)
            if cells is None:
                count = self._boxes * (self._boxes + 1) // 2
                cells = self._triangles[attribute] = Buckets(count), Buckets(count)
            cell = self.cell(lower, upper)
            cells[0].append(cell, number, lower)
            cells[1].append(cell, number, upper)

    def remove(self, number: int, row: Row) -> None:
        """Take each constraint out of its cell."""
        self._there[number] = 0
        for attribute, lower, upper in all_ends(row):
            cells = self._triangles[attribute]
            cell = self.cell(lower, upper)
            cells[0].discard(cell, number, lower)
            cells[1].discard(cell, number, upper)
            if not len(cells[0]):
                del self._triangles[attribute]

    def matched(self, event: Event, tally: Tally) -> Iterable[int]:
        """Mark what does not contain the event's values, and return the rest (Algorithm 9)."""
        left = self._there.copy()
        for attribute, cells in self._triangles.items():
            value = event.numbers.get(attribute)
            if value is None:
                box, value = self._boxes, 0.0  # all of the triangle is part A
            else:
                box = self.box(value)
            lower, upper = (lists.arrays for lists in cells)
            visited, held, seen = _match(lower, upper, self._boxes, box, value, left)
            tally.probes += visited
            tally.gates += held
            tally.candidates += seen
        return map(int, np.flatnonzero(left))

    def cell(self, lower: float, upper: float) -> int:
        """Return the number of a constraint's cell."""
        y, x = self.box(upper), self.box(lower)
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


@kernel
def _match(
    lower: Arrays, upper: Arrays, boxes: int, r: int, value: float, left: Marks
) -> tuple[int, int, int]:
    """Mark what does not contain a value in box r.

    Returns how many cells were visited, how many of them had something, and how many ends were
    looked at.
    """
    visited, held, seen = 0, 0, 0
    begin, size, numbers, values = lower
    for y in range(boxes):
        row = y * (y + 1) // 2
        # Part A is whole rows below r; part B is of the rows above r what is right of r.
        first = row if y < r else row + r + 1
        for cell in range(first, row + y + 1):
            visited += 1
            held += size[cell] > 0
            seen += size[cell]
            for place in range(begin[cell], begin[cell] + size[cell]):
                left[numbers[place]] = 0
        if y >= r:  # Part D, and for y = r part E
            cell = row + r
            visited += 1
            held += size[cell] > 0
            seen += size[cell]
            for place in range(begin[cell], begin[cell] + size[cell]):
                if values[place] > value:
                    left[numbers[place]] = 0
    begin, size, numbers, values = upper
    if r < boxes:
        row = r * (r + 1) // 2
        for cell in range(row, row + r + 1):  # Part C, and part E
            visited += 1
            held += size[cell] > 0
            seen += size[cell]
            for place in range(begin[cell], begin[cell] + size[cell]):
                if values[place] < value:
                    left[numbers[place]] = 0
    return visited, held, seen
