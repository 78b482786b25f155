"""S-ToPSS: an event is expanded into all more general events, and each is matched by its contents.

Petrovic, Burcea, Jacobsen: "S-ToPSS: Semantic Toronto Publish/Subscribe System", VLDB 2003;
reconstructed from Zhang, Wang, Huang, Yung (CTPS, sections 1 and 2), and from memory.

Three stages precede a matcher without semantics:

- Synonyms: attributes and values with different names are replaced by their root.
- Concepts: if an attribute or value of an event has an ancestor, there is also an event with the
  ancestor in its place. So one event becomes as many as there are choices.
- Mapping functions: other values derived from an event's values, such as experience =
  present date minus graduation year, are added to it.

The matcher counts the predicates that an event's pairs satisfy. A subscription matches if all its
predicates are satisfied.

Cost: an event with classes at depths d1, d2, ... becomes (d1 + 1)(d2 + 1)... events. Each takes as
many steps as there are subscriptions, satisfied predicates, and ranges on its attributes.
Subscriptions are stored once.

Notes
-----
- Any content-based matcher will do (the paper uses ToPSS). This one counts.
- More general events are matched one by one, as if each had been published, without shared results.
  A subscription that matches several of them is one match.
- An attribute is replaced by each of its ancestors in a subscription, and also keeps its place: a
  subscription may have both. Attributes that are in no subscription make no events.
- A value that replaced another satisfies `Below` only: in SPARQL, a descendant does not equal a
  class. As in `ctps`, ``?x a :Computer`` includes descendants.
- Mapping functions are SPARQL queries here, and run before events are made.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode

from graphmatch.enrichment import Enricher
from graphmatch.mapping import MappingFunctions
from graphmatch.published.attribute_matcher import (
    AttributeEvent,
    AttributeMatcher,
    Below,
    Buckets,
    ConceptMatcher,
    Constraint,
    Equal,
    Interval,
    Present,
    Row,
    Tally,
)
from graphmatch.report import MatchReport
from semantic.errors import Problem
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.terms import Term

Predicate: TypeAlias = tuple[NamedNode, Constraint]
Counts: TypeAlias = NDArray[np.int32]


@dataclass(slots=True)
class GeneralizedEvent(AttributeEvent):
    """An event made of another; in the attributes `replaced`, an ancestor replaced the value."""

    replaced: frozenset[NamedNode] = frozenset()


class SToPSS(ConceptMatcher):
    """S-ToPSS (Petrovic et al. 2003): match an event and all more general ones, by counting.

    `now` is the result of ``NOW()`` in mapping functions, by default the current time. Raise
    `OntologyError` if a mapping function has an unknown unit.

    Examples
    --------
    >>> from graphmatch.subscription import SubscriptionParser
    >>> from semantic.vocabulary import SUBCLASS
    >>> laptop, computer, target = (NamedNode(f"urn:{n}") for n in ("laptop", "computer", "target"))
    >>> stopss = SToPSS(Ontology([(laptop, SUBCLASS, computer)]))
    >>> text = "SELECT ?e { ?e <urn:target> ?v FILTER(gm:descendantOf(?v, <urn:computer>)) }"
    >>> stopss.subscribe(SubscriptionParser().parse("s", text))
    >>> [event.terms[target].value for event in stopss.general(AttributeEvent.of({target: laptop}))]
    ['urn:laptop', 'urn:computer']
    """

    def __init__(self, ontology: Ontology, *, now: datetime | None = None) -> None:
        super().__init__(ontology)
        self._now = now
        self._functions = MappingFunctions(ontology.mapping, ontology.root, units=ontology.units)
        self._enricher = Enricher(ontology)

    def clear(self) -> None:
        super().clear()
        self._predicates: dict[Predicate, array[int]] = {}
        """The conjunctions with each predicate that is not a range."""
        self._ranges: dict[NamedNode, Buckets] = {}
        self._sizes = array("i")
        """The number of predicates of each conjunction."""

    def insert(self, number: int, row: Row) -> None:
        self._sizes.append(len(row))
        for attribute, constraint in row.items():
            if isinstance(constraint, Interval):
                self._ranges.setdefault(attribute, Buckets(1)).add(0, number, constraint)
            else:
                self._predicates.setdefault((attribute, constraint), array("q")).append(number)

    # --- The stages -------------------------------------------------------------------------------

    def match(self, publication: Publication) -> MatchReport:
        """Match a publication, with roots and the results of mapping functions; see `Matcher`."""
        rooted = self.ontology.rewrite(publication)
        if not len(self._functions):
            return AttributeMatcher.match(self, rooted)
        problems: list[Problem] = []
        mapped = self._functions.run(rooted, self._enricher, self._now, problems.append)
        report = AttributeMatcher.match(self, rooted.with_derived(mapped.mapped))
        counters = report.counters._replace(mapped=mapped.runs)
        return replace(report, counters=counters, problems=tuple(problems))

    def general(self, event: AttributeEvent) -> Iterator[GeneralizedEvent]:
        """Yield the event and all more general ones.

        Each has the constrained attributes (`asked`) that are attributes of the event or ancestors
        of these, each with a value of the event or an ancestor of the value.
        """
        found: dict[NamedNode, dict[Term, bool]] = {}
        for attribute, value in event.terms.items():
            for asked in self.above(attribute):
                if asked in self.asked:
                    assert isinstance(asked, NamedNode)
                    replaces = found.setdefault(asked, {})
                    for term in self.way(value, event.links):
                        replaces[term] = replaces.get(term, True) and term != value
        for chosen in product(*(terms.items() for terms in found.values())):
            pairs = dict(zip(found, chosen, strict=True))
            made = AttributeEvent.of({a: term for a, (term, _) in pairs.items()}, event.links)
            replaced = frozenset(a for a, (_, replaces) in pairs.items() if replaces)
            yield GeneralizedEvent(made.terms, made.numbers, made.links, replaced)

    # --- The counting matcher ---------------------------------------------------------------------

    def matched(self, event: AttributeEvent, tally: Tally) -> Iterable[int]:
        """Return the conjunctions that the event or a more general one matches, each by itself."""
        sizes = np.array(self._sizes)
        hit = np.zeros(sizes.size, np.bool_)
        for each in self.general(event):
            hit |= self._counted(each, tally) == sizes
        numbers: list[int] = np.flatnonzero(hit).tolist()
        return numbers

    def _counted(self, event: GeneralizedEvent, tally: Tally) -> Counts:
        """Return for each conjunction how many of its predicates an event satisfies."""
        counts = np.zeros(len(self._sizes), np.int32)
        for attribute, value in event.terms.items():
            asked: list[Constraint] = [Below(value), Present()]
            if attribute not in event.replaced:
                asked.append(Equal(value))
            for constraint in asked:
                tally.probes += 1
                if (numbers := self._predicates.get((attribute, constraint))) is not None:
                    tally.index_hits += 1
                    counts[np.frombuffer(numbers, np.int64)] += 1
            if attribute in self._ranges and (number := event.numbers.get(attribute)) is not None:
                _, of, ends = self._ranges[attribute].arrays()
                tally.probes += of.size
                counts[of[(ends[:, 0] <= number) & (number <= ends[:, 1])]] += 1
        tally.candidates += int(np.count_nonzero(counts))
        return counts
