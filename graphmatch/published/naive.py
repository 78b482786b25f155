"""The naive matcher: every subscription is evaluated as SPARQL on every publication.

It is the obvious implementation and the baseline for the others. It derives all triples of the
publication. Then the evaluator of the core evaluates each whole query on these triples and the
ontology, and finds the solutions that use a triple of the publication. There is no index and no
candidate. In G-ToPSS's evaluation (section 5, figure 9h) "naive" likewise checks all subscriptions
one after the other.

Cost: O(subscriptions) queries per publication.
"""

from __future__ import annotations

from typing import ClassVar

from graphmatch.enrichment import Enricher, Entailment, OntologyAndAnnotator
from graphmatch.matcher import Capabilities
from graphmatch.published.attribute_matcher import PublishedMatcher
from graphmatch.report import Counters, Match, MatchReport
from graphmatch.subscription import Subscription
from semantic.annotation.annotate import Annotator
from semantic.clock import utc_now
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication


class Naive(PublishedMatcher):
    """The matcher that evaluates every subscription on every publication.

    `entailment` applies the ontology's rules (docs/reference/semantics.md). `annotator` finds
    labels in text; by default labels are not searched for.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from graphmatch.subscription import SubscriptionParser
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
        super().__init__(ontology)
        rules = Entailment.RDFS if entailment else Entailment.NONE
        known = OntologyAndAnnotator(ontology, annotator or Annotator([]))
        self._enricher = Enricher(known, rules)

    def clear(self) -> None:
        """Do nothing: there is no index."""

    def read(self, subscription: Subscription) -> Subscription:
        return subscription.rewritten(self._enricher.root, self._enricher.units)

    def match(self, publication: Publication) -> MatchReport:
        now, queries = utc_now(), {id: s.query for id, (_, s) in self.stored.items()}
        demanded = [pair for query in queries.values() for pair in query.demanded()]
        enriched = self._enricher.enrich(publication, now, demanded)
        evaluation = self._enricher.evaluation(enriched.publication, now)
        matches = []
        for id, query in queries.items():
            answer = evaluation.answer(query, resting=True)
            if answer is not None:
                solutions, graph = answer
                triples = None if graph is None else tuple(graph)
                matches.append(Match(id, publication.id, tuple(solutions), triples))
        counters = Counters(candidates=len(queries), evaluated=len(queries), matched=len(matches))
        return MatchReport(publication.id, tuple(matches), counters, enriched.problems)
