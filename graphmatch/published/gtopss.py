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
subscriptions of which all edges were hit (section 4.3). Plain Python.

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
  edges were not all hit: their join has an empty table and gives no rows.
- The order of the joins is left open; here each edge comes after one that it shares a
  star with, where there is one.
- isTrue (section 4.2) compares for ``=``; section 3.2 says "direct instance (a child)".
  Section 3.2 holds here. ``≤`` and ``≥`` include the class itself.
- Constraints are those of SPARQL that test one variable: tests of text, ``!=`` and
  alternatives too, of which section 3.2 says nothing.
- Instances of a class come from the taxonomy and from the publication's own
  ``rdf:type`` and is-a triples (section 3.4 allows both).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import ClassVar, TypeAlias

from pyoxigraph import Variable

from graphmatch.matcher import (
    Capabilities,
    Counters,
    DuplicateError,
    Match,
    Matcher,
    MatchReport,
    UnknownError,
    UnsupportedError,
)
from semantic.decision import holds
from semantic.evaluation import taxonomy_test
from semantic.ontology.ontology import Ontology
from semantic.ontology.walks import Links
from semantic.pattern import Filter, Form, TaxonomyTest, TriplePattern
from semantic.publication import Publication
from semantic.subscription import Subscription
from semantic.terms import Solution, Term, Triple

Star: TypeAlias = int
"""``*1``, ``*2``, …: a variable's number in its subscription."""

Vertex: TypeAlias = Term | Star

Row: TypeAlias = dict[Star, Term]
"""Star to the vertex bound to it."""


@dataclass(slots=True, eq=False)
class _Edge:
    """An edge of G_M."""

    key: tuple[Vertex, Vertex]
    label: Term
    subscriptions: dict[str, None] = field(default_factory=dict)
    binding_table: list[tuple[Term, Term]] = field(default_factory=list)

    def stars(self) -> tuple[Star, ...]:
        """Return the stars among the edge's vertices."""
        return tuple(dict.fromkeys(v for v in self.key if isinstance(v, int)))

    def rows(self) -> Iterator[Row]:
        """Yield the binding table's rows as bindings of the edge's stars."""
        start, end = self.key
        for v, w in self.binding_table:
            row: Row = {}
            if isinstance(start, int):
                row[start] = v
            if isinstance(end, int):
                row[end] = w
            yield row


@dataclass(slots=True, eq=False)
class _Stored:
    """A subscription's edges in G_M, its stars, and how often it was counted."""

    subscription: Subscription
    stars: dict[Variable, Star]
    edges: tuple[_Edge, ...]
    serial: int
    edge_count: int = 0


class GToPSS(Matcher):
    """The G-ToPSS index.

    Parameters
    ----------
    ontology
        The taxonomy for the is-a operators.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from semantic.sparql.parse import SubscriptionParser
    >>> gtopss = GToPSS(Ontology())
    >>> gtopss.subscribe(SubscriptionParser().parse("s", "SELECT ?x { <urn:a> <urn:p> ?x }"))
    >>> triple = (NamedNode("urn:a"), NamedNode("urn:p"), NamedNode("urn:b"))
    >>> [m.solutions[0]["x"].value for m in gtopss.match(Publication.of("p", [triple]))]
    ['urn:b']
    """

    capabilities: ClassVar = Capabilities(property_variables=False)

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology
        self._t1: dict[tuple[Vertex, Vertex], dict[Term, _Edge]] = {}
        self._stored: dict[str, _Stored] = {}
        self._serials = count()
        self._stars: Counter[int] = Counter()
        """How many subscriptions have each number of stars."""

    def __len__(self) -> int:
        return len(self._stored)

    def __contains__(self, id: object) -> bool:
        return id in self._stored

    @property
    def edges(self) -> int:
        """How many edges the merged graph G_M has."""
        return sum(map(len, self._t1.values()))

    def subscribe(self, subscription: Subscription) -> None:
        """Insert a subscription (Algorithm Insert, section 4.2)."""
        if subscription.id in self._stored:
            raise DuplicateError(subscription.id)
        if not subscription.exact or len(subscription.branches) != 1:
            raise UnsupportedError(subscription.id, ", ".join(subscription.remainder))
        patterns = tuple(dict.fromkeys(subscription.branches[0].patterns))
        if any(isinstance(p.predicate, Variable) for p in patterns):
            raise UnsupportedError(subscription.id, "a variable in a property's place")
        stars: dict[Variable, Star] = {}
        for pattern in patterns:
            for node in (pattern.subject, pattern.object):
                if isinstance(node, Variable):
                    stars.setdefault(node, len(stars) + 1)
        edges = tuple(self._insert(pattern, stars, subscription.id) for pattern in patterns)
        self._stored[subscription.id] = _Stored(
            subscription, stars, _joinable(edges), next(self._serials)
        )
        self._stars[len(stars)] += 1

    def _insert(self, pattern: TriplePattern, stars: dict[Variable, Star], id: str) -> _Edge:
        start, end = (
            stars[node] if isinstance(node, Variable) else node
            for node in (pattern.subject, pattern.object)
        )
        assert not isinstance(pattern.predicate, Variable)
        t2 = self._t1.setdefault((start, end), {})
        edge = t2.get(pattern.predicate)
        if edge is None:
            edge = t2[pattern.predicate] = _Edge((start, end), pattern.predicate)
        edge.subscriptions[id] = None
        return edge

    def unsubscribe(self, id: str) -> None:
        """Take a subscription out, and the edges of G_M that only it had."""
        stored = self._stored.pop(id, None)
        if stored is None:
            raise UnknownError(id)
        number = len(stored.stars)
        self._stars[number] -= 1
        if not self._stars[number]:
            del self._stars[number]
        for edge in stored.edges:
            del edge.subscriptions[id]
            if not edge.subscriptions:
                del self._t1[edge.key][edge.label]
                if not self._t1[edge.key]:
                    del self._t1[edge.key]

    def match(self, publication: Publication) -> MatchReport:
        """Match a publication (Algorithm match, section 4.2)."""
        hit, probes = self._match_edges(publication.triples)
        subset = dict.fromkeys(id for edge in hit for id in edge.subscriptions)
        links = self.ontology.links(publication)
        matches, joins = [], 0
        for id in sorted(subset, key=lambda id: self._stored[id].serial):
            stored = self._stored[id]
            if stored.edge_count >= len(stored.edges):
                joins += len(stored.edges) - 1
                solutions = tuple(self._solutions(stored, links))
                if solutions:
                    matches.append(Match(id, publication.id, solutions))
            stored.edge_count = 0
        for edge in hit:
            edge.binding_table.clear()
        counters = Counters(probes, len(hit), len(subset), joins, matched=len(matches))
        return MatchReport(publication.id, tuple(matches), counters)

    def _match_edges(self, triples: Iterable[Triple]) -> tuple[dict[_Edge, None], int]:
        """Fill the binding tables: the first stage."""
        hit: dict[_Edge, None] = {}
        probes = 0
        most = max(self._stars, default=0)
        for start, label, end in triples:
            for key in self._completed(start, end, most):
                probes += 1
                t2 = self._t1.get(key)
                edge = t2.get(label) if t2 is not None else None
                if edge is None:
                    continue
                hit[edge] = None
                edge.binding_table.append((start, end))
                for id in edge.subscriptions:
                    self._stored[id].edge_count += 1
        return hit, probes

    def _completed(self, start: Term, end: Term, most: int) -> Iterator[tuple[Vertex, Vertex]]:
        """Yield the vertex pairs of the completed graph of one edge, with at most so many stars."""
        stars = range(1, most + 1)
        yield start, end
        for i in stars:
            yield start, i
            yield i, end
            for j in stars:
                if i != j or start == end:
                    yield i, j

    def _solutions(self, stored: _Stored, links: Links) -> Iterator[Solution]:
        """Join the binding tables and check the constraints: the second stage."""
        rows: list[Row] = [{}]
        joined: set[Star] = set()
        for edge in stored.edges:
            rows = _natural_join(rows, edge, joined)
            joined.update(edge.stars())
            if not rows:
                return
        subscription = stored.subscription
        filters = subscription.branches[0].filters
        names = [(v.value, stored.stars[v]) for v in subscription.projection if v in stored.stars]
        seen = set()
        for row in rows:
            if not all(self._is_true(f, row[stored.stars[f.variable]], links) for f in filters):
                continue
            solution = {name: row[star] for name, star in names}
            if subscription.distinct or subscription.form is Form.ASK:
                key = tuple(solution.values())
                if key in seen:
                    continue
                seen.add(key)
            yield solution

    def _is_true(self, filter_: Filter, value: Term, links: Links) -> bool:
        def isa(test: TaxonomyTest, term: Term) -> bool:
            return taxonomy_test(self.ontology, test.operator, term, test.concept, links)

        return holds(filter_, value, isa)


def _joinable(edges: tuple[_Edge, ...]) -> tuple[_Edge, ...]:
    """Order edges so that each shares a star with an earlier one, where there is one."""
    rest, ordered = list(edges), []
    reached: set[Star] = set()
    while rest:
        edge = next((e for e in rest if reached.intersection(e.stars())), rest[0])
        rest.remove(edge)
        ordered.append(edge)
        reached.update(edge.stars())
    return tuple(ordered)


def _natural_join(rows: list[Row], edge: _Edge, joined: set[Star]) -> list[Row]:
    """Join rows with an edge's binding table on the stars they share."""
    common = [star for star in edge.stars() if star in joined]
    by_key: dict[tuple[Term, ...], list[Row]] = {}
    for row in edge.rows():
        by_key.setdefault(tuple(row[star] for star in common), []).append(row)
    return [
        row | other for row in rows for other in by_key.get(tuple(row[star] for star in common), ())
    ]
