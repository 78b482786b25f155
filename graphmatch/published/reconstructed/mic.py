"""MIC: multidimensional index matching count, with the descendants of classes in the index.

Reconstructed from Zhang, Wang, Huang, Yung (CTPS, section 2; the original is their reference 14).

The index has three levels. The first is a hash table of edge labels. The second, for each label, is
a hash table of pairs of vertices, with a mark for a variable. The third, for pairs that end in a
variable, is a binary tree of the intervals into which the variable's range is divided. For a
constraint ``?x ≤ C`` the edges of ?x are added once for C and each class below it, so matching does
not read the hierarchy. Each edge of a publication is looked up with its vertices and with the mark
in their places. The hit edges of subscriptions are counted, and a subscription whose edges were all
hit is a candidate.

Cost: four look-ups and a path down a tree per edge of a publication; |below(C)| entries for an edge
with one constrained variable, |below(C)| · |below(D)| for one with two. So memory grows with the
height of classes.

Notes
-----
- CTPS expands "any edge (s, p, o)" to "(Ts, Tp, To)" in section 2, "one subscription to many
  subscriptions" in section 1. It is edges here. The sizes in its section 6 (8,500 subscriptions at
  height 1, 1,000 at 4, less than 500 at 5) agree with that: 3, 31 and 63 entries per edge.
- A class that is a constant in a subscription matches itself only, as in SPARQL. Only
  ``gm:descendantOf`` outside of ``||`` is expanded. Properties are not (Tp), because in SPARQL they
  have no hierarchy without entailment.
- The index does not have a publication's own statements about classes. If a publication has
  any, its vertices are also looked up as all classes above them.
- Counts are of distinct edges, not of hits. A count alone still reports too many: two vertices may
  have hit a repeated variable. Candidates are joined, as in G-ToPSS.
- CTPS does not say how the third level divides a range. Here ranges divide it at their ends. Ends
  are rounded outwards to single precision, because SPARQL compares with an ``xsd:float`` in that
  precision. Values are tested again on solutions, as by other filters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from math import inf, nextafter
from typing import NamedTuple, TypeAlias

import numpy as np

from graphmatch.published.attribute_matcher import Interval, Tally, number_of
from graphmatch.published.graph_matcher import GraphMatcher, GraphPattern, Row, Tests, Vertex
from graphmatch.published.gtopss import join
from semantic.branch import Comparison, Filter, TaxonomyOperator, TaxonomyTest
from semantic.ontology.ontology import Links
from semantic.publication import Publication
from semantic.terms import Term
from semantic.values import ComparisonOperator

Pair: TypeAlias = tuple[Term | None, Term | None]
"""The vertices of an edge; ``None`` is the mark of a variable."""

EVERYTHING = Interval()


class Entry(NamedTuple):
    """An entry of the index for the edge of a subscription at a place in `pattern.edges`.

    `start_is_below` and `end_is_below` say whether the ends of the edge are a class or any of its
    descendants.
    """

    pattern: GraphPattern
    edge: int
    start_is_below: bool
    end_is_below: bool


@dataclass(slots=True, eq=False)
class Part:
    """A part of a variable's range, and a node of the third level.

    The first child has the numbers below `split`, the second the rest. A range is kept at the
    topmost parts inside it, so the path down to a number has all ranges that contain it.
    """

    entries: list[Entry] = field(default_factory=list)
    split: float = inf
    children: tuple[Part, ...] = ()

    def insert(self, range_: Interval, entry: Entry) -> None:
        """Add an entry to the topmost parts inside its range; divide parts at the range's ends."""
        low, end = range_.low, nextafter(range_.high, inf)
        walk = [(self, -inf, inf)]
        for part, first, last in walk:
            if low <= first and last <= end:
                part.entries.append(entry)
                continue
            if not part.children:
                part.split = low if low > first else end
                part.children = Part(), Part()
            if low < part.split:
                walk.append((part.children[0], first, part.split))
            if end > part.split:
                walk.append((part.children[1], part.split, last))

    def at(self, number: float | None) -> Iterator[Entry]:
        """Yield the entries whose ranges contain a number; ``None`` is in unlimited ranges only."""
        part = self
        yield from part.entries
        while number is not None and part.children:
            part = part.children[number >= part.split]
            yield from part.entries


class Mic(GraphMatcher):
    """MIC: the edges of subscriptions by label, by pair of vertices, and by range of the value."""

    def clear(self) -> None:
        self._labels: dict[Term, dict[Pair, Part]] = {}

    def insert(self, pattern: GraphPattern) -> None:
        """Add each edge of a subscription to the index under all pairs of vertices that hit it."""
        for label, pair, range_, entry in self._places(pattern):
            pairs = self._labels.setdefault(label, {})
            pairs.setdefault(pair, Part()).insert(range_, entry)

    def left(self, pattern: GraphPattern) -> Tests:
        """Return the filters that the index leaves open: all but expanded ``gm:descendantOf``."""
        left = {s: tuple(t for t in ts if not _is_expanded(t)) for s, ts in pattern.tests.items()}
        return {star: tests for star, tests in left.items() if tests}

    def matched(
        self, publication: Publication, links: Links, tally: Tally
    ) -> Iterator[tuple[GraphPattern, list[Row]]]:
        """Yield the subscriptions whose edges were all hit and join, with the rows."""
        hit: dict[tuple[GraphPattern, int], dict[tuple[Term, Term], None]] = {}
        for v, label, w in publication.triples:
            for entry in self._hit(v, label, w, links, tally):
                hit.setdefault((entry.pattern, entry.edge), {})[v, w] = None
        counts = Counter(pattern for pattern, _ in hit)
        tally.candidates = len(counts)
        for pattern, count in counts.items():
            if count == len(pattern.edges):
                tables = [list(hit[pattern, number]) for number in range(count)]
                if rows := join(pattern.edges, tables, tally):
                    yield pattern, rows

    def _hit(
        self, start: Term, label: Term, end: Term, links: Links, tally: Tally
    ) -> Iterator[Entry]:
        """Yield the entries that an edge of a publication hits, some of them repeatedly."""
        tally.probes += 1
        pairs = self._labels.get(label)
        if pairs is None:
            return
        tally.index_hits += 1
        number = number_of(end)
        for v, w in product(self._seen_as(start, links), self._seen_as(end, links)):
            tally.probes += 1
            part = pairs.get((v, w))
            if part is None:
                continue
            tally.index_hits += 1
            for entry in part.at(number):
                is_start = v is None or v == start or entry.start_is_below
                if is_start and (w is None or w == end or entry.end_is_below):
                    yield entry

    def _seen_as(self, vertex: Term, links: Links) -> list[Term | None]:
        """Return the look-up keys of a vertex: itself, the mark, and its root term if it differs.

        If the publication states is-a links, also return all ancestors of the vertex.
        """
        above = self.ontology.ancestors(vertex, links) if links else ()
        return [vertex, None, *({self.ontology.root(vertex), *above} - {vertex})]

    def _places(self, pattern: GraphPattern) -> Iterator[tuple[Term, Pair, Interval, Entry]]:
        """Yield label, vertices, range and entry for each place of a subscription's edges.

        Skip edges whose range is empty.
        """
        for number, (v, label, w) in enumerate(pattern.edges):
            starts, start_is_below = self._expanded(v, pattern)
            ends, end_is_below = self._expanded(w, pattern)
            entry = Entry(pattern, number, start_is_below, end_is_below)
            tests = pattern.tests.get(w, ()) if isinstance(w, int) and not end_is_below else ()
            range_ = _range(tests)
            if range_.low <= range_.high:
                yield from ((label, pair, range_, entry) for pair in product(starts, ends))

    def _expanded(
        self, vertex: Vertex, pattern: GraphPattern
    ) -> tuple[Collection[Term | None], bool]:
        """Return the terms to index a vertex by, and whether these are a class and its descendants.

        ``None`` is the mark of a variable.
        """
        if not isinstance(vertex, int):
            return [vertex], False
        tests = filter(_is_expanded, pattern.tests.get(vertex, ()))
        concepts = [test.concept for test in tests if isinstance(test, TaxonomyTest)]
        if not concepts:
            return [None], False
        root, below = self.ontology.root, self.ontology.descendants
        return set.intersection(*({root(one), *below(one)} for one in concepts)), True


def _is_expanded(test: Filter) -> bool:
    return isinstance(test, TaxonomyTest) and test.operator is TaxonomyOperator.DESCENDANT


def _range(tests: Iterable[Filter]) -> Interval:
    """Return the range that filters leave to a number, rounded outwards to single precision."""
    low, high = EVERYTHING
    for test in tests:
        if not isinstance(test, Comparison) or (number := number_of(test.constant)) is None:
            continue
        with np.errstate(over="ignore"):
            single = np.float32(number)
        if test.operator not in (ComparisonOperator.LT, ComparisonOperator.LE):
            low = max(low, float(np.nextafter(single, np.float32(-inf))))
        if test.operator not in (ComparisonOperator.GT, ComparisonOperator.GE):
            high = min(high, float(np.nextafter(single, np.float32(inf))))
    return Interval(low, high)
