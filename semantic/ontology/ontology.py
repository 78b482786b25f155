"""An ontology: what the operator knows, put in the form that matching needs.

Building goes through these steps: stated triples → roots of equivalent terms →
triples with roots put in → taxonomies of classes, properties and concepts →
compiled schema. What is only sometimes needed (the closure, the labels) is made
when it is first asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from pyoxigraph import Literal, NamedNode

from semantic.annotation.annotate import Label
from semantic.errors import OnProblem, Place, Problem, Severity, warn_problem
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology import rules
from semantic.ontology.entailment import SCHEMA, Schema, is_reserved, states_schema
from semantic.ontology.statements import LINKS, edges_of, gives_schema, members_of, same_names
from semantic.ontology.synonyms import Roots, SynonymPairs, is_text
from semantic.ontology.taxonomy import Taxonomy, find_cycles, shortest_path
from semantic.publication import Publication
from semantic.terms import Term, Triple, compact
from semantic.vocabulary import (
    LABEL,
    NARROWER,
    OWL,
    PREFIXES,
    RDFS,
    SKOS,
    TYPE,
)

Links = Mapping[Term, Sequence[Term]]
"""Terms to the terms directly above them, as a publication states it."""

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
    >>> from semantic.vocabulary import SUBCLASS
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
        self.roots, self.triples = self._rooted()
        self._by_name = self._names()
        self.schema = self._compile()
        self._linking = self._link_properties()
        edges, kinds = edges_of(self._stated_links(self.triples)), members_of(self.triples)
        self.classes = Taxonomy(edges["classes"], kinds["classes"])
        self.properties = Taxonomy(edges["properties"], kinds["properties"])
        self.concepts = Taxonomy(edges["concepts"], kinds["concepts"])

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

    def _rooted(self) -> tuple[Roots, tuple[Triple, ...]]:
        """Find the roots, and put them in.

        With roots put in, more terms may turn out to be the same: two cycles that shared no
        term before, say. So this is repeated until nothing is new.
        """
        declared = frozenset(s for s, p, _ in self.stated if p == TYPE)
        same: dict[tuple[NamedNode, NamedNode], None] = {}
        while True:
            roots = Roots(same, self._pairs, declared)
            triples = tuple(roots.rewrite(self.stated))
            new = dict.fromkeys(same_names(triples))
            for cycle in self._cycles(triples, same):
                new.update(((cycle[0], other), None) for other in cycle[1:])
            if new.keys() <= same.keys():
                return roots, triples
            same |= new

    def _cycles(
        self, triples: Iterable[Triple], known: Container[tuple[NamedNode, NamedNode]]
    ) -> list[tuple[NamedNode, ...]]:
        """Find the is-a cycles, report those not known, and return their named members."""
        found = []
        for kind, edges in edges_of(triples, LINKS).items():
            for cycle in find_cycles(edges):
                names = tuple(term for term in cycle if isinstance(term, NamedNode))
                if len(names) < 2 or names[:2] in known:
                    continue
                listed = ", ".join(compact(term) for term in cycle)
                self._report(
                    f"a cycle of {kind}: {listed} are all above each other",
                    "They are taken as one term; remove a link if they are not.",
                )
                found.append(names)
        return found

    def _compile(self) -> Schema:
        """Compile the rules, those included that the ontology has by its own rules only.

        An ontology may state its schema by properties of its own: sub-properties or inverses
        of ``rdfs:subClassOf``, say.
        """
        triples = dict.fromkeys(self.triples)
        while True:
            edges = edges_of(triples)
            schema = Schema(triples, *(Taxonomy(edges[kind]) for kind in edges))
            if not any(map(gives_schema, triples)):
                return schema
            more = [t for t in schema.close(triples) if t[1] in SCHEMA and t not in triples]
            if not more:
                return schema
            triples |= dict.fromkeys(more)

    def _link_properties(self) -> Mapping[Term, tuple[Term, ...]]:
        """Return the is-a properties that each property says: itself, and those above it."""
        found: dict[Term, tuple[Term, ...]] = {link: (link,) for link in LINKS}
        for property_ in self.schema.properties:
            above = (property_, *self.schema.properties.ancestors(property_))
            if links := tuple(dict.fromkeys(p for p in above if p in LINKS)):
                found[property_] = links
        return found

    def _stated_links(self, triples: Iterable[Triple]) -> Iterator[Triple]:
        """Yield the is-a links among triples, those said by a sub-property written out."""
        for subject, predicate, object_ in triples:
            for link in self._linking.get(predicate, ()):
                yield subject, link, object_

    # -- what is known ----------------------------------------------------------------------

    @cached_property
    def closure(self) -> frozenset[Triple]:
        """Everything that follows from the ontology alone: C(O)."""
        return frozenset(self._with_named(self.triples, self.schema.close))

    @cached_property
    def _lookup(self) -> rules.Lookup:
        return rules.all_of(self.closure)

    @cached_property
    def types(self) -> Mapping[Term, tuple[Term, ...]]:
        """Each instance's classes, as stated."""
        types: defaultdict[Term, list[Term]] = defaultdict(list)
        for subject, predicate, object_ in self._stated_links(self.triples):
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
            root = self.root(Literal(text))
            assert isinstance(root, Literal)
            for name in {text: None, root.value: None}:
                names[name].append(self._resource(iri))
        return {text: tuple(dict.fromkeys(terms)) for text, terms in names.items()}

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
        stated = (triple for triple in publication.triples if triple not in publication.derived)
        for subject, predicate, object_ in self._stated_links(stated):
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
        def close(triples: Iterable[Triple]) -> dict[Triple, Triple | None]:
            closed = self.schema.close(triples)
            if states_schema(closed):
                return rules.extend(triples, self._lookup)
            return closed

        return self._with_named(rooted.triples, close)

    def _with_named(
        self,
        triples: Sequence[Triple],
        close: Callable[[Iterable[Triple]], dict[Triple, Triple | None]],
    ) -> dict[Triple, Triple | None]:
        """Close triples under the rules and the names that synonyms give for terms."""
        closed = close(triples)
        found: dict[Triple, Triple | None] = {}
        while new := {t: by for t, by in self._named(closed).items() if t not in closed}:
            found |= new
            closed = close((*triples, *found)) | found
        return closed

    def _named(self, triples: Iterable[Triple]) -> dict[Triple, Triple | None]:
        """Return the triples in which a text that synonyms give for a term stands for the term."""
        if not self._by_name:
            return {}
        return {
            (subject, predicate, term): (subject, predicate, object_)
            for subject, predicate, object_ in triples
            if isinstance(object_, Literal) and is_text(object_) and not is_reserved(predicate)
            for term in self._by_name.get(object_.value, ())
        }
