"""An ontology: domain knowledge, compiled for matching.

Construction has these steps: stated triples → roots of equivalent terms → triples with roots →
taxonomies of classes, properties and concepts. Rarely needed parts (the labels) are built on first
use. The compiled core derives triples by rules (`graphmatch.enrichment.Enricher`).

A taxonomy has one kind of link, but G-ToPSS's operators follow all kinds. A term is below its
superclasses, its broader concepts, and the classes that it is an instance of. A publication may
state further links.

Source: Petrovic, Liu, Jacobsen: G-ToPSS, WWW 2005, sections 3.2 and 3.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode

import semantic.html as html
from semantic.annotation.annotate import Label
from semantic.errors import OnProblem, OntologyError, Place, Problem, Severity, plural, warn_problem
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.mapping import MappingFunction
from semantic.ontology.axioms import AxiomCounts, UnusedAxioms, count_axioms
from semantic.ontology.csv_tables import iri_of
from semantic.ontology.equivalence import (
    LINKS,
    by_predicate,
    report_circles,
    report_literals,
    rooted,
)
from semantic.ontology.names import LABELS, Names, Said, ShownNames, TermNames, said_by
from semantic.ontology.synonyms import (
    DEFAULT_SYNONYM_OPTIONS,
    SynonymOptions,
    SynonymPairs,
    normalized,
)
from semantic.ontology.taxonomy import Taxonomy, edges_of, grouped, reached, shortest_path
from semantic.progress import OnProgress, ignore
from semantic.publication import Publication
from semantic.terms import Term, Triple, compact
from semantic.units.quantities import BASE_UNIT, UNIT_ATTRIBUTE, UnitError
from semantic.units.registry import Registry
from semantic.units.units import Units
from semantic.vocabulary import (
    DOMAIN,
    EQUIVALENT_CLASS,
    EQUIVALENT_PROPERTY,
    GM,
    INVERSE_OF,
    NARROWER,
    OWL,
    PREFIXES,
    RANGE,
    RDF,
    RDFS,
    SAME_AS,
    SKOS,
    SUBPROPERTY,
    TYPE,
)

Links: TypeAlias = Mapping[Term, Sequence[Term]]
"""Map from terms to the terms directly above them, as stated in a publication."""

_MEMBERS: Mapping[str, frozenset[Term]] = {
    "classes": frozenset({RDFS["Class"], OWL["Class"]}),
    "properties": frozenset(
        {RDF["Property"], OWL["ObjectProperty"], OWL["DatatypeProperty"], OWL["AnnotationProperty"]}
    ),
    "concepts": frozenset({SKOS["Concept"]}),
}
"""Classes whose instances are the members of each taxonomy."""

_SCHEMA = LINKS | {DOMAIN, RANGE, INVERSE_OF, EQUIVALENT_CLASS, EQUIVALENT_PROPERTY, SAME_AS}
"""Properties whose objects must not be literals."""

_TRUE = Literal(True)
_NO_TOPICS = frozenset({OWL["Ontology"], SKOS["ConceptScheme"], RDFS["Datatype"]})


class Ontology:
    """Domain knowledge for matching: taxonomies, synonyms, labels, units and mapping functions.

    Parameters
    ----------
    triples
        Stated triples; publications must not share their blank nodes.
    synonyms
        Pairs from synonym files.
    prefixes
        Prefixes of the files, for displaying terms.
    options
        Rules that decide which texts are equal.
    mapping
        Mapping functions, in their order.
    on_problem
        Called with each repair (of a cycle) and each ignored triple (a literal for a class).
    known
        Problems that were reported before; they are not reported again.
    registry
        The unit cache of an ontology that this one replaces.

    Examples
    --------
    >>> from semantic.vocabulary import SUBCLASS
    >>> laptop, computer = NamedNode("urn:laptop"), NamedNode("urn:computer")
    >>> ontology = Ontology([(laptop, SUBCLASS, computer)])
    >>> ontology.is_a(laptop, computer)
    True
    """

    def __init__(
        self,
        triples: Iterable[Triple] = (),
        synonyms: SynonymPairs | None = None,
        *,
        prefixes: Mapping[str, str] | None = None,
        options: SynonymOptions = DEFAULT_SYNONYM_OPTIONS,
        mapping: Iterable[MappingFunction] = (),
        on_problem: OnProblem = warn_problem,
        known: Iterable[Problem] = (),
        registry: Registry | None = None,
    ) -> None:
        if isinstance(triples, str | Path):
            name = str(triples)
            raise TypeError(f"Ontology takes triples. Load a file: Ontology.load({name!r}).")
        self.prefixes: Mapping[str, str] = {**(prefixes or {}), **PREFIXES}
        self.stated = tuple(dict.fromkeys(triples))
        self.problems: list[Problem] = []
        self._known = frozenset(known)
        self._on_problem = on_problem
        self.pairs = synonyms or SynonymPairs()
        pairs = normalized(self.pairs, options, self._add_problem)
        found = rooted(self.stated, pairs, options, self._report)
        self.roots, self.triples, self.groups = found
        self.names = Names(pairs, self.roots)
        self._linking = self._link_properties()
        says = (p for p in self.groups if p in _SCHEMA or p in self._linking)
        report_literals(self.of(*says), self._report)
        edges = edges_of(self._stated_links(self.of(*self._linking)))
        self.classes = Taxonomy(edges["classes"], self._members("classes"))
        self.properties = Taxonomy(edges["properties"], self._members("properties"))
        preferred = (s for s, _, _ in self.of(SKOS["prefLabel"]) if self._is_topic(s))
        named = (term for term in preferred if term not in self.classes)
        self.concepts = Taxonomy(edges["concepts"], (*self._members("concepts"), *named))
        trees = {"classes": self.classes, "properties": self.properties, "concepts": self.concepts}
        report_circles(trees, self._report)
        declaring = self.of(BASE_UNIT, UNIT_ATTRIBUTE)
        self.units = Units(declaring, self.properties, self._add_problem, registry=registry)
        if (normal := self.units.normal_triples(self.triples, self._mismeasured)) is not None:
            self.triples = tuple(normal)
            self.groups = by_predicate(self.triples)
        self.mapping = tuple(mapping)

    @classmethod
    def load(
        cls,
        *paths: str | Path,
        imports: str | Path | None = None,
        reason: str | None = None,
        cache: str | Path | bool | None = None,
        taxonomies: Iterable[NamedNode | str] = (),
        synonyms: SynonymOptions = DEFAULT_SYNONYM_OPTIONS,
        on_problem: OnProblem = warn_problem,
        on_progress: OnProgress = ignore,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Ontology:
        """Load one ontology from RDF, OWL/XML, synonyms or topics (``.csv``) and rules (``.rq``).

        Parameters
        ----------
        imports
            The folder that is searched for ``owl:imports``.
        reason
            ``"hermit"`` or ``"pellet"``: the reasoner whose inferences are added as stated triples.
        cache
            The folder of a reasoner's earlier results; ``None`` for the user's own, ``False`` for
            none.
        taxonomies
            Properties that make a taxonomy, as if a file declared them as ``gm:Taxonomy``: terms,
            IRIs, or prefixed names with the usual prefixes or those of the files.
        synonyms
            Rules for comparing names.
        on_progress
            Called after each file with a `Progress`.

        Raises
        ------
        OntologyError
            If a file cannot be read, reasoning fails, or the name of a property is invalid.
        InputError
            If the reasoner is unknown.
        """
        from semantic.ontology.loading import LoadOptions, read_sources
        from semantic.ontology.reasoner import ReasonerName, cache_folder

        options = LoadOptions(
            None if imports is None else Path(imports),
            None if reason is None else ReasonerName(reason),
            None if reason is None else cache_folder(cache),
        )
        read = read_sources([Path(p) for p in paths], on_problem, limits, options, on_progress)
        prefixes = {**read.prefixes, **PREFIXES}
        declared = ((_property(name, prefixes), TYPE, GM["Taxonomy"]) for name in taxonomies)
        return cls(
            (*read.triples, *declared),
            read.synonyms,
            prefixes=read.prefixes,
            options=synonyms,
            mapping=(MappingFunction(path.stem, text, str(path)) for path, text in read.rules),
            on_problem=on_problem,
        )

    # -- construction -----------------------------------------------------------------------

    def _report(self, what: str, remedy: str) -> None:
        self._add_problem(Problem(what, Place("ontology"), remedy, Severity.WARNING))

    def _mismeasured(self, attribute: Term, error: UnitError) -> None:
        self._report(f"{compact(attribute)}: {error.what}", error.remedy)

    def _add_problem(self, problem: Problem) -> None:
        self.problems.append(problem)
        if problem not in self._known:
            self._on_problem(problem)

    def update(self, added: Iterable[Triple] = (), removed: Iterable[Triple] = ()) -> Ontology:
        """Return a changed copy of the ontology.

        Matching with this ontology is not disturbed: `Engine.update_ontology` switches to the new
        one between two publications. Problems of this ontology are not reported again.

        Parameters
        ----------
        added, removed
            Triples as stated in files, not derived ones. A triple in both is kept.

        Examples
        --------
        >>> from semantic.vocabulary import SUBCLASS
        >>> laptop, computer = NamedNode("urn:laptop"), NamedNode("urn:computer")
        >>> old = Ontology()
        >>> new = old.update(added=[(laptop, SUBCLASS, computer)])
        >>> new.is_a(laptop, computer), old.is_a(laptop, computer)
        (True, False)
        """
        gone = frozenset(removed)
        for triple in gone.difference(self.stated):
            what = f"not stated, so it cannot be removed: {' '.join(map(compact, triple))}"
            remedy = "Remove the triples from which it is derived."
            self._on_problem(Problem(what, Place("ontology"), remedy, Severity.WARNING))
        return Ontology(
            (*(triple for triple in self.stated if triple not in gone), *added),
            self.pairs,
            prefixes=self.prefixes,
            options=self.roots.options,
            mapping=self.mapping,
            on_problem=self._on_problem,
            known=self.problems,
            registry=self.units.registry,
        )

    # -- stated triples ---------------------------------------------------------------------

    def of(self, *properties: Term) -> Iterator[Triple]:
        """Yield the stated triples with these properties, in root terms."""
        return (triple for property_ in properties for triple in self.groups.get(property_, ()))

    def _link_properties(self) -> Mapping[Term, Sequence[Term]]:
        """Map each property to the is-a properties that it implies: itself, or those above it."""
        found: dict[Term, list[Term]] = {}
        below = self._sub_properties().descendants
        for link in sorted(LINKS, key=str):
            for property_ in dict.fromkeys((link, *below(link))):
                found.setdefault(property_, []).append(link)
        return found

    def _sub_properties(self) -> Taxonomy:
        """Return the hierarchy of properties.

        It is stated with ``rdfs:subPropertyOf``, or with sub-properties and inverses of it.
        """
        both = ((s, o) for s, _, o in self.of(INVERSE_OF) if not isinstance(o, Literal))
        inverses = grouped(pair for s, o in both for pair in ((s, o), (o, s)))
        links: dict[tuple[Term, Term], None] = {}
        while True:
            tree = Taxonomy(links)
            # True: subjects are below objects.
            ways: list[tuple[Term, bool]] = [(SUBPROPERTY, True)]
            for property_, is_up in ways:
                more = dict.fromkeys((below, is_up) for below in tree.children(property_))
                more |= dict.fromkeys((other, not is_up) for other in inverses.get(property_, ()))
                ways += (way for way in more if way not in ways)
            new: dict[tuple[Term, Term], None] = {
                (s, o) if is_up else (o, s): None
                for property_, is_up in ways
                for s, _, o in self.of(property_)
                if not isinstance(o, Literal)
            }
            if new.keys() <= links.keys():
                return tree
            links |= new

    def _members(self, kind: str) -> list[Term]:
        declared = _MEMBERS[kind]
        typed = self.of(TYPE)
        return [s for s, _, o in typed if o in declared and not isinstance(s, BlankNode)]

    def _stated_links(self, triples: Iterable[Triple]) -> Iterator[Triple]:
        """Yield the is-a links in triples; expand those stated with a sub-property."""
        for subject, predicate, object_ in triples:
            for link in self._linking.get(predicate, ()):
                yield subject, link, object_

    def links(self, publication: Publication) -> Links:
        """Map terms to those directly above them, by the is-a links that a publication states.

        All are root terms. Derived triples are ignored.
        """
        stated = (triple for triple in publication.triples if triple not in publication.derived)
        return grouped(
            (self.root(o), self.root(s)) if p == NARROWER else (self.root(s), self.root(o))
            for s, p, o in self._stated_links(stated)
        )

    @cached_property
    def types(self) -> Mapping[Term, tuple[Term, ...]]:
        """The stated classes of each instance."""
        links = self._stated_links(self.of(*self._linking))
        return grouped((s, o) for s, p, o in links if p == TYPE)

    @cached_property
    def _instances(self) -> Mapping[Term, tuple[Term, ...]]:
        return grouped((c, s) for s, classes in self.types.items() for c in classes)

    def instances(self, class_: Term) -> tuple[Term, ...]:
        """Return the stated direct instances of a class."""
        return self._instances.get(self.root(class_), ())

    # -- hierarchy --------------------------------------------------------------------------

    def parents(self, term: Term, links: Links | None = None) -> tuple[Term, ...]:
        """Return the terms directly above: superclasses, classes of an instance, broader concepts.

        `links` are the publication's own is-a links.
        """
        term = self.root(term)
        above = (
            *self.classes.parents(term),
            *self.properties.parents(term),
            *self.concepts.parents(term),
            *self.types.get(term, ()),
            *((links or {}).get(term, ())),
        )
        return tuple(dict.fromkeys(above))

    def children(self, term: Term) -> tuple[Term, ...]:
        """Return the terms directly below: subclasses, instances, narrower concepts."""
        term = self.root(term)
        below = (
            *self.classes.children(term),
            *self.properties.children(term),
            *self.concepts.children(term),
            *self.instances(term),
        )
        return tuple(dict.fromkeys(below))

    def ancestors(self, term: Term, links: Links | None = None) -> tuple[Term, ...]:
        """Return all terms above, nearest first, following a publication's `links`."""
        return reached(self.root(term), lambda current: self.parents(current, links))

    def descendants(self, term: Term) -> tuple[Term, ...]:
        """Return all terms below, nearest first."""
        return reached(self.root(term), self.children)

    def path(self, term: Term, other: Term, links: Links | None = None) -> tuple[Term, ...]:
        """Return a shortest path up from one term to another, with both; empty if there is none."""
        return shortest_path(
            self.root(term), self.root(other), lambda current: self.parents(current, links)
        )

    def is_a(self, term: Term, other: Term, links: Links | None = None) -> bool:
        """Return whether `term` is `other` or below it: ≤ in G-ToPSS (section 3.2)."""
        other = self.root(other)
        return self.root(term) == other or other in self.ancestors(term, links)

    def is_child(self, term: Term, other: Term, links: Links | None = None) -> bool:
        """Return whether `term` is directly below `other`: = in G-ToPSS (section 3.2)."""
        term, other = self.root(term), self.root(other)
        return term != other and other in self.parents(term, links)

    # -- names ------------------------------------------------------------------------------

    def labels(self) -> list[Label]:
        """Return all labels that a text may use for a class, a concept or an instance.

        Properties are excluded, because texts are not about them. The terms with a true
        ``gm:properName`` are proper names.
        """
        proper = frozenset(s for s, _, o in self.of(GM["properName"]) if o == _TRUE)
        return list(self.names.labels(self._said, self._is_topic, proper))

    @cached_property
    def shown_names(self) -> ShownNames:
        """The labels to display for each term."""
        return ShownNames(self.of(*LABELS), self.prefixes)

    @cached_property
    def _said(self) -> list[Said]:
        return said_by(self.of(*LABELS))

    def _is_topic(self, term: Term) -> bool:
        if not isinstance(term, NamedNode) or term in self.properties:
            return False
        return not _NO_TOPICS.intersection(self.types.get(term, ()))

    def root(self, term: Term) -> Term:
        """Return the root: the one term that stands for this term and all its synonyms."""
        return self.roots.root(term)

    def taxonomy(self, property_: NamedNode) -> Taxonomy:
        """Return the taxonomy of one property and its sub-properties.

        Any property is allowed. Subscriptions follow only the links of RDFS and SKOS, and of
        properties declared as ``gm:Taxonomy``.
        """
        root = self.root(property_)
        wanted = {root, *self.properties.descendants(root)}
        edges = ((s, o) for s, _, o in self.of(*wanted) if not isinstance(o, Literal))
        return Taxonomy(edges)

    @cached_property
    def value_names(self) -> TermNames:
        """The classes and concepts by name: labels, local names, and texts of synonym files."""
        trees = [tree for tree in (self.classes, self.concepts) if len(tree)]
        names = (name for tree in trees for name in self.names.called(tree, self._said))
        return TermNames(trees, names, self.root)

    # -- counts -----------------------------------------------------------------------------

    def unused_axioms(self, entailment: str = "rdfs") -> UnusedAxioms:
        """Return the number of axioms of each kind that an entailment ignores, to be printed.

        An entailment is ``"rdfs"``, ``"owl-rl"`` or ``"none"``.

        Examples
        --------
        >>> part_of = NamedNode("urn:partOf")
        >>> print(Ontology([(part_of, TYPE, OWL["TransitiveProperty"])]).unused_axioms())
        1 transitive property: not used by rdfs; 1 of them is used by owl-rl
        """
        return UnusedAxioms.of(self._axioms, entailment)

    @cached_property
    def _axioms(self) -> AxiomCounts:
        return count_axioms(self.groups, self._linking)

    @property
    def counts(self) -> str:
        """The numbers of triples, of terms in each taxonomy, and of other parts, for people."""
        parts = [
            plural(len(self.stated), "stated triple"),
            plural(len(self.classes), "class", "classes"),
            plural(len(self.properties), "property", "properties"),
            plural(len(self.concepts), "concept"),
        ]
        if self.mapping:
            parts.append(plural(len(self.mapping), "mapping function"))
        if self.problems:
            parts.append(plural(len(self.problems), "problem"))
        return " · ".join(parts)

    def _repr_html_(self) -> str:
        return html.block("Ontology", [self.counts])

    # -- publications -----------------------------------------------------------------------

    def rewrite(self, publication: Publication) -> Publication:
        """Return the publication with every term replaced by its root."""
        return publication.with_triples(
            tuple(self.roots.rewrite(publication.triples)),
            frozenset(self.roots.rewrite(publication.derived)),
        )


def _property(name: NamedNode | str, prefixes: Mapping[str, str]) -> NamedNode:
    """Return the property of an IRI or a prefixed name; raise `OntologyError` if it is neither."""
    found = name if isinstance(name, NamedNode) else iri_of(name, prefixes)
    if found is None:
        what, place = "not an IRI, and no file declares its prefix", Place(f"taxonomy {name}")
        raise OntologyError(Problem(what, place, "Give the property's whole IRI."))
    return found
