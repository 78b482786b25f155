"""What every algorithm on graphs does alike: ids, laws of the protocol, and solutions.

An algorithm numbers subscriptions from 0, and says of each that a publication matches which
vertices its stars can be bound to. Numbers are used again, so that its arrays stay as large as they
were at most. Filters that the index does not decide are tested on these rows
(G-ToPSS, section 4.2: CheckConstraint).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import ClassVar

from graphmatch.matcher import (
    Capabilities,
    Counters,
    DuplicateError,
    Match,
    Matcher,
    MatchReport,
    UnknownError,
)
from graphmatch.published.graphs.numbers import Ids
from graphmatch.published.graphs.pattern import GraphPattern, Star
from graphmatch.subscription import Subscription
from semantic.filter_evaluation import holds, taxonomy_test
from semantic.ontology.ontology import Links, Ontology
from semantic.pattern import Filter, TaxonomyOperator, TaxonomyTest
from semantic.publication import Publication
from semantic.terms import Solution, Term


@dataclass(slots=True)
class Tally:
    """What an algorithm did for a publication, as `graphmatch.matcher.Counters` names it.

    Parameters
    ----------
    probes
        Look-ups in the index.
    gates
        Keys of the index that the publication has.
    candidates
        Subscriptions that were looked at one by one.
    joins
        Natural joins of two binding tables.
    """

    probes: int = 0
    gates: int = 0
    candidates: int = 0
    joins: int = 0


@dataclass
class Arrived:
    """A publication that is being matched.

    Parameters
    ----------
    ontology
        Of which the publication's own is-a links are an extension.
    """

    publication: Publication
    ontology: Ontology

    @cached_property
    def links(self) -> Links:
        """The is-a links that the publication states itself."""
        return self.ontology.links(self.publication)


@dataclass(frozen=True, slots=True)
class Found:
    """What an algorithm found.

    Parameters
    ----------
    rows
        Number of a subscription to its bindings, shape ``(rows, stars)``; none is empty.
    terms
        What the numbers in the rows mean.
    """

    rows: Iterable[tuple[int, Ids]]
    terms: Mapping[int, Term]


@dataclass(slots=True)
class _Stored:
    pattern: GraphPattern
    left: Mapping[Star, tuple[Filter, ...]]
    number: int
    serial: int


class GraphMatcher(Matcher):
    """The common part; an algorithm has `insert`, `remove` and `matched`.

    Parameters
    ----------
    ontology
        The taxonomy for the is-a operators.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(property_variables=False)

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology
        self._stored: dict[str, _Stored] = {}
        self._of: dict[int, str] = {}
        self._free: list[int] = []
        self._serials = count()

    # --- What an algorithm is ---------------------------------------------------------------

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """How large the index is."""

    @abstractmethod
    def insert(self, number: int, pattern: GraphPattern) -> None:
        """Put a subscription into the index, under a number that is free."""

    @abstractmethod
    def remove(self, number: int, pattern: GraphPattern) -> None:
        """Take the subscription with this number out."""

    @abstractmethod
    def matched(self, arrived: Arrived, tally: Tally) -> Found:
        """Return the subscriptions whose edges a publication has, each once, with bindings."""

    def left(self, pattern: GraphPattern) -> Mapping[Star, tuple[Filter, ...]]:
        """Return the filters that rows have to be tested with: all that the index leaves open."""
        return pattern.tests

    def is_below(self, term: Term, concept: Term, arrived: Arrived) -> bool:
        """Say whether a term is a class, or below it."""
        return self.ontology.is_a(term, concept, arrived.links)

    # --- The protocol -------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._stored)

    def __contains__(self, id: object) -> bool:
        return id in self._stored

    def subscribe(self, subscription: Subscription) -> None:
        """Take a subscription in; see `Matcher`."""
        if subscription.id in self._stored:
            raise DuplicateError(subscription.id)
        pattern = GraphPattern.of(subscription)
        number = self._free.pop() if self._free else len(self._of)
        self.insert(number, pattern)
        self._of[number] = pattern.id
        self._stored[pattern.id] = _Stored(pattern, self.left(pattern), number, next(self._serials))

    def unsubscribe(self, id: str) -> None:
        """Forget a subscription; see `Matcher`."""
        stored = self._stored.pop(id, None)
        if stored is None:
            raise UnknownError(id)
        self.remove(stored.number, stored.pattern)
        del self._of[stored.number]
        self._free.append(stored.number)

    def match(self, publication: Publication) -> MatchReport:
        """Match a publication; see `Matcher`."""
        tally, arrived = Tally(), Arrived(publication, self.ontology)
        found = self.matched(arrived, tally)
        solved: dict[str, tuple[Solution, ...]] = {}
        verified = 0
        for number, rows in found.rows:
            stored = self._stored[self._of[number]]
            verified += len(rows) if stored.left else 0
            solutions = self._solutions(stored, rows, found.terms, arrived)
            if solutions:
                solved[stored.pattern.id] = solutions
        matches = tuple(
            Match(id, publication.id, solved[id])
            for id in sorted(solved, key=lambda id: self._stored[id].serial)
        )
        counters = Counters(
            tally.probes,
            tally.gates,
            tally.candidates,
            tally.joins,
            verified,
            matched=len(matches),
        )
        return MatchReport(publication.id, matches, counters)

    # --- Solutions --------------------------------------------------------------------------

    def _solutions(
        self, stored: _Stored, rows: Ids, terms: Mapping[int, Term], arrived: Arrived
    ) -> tuple[Solution, ...]:
        solutions: list[Solution] = []
        seen = set()
        for row in rows.tolist():
            if not all(
                self.passes(test, terms[row[star - 1]], arrived)
                for star, tests in stored.left.items()
                for test in tests
            ):
                continue
            solution = {name: terms[row[star - 1]] for name, star in stored.pattern.names}
            if stored.pattern.distinct:
                key = tuple(solution.values())
                if key in seen:
                    continue
                seen.add(key)
            solutions.append(solution)
        return tuple(solutions)

    def passes(self, filter_: Filter, value: Term, arrived: Arrived) -> bool:
        """Say whether a term passes a filter (G-ToPSS, section 4.2: isTrue)."""

        def isa(test: TaxonomyTest, term: Term) -> bool:
            if test.operator is TaxonomyOperator.DESCENDANT:
                return self.is_below(term, test.concept, arrived)
            return taxonomy_test(self.ontology, test.operator, term, test.concept, arrived.links)

        return holds(filter_, value, isa)
