"""OPS: each subscription is looked for as a subgraph, every node of it a variable.

Wang, Jin, Li: "An Ontology-Based Publish/Subscribe System", Middleware 2004; here as Petrovic, Liu,
Jacobsen (G-ToPSS, sections 2 and 5) and Zhang and others (CTPS, sections 2 and 6) describe it.

Two things are kept of a publication and of the ontology: the possible edges, by their label, and
the possible vertices, each class with all that is below it. Subscriptions are matched one by one.
A search maps the nodes of a subscription to vertices of the publication, edge by edge: each edge of
the publication with that label is tried, whatever vertices it has, for "any node of a publication
can match with any other node in the subscription graph". What is no variable to the subscriber is
one here, with a test of what it is bound to; where a node is bound already, it has to be that
vertex. Where an edge cannot be mapped the search goes back.

Cost: subscriptions · (edges with one label) ^ (edges of a subscription) at worst; it is next to
one edge a subscription where labels differ. A test of a class is a look-up. Compiled, but for
filters.

Notes
-----
- The original was not at hand: this is inferred from what the two others say. They do not say in
  which order edges are tried; here each shares a node with one before it, where there is one. A
  constant is tested when its node is bound, not at the end.
- A subgraph isomorphism maps two nodes to two vertices. SPARQL does not ask for that, so two
  variables may be the same vertex here: it is a homomorphism.
- G-ToPSS speaks of "overlapping graphs", CTPS of subscriptions one by one. Here nothing is shared.
- CTPS's OPS keeps possible vertices and edges only, so that its memory depends on the height of the
  tree and not on the subscriptions (section 6). The vertices here do so, `vertex_bytes`: all pairs
  of a class and what is below it, which is the sum of the depths of all classes. It is far from the
  505 MB at height 4 of CTPS, which must hold more. Possible edges are those of the publication
  alone. The subscriptions' own edges are counted in `nbytes` beside it, for others have them, too.
- Instances that a publication states itself are followed from vertex to vertex.
- Other filters than those of classes are tested on solutions, as in G-ToPSS.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from sys import getsizeof
from typing import TypeAlias

import numpy as np

from graphmatch.published.graphs.lists import Lists, View
from graphmatch.published.graphs.matcher import Arrived, Found, GraphMatcher, Tally
from graphmatch.published.graphs.numbers import Ids, TermNumbers
from graphmatch.published.graphs.pattern import Edge, GraphPattern, Vertex
from graphmatch.published.jit import kernel, part
from semantic.ontology.ontology import Ontology
from semantic.terms import Term

_Edges: TypeAlias = tuple[Ids, Ids, Ids]
"""A publication's edges, the first with each label, and the one after each."""

_State: TypeAlias = tuple[Ids, Ids]
"""What each node is bound to; for each depth the edge to try next, and which nodes it bound."""

FREE = -1


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
        self._terms = TermNumbers()
        self._edges = Lists()
        """Of each subscription: label, start and end of each edge; nodes as numbers from 0."""
        self._nodes = Lists()
        """Of each subscription: the term that a node has to be, `FREE` for a variable."""
        self._above = _closure(ontology)
        self._widest = self._longest = self._stop = 0

    @property
    def vertex_bytes(self) -> int:
        """How large the possible vertices are: this depends on the ontology alone."""
        return getsizeof(self._above) + sum(map(getsizeof, self._above.values()))

    @property
    def nbytes(self) -> int:
        """How large the possible vertices and the subscriptions' edges are."""
        return self.vertex_bytes + self._edges.nbytes + self._nodes.nbytes

    def insert(self, number: int, pattern: GraphPattern) -> None:
        """Keep a subscription's edges and nodes: the stars first, then constants."""
        nodes: dict[Vertex, int] = {star: star - 1 for star in range(1, pattern.stars + 1)}
        edges = _connected(pattern.edges)
        flat = []
        for start, label, end in edges:
            flat.append(self._terms.add(label))
            flat += [nodes.setdefault(vertex, len(nodes)) for vertex in (start, end)]
        tests = [FREE if isinstance(v, int) else self._terms.add(v) for v in nodes]
        self._edges.extend(np.full(len(flat), number), np.array(flat))
        self._nodes.extend(np.full(len(tests), number), np.array(tests))
        self._widest = max(self._widest, len(nodes))
        self._longest = max(self._longest, len(edges))
        self._stop = max(self._stop, number + 1)

    def remove(self, number: int, pattern: GraphPattern) -> None:
        """Forget a subscription's edges and nodes."""
        labels = [label for _, label, _ in pattern.edges]
        vertices = {v for edge in pattern.edges for v in (edge.start, edge.end)}
        for term in chain(labels, vertices):
            if not isinstance(term, int):
                self._terms.discard(term)
        self._edges.clear(number)
        self._nodes.clear(number)

    def matched(self, arrived: Arrived, tally: Tally) -> Found:
        """Search for each subscription."""
        triples, terms = self._terms.publication(arrived.publication.triples)
        first = np.full(self._terms.most, FREE, np.int32)
        after = np.empty(len(triples), np.int32)
        _file(triples, first, after)
        tally.candidates = len(self)
        return Found(self._search((triples, first, after), tally), terms)

    def _search(self, edges: _Edges, tally: Tally) -> Iterator[tuple[int, Ids]]:
        nodes, depths = np.empty(self._widest, np.int32), np.empty(2 * self._longest, np.int32)
        subscriptions = self._edges.view, self._nodes.view
        number, room = 0, 64
        while number < self._stop:
            rows = np.empty((room, self._widest), np.int32)
            number, count, tried, mapped = _next(
                number, self._stop, *subscriptions, edges, (nodes, depths), rows
            )
            tally.probes += tried
            tally.gates += mapped
            if count > room:
                room = count
            elif count:
                yield number - 1, rows[:count]

    def is_below(self, term: Term, concept: Term, arrived: Arrived) -> bool:
        """Look a class up among those above a term, and above those that it is said to be."""
        root, links = self.ontology.root, arrived.links
        wanted = root(concept)
        reached = {root(term): None}
        queue = list(reached)
        for vertex in queue:
            if vertex == wanted or wanted in self._above.get(vertex, ()):
                return True
            for link in (vertex, *self._above.get(vertex, ())) if links else ():
                for other in links.get(link, ()):
                    if other not in reached:
                        reached[other] = None
                        queue.append(other)
        return False


def _closure(ontology: Ontology) -> dict[Term, frozenset[Term]]:
    """Return the terms above each term: the possible vertices."""
    taxonomies = (ontology.classes, ontology.properties, ontology.concepts)
    terms = dict.fromkeys(chain(*taxonomies, ontology.types))
    return {term: frozenset(ontology.ancestors(term)) for term in terms}


def _connected(edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """Order edges so that each shares a node with an earlier one, where there is one."""
    rest, ordered = list(edges), list[Edge]()
    reached: set[Vertex] = set()
    while rest:
        edge = next((e for e in rest if e.start in reached or e.end in reached), rest[0])
        rest.remove(edge)
        ordered.append(edge)
        reached |= {edge.start, edge.end}
    return tuple(ordered)


@kernel
def _file(triples: Ids, first: Ids, after: Ids) -> None:
    """File a publication's edges by label; labels that no subscription has are left out."""
    for edge in range(triples.shape[0]):
        label = triples[edge, 1]
        if label < first.size:
            after[edge] = first[label]
            first[label] = edge


@part
def _bind(node: int, vertex: int, test: int, nodes: Ids) -> int:
    """Bind a node to a vertex: 1 if it is now, 0 if it was, `FREE` if it cannot be."""
    if nodes[node] != FREE:
        return 0 if nodes[node] == vertex else FREE
    if test != FREE and test != vertex:
        return FREE
    nodes[node] = vertex
    return 1


@kernel
def _next(
    number: int, stop: int, of: View, tests: View, edges: _Edges, state: _State, rows: Ids
) -> tuple[int, int, int, int]:
    """Search for one subscription after the other, until one is found.

    Returns
    -------
    number, count
        The subscription after the one that was found, and how many solutions it has. Where `rows`
        has no room for them, it is the one that was found.
    tried, mapped
        How many edges of the publication were tried, and how many of them could be mapped.
    """
    begin, size, numbers = of
    tests_begin, tests_size, test = tests
    triples, first, after = edges
    nodes, depths = state
    tried = mapped = 0
    for subscription in range(number, stop):
        length = size[subscription] // 3
        if length == 0:
            continue
        base, own = begin[subscription], tests_begin[subscription]
        for node in range(tests_size[subscription]):
            nodes[node] = FREE
        depths[0], depths[1] = first[numbers[base]], 0
        depth = count = 0
        while depth >= 0:
            start, end = numbers[base + 3 * depth + 1], numbers[base + 3 * depth + 2]
            if depths[2 * depth + 1] & 1:
                nodes[start] = FREE
            if depths[2 * depth + 1] & 2:
                nodes[end] = FREE
            edge = depths[2 * depth]
            if edge == FREE:
                depth -= 1
                continue
            tried += 1
            depths[2 * depth], depths[2 * depth + 1] = after[edge], 0
            v = _bind(start, triples[edge, 0], test[own + start], nodes)
            if v == FREE:
                continue
            depths[2 * depth + 1] = v
            w = _bind(end, triples[edge, 2], test[own + end], nodes)
            if w == FREE:
                continue
            depths[2 * depth + 1] = v + 2 * w
            mapped += 1
            if depth + 1 < length:
                depth += 1
                depths[2 * depth], depths[2 * depth + 1] = first[numbers[base + 3 * depth]], 0
                continue
            if count < rows.shape[0]:
                for node in range(tests_size[subscription]):
                    rows[count, node] = nodes[node]
            count += 1
        if count > rows.shape[0]:
            return subscription, count, tried, mapped
        if count:
            return subscription + 1, count, tried, mapped
    return stop, 0, tried, mapped
