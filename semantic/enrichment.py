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
from itertools import islice
from typing import TypeAlias

from semantic.annotation.annotate import Annotation, Annotator
from semantic.attributes.asked import Asked
from semantic.attributes.derive import AttributeRules
from semantic.attributes.names import path_of
from semantic.concerns import (
    ATTRIBUTES,
    CLASS,
    EVENT,
    ITEM,
    MAPPING,
    ROOTS,
    RULES,
    UNITS,
    Concerns,
)
from semantic.errors import Problem
from semantic.evaluation import Evaluator
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.mapping.functions import MappingFunctions
from semantic.mentions import Mentions
from semantic.ontology.entailment import Derived, Schema
from semantic.ontology.ontology import Ontology
from semantic.ontology.relevance import Relevance
from semantic.publication import Publication
from semantic.terms import Term, Triple

_State: TypeAlias = tuple[Relevance | None, int | None, Asked]


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
        self._known: dict[bool, tuple[_State, Concerns]] = {}
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
        asked = _NONE if mentions is None else self.attributes.asked(mentions)
        if relevance is not None and asked:
            relevance = self.attributes.widened(relevance, asked)
        concerns = self._concerns(relevance, asked)
        if not (steps := concerns.of(publication.numbered())):
            return Enriched(publication, publication)
        enriched = self._closed(publication, steps, concerns, relevance, now)
        changed = enriched.publication is not publication
        if not asked or not (changed or steps & ATTRIBUTES):
            return enriched
        problems = list(enriched.problems)
        links = self._ontology.links(enriched.stated)
        found = self.attributes.attributes(enriched.publication, asked, links, problems.append)
        return replace(
            enriched,
            publication=enriched.publication.with_attributes(found),
            followed={**found, **enriched.followed},
            problems=tuple(problems),
        )

    def _closed(
        self,
        publication: Publication,
        steps: int,
        concerns: Concerns,
        relevance: Relevance | None,
        now: datetime | None,
    ) -> Enriched:
        """Return the publication with what follows from it, attributes apart."""
        annotations = tuple(self._annotator.annotate(publication)) if steps & ITEM else ()
        stated = publication.with_derived(annotation.triple for annotation in annotations)
        if not self._entailment:
            return Enriched(stated, stated, annotations)
        if steps & EVENT:
            stated = stated.with_derived(self.attributes.graph(stated))
        if stated is not publication:
            steps |= concerns.of(stated.numbered())
        ontology = self._ontology
        problems: list[Problem] = []
        rooted = stated
        if steps & (ROOTS | UNITS):
            rooted = ontology.units.normal(ontology.rewrite(stated), problems.append)
            steps |= concerns.of(rooted.numbered())
        if not steps & (RULES | MAPPING):
            return Enriched(rooted, stated, annotations, problems=tuple(problems))
        follow = partial(ontology.inference.follow, relevance=relevance)
        closed = follow(rooted.triples, agenda=concerns.agenda(rooted.numbered()))
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

    # -- which steps there are to go --------------------------------------------------------

    def _concerns(self, relevance: Relevance | None, asked: Asked) -> Concerns:
        """Return what calls for which steps, as long as the same is known and asked for."""
        state = relevance, None if relevance is None else relevance.version, asked
        known = self._known.get(relevance is None)
        if known is None or known[0] != state:
            rules = relevance or self._ontology.schema
            concerns = Concerns(
                partial(self._of_term, rules),
                partial(self._of_property, rules, asked),
                MAPPING if self.functions.always else 0,
            )
            known = self._known[relevance is None] = state, concerns
        return known[1]

    def _of_term(self, rules: Relevance | Schema, term: Term) -> int:
        """Return the steps that a term calls for, wherever in a triple it is."""
        steps = ITEM if self._annotator.concerns(term) else 0
        if not self._entailment:
            return steps
        ontology = self._ontology
        if ontology.root(term) != term:
            steps |= ROOTS
        if ontology.units.concerns(term):
            steps |= UNITS
        if rules.stands_for_more(term) or ontology.inference.is_name(term):
            steps |= RULES
        return steps | CLASS if rules.is_subclass(term) else steps

    def _of_property(self, rules: Relevance | Schema, asked: Asked, property_: Term) -> int:
        """Return the steps that a term calls for as a property."""
        steps = ATTRIBUTES if asked and self.attributes.concerns(property_, asked) else 0
        if not self._entailment:
            return steps
        if path_of(property_) is not None:
            steps |= EVENT
        if self.functions.concerns(property_):
            steps |= MAPPING
        return steps | RULES if rules.leads(property_) else steps


def _with_all(rooted: Publication, closed: Derived) -> Publication:
    """Return a publication with all that follows from it; its own triples come first."""
    if len(closed) == len(rooted.triples):
        return rooted
    return rooted.extended(tuple(islice(closed, len(rooted.triples), None)))


_NONE = Asked({})
