"""MIC: multidimensional index matching count; what is below a class is put into the index.

Zhang, Wang, Huang, Yung: CTPS, section 2, describe it (their reference 14).

The index has three levels. The first is a hash table of edge labels; the second, for each label, a
hash table of pairs of vertices, where a variable is a mark; the third, for pairs that end in a
variable, a binary tree of the intervals into which the variable's range is divided. For a
constraint ``?x ≤ C`` the edges of ?x are put in once for each class below C, and for C: no
hierarchy is looked at when matching. Each edge of a publication is looked up with its vertices and
with the mark in their places; the edges of subscriptions that it hits are counted, and a
subscription of which all were hit is a candidate.

Cost: four look-ups and a way down a tree for an edge of a publication; |below(C)| entries for an
edge with one constrained variable, |below(C)| · |below(D)| for one with two, so that memory grows
as classes stand higher above others. Plain Python, but for joins.

Notes
-----
- The original was not at hand: what is here is what CTPS says of it, and inferred.
- CTPS expands "any edge (s, p, o)" to "(Ts, Tp, To)" in section 2, "one subscription to many
  subscriptions" in section 1. It is edges here. The sizes in its section 6 (8,500 subscriptions at
  height 1, 1,000 at 4, less than 500 at 5) go with that: 3, 31 and 63 entries an edge.
- A class that stands in a subscription as a constant matches itself only, as in SPARQL; what is
  expanded is ``gm:descendantOf``, alone and not beside ``||``. Properties are not expanded (Tp),
  for in SPARQL they have no hierarchy without entailment.
- What a publication itself says of classes is not in the index. Where it says any, its vertices
  are looked up as all classes above them, too.
- Variables have one mark, not a number each as in G-ToPSS: the counts would not be better for it.
- Counts are of distinct edges of a subscription, not of hits. Nevertheless a count alone reports
  too many: a variable that comes twice may have been hit with two vertices. Candidates are joined,
  as in G-ToPSS.
- How the third level divides a range is left open; see `graphs.intervals`. Its ends are rounded
  outwards to single precision, for SPARQL compares with an ``xsd:float`` in it, and values are
  tested once more on solutions, as other filters are.
- Subjects have no third level: they are no numbers in RDF.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import inf
from sys import getsizeof
from typing import NamedTuple, TypeAlias

import numpy as np

from graphmatch.published.base import number_of
from graphmatch.published.graphs.intervals import IntervalTree
from graphmatch.published.graphs.joins import Joins
from graphmatch.published.graphs.matcher import Arrived, Found, GraphMatcher, Tally
from graphmatch.published.graphs.numbers import TermNumbers
from graphmatch.published.graphs.pattern import GraphPattern, Star, Vertex
from semantic.ontology.ontology import Ontology
from semantic.pattern import Comparison, Filter, TaxonomyOperator, TaxonomyTest
from semantic.terms import Term
from semantic.values import Operator

_Pair: TypeAlias = tuple[Term | None, Term | None]
"""The vertices of an edge; ``None`` is the mark of a variable."""

_EVERYTHING = (-inf, inf)


class _Entry(NamedTuple):
    """An edge of a subscription, and whether its ends are put in as what is below a class."""

    edge: int
    start_is_below: bool
    end_is_below: bool


class _Place(NamedTuple):
    """Where an entry is put in; the range is that of the edge's last vertex."""

    label: Term
    pair: _Pair
    range: tuple[float, float]
    entry: _Entry


@dataclass(slots=True)
class _Third:
    """The subscriptions' edges with one label and one pair of vertices."""

    entries: dict[_Entry, None] = field(default_factory=dict)
    """Those that ask for no number."""
    ranges: IntervalTree[_Entry] | None = None

    @property
    def nbytes(self) -> int:
        return getsizeof(self.entries) + (self.ranges.nbytes if self.ranges else 0)

    def insert(self, place: _Place) -> None:
        if place.range == _EVERYTHING:
            self.entries[place.entry] = None
        else:
            self.ranges = self.ranges or IntervalTree()
            self.ranges.insert(*place.range, place.entry)

    def remove(self, place: _Place) -> None:
        if place.range == _EVERYTHING:
            del self.entries[place.entry]
        else:
            assert self.ranges
            self.ranges.remove(*place.range, place.entry)
            self.ranges = self.ranges or None

    def of(self, number: float | None) -> Iterator[_Entry]:
        yield from self.entries
        if self.ranges and number is not None:
            yield from self.ranges.at(number)


class Mic(GraphMatcher):
    """The three levels.

    Parameters
    ----------
    ontology
        The taxonomy for the is-a operators; what it says must not change.

    Attributes
    ----------
    entries
        How many the index has: for each edge of a subscription as many as it is expanded to.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from semantic.publication import Publication
    >>> from graphmatch.subscription import SubscriptionParser
    >>> mic = Mic(Ontology())
    >>> mic.subscribe(SubscriptionParser().parse("s", "SELECT ?x { <urn:a> <urn:p> ?x }"))
    >>> triple = (NamedNode("urn:a"), NamedNode("urn:p"), NamedNode("urn:b"))
    >>> [m.solutions[0]["x"].value for m in mic.match(Publication.of("p", [triple]))]
    ['urn:b']
    """

    def __init__(self, ontology: Ontology) -> None:
        super().__init__(ontology)
        self.entries = 0
        self._labels: dict[Term, dict[_Pair, _Third]] = {}
        self._joins = Joins()
        self._of_edge: dict[int, int] = {}
        """Each edge of a subscription, and its subscription."""

    @property
    def nbytes(self) -> int:
        """How large the three levels are, as Python has them, without the terms."""
        levels = [getsizeof(self._labels), *map(getsizeof, self._labels.values())]
        thirds = [
            getsizeof(pair) + getsizeof(third) + third.nbytes
            for pairs in self._labels.values()
            for pair, third in pairs.items()
        ]
        edges = getsizeof(self._of_edge) + len(self._of_edge) * getsizeof(_Entry(0, False, False))
        return sum(levels) + sum(thirds) + edges + self._joins.nbytes

    def insert(self, number: int, pattern: GraphPattern) -> None:
        """Put each edge in wherever it may be hit."""
        edges = self._joins.insert_own(number, pattern.ends)
        self._of_edge.update(dict.fromkeys(edges, number))
        for place in self._places(pattern, edges):
            pairs = self._labels.setdefault(place.label, {})
            pairs.setdefault(place.pair, _Third()).insert(place)
            self.entries += 1

    def remove(self, number: int, pattern: GraphPattern) -> None:
        """Take each edge out of all places."""
        edges = self._joins.remove_own(number)
        for place in self._places(pattern, edges):
            pairs = self._labels[place.label]
            third = pairs[place.pair]
            third.remove(place)
            self.entries -= 1
            if not third.entries and not third.ranges:
                del pairs[place.pair]
                if not pairs:
                    del self._labels[place.label]
        for edge in edges:
            del self._of_edge[edge]

    def left(self, pattern: GraphPattern) -> Mapping[Star, tuple[Filter, ...]]:
        """Return all filters but those that were expanded."""
        left = {
            star: tuple(test for test in tests if not _is_expanded(test))
            for star, tests in pattern.tests.items()
        }
        return {star: tests for star, tests in left.items() if tests}

    def matched(self, arrived: Arrived, tally: Tally) -> Found:
        """Count the edges that are hit, and join those of the candidates."""
        rows: list[tuple[int, int]] = []
        last: dict[int, int] = {}
        counts: Counter[int] = Counter()
        known: dict[Term, list[Term | None]] = {}
        for number, (start, label, end) in enumerate(arrived.publication.triples):
            for vertex in (start, end):
                if vertex not in known:
                    known[vertex] = self._seen_as(vertex, arrived)
            for edge in self._hit(start, label, end, known, tally):
                if edge not in last:
                    counts[self._of_edge[edge]] += 1
                if last.get(edge) != number:
                    last[edge] = number
                    rows.append((edge, number))
        tally.candidates = len(counts)
        whole = [s for s, count in counts.items() if count == len(self._joins.edges[s])]
        triples, terms = TermNumbers().publication(arrived.publication.triples)
        joined = self._joins.join(np.array(whole, np.int32), self._joins.bind(rows), triples)
        tally.joins = self._joins.made
        return Found(joined, terms)

    def _hit(
        self,
        start: Term,
        label: Term,
        end: Term,
        known: Mapping[Term, list[Term | None]],
        tally: Tally,
    ) -> Iterator[int]:
        """Yield the subscriptions' edges that an edge of a publication hits, some twice."""
        tally.probes += 1
        pairs = self._labels.get(label)
        if pairs is None:
            return
        tally.gates += 1
        value = number_of(end)
        for v, w in product(known[start], known[end]):
            tally.probes += 1
            third = pairs.get((v, w))
            if third is None:
                continue
            tally.gates += 1
            for entry in third.of(value):
                is_start = v is None or v == start or entry.start_is_below
                if is_start and (w is None or w == end or entry.end_is_below):
                    yield entry.edge

    def _seen_as(self, vertex: Term, arrived: Arrived) -> list[Term | None]:
        """Return as what a vertex is looked up: itself, any, and what it is said to be below."""
        above = self.ontology.ancestors(vertex, arrived.links) if arrived.links else ()
        return [vertex, None, *({self.ontology.root(vertex), *above} - {vertex})]

    def _places(self, pattern: GraphPattern, edges: Iterable[int]) -> Iterator[_Place]:
        """Yield where the edges of a subscription are put in."""
        for number, (start, label, end) in zip(edges, pattern.edges, strict=True):
            starts, ends = (self._below(vertex, pattern) for vertex in (start, end))
            entry = _Entry(number, starts is not None, ends is not None)
            range_ = _EVERYTHING
            if ends is None and isinstance(end, int):
                range_ = _range(pattern.tests.get(end, ()))
            if range_[0] > range_[1]:
                continue  # nothing is in it
            for pair in product(_terms(start, starts), _terms(end, ends)):
                yield _Place(label, pair, range_, entry)

    def _below(self, vertex: Vertex, pattern: GraphPattern) -> set[Term] | None:
        """Return what a variable may be, if it has to be below a class."""
        tests = pattern.tests.get(vertex, ()) if isinstance(vertex, int) else ()
        concepts = [t.concept for t in tests if isinstance(t, TaxonomyTest) and _is_expanded(t)]
        if not concepts:
            return None
        root, below = self.ontology.root, self.ontology.descendants
        return set.intersection(*({root(concept), *below(concept)} for concept in concepts))


def _terms(vertex: Vertex, below: set[Term] | None) -> Iterable[Term | None]:
    if below is not None:
        return below
    return (None if isinstance(vertex, int) else vertex,)


def _is_expanded(test: Filter) -> bool:
    return isinstance(test, TaxonomyTest) and test.operator is TaxonomyOperator.DESCENDANT


def _range(tests: Iterable[Filter]) -> tuple[float, float]:
    """Return between what a number has to be, rounded outwards to single precision."""
    low, high = _EVERYTHING
    for test in tests:
        if not isinstance(test, Comparison) or (number := number_of(test.constant)) is None:
            continue
        with np.errstate(over="ignore"):
            single = np.float32(number)
        if test.operator not in (Operator.LT, Operator.LE):
            low = max(low, float(np.nextafter(single, np.float32(-inf))))
        if test.operator not in (Operator.GT, Operator.GE):
            high = min(high, float(np.nextafter(single, np.float32(inf))))
    return low, high
