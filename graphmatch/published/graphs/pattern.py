"""Subscriptions as the papers on graphs have them: edges between vertices, and tests of variables.

A vertex is a term, or a *star*: ``*1``, ``*2``, …, the variables of a subscription in the order in
which they come (G-ToPSS, section 4.1). Each test is one of SPARQL's filters of one variable, which
takes the place of a constraint ``(?x, op, v)`` (section 3.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from pyoxigraph import Variable

from graphmatch.matcher import UnsupportedError
from graphmatch.published.graphs.numbers import Ids
from graphmatch.subscription import Subscription
from semantic.pattern import Filter, Form
from semantic.terms import Term

Star: TypeAlias = int
"""A variable's number in its subscription, from 1."""

Vertex: TypeAlias = Term | Star


class Edge(NamedTuple):
    """An edge of a subscription."""

    start: Vertex
    label: Term
    end: Vertex

    @property
    def stars(self) -> frozenset[Star]:
        """The stars among the edge's vertices."""
        return frozenset(v for v in (self.start, self.end) if isinstance(v, int))


@dataclass(frozen=True, slots=True)
class GraphPattern:
    """A subscription as a graph.

    Parameters
    ----------
    edges
        Each once, in an order for joins: the next one has as few stars as can be that none before
        it has, and shares a star with one before it if any does.
    stars
        How many there are.
    tests
        Star to the filters of that variable, where it has any.
    names
        What a solution binds: the name of a variable, and its star.
    distinct
        Whether equal solutions count once.

    Examples
    --------
    >>> from graphmatch.subscription import SubscriptionParser
    >>> text = "SELECT ?y { ?x <urn:p> ?y . <urn:a> <urn:q> ?x FILTER(?y > 5) }"
    >>> read = GraphPattern.of(SubscriptionParser().parse("s", text))
    >>> [(edge.start, edge.end) for edge in read.edges]
    [(<NamedNode value=urn:a>, 1), (1, 2)]
    >>> read.names, len(read.tests[2])
    ((('y', 2),), 1)
    """

    id: str
    edges: tuple[Edge, ...]
    stars: int
    tests: Mapping[Star, tuple[Filter, ...]]
    names: tuple[tuple[str, Star], ...]
    distinct: bool

    @property
    def ends(self) -> Ids:
        """The stars of each edge, shape ``(edges, 2)``; 0 for a constant."""
        ends = [[v if isinstance(v, int) else 0 for v in (e.start, e.end)] for e in self.edges]
        return np.array(ends, np.int32)

    @classmethod
    def of(cls, subscription: Subscription) -> GraphPattern:
        """Read a subscription as a graph.

        Raises
        ------
        UnsupportedError
            When it is more than one basic graph pattern with filters of one variable each, or has
            a variable in a property's place.
        """
        if not subscription.exact or len(subscription.branches) != 1:
            raise UnsupportedError(subscription.id, ", ".join(subscription.remainder))
        (branch,) = subscription.branches
        if any(isinstance(p.predicate, Variable) for p in branch.patterns):
            raise UnsupportedError(subscription.id, "a variable in a property's place")
        stars: dict[Variable, Star] = {}
        edges: dict[Edge, None] = {}
        for pattern in branch.patterns:
            assert not isinstance(pattern.predicate, Variable)
            start, end = (
                stars.setdefault(node, len(stars) + 1) if isinstance(node, Variable) else node
                for node in (pattern.subject, pattern.object)
            )
            edges[Edge(start, pattern.predicate, end)] = None
        tests: dict[Star, tuple[Filter, ...]] = {}
        for filter_ in branch.filters:
            star = stars[filter_.variable]
            tests[star] = (*tests.get(star, ()), filter_)
        names = tuple((v.value, stars[v]) for v in subscription.projection if v in stars)
        distinct = subscription.distinct or subscription.form is Form.ASK
        return cls(subscription.id, _joinable(edges), len(stars), tests, names, distinct)


def _joinable(edges: Iterable[Edge]) -> tuple[Edge, ...]:
    rest, ordered = list(edges), list[Edge]()
    reached: set[Star] = set()

    def cost(edge: Edge) -> tuple[int, bool]:
        return len(edge.stars - reached), not edge.stars & reached

    while rest:
        edge = min(rest, key=cost)
        rest.remove(edge)
        ordered.append(edge)
        reached |= edge.stars
    return tuple(ordered)
