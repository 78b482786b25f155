"""The naive matcher: every subscription is evaluated as SPARQL on every publication.

It is what one would write first, and what the others are measured against: the
publication is materialised together with the ontology (all that follows is put in),
then each whole query is asked of it by pyoxigraph, with the condition that the
solution rests on the publication. No index, no candidates. In G-ToPSS's evaluation
(section 5, figure 9h) "naive" likewise checks all subscriptions one after the other.

Cost: O(subscriptions) queries a publication.
"""

from __future__ import annotations

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
from semantic.annotation.annotate import Annotator
from semantic.enrichment import Enricher
from semantic.evaluation import Evaluator
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.subscription import Subscription


class Naive(Matcher):
    """Evaluates everything on everything.

    Parameters
    ----------
    ontology
        What publications are seen together with.
    entailment
        Whether its rules are applied; see docs/reference/semantics.md.
    annotator
        Finds labels in text; none by default.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from semantic.sparql.parse import SubscriptionParser
    >>> naive = Naive(Ontology())
    >>> naive.subscribe(SubscriptionParser().parse("s", "SELECT ?x { ?x <urn:p> <urn:o> }"))
    >>> triple = (NamedNode("urn:s"), NamedNode("urn:p"), NamedNode("urn:o"))
    >>> [m.solutions[0]["x"].value for m in naive.match(Publication.of("p", [triple]))]
    ['urn:s']
    """

    capabilities: ClassVar = Capabilities(full_sparql=True, entailment=True)

    def __init__(
        self, ontology: Ontology, *, entailment: bool = True, annotator: Annotator | None = None
    ) -> None:
        self._ontology = ontology
        self._entailment = entailment
        background = ontology.closure if entailment else ontology.stated
        self._evaluator = Evaluator(ontology, background)
        self._enricher = Enricher(
            ontology, lambda: self._evaluator, entailment=entailment, annotator=annotator
        )
        self._subscriptions: dict[str, Subscription] = {}

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, id: object) -> bool:
        return id in self._subscriptions

    def subscribe(self, subscription: Subscription) -> None:
        """Take a subscription in; see `Matcher`."""
        if subscription.id in self._subscriptions:
            raise DuplicateError(subscription.id)
        ontology = self._ontology
        if self._entailment:
            subscription = subscription.rewritten(ontology.root, ontology.units)
        self._subscriptions[subscription.id] = subscription

    def unsubscribe(self, id: str) -> None:
        """Forget a subscription; see `Matcher`."""
        if self._subscriptions.pop(id, None) is None:
            raise UnknownError(id)

    def match(self, publication: Publication) -> MatchReport:
        """Evaluate every subscription; see `Matcher`."""
        enriched = self._enricher.enrich(publication)
        publication = enriched.publication
        with self._evaluator.publication(publication) as evaluation:
            found = [
                (id, evaluation.answer(subscription.query, resting=True))
                for id, subscription in self._subscriptions.items()
            ]
        matches = tuple(
            Match.of(id, publication.id, answer) for id, answer in found if answer is not None
        )
        evaluated = len(self._subscriptions)
        return MatchReport(
            publication.id,
            matches,
            Counters(candidates=evaluated, evaluated=evaluated, matched=len(matches)),
            enriched.problems,
        )
