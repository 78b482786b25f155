"""S-ToPSS: an event becomes all the more general ones, and each is matched by its contents.

Petrovic, Burcea, Jacobsen: "S-ToPSS: Semantic Toronto Publish/Subscribe System", VLDB 2003; here as
CTPS (sections 1 and 2) describes it.

Three stages stand before a matcher that knows nothing of meaning. Synonyms: attributes and values
with different names get their root's. Concepts: an event whose attribute or value has something
above it in the hierarchy is an event with that one in its place, too; so one event becomes as many
as there are choices. Mapping functions: what follows from an event's values otherwise, such as
experience = present date - graduation year, is added to it. The matcher counts: it looks up which
predicates an event's pairs satisfy, and a subscription matches when all of its own do.

Cost: an event with classes at depths d1, d2, ... becomes (d1 + 1)(d2 + 1)... events, each of which
costs as many steps as there are predicates satisfied, and those ranges that begin below its
numbers. Subscriptions are stored once. Plain Python.

Notes
-----
- The paper is not at hand; what is here is from CTPS's description and from memory.
- Any content-based matcher will do (the paper takes that of ToPSS). This one counts: predicates
  are in tables by attribute and value, ranges in a list in the order of their low ends.
- More general events go through the matcher one by one, as if each had been published; nothing
  that was found for one is kept for the next. A match of several of them is one match.
- An attribute's place is taken by each of those above it that somebody asks for, beside its own:
  a subscription may ask for both. Attributes that nobody asks for make no events.
- Only `Below` is met by a value that took another's place: in SPARQL, equality with a class is
  not met by one below it. As in `ctps`, ``?x a :Computer`` asks for those below it, too.
- Mapping functions are SPARQL queries here, as everywhere in this project, and are run before
  events are made; they read what follows by the rules of the ontology, and may feed each other.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import product
from operator import itemgetter
from typing import ClassVar, TypeAlias

from pyoxigraph import NamedNode

from graphmatch.knowledge import Knowledge
from graphmatch.mapping import Mapped, MappingFunctions
from graphmatch.matcher import Capabilities, MatchReport
from graphmatch.published.base import (
    Below,
    ConceptMatcher,
    Equal,
    Event,
    FlatMatcher,
    Interval,
    Present,
    Row,
    Tally,
    number_of,
)
from semantic.errors import Problem
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.terms import Term

Predicate: TypeAlias = tuple[type, Term | None]
"""The sort of a constraint, and its term."""

_PREDICATE, _NUMBER, _RANGE = 300, 40, 170
"""About how many bytes a table's entry with its list, a number, and a range have (estimates)."""


@dataclass(slots=True)
class General(Event):
    """An event made of another.

    Parameters
    ----------
    replaced
        The attributes whose value took another's place.
    """

    replaced: frozenset[NamedNode] = frozenset()


@dataclass(slots=True)
class _Predicates:
    """What is asked of an attribute: predicate to the numbers of those who ask."""

    terms: defaultdict[Predicate, list[int]] = field(default_factory=lambda: defaultdict(list))
    ranges: list[tuple[float, float, int]] = field(default_factory=list)
    """Low end, high end and number, in ascending order."""

    def __bool__(self) -> bool:
        return bool(self.terms or self.ranges)


class SToPSS(ConceptMatcher):
    """S-ToPSS over a counting matcher.

    Parameters
    ----------
    ontology
        Synonyms, hierarchies of attributes and classes, and mapping functions.
    now
        What ``NOW()`` gives in mapping functions; the machine's time by default.

    Raises
    ------
    OntologyError
        When a mapping function has a unit that is unknown.

    Examples
    --------
    >>> from graphmatch.subscription import SubscriptionParser
    >>> from semantic.vocabulary import SUBCLASS
    >>> laptop, computer, target = (NamedNode(f"urn:{n}") for n in ("laptop", "computer", "target"))
    >>> stopss = SToPSS(Ontology([(laptop, SUBCLASS, computer)]))
    >>> text = "SELECT ?e { ?e <urn:target> ?v FILTER(gm:descendantOf(?v, <urn:computer>)) }"
    >>> stopss.subscribe(SubscriptionParser().parse("s", text))
    >>> [event.terms[target].value for event in stopss.general(Event.of({target: laptop}))]
    ['urn:laptop', 'urn:computer']
    """

    capabilities: ClassVar = Capabilities(
        property_variables=False, text=False, joins=False, entailment=True
    )

    def __init__(self, ontology: Ontology, *, now: datetime | None = None) -> None:
        super().__init__(ontology)
        self._now = now
        self._functions = MappingFunctions(ontology.mapping, ontology.root, units=ontology.units)
        self._knowledge = Knowledge(ontology)
        self._predicates: dict[NamedNode, _Predicates] = {}
        self._sizes: dict[int, int] = {}
        """Number to how many predicates a conjunction has."""

    @property
    def nbytes(self) -> int:
        """About how large the index is (an estimate, by counting)."""
        total = len(self._sizes) * _NUMBER
        for predicates in self._predicates.values():
            numbers = sum(map(len, predicates.terms.values()))
            total += len(predicates.terms) * _PREDICATE + numbers * _NUMBER
            total += len(predicates.ranges) * _RANGE
        return total

    def insert(self, number: int, row: Row) -> None:
        """Put each predicate into the tables of its attribute."""
        self._sizes[number] = len(row)
        for attribute, constraint in row.items():
            predicates = self._predicates.setdefault(attribute, _Predicates())
            if isinstance(constraint, Interval):
                insort(predicates.ranges, (*constraint, number))
            else:
                predicates.terms[_predicate(constraint)].append(number)

    def remove(self, number: int, row: Row) -> None:
        """Take each predicate out."""
        del self._sizes[number]
        for attribute, constraint in row.items():
            predicates = self._predicates[attribute]
            if isinstance(constraint, Interval):
                range_ = (*constraint, number)
                del predicates.ranges[bisect_right(predicates.ranges, range_) - 1]
            else:
                predicate = _predicate(constraint)
                predicates.terms[predicate].remove(number)
                if not predicates.terms[predicate]:
                    del predicates.terms[predicate]
            if not predicates:
                del self._predicates[attribute]

    # --- The stages -------------------------------------------------------------------------------

    def match(self, publication: Publication) -> MatchReport:
        """Match a publication, roots put in, with what mapping functions give; see `Matcher`."""
        rooted = self.ontology.rewrite(publication)
        if not len(self._functions):
            return FlatMatcher.match(self, rooted)
        problems: list[Problem] = []
        mapped = self._mapped(rooted, problems)
        report = FlatMatcher.match(self, rooted.with_derived(mapped.mapped))
        counters = report.counters._replace(mapped=mapped.runs)
        return replace(report, counters=counters, problems=tuple(problems))

    def _mapped(self, rooted: Publication, problems: list[Problem]) -> Mapped:
        follow = self.ontology.inference.follow
        closed = follow(rooted.triples)
        run = self._functions.run
        return run(rooted, closed, follow, self._knowledge, self._now, problems.append)

    def general(self, event: Event) -> Iterator[General]:
        """Yield an event for each choice of what is above its attributes and values."""
        found: dict[NamedNode, dict[Term, bool]] = {}
        for attribute, value in event.terms.items():
            for asked in self.above(attribute):
                if asked not in self.asked:
                    continue
                assert isinstance(asked, NamedNode)
                replaces = found.setdefault(asked, {})
                for term in self.way(value, event.links):
                    replaces[term] = replaces.get(term, True) and term != value
        numbers = {term: number_of(term) for terms in found.values() for term in terms}
        for chosen in product(*(terms.items() for terms in found.values())):
            terms = {a: term for a, (term, _) in zip(found, chosen, strict=True)}
            known = {a: n for a, term in terms.items() if (n := numbers[term]) is not None}
            replaced = (a for a, (_, other) in zip(found, chosen, strict=True) if other)
            yield General(terms, known, event.links, frozenset(replaced))

    # --- The counting matcher ---------------------------------------------------------------------

    def matched(self, event: Event, tally: Tally) -> Iterable[int]:
        """Match each more general event by itself, and return what any of them matches."""
        return {number for each in self.general(event) for number in self._counted(each, tally)}

    def _counted(self, event: General, tally: Tally) -> Iterable[int]:
        """Count the predicates that an event satisfies, and return whose are all counted."""
        counts: Counter[int] = Counter()
        for attribute, value in event.terms.items():
            predicates = self._predicates.get(attribute)
            if predicates is None:
                continue
            asked: list[Predicate] = [(Below, value), (Present, None)]
            if attribute not in event.replaced:
                asked.append((Equal, value))
            for predicate in asked:
                tally.probes += 1
                if predicate in predicates.terms:
                    tally.gates += 1
                    counts.update(predicates.terms[predicate])
            if (number := event.numbers.get(attribute)) is not None:
                begun = bisect_right(predicates.ranges, number, key=itemgetter(0))
                tally.probes += begun
                ranges = predicates.ranges[:begun]
                counts.update([n for _, high, n in ranges if high >= number])
        tally.candidates += len(counts)
        return [number for number, count in counts.items() if count == self._sizes[number]]


def _predicate(constraint: Equal | Below | Present) -> Predicate:
    match constraint:
        case Equal(term) | Below(term):
            return type(constraint), term
        case Present():
            return Present, None
