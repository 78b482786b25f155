"""G-ToPSS, as printed.

Petrovic, Liu, Jacobsen: "G-ToPSS: Fast Filtering of Graph-based Metadata", WWW 2005.

All subscriptions are merged into one graph G_M, held in two levels of hash tables (section 4.1,
named in 4.2). The first, T1, maps a pair of vertices to a second, T2. That maps an edge label to an
edge, with its subscriptions. Variables are vertices ``*1``, ``*2``, … numbered inside each
subscription.

Matching (section 4.2) has two stages. First, every edge of the publication is put into the binding
tables of the edges of G_M that can stand for it, and counted for their subscriptions. Then, for
each subscription with a sufficient count, the binding tables of its edges are naturally joined, and
constraints are checked on the rows (`GraphMatcher.match`).

Cost: stage 1 is O(m · k²) for m edges and k stars (section 4.3), and one step for each subscription
of a hit edge. Then each subscription's counter is read once, while the paper keeps a set of the
counted ones (SubSet). Stage 2 joins the subscriptions whose edges were all hit.

Notes
-----
- Section 3.3 calls the embedding an isomorphism. But the binding tables of section 4.2 allow two
  variables the same vertex, as SPARQL does. So does this module.
- Section 4.2 does not try a self-loop ``*i *i``. Here it is tried if a publication's edge is a
  loop, because otherwise subscriptions with one would never match.
- The printed algorithm resets ``edgeCount`` only if a candidate's edges were all counted, and never
  empties binding tables. So both leak into the next publication. Here both are new for each
  publication.
- ``edgeCount`` counts hits, not distinct edges, in print and here. If an edge was not hit, its
  table is empty, and nothing is joined.
- The paper does not state the order of joins. Here each edge shares a star with an earlier one, if
  possible.
- isTrue (section 4.2; here `semantic.filter_evaluation`) compares for ``=``, but section 3.2 says
  "direct instance (a child)". Section 3.2 is followed. ``≤`` and ``≥`` include the class itself.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from graphmatch.published.attribute_matcher import Tally
from graphmatch.published.graph_matcher import Edge, GraphMatcher, GraphPattern, Row, Star, Vertex
from semantic.ontology.ontology import Links
from semantic.publication import Publication
from semantic.terms import Term

BindingTable: TypeAlias = list[tuple[Term, Term]]
"""The ends of the publication's edges that an edge of G_M can stand for."""


Subs: TypeAlias = "array[int]"
"""E.subs of an edge E of G_M: the numbers of the subscriptions that have it."""


_NO_EDGE: Mapping[Term, Subs] = {}


class GToPSS(GraphMatcher):
    """G-ToPSS (Petrovic et al. 2005): all subscriptions are merged into one graph of hash tables.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from semantic import Ontology, Publication
    >>> from graphmatch.subscription import SubscriptionParser
    >>> gtopss = GToPSS(Ontology())
    >>> gtopss.subscribe(SubscriptionParser().parse("s", "SELECT ?x { <urn:a> <urn:p> ?x }"))
    >>> triple = (NamedNode("urn:a"), NamedNode("urn:p"), NamedNode("urn:b"))
    >>> [m.solutions[0]["x"].value for m in gtopss.match(Publication.of("p", [triple]))]
    ['urn:b']
    """

    def clear(self) -> None:
        self._t1: dict[tuple[Vertex, Vertex], dict[Term, Subs]] = {}
        self._patterns: list[GraphPattern] = []
        """G_M.subs, by number."""
        self._sizes = array("i")
        """The number of edges of each subscription."""
        self._stars = 0
        """The maximum number of stars in a subscription."""

    def insert(self, pattern: GraphPattern) -> None:
        """Add the edges of a subscription to G_M (Algorithm Insert, section 4.2)."""
        number = len(self._patterns)
        for v, label, w in pattern.edges:
            t2 = self._t1.setdefault((v, w), {})
            t2.setdefault(label, array("i")).append(number)
        self._patterns.append(pattern)
        self._sizes.append(len(pattern.edges))
        self._stars = max(self._stars, pattern.stars)

    def matched(
        self, publication: Publication, links: Links, tally: Tally
    ) -> Iterator[tuple[GraphPattern, list[Row]]]:
        """Yield the subscriptions that match, with their rows (Algorithm match, section 4.2)."""
        tables: defaultdict[Edge, BindingTable] = defaultdict(list)
        edge_count = np.zeros(len(self._sizes), np.int32)
        for v, label, w in publication.triples:
            for pair in self._completed(v, w):
                tally.probes += 1
                subs = self._t1.get(pair, _NO_EDGE).get(label)
                if subs is not None:
                    edge_count[np.frombuffer(subs, np.int32)] += 1
                    tables[Edge(pair[0], label, pair[1])].append((v, w))
        tally.index_hits, tally.candidates = len(tables), int(np.count_nonzero(edge_count))
        for number in np.flatnonzero(edge_count >= np.array(self._sizes)).tolist():
            pattern = self._patterns[number]
            of_edges = [tables.get(edge, []) for edge in pattern.edges]
            if rows := join(pattern.edges, of_edges, tally):
                yield pattern, rows

    def _completed(self, v: Term, w: Term) -> Iterator[tuple[Vertex, Vertex]]:
        """Yield the keys of T1 that an edge v w can hit: v w, v *i, *i w and *i *j (4.2)."""
        stars = range(1, self._stars + 1)
        for i in (v, *stars):
            for j in (w, *stars):
                if i != j or v == w:
                    yield i, j


def join(edges: Iterable[Edge], tables: Sequence[BindingTable], tally: Tally) -> list[Row]:
    """Return the natural join of the binding tables of all edges of a subscription.

    `tables` has the table of each edge. If one is empty, return no rows; otherwise count the joins
    in `tally`.
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
    """Return the natural join of `rows` (at least one) with the binding table of one more edge."""
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
