"""What every algorithm on attributes does alike: ids, laws of the protocol, and solutions.

An algorithm numbers conjunctions from 0, and says which of them an event matches; it sees nothing
of RDF. Numbers are used again, so that its arrays stay as large as they were at most.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count, product
from typing import ClassVar

from pyoxigraph import NamedNode, Variable

from graphmatch.matcher import (
    Capabilities,
    Counters,
    DuplicateError,
    Match,
    Matcher,
    MatchReport,
    UnknownError,
)
from graphmatch.published.flat.constraints import Conjunction, Equal, Interval, Row
from graphmatch.published.flat.events import Event, Resource, resources
from graphmatch.subscription import Subscription
from semantic.filter_evaluation import holds, taxonomy_test
from semantic.ontology.ontology import Links, Ontology
from semantic.pattern import Filter, TaxonomyTest
from semantic.publication import Publication
from semantic.terms import Solution, Term


@dataclass(slots=True)
class Tally:
    """What an algorithm did for an event.

    Parameters
    ----------
    probes
        Look-ups: of keys, cells, slots, or nodes of a tree.
    gates
        Those that led to something.
    candidates
        Conjunctions, or constraints, that were looked at one by one.
    """

    probes: int = 0
    gates: int = 0
    candidates: int = 0


@dataclass(slots=True)
class _Stored:
    conjunction: Conjunction
    numbers: tuple[int, ...]
    serial: int


class FlatMatcher(Matcher):
    """The common part; an algorithm has `insert`, `remove` and `matched`.

    Parameters
    ----------
    ontology
        The taxonomy of classes, for those that know `Below`.

    Attributes
    ----------
    kinds
        The constraints that the algorithm knows.
    """

    capabilities: ClassVar[Capabilities]
    kinds: ClassVar[frozenset[type]] = frozenset({Interval})

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology
        self.asked: Counter[NamedNode] = Counter()
        """Attribute to how many conjunctions ask for it."""
        self._stored: dict[str, _Stored] = {}
        self._of: dict[int, str] = {}
        self._free: list[int] = []
        self._serials = count()

    # --- What an algorithm is ---------------------------------------------------------------

    @abstractmethod
    def insert(self, number: int, row: Row) -> None:
        """Put a conjunction into the index, under a number that is free."""

    @abstractmethod
    def remove(self, number: int, row: Row) -> None:
        """Take the conjunction with this number out."""

    @abstractmethod
    def matched(self, event: Event, tally: Tally) -> Iterable[int]:
        """Return the numbers of the conjunctions that an event matches, each once."""

    # --- The protocol -------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._stored)

    def __contains__(self, id: object) -> bool:
        return id in self._stored

    def subscribe(self, subscription: Subscription) -> None:
        """Take a subscription in; see `Matcher`."""
        if subscription.id in self._stored:
            raise DuplicateError(subscription.id)
        self.add(self.read(subscription))

    def read(self, subscription: Subscription) -> Conjunction:
        """Read a subscription as constraints.

        Raises
        ------
        UnsupportedError
            When the algorithm cannot express it.
        """
        return Conjunction.of(subscription, self.kinds)

    def add(self, conjunction: Conjunction) -> None:
        """Take constraints in, under an id that is free."""
        numbers = []
        for row in conjunction.rows:
            number = self._free.pop() if self._free else len(self._of)
            self._of[number] = conjunction.id
            self.insert(number, row)
            self.asked.update(row.keys())
            numbers.append(number)
        stored = _Stored(conjunction, tuple(numbers), next(self._serials))
        self._stored[conjunction.id] = stored

    def unsubscribe(self, id: str) -> None:
        """Forget a subscription; see `Matcher`."""
        stored = self._stored.pop(id, None)
        if stored is None:
            raise UnknownError(id)
        for number, row in zip(stored.numbers, stored.conjunction.rows, strict=True):
            self.remove(number, row)
            for attribute in row:
                self.asked[attribute] -= 1
                if not self.asked[attribute]:
                    del self.asked[attribute]
            del self._of[number]
            self._free.append(number)

    def match(self, publication: Publication) -> MatchReport:
        """Match every event that a publication is; see `Matcher`."""
        tally, found = Tally(), dict[str, list[Solution]]()
        links = self.ontology.links(publication)
        reported = 0
        for resource in resources(publication):
            hit = {
                self._of[number]
                for event in self.events(resource, links)
                for number in self.matched(event, tally)
            }
            reported += len(hit)
            for id in hit:
                solutions = self._solutions(self._stored[id].conjunction, resource, links)
                if solutions:
                    found.setdefault(id, []).extend(solutions)
        matches = tuple(
            Match(id, publication.id, self._distinct(id, found[id]))
            for id in sorted(found, key=lambda id: self._stored[id].serial)
        )
        counters = Counters(
            tally.probes, tally.gates, tally.candidates, verified=reported, matched=len(matches)
        )
        return MatchReport(publication.id, matches, counters)

    def events(self, resource: Resource, links: Links) -> Iterable[Event]:
        """Return what an algorithm sees of a resource."""
        return resource.events(self.asked, links)

    # --- Solutions --------------------------------------------------------------------------

    def _solutions(
        self, conjunction: Conjunction, resource: Resource, links: Links
    ) -> list[Solution]:
        """Return what an answer binds: each choice of values that pass the filters.

        Of an algorithm that may report too many all choices are taken.
        """
        subject, exact = conjunction.subject, self.capabilities.exact
        if not isinstance(subject, Variable) and subject != resource.subject:
            return []
        choices = [
            [v for v in self.values(resource, a) if not exact or self._passes(v, filters, links)]
            for a, filters in conjunction.filters.items()
        ]
        return [
            {
                name: resource.subject if attribute is None else bound[attribute]
                for name, attribute in conjunction.names
            }
            for chosen in product(*choices)
            for bound in [dict(zip(conjunction.filters, chosen, strict=True))]
        ]

    def values(self, resource: Resource, attribute: NamedNode) -> Iterable[Term]:
        """Return a resource's values for an attribute that a subscription names."""
        return resource.values.get(attribute, ())

    def _passes(self, value: Term, filters: Iterable[Filter | Equal], links: Links) -> bool:
        def isa(test: TaxonomyTest, term: Term) -> bool:
            return taxonomy_test(self.ontology, test.operator, term, test.concept, links)

        return all(
            value == test.term if isinstance(test, Equal) else holds(test, value, isa)
            for test in filters
        )

    def _distinct(self, id: str, solutions: list[Solution]) -> tuple[Solution, ...]:
        if not self._stored[id].conjunction.distinct:
            return tuple(solutions)
        return tuple({tuple(solution.items()): solution for solution in solutions}.values())
