"""H-Tree: one level per attribute, its domain in overlapping cells, a list at the end of each path.

Qian, Cao, Zhu, Li, Wang: "H-Tree: An efficient index structure for event matching in content-based
publish/subscribe systems", IEEE Transactions on Parallel and Distributed Systems 26 (6), 2015;
reconstructed from Fan, Liu, Tang (DEXIN, sections 1.1 and 4): overlapping cells, centre and width,
splitting of wide constraints, a tree from attribute to attribute. The rest is decided here.

Some attributes are indexed, each by a level of a tree. A node divides its attribute's domain into
cells, with one more for subscriptions without the attribute. A cell leads to a node of the next
attribute, on the last level to a list. A cell reaches half its width into both of its neighbours::

    price        |---0---|---1---|---2---|---3---|  | any |
    reach of 1       |---------------|
    a, narrow          |--*--|                               in 1, where its centre * is
    b, wide                |--*--|--*--|                     two parts, in 1 and in 2
                             v
    weight       |---0---|---1---|---2---|---3---|  | any |  a node like this below each cell
                             v
                         list of subscriptions

1. A constraint that is no wider than a cell belongs to the cell of its centre, and its subscription
   goes there. A wider one is cut into parts no wider than a cell, each in the cell of its own
   centre. A subscription is in the lists of all combinations.
2. A value lies in two cells. An event follows both, and the cell of subscriptions without the
   attribute. The entries of the lists that it reaches are tested.

Cost: at most 3^levels lists per event, and a test for each entry in them. A subscription has one
entry if its constraints are narrow, and the product of their numbers of parts if they are wide.
Matching is compiled.

Notes
-----
- Cells overlap by half a cell on both sides: as much as the centre of a constraint of a cell's
  width needs. A value is then in two cells (in one at the domain's ends).
- 8 levels and 8 cells, plus one for subscriptions without the attribute, are those of a later
  public comparison (github.com/xizeroplus/matching-algorithm, folder Htree). The indexed attributes
  are the first in subscriptions, unless they are listed.
- Splitting is bounded, because 8 constraints over half the domain would have 65,536 entries. If a
  subscription had more than 64 (`copies`), its widest constraints are not split but treated as
  absent. Bounds of 4, 16 and 64 took about the same time.
- A list has a number in base cells + 1. Its digits, one per level, are the cells on the path to
  the list. The first event after a change makes the tree from these numbers, in arrays.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain
from math import ceil, floor, nan
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode

from graphmatch.published.attribute_matcher import (
    DOMAIN,
    AttributeEvent,
    AttributeMatcher,
    Numbers,
    Row,
    Tally,
    Values,
    all_ends,
)
from graphmatch.published.jit import kernel
from semantic.ontology.ontology import Ontology

Span: TypeAlias = tuple[int, int]
Tree: TypeAlias = tuple[NDArray[np.int32], Numbers, Numbers, Numbers, Values]
"""The tree as five arrays.

1. The nodes, shape ``(nodes, cells + 1)``: the target of each cell. On the last level it is the
   number of a list, from 1, on others a node. A cell without a target has 0.
2. The start of each list among the entries, and the end of the last.
3. The entries of all lists: numbers of conjunctions.
4. The start of each conjunction's tests, and the end of the last.
5. The tests, shape ``(tests, 3)``: the slot of the attribute among an event's values, low, high.
"""

_HAIR = 1e-9
"""A tolerance, in cells: a constraint wider than a cell by a rounding error is not wider."""


class HTree(AttributeMatcher):
    """H-Tree (Qian et al. 2015): a tree, with an attribute per level, leads to lists to test.

    `indexed` are the attributes of the levels. By default they are the first `levels` attributes in
    subscriptions. A node divides its attribute's domain into `cells` cells. A conjunction is in at
    most `copies` lists. Raise `ValueError` if there may be 2^63 lists or more:
    ``(cells + 1) ** levels``.

    Examples
    --------
    >>> from graphmatch.published.attribute_matcher import Interval
    >>> tree, price = HTree(Ontology(), levels=1), NamedNode("urn:price")
    >>> tree.insert(0, {price: Interval(100.0, 400.0)})
    >>> [tree.matched(AttributeEvent({}, {price: v}), Tally()) for v in (400.0, 401.0)]
    [[0], []]
    """

    def __init__(
        self,
        ontology: Ontology,
        *,
        domain: tuple[float, float] = DOMAIN,
        indexed: Sequence[NamedNode] = (),
        levels: int = 8,
        cells: int = 8,
        copies: int = 64,
    ) -> None:
        self._indexed, self._cells, self._copies = indexed, cells, copies
        self._depth = len(indexed) or levels
        if (cells + 1) ** self._depth >= 1 << 63:
            raise ValueError(f"{cells} cells on {self._depth} levels are too many: take fewer")
        super().__init__(ontology, domain)

    def clear(self) -> None:
        self._levels = {attribute: level for level, attribute in enumerate(self._indexed)}
        self._rows: list[Row] = []
        self.lists: list[array[int]] = []
        """The numbers of the lists that contain each conjunction."""
        self._tree: Tree | None = None

    def _span(self, low: float, high: float) -> Span:
        """Return the first and the last cell with the centre of a part of a constraint.

        The minimum and maximum guard against rounding errors: at least one of the two cells of each
        value in the constraint (`_near`) must be in the result.
        """
        low, high = self._scaled(low), self._scaled(high)
        parts = max(ceil(high - low - _HAIR), 1)
        half = (high - low) / parts / 2
        first = min(floor(low + half), floor(low - 0.5) + 1)
        last = max(floor(high - half), floor(high - 0.5))
        return max(min(first, self._cells - 1), 0), max(min(last, self._cells - 1), 0)

    def _near(self, value: float) -> Span:
        """Return the two neighbouring cells that reach a value.

        Within half a cell of the ends of the domain only one does, and it is returned twice.
        """
        first = floor(self._scaled(value) - 0.5)
        return max(first, 0), min(first + 1, self._cells - 1)

    def _scaled(self, value: float) -> float:
        """Return the distance of a value, clipped to the domain, from the low end, in cells."""
        low, high = self.domain
        return (min(max(value, low), high) - low) / (high - low) * self._cells

    def insert(self, number: int, row: Row) -> None:
        asked = []
        for attribute, low, high in all_ends(row):
            if len(self._levels) < self._depth:
                self._levels.setdefault(attribute, len(self._levels))
            if attribute in self._levels:
                first, last = self._span(low, high)
                asked.append((last - first + 1, first, self._levels[attribute]))
        spans, copies = [range(self._cells, self._cells + 1)] * self._depth, 1  # not constrained
        for parts, first, level in sorted(asked, key=lambda one: one[0]):
            copies *= parts
            if copies > self._copies:
                break
            spans[level] = range(first, first + parts)
        lists = [0]
        for span in spans:
            lists = [way * (self._cells + 1) + cell for way in lists for cell in span]
        self.lists.append(array("q", lists))
        self._rows.append(row)
        self._tree = None

    def matched(self, event: AttributeEvent, tally: Tally) -> list[int]:
        if self._tree is None:
            self._tree = self._made()
        near = [(1, 0)] * self._depth  # an empty range: in no cell
        for attribute, level in self._levels.items():
            if attribute in event.numbers:
                near[level] = self._near(event.numbers[attribute])
        values = np.array([event.numbers.get(attribute, nan) for attribute in self._slots], float)
        count, probes, index_hits, candidates = _match(
            self._tree, values, np.array(near), self._work
        )
        tally.probes += probes
        tally.index_hits += index_hits
        tally.candidates += candidates
        numbers: list[int] = self._work[-1][:count].tolist()
        return numbers

    def _made(self) -> Tree:
        """Return the index as arrays: tree nodes, lists of subscriptions, and their tests.

        The tree has a node for each prefix of the path to a list. Set `_slots`, the place of each
        attribute among an event's values, and `_work`, the buffers of a match.
        """
        width = self._cells + 1
        sizes = np.array([len(lists) for lists in self.lists], np.int64)
        entries = np.fromiter(chain.from_iterable(self.lists), np.int64, sizes.sum())
        order = np.argsort(entries, kind="stable")
        entries = entries[order]
        ways, nodes, first = np.zeros(1, np.int64), list[NDArray[np.int32]](), entries[:0]
        made = 1
        for level in range(self._depth):
            way = entries // width ** (self._depth - 1 - level)
            first = np.flatnonzero(np.diff(way, prepend=-1))
            table = np.zeros((len(ways), width), np.int32)
            made = 1 if level == self._depth - 1 else made
            place = np.searchsorted(ways, way[first] // width), way[first] % width
            table[place] = made + np.arange(len(first))
            made += len(first)
            nodes.append(table)
            ways = way[first]
        rows = self._rows
        self._slots = {a: slot for slot, a in enumerate(dict.fromkeys(chain.from_iterable(rows)))}
        tests = [
            part
            for row in rows
            for attribute, low, high in all_ends(row)
            for part in (self._slots[attribute], low, high)
        ]
        stack = np.empty((2 * self._depth + 3, 2), np.int64)
        self._work = stack, np.zeros(len(rows), np.bool_), np.empty(len(rows), np.int64)
        return (
            np.concatenate(nodes),
            np.append(first, len(entries)),
            np.repeat(np.arange(len(rows)), sizes)[order],
            np.cumsum([0, *map(len, rows)]),
            np.array(tests, np.float64).reshape(-1, 3),
        )


@kernel
def _match(
    tree: Tree, values: Values, near: Numbers, work: tuple[Numbers, NDArray[np.bool_], Numbers]
) -> tuple[int, int, int, int]:
    """Write the numbers of the matching conjunctions to the last array of `work`.

    `values` has the event's values by slot, and `near` the first and last cell of its value on each
    level. Return the counts of matches, cells read, cells with a target, and entries in the lists.
    """
    nodes, begin, numbers, where, tests = tree
    stack, marks, found = work
    count, probes, index_hits, candidates = 0, 0, 0, 0
    stack[0, 0], stack[0, 1] = 0, 0
    top = 1
    depth, anywhere = near.shape[0], nodes.shape[1] - 1
    while top:
        top -= 1
        node, level = stack[top, 0], stack[top, 1]
        for turn in range(near[level, 0], near[level, 1] + 2):
            child = nodes[node, anywhere if turn > near[level, 1] else turn]
            probes += 1
            if child == 0:
                continue
            index_hits += 1
            if level < depth - 1:
                stack[top, 0], stack[top, 1] = child, level + 1
                top += 1
                continue
            candidates += begin[child] - begin[child - 1]
            for entry in range(begin[child - 1], begin[child]):
                number = numbers[entry]
                holds = not marks[number]
                for test in range(where[number], where[number + 1]):
                    value = values[int(tests[test, 0])]
                    if not (holds and tests[test, 1] <= value <= tests[test, 2]):
                        holds = False
                        break
                if holds:
                    marks[number] = True
                    found[count] = number
                    count += 1
    for place in range(count):
        marks[found[place]] = False
    return count, probes, index_hits, candidates
