"""The common part of the algorithms on graphs: subscriptions as graphs, and the protocol.

In these papers a subscription is a set of edges between vertices. A vertex is a term or a *star*:
``*1``, ``*2``, …, the variables of a subscription in the order in which they occur (G-ToPSS,
section 4.1). An algorithm finds the subscriptions whose edges are all in a publication, with the
bindings of their stars. The remaining filters are tested on these bindings (G-ToPSS, section 4.2:
CheckConstraint). SPARQL's filters of one variable replace the paper's constraints ``(?x, op, v)``
(section 3.2).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

from pyoxigraph import Variable

from graphmatch.matcher import Capabilities, UnsupportedError
from graphmatch.published.attribute_matcher import PublishedMatcher, Tally
from graphmatch.report import MatchReport
from graphmatch.subscription import Subscription
from semantic.branch import Filter, QueryForm, TaxonomyOperator, TaxonomyTest
from semantic.filter_evaluation import holds, taxonomy_test
from semantic.ontology.ontology import Links
from semantic.publication import Publication
from semantic.terms import Solution, Term

Star: TypeAlias = int
"""A variable's number in its subscription, from 1."""

Vertex: TypeAlias = Term | Star

Row: TypeAlias = Mapping[Star, Term]
"""The binding of each star."""

Tests: TypeAlias = Mapping[Star, tuple[Filter, ...]]


class Edge(NamedTuple):
    """An edge of a subscription, from v to w."""

    v: Vertex
    label: Term
    w: Vertex

    @property
    def stars(self) -> frozenset[Star]:
        """The numbers of the variables (the papers' stars) among the edge's two vertices."""
        return frozenset(vertex for vertex in (self.v, self.w) if isinstance(vertex, int))


@dataclass(frozen=True, slots=True, eq=False)
class GraphPattern:
    """A subscription as a graph; each is equal to itself only.

    `edges` are in an order for joins: each edge adds as few new stars as possible, and shares a
    star with an earlier edge if it can. There are `stars` stars. `names` pairs the name of each
    variable in a solution with its star.
    """

    id: str
    edges: tuple[Edge, ...]
    stars: int
    tests: Tests
    names: tuple[tuple[str, Star], ...]
    distinct: bool

    @classmethod
    def of(cls, subscription: Subscription) -> GraphPattern:
        """Convert a subscription to a graph.

        Raise `UnsupportedError` if it is more than one basic graph pattern with filters of one
        variable each, or has a variable in a property's place.
        """
        if not subscription.exact or len(subscription.branches) != 1:
            raise UnsupportedError(subscription.id, ", ".join(subscription.remainder))
        (branch,) = subscription.branches
        stars: dict[Variable, Star] = {}

        def vertex(node: Variable | Term) -> Vertex:
            return stars.setdefault(node, len(stars) + 1) if isinstance(node, Variable) else node

        edges: list[Edge] = []
        for pattern in dict.fromkeys(branch.patterns):
            if isinstance(pattern.predicate, Variable):
                raise UnsupportedError(subscription.id, "a variable in a property's place")
            edges.append(Edge(vertex(pattern.subject), pattern.predicate, vertex(pattern.object)))
        tests: dict[Star, tuple[Filter, ...]] = {}
        for filter_ in branch.filters:
            star = stars[filter_.variable]
            tests[star] = (*tests.get(star, ()), filter_)
        names = tuple((v.value, stars[v]) for v in subscription.projection if v in stars)
        distinct = subscription.distinct or subscription.form is QueryForm.ASK
        return cls(subscription.id, _joinable(edges), len(stars), tests, names, distinct)


def _joinable(edges: list[Edge]) -> tuple[Edge, ...]:
    ordered: list[Edge] = []
    reached: frozenset[Star] = frozenset()
    while edges:
        edge = min(edges, key=lambda e: (len(e.stars - reached), not e.stars & reached))
        edges.remove(edge)
        ordered.append(edge)
        reached |= edge.stars
    return tuple(ordered)


class GraphMatcher(PublishedMatcher):
    """Base class of the algorithms on graphs, which add `clear`, `insert` and `matched`.

    The ontology is the taxonomy of the is-a operators. Its triples are not edges to match.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(property_variables=False)

    @abstractmethod
    def insert(self, pattern: GraphPattern) -> None:
        """Add a subscription's graph to the index."""

    @abstractmethod
    def matched(
        self, publication: Publication, links: Links, tally: Tally
    ) -> Iterable[tuple[GraphPattern, list[Row]]]:
        """Yield the subscriptions whose edges are all in a publication, once each, with bindings.

        `links` maps terms to their direct parents, as stated in the publication. Add the work done
        to `tally`. The filters of `left` are not tested yet.
        """

    def read(self, subscription: Subscription) -> GraphPattern:
        return GraphPattern.of(subscription)

    def add(self, read: GraphPattern) -> None:
        super().add(read)
        self.insert(read)

    def left(self, pattern: GraphPattern) -> Tests:
        """Return the filters that `matched` does not test; `match` tests them on its rows."""
        return pattern.tests

    def is_below(self, term: Term, concept: Term, links: Links) -> bool:
        """Return whether a term is the class `concept` or a descendant of it, also by `links`."""
        return self.ontology.is_a(term, concept, links)

    def passes(self, filter_: Filter, value: Term, links: Links) -> bool:
        """Return whether a term passes a filter (G-ToPSS, section 4.2: isTrue)."""

        def isa(test: TaxonomyTest, term: Term) -> bool:
            if test.operator is TaxonomyOperator.DESCENDANT:
                return self.is_below(term, test.concept, links)
            return taxonomy_test(self.ontology, test.operator, term, test.concept, links)

        return holds(filter_, value, isa)

    def match(self, publication: Publication) -> MatchReport:
        tally, links = Tally(), self.ontology.links(publication)
        found: dict[str, list[Solution]] = {}
        for pattern, rows in self.matched(publication, links, tally):
            left = self.left(pattern)
            tally.verified += len(rows) if left else 0
            solutions: list[Solution] = [
                {name: row[star] for name, star in pattern.names}
                for row in rows
                if all(self.passes(t, row[star], links) for star in left for t in left[star])
            ]
            if solutions:
                found[pattern.id] = solutions
        return self.report(publication, found, tally)
