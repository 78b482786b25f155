"""The common part of the algorithms on attributes: constraints, events, and the protocol.

In these papers a subscription is a conjunction of constraints, one for each attribute. An event has
one value for each attribute (CTPS, section 3.3; DEXIN, section 2.1; Gryphon, section 2). An
algorithm returns the numbers of the conjunctions that an event matches. This module turns
subscriptions into conjunctions, publications into events, and numbers into solutions.
`PublishedMatcher` also serves the algorithms on graphs. It documents the methods, and overriding
methods do not repeat that.

Numbers are doubles, as in the papers: two numbers that round to one double are equal here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from gc import get_referents
from itertools import chain, product
from math import inf, isnan, nextafter
from sys import getsizeof
from types import FunctionType
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, Triple, Variable

from graphmatch.matcher import (
    Capabilities,
    DuplicateSubscriptionError,
    Matcher,
    UnknownSubscriptionError,
    UnsupportedError,
)
from graphmatch.report import Counters, Match, MatchReport
from graphmatch.subscription import Subscription
from semantic.branch import Comparison, Filter, QueryForm, TaxonomyOperator, TaxonomyTest, Unequal
from semantic.filter_evaluation import holds, taxonomy_test
from semantic.ontology.ontology import Links, Ontology
from semantic.publication import Publication
from semantic.terms import Solution, Term
from semantic.values import ComparisonOperator, Number, value_of
from semantic.vocabulary import TYPE


class Interval(NamedTuple):
    """The doubles from `low` to `high`, both included; ``< 400`` ends at the double before 400."""

    low: float = -inf
    high: float = inf

    def holds(self, value: float) -> bool:
        """Return whether the interval contains a number."""
        return self.low <= value <= self.high

    @classmethod
    def of(cls, operator: ComparisonOperator, number: float) -> Interval:
        """Return the interval of the numbers ``x`` for which ``x operator number`` is true.

        It is empty (`low` is above `high`) if there are none.
        """
        match operator:
            case ComparisonOperator.EQ:
                return cls(number, number)
            case ComparisonOperator.LT:
                return cls(high=nextafter(number, -inf)) if number > -inf else cls(inf, -inf)
            case ComparisonOperator.LE:
                return cls(high=number)
            case ComparisonOperator.GT:
                return cls(low=nextafter(number, inf)) if number < inf else cls(inf, -inf)
            case ComparisonOperator.GE:
                return cls(low=number)


@dataclass(frozen=True, slots=True)
class Equal:
    """The constraint that the value is this term."""

    term: Term


@dataclass(frozen=True, slots=True)
class Below:
    """The constraint that the value is this class or a descendant of it (``gm:descendantOf``)."""

    concept: Term


@dataclass(frozen=True, slots=True)
class Present:
    """The constraint that the attribute has a value, whatever it is."""


Constraint: TypeAlias = Interval | Equal | Below | Present
Row: TypeAlias = Mapping[NamedNode, Constraint]
"""The constraint on each attribute of one conjunction."""


@dataclass(frozen=True, slots=True)
class Conjunction:
    """A subscription as constraints on the attributes of one resource.

    `subject` stands for the resource. `rows` are alternatives: more than one if an attribute has
    several ranges (``!=``), none if it has no possible range. `names` pairs the name of each
    variable in a solution with its attribute, or with ``None`` for the subject. `filters` are the
    tests that the attributes' values in a solution must pass.
    """

    id: str
    subject: Variable | Term
    rows: tuple[Row, ...]
    names: tuple[tuple[str, NamedNode | None], ...] = ()
    filters: Mapping[NamedNode, tuple[Filter | Equal, ...]] = field(default_factory=dict)
    distinct: bool = False

    @classmethod
    def of(cls, subscription: Subscription, kinds: Collection[type]) -> Conjunction:
        """Convert a subscription to constraints.

        Raise `UnsupportedError` if it is not a conjunction of constraints on one resource, or needs
        a constraint type that is not in `kinds`.
        """
        id = subscription.id
        if not subscription.exact or len(subscription.branches) != 1:
            raise UnsupportedError(id, ", ".join(subscription.remainder))
        branch = subscription.branches[0]
        subject = branch.patterns[0].subject
        values: dict[NamedNode, Variable | Term] = {}
        for pattern in dict.fromkeys(branch.patterns):
            attribute, value = pattern.predicate, pattern.object
            if pattern.subject != subject:
                raise UnsupportedError(id, "patterns with several subjects")
            if not isinstance(attribute, NamedNode):
                raise UnsupportedError(id, "a variable in a property's place")
            if attribute in values:
                raise UnsupportedError(id, "two patterns with one attribute")
            if isinstance(value, Variable) and value in (subject, *values.values()):
                raise UnsupportedError(id, "a variable in several places")
            values[attribute] = value
        tests: dict[Variable | Term, list[Filter]] = defaultdict(list)
        for filter_ in branch.filters:
            if filter_.variable not in values.values():
                raise UnsupportedError(id, "a test of another term than a value")
            tests[filter_.variable].append(filter_)
        filters: dict[NamedNode, tuple[Filter | Equal, ...]] = {}
        choices: dict[NamedNode, tuple[Constraint, ...]] = {}
        for attribute, value in values.items():
            if isinstance(value, Variable):
                choices[attribute] = _constraints(id, tests[value])
                filters[attribute] = tuple(tests[value])
            else:
                choices[attribute] = filters[attribute] = (Equal(value),)
            for constraint in choices[attribute]:
                if type(constraint) not in kinds:
                    kind = type(constraint).__name__
                    raise UnsupportedError(id, f"a constraint of this kind: {kind}")
        rows = tuple(dict(zip(choices, row, strict=True)) for row in product(*choices.values()))
        of = {subject: None, **{value: attribute for attribute, value in values.items()}}
        names = tuple((v.value, of[v]) for v in subscription.projection if v in of)
        distinct = subscription.distinct or subscription.form is QueryForm.ASK
        return cls(id, subject, rows, names, filters, distinct)


def _constraints(id: str, tests: list[Filter]) -> tuple[Constraint, ...]:
    """Convert `tests`, all filters of one variable, to a constraint on its value.

    ``!=`` gives several ranges, one of which must contain the value. Impossible filters give none.
    Raise `UnsupportedError` for the subscription `id` if other filters are among them.
    """
    match tests:
        case []:
            return (Present(),)
        case [TaxonomyTest(_, TaxonomyOperator.DESCENDANT, concept)]:
            return (Below(concept),)
        case [Comparison(_, ComparisonOperator.EQ, term)] if _is_name(term):
            return (Equal(term),)
    ranges, holes = [Interval()], set[float]()
    for test in tests:
        number = number_of(test.constant) if isinstance(test, Comparison | Unequal) else None
        if number is None:
            raise UnsupportedError(id, f"FILTER {test.word}")
        if isinstance(test, Comparison):
            ranges = [_both(ranges[0], Interval.of(test.operator, number))]
        else:
            holes.add(number)
    if len(holes) == len(tests):  # a value that is not a number differs from it, too
        raise UnsupportedError(id, "FILTER != without another comparison with a number")
    for hole in sorted(holes):  # two ranges for each (DEXIN, section 2.1)
        whole = ranges.pop()
        ranges += (
            _both(whole, Interval.of(side, hole))
            for side in (ComparisonOperator.LT, ComparisonOperator.GT)
        )
    return tuple(range_ for range_ in ranges if range_.low <= range_.high)


def _both(one: Interval, other: Interval) -> Interval:
    return Interval(max(one.low, other.low), min(one.high, other.high))


def _is_name(term: Term) -> bool:
    return isinstance(term, NamedNode) or isinstance(value_of(term), str)


def number_of(term: Term) -> float | None:
    """Return the number that a literal denotes, as a double; ``None`` for other terms and NaN."""
    value = value_of(term) if isinstance(term, Literal) else None
    number = float(value.value) if isinstance(value, Number) else None
    return None if number is None or isnan(number) else number


@dataclass(slots=True)
class AttributeEvent:
    """An event: the value of each attribute in `terms`, and in `numbers` if it is numeric.

    `links` maps terms to their direct parents, as stated in the publication.
    """

    terms: Mapping[NamedNode, Term]
    numbers: Mapping[NamedNode, float] = field(default_factory=dict)
    links: Links = field(default_factory=dict)

    @classmethod
    def of(cls, terms: Mapping[NamedNode, Term], links: Links | None = None) -> AttributeEvent:
        """Create an event; compute `numbers` from the terms."""
        numbers = ((attribute, number_of(term)) for attribute, term in terms.items())
        return cls(terms, {a: n for a, n in numbers if n is not None}, links or {})


@dataclass(slots=True)
class Resource:
    """A subject of a publication, with the distinct values of each attribute."""

    subject: Term
    values: Mapping[NamedNode, list[Term]]

    def events(
        self, asked: Container[NamedNode], links: Links | None = None
    ) -> Iterator[AttributeEvent]:
        """Yield the events of the resource: one for each combination of its values.

        An event has one value for each attribute in `asked` that the resource has. `links` become
        those of the events.
        """
        chosen = {a: values for a, values in self.values.items() if a in asked}
        for terms in product(*chosen.values()):
            yield AttributeEvent.of(dict(zip(chosen, terms, strict=True)), links)


def resources(publication: Publication) -> list[Resource]:
    """Return the subjects of a publication's triples with their distinct values by attribute."""
    found: defaultdict[Term, defaultdict[NamedNode, dict[Term, None]]]
    found = defaultdict(lambda: defaultdict(dict))
    for subject, attribute, value in publication.triples:
        assert isinstance(attribute, NamedNode)
        found[subject][attribute][value] = None
    return [Resource(s, {a: list(each) for a, each in of.items()}) for s, of in found.items()]


Numbers: TypeAlias = NDArray[np.int64]
Values: TypeAlias = NDArray[np.float64]
Domain: TypeAlias = tuple[float, float]
DOMAIN: Domain = (0.0, 1_000_000.0)
"""The default range of an attribute's values, which is divided into cells. The first and last cell
also take the values beyond it, so cells keep the order of values for any domain."""

RANGES = Capabilities(
    property_variables=False, taxonomy=False, text=False, joins=False, terms=False, presence=False
)
"""The capabilities of an algorithm that only supports ranges of numbers."""


def all_ends(row: Row) -> Iterator[tuple[NamedNode, float, float]]:
    """Yield each attribute of a row with both ends of its range; all constraints are `Interval`."""
    for attribute, constraint in row.items():
        assert isinstance(constraint, Interval)
        yield attribute, constraint.low, constraint.high


class Buckets:
    """Lists of conjunction numbers, each number with an end, or both ends, of its range.

    There are `count` lists. `arrays` concatenates them, and caches the arrays until the next `add`.
    """

    def __init__(self, count: int) -> None:
        self._lists: list[list[tuple[int, float | tuple[float, float]]]] = [
            [] for _ in range(count)
        ]
        self._arrays: tuple[Numbers, Numbers, Values] | None = None

    def add(self, bucket: int, number: int, value: float | tuple[float, float]) -> None:
        """Append the conjunction `number` with its end or ends (`value`) to the list `bucket`."""
        self._lists[bucket].append((number, value))
        self._arrays = None

    def arrays(self) -> tuple[Numbers, Numbers, Values]:
        """Return all lists as three arrays: where each list starts, the numbers, and their ends.

        The first array also has the end of the last list. Not all lists may be empty.
        """
        if self._arrays is None:
            start = np.cumsum([0, *map(len, self._lists)])
            numbers, values = zip(*chain.from_iterable(self._lists), strict=True)
            self._arrays = start, np.array(numbers, np.int64), np.array(values, float)
        return self._arrays


# --- The protocol -------------------------------------------------------------------------------


@dataclass(slots=True)
class Tally:
    """The work of an algorithm for an event, under the names of `graphmatch.report.Counters`."""

    probes: int = 0
    index_hits: int = 0
    candidates: int = 0
    joins: int = 0
    verified: int = 0


_TERMS = NamedNode | BlankNode | Literal | Triple


class PublishedMatcher(Matcher):
    """Base class of all published algorithms: it stores subscriptions and creates reports.

    Most papers do not describe unsubscribing. Here it rebuilds the index: O(all subscriptions).
    """

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology
        self.stored: dict[str, tuple[int, Any]] = {}
        """Maps an id to its place in the order of subscribing, and to the result of `read`."""
        before = set(self.__dict__)
        self.clear()
        self._index = self.__dict__.keys() - before

    @abstractmethod
    def clear(self) -> None:
        """Replace the index by an empty one."""

    @abstractmethod
    def read(self, subscription: Subscription) -> Any:
        """Convert a subscription to an object with `id` and `distinct` that `add` takes.

        Raise `UnsupportedError` if the algorithm cannot express it.
        """

    def add(self, read: Any) -> None:
        """Store a subscription that `read` converted, and index it; its id must be unused."""
        self.stored[read.id] = len(self.stored), read

    def __len__(self) -> int:
        return len(self.stored)

    def __contains__(self, id: object) -> bool:
        return id in self.stored

    def subscribe(self, subscription: Subscription) -> None:
        if subscription.id in self.stored:
            raise DuplicateSubscriptionError(subscription.id)
        self.add(self.read(subscription))

    def unsubscribe(self, id: str) -> None:
        if self.stored.pop(id, None) is None:
            raise UnknownSubscriptionError(id)
        kept, self.stored = self.stored, {}
        self.clear()
        for _, read in kept.values():
            self.add(read)

    def report(
        self, publication: Publication, found: dict[str, list[Solution]], tally: Tally
    ) -> MatchReport:
        """Return a report with a match for each id in `found`, which has the solutions by id.

        Remove duplicate solutions of DISTINCT queries from `found`. `tally` becomes the counters.
        """
        matches = []
        for id in sorted(found, key=lambda id: self.stored[id][0]):
            if self.stored[id][1].distinct:
                found[id] = list({tuple(each.items()): each for each in found[id]}.values())
            matches.append(Match(id, publication.id, tuple(found[id])))
        counters = Counters(**asdict(tally), matched=len(matches))
        return MatchReport(publication.id, tuple(matches), counters)

    @property
    def nbytes(self) -> int:
        """The size of the index's Python objects in bytes, without terms and subscriptions."""
        size, known = 0, {id(read) for _, read in self.stored.values()}
        walk = [self.__dict__[name] for name in self._index]
        while walk:
            each = walk.pop()
            if id(each) not in known and not isinstance(each, type | FunctionType | _TERMS):
                known.add(id(each))
                size += getsizeof(each)
                walk += get_referents(each)
        return size


class AttributeMatcher(PublishedMatcher):
    """Base class of the algorithms on attributes, which add `clear`, `insert` and `matched`.

    `kinds` are the supported types of constraints. `asked` counts the conjunctions that constrain
    each attribute. `ids` has the id of the subscription of each conjunction, by number.
    """

    capabilities: ClassVar[Capabilities] = RANGES
    kinds: ClassVar[frozenset[type]] = frozenset({Interval})

    def __init__(self, ontology: Ontology, domain: Domain = DOMAIN) -> None:
        self.domain = domain
        self.asked: Counter[NamedNode] = Counter()
        self.ids: list[str] = []
        super().__init__(ontology)

    @abstractmethod
    def insert(self, number: int, row: Row) -> None:
        """Add a conjunction to the index under `number`; numbers are consecutive, from 0."""

    @abstractmethod
    def matched(self, event: AttributeEvent, tally: Tally) -> Iterable[int]:
        """Return the numbers of the conjunctions that an event matches, without duplicates.

        Add the work done to `tally`. An inexact algorithm may return too many.
        """

    def cell(self, value: float, cells: int) -> int:
        """Return the cell that contains a number, from 0, if `cells` equal cells divide the domain.

        Numbers beyond the domain are in the first or the last cell.
        """
        low, high = self.domain
        return min(int((min(max(value, low), high) - low) / (high - low) * cells), cells - 1)

    def read(self, subscription: Subscription) -> Conjunction:
        return Conjunction.of(subscription, self.kinds)

    def add(self, read: Conjunction) -> None:
        super().add(read)
        for row in read.rows:
            self.insert(len(self.ids), row)
            self.ids.append(read.id)
            self.asked.update(row.keys())

    def unsubscribe(self, id: str) -> None:
        if id in self.stored:
            self.asked, self.ids = Counter(), []
        super().unsubscribe(id)

    def match(self, publication: Publication) -> MatchReport:
        tally, found = Tally(), dict[str, list[Solution]]()
        links = self.ontology.links(publication)
        for resource in resources(publication):
            events = self.events(resource, links)
            hit = {self.ids[number] for event in events for number in self.matched(event, tally)}
            tally.verified += len(hit)
            for id in hit:
                if solutions := self._solutions(self.stored[id][1], resource, links):
                    found.setdefault(id, []).extend(solutions)
        return self.report(publication, found, tally)

    def events(self, resource: Resource, links: Links) -> Iterable[AttributeEvent]:
        """Return the events of a resource over the constrained attributes (`Resource.events`)."""
        return resource.events(self.asked, links)

    def values(self, resource: Resource, attribute: NamedNode) -> Iterable[Term]:
        """Return the values of a resource that a constraint on `attribute` may accept."""
        return resource.values.get(attribute, ())

    def _solutions(
        self, conjunction: Conjunction, resource: Resource, links: Links
    ) -> list[Solution]:
        """Return the combinations of a resource's values that pass a conjunction's filters.

        An inexact algorithm skips the filters. There is no solution if the subscription names
        another subject.
        """

        def isa(test: TaxonomyTest, term: Term) -> bool:
            return taxonomy_test(self.ontology, test.operator, term, test.concept, links)

        def passes(value: Term, test: Filter | Equal) -> bool:
            return value == test.term if isinstance(test, Equal) else holds(test, value, isa)

        subject, exact = conjunction.subject, self.capabilities.exact
        if not isinstance(subject, Variable) and subject != resource.subject:
            return []
        choices = [
            [v for v in self.values(resource, a) if not exact or all(passes(v, t) for t in tests)]
            for a, tests in conjunction.filters.items()
        ]
        found = list[Solution]()
        for chosen in product(*choices):
            bound = dict(zip(conjunction.filters, chosen, strict=True))
            names = conjunction.names
            found.append({name: resource.subject if a is None else bound[a] for name, a in names})
        return found


# --- Trees of concepts --------------------------------------------------------------------------

Way: TypeAlias = tuple[Term, ...]
"""A term and its ancestors."""


class ConceptMatcher(AttributeMatcher):
    """Base class of the algorithms that use synonyms, subattributes and subclasses.

    CTPS (sections 3 and 4) and S-ToPSS replace synonyms in subscriptions and events by their root.
    Then a subattribute matches the attribute of a constraint, and a value that is a class or its
    descendant matches the class. ``?x a :Computer`` is read as ``gm:descendantOf``.
    """

    capabilities: ClassVar = Capabilities(
        property_variables=False, text=False, joins=False, entailment=True
    )
    kinds: ClassVar = frozenset({Interval, Equal, Below, Present})

    def clear(self) -> None:
        self._ways: dict[Term, Way] = {}

    def read(self, subscription: Subscription) -> Conjunction:
        conjunction = super().read(subscription.rewritten(self.ontology.root))
        of = [row.get(TYPE) for row in conjunction.rows]
        below = ({TYPE: Below(each.term)} if isinstance(each, Equal) else {} for each in of)
        rows = tuple({**row, **type_} for row, type_ in zip(conjunction.rows, below, strict=True))
        return replace(conjunction, rows=rows)

    def match(self, publication: Publication) -> MatchReport:
        return super().match(self.ontology.rewrite(publication))

    def events(self, resource: Resource, links: Links) -> Iterable[AttributeEvent]:
        """Return the events over the resource's attributes that are constrained or below such ones.

        If an attribute has several values and several constrained attributes at or above it, the
        events are over the constrained attributes, because each may accept another value.
        """
        names = {a: sum(b in self.asked for b in self.above(a)) for a in resource.values}
        if any(count > 1 and len(resource.values[a]) > 1 for a, count in names.items()):
            named = {a: list(self.values(resource, a)) for a in self.asked}
            known = {a: values for a, values in named.items() if values}
            return Resource(resource.subject, known).events(self.asked, links)
        return resource.events({a for a, count in names.items() if count}, links)

    def above(self, attribute: NamedNode) -> Way:
        """Return an attribute and its ancestors."""
        return (attribute, *self.ontology.properties.ancestors(attribute))

    def way(self, value: Term, links: Links) -> Way:
        """Return a value and all its ancestors.

        `links` are the is-a links that a publication states. Without them, cache the result for
        terms of the ontology.
        """
        if links:
            return (value, *self.ontology.ancestors(value, links))
        way = self._ways.get(value)
        if way is None:
            way = (value, *self.ontology.ancestors(value))
            if len(way) > 1:  # cache terms of the ontology only, to bound the cache
                self._ways[value] = way
        return way

    def values(self, resource: Resource, attribute: NamedNode) -> Iterable[Term]:
        """Return a resource's values for an attribute and its subattributes.

        For ``rdf:type``, also return the ancestors of these classes.
        """
        found = dict.fromkeys(resource.values.get(attribute, ()))
        if self.ontology.properties.children(attribute):
            for a, values in resource.values.items():
                if attribute in self.above(a):
                    found.update(dict.fromkeys(values))
        if attribute == TYPE:
            classes = self.ontology.classes
            found = dict.fromkeys(c for own in found for c in (own, *classes.ancestors(own)))
        return found
