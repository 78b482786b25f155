"""CTPS as printed: an index of bit arrays on the trees of concepts.

Zhang, Wang, Huang, Yung: "CTPS" (concept tree-based publish/subscribe system), sections 3 to 5,
algorithms 1 to 9. Its results are wrong if the paper's assumptions do not hold: each event has one
pair of every tree of attributes, a subscription constrains at most one attribute of a tree, an
attribute has values of one sort, and a node has one parent. `graphmatch.published.ctps` is the
corrected algorithm, and documents the cost.

Subscriptions are numbers. Each root of a tree of attributes has bit arrays of subscriptions: m1 for
the attributes of the tree, m2 for the classes of values, m3 for the texts, and m4 for the cells of
a grid of T x T for ranges (GEM's). An event begins with all bits set. Each of its pairs keeps the
subscriptions without a constraint in a tree, and those with a node between the event's node and the
root: ``(~SID | the path's lists) & sid``. Texts are handled likewise. In a grid, cells whose ranges
end before the value's box, or begin after it, are cleared as a whole. In the value's own row and
column the ends of the remaining ranges are compared.

Notes
-----
- ``domain(attribute)`` chooses a value's index, but RDF seldom states it. Here the value itself
  does: a number m4, a text m3, a name m2 and m3 (a constant may be a name). A constraint in another
  index has no effect.
- Algorithm 1 enters the names of values into m2, Algorithm 2 looks an attribute up in it, Algorithm
  6 an attribute's root, as here. The parent of a node is the ontology's first.
- The special item of section 4.2 is used as the list of all. For cells, the text of section 5.3 is
  followed.
- A match without a value for one of its attributes has no solution. It is counted as verified, but
  not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

from bitarray import bitarray
from bitarray.util import ones, zeros
from pyoxigraph import Literal, NamedNode

from graphmatch.published.base import (
    DOMAIN,
    Below,
    ConceptMatcher,
    Constraint,
    Equal,
    Event,
    Interval,
    Present,
    Resource,
    Row,
    Tally,
    Way,
    number_of,
)
from graphmatch.published.ctps import CELLS, resize
from semantic.ontology.ontology import Links, Ontology
from semantic.terms import Term


@dataclass(slots=True)
class HashTable:
    """A tree, the texts of an attribute, or a grid.

    `sid` has the subscriptions of a node, a text, or the cell in row y and column x. `all` has
    those of any of them: SID of a tree, the special item of texts. `list` has the ranges in a grid,
    by number.
    """

    sid: dict[Any, bitarray] = field(default_factory=dict)
    all: bitarray = field(default_factory=lambda: zeros(0, "little"))
    list: dict[int, Constraint] = field(default_factory=dict)


Map: TypeAlias = dict[Term, HashTable]
"""The table of each root of a tree of attributes."""


class CtpsPrinted(ConceptMatcher):
    """CTPS as printed; each grid has T x T `cells`.

    Examples
    --------
    A constraint on an attribute that the event lacks has no effect.

    >>> from graphmatch.subscription import SubscriptionParser
    >>> ctps = CtpsPrinted(Ontology())
    >>> text = "SELECT ?e { ?e <urn:brand> 'HP' ; <urn:target> <urn:laptop> }"
    >>> ctps.subscribe(SubscriptionParser().parse("s", text))
    >>> list(ctps.matched(Event({NamedNode("urn:brand"): Literal("HP")}), Tally()))
    [0]
    """

    capabilities: ClassVar = replace(
        ConceptMatcher.capabilities, presence=False, exact=False, complete=False
    )
    kinds: ClassVar = ConceptMatcher.kinds - {Present}

    def __init__(
        self, ontology: Ontology, *, domain: tuple[float, float] = DOMAIN, cells: int = CELLS
    ) -> None:
        self._cells = cells
        super().__init__(ontology, domain)

    def clear(self) -> None:
        super().clear()
        self.m1, self.m2, self.m3, self.m4 = Map(), Map(), Map(), Map()

    # --- Subscribing (Algorithms 2 to 5) ------------------------------------------------------

    def insert(self, number: int, row: Row) -> None:
        """Enter each constraint (insertSubscribe)."""
        for m, root, name, constraint in self._entries(row):
            table = m.setdefault(root, HashTable())
            for bits in (table.sid.setdefault(name, zeros(0, "little")), table.all):
                resize(bits, number + 1)[number] = 1
            if m is self.m4:
                table.list[number] = constraint

    def _entries(self, row: Row) -> Iterator[tuple[Map, Term, Any, Constraint]]:
        """Yield the map, the root, the name there, and the constraint of each entry."""
        for attribute, constraint in row.items():
            root = self.above(attribute)[-1]
            if self.ontology.properties.children(root):  # not an independent attribute
                yield self.m1, root, attribute, constraint
            if isinstance(constraint, Equal) and (n := number_of(constraint.term)) is not None:
                constraint = Interval(n, n)
            match constraint:
                case Below(concept):
                    yield self.m2, root, concept, constraint
                case Equal(text):
                    yield self.m3, root, text, constraint
                case Interval(lower, upper):
                    yield self.m4, root, (self._box(upper), self._box(lower)), constraint

    def _box(self, value: float) -> int:
        return self.cell(value, self._cells)

    # --- Matching (Algorithms 6 to 9) ---------------------------------------------------------

    def matched(self, event: Event, tally: Tally) -> Iterable[int]:
        """Clear, pair by pair, the subscriptions that do not match (Algorithm 6, match)."""
        sid = ones(len(self.ids), "little")
        for attribute, value in event.terms.items():
            way = self.above(attribute)
            name, number = way[-1], event.numbers.get(attribute)
            _tree_match(self.m1.get(name), way, sid, tally)
            if number is not None:
                self._gem_match(self.m4.get(name), number, sid, tally)
                continue
            if not isinstance(value, Literal):
                _tree_match(self.m2.get(name), self.way(value, event.links), sid, tally)
            _tree_match(self.m3.get(name), (value,), sid, tally)
        tally.candidates += sid.count()
        return sid.search(1)

    def _gem_match(self, gem: HashTable | None, value: float, sid: bitarray, tally: Tally) -> None:
        """Keep the subscriptions whose range has a value (Algorithm 9, gemMatch)."""
        if gem is None:
            return
        r = self._box(value)
        for (y, x), cell in gem.sid.items():
            tally.probes += 1
            resize(cell, len(sid))
            if y < r or x > r:  # parts A and B
                sid &= ~cell
            elif y == r or x == r:  # parts C, D and E
                for index in (sid & cell).search(1):
                    tally.candidates += 1
                    range_ = gem.list[index]
                    assert isinstance(range_, Interval)
                    if not range_.holds(value):
                        sid[index] = 0

    # --- Trees: of each node the first parent -------------------------------------------------

    def above(self, attribute: NamedNode) -> Way:
        """Return an attribute, its parent, and so on to the root of its tree."""
        return _way(attribute, self.ontology.properties.parents)

    def way(self, value: Term, links: Links) -> Way:
        """Return a value, its parent, and so on to the root of its tree."""
        return _way(value, self.ontology.parents)

    def events(self, resource: Resource, links: Links) -> Iterable[Event]:
        """Return the events over the attributes in trees with an attribute in `asked`."""
        roots = {self.above(attribute)[-1] for attribute in self.asked}
        return resource.events({a for a in resource.values if self.above(a)[-1] in roots}, links)


def _tree_match(tree: HashTable | None, way: Way, sid: bitarray, tally: Tally) -> None:
    """Keep subscriptions without a node here, or with one on the path (Algorithms 7 and 8)."""
    if tree is None:
        return
    tally.probes += len(way)
    tmpid = zeros(len(sid), "little")
    for node in way:
        if node in tree.sid:
            tmpid |= resize(tree.sid[node], len(sid))
    sid &= ~resize(tree.all, len(sid)) | tmpid


def _way(term: Term, parents: Callable[[Term], Iterable[Term]]) -> Way:
    way: dict[Term, None] = {}
    while term not in way:
        way[term] = None
        term = next(iter(parents(term)), term)
    return tuple(way)
