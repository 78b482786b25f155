"""OPS: each subscription is searched for as a subgraph whose nodes are all variables.

Wang, Jin, Li: "An Ontology-Based Publish/Subscribe System", Middleware 2004; reconstructed from
Petrovic, Liu, Jacobsen (G-ToPSS, sections 2 and 5) and Zhang and others (CTPS, sections 2 and 6).

The matcher keeps the possible edges of a publication, by label, and the possible vertices of the
ontology, each class with all its ancestors. Subscriptions are matched one by one. A search maps the
nodes of a subscription to vertices of the publication, edge by edge. It tries each edge of the
publication with that label, whatever vertices it has, because "any node of a publication can match
with any other node in the subscription graph". A constant of the subscriber is also a variable
here, with a test of its binding. If a node is bound already, it must be that vertex. If an edge
cannot be mapped, the search backtracks.

Cost: subscriptions · (edges with one label) ^ (edges of a subscription) at worst; it is close to
one edge per subscription if labels differ. A test of a class is a look-up.

Notes
-----
- Neither paper states the order in which edges are tried. Here each shares a node with an earlier
  one, if possible. A constant is tested when its node is bound, not at the end.
- A subgraph isomorphism maps two nodes to two vertices. SPARQL does not require that, so two
  variables may be the same vertex here: it is a homomorphism.
- CTPS's OPS keeps possible vertices and edges only, so its memory depends on the height of the tree
  (section 6). The vertices here also do: all pairs of a class and an ancestor. They are far below
  the 505 MB at height 4 of CTPS, which must hold more. Possible edges are the publication's alone.
- Instances that a publication states itself are followed from vertex to vertex.
- Other filters than those of classes are tested on solutions, as in G-ToPSS.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain

from graphmatch.published.attribute_matcher import Tally
from graphmatch.published.graph_matcher import Edge, GraphMatcher, GraphPattern, Row, Vertex
from semantic.ontology.ontology import Links
from semantic.publication import Publication
from semantic.terms import Term


class Ops(GraphMatcher):
    """OPS (Wang et al. 2004): search the publication for each subscription's graph, one by one."""

    def clear(self) -> None:
        of = self.ontology
        terms = dict.fromkeys(chain(of.classes, of.properties, of.concepts, of.types))
        self._above = {term: frozenset(of.ancestors(term)) for term in terms}
        """The possible vertices."""
        self._patterns: list[GraphPattern] = []

    def insert(self, pattern: GraphPattern) -> None:
        self._patterns.append(pattern)

    def matched(
        self, publication: Publication, links: Links, tally: Tally
    ) -> Iterator[tuple[GraphPattern, list[Row]]]:
        """Yield the subscriptions whose graph is in the publication, with their rows."""
        possible: defaultdict[Term, list[tuple[Term, Term]]] = defaultdict(list)
        for v, label, w in publication.triples:
            possible[label].append((v, w))
        tally.candidates = len(self)
        for pattern in self._patterns:
            if rows := _search(pattern.edges, possible, tally):
                yield pattern, rows

    def is_below(self, term: Term, concept: Term, links: Links) -> bool:
        """Return whether a term is the class `concept` or below it, also by `links`."""
        root = self.ontology.root
        wanted = root(concept)
        reached = {root(term)}
        queue = list(reached)
        for vertex in queue:
            above = self._above.get(vertex, frozenset())
            if vertex == wanted or wanted in above:
                return True
            for stated in (vertex, *above) if links else ():
                new = [other for other in links.get(stated, ()) if other not in reached]
                reached.update(new)
                queue += new
        return False


def _search(
    edges: tuple[Edge, ...], possible: Mapping[Term, list[tuple[Term, Term]]], tally: Tally
) -> list[Row]:
    """Return the bindings of the stars for each mapping of a subscription to a publication.

    `possible` has the vertices of the publication's edges by label. Count the tried and the mapped
    edges in `tally`.
    """
    rows: list[Row] = []
    nodes: dict[Vertex, Term] = {}
    # For each edge being mapped: the number of nodes bound before, and the edges still to try.
    steps = [(0, iter(possible.get(edges[0].label, ())))]
    while steps:
        before, tries = steps[-1]
        while len(nodes) > before:  # backtrack
            nodes.popitem()
        pair = next(tries, None)
        if pair is None:
            steps.pop()
            continue
        tally.probes += 1
        edge = edges[len(steps) - 1]
        if not (_bind(nodes, edge.v, pair[0]) and _bind(nodes, edge.w, pair[1])):
            continue
        tally.index_hits += 1
        if len(steps) < len(edges):
            steps.append((len(nodes), iter(possible.get(edges[len(steps)].label, ()))))
        else:
            rows.append({node: at for node, at in nodes.items() if isinstance(node, int)})
    return rows


def _bind(nodes: dict[Vertex, Term], node: Vertex, vertex: Term) -> bool:
    """Bind a node to a vertex, in `nodes`; return false if it stands for another vertex."""
    if node in nodes:
        return nodes[node] == vertex
    if not isinstance(node, int) and node != vertex:
        return False
    nodes[node] = vertex
    return True
