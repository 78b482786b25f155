"""OPS: each subscription is looked for as a subgraph, every node of it a variable.

Wang, Jin, Li: "An Ontology-Based Publish/Subscribe System", Middleware 2004; reconstructed from
Petrovic, Liu, Jacobsen (G-ToPSS, sections 2 and 5) and Zhang and others (CTPS, sections 2 and 6).

Two things are kept of a publication and of the ontology: the possible edges, by their label, and
the possible vertices, each class with all that is above it. Subscriptions are matched one by one.
A search maps the nodes of a subscription to vertices of the publication, edge by edge: each edge of
the publication with that label is tried, whatever vertices it has, for "any node of a publication
can match with any other node in the subscription graph". What is no variable to the subscriber is
one here, with a test of what it is bound to; where a node is bound already, it has to be that
vertex. Where an edge cannot be mapped the search goes back.

Cost: subscriptions · (edges with one label) ^ (edges of a subscription) at worst; it is next to
one edge a subscription where labels differ. A test of a class is a look-up.

Notes
-----
- The two others do not say in which order edges are tried; here each shares a node with one before
  it, where there is one. A constant is tested when its node is bound, not at the end.
- A subgraph isomorphism maps two nodes to two vertices. SPARQL does not ask for that, so two
  variables may be the same vertex here: it is a homomorphism.
- G-ToPSS speaks of "overlapping graphs", CTPS of subscriptions one by one. Here nothing is shared.
- CTPS's OPS keeps possible vertices and edges only, so that its memory depends on the height of the
  tree and not on the subscriptions (section 6). The vertices here do so, `vertex_bytes`: all pairs
  of a class and what is above it, which is the sum of the depths of all classes. It is far from the
  505 MB at height 4 of CTPS, which must hold more. Possible edges are those of the publication
  alone. The subscriptions' own edges are counted in `nbytes` beside it, for others have them, too.
- Instances that a publication states itself are followed from vertex to vertex.
- Other filters than those of classes are tested on solutions, as in G-ToPSS.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain
from sys import getsizeof

from graphmatch.published.base_graph import Edge, GraphMatcher, GraphPattern, Row, Tally, Vertex
from semantic.ontology.ontology import Links, Ontology
from semantic.publication import Publication
from semantic.terms import Term


class Ops(GraphMatcher):
    """Subscriptions one by one.

    Parameters
    ----------
    ontology
        The taxonomy for the is-a operators; what it says must not change.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from semantic.publication import Publication
    >>> from graphmatch.subscription import SubscriptionParser
    >>> ops = Ops(Ontology())
    >>> ops.subscribe(SubscriptionParser().parse("s", "SELECT ?x { <urn:a> <urn:p> ?x }"))
    >>> triple = (NamedNode("urn:a"), NamedNode("urn:p"), NamedNode("urn:b"))
    >>> [m.solutions[0]["x"].value for m in ops.match(Publication.of("p", [triple]))]
    ['urn:b']
    """

    def __init__(self, ontology: Ontology) -> None:
        super().__init__(ontology)
        taxonomies = (ontology.classes, ontology.properties, ontology.concepts, ontology.types)
        terms = dict.fromkeys(chain(*taxonomies))
        self._above = {term: frozenset(ontology.ancestors(term)) for term in terms}
        """The possible vertices."""
        self._edges: dict[GraphPattern, tuple[Edge, ...]] = {}

    @property
    def vertex_bytes(self) -> int:
        """How large the possible vertices are: this depends on the ontology alone."""
        return getsizeof(self._above) + sum(map(getsizeof, self._above.values()))

    @property
    def nbytes(self) -> int:
        """How large the possible vertices and the subscriptions' edges are."""
        edges = sum(getsizeof(e) + sum(map(getsizeof, e)) for e in self._edges.values())
        return self.vertex_bytes + getsizeof(self._edges) + edges

    def insert(self, pattern: GraphPattern) -> None:
        """Keep a subscription's edges, each of which shares a node with an earlier one."""
        rest, ordered = list(pattern.edges), list[Edge]()
        reached: set[Vertex] = set()
        while rest:
            edge = next((e for e in rest if e.v in reached or e.w in reached), rest[0])
            rest.remove(edge)
            ordered.append(edge)
            reached |= {edge.v, edge.w}
        self._edges[pattern] = tuple(ordered)

    def remove(self, pattern: GraphPattern) -> None:
        """Forget a subscription's edges."""
        del self._edges[pattern]

    def matched(
        self,
        publication: Publication,
        links: Links,  # noqa: ARG002 - they are for the tests
        tally: Tally,
    ) -> Iterator[tuple[GraphPattern, list[Row]]]:
        """Search for each subscription."""
        possible: defaultdict[Term, list[tuple[Term, Term]]] = defaultdict(list)
        for v, label, w in publication.triples:
            possible[label].append((v, w))
        tally.candidates = len(self)
        for pattern, edges in self._edges.items():
            if rows := _search(edges, possible, tally):
                yield pattern, rows

    def is_below(self, term: Term, concept: Term, links: Links) -> bool:
        """Look a class up among those above a term, and above those that it is said to be."""
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
    """Map the edges of a subscription, in all ways, and return what its stars are bound to then."""
    rows: list[Row] = []
    nodes: dict[Vertex, Term] = {}
    steps = [(0, iter(possible.get(edges[0].label, ())))]
    """Of each edge that is being mapped: how many nodes were bound before, and what is to try."""
    while steps:
        before, tries = steps[-1]
        while len(nodes) > before:  # go back
            nodes.popitem()
        pair = next(tries, None)
        if pair is None:
            steps.pop()
            continue
        tally.probes += 1
        edge = edges[len(steps) - 1]
        if not (_bind(nodes, edge.v, pair[0]) and _bind(nodes, edge.w, pair[1])):
            continue
        tally.gates += 1
        if len(steps) < len(edges):
            steps.append((len(nodes), iter(possible.get(edges[len(steps)].label, ()))))
        else:
            rows.append({node: at for node, at in nodes.items() if isinstance(node, int)})
    return rows


def _bind(nodes: dict[Vertex, Term], node: Vertex, vertex: Term) -> bool:
    """Bind a node, and say whether it can be this vertex."""
    if node in nodes:
        return nodes[node] == vertex
    if not isinstance(node, int) and node != vertex:
        return False
    nodes[node] = vertex
    return True
