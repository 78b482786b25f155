"""CTPS: an index on the trees of concepts, of bit arrays.

Zhang, Wang, Huang, Yung: "CTPS" (concept tree-based publish/subscribe system), sections 3 to 5.

Subscriptions are numbers, and whatever is asked for has a bit array of those who ask: m1 the
attributes of a tree, m2 for each attribute the classes of values, m3 its texts, m4 a grid of
T x T cells for its ranges (low end by high end; GEM's). An event begins with all bits set. Each of
its pairs leaves those who ask for nothing in a tree, or for a node on the way from the event's
node to the root: ``(~SID | the way's lists) & sid``; texts likewise. In a grid, cells whose ranges
end before the value's box, or begin after it, are cleared whole; in the value's own row and column
the ends are compared, of those only that are left.

Cost: for n subscriptions and trees of height h, h + 3 operations on n bits an attribute; T² / 2 and
about 2n / T comparisons a range (section 5.4). n bits for each node, text or cell that somebody
asks for. Bit arrays and the comparison of ends are compiled.

Notes
-----
`CtpsPrinted` is the printed algorithm. `Ctps` is it mended, in four places:

- Algorithm 6 visits the event's own pairs only, so whoever asks for an attribute that the event
  lacks stays. Mended: each attribute that is asked for is visited.
- m2 to m4 are of a tree's root, and an attribute is matched apart from its value; so two pairs
  of a subscription are met by each other's values. Mended: they are of the attribute asked for,
  and a pair of the event is looked up in those of its own attribute and all above it.
- Of an event's several pairs in one tree each clears those whom only the others satisfy. Mended:
  they are alternatives.
- A node has one parent. Mended: all ways up are walked. The printed one takes the first.

And in both:

- ``domain(attribute)`` chooses a value's index; RDF seldom states it. Printed, the value itself
  does: a number m4, a text m3, a name m2 and m3 (a constant may be a name); whose constraint is in
  another stays. Mended: all of them are looked into.
- Algorithm 1 enters the names of values into m2, Algorithm 2 asks it for an attribute, Algorithm 6
  for an attribute's root. Each attribute has an index of its own here: a tree that two attributes
  share would clear those who ask for the other. Nodes that nobody asks for have no list.
- The special item of section 4.2 is said to match all strings, and used as the list of all. Here
  it is for `Present`, which the printed one refuses.
- Algorithm 5 writes cell[y][x], 9 reads cell[x][y], and its line 19 [x][r] for [r][y]: section
  5.3's text holds. Ends beyond the domain are in the first or last box.
- T is 5 in the example, and not printed for the experiments. 10 is near the least of section 5.4's
  cost for 10,000 subscriptions, with the times of one operation measured here.
- Order is left open: mended, ranges come last, when fewest are left to compare.
- `rdf:type` is an attribute whose value is a class; of the ontology's rules no others are known
  than subattributes and subclasses. Units (section 4) are left to those who write events.
- A match of the printed one that has no value for one of its attributes has no solution: it is
  counted as verified, and not in the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import ClassVar, Final, TypeAlias

from bitarray import bitarray
from pyoxigraph import Literal, NamedNode

from graphmatch.matcher import Capabilities
from graphmatch.published.base import (
    DOMAIN,
    Below,
    Constraint,
    Equal,
    Event,
    Interval,
    Present,
    Resource,
    Row,
    Tally,
    number_of,
)
from graphmatch.published.flat.bit_grid import Grid
from graphmatch.published.flat.bits import BitLists, no_bits
from graphmatch.published.flat.concepts import ConceptMatcher, Way
from semantic.ontology.ontology import Links, Ontology
from semantic.terms import Term

Lists: TypeAlias = BitLists[Term | None]

CELLS = 10
ANY: Final = None
"""The special item of m3."""


class Ctps(ConceptMatcher):
    """CTPS, mended.

    Parameters
    ----------
    ontology
        The trees of attributes and classes, and synonyms.
    domain
        Between what most numbers are.
    cells
        T: each grid has T x T cells.

    Examples
    --------
    >>> from graphmatch.subscription import SubscriptionParser
    >>> from semantic.vocabulary import SUBCLASS
    >>> laptop, computer, target = (NamedNode(f"urn:{n}") for n in ("laptop", "computer", "target"))
    >>> ctps = Ctps(Ontology([(laptop, SUBCLASS, computer)]))
    >>> text = "SELECT ?e { ?e <urn:target> ?v FILTER(gm:descendantOf(?v, <urn:computer>)) }"
    >>> ctps.subscribe(SubscriptionParser().parse("s", text))
    >>> [list(ctps.matched(Event({target: value}), Tally())) for value in (laptop, target)]
    [[0], []]
    """

    capabilities: ClassVar = Capabilities(
        property_variables=False, text=False, joins=False, entailment=True
    )

    def __init__(
        self,
        ontology: Ontology,
        *,
        domain: tuple[float, float] = DOMAIN,
        cells: int = CELLS,
    ) -> None:
        super().__init__(ontology)
        self._domain, self._cells = domain, cells
        self._there = no_bits(64)
        self._m1: dict[Term, Lists] = {}
        self._m2: dict[Term, Lists] = {}
        self._m3: dict[Term, Lists] = {}
        self._m4: dict[Term, Grid] = {}

    @property
    def nbytes(self) -> int:
        """How large the index is; tables are estimated."""
        return self._there.nbytes + sum(index.nbytes for index in self._indexes())

    def _indexes(self) -> Iterator[Lists | Grid]:
        for lists in (self._m1, self._m2, self._m3):
            yield from lists.values()
        yield from self._m4.values()

    # --- Subscribing (Algorithms 2 to 5) ----------------------------------------------------------

    def insert(self, number: int, row: Row) -> None:
        """Put each constraint into the indexes of its attribute (Algorithm 2)."""
        if number >= len(self._there):
            length = len(self._there) * 9 // 8 // 64 * 64 + 64
            self._there.extend(no_bits(length - len(self._there)))
            for index in self._indexes():
                index.resize(length)
        self._there[number] = 1
        length = len(self._there)
        for name, attribute, constraint in self._pairs(row):
            for lists, key in self._keys(attribute, constraint):
                if name not in lists:
                    lists[name] = BitLists(length)
                lists[name].add(key, number)
            if isinstance(constraint, Interval):
                if name not in self._m4:
                    self._m4[name] = Grid(self._domain, self._cells, length)
                self._m4[name].add(number, constraint)

    def remove(self, number: int, row: Row) -> None:
        """Take each constraint out, and indexes that nothing is left in."""
        self._there[number] = 0
        for name, attribute, constraint in self._pairs(row):
            for lists, key in self._keys(attribute, constraint):
                if name in lists:
                    lists[name].discard(key, number)
                    if not len(lists[name]):
                        del lists[name]
            if isinstance(constraint, Interval) and name in self._m4:
                self._m4[name].discard(number, constraint)
                if not len(self._m4[name]):
                    del self._m4[name]

    def _keys(
        self, attribute: Term | None, constraint: Constraint
    ) -> Iterator[tuple[dict[Term, Lists], Term | None]]:
        """Yield under what something is asked for in m1 to m3 (Algorithms 3 and 4)."""
        if attribute is not None:
            yield self._m1, attribute
        match constraint:
            case Below(concept):
                yield self._m2, concept
            case Equal(term):
                yield self._m3, term
            case Present():
                yield self._m3, ANY

    def _pairs(self, row: Row) -> Iterator[tuple[Term, Term | None, Constraint]]:
        """Yield what an attribute's indexes go by, what it is in m1, and its constraint."""
        for attribute, constraint in row.items():
            yield attribute, attribute, constraint

    # --- Matching (Algorithms 6 to 9) -------------------------------------------------------------

    def matched(self, event: Event, tally: Tally) -> Iterable[int]:
        """Leave, attribute by attribute, those who ask for nothing else (Algorithm 6)."""
        found: dict[Term, list[NamedNode]] = {}
        for attribute in event.terms:
            for above in self.above(attribute):
                found.setdefault(above, []).append(attribute)
        sid = self._there.copy()
        for asked in sorted(self._m1, key=self._m4.__contains__):
            left = ~self._m1[asked].all
            for attribute in found.get(asked, ()):
                left |= self._satisfied(asked, attribute, event, sid, tally)
            sid &= left
        tally.candidates += sid.count()
        return sid.search(1)

    def _satisfied(
        self, asked: Term, attribute: NamedNode, event: Event, sid: bitarray, tally: Tally
    ) -> bitarray:
        """Return those left whose constraint on an attribute is met by a pair of the event."""
        value, number = event.terms[attribute], event.numbers.get(attribute)
        if number is not None and (grid := self._m4.get(asked)) is not None:
            satisfied = sid & grid.lists.all
            grid.keep(satisfied, number, tally)
        else:
            satisfied = no_bits(len(sid))
        if (concepts := self._m2.get(asked)) is not None:
            way = self.way(value, event.links)
            tally.probes += len(way)
            concepts.mark(satisfied, way)
        if (texts := self._m3.get(asked)) is not None:
            tally.probes += 2
            texts.mark(satisfied, (value, ANY))
        return satisfied


class CtpsPrinted(Ctps):
    """CTPS as printed: its answers are wrong where the paper's assumptions do not hold.

    Examples
    --------
    Whoever asks for an attribute that the event lacks is matched.

    >>> from graphmatch.subscription import SubscriptionParser
    >>> ctps = CtpsPrinted(Ontology())
    >>> text = "SELECT ?e { ?e <urn:brand> 'HP' ; <urn:target> <urn:laptop> }"
    >>> ctps.subscribe(SubscriptionParser().parse("s", text))
    >>> list(ctps.matched(Event({NamedNode("urn:brand"): Literal("HP")}), Tally()))
    [0]
    """

    capabilities: ClassVar = replace(Ctps.capabilities, presence=False, exact=False, complete=False)
    kinds: ClassVar = Ctps.kinds - {Present}

    def above(self, attribute: NamedNode) -> Way:
        """Return an attribute, its parent, and so on to the root of its tree."""
        return _first_way(attribute, self.ontology.properties.parents)

    def way(self, value: Term, links: Links) -> Way:  # noqa: ARG002 - an event has none
        """Return a value, its parent, and so on to the root of its tree."""
        way = self._ways.get(value)
        if way is None:
            way = _first_way(value, self.ontology.parents)
            if len(way) > 1:
                self._ways[value] = way
        return way

    def events(self, resource: Resource, links: Links) -> Iterable[Event]:
        """Return what there is of the trees of attributes that somebody asks for."""
        roots = {self.above(attribute)[-1] for attribute in self.asked}
        return resource.events({a for a in resource.values if self.above(a)[-1] in roots}, links)

    def _pairs(self, row: Row) -> Iterator[tuple[Term, Term | None, Constraint]]:
        for attribute, constraint in row.items():
            root = self.above(attribute)[-1]
            independent = not self.ontology.properties.children(root)
            if isinstance(constraint, Equal) and (n := number_of(constraint.term)) is not None:
                constraint = Interval(n, n)
            yield root, None if independent else attribute, constraint

    def matched(self, event: Event, tally: Tally) -> Iterable[int]:
        """Clear, pair by pair, those who ask for something else (Algorithm 6)."""
        sid = self._there.copy()
        for attribute, value in event.terms.items():
            way = self.above(attribute)
            name, number = way[-1], event.numbers.get(attribute)
            _tree_match(self._m1.get(name), way, sid, tally)
            if number is not None:
                if (grid := self._m4.get(name)) is not None:
                    grid.keep(sid, number, tally)
                continue
            if not isinstance(value, Literal):
                _tree_match(self._m2.get(name), self.way(value, event.links), sid, tally)
            _tree_match(self._m3.get(name), (value,), sid, tally)
        tally.candidates += sid.count()
        return sid.search(1)


def _tree_match(lists: Lists | None, way: Way, sid: bitarray, tally: Tally) -> None:
    """Leave those who ask for nothing here, or for something on the way (Algorithms 7 and 8)."""
    if lists is not None:
        tally.probes += len(way)
        lists.keep(sid, way)


def _first_way(term: Term, parents: Callable[[Term], Iterable[Term]]) -> Way:
    """Return a term, its first parent, and so on: a node of the paper has one."""
    way: dict[Term, None] = {}
    while term not in way:
        way[term] = None
        term = next(iter(parents(term)), term)
    return tuple(way)
