"""G-ToPSS, as printed.

Petrovic, Liu, Jacobsen: "G-ToPSS: Fast Filtering of Graph-based Metadata", WWW 2005.

All subscriptions are merged into one graph G_M, held in two levels of hash tables
(section 4.1): the first takes a pair of vertices, the second an edge label, and
leads to the subscriptions that have this edge and to a binding table. Variables
are vertices ``*1``, ``*2``, … numbered inside each subscription. Matching (section
4.2) has two stages: every edge of the publication is put into the binding tables
of the edges of G_M that it can stand for, and counted for their subscriptions; then,
for each subscription that was counted often enough, the binding tables of its edges
are naturally joined, and the constraints are checked on the rows.

Cost: stage 1 is O(m · k²) for m edges and k stars; stage 2 is linear in the
subscriptions of which all edges were hit (section 4.3). Compiled, but for constraints.

Notes
-----
- Section 3.3 calls the embedding an isomorphism; the binding tables of section 4.2
  allow two variables the same vertex, as SPARQL does. So does this.
- A self-loop ``*i *i`` is not among the edges tried in section 4.2; it is tried
  here when a publication's edge is a loop, for otherwise subscriptions with one
  would never match.
- The printed algorithm resets ``edgeCount`` only when a candidate's edges were all
  counted; here every candidate's is reset, for otherwise counts leak into the next
  publication.
- ``edgeCount`` counts hits, not distinct edges, so it lets candidates through whose
  edges were not all hit: one of their tables is empty, and nothing is joined.
- The order of the joins is left open; see `graphs.pattern.GraphPattern`.
- isTrue (section 4.2) compares for ``=``; section 3.2 says "direct instance (a child)".
  Section 3.2 holds here. ``≤`` and ``≥`` include the class itself.
- Constraints are those of SPARQL that test one variable: tests of text, ``!=`` and
  alternatives too, of which section 3.2 says nothing.
- Instances of a class come from the taxonomy and from the publication's own
  ``rdf:type`` and is-a triples (section 3.4 allows both).
- The tables of the second level are one: its keys are the number of a pair of vertices
  and a label. The data structure and both stages are in `graphs.merged` and `graphs.joins`.
- The paper does not unsubscribe. Here an edge that no subscription has any more is taken
  out of both levels.
"""

from __future__ import annotations

import numpy as np

from graphmatch.published.graphs.matcher import Arrived, Found, GraphMatcher, Tally
from graphmatch.published.graphs.merged import MergedGraph
from graphmatch.published.graphs.numbers import Ids, TermNumbers
from graphmatch.published.graphs.pattern import GraphPattern, Vertex
from semantic.ontology.ontology import Ontology


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
        self._terms = TermNumbers()
        self._merged = MergedGraph()

    @property
    def edges(self) -> int:
        """How many edges the merged graph G_M has."""
        return len(self._merged)

    @property
    def nbytes(self) -> int:
        """How large the merged graph is."""
        return self._merged.nbytes

    def insert(self, number: int, pattern: GraphPattern) -> None:
        """Insert a subscription (Algorithm Insert, section 4.2)."""
        for vertex in (vertex for edge in pattern.edges for vertex in edge):
            if not isinstance(vertex, int):
                self._terms.add(vertex)
        edges = self._numbered(pattern)
        self._merged.insert(np.full(len(edges), number, np.int32), edges)

    def remove(self, number: int, pattern: GraphPattern) -> None:
        """Take a subscription out, and the edges of G_M that only it had."""
        self._merged.remove(number, self._numbered(pattern))
        for vertex in (vertex for edge in pattern.edges for vertex in edge):
            if not isinstance(vertex, int):
                self._terms.discard(vertex)

    def matched(self, arrived: Arrived, tally: Tally) -> Found:
        """Match a publication (Algorithm match, section 4.2)."""
        triples, terms = self._terms.publication(arrived.publication.triples)
        return Found(self._merged.match(triples, tally), terms)

    def _numbered(self, pattern: GraphPattern) -> Ids:
        def number(vertex: Vertex) -> int:
            return -vertex if isinstance(vertex, int) else self._terms[vertex]

        return np.array([[number(v) for v in edge] for edge in pattern.edges], np.int32)
