"""What an engine knows: one ontology, what the core gets of it, and the steps left to Python.

A `Knowledge` is complete before it is used. The core annotates text and applies root terms and
rules. Python converts units and runs mapping functions, for publications with a term that needs
it, and hands over the labels before the first feed item.

Matching derives only what some subscription asks for. Mapping functions, and explanations of
subscriptions that do not match, get everything that follows, from the same rules of the core:
`Knowledge.follow`, `Knowledge.enrich`. The reasons of matches come from their report.
One publication's way is always

    concepts that its text names → an event as a graph → root terms → units → rules and mapping
    functions, in turn until nothing is new → the attributes and words that are asked for
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import ref

from graphmatch import _native
from graphmatch.subscription import SubscriptionParser, rewritten_query
from semantic.annotation.annotate import Annotator
from semantic.annotation.words import WORDS
from semantic.attributes.concepts import Concepts
from semantic.attributes.names import name_of
from semantic.clock import moment
from semantic.errors import Choice, OnProblem, Place, Problem, Severity
from semantic.files import plain
from semantic.limits import DEFAULT_LIMITS
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.terms import Derived, Mention, Term, Triple, written
from semantic.units.units import Units
from semantic.vocabulary import PREFIXES, RSS

if TYPE_CHECKING:
    from graphmatch.mapping import MappingFunctions

ITEM, EVENT, ROOTS, UNITS, RULES, MAPPING, ATTRIBUTES = 1, 2, 4, 8, 16, 32, 64
"""Steps of enrichment, as the core numbers them."""
PREPARED = ITEM | EVENT | ROOTS | UNITS
"""The steps that `Knowledge.prepare` always does."""


class Entailment(Choice):
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
class Enriched:
    """A publication as subscriptions see it, and how it came about.

    Parameters
    ----------
    publication
        E(P): what was stated and what follows, roots put in.
    stated
        As it was read, with what its text names.
    found
        The triples that were found in texts: the property of the text, the label and its form
        (``None`` for words), and the part of the text.
    origins
        Each triple of E(P) with the rule and the triple that it was derived by, if it was.
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
    found: Mapping[Triple, Found] = field(default_factory=dict)
    origins: Derived = field(default_factory=dict)
    mapped: Mapping[Triple, str] = field(default_factory=dict)
    runs: int = 0
    problems: tuple[Problem, ...] = ()


Found: TypeAlias = tuple[Term, tuple[str, int] | None, str]
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
    def functions(self) -> MappingFunctions | None:
        """The ontology's mapping functions, as they are run; ``None`` where it has none.

        Raises
        ------
        OntologyError
            When one is none, or has a unit that is unknown or that its attribute cannot have.
        """
        ontology = self.ontology
        if not (self.rdfs and ontology.mapping):
            return None
        from graphmatch.mapping import MappingFunctions  # few ontologies have any

        return MappingFunctions(ontology.mapping, ontology.root, units=ontology.units)

    @property
    def _core(self) -> _native.Core:
        """The core that has the ontology."""
        shared = None if self._shared is None else self._shared()
        return self._own if shared is None else shared

    @cached_property
    def _own(self) -> _native.Core:
        core = _native.Core(list(PREFIXES.items()), DEFAULT_LIMITS)
        core.set_ontology(None, self.stated(None))
        return core

    # -- questions --------------------------------------------------------------------------

    def evaluation(
        self, publication: Publication, now: datetime, calls: _native.Calls | None = None
    ) -> _native.Evaluation:
        """Prepare queries over a publication and the ontology, in which ``NOW()`` is `now`.

        What is known of calls of operators is looked up.
        """
        triples, stated, shown = ordered(publication)
        id, time = plain(publication.id), moment(now)
        return self._core.evaluation(id, triples, stated, shown, time, calls)

    def has_term(self, term: Term) -> bool:
        """Return whether the ontology or a subscription has a term."""
        return self._core.has_term(str(term))

    def follow(self, triples: Iterable[Triple]) -> Derived:
        """Return triples, roots put in, and all that follows from them by rules: E(P).

        Examples
        --------
        >>> from pyoxigraph import NamedNode
        >>> from semantic.vocabulary import SUBCLASS, TYPE
        >>> x, laptop, computer = (NamedNode(f"urn:{n}") for n in ("x", "laptop", "computer"))
        >>> knowledge = Knowledge(Ontology([(laptop, SUBCLASS, computer)]))
        >>> knowledge.follow([(x, TYPE, laptop)]) == {
        ...     (x, TYPE, laptop): None, (x, TYPE, computer): ("rdfs9", (x, TYPE, laptop))
        ... }
        True
        """
        given = tuple(dict.fromkeys(triples))
        return dict.fromkeys(given) | self._follow("", given, len(given), RULES)[0]

    def _follow(
        self,
        id: str,
        given: tuple[Triple, ...],
        stated: int,
        steps: int,
        mentions: Iterable[Mention] | None = None,
    ) -> tuple[Derived, int, bool]:
        """Have the core do some steps with everything that follows; see `_native.Core.entail`."""
        rows = None if mentions is None else [(_text(p), _text(o)) for p, o in mentions]
        found, shown, is_whole = self._core.entail(plain(id), given, stated, steps, rows)
        return dict(found), shown, is_whole

    @property
    def closure(self) -> frozenset[Triple]:
        """Everything that follows from the ontology alone, C(O); without rules, what it states.

        A high hierarchy of n terms has many more than n pairs.
        """
        return frozenset(self._core.closure())

    @cached_property
    def concepts(self) -> Concepts:
        """The classes of the ontology by their names."""
        return Concepts(self.ontology)

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
        """Return the ontology for `_native.Core.set_ontology`; `before` was known before."""
        ontology, texts = self.ontology, _Texts()
        names = ontology.names
        everything, changed = self._changed(before)
        return {
            "triples": texts.rows(ontology.triples),
            "plain": None if self.rdfs else texts.rows(ontology.stated),
            "roots": [(texts[name], texts[root]) for name, root in ontology.roots.pairs()],
            "names": [(texts[text], texts[term]) for text, term in names.pairs()],
            "called": [(name, texts[term]) for name, term in self._called()],
            "prefixes": list(ontology.prefixes.items()),
            "steps": list(self._steps()),
            "always": MAPPING if self._maps_all else 0,
            "folding": self._folding(),
            "changed": changed,
            "everything": everything,
        }

    def _called(self) -> Iterable[tuple[str, Term]]:
        names = self.ontology.value_names
        return ((name, term) for name in names for term in names.terms(name))

    @property
    def _maps_all(self) -> bool:
        """Whether every publication is mapped: some function names no property."""
        return self.functions is not None and self.functions.always

    def _steps(self) -> Iterable[tuple[str, int]]:
        found: defaultdict[str, int] = defaultdict(int)
        if self.reads_items:
            found[written(RSS["item"])] |= ITEM
        if self.rdfs:
            units = self.ontology.units
            for term in units.measured:
                found[written(term)] |= UNITS
            for property_ in self.functions.reading() if self.functions is not None else ():
                found[written(self.ontology.root(property_))] |= MAPPING
        return found.items()

    @property
    def reads_items(self) -> bool:
        """Whether the texts of feed items are read."""
        return self.words or self.annotator.concerns(RSS["item"])

    def _folding(self) -> tuple[bool, bool] | None:
        options = self.ontology.roots.options
        return (options.casefold, options.nfkc) if options.folds else None

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

    def rewritten_constants(self, parser: SubscriptionParser, id: str, text: str) -> list[str]:
        """Return a query's constants with root terms put in, in base units.

        Raises
        ------
        SubscriptionError
            When a unit is unknown, or incompatible with its attribute's; when a class is named
            that is unknown.
        """
        rewritten = rewritten_query(id, parser.query(id, text), self.root, self.units)
        return [written(term) for term, _ in rewritten.constants()]

    def enrich(
        self, publication: Publication, now: datetime, mentions: Iterable[Mention] | None = None
    ) -> Enriched:
        """Return a publication with everything that follows, and how it came about.

        Parameters
        ----------
        now
            What ``NOW()`` gives in mapping functions.
        mentions
            What is asked for: of attributes and ``gm:words``, those are found; by default those
            of the engine's subscriptions.
        """
        asked = None if mentions is None else tuple(mentions)
        asks = self.words if asked is None else any(p == WORDS for p, _ in asked)
        read, stated, words = self._annotated(publication, asks)
        problems: list[Problem] = []
        whole, mapped, steps = stated, None, ATTRIBUTES
        hidden: dict[Triple, None] = {}
        if self.rdfs:
            stated = self._as_graph(stated)
            normal = self._normal(stated, problems.append)
            hidden = dict.fromkeys(normal.triples[len(normal.seen_by_any) :])
            whole = normal.with_triples(normal.seen_by_any, normal.derived.difference(hidden))
            if self.functions is None:
                steps |= RULES
            else:
                mapped = self.functions.run(normal, self, now, problems.append)
                whole = whole.with_derived(t for t in mapped.closed if t not in hidden)
        triples, own, shown = ordered(whole)
        triples = triples[:shown]
        origins, shown, is_whole = self._follow(publication.id, triples, own, steps, asked)
        if not is_whole:
            problems.append(incomplete(_place(publication)))
        found = tuple(origins)
        root = self.ontology.root if self.rdfs else lambda term: term
        words = [(root(s), p, o) for s, p, o in words]
        whole = whole.extended(found[:shown]).with_attributes((*found[shown:], *words, *hidden))
        origins = dict.fromkeys(whole.triples) | origins
        if mapped is None:
            return Enriched(whole, stated, read, origins, problems=tuple(problems))
        origins |= mapped.closed
        return Enriched(whole, stated, read, origins, mapped.mapped, mapped.runs, tuple(problems))

    def _annotated(
        self, publication: Publication, asks: bool
    ) -> tuple[Mapping[Triple, Found], Publication, list[Triple]]:
        """Return the triples found in texts, the publication with concepts, and ``gm:words``."""
        found: dict[Triple, Found] = {}
        for one in self.annotator.annotate(publication):
            place = one.occurrence
            found.setdefault(one.triple, (one.property, (place.label.text, place.form), place.text))
        stated = publication.with_derived(found)
        words = self.annotator.words(publication.triples) if asks else {}
        found |= {triple: (read, None, "") for triple, read in words.items()}
        return found, stated, list(words)

    def _as_graph(self, publication: Publication) -> Publication:
        """Return an event with what its attributes say in the ontology's words.

        A publication is an event when its first triple is an attribute; others stay as they are.
        """
        triples = publication.triples
        if not triples or name_of(triples[0][1]) is None:
            return publication
        found, _, _ = self._follow(publication.id, triples, len(triples), EVENT)
        return publication.with_derived(found)

    def _normal(self, publication: Publication, on_problem: OnProblem) -> Publication:
        """Return a publication with roots put in, in base units."""
        ontology = self.ontology
        return ontology.units.normal(ontology.rewrite(publication), on_problem)

    def prepare(self, publication: Publication, steps: int, now: datetime) -> Enriched:
        """Do the steps that a publication calls for and the core does not do."""
        if steps & MAPPING:
            return self.enrich(publication, now, [(WORDS, None)] if self.words else [])
        found, stated, words = self._annotated(publication, self.words)
        problems: list[Problem] = []
        normal = self._normal(self._as_graph(stated), problems.append)
        return Enriched(normal.with_attributes(words), stated, found, problems=tuple(problems))


def _text(term: Term | None) -> str | None:
    return None if term is None else written(term)


def ordered(publication: Publication) -> tuple[tuple[Triple, ...], int, int]:
    """Return the triples in the order of the core.

    Those that somebody stated come first, and those that only some patterns see last. Also returns
    how many were stated, and how many every pattern sees.
    """
    shown, derived = publication.seen_by_any, publication.derived
    stated = [triple for triple in shown if triple not in derived]
    others = (triple for triple in shown if triple in derived)
    hidden = publication.triples[len(shown) :]
    return (*stated, *others, *hidden), len(stated), len(shown)


def _place(publication: Publication) -> Place:
    place = publication.source
    return Place(place.source, place.line, place.column, publication.id)


def incomplete(place: Place) -> Problem:
    """Return the problem of a publication from which more follows than is derived."""
    what = (
        "it is incomplete: more follows than the limits `derived_triples` and `event_paths` allow,"
        " or its texts take half of `publication_seconds`"
    )
    remedy = "Raise the limit, or cut it into smaller publications."
    return Problem(what, place, remedy, Severity.WARNING)


class _Texts(dict[Term, str]):
    """The N-Triples texts of terms."""

    def __missing__(self, term: Term) -> str:
        self[term] = text = written(term)
        return text

    def rows(self, triples: Iterable[Triple]) -> list[tuple[str, str, str]]:
        """Return the texts of triples."""
        return [(self[s], self[p], self[o]) for s, p, o in triples]
