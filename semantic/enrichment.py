"""Enrichment: from a publication as it was read to what subscriptions are asked of, E(P).

One publication's way through here:

    concepts that its text names → an event as a graph → roots → units → rules and mapping
    functions, in turn until nothing is new → the attributes that are asked for

`Enriched` keeps how each triple came about, for those who ask why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from semantic.annotation.annotate import Annotation, Annotator
from semantic.attributes.asked import Asked
from semantic.attributes.derive import AttributeRules
from semantic.errors import Problem
from semantic.evaluation import Evaluator
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.mapping.functions import MappingFunctions
from semantic.mentions import Mentions
from semantic.ontology.entailment import Derived
from semantic.ontology.ontology import Ontology
from semantic.ontology.relevance import Relevance
from semantic.publication import Publication
from semantic.terms import Triple


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
    origins
        Each triple of E(P) with the one that it was derived from, if it was.
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
    origins: Derived = field(default_factory=dict)
    mapped: Mapping[Triple, str] = field(default_factory=dict)
    runs: int = 0
    problems: tuple[Problem, ...] = ()


class Enricher:
    """Enriches publications by one ontology.

    Parameters
    ----------
    ontology
        What is known.
    evaluator
        Evaluates mapping functions; over the same ontology.
    entailment
        Whether roots, units, rules and mapping functions are applied at all.
    annotator
        Finds the ontology's labels in feed items; none by default.
    limits
        Bounds on mapping functions.

    Raises
    ------
    OntologyError
        When a mapping function has a unit that is unknown, or that its attribute cannot have.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from semantic.vocabulary import SUBCLASS, TYPE
    >>> laptop, computer = NamedNode("urn:laptop"), NamedNode("urn:computer")
    >>> ontology = Ontology([(laptop, SUBCLASS, computer)])
    >>> enricher = Enricher(ontology, Evaluator(ontology, ontology.closure))
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
        self.functions = MappingFunctions(
            ontology.mapping if entailment else (), ontology.root, limits, ontology.units
        )
        """The ontology's mapping functions, as they are run."""
        self.attributes = AttributeRules(ontology, limits)
        """Attributes of events and of graphs, and what classes are called in subscriptions."""

    def enrich(
        self,
        publication: Publication,
        relevance: Relevance | None = None,
        now: datetime | None = None,
        mentions: Mentions | None = None,
    ) -> Enriched:
        """Return the publication as subscriptions see it.

        Parameters
        ----------
        relevance
            Leaves out what nobody asks for; nothing is left out by default.
        now
            What ``NOW()`` gives in mapping functions; the machine's time by default.
        mentions
            The attributes that subscriptions ask for are found; none by default.
        """
        asked = None if mentions is None else self.attributes.asked(mentions)
        enriched = self._closed(publication, relevance, now, asked)
        if not asked:
            return enriched
        problems = list(enriched.problems)
        links = self._ontology.links(enriched.stated)
        found = self.attributes.attributes(enriched.publication, asked, links, problems.append)
        return replace(
            enriched,
            publication=enriched.publication.with_derived(found),
            origins={**found, **enriched.origins},
            problems=tuple(problems),
        )

    def _closed(
        self,
        publication: Publication,
        relevance: Relevance | None,
        now: datetime | None,
        asked: Asked | None,
    ) -> Enriched:
        """Return the publication with what follows from it, attributes apart."""
        annotations = tuple(self._annotator.annotate(publication))
        stated = publication.with_derived(annotation.triple for annotation in annotations)
        if not self._entailment:
            return Enriched(stated, stated, annotations, dict.fromkeys(stated.triples))
        stated = stated.with_derived(self.attributes.graph(stated))
        if relevance is not None and asked:
            relevance = self.attributes.widened(relevance, asked)
        ontology = self._ontology
        problems: list[Problem] = []
        rooted = ontology.units.normal(ontology.rewrite(stated), problems.append)
        closed = ontology.inference.follow(rooted.triples, relevance)
        follow = partial(ontology.inference.follow, relevance=relevance)
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
    """Return a publication with all that follows from it."""
    if len(closed) == len(rooted.triples):
        return rooted
    known = frozenset(rooted.triples)
    derived = rooted.derived.union(triple for triple in closed if triple not in known)
    return replace(rooted, triples=tuple(closed), derived=derived)
