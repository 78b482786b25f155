"""iBroker: subscriptions are lists of constraints, and what several have in common is one node.

Park, Chung: "iBroker: an intelligent broker for ontology-based publish/subscribe systems", ICDE
2009; here as Zhang, Wang, Huang, Yung (CTPS, section 2) describe it.

A subscription is taken apart into steps: from a class to an attribute of it, from the attribute to
the class of its value, from there to the next attribute. The first level of the index is a hash
table of classes and attributes, the second, for each of them, has the class or attribute that comes
next, and leads to a node for each constraint on it. Identical steps of different subscriptions have
one node. A subscription is the linked list of its nodes. For a publication the hierarchy is walked
up from each vertex, the nodes that are met on the way become true, and the lists are traversed.

Cost: for each edge of a publication the classes above both of its vertices, and the constraints
that are there; then the lists whose first node is true, each up to the first node that is false.
Memory: an entry for each step that differs from all others. Plain Python, but for joins.

Notes
-----
- The original was not at hand: what is here is what CTPS says of it in five lines, and inferred.
- An edge is two steps here, whatever comes after it; so a graph is as good as a path.
- Classes, constants and "anything" are kept apart in the first level: a constant matches itself
  only, as in SPARQL. The class of a vertex is that of its first ``gm:descendantOf``; what else is
  asked of a variable is the node's constraint.
- CTPS's nodes are true or false. Here a node has the edges of the publication that made it true,
  because a list all of whose nodes are true says too little: the two steps of an edge have to be
  one edge's, and a variable has to be one vertex. Those edges are joined as in G-ToPSS.
- Which lists are traversed is left open. Here a list hangs at its first node, so that those are
  left out of which the first node is false.
- Attributes have no hierarchy, for they have none in SPARQL without entailment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from sys import getsizeof
from typing import NamedTuple

import numpy as np
from pyoxigraph import Variable

from graphmatch.published.graphs.joins import Joins
from graphmatch.published.graphs.matcher import Arrived, Found, GraphMatcher, Tally
from graphmatch.published.graphs.numbers import TermNumbers
from graphmatch.published.graphs.pattern import GraphPattern, Star, Vertex
from semantic.ontology.ontology import Ontology
from semantic.pattern import AnyOf, Filter, TaxonomyOperator, TaxonomyTest
from semantic.terms import Term


class _Kind(Enum):
    """What a key of either level is."""

    ATTRIBUTE = auto()
    CLASS = auto()
    CONSTANT = auto()
    ANYTHING = auto()


class _Key(NamedTuple):
    """A class or attribute."""

    kind: _Kind
    term: Term | None = None


_ANYTHING = _Key(_Kind.ANYTHING)
_VALUE = Variable("value")
"""Stands for whatever variable is tested, so that equal constraints are one."""


@dataclass(slots=True, eq=False)
class _Node:
    """A step that subscriptions have in common.

    `edges` are those of the publication that make it true; `lists` are the subscriptions whose
    list begins here.
    """

    first: _Key
    second: _Key
    constraint: tuple[Filter, ...]
    uses: int = 0
    lists: dict[int, None] = field(default_factory=dict)
    edges: list[int] = field(default_factory=list)


class IBroker(GraphMatcher):
    """The two levels, and the lists.

    Parameters
    ----------
    ontology
        The taxonomy for the is-a operators.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from semantic.publication import Publication
    >>> from graphmatch.subscription import SubscriptionParser
    >>> ibroker = IBroker(Ontology())
    >>> ibroker.subscribe(SubscriptionParser().parse("s", "SELECT ?x { <urn:a> <urn:p> ?x }"))
    >>> triple = (NamedNode("urn:a"), NamedNode("urn:p"), NamedNode("urn:b"))
    >>> [m.solutions[0]["x"].value for m in ibroker.match(Publication.of("p", [triple]))]
    ['urn:b']
    """

    def __init__(self, ontology: Ontology) -> None:
        super().__init__(ontology)
        self._levels: dict[_Key, dict[_Key, dict[tuple[Filter, ...], _Node]]] = {}
        self._lists: dict[int, tuple[_Node, ...]] = {}
        self._joins = Joins()

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return sum(1 for _ in self._all())

    @property
    def nbytes(self) -> int:
        """How large levels, nodes and lists are, as Python has them, without terms and filters."""
        seconds = self._levels.values()
        sizes = [getsizeof(self._levels), *map(getsizeof, seconds)]
        sizes += [getsizeof(nodes) for second in seconds for nodes in second.values()]
        for node in self._all():
            parts = (node, node.first, node.second, node.constraint, node.lists, node.edges)
            sizes += map(getsizeof, parts)
        lists = getsizeof(self._lists) + sum(map(getsizeof, self._lists.values()))
        return sum(sizes) + lists + self._joins.nbytes

    def _all(self) -> Iterator[_Node]:
        for second in self._levels.values():
            for nodes in second.values():
                yield from nodes.values()

    def insert(self, number: int, pattern: GraphPattern) -> None:
        """Make the subscription's list: two nodes for each edge, new ones where there are none."""
        nodes = []
        for start, label, end in pattern.edges:
            attribute = _Key(_Kind.ATTRIBUTE, label)
            key, constraint = self._asked(start, pattern)
            nodes.append(self._node(key, attribute, constraint))
            key, constraint = self._asked(end, pattern)
            nodes.append(self._node(attribute, key, constraint))
        nodes[0].lists[number] = None
        self._lists[number] = tuple(nodes)
        self._joins.insert_own(number, pattern.ends)

    def _node(self, first: _Key, second: _Key, constraint: tuple[Filter, ...]) -> _Node:
        nodes = self._levels.setdefault(first, {}).setdefault(second, {})
        node = nodes.setdefault(constraint, _Node(first, second, constraint))
        node.uses += 1
        return node

    def _asked(self, vertex: Vertex, pattern: GraphPattern) -> tuple[_Key, tuple[Filter, ...]]:
        """Return what a vertex of a subscription has to be: a class or constant, and the rest."""
        if not isinstance(vertex, int):
            return _Key(_Kind.CONSTANT, vertex), ()
        tests = [_nameless(test) for test in pattern.tests.get(vertex, ())]
        for test in tests:
            if isinstance(test, TaxonomyTest) and test.operator is TaxonomyOperator.DESCENDANT:
                rest = tuple(other for other in tests if other is not test)
                return _Key(_Kind.CLASS, self.ontology.root(test.concept)), rest
        return _ANYTHING, tuple(tests)

    def remove(self, number: int, pattern: GraphPattern) -> None:  # noqa: ARG002 - its list says it
        """Take the list away, and the nodes that only it had."""
        nodes = self._lists.pop(number)
        del nodes[0].lists[number]
        for node in nodes:
            node.uses -= 1
            if not node.uses:
                self._forget(node)
        self._joins.remove_own(number)

    def _forget(self, node: _Node) -> None:
        second = self._levels[node.first]
        del second[node.second][node.constraint]
        if not second[node.second]:
            del second[node.second]
        if not second:
            del self._levels[node.first]

    def left(self, pattern: GraphPattern) -> Mapping[Star, tuple[Filter, ...]]:  # noqa: ARG002
        """Return no filters: nodes have tested all."""
        return {}

    def matched(self, arrived: Arrived, tally: Tally) -> Found:
        """Make nodes true, traverse the lists, and join what their nodes have."""
        true = self._set(arrived, tally)
        rows: list[tuple[int, int]] = []
        whole: list[int] = []
        for number in (number for node in true for number in node.lists):
            tally.candidates += 1
            nodes = self._lists[number]
            if all(node.edges for node in nodes):
                whole.append(number)
                for place, edge in enumerate(self._joins.edges[number].tolist()):
                    first, second = nodes[2 * place : 2 * place + 2]
                    rows += [(edge, hit) for hit in set(first.edges).intersection(second.edges)]
        for node in true:
            node.edges.clear()
        triples, terms = TermNumbers().publication(arrived.publication.triples)
        joined = self._joins.join(np.array(whole, np.int32), self._joins.bind(rows), triples)
        tally.joins = self._joins.made
        return Found(joined, terms)

    def _set(self, arrived: Arrived, tally: Tally) -> dict[_Node, None]:
        """Make those nodes true that an edge of the publication meets."""
        true: dict[_Node, None] = {}
        way_up: dict[Term, list[_Key]] = {}
        for number, (start, label, end) in enumerate(arrived.publication.triples):
            attribute = _Key(_Kind.ATTRIBUTE, label)
            for vertex in (start, end):
                if vertex not in way_up:
                    way_up[vertex] = self._way_up(vertex, arrived)
            steps = [(start, key, attribute) for key in way_up[start]]
            steps += [(end, attribute, key) for key in way_up[end]]
            for vertex, first, second in steps:
                tally.probes += 1
                for node in self._levels.get(first, {}).get(second, {}).values():
                    if all(self.passes(test, vertex, arrived) for test in node.constraint):
                        node.edges.append(number)
                        true[node] = None
        tally.gates = len(true)
        return true

    def _way_up(self, vertex: Term, arrived: Arrived) -> list[_Key]:
        """Return what a vertex is: itself, anything, and every class above it."""
        root = self.ontology.root(vertex)
        above = dict.fromkeys([root, *self.ontology.ancestors(vertex, arrived.links)])
        classes = (_Key(_Kind.CLASS, class_) for class_ in above)
        return [_Key(_Kind.CONSTANT, vertex), _ANYTHING, *classes]


def _nameless(test: Filter) -> Filter:
    """Return a filter with one variable for all."""
    if isinstance(test, AnyOf):
        alternatives = tuple(replace(one, variable=_VALUE) for one in test.tests)
        return replace(test, variable=_VALUE, tests=alternatives)
    return replace(test, variable=_VALUE)
