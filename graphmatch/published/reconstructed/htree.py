"""H-Tree: an attribute a level, its domain in cells that overlap, a list at the end of each way.

Qian, Cao, Zhu, Li, Wang: "H-Tree: An efficient index structure for event matching in content-based
publish/subscribe systems", IEEE Transactions on Parallel and Distributed Systems 26 (6), 2015; here
as Fan, Liu, Tang (DEXIN, sections 1.1 and 4) describe it.

Some attributes are indexed, each by a level of a tree. A node divides its attribute's domain into
cells, and a cell leads to a node of the next attribute, on the last level to a list. A cell reaches
half its width into both of its neighbours, so a constraint that is no wider than a cell lies whole
in the one that has its centre: that is where its subscription goes. A wider one is cut into
parts that are no wider, each in the cell of its own centre; a subscription is in the lists of all
combinations. A value lies in two cells, and an event goes both ways, and the way of those who
ask for nothing there; what is in the lists it comes to is tested.

Cost: at most 3^levels lists an event, and a test for each entry in them. A subscription has one
entry when its constraints are narrow, and the product of their numbers of parts when they are wide:
storage and tests grow exponentially with the levels. Fastest where constraints are narrow. Building
and matching are compiled; the cells of a constraint are found in plain Python. Most of a test
is fetching constraints from memory, which are as scattered as the entries of a list.

Notes
-----
The paper was not at hand. From DEXIN are: cells that overlap, centre and width, splitting of wide
constraints, a tree from attribute to attribute. The rest is decided here:

- How far cells overlap: as much as the centre of a constraint of a cell's width needs, half
  a cell on both sides. A value is then in two cells (in one at the domain's ends).
- 8 levels and 8 cells are those of a later public comparison (github.com/xizeroplus/
  matching-algorithm, folder Htree), where a cell beside the others has those that do not ask for
  the attribute, and the first attributes are the indexed ones. So it is here: the first that
  subscriptions ask for, unless they are listed. A level is free again when nobody asks any more.
- Splitting is bounded, for 8 constraints over half the domain would have 65,536 entries: where a
  subscription had more than 64 (`copies`), its widest constraints are not split but go where those
  are who do not ask. Those prune least. With 100,000 subscriptions of widths 0.2 to 0.8, bounds of
  4, 16 and 64 took about the same time, and 319, 413 and 992 bytes a subscription.
- A subscription may be in several of an event's lists. One that has matched is marked and not
  tested again; one that has not is tested in each.
- Values beyond the domain count as its ends, in constraints and events alike.
- An event without an indexed attribute goes the way of those who do not ask for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, floor
from typing import ClassVar, TypeAlias

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
)
from graphmatch.published.flat import cell_tree
from graphmatch.published.flat.buckets import Numbers
from graphmatch.published.flat.cell_tree import Spans
from graphmatch.published.flat.pool import Chains, Pool
from graphmatch.published.flat.rows import Marks, Rows
from semantic.ontology.ontology import Ontology

Span: TypeAlias = tuple[int, int]

LEVELS = 8
CELLS = 8
COPIES = 64
_HAIR = 1e-9
"""A constraint that is wider than a cell only as far as doubles go is not."""


class HTree(FlatMatcher):
    """The H-Tree index.

    Parameters
    ----------
    domain
        Between what most values of an attribute are.
    indexed
        The attributes of the levels; without them, the first that subscriptions ask for.
    levels
        How many attributes are indexed, where they are not listed.
    cells
        Into how many a node divides its attribute's domain.
    copies
        In how many lists a subscription is at most.

    Examples
    --------
    >>> from graphmatch.subscription import SubscriptionParser
    >>> tree = HTree(Ontology(), domain=(0, 1000), levels=1, cells=10)
    >>> text = "SELECT ?e { ?e <urn:price> ?v FILTER(?v >= 100 && ?v < 400) }"
    >>> tree.subscribe(SubscriptionParser().parse("s", text))
    >>> price = NamedNode("urn:price")
    >>> [list(tree.matched(Event({}, {price: value}), Tally())) for value in (399.0, 400.0)]
    [[0], []]
    """

    capabilities: ClassVar = RANGES

    def __init__(
        self,
        ontology: Ontology,
        *,
        domain: Domain = DOMAIN,
        indexed: Sequence[NamedNode] = (),
        levels: int = LEVELS,
        cells: int = CELLS,
        copies: int = COPIES,
    ) -> None:
        super().__init__(ontology)
        self._domain, self._cells, self._copies = domain, cells, copies
        self._listed = bool(indexed)
        self._levels = {attribute: level for level, attribute in enumerate(indexed)}
        self._depth = len(indexed) or levels
        self._free_levels = [] if indexed else list(reversed(range(levels)))
        self._rows = Rows[NamedNode]()
        self._tree, self._lists = Pool(2 + cells), Chains()
        self._tree.take()
        self._marks: Marks = np.zeros(0, np.uint8)
        self._found: Numbers = np.empty(0, np.int32)
        self._stack: Spans = np.empty((2 * self._depth + 3, 2), np.int64)

    @property
    def nbytes(self) -> int:
        """How large the arrays are; there is nothing else."""
        arrays = (self._rows, self._tree, self._lists, self._marks, self._found, self._stack)
        return sum(array.nbytes for array in arrays)

    def insert(self, number: int, row: Row) -> None:
        """Put a subscription into the lists of its cells."""
        ends = {attribute: (low, high) for attribute, low, high in all_ends(row)}
        for attribute in row:
            if attribute not in self._rows.slots and self._free_levels:
                self._levels[attribute] = self._free_levels.pop()
        self._rows.insert(number, ends)
        if self._marks.size < self._rows.room:
            self._marks = np.zeros(self._rows.room, np.uint8)
            self._found = np.empty(self._rows.room, np.int32)
        spans, copies = self._spans(row)
        self._tree.reserve(copies * len(spans))
        self._lists.reserve(copies)
        cell_tree.insert(*self._index(), spans, copies, number)

    def remove(self, number: int, row: Row) -> None:
        """Take it out of them; nodes without entries go."""
        spans, copies = self._spans(row)
        cell_tree.remove(*self._index(), spans, copies, number, np.empty(len(spans), np.int64))
        self._rows.remove(number, row)
        for attribute in row:
            if attribute not in self._rows.slots and not self._listed:
                level = self._levels.pop(attribute, None)
                self._free_levels += [] if level is None else [level]

    def matched(self, event: Event, tally: Tally) -> Iterable[int]:
        """Go the ways of an event's values, and test what is in the lists at their ends."""
        near: Spans = np.full((self._depth, 2), (1, 0), np.int64)
        for attribute, level in self._levels.items():
            value = event.numbers.get(attribute)
            if value is not None:
                near[level] = self._near(value)
        values = self._rows.values(event.numbers.items())
        index = self._tree.rows, self._lists.rows, self._rows.table
        work = self._stack, self._marks, self._found
        found, probes, gates, candidates = cell_tree.find(index, values, near, work)
        tally.probes += probes
        tally.gates += gates
        tally.candidates += candidates
        numbers: list[int] = self._found[:found].tolist()
        return numbers

    def _index(self) -> tuple[cell_tree.Taken, cell_tree.Taken]:
        return (self._tree.rows, self._tree.free), (self._lists.rows, self._lists.free)

    def _spans(self, row: Row) -> tuple[Spans, int]:
        """Return the first and last cell of each level, and how many combinations there are."""
        spans: Spans = np.full((self._depth, 2), self._cells, np.int64)  # those who do not ask
        asked = [
            (self._span(low, high), self._levels[attribute])
            for attribute, low, high in all_ends(row)
            if attribute in self._levels
        ]
        copies = 1
        for (first, last), level in sorted(asked, key=lambda one: one[0][1] - one[0][0]):
            parts = last - first + 1
            if copies * parts > self._copies:
                break
            copies *= parts
            spans[level] = first, last
        return spans, copies

    def _span(self, low: float, high: float) -> Span:
        """Return the first and last cell that has the centre of a part of a constraint.

        However its ends are rounded, a value in it has one of them among its own two.
        """
        low, high = self._scaled(low), self._scaled(high)
        parts = max(ceil(high - low - _HAIR), 1)
        half = (high - low) / parts / 2
        first = min(floor(low + half), _reach(low) + 1)
        last = max(floor(high - half), _reach(high))
        return max(min(first, self._cells - 1), 0), max(min(last, self._cells - 1), 0)

    def _near(self, value: float) -> Span:
        """Return the cells that a value is in."""
        first = _reach(self._scaled(value))
        return max(first, 0), min(first + 1, self._cells - 1)

    def _scaled(self, value: float) -> float:
        """Return how many cells of the domain are below a value."""
        low, high = self._domain
        return (min(max(value, low), high) - low) / (high - low) * self._cells


def _reach(place: float) -> int:
    """Return the first cell that reaches a place, which may be before the domain."""
    return floor(place - 0.5)
