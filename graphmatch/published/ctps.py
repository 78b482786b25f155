"""CTPS: an index of bit arrays on the trees of concepts.

Zhang, Wang, Huang, Yung: "CTPS" (concept tree-based publish/subscribe system), sections 3 to 5,
corrected: the notes say where.

Subscriptions are numbers. Each attribute has bit arrays of subscriptions: m1 has those that
constrain the attribute, m2 those of each class, m3 those of each text, and m4 those of each cell of
a grid of T x T. A range is in the row y of its high end and the column x of its low end.

An event begins with all bits set. Each constrained attribute keeps the subscriptions without a
constraint on it, and those whose constraint a pair of the event satisfies: ``(~m1 | lists) & sid``.
The lists are those of all nodes from the value to the root, or of its text. In a grid, if the value
is in box r, the cells with x < r < y match (part F). In its own row and column (C, D and E) the
ends of the remaining ranges are compared. The other cells do not match (A and B).

Cost, for n subscriptions and trees of height h: h + 3 operations on n bits per attribute, T² / 2
and about 2n / T comparisons per range (section 5.4). Memory: n bits for each node, text or cell in
a constraint.

Notes
-----
- Corrected: Algorithm 6 visits the event's own pairs only, so a constraint on an attribute that the
  event lacks has no effect. Here each constrained attribute is visited.
- Corrected: m2 to m4 belong to a tree's root, and an attribute is matched apart from its value. So
  each of two pairs of a subscription can match the other's value. Here they belong to the attribute
  of the constraint. A pair of the event is looked up under its attribute and the ancestors.
- Corrected: if several pairs of an event are in one tree, each clears the subscriptions that only
  another pair satisfies. Here the pairs are alternatives.
- Corrected: a node has one parent. Here all paths to the root are followed.
- ``domain(attribute)`` chooses a value's index, but RDF seldom states it. All of them are searched.
- The special item of section 4.2 matches all strings. Here it is for `Present`.
- Algorithm 5 writes cell[y][x], 9 reads cell[x][y], and its line 19 has [x][r] for [r][y]. The text
  of section 5.3 is followed.
- T is 5 in the example, and not printed for the experiments. With operation times measured here, 10
  nearly minimizes the cost of section 5.4 for 10,000 subscriptions.
- The paper leaves the order open. Here ranges come last, when the fewest subscriptions are left.
- `rdf:type` is an attribute whose value is a class. Units (section 4) are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

import numpy as np
from bitarray import bitarray
from bitarray.util import ones, zeros
from pyoxigraph import NamedNode

from graphmatch.published.attribute_matcher import (
    DOMAIN,
    AttributeEvent,
    Below,
    ConceptMatcher,
    Equal,
    Interval,
    Present,
    Row,
    Tally,
    Values,
)
from semantic.ontology.ontology import Ontology
from semantic.terms import Term

CELLS = 10
ANY: Final = None
"""The special item of m3."""

Key = TypeVar("Key")
Lists: TypeAlias = dict[Key, bitarray]
"""The bit array of subscription numbers for each key."""


@dataclass(slots=True)
class CtpsIndex:
    """The index of an attribute.

    `m1` has the subscriptions that constrain it, `m2` those that require each class or its
    descendant, and `m3` those that require each term; `ANY` stands for `Present`. `m4` has the
    ranges that end in row y and begin in column x of the grid (section 4.2). `ends` has the low and
    the high end of each range by subscription number, shape ``(numbers, 2)``.
    """

    m1: bitarray = field(default_factory=lambda: zeros(0, "little"))
    m2: Lists[Term] = field(default_factory=dict)
    m3: Lists[Term | None] = field(default_factory=dict)
    m4: Lists[tuple[int, int]] = field(default_factory=dict)
    ends: Values = field(default_factory=lambda: np.empty((64, 2)))


class Ctps(ConceptMatcher):
    """CTPS (Zhang et al.), corrected: bit arrays of subscriptions on the trees of concepts.

    The grid of an attribute has `cells` rows and columns: T of the paper.

    Examples
    --------
    >>> from graphmatch.subscription import SubscriptionParser
    >>> from semantic.vocabulary import SUBCLASS
    >>> laptop, computer, target = (NamedNode(f"urn:{n}") for n in ("laptop", "computer", "target"))
    >>> ctps = Ctps(Ontology([(laptop, SUBCLASS, computer)]))
    >>> text = "SELECT ?e { ?e <urn:target> ?v FILTER(gm:descendantOf(?v, <urn:computer>)) }"
    >>> ctps.subscribe(SubscriptionParser().parse("s", text))
    >>> [list(ctps.matched(AttributeEvent({target: v}), Tally())) for v in (laptop, target)]
    [[0], []]
    """

    def __init__(
        self, ontology: Ontology, *, domain: tuple[float, float] = DOMAIN, cells: int = CELLS
    ) -> None:
        self._cells = cells
        super().__init__(ontology, domain)

    def clear(self) -> None:
        super().clear()
        self._indexes: dict[Term, CtpsIndex] = {}

    # --- Subscribing (Algorithms 2 to 5) ------------------------------------------------------

    def insert(self, number: int, row: Row) -> None:
        """Put each constraint into the index of its attribute (Algorithm 2)."""
        for attribute, constraint in row.items():
            index = self._indexes.setdefault(attribute, CtpsIndex())
            resize(index.m1, number + 1)[number] = 1
            match constraint:
                case Below(concept):
                    own = index.m2.setdefault(concept, zeros(0, "little"))
                case Equal(term):
                    own = index.m3.setdefault(term, zeros(0, "little"))
                case Present():
                    own = index.m3.setdefault(ANY, zeros(0, "little"))
                case Interval(low, high):
                    place = self._box(high), self._box(low)
                    own = index.m4.setdefault(place, zeros(0, "little"))
            resize(own, number + 1)[number] = 1
            if isinstance(constraint, Interval):
                if number >= len(index.ends):
                    index.ends = np.resize(index.ends, (number * 9 // 8 + 64, 2))
                index.ends[number] = constraint

    def _box(self, value: float) -> int:
        return self.cell(value, self._cells)

    # --- Matching (Algorithms 6 to 9) ---------------------------------------------------------

    def matched(self, event: AttributeEvent, tally: Tally) -> Iterable[int]:
        """Return the matches: drop, for each attribute, those that it excludes (Algorithm 6)."""
        found: dict[Term, list[NamedNode]] = {}
        for attribute in event.terms:
            for above in self.above(attribute):
                found.setdefault(above, []).append(attribute)
        sid = ones(len(self.ids), "little")
        for asked, index in sorted(self._indexes.items(), key=lambda item: bool(item[1].m4)):
            left = ~resize(index.m1, len(sid))
            for attribute in found.get(asked, ()):
                value = event.terms[attribute]
                if index.m2:
                    _mark(left, index.m2, self.way(value, event.links), tally)
                if index.m3:
                    _mark(left, index.m3, (value, ANY), tally)
                if index.m4 and (number := event.numbers.get(attribute)) is not None:
                    left |= self._in_ranges(index, number, sid, tally)
            sid &= left
        tally.candidates += sid.count()
        return sid.search(1)

    def _in_ranges(self, index: CtpsIndex, value: float, sid: bitarray, tally: Tally) -> bitarray:
        """Return the subscriptions whose range contains a value (Algorithm 9, gemMatch).

        Ends are compared only for subscriptions in `sid`; others are left out. Part F is not
        compared, and so may include subscriptions that are not in `sid`.
        """
        r = self._box(value)
        holds, left = zeros(len(sid), "little"), zeros(len(sid), "little")
        for (y, x), cell in index.m4.items():
            tally.probes += 1
            if x < r < y:  # part F
                holds |= resize(cell, len(sid))
            elif x <= r <= y:  # parts C, D and E
                tally.index_hits += 1
                left |= resize(cell, len(sid))
        left &= sid
        buffer = np.frombuffer(memoryview(left), np.uint8)
        bits = np.unpackbits(buffer, count=len(left), bitorder="little")
        numbers = np.flatnonzero(bits.view(np.bool_))
        tally.candidates += numbers.size
        low, high = index.ends[numbers].T
        left[numbers[(low > value) | (high < value)].tolist()] = 0
        return holds | left


def resize(bits: bitarray, length: int) -> bitarray:
    """Append zeros to `bits`, in place, up to `length`; return `bits` (section 5.1)."""
    if len(bits) < length:
        bits.extend(zeros(length - len(bits), "little"))
    return bits


def _mark(left: bitarray, lists: Lists[Key], keys: Iterable[Key], tally: Tally) -> None:
    """Set in `left` the bits of the subscriptions in the lists of `keys` (Algorithms 7 and 8)."""
    for key in keys:
        tally.probes += 1
        if key in lists:
            left |= resize(lists[key], len(left))
