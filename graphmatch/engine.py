"""The engine: subscriptions and an ontology in, publications through, matches out.

A publication's way is `Engine.match`:

    read → enrich (synonyms, concepts, is-a) → index → solutions
         → what the index can't decide → matches
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum
from itertools import count
from typing import ClassVar

from graphmatch.evaluation import Evaluation, Evaluator
from graphmatch.explain import Evidence, Explanation, evidence, explain
from graphmatch.filing import Filed, file, owner
from graphmatch.matcher import (
    Capabilities,
    DuplicateError,
    Match,
    Matcher,
    MatchReport,
    UnknownError,
)
from graphmatch.provenance import Provenance
from graphmatch.published.gtopss import GToPSS
from semantic.annotation.annotate import Annotator
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.sparql.parse import SubscriptionParser
from semantic.subscription import Subscription
from semantic.terms import Term


class Entailment(Enum):
    """Which rules publications and the ontology are seen under."""

    RDFS = "rdfs"
    NONE = "none"


class Engine(Matcher):
    """Matches publications against standing SPARQL subscriptions over an ontology.

    Parameters
    ----------
    ontology
        What is known; an empty one by default.
    entailment
        ``"rdfs"``, or ``"none"`` to take publications as they are
        (docs/reference/semantics.md).
    annotator
        Finds the ontology's labels in feed items; one over `Ontology.labels` by default.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from semantic.vocabulary import SUBCLASS, TYPE
    >>> laptop, computer = NamedNode("http://e/Laptop"), NamedNode("http://e/Computer")
    >>> engine = Engine(Ontology([(laptop, SUBCLASS, computer)]))
    >>> engine.subscribe("alice", "SELECT ?x { ?x a <http://e/Computer> }")
    >>> publication = Publication.of("p", [(NamedNode("http://e/1"), TYPE, laptop)])
    >>> for match in engine.match(publication):
    ...     print(match.subscription, match.solutions[0]["x"])
    alice <http://e/1>
    """

    capabilities: ClassVar = Capabilities(full_sparql=True, entailment=True)

    def __init__(
        self,
        ontology: Ontology | None = None,
        *,
        entailment: Entailment | str = Entailment.RDFS,
        annotator: Annotator | None = None,
    ) -> None:
        self._entailment = Entailment(entailment)
        self.parser = SubscriptionParser()
        self._filed: dict[str, Filed] = {}
        self._unindexed: dict[str, None] = {}
        self._serials = count()
        self._use(ontology or Ontology(), annotator)

    def _use(self, ontology: Ontology, annotator: Annotator | None) -> None:
        self._ontology = ontology
        self._annotator = annotator or Annotator(ontology.labels())
        rdfs = self._entailment is Entailment.RDFS
        self._evaluator = Evaluator(ontology, ontology.closure if rdfs else ontology.stated)
        self._index: Matcher = GToPSS(ontology)

    @property
    def ontology(self) -> Ontology:
        """What the engine knows."""
        return self._ontology

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """The subscriptions, in the order of subscribing."""
        return tuple(filed.subscription for filed in self._filed.values())

    def __len__(self) -> int:
        return len(self._filed)

    def __contains__(self, id: object) -> bool:
        return id in self._filed

    # -- change -----------------------------------------------------------------------------

    def subscribe(self, subscription: Subscription | str, query: str | None = None) -> None:
        """Take a subscription in: an id and SPARQL text, or a parsed `Subscription`.

        Raises
        ------
        SubscriptionError
            When the text cannot be a subscription; with its line and column.
        DuplicateError
            When the id is taken.
        """
        if isinstance(subscription, str):
            subscription = self.parser.parse(subscription, query or "")
        if subscription.id in self._filed:
            raise DuplicateError(subscription.id)
        self._file(subscription)

    def _file(self, subscription: Subscription) -> None:
        filed = file(
            subscription,
            next(self._serials),
            self._root,
            self._evaluator,
            self._index.capabilities,
        )
        self._filed[subscription.id] = filed
        for entry in filed.entry_subscriptions():
            self._index.subscribe(entry)
        if filed.unindexed:
            self._unindexed[subscription.id] = None

    def unsubscribe(self, id: str) -> None:
        """Forget a subscription.

        Raises
        ------
        UnknownError
            When there is none with this id.
        """
        filed = self._filed.pop(id, None)
        if filed is None:
            raise UnknownError(id)
        self._unindexed.pop(id, None)
        for entry in filed.entry_subscriptions():
            self._index.unsubscribe(entry.id)

    def replace_ontology(self, ontology: Ontology, annotator: Annotator | None = None) -> None:
        """Go on with another ontology; every subscription is filed anew."""
        subscriptions = self.subscriptions
        self._filed.clear()
        self._unindexed.clear()
        self._use(ontology, annotator)
        for subscription in subscriptions:
            self._file(subscription)

    # -- a publication's way ----------------------------------------------------------------

    def match(self, publication: Publication) -> MatchReport:
        """Say which subscriptions a publication matches, and with which solutions."""
        enriched = self.enrich(publication)
        found = self._index.match(enriched)
        answers, evaluated = self._checked(enriched, found)
        order = sorted(answers, key=lambda id: self._filed[id].serial)
        matches = tuple(answers[id] for id in order)
        counters = replace(
            found.counters,
            candidates=found.counters.candidates + len(self._unindexed),
            evaluated=evaluated,
            matched=len(matches),
        )
        return MatchReport(publication.id, matches, counters)

    def enrich(self, publication: Publication) -> Publication:
        """Return the publication as subscriptions see it: concepts found, roots, is-a."""
        annotated = self.annotate(publication)
        if self._entailment is Entailment.NONE:
            return annotated
        return self._ontology.enrich(annotated)

    def annotate(self, publication: Publication) -> Publication:
        """Return the publication with the concepts that its text names."""
        found = self._annotator.annotate(publication)
        return publication.with_derived(annotation.triple for annotation in found)

    def _checked(self, enriched: Publication, found: MatchReport) -> tuple[dict[str, Match], int]:
        """Turn the index's matches into answers, evaluating what the index cannot decide.

        Returns
        -------
        answers
            Subscription id to match.
        evaluated
            How many subscriptions were evaluated as SPARQL.
        """
        candidates = dict.fromkeys(self._unindexed)
        answers: dict[str, Match] = {}
        for match in found:
            id = owner(match.subscription)
            if self._filed[id].exact:
                answers[id] = replace(match, subscription=id)
            else:
                candidates[id] = None
        with self._evaluator.publication(enriched) as evaluation:
            for id in candidates:
                if (match_ := self._evaluated(self._filed[id], evaluation)) is not None:
                    answers[id] = match_
        return answers, len(candidates)

    def _evaluated(self, filed: Filed, evaluation: Evaluation) -> Match | None:
        return evaluation.match(filed.subscription, filed.query, resting=filed.resting)

    def _root(self, term: Term) -> Term:
        return term if self._entailment is Entailment.NONE else self._ontology.root(term)

    # -- why --------------------------------------------------------------------------------

    def filing(self, id: str) -> Filed:
        """Return how a subscription is filed: what is indexed and what is evaluated.

        Raises
        ------
        UnknownError
            When there is none with this id.
        """
        if id not in self._filed:
            raise UnknownError(id)
        return self._filed[id]

    def explain(self, id: str, publication: Publication) -> Explanation:
        """Say why a subscription matches a publication, or what fails first.

        Raises
        ------
        UnknownError
            When there is no subscription with this id.
        """
        filed = self.filing(id)
        enriched = self.enrich(publication)
        match = next((m for m in self.match(publication) if m.subscription == id), None)
        with self._evaluator.publication(enriched) as evaluation:
            return explain(filed, match, enriched, evaluation, self._provenance(publication))

    def evidence(
        self, publication: Publication, matches: Iterable[Match]
    ) -> Mapping[str, tuple[Evidence, ...]]:
        """Return, by subscription, the triples that a match rests on, and why they hold."""
        provenance = self._provenance(publication)
        with self._evaluator.publication(self.enrich(publication)) as evaluation:
            return {
                m.subscription: tuple(
                    evidence(self.filing(m.subscription), m, evaluation, provenance)
                )
                for m in matches
            }

    def _provenance(self, publication: Publication) -> Provenance:
        annotations = self._annotator.annotate(publication)
        annotated = publication.with_derived(a.triple for a in annotations)
        ontology = Ontology() if self._entailment is Entailment.NONE else self._ontology
        return Provenance(ontology, annotated, annotations)
