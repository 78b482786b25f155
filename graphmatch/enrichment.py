"""Enrichment: one ontology, its input for the core, and the steps that run in Python.

An `Enricher` is complete before it is used. The core annotates text and applies root terms and
rules. Python converts units and runs mapping functions, for publications with a term that needs
it, and passes the labels to the core before the first feed item.

Matching derives only the triples that subscriptions ask for. Mapping functions, and explanations of
subscriptions that do not match, get all derived triples, from the same rules of the core:
`Enricher.follow`, `Enricher.enrich`. The reasons of matches come from their report.
The pipeline of a publication is always

    concepts that its text names → an event as a graph → root terms → units → rules and mapping
    functions, in turn until no triple is new → the requested attributes and words
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from weakref import ref

from graphmatch import _native
from graphmatch.subscription import SubscriptionParser, rewritten_query
from semantic.annotation.annotate import Annotator
from semantic.annotation.words import WORDS
from semantic.attributes.concepts import Concepts
from semantic.attributes.names import concept_name_of, name_of
from semantic.clock import moment
from semantic.errors import Choice, OnProblem, Place, Problem, Severity, SubscriptionError
from semantic.files import plain
from semantic.limits import DEFAULT_LIMITS
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.terms import Derived, Mention, Term, Triple, written
from semantic.units.quantities import IN_UNIT, is_in_unit
from semantic.units.units import Units
from semantic.vocabulary import DCTERMS, PREFIXES, RSS

if TYPE_CHECKING:
    from graphmatch.mapping import MappingFunctions

ITEM, EVENT, ROOTS, UNITS, RULES, MAPPING, ATTRIBUTES = 1, 2, 4, 8, 16, 32, 64
"""Steps of enrichment, with the core's numbers."""
PREPARED = ITEM | EVENT | ROOTS | UNITS
"""The steps that `Enricher.prepare` always does."""
CONSTRUCTS: Mapping[str, str] = {
    "cax-adc": "owl:AllDisjointClasses", "cax-dw": "owl:disjointWith",
    "cls-avf": "owl:allValuesFrom", "cls-com": "owl:complementOf", "cls-hv1": "owl:hasValue",
    "cls-hv2": "owl:hasValue", "cls-int1": "owl:intersectionOf", "cls-maxc1": "owl:maxCardinality",
    "cls-maxc2": "owl:maxCardinality", "cls-maxqc1": "owl:maxQualifiedCardinality",
    "cls-maxqc2": "owl:maxQualifiedCardinality", "cls-maxqc3": "owl:maxQualifiedCardinality",
    "cls-maxqc4": "owl:maxQualifiedCardinality", "cls-nothing2": "owl:Nothing",
    "cls-oo": "owl:oneOf", "cls-svf1": "owl:someValuesFrom", "cls-svf2": "owl:someValuesFrom",
    "eq-diff1": "owl:differentFrom", "eq-diff2": "owl:AllDifferent", "eq-diff3": "owl:AllDifferent",
    "prp-adp": "owl:AllDisjointProperties", "prp-asyp": "owl:AsymmetricProperty",
    "prp-fp": "owl:FunctionalProperty", "prp-ifp": "owl:InverseFunctionalProperty",
    "prp-irp": "owl:IrreflexiveProperty", "prp-key": "owl:hasKey",
    "prp-npa1": "owl:NegativePropertyAssertion", "prp-npa2": "owl:NegativePropertyAssertion",
    "prp-pdw": "owl:propertyDisjointWith", "prp-spo2": "owl:propertyChainAxiom",
    "prp-symp": "owl:SymmetricProperty", "prp-trp": "owl:TransitiveProperty", "same": "owl:sameAs",
}  # fmt: skip
"""The construct of OWL to which each rule belongs, except those of RDFS and about schema."""
MAX_NAMED_UNITS = 1000
"""Maximum number of units that all subscriptions name, each with its property."""


class Entailment(Choice):
    """The rules that apply to publications and the ontology."""

    RDFS = "rdfs"
    OWL_RL = "owl-rl"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class OntologyUpdate:
    """The effects of an ontology update.

    Parameters
    ----------
    triples
        The number of triples that follow from only one of the ontologies.
    names
        The number of names with another root, or with a root for the first time.
    reindexed
        The number of reindexed subscriptions.
    """

    triples: int
    names: int
    reindexed: int


@dataclass(frozen=True, slots=True)
class EnrichedPublication:
    """An enriched publication, and its provenance.

    Parameters
    ----------
    publication
        E(P): the stated and derived triples, with root terms.
    stated
        The publication as read, with the concepts that its text names.
    found
        The triples found in texts. Each has the property of the text, the label and its form
        (``None`` for words), and the part of the text.
    origins
        Each triple of E(P) with the rule and the triple that derived it, if any.
    mapped
        The triples from mapping functions, each with the name of the function.
    runs
        The number of mapping function runs.
    problems
        The unusable parts of the publication (an unknown unit), and failed mapping functions.
    """

    publication: Publication
    stated: Publication
    found: Mapping[Triple, Found] = field(default_factory=dict)
    origins: Derived = field(default_factory=dict)
    mapped: Mapping[Triple, str] = field(default_factory=dict)
    runs: int = 0
    problems: tuple[Problem, ...] = ()


Found: TypeAlias = tuple[Term, tuple[str, int] | None, str]


class OntologyAndAnnotator(NamedTuple):
    """An ontology, and the annotator that finds its labels in texts.

    Parameters
    ----------
    own
        Whether the user passed the annotator to the engine.
    """

    ontology: Ontology
    annotator: Annotator
    own: bool = False

    @classmethod
    def of(
        cls, ontology: Ontology, annotator: Annotator | None, before: Annotator | None = None
    ) -> OntologyAndAnnotator:
        """Return an ontology with an annotator, by default one over the labels of the ontology.

        The annotator `before` is reused if it is the same, because a new one takes time to build.
        """
        if annotator is not None:
            return cls(ontology, annotator, own=True)
        labels = tuple(ontology.labels())
        if before is None or not before.stem or before.labels != labels:
            before = Annotator(labels)
        return cls(ontology, before)


class Enricher:
    """Applies one ontology to publications and queries, in Python and through a core.

    Parameters
    ----------
    known
        The ontology, alone or with its annotator; or a function that makes both on first use,
        because the core of an opened engine needs neither for most publications.
    entailment
        Whether the ontology's rules apply.
    core
        The core of the engine, which passes it the ontology; by default a new one, made on first
        use.
    """

    def __init__(
        self,
        known: Ontology | OntologyAndAnnotator | Callable[[], OntologyAndAnnotator],
        entailment: Entailment = Entailment.RDFS,
        *,
        core: _native.Core | None = None,
    ) -> None:
        self.entailment = entailment
        self.has_rules = entailment is not Entailment.NONE
        self._known = (
            OntologyAndAnnotator(known, Annotator([])) if isinstance(known, Ontology) else known
        )
        self._making = RLock()
        self._shared = None if core is None else ref(core)  # The core refers to its enricher.
        # Whether a subscription asks for `gm:words`; the engine updates it later.
        self.words = core is not None and core.has_term(str(WORDS))
        self._is_outdated = False

    @property
    def known(self) -> OntologyAndAnnotator:
        """The ontology and its annotator, made on first use if a function makes them."""
        if not isinstance(self._known, OntologyAndAnnotator):
            with self._making:
                if not isinstance(self._known, OntologyAndAnnotator):
                    self._known = self._known()
        return self._known

    @property
    def ontology(self) -> Ontology:
        """The ontology."""
        return self.known.ontology

    @property
    def annotator(self) -> Annotator:
        """The annotator of texts."""
        return self.known.annotator

    @property
    def own_annotator(self) -> Annotator | None:
        """The annotator passed to the engine, or ``None``."""
        return self.known.annotator if self.known.own else None

    @cached_property
    def functions(self) -> MappingFunctions | None:
        """The ontology's mapping functions, ready to run; ``None`` if it has none.

        Raises
        ------
        OntologyError
            If a function is invalid, or has a unit that is unknown or wrong for its attribute.
        """
        ontology = self.ontology
        if not (self.has_rules and ontology.mapping):
            return None
        from graphmatch.mapping import MappingFunctions  # Few ontologies have any.

        return MappingFunctions(ontology.mapping, ontology.root, units=ontology.units)

    @property
    def _core(self) -> _native.Core:
        """The core that has the ontology: the engine's if it still exists, otherwise an own one."""
        shared = None if self._shared is None else self._shared()
        return self._own if shared is None else shared

    @cached_property
    def _own(self) -> _native.Core:
        core = _native.Core(list(PREFIXES.items()), DEFAULT_LIMITS)
        core.set_ontology(None, self.stated(None))
        return core

    # -- queries ----------------------------------------------------------------------------

    def evaluation(
        self, publication: Publication, now: datetime, calls: _native.Calls | None = None
    ) -> _native.Evaluation:
        """Return an object that queries a publication and the ontology, with `now` as ``NOW()``.

        `calls` are the known results of operator calls, which are not made again.
        """
        triples, stated, shown = ordered(publication)
        id, time = plain(publication.id), moment(now)
        return self._core.evaluation(id, triples, stated, shown, time, calls)

    def has_term(self, term: Term) -> bool:
        """Return whether the ontology or a subscription contains a term."""
        return self._core.has_term(str(term))

    def follow(self, triples: Iterable[Triple]) -> Derived:
        """Return E(P): the triples with root terms, and all triples derived from them by rules.

        Examples
        --------
        >>> from pyoxigraph import NamedNode
        >>> from semantic.vocabulary import SUBCLASS, TYPE
        >>> x, laptop, computer = (NamedNode(f"urn:{n}") for n in ("x", "laptop", "computer"))
        >>> enricher = Enricher(Ontology([(laptop, SUBCLASS, computer)]))
        >>> enricher.follow([(x, TYPE, laptop)]) == {
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
        """Return the triples that the core derives from `given`; the first `stated` are stated.

        `steps` are the steps to do, and `mentions` the attributes to derive, by default those that
        subscriptions ask for. Also return how many of the derived triples every pattern sees (they
        come first), and whether the result is complete. See `_native.Core.entail`.
        """
        rows = None if mentions is None else [(_text(p), _text(o)) for p, o in mentions]
        found, shown, is_whole = self._core.entail(plain(id), given, stated, steps, rows)
        return dict(found), shown, is_whole

    @property
    def closure(self) -> frozenset[Triple]:
        """C(O): all triples that follow from the ontology alone; without rules, the stated ones.

        A deep hierarchy of n terms has many more than n pairs.
        """
        return frozenset(self._core.closure())

    @cached_property
    def concepts(self) -> Concepts:
        """The classes and concepts of the ontology by name, made on first use."""
        return Concepts(self.ontology)

    @cached_property
    def units(self) -> Units | None:
        """The ontology's units, with those that queries name; ``None`` without rules."""
        return self._units_with(()) if self.has_rules else None

    def _units_with(self, terms: Iterable[Term]) -> Units:
        """Return the units, with those that functions, subscriptions and other `terms` name."""
        core = None if self._shared is None else self._shared()
        asked = () if core is None else map(_native.term, core.demanded(f"<{IN_UNIT}"))
        functions = () if self.functions is None else self.functions.demanded()
        return self.ontology.units.with_hidden((*asked, *functions, *terms))

    def adapt(self) -> bool:
        """Adapt to new subscriptions; return whether the core has to get the ontology again."""
        outdated, self._is_outdated = self._is_outdated, False
        if not self.words and self._core.has_term(str(WORDS)):
            outdated = outdated or not self.reads_items
            self.words = True
        return outdated

    def root(self, term: Term) -> Term:
        """Return the root term of a term.

        Raises
        ------
        UnknownNameError
            If an attribute subscription names a class that is unknown or ambiguous.
        """
        term = self.concepts.resolved(term)
        return self.ontology.root(term) if self.has_rules else term

    # -- input for the core -----------------------------------------------------------------

    def stated(self, before: Enricher | None) -> dict[str, Any]:
        """Return the ontology, in N-Triples, as the argument of `_native.Core.set_ontology`.

        `before` is the enricher of the previous ontology, to find the changes.
        """
        ontology, texts = self.ontology, _Texts()
        names, triples = ontology.names, ontology.triples
        if self.units is not None and self.units.hidden:
            triples = tuple(self.units.normal_triples(triples, lambda *_: None) or triples)
        everything, changed = self._changed(before)
        return {
            "triples": texts.rows(triples),
            "owl_rl": self.entailment is Entailment.OWL_RL,
            "plain": None if self.has_rules else texts.rows(ontology.stated),
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
        """Whether mapping functions run for every publication, because one names no property."""
        return self.functions is not None and self.functions.always

    def _steps(self) -> Iterable[tuple[str, int]]:
        found: defaultdict[str, int] = defaultdict(int)
        if self.reads_items:
            found[written(RSS["item"])] |= ITEM
        if self.has_rules:
            units = self.ontology.units
            for term in units.measured:
                found[written(term)] |= UNITS
            for property_ in self.functions.reading() if self.functions is not None else ():
                found[written(self.ontology.root(property_))] |= MAPPING
        return found.items()

    @property
    def reads_items(self) -> bool:
        """Whether the engine reads the texts of feed items."""
        return self.words or bool(self.annotator.labels)

    def _folding(self) -> tuple[bool, bool] | None:
        options = self.ontology.roots.options
        return (options.casefold, options.nfkc) if options.folds else None

    def _changed(self, before: Enricher | None) -> tuple[bool, list[str]]:
        """Return whether the new ontology affects all subscriptions, and which class names."""
        if before is None:
            return False, []
        mine, theirs = self.ontology, before.ontology
        everything = self.has_rules and (
            mine.roots.options != theirs.roots.options
            or mine.units.declarations != theirs.units.declarations
        )
        return everything, [str(term) for term in before.concepts.changed(self.concepts)]

    # -- steps in Python --------------------------------------------------------------------

    def rewritten_constants(self, parser: SubscriptionParser, id: str, text: str) -> list[str]:
        """Return a query's constants as root terms, with quantities converted.

        Also pass the meaning of class names to the core, and convert quantities of publications to
        the units that the query names.

        Raises
        ------
        SubscriptionError
            If a unit is unknown or incompatible with its attribute, or a class name is unknown.
        """
        query = parser.query(id, text)
        rewritten = rewritten_query(id, query, self.root, self.units)
        terms = [term for term, _ in rewritten.constants()]
        if self.units is not None and not self.units.hidden.issuperset(filter(is_in_unit, terms)):
            self._name_units(id, terms)
        for term, _ in query.constants():
            if concept_name_of(term) is not None:  # The core need not ask for this name again.
                self._core.resolve(written(term), written(self.root(term)))
        return [written(term) for term in terms]

    def _name_units(self, id: str, terms: Sequence[Term]) -> None:
        """Convert quantities of publications to the units that a query's constants name."""
        units = self._units_with(terms)  # Without the units of removed subscriptions.
        if len(units.hidden) > MAX_NAMED_UNITS:
            what = f"the subscriptions name more than {MAX_NAMED_UNITS} units of properties"
            raise SubscriptionError(Problem(what, Place(id), "Use a unit that others name."))
        self.units = units
        self._is_outdated = not self.ontology.units.measured.isdisjoint(self.ontology.groups)

    def enrich(
        self, publication: Publication, now: datetime, mentions: Iterable[Mention] | None = None
    ) -> EnrichedPublication:
        """Return a publication with all derived triples, and their provenance.

        Parameters
        ----------
        now
            The value of ``NOW()`` in mapping functions.
        mentions
            The attributes and ``gm:words`` to derive; by default those that the engine's
            subscriptions ask for.
        """
        asked = None if mentions is None else tuple(mentions)
        asks = self.words if asked is None else any(p == WORDS for p, _ in asked)
        read, stated, words = self._annotated(publication, asks)
        problems: list[Problem] = []
        whole, mapped, steps = stated, None, ATTRIBUTES
        hidden: dict[Triple, None] = {}
        if self.has_rules:
            stated = self._as_graph(stated)
            normal = self._normal(stated, problems.append, (p for p, _ in asked or ()))
            hidden = dict.fromkeys(normal.triples[len(normal.visible_to_all) :])
            whole = normal.with_triples(normal.visible_to_all, normal.derived.difference(hidden))
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
        root = self.ontology.root if self.has_rules else lambda term: term
        words = [(root(s), p, o) for s, p, o in words]
        whole = whole.extended(found[:shown]).with_attributes((*found[shown:], *words, *hidden))
        origins = dict.fromkeys(whole.triples) | origins
        if mapped is None:
            return EnrichedPublication(whole, stated, read, origins, problems=tuple(problems))
        origins |= mapped.closed
        return EnrichedPublication(
            whole, stated, read, origins, mapped.mapped, mapped.runs, tuple(problems)
        )

    def _annotated(
        self, publication: Publication, asks: bool
    ) -> tuple[Mapping[Triple, Found], Publication, list[Triple]]:
        """Find labels and words in the texts of a publication.

        Return the place of each triple that was found (including ``gm:words``), the publication
        with the concepts that were found, and the triples with ``gm:words`` alone. `asks` says
        whether ``gm:words`` are needed; otherwise there are none.
        """
        found: dict[Triple, Found] = {}
        for one in self.annotator.annotate(publication):
            place = one.occurrence
            triple = (one.item, DCTERMS["subject"], place.label.concept)
            found.setdefault(triple, (one.property, (place.label.text, place.form), place.text))
        stated = publication.with_derived(found)
        words = self.annotator.words(publication.triples) if asks else {}
        found |= {triple: (read, None, "") for triple, read in words.items()}
        return found, stated, list(words)

    def _as_graph(self, publication: Publication) -> Publication:
        """Return an event with the triples that its attributes state in the ontology's vocabulary.

        A publication is an event if its first triple is an attribute; others are unchanged.
        """
        triples = publication.triples
        if not triples or name_of(triples[0][1]) is None:
            return publication
        found, _, _ = self._follow(publication.id, triples, len(triples), EVENT)
        return publication.with_derived(found)

    def _normal(
        self, publication: Publication, on_problem: OnProblem, asked: Iterable[Term | None] = ()
    ) -> Publication:
        """Return a publication with root terms, and quantities in the units `asked` for."""
        ontology = self.ontology
        units = (self.units or ontology.units).with_hidden(asked)
        return units.normal(ontology.rewrite(publication), on_problem)

    def prepare(self, publication: Publication, steps: int, now: datetime) -> EnrichedPublication:
        """Return a publication after the steps that the core leaves to Python.

        These are labels, root terms and units. If `steps` has `MAPPING`, all steps are done,
        because mapping functions need all derived triples.
        """
        if steps & MAPPING:
            return self.enrich(publication, now, [(WORDS, None)] if self.words else [])
        found, stated, words = self._annotated(publication, self.words)
        problems: list[Problem] = []
        normal = self._normal(self._as_graph(stated), problems.append)
        return EnrichedPublication(
            normal.with_attributes(words), stated, found, problems=tuple(problems)
        )


def _text(term: Term | None) -> str | None:
    return None if term is None else written(term)


def ordered(publication: Publication) -> tuple[tuple[Triple, ...], int, int]:
    """Return the triples of a publication in the order of the core, and two counts.

    Stated triples come first, and those that only some patterns see come last. Also return the
    number of stated triples, and the number that every pattern sees.
    """
    shown, derived = publication.visible_to_all, publication.derived
    stated = [triple for triple in shown if triple not in derived]
    others = (triple for triple in shown if triple in derived)
    hidden = publication.triples[len(shown) :]
    return (*stated, *others, *hidden), len(stated), len(shown)


def _place(publication: Publication) -> Place:
    place = publication.source
    return Place(place.source, place.line, place.column, publication.id)


def incomplete(place: Place) -> Problem:
    """Return the problem to report if the derived triples of a publication are incomplete."""
    what = (
        "it is incomplete: it reached the limit `derived_triples` or `event_paths`, its texts took"
        " half of `publication_seconds`, or the rules took the rest"
    )
    remedy = "Raise the limit, or split it into smaller publications."
    return Problem(what, place, remedy, Severity.WARNING)


class _Texts(dict[Term, str]):
    """A cache of terms in N-Triples: the look-up of a missing term writes it."""

    def __missing__(self, term: Term) -> str:
        self[term] = text = written(term)
        return text

    def rows(self, triples: Iterable[Triple]) -> list[tuple[str, str, str]]:
        """Return each triple as three strings in N-Triples."""
        return [(self[s], self[p], self[o]) for s, p, o in triples]
