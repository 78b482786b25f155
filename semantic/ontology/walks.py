"""Ways up and down an ontology, whatever the kind of link.

A taxonomy knows one kind of link. G-ToPSS's operators follow all of them: a term is below
its superclasses, its broader concepts, and the classes that it is an instance of; a
publication may state links of its own.

Source: Petrovic, Liu, Jacobsen: G-ToPSS, WWW 2005, sections 3.2 and 3.4.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from pyoxigraph import NamedNode

from semantic.ontology.entailment import grouped
from semantic.ontology.taxonomy import Taxonomy, shortest_path
from semantic.publication import Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import NARROWER, TYPE

Links = Mapping[Term, Sequence[Term]]
"""Terms to the terms directly above them, as a publication states it."""


class Walks(ABC):
    """Ways between the terms of three taxonomies and the instances of their classes."""

    groups: Mapping[Term, Sequence[Triple]]
    """What is stated, roots put in, by property."""
    classes: Taxonomy
    properties: Taxonomy
    concepts: Taxonomy
    linking: Mapping[Term, Sequence[NamedNode]]
    """The is-a properties that each property says: itself, and those above it."""

    @abstractmethod
    def root(self, term: Term) -> Term:
        """Return the term that stands for this one and its synonyms."""

    # -- what is stated ---------------------------------------------------------------------

    def of(self, *properties: Term) -> Iterator[Triple]:
        """Yield what is stated with these properties."""
        return (triple for property_ in properties for triple in self.groups.get(property_, ()))

    def links_stated(self) -> Iterator[Triple]:
        """Yield the is-a links that the ontology states."""
        return self.stated_links(self.of(*self.linking))

    def stated_links(self, triples: Iterable[Triple]) -> Iterator[Triple]:
        """Yield the is-a links among triples, those said by a sub-property written out."""
        for subject, predicate, object_ in triples:
            for link in self.linking.get(predicate, ()):
                yield subject, link, object_

    def links(self, publication: Publication) -> Links:
        """Return the is-a links that a publication states itself, roots put in."""
        stated = (triple for triple in publication.triples if triple not in publication.derived)
        return grouped(
            (self.root(o), self.root(s)) if p == NARROWER else (self.root(s), self.root(o))
            for s, p, o in self.stated_links(stated)
        )

    def instances(self, class_: Term) -> tuple[Term, ...]:
        """Return the stated direct instances of a class."""
        return self._instances.get(self.root(class_), ())

    @cached_property
    def types(self) -> Mapping[Term, tuple[Term, ...]]:
        """Each instance's classes, as stated."""
        return grouped((s, o) for s, p, o in self.links_stated() if p == TYPE)

    @cached_property
    def _instances(self) -> Mapping[Term, tuple[Term, ...]]:
        return grouped((c, s) for s, classes in self.types.items() for c in classes)

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

    # -- what follows -----------------------------------------------------------------------

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
