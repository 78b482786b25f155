"""Enrichment: from a publication as it was read to what subscriptions are asked of, E(P).

One publication's way through here:

    concepts that its text names → an event as a graph → root terms → units → rules and mapping
    functions, in turn until nothing is new → the attributes that are asked for

This is the plain meaning, with everything that follows. The engine derives only what some
subscription asks for, on integers; it comes here for mapping functions, and to explain.

`Enriched` keeps how each triple came about, for those who ask why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from semantic.annotation.annotate import Annotation, Annotator
from semantic.annotation.words import WORDS, words_of_items
from semantic.attributes.ontology import Asked, AttributeRules
from semantic.errors import Problem
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology.entailment import Derived
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.terms import Mention, Triple

if TYPE_CHECKING:
    from graphmatch.mapping import Evaluator, MappingFunctions


@dataclass(frozen=True, slots=True)
class Enriched:
    """A publication as subscriptions see it, and how it came about.

    Parameters
    ----------
    publication
        E(P): what was stated and what follows, roots put in.
    stated
        As it was read, with what its text names.
    annotations
        What its text names, and where.
    followed
        The triples of E(P) that were derived, each with the one that it was derived from; others
        may be there with ``None``.
    mapped
        Triples that mapping functions gave, each with the name of the function.
    runs
        How many times a mapping function was run.
    problems
        What of the publication could not be used (an unknown unit), and mapping functions that
        failed.
    """

    publication: Publication
    stated: Publication
    annotations: tuple[Annotation, ...] = ()
    followed: Derived = field(default_factory=dict)
    mapped: Mapping[Triple, str] = field(default_factory=dict)
    runs: int = 0
    problems: tuple[Problem, ...] = ()

    @property
    def origins(self) -> Derived:
        """Each triple of E(P) with the one that it was derived from, if it was."""
        return dict.fromkeys(self.publication.triples) | self.followed


class Enricher:
    """Finds what follows from publications under one ontology.

    Parameters
    ----------
    evaluator
        Evaluates mapping functions, over the same ontology.
    entailment
        Whether root terms, units, rules and mapping functions are applied at all.
    annotator
        Finds the ontology's labels in feed items; none by default.
    limits
        Bounds on mapping functions.

    Raises
    ------
    OntologyError
        When a mapping function is none, or has a unit that is unknown or that its attribute cannot
        have.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from graphmatch.knowledge import Knowledge
    >>> from semantic.vocabulary import SUBCLASS, TYPE
    >>> laptop, computer = NamedNode("urn:laptop"), NamedNode("urn:computer")
    >>> ontology = Ontology([(laptop, SUBCLASS, computer)])
    >>> enricher = Enricher(ontology, Knowledge(ontology))
    >>> enriched = enricher.enrich(Publication.of("p", [(NamedNode("urn:x"), TYPE, laptop)]))
    >>> [triple[2].value for triple in enriched.publication.triples]
    ['urn:laptop', 'urn:computer']
    """

    def __init__(
        self,
        ontology: Ontology,
        evaluator: Evaluator,
        *,
        entailment: bool = True,
        annotator: Annotator | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._ontology = ontology
        self._evaluator = evaluator
        self._entailment = entailment
        self._annotator = annotator or Annotator([])
        self.functions: MappingFunctions | None = None
        """The ontology's mapping functions, as they are run; ``None`` where it has none."""
        if entailment and ontology.mapping:
            from graphmatch.mapping import MappingFunctions  # few ontologies have any

            self.functions = MappingFunctions(
                ontology.mapping, ontology.root, limits, ontology.units
            )
        self.attributes = AttributeRules(ontology, limits)
        """Attributes of events and of graphs, and what classes are called in subscriptions."""

    def enrich(
        self,
        publication: Publication,
        now: datetime | None = None,
        mentions: Iterable[Mention] = (),
    ) -> Enriched:
        """Return the publication with everything that follows.

        Parameters
        ----------
        now
            What ``NOW()`` gives in mapping functions; the machine's time by default.
        mentions
            What subscriptions ask for: of attributes and ``gm:words``, those are found.
        """
        mentions = tuple(mentions)
        enriched = self._closed(publication, now)
        problems = list(enriched.problems)
        followed: Derived = {}
        if asked := Asked(mentions):
            links = self._ontology.links(enriched.stated)
            followed = self.attributes.attributes(
                enriched.publication, asked, links, problems.append
            )
        asks = any(property_ == WORDS for property_, _ in mentions)
        read = words_of_items(publication.given) if asks else ()
        root = self._ontology.root if self._entailment else lambda term: term
        found = [*followed, *((root(item), words, text) for item, words, text in read)]
        return replace(
            enriched,
            publication=enriched.publication.with_attributes(found),
            followed={**followed, **enriched.followed},
            problems=tuple(problems),
        )

    def _closed(self, publication: Publication, now: datetime | None) -> Enriched:
        """Return the publication with what follows from it, attributes apart."""
        annotations = tuple(self._annotator.annotate(publication))
        stated = publication.with_derived(annotation.triple for annotation in annotations)
        if not self._entailment:
            return Enriched(stated, stated, annotations)
        stated = stated.with_derived(self.attributes.graph(stated))
        ontology = self._ontology
        problems: list[Problem] = []
        rooted = ontology.units.normal(ontology.rewrite(stated), problems.append)
        follow = ontology.inference.follow
        closed = follow(rooted.triples)
        if self.functions is None:
            whole = _with_all(rooted, closed)
            return Enriched(whole, stated, annotations, closed, problems=tuple(problems))
        mapped = self.functions.run(rooted, closed, follow, self._evaluator, now, problems.append)
        return Enriched(
            _with_all(rooted, mapped.closed),
            stated,
            annotations,
            mapped.closed,
            mapped.mapped,
            mapped.runs,
            tuple(problems),
        )


def _with_all(rooted: Publication, closed: Derived) -> Publication:
    """Return a publication with all that follows from it; its own triples come first."""
    if len(closed) == len(rooted.triples):
        return rooted
    return rooted.extended(tuple(islice(closed, len(rooted.triples), None)))
