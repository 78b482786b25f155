"""What an engine knows: one ontology, and what is made of it for matching.

A `Knowledge` is made whole before anybody uses it. When the ontology changes, the
engine goes from one to the next between two publications; `difference` says what
of the old one no longer holds, so that only the subscriptions that this concerns
have to be filed anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from hashlib import blake2b

from pyoxigraph import BlankNode

from semantic.annotation.annotate import Annotator
from semantic.enrichment import Enriched, Enricher
from semantic.evaluation import Evaluator
from semantic.mentions import Mentions
from semantic.ontology.ontology import Ontology
from semantic.ontology.relevance import Relevance
from semantic.publication import Publication
from semantic.sparql.query import Mention
from semantic.terms import Term, Triple
from semantic.units.units import Units


class Entailment(Enum):
    """Which rules publications and the ontology are seen under."""

    RDFS = "rdfs"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Difference:
    """What holds in one state of knowledge and not in the other.

    Parameters
    ----------
    triples
        Those that one ontology gives and the other does not.
    names
        Terms that have another root, by their `Roots.key`.
    everything
        Whether texts are told apart otherwise, or units are others: then every subscription is
        concerned.
    """

    triples: frozenset[Triple]
    names: frozenset[Term]
    everything: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What a change of the ontology meant.

    Parameters
    ----------
    triples
        How many triples follow from one ontology and not from the other.
    names
        How many names have another root, or have one for the first time.
    concerned
        How many subscriptions were filed anew.
    """

    triples: int
    names: int
    concerned: int


class Knowledge:
    """One ontology, ready for matching.

    Parameters
    ----------
    ontology
        What is known.
    entailment
        Whether its rules are applied.
    annotator
        Finds labels in text.
    """

    def __init__(
        self,
        ontology: Ontology,
        entailment: Entailment,
        annotator: Annotator,
    ) -> None:
        self.ontology = ontology
        self.annotator = annotator
        self._rdfs = entailment is Entailment.RDFS
        self._asked: set[Term] = set()
        self._mentions: Mentions | None = None
        self._background = (
            ontology.inference.background(()) if self._rdfs else frozenset(ontology.stated)
        )
        self._initial = self._background
        self.evaluator = Evaluator(ontology, self._background)
        self._enricher = Enricher(
            ontology,
            self.evaluator,
            entailment=self._rdfs,
            annotator=annotator,
        )

    def ask(self, mentions: Mentions) -> bool:
        """Make ready for what subscriptions mention; return whether there was anything to do.

        The pairs of a hierarchy (``rdfs:subClassOf`` and its kin) become triples to be found
        only when somebody asks for them: of a high taxonomy there are very many.
        """
        self._mentions = mentions
        if not self._rdfs:
            return False
        schema = self.ontology.schema
        new = [p for p in schema.hierarchies if p not in self._asked and mentions.asks_for(p)]
        for property_ in new:
            self._asked.add(property_)
            pairs = frozenset(schema.hierarchy(property_))
            self.evaluator.extend(pairs - self._background)
            self._background |= pairs
        return bool(new)

    @property
    def mentions(self) -> frozenset[Mention]:
        """What the mapping functions ask for."""
        return self._enricher.functions.mentions

    @property
    def fingerprint(self) -> str:
        """Equal for two states of knowledge under which subscriptions are filed alike.

        Blank nodes count as one, for they are called otherwise each time a file is read, and no
        subscription can name one. Cost: some microseconds a triple that follows.
        """
        said = 0
        for triple in self._initial:
            text = " ".join("_" if isinstance(t, BlankNode) else str(t) for t in triple)
            said += int.from_bytes(blake2b(text.encode(), digest_size=16).digest(), "big")
        ontology = self.ontology
        rest = (
            self._rdfs,
            ontology.roots.fingerprint,
            sorted(map(str, self.mentions)),
            sorted(ontology.prefixes.items()),
            str(ontology.units.declarations) if self._rdfs else "",
        )
        return f"{said % (1 << 128):032x}{blake2b(repr(rest).encode(), digest_size=16).hexdigest()}"

    @property
    def units(self) -> Units | None:
        """What is known of units."""
        return self.ontology.units if self._rdfs else None

    @property
    def renames_texts(self) -> bool:
        """Whether any text has another one as its root."""
        return self._rdfs and self.ontology.roots.has_texts

    def root(self, term: Term) -> Term:
        """Return the term that stands for this one.

        Raises
        ------
        UnknownNameError
            When an attribute subscription names a class that is unknown, or several.
        """
        term = self._enricher.attributes.concepts.resolved(term)
        return self.ontology.root(term) if self._rdfs else term

    def relevance(self, mentions: Mentions) -> Relevance:
        """Return the ontology's rules, restricted to what is mentioned."""
        return Relevance(self.ontology.schema, mentions)

    def enrich(
        self,
        publication: Publication,
        relevance: Relevance | None,
        now: datetime,
    ) -> Enriched:
        """Return a publication as subscriptions see it; see `Enricher.enrich`."""
        return self._enricher.enrich(publication, relevance, now, self._mentions)

    def difference(self, other: Knowledge) -> Difference:
        """Return in what another state of knowledge differs."""
        mine, theirs = self.ontology.roots, other.ontology.roots
        otherwise = mine.options != theirs.options
        names = mine.changed(theirs) if self._rdfs and not otherwise else frozenset()
        concepts, others_concepts = (k._enricher.attributes.concepts for k in (self, other))
        names |= concepts.changed(others_concepts)
        units, others = self.ontology.units, other.ontology.units
        otherwise |= self._rdfs and units.declarations != others.declarations
        return Difference(self._background ^ other._background, names, otherwise)
