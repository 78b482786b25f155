"""What an engine knows: one ontology, what the core gets of it, and the steps left to Python.

A `Knowledge` is made whole before anybody uses it. The core applies root terms and rules; what is
done here, for publications with a term that needs it, is annotation, units and mapping functions.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import cached_property
from itertools import chain
from threading import RLock
from typing import Any, TypeAlias
from weakref import ref

from graphmatch import _native
from graphmatch.enrichment import Enriched, Enricher
from graphmatch.subscription import SubscriptionParser, rewritten_query
from semantic.annotation.annotate import Annotator
from semantic.annotation.words import WORDS, words_of_items
from semantic.attributes.ontology import Concepts
from semantic.clock import now_text
from semantic.errors import Problem
from semantic.files import plain
from semantic.limits import DEFAULT_LIMITS
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.terms import Mention, Term, Triple, written
from semantic.units.units import Units
from semantic.vocabulary import PREFIXES, RSS

ITEM, EVENT, ROOTS, UNITS, RULES, MAPPING = 1, 2, 4, 8, 16, 32
"""Steps of enrichment, as the core numbers them."""


class Entailment(Enum):
    """Which rules publications and the ontology are seen under."""

    RDFS = "rdfs"
    NONE = "none"


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


@dataclass(frozen=True, slots=True)
class Prepared:
    """A publication for which Python has done its steps.

    Parameters
    ----------
    triples
        Its triples, those that somebody stated first.
    stated
        How many these are.
    done
        The steps that were done.
    problems
        What of it could not be used.
    runs
        How many mapping functions were run.
    """

    triples: tuple[Triple, ...]
    stated: int
    done: int
    problems: tuple[Problem, ...] = ()
    runs: int = 0


Known: TypeAlias = tuple[Ontology, Annotator, bool]
"""An ontology, what finds labels in text, and whether the engine was given that annotator."""


class Knowledge:
    """One ontology, ready for matching.

    Parameters
    ----------
    known
        The ontology, or what makes it and its annotator when they are first asked for: the core
        of an engine that was opened knows by itself what most publications need.
    entailment
        Whether its rules are applied.
    annotator
        Finds labels in text; none by default.
    core
        The one that the ontology is handed to, by an engine; one of its own by default, made when
        it is first needed.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from semantic.vocabulary import SUBCLASS
    >>> laptop, computer = NamedNode("urn:laptop"), NamedNode("urn:computer")
    >>> knowledge = Knowledge(Ontology([(laptop, SUBCLASS, computer)]))
    >>> knowledge.meets((laptop, None, None)), knowledge.meets((computer, None, None))
    (True, False)
    """

    def __init__(
        self,
        known: Ontology | Callable[[], Known],
        entailment: Entailment = Entailment.RDFS,
        annotator: Annotator | None = None,
        *,
        core: _native.Core | None = None,
    ) -> None:
        self.rdfs = entailment is Entailment.RDFS
        self._known: Known | Callable[[], Known] = (
            (known, annotator or Annotator([]), annotator is not None)
            if isinstance(known, Ontology)
            else known
        )
        self._making = RLock()
        self._shared = None if core is None else ref(core)  # the core refers to its knowledge
        # Whether some subscription asks for `gm:words`; the engine tells of later ones.
        self.words = core is not None and core.has_term(str(WORDS))

    def _made(self) -> Known:
        if callable(self._known):
            with self._making:
                if callable(self._known):
                    self._known = self._known()
        return self._known

    @property
    def ontology(self) -> Ontology:
        """What is known."""
        return self._made()[0]

    @property
    def annotator(self) -> Annotator:
        """Finds labels in text."""
        return self._made()[1]

    @property
    def own_annotator(self) -> Annotator | None:
        """The annotator that the engine was given, if it was given one."""
        _, annotator, is_own = self._made()
        return annotator if is_own else None

    @cached_property
    def enricher(self) -> Enricher:
        """Adds what follows to publications."""
        return Enricher(self.ontology, self, entailment=self.rdfs, annotator=self.annotator)

    @property
    def _core(self) -> _native.Core:
        """The core that has the ontology."""
        shared = None if self._shared is None else self._shared()
        return self._own if shared is None else shared

    @cached_property
    def _own(self) -> _native.Core:
        core = _native.Core(list(PREFIXES.items()), DEFAULT_LIMITS)
        core.set_ontology(None, **self.stated(None))
        return core

    # -- questions --------------------------------------------------------------------------

    def evaluation(
        self, publication: Publication, now: datetime, calls: _native.Calls | None = None
    ) -> _native.Evaluation:
        """Prepare queries over a publication and the ontology, in which ``NOW()`` is `now`.

        What is known of calls of operators is looked up.
        """
        derived = publication.derived
        shown = publication.seen_by_any
        own = [triple for triple in shown if triple not in derived]
        rest = [triple for triple in shown if triple in derived]
        attributes = publication.triples[len(shown) :]
        return self._core.evaluation(
            plain(publication.id),
            (*own, *rest, *attributes),
            len(own),
            len(shown),
            now_text(now),
            calls,
        )

    def meets(self, pattern: Iterable[Term | None]) -> bool:
        """Whether a triple that follows from the ontology has these terms, ``None`` for any."""
        subject, predicate, object_ = (None if term is None else written(term) for term in pattern)
        return self._core.meets(subject, predicate, object_)

    @property
    def concepts(self) -> Concepts:
        """The classes of the ontology by their names."""
        return self.enricher.attributes.concepts

    @property
    def units(self) -> Units | None:
        """What is known of units."""
        return self.ontology.units if self.rdfs else None

    def root(self, term: Term) -> Term:
        """Return the term that stands for this one.

        Raises
        ------
        UnknownNameError
            When an attribute subscription names a class that is unknown, or several.
        """
        term = self.concepts.resolved(term)
        return self.ontology.root(term) if self.rdfs else term

    # -- what the core gets -----------------------------------------------------------------

    def stated(self, before: Knowledge | None) -> dict[str, Any]:
        """Return the arguments of `_native.Core.set_ontology`; `before` was known before."""
        ontology, terms = self.ontology, _Terms()
        names = ontology.names
        everything, changed = self._changed(before)
        return {
            "triples": terms.rows(ontology.triples),
            "plain": None if self.rdfs else terms.rows(ontology.stated),
            "roots": [(terms[name], terms[root]) for name, root in ontology.roots.pairs()],
            "names": [(terms[text], terms[term]) for text, term in names.pairs()],
            "called": [(name, terms[term]) for name, term in self._called()],
            "prefixes": list(ontology.prefixes.items()),
            "steps": list(self._steps(terms)),
            "always": MAPPING if self._maps_all else 0,
            "folding": self._folding(),
            "changed": changed,
            "everything": everything,
            "terms": terms.texts(),
        }

    def _called(self) -> Iterable[tuple[str, Term]]:
        names = self.ontology.value_names
        return ((name, term) for name in names for term in names.terms(name))

    @property
    def _maps_all(self) -> bool:
        """Whether every publication is mapped: some function names no property."""
        functions = self.enricher.functions
        return self.rdfs and functions is not None and functions.always

    def _steps(self, terms: _Terms) -> Iterable[tuple[int, int]]:
        found: defaultdict[int, int] = defaultdict(int)
        if self.reads_items:
            found[terms[RSS["item"]]] |= ITEM
        if self.rdfs:
            units = self.ontology.units
            for term in units.measured:
                found[terms[term]] |= UNITS
            functions = self.enricher.functions
            for property_ in functions.reading() if functions is not None else ():
                found[terms[self.ontology.root(property_)]] |= MAPPING
        return found.items()

    @property
    def reads_items(self) -> bool:
        """Whether the texts of feed items are read."""
        return self.words or self.annotator.concerns(RSS["item"])

    def _folding(self) -> tuple[bool, Any] | None:
        options = self.ontology.roots.options
        return (options.casefold, options.fold) if options.folds else None

    def _changed(self, before: Knowledge | None) -> tuple[bool, list[str]]:
        """Return whether every subscription is concerned, and which names of classes are."""
        if before is None:
            return False, []
        mine, theirs = self.ontology, before.ontology
        everything = self.rdfs and (
            mine.roots.options != theirs.roots.options
            or mine.units.declarations != theirs.units.declarations
        )
        return everything, [str(term) for term in before.concepts.changed(self.concepts)]

    # -- what is left to Python -------------------------------------------------------------

    def filed(self, parser: SubscriptionParser, id: str, text: str) -> list[str]:
        """Return a query's constants with root terms put in, in base units.

        Raises
        ------
        SubscriptionError
            When a unit is unknown, or incompatible with its attribute's; when a class is named
            that is unknown.
        """
        filed = rewritten_query(id, parser.query(id, text), self.root, self.units)
        return [written(term) for term, _ in filed.constants()[: filed.slots]]

    def enrich(
        self, publication: Publication, now: datetime, mentions: Iterable[Mention]
    ) -> Enriched:
        """Return a publication with all that follows; see `Enricher.enrich`."""
        return self.enricher.enrich(publication, now, mentions)

    def prepare(self, publication: Publication, steps: int, now: datetime) -> Prepared:
        """Do the steps that a publication calls for and the core does not do."""
        if steps & MAPPING:
            asked = [(WORDS, None)] if self.words else ()
            enriched = self.enricher.enrich(publication, now, asked)
            done = ITEM | EVENT | ROOTS | UNITS | MAPPING
            return _prepared(enriched.publication, done, enriched.problems, enriched.runs)
        found = self.annotator.concepts(publication.given)
        found += words_of_items(publication.given) if self.words else ()
        if not steps & UNITS and not publication.derived:
            given = publication.given  # the core tells which triples are the same
            return Prepared((*given, *found), len(given), ITEM)
        stated = publication.with_derived(found)
        if not steps & UNITS:
            return _prepared(stated, ITEM)
        stated = stated.with_derived(self.enricher.attributes.graph(stated))
        problems: list[Problem] = []
        ontology = self.ontology
        rooted = ontology.units.normal(ontology.rewrite(stated), problems.append)
        return _prepared(rooted, ITEM | EVENT | ROOTS | UNITS, tuple(problems))


def _prepared(
    publication: Publication, done: int, problems: tuple[Problem, ...] = (), runs: int = 0
) -> Prepared:
    derived = publication.derived
    stated = [triple for triple in publication.triples if triple not in derived]
    others = [triple for triple in publication.triples if triple in derived]
    return Prepared((*stated, *others), len(stated), done, problems, runs)


class _Terms:
    """Terms by number, each once."""

    def __init__(self) -> None:
        self._numbers: dict[Term, int] = {}

    def __getitem__(self, term: Term) -> int:
        return self._numbers.setdefault(term, len(self._numbers))

    def rows(self, triples: Iterable[Triple]) -> bytes:
        """Return triples as numbers of four bytes, one behind the other."""
        numbers = self._numbers
        terms = list(chain.from_iterable(triples))
        for term in dict.fromkeys(terms):
            numbers.setdefault(term, len(numbers))
        return array("I", map(numbers.__getitem__, terms)).tobytes()

    def texts(self) -> list[str]:
        """Return the terms as N-Triples has them."""
        return [written(term) for term in self._numbers]
