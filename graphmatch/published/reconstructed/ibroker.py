"""iBroker: subscriptions are lists of constraints, and equal steps of several share a node.

Park, Chung: "iBroker: an intelligent broker for ontology-based publish/subscribe systems", ICDE
2009; reconstructed from Zhang, Wang, Huang, Yung (CTPS, section 2).

A subscription is split into steps: from a class to an attribute of it, from the attribute to the
class of its value, from there to the next attribute. The first level of the index is a hash table
of classes and attributes. The second has, for each of them, the next class or attribute, with a
node for each constraint on it. Identical steps of different subscriptions share one node. A
subscription is the linked list of its nodes. For a publication the hierarchy is walked up from each
vertex, the nodes on the way become true, and the lists are traversed.

Cost: for each edge of a publication, the classes above both of its vertices, and the constraints
there; then the lists whose first node is true, each up to the first false node. Memory: an entry
for each distinct step.

Notes
-----
- CTPS describes it in five lines. The rest is inferred.
- Classes, constants and "anything" are separate in the first level: a constant matches itself only,
  as in SPARQL. The class of a vertex is that of its first ``gm:descendantOf``. Its other filters
  are the node's constraint.
- CTPS's nodes are true or false. Here a node has the edges of the publication that made it true,
  because a list of true nodes is not sufficient: the two steps of an edge must be of one edge, and
  a variable must be one vertex. Those edges are joined as in G-ToPSS.
- CTPS does not say which lists are traversed. Here a list is attached to its first node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from pyoxigraph import Variable

from graphmatch.published.attribute_matcher import Tally
from graphmatch.published.graph_matcher import GraphMatcher, GraphPattern, Row, Tests, Vertex
from graphmatch.published.gtopss import join
from semantic.branch import AnyOf, Filter, TaxonomyOperator, TaxonomyTest
from semantic.ontology.ontology import Links
from semantic.publication import Publication
from semantic.terms import Term, Triple


class _Key(NamedTuple):
    """A key of the index: an attribute, or a vertex as class, as constant, or as anything."""

    kind: Literal["attribute", "class", "constant", "anything"]
    term: Term | None = None


_ANYTHING = _Key("anything")
_VALUE = Variable("value")
"""Replaces any tested variable, so that equal constraints are one."""


@dataclass(slots=True, eq=False)
class _Node:
    """A step that subscriptions share; `lists` are the subscriptions that begin here."""

    constraint: tuple[Filter, ...]
    lists: list[GraphPattern] = field(default_factory=list)


class IBroker(GraphMatcher):
    """iBroker (Park, Chung 2009): subscriptions are lists of nodes, which edges make true."""

    def clear(self) -> None:
        self._levels: dict[_Key, dict[_Key, dict[tuple[Filter, ...], _Node]]] = {}
        self._lists: dict[GraphPattern, tuple[_Node, ...]] = {}

    def insert(self, pattern: GraphPattern) -> None:
        """Store a subscription as a list with two nodes for each edge; create missing nodes."""
        nodes = []
        for start, label, end in pattern.edges:
            attribute = _Key("attribute", label)
            key, constraint = self._asked(start, pattern)
            nodes.append(self._node(key, attribute, constraint))
            key, constraint = self._asked(end, pattern)
            nodes.append(self._node(attribute, key, constraint))
        nodes[0].lists.append(pattern)
        self._lists[pattern] = tuple(nodes)

    def _node(self, first: _Key, second: _Key, constraint: tuple[Filter, ...]) -> _Node:
        nodes = self._levels.setdefault(first, {}).setdefault(second, {})
        return nodes.setdefault(constraint, _Node(constraint))

    def _asked(self, vertex: Vertex, pattern: GraphPattern) -> tuple[_Key, tuple[Filter, ...]]:
        """Return the key of a subscription's vertex, and its filters that the key leaves open."""
        if not isinstance(vertex, int):
            return _Key("constant", vertex), ()
        tests = [_nameless(test) for test in pattern.tests.get(vertex, ())]
        for test in tests:
            if isinstance(test, TaxonomyTest) and test.operator is TaxonomyOperator.DESCENDANT:
                rest = tuple(other for other in tests if other is not test)
                return _Key("class", self.ontology.root(test.concept)), rest
        return _ANYTHING, tuple(tests)

    def left(self, pattern: GraphPattern) -> Tests:
        """Return no filters, because the nodes have tested all."""
        return {}

    def matched(
        self, publication: Publication, links: Links, tally: Tally
    ) -> Iterator[tuple[GraphPattern, list[Row]]]:
        """Yield the subscriptions whose nodes are all true and whose edges join, with the rows."""
        true = self._true(publication, links, tally)
        for pattern in (pattern for node in true for pattern in node.lists):
            tally.candidates += 1
            nodes = self._lists[pattern]
            if all(node in true for node in nodes):
                steps = zip(nodes[::2], nodes[1::2], strict=True)
                tables = [[(t[0], t[2]) for t in true[a] if t in true[b]] for a, b in steps]
                if rows := join(pattern.edges, tables, tally):
                    yield pattern, rows

    def _true(
        self, publication: Publication, links: Links, tally: Tally
    ) -> dict[_Node, dict[Triple, None]]:
        """Return the nodes that edges of the publication make true, with these edges."""
        true: dict[_Node, dict[Triple, None]] = {}
        way_up: dict[Term, list[_Key]] = {}
        for triple in publication.triples:
            start, label, end = triple
            attribute = _Key("attribute", label)
            for vertex in (start, end):
                if vertex not in way_up:
                    way_up[vertex] = self._way_up(vertex, links)
            steps = [(start, key, attribute) for key in way_up[start]]
            steps += [(end, attribute, key) for key in way_up[end]]
            for vertex, first, second in steps:
                tally.probes += 1
                for node in self._levels.get(first, {}).get(second, {}).values():
                    if all(self.passes(test, vertex, links) for test in node.constraint):
                        true.setdefault(node, {})[triple] = None
        tally.index_hits = len(true)
        return true

    def _way_up(self, vertex: Term, links: Links) -> list[_Key]:
        """Return the keys that a vertex satisfies: itself, anything, and every class above it."""
        root = self.ontology.root(vertex)
        above = dict.fromkeys([root, *self.ontology.ancestors(vertex, links)])
        classes = (_Key("class", class_) for class_ in above)
        return [_Key("constant", vertex), _ANYTHING, *classes]


def _nameless(test: Filter) -> Filter:
    """Return a filter with `_VALUE` as its variable."""
    if isinstance(test, AnyOf):
        alternatives = tuple(replace(one, variable=_VALUE) for one in test.tests)
        return replace(test, variable=_VALUE, tests=alternatives)
    return replace(test, variable=_VALUE)
