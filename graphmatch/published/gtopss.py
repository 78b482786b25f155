"""G-ToPSS, as printed.

Petrovic, Liu, Jacobsen: "G-ToPSS: Fast Filtering of Graph-based Metadata", WWW 2005.

All subscriptions are merged into one graph G_M, held in two levels of hash tables (section 4.1):
the first, T1, takes a pair of vertices, and leads to a second, T2, which takes an edge label, and
leads to an edge, with the subscriptions that have it. Variables are vertices ``*1``, ``*2``, …
numbered inside each subscription. Matching (section 4.2) has two stages: every edge of the
publication is put into the binding tables of the edges of G_M that it can stand for, and counted
for their subscriptions; then, for each subscription that was counted often enough, the binding
tables of its edges are naturally joined, and constraints are checked on the rows
(`GraphMatcher.match`).

Cost: stage 1 is O(m · k²) for m edges and k stars, and linear in the subscriptions of the edges
that are hit; stage 2 is linear in the subscriptions of which all edges were hit (section 4.3).

Notes
-----
- Section 3.3 calls the embedding an isomorphism; the binding tables of section 4.2
  allow two variables the same vertex, as SPARQL does. So does this.
- A self-loop ``*i *i`` is not among the edges tried in section 4.2; it is tried
  here when a publication's edge is a loop, for otherwise subscriptions with one
  would never match.
- The printed algorithm resets ``edgeCount`` only when a candidate's edges were all
  counted, so that counts leak into the next publication. Here counts, and binding tables, are
  those of one publication.
- ``edgeCount`` counts hits, not distinct edges, so it lets candidates through whose
  edges were not all hit: one of their tables is empty, and nothing is joined.
- The order of the joins is left open; see `GraphPattern`. Each is a hash join.
- isTrue (section 4.2) compares for ``=``; section 3.2 says "direct instance (a child)".
  Section 3.2 holds here. ``≤`` and ``≥`` include the class itself.
- Constraints are those of SPARQL that test one variable: tests of text, ``!=`` and
  alternatives too, of which section 3.2 says nothing.
- Instances of a class come from the taxonomy and from the publication's own
  ``rdf:type`` and is-a triples (section 3.4 allows both).
- The paper does not unsubscribe. Here an edge that no subscription has any more is taken
  out of both levels, and stars that none has any more are not tried.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from sys import getsizeof
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.published.base_graph import (
    Edge,
    GraphMatcher,
    GraphPattern,
    Row,
    Star,
    Tally,
    Vertex,
)
from semantic.ontology.ontology import Links, Ontology
from semantic.publication import Publication
from semantic.terms import Term

BindingTable: TypeAlias = list[tuple[Term, Term]]
"""The vertices of the publication's edges that an edge of G_M can stand for."""


Numbers: TypeAlias = NDArray[np.int32]

Subs: TypeAlias = "array[int]"
"""E.subs of an edge E of G_M: the numbers of the subscriptions that have it."""


_NO_EDGE: Mapping[Term, Subs] = {}


class GToPSS(GraphMatcher):
    """The G-ToPSS index.

    Parameters
    ----------
    ontology
        The taxonomy for the is-a operators.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from semantic.publication import Publication
    >>> from graphmatch.subscription import SubscriptionParser
    >>> gtopss = GToPSS(Ontology())
    >>> gtopss.subscribe(SubscriptionParser().parse("s", "SELECT ?x { <urn:a> <urn:p> ?x }"))
    >>> triple = (NamedNode("urn:a"), NamedNode("urn:p"), NamedNode("urn:b"))
    >>> [m.solutions[0]["x"].value for m in gtopss.match(Publication.of("p", [triple]))]
    ['urn:b']
    """

    def __init__(self, ontology: Ontology) -> None:
        super().__init__(ontology)
        self._t1: dict[tuple[Vertex, Vertex], dict[Term, Subs]] = {}
        self._patterns: list[GraphPattern | None] = []
        """G_M.subs: the subscription with each number; numbers are used again."""
        self._numbers: dict[GraphPattern, int] = {}
        self._free: list[int] = []
        self._sizes: Numbers = np.zeros(16, np.int32)
        """How many edges each subscription has; 0 for numbers that are free."""
        self._stars: Counter[int] = Counter()
        """How many subscriptions have each number of stars."""

    @property
    def edges(self) -> int:
        """How many edges G_M has."""
        return sum(map(len, self._t1.values()))

    @property
    def nbytes(self) -> int:
        """How large G_M is, as Python has it, without terms."""
        size = getsizeof(self._t1) + getsizeof(self._patterns) + self._sizes.nbytes
        for pair, t2 in self._t1.items():
            size += getsizeof(pair) + getsizeof(t2) + sum(map(getsizeof, t2.values()))
        return size

    def insert(self, pattern: GraphPattern) -> None:
        """Insert a subscription (Algorithm Insert, section 4.2)."""
        if not self._free:
            self._free.append(len(self._patterns))
            self._patterns.append(None)
        number = self._free.pop()
        if number >= self._sizes.size:
            self._sizes = np.concatenate([self._sizes, np.zeros_like(self._sizes)])
        for v, label, w in pattern.edges:
            t2 = self._t1.setdefault((v, w), {})
            t2.setdefault(label, array("i")).append(number)
        self._patterns[number], self._numbers[pattern] = pattern, number
        self._sizes[number] = len(pattern.edges)
        self._stars[pattern.stars] += 1

    def remove(self, pattern: GraphPattern) -> None:
        """Take a subscription out, and the edges of G_M that only it had."""
        number = self._numbers.pop(pattern)
        for v, label, w in pattern.edges:
            t2 = self._t1[v, w]
            t2[label].remove(number)
            if not t2[label]:
                del t2[label]
                if not t2:
                    del self._t1[v, w]
        self._patterns[number], self._sizes[number] = None, 0
        self._free.append(number)
        self._stars[pattern.stars] -= 1
        self._stars += Counter()  # leaves out what is 0

    def matched(
        self,
        publication: Publication,
        links: Links,  # noqa: ARG002 - constraints are checked on rows
        tally: Tally,
    ) -> Iterator[tuple[GraphPattern, list[Row]]]:
        """Match a publication (Algorithm match, section 4.2)."""
        tables: defaultdict[Edge, BindingTable] = defaultdict(list)
        edge_count = np.zeros_like(self._sizes)
        for v, label, w in publication.triples:
            for pair in self._completed(v, w):
                tally.probes += 1
                subs = self._t1.get(pair, _NO_EDGE).get(label)
                if subs is not None:
                    edge_count[np.frombuffer(subs, np.int32)] += 1
                    tables[Edge(pair[0], label, pair[1])].append((v, w))
        tally.gates, tally.candidates = len(tables), int(np.count_nonzero(edge_count))
        for number in np.flatnonzero((edge_count >= self._sizes) & (edge_count > 0)).tolist():
            pattern = self._patterns[number]
            assert pattern is not None
            of_edges = [tables.get(edge, []) for edge in pattern.edges]
            if rows := join(pattern.edges, of_edges, tally):
                yield pattern, rows

    def _completed(self, v: Term, w: Term) -> Iterator[tuple[Vertex, Vertex]]:
        """Yield the edges of the completed graph G_E: v w, v *i, *i w and *i *j."""
        stars = range(1, max(self._stars, default=0) + 1)
        for i in (v, *stars):
            for j in (w, *stars):
                if i != j or v == w:
                    yield i, j


def join(edges: Iterable[Edge], tables: Sequence[BindingTable], tally: Tally) -> list[Row]:
    """Join the binding tables of all edges of a subscription on the stars that they share.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> a, b, c, p = (NamedNode(f"urn:{name}") for name in "abcp")
    >>> edges = [Edge(a, p, 1), Edge(1, p, 2)]
    >>> join(edges, [[(a, b), (a, c)], [(b, c)]], Tally()) == [{1: b, 2: c}]
    True
    """
    if not all(tables):
        return []
    tally.joins += len(tables) - 1
    rows: list[Row] = [{}]
    for edge, table in zip(edges, tables, strict=True):
        rows = natural_join(rows, edge, table)
        if not rows:
            break
    return rows


def natural_join(rows: list[Row], edge: Edge, table: BindingTable) -> list[Row]:
    """Join rows with the binding table of one more edge."""
    common = [star for star in edge.stars if star in rows[0]]
    bindings: defaultdict[tuple[Term, ...], list[dict[Star, Term]]] = defaultdict(list)
    for v, w in table:
        binding: dict[Star, Term] = {}
        if isinstance(edge.v, int):
            binding[edge.v] = v
        if isinstance(edge.w, int):
            binding[edge.w] = w
        if edge.v != edge.w or v == w:  # a loop of one star is one vertex
            bindings[tuple(binding[star] for star in common)].append(binding)
    return [
        {**row, **binding}
        for row in rows
        for binding in bindings.get(tuple(row[star] for star in common), ())
    ]
