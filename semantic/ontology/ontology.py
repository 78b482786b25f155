"""An ontology: what the operator knows, put in the form that matching needs.

Building goes through these steps: stated triples → roots of equivalent terms →
triples with roots put in → taxonomies of classes, properties and concepts →
compiled schema. What is only sometimes needed (the closure, the labels) is made
when it is first asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.annotate import Label
from semantic.errors import OnProblem, Place, Problem, Severity, warn_problem
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology import rules
from semantic.ontology.entailment import SCHEMA, Schema, is_reserved, states_schema
from semantic.ontology.synonyms import Roots, SynonymPairs
from semantic.ontology.taxonomy import Taxonomy, find_cycles, shortest_path
from semantic.publication import Publication
from semantic.terms import Term, Triple, compact
from semantic.vocabulary import (
    BROADER,
    BROADER_TRANSITIVE,
    EQUIVALENT_CLASS,
    EQUIVALENT_PROPERTY,
    LABEL,
    NARROWER,
    OWL,
    PREFIXES,
    RDF,
    RDFS,
    SAME_AS,
    SKOS,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
)

Links = Mapping[Term, Sequence[Term]]
"""Terms to the terms directly above them, as a publication states it."""

_SAME = (SAME_AS, EQUIVALENT_CLASS, EQUIVALENT_PROPERTY)
_CLASS_TYPES = frozenset({RDFS["Class"], OWL["Class"]})
_PROPERTY_TYPES = frozenset(
    {RDF["Property"], OWL["ObjectProperty"], OWL["DatatypeProperty"], OWL["AnnotationProperty"]}
)
_LINKS = frozenset({TYPE, SUBCLASS, SUBPROPERTY, BROADER, NARROWER})
_NO_TOPICS = frozenset({OWL["Ontology"], SKOS["ConceptScheme"], RDFS["Datatype"]})
_LABELS = (LABEL, SKOS["prefLabel"], SKOS["altLabel"], SKOS["hiddenLabel"])


class Ontology:
    """Taxonomies, synonyms, labels and entailment.

    Parameters
    ----------
    triples
        What the ontology states; blank nodes must not be shared with publications.
    synonyms
        Pairs of a synonym file.
    prefixes
        Those of the files that it was read from, for showing terms.
    on_problem
        Called with each thing that is mended (a cycle) or ignored (a literal for a class).

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> laptop, computer = NamedNode("urn:laptop"), NamedNode("urn:computer")
    >>> ontology = Ontology([(laptop, SUBCLASS, computer)])
    >>> ontology.is_a(laptop, computer)
    True
    >>> item = NamedNode("urn:item")
    >>> enriched = ontology.enrich(Publication.of("p", [(item, TYPE, laptop)]))
    >>> (item, TYPE, computer) in enriched.derived
    True
    """

    def __init__(
        self,
        triples: Iterable[Triple] = (),
        synonyms: SynonymPairs | None = None,
        *,
        prefixes: Mapping[str, str] | None = None,
        on_problem: OnProblem = warn_problem,
    ) -> None:
        self.prefixes: Mapping[str, str] = {**(prefixes or {}), **PREFIXES}
        self.stated = tuple(dict.fromkeys(triples))
        self._pairs = synonyms or SynonymPairs()
        self.problems: list[Problem] = []
        self._on_problem = on_problem
        declared = frozenset(s for s, p, _ in self.stated if p == TYPE)
        same = _same_names(self.stated)
        self.roots = Roots(same, self._pairs, declared)
        cycles = self._cycles(self.roots.rewrite(self.stated))
        if cycles:
            folded = [(group[0], other) for group in cycles for other in group[1:]]
            self.roots = Roots([*same, *folded], self._pairs, declared)
        self.triples: tuple[Triple, ...] = tuple(self.roots.rewrite(self.stated))
        self._by_name = self._names()
        self._compile()

    @classmethod
    def load(
        cls,
        *paths: str | Path,
        on_problem: OnProblem = warn_problem,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Ontology:
        """Load one ontology from RDF files and synonym files (``.csv``); see `load.read_sources`.

        Raises
        ------
        OntologyError
            When a file cannot be read.
        """
        from semantic.ontology.load import read_sources

        read = read_sources([Path(p) for p in paths], on_problem, limits)
        return cls(read.triples, read.synonyms, prefixes=read.prefixes, on_problem=on_problem)

    # -- building ---------------------------------------------------------------------------

    def _report(self, what: str, remedy: str) -> None:
        problem = Problem(what, Place("ontology"), remedy, Severity.WARNING)
        self.problems.append(problem)
        self._on_problem(problem)

    def _cycles(self, triples: Iterable[Triple]) -> list[tuple[NamedNode, ...]]:
        """Find the is-a cycles, report them, and return their named members."""
        found = []
        for kind, edges in _edges(triples).items():
            for cycle in find_cycles(edges):
                names = tuple(term for term in cycle if isinstance(term, NamedNode))
                listed = ", ".join(compact(term) for term in cycle)
                self._report(
                    f"a cycle of {kind}: {listed} are all above each other",
                    "They are taken as one term; remove a link if they are not.",
                )
                found.append(names)
        return found

    def _compile(self) -> None:
        triples = list(self.triples)
        while True:
            edges = _edges(triples)
            kinds = _members(triples)
            self.classes = Taxonomy(edges["classes"], kinds["classes"])
            self.properties = Taxonomy(edges["properties"], kinds["properties"])
            self.concepts = Taxonomy(edges["concepts"], kinds["concepts"])
            self.schema = Schema(triples, self.classes, self.properties, self.concepts)
            known = set(triples)
            used = dict.fromkeys(t for t in triples if t[1] not in SCHEMA)
            more = [
                t
                for t in self.schema.close(t for t in used if self._leads_to_schema(t[1]))
                if t[1] in SCHEMA and t not in known
            ]
            if not more:
                break
            triples.extend(more)

    def _leads_to_schema(self, predicate: Term) -> bool:
        return any(above in SCHEMA for above in self.properties.ancestors(predicate))

    # -- what is known ----------------------------------------------------------------------

    @cached_property
    def closure(self) -> frozenset[Triple]:
        """Everything that follows from the ontology alone: C(O)."""
        return frozenset(self.schema.close((*self.triples, *self._named(self.triples))))

    @cached_property
    def _lookup(self) -> rules.Lookup:
        return rules.all_of(self.closure)

    @cached_property
    def types(self) -> Mapping[Term, tuple[Term, ...]]:
        """Each instance's classes, as stated."""
        types: defaultdict[Term, list[Term]] = defaultdict(list)
        for subject, predicate, object_ in self.triples:
            if predicate == TYPE:
                types[subject].append(object_)
        return {subject: tuple(classes) for subject, classes in types.items()}

    def instances(self, class_: Term) -> tuple[Term, ...]:
        """Return the stated direct instances of a class."""
        return self._instances.get(self.root(class_), ())

    @cached_property
    def _instances(self) -> Mapping[Term, tuple[Term, ...]]:
        instances: defaultdict[Term, list[Term]] = defaultdict(list)
        for subject, classes in self.types.items():
            for class_ in classes:
                instances[class_].append(subject)
        return {class_: tuple(several) for class_, several in instances.items()}

    def labels(self) -> list[Label]:
        """Return every name that text may use for a class, a concept or an instance.

        These are ``rdfs:label``, ``skos:prefLabel``, ``altLabel`` and ``hiddenLabel`` in every
        language, the texts that synonym files give for a term, and those they give for one of
        its labels. Properties have no part in it: no text is about a property.
        """
        found: dict[Label, None] = {}
        by_text: defaultdict[str, list[NamedNode]] = defaultdict(list)
        for subject, predicate, object_ in self.triples:
            if predicate in _LABELS and self._is_topic(subject) and isinstance(object_, Literal):
                assert isinstance(subject, NamedNode)
                found[Label(object_.value, object_.language, subject)] = None
                by_text[object_.value].append(subject)
        found.update((Label(t, None, term), None) for t, ts in self._by_name.items() for term in ts)
        for text in self._pairs.texts:
            root = self.root(Literal(text))
            assert isinstance(root, Literal)
            found.update((Label(text, None, term), None) for term in by_text.get(root.value, ()))
        return list(found)

    def _names(self) -> Mapping[str, tuple[NamedNode, ...]]:
        names: defaultdict[str, list[NamedNode]] = defaultdict(list)
        for text, iri in self._pairs.labels:
            names[text].append(self._resource(iri))
        return {text: tuple(terms) for text, terms in names.items()}

    def _resource(self, iri: NamedNode) -> NamedNode:
        root = self.root(iri)
        return root if isinstance(root, NamedNode) else iri

    def _is_topic(self, term: Term) -> bool:
        if not isinstance(term, NamedNode) or term in self.properties:
            return False
        return not _NO_TOPICS.intersection(self.types.get(term, ()))

    def root(self, term: Term) -> Term:
        """Return the term that stands for this one and its synonyms."""
        return self.roots.root(term)

    def parents(self, term: Term) -> tuple[Term, ...]:
        """Return the terms directly above: superclasses, classes of an instance, broader ones."""
        term = self.root(term)
        above = (
            *self.classes.parents(term),
            *self.properties.parents(term),
            *self.concepts.parents(term),
            *self.types.get(term, ()),
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
        """Return all terms above, nearest first; `links` are a publication's own."""
        start = self.root(term)
        seen: dict[Term, None] = {}
        queue = [start]
        for current in queue:
            for parent in (*self.parents(current), *(links or {}).get(current, ())):
                if parent not in seen:
                    seen[parent] = None
                    queue.append(parent)
        return tuple(seen)

    def descendants(self, term: Term) -> tuple[Term, ...]:
        """Return all terms below, nearest first."""
        seen: dict[Term, None] = {}
        queue = [self.root(term)]
        for current in queue:
            for child in self.children(current):
                if child not in seen:
                    seen[child] = None
                    queue.append(child)
        return tuple(seen)

    def path(self, term: Term, other: Term, links: Links | None = None) -> tuple[Term, ...]:
        """Return a shortest way up from one term to another, both included; empty if none."""
        return shortest_path(
            self.root(term),
            self.root(other),
            lambda current: (*self.parents(current), *(links or {}).get(current, ())),
        )

    def is_a(self, term: Term, other: Term, links: Links | None = None) -> bool:
        """Whether `term` is `other` or below it: G-ToPSS's ≤ (section 3.2)."""
        other = self.root(other)
        return self.root(term) == other or other in self.ancestors(term, links)

    def is_child(self, term: Term, other: Term, links: Links | None = None) -> bool:
        """Whether `term` is directly below `other`: G-ToPSS's = (section 3.2)."""
        term, other = self.root(term), self.root(other)
        above = (*self.parents(term), *(links or {}).get(term, ()))
        return term != other and other in above

    def links(self, publication: Publication) -> Links:
        """Return the is-a links that a publication states itself, roots put in."""
        links: defaultdict[Term, list[Term]] = defaultdict(list)
        for triple in publication.triples:
            subject, predicate, object_ = triple
            if predicate not in _LINKS or triple in publication.derived:
                continue
            if predicate == NARROWER:
                subject, object_ = object_, subject
            links[self.root(subject)].append(self.root(object_))
        return links

    # -- what follows -----------------------------------------------------------------------

    def rewrite(self, publication: Publication) -> Publication:
        """Return the publication with every term replaced by its root."""
        return replace(
            publication,
            triples=tuple(self.roots.rewrite(publication.triples)),
            derived=frozenset(self.roots.rewrite(publication.derived)),
        )

    def enrich(self, publication: Publication) -> Publication:
        """Return the publication with roots put in and all that follows from it: E(P)."""
        rooted = self.rewrite(publication)
        closed = self._follow(rooted)
        stated = frozenset(rooted.triples)
        derived = rooted.derived.union(t for t in closed if t not in stated)
        return replace(rooted, triples=tuple(closed), derived=derived)

    def derivations(self, publication: Publication) -> Mapping[Triple, Triple | None]:
        """Return each triple of E(P) with the triple that it was derived from, if it was."""
        return self._follow(self.rewrite(publication))

    def _follow(self, rooted: Publication) -> Mapping[Triple, Triple | None]:
        named = self._named(rooted.triples)
        given = (*rooted.triples, *named)
        closed = self.schema.close(given)
        if states_schema(closed):
            closed = rules.extend(given, self._lookup)
        return closed | named if named else closed

    def _named(self, triples: Iterable[Triple]) -> dict[Triple, Triple | None]:
        """Return the triples in which a text that synonyms give for a term stands for the term."""
        if not self._by_name:
            return {}
        return {
            (subject, predicate, term): (subject, predicate, object_)
            for subject, predicate, object_ in triples
            if isinstance(object_, Literal) and not is_reserved(predicate)
            for term in self._by_name.get(object_.value, ())
        }


def _same_names(triples: Iterable[Triple]) -> list[tuple[NamedNode, NamedNode]]:
    return [
        (s, o)
        for s, p, o in triples
        if p in _SAME and isinstance(s, NamedNode) and isinstance(o, NamedNode)
    ]


def _edges(triples: Iterable[Triple]) -> dict[str, list[tuple[Term, Term]]]:
    """Sort the is-a triples into the edges of the three taxonomies."""
    edges: dict[str, list[tuple[Term, Term]]] = {"classes": [], "properties": [], "concepts": []}
    for subject, predicate, object_ in triples:
        if isinstance(object_, Literal):
            continue
        if predicate == SUBCLASS:
            edges["classes"].append((subject, object_))
        elif predicate == SUBPROPERTY:
            edges["properties"].append((subject, object_))
        elif predicate in (BROADER, BROADER_TRANSITIVE):
            edges["concepts"].append((subject, object_))
        elif predicate == NARROWER:
            edges["concepts"].append((object_, subject))
    return edges


def _members(triples: Iterable[Triple]) -> dict[str, list[Term]]:
    """Sort the declared terms into the three taxonomies."""
    members: dict[str, list[Term]] = {"classes": [], "properties": [], "concepts": []}
    for subject, predicate, object_ in triples:
        if predicate == TYPE and not isinstance(subject, BlankNode):
            if object_ in _CLASS_TYPES:
                members["classes"].append(subject)
            elif object_ in _PROPERTY_TYPES:
                members["properties"].append(subject)
            elif object_ == SKOS["Concept"]:
                members["concepts"].append(subject)
    return members
