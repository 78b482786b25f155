"""An ontology as a person looks at it: named terms, their kinds, names and neighbours.

What restrictions and the reserved vocabularies say (blank nodes; that a class is an
``owl:Class``) is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from pyoxigraph import Literal, NamedNode

from semantic.ontology.ontology import Ontology
from semantic.ontology.taxonomy import Taxonomy
from semantic.terms import Term, compact
from semantic.vocabulary import RESERVED


@dataclass(frozen=True, slots=True)
class Name:
    """A name of a term: a label, a synonym, or the last part of its IRI (`local`)."""

    text: str
    language: str | None
    term: NamedNode
    local: bool = False

    def __str__(self) -> str:
        """Return the name as it is shown."""
        if self.local:
            return self.text
        return f"“{self.text}”" + (f"@{self.language}" if self.language else "")


class View:
    """What the commands that show an ontology ask it.

    Parameters
    ----------
    language
        The reader's, for labels.

    Examples
    --------
    >>> from semantic.vocabulary import SUBCLASS
    >>> laptop, computer = NamedNode("urn:x:laptop"), NamedNode("urn:x:computer")
    >>> view = View(Ontology([(laptop, SUBCLASS, computer)]))
    >>> view.kinds(laptop), view.parents(laptop), view.local_name(laptop)
    (('class',), (<NamedNode value=urn:x:computer>,), 'laptop')
    """

    def __init__(self, ontology: Ontology, language: str = "en") -> None:
        self.ontology = ontology
        self._language = language
        self.taxonomies: Mapping[str, Taxonomy] = {
            "classes": ontology.classes,
            "properties": ontology.properties,
            "concepts": ontology.concepts,
        }

    def compact(self, term: Term) -> str:
        """Return a term as the ontology's prefixes write it."""
        return compact(term, self.ontology.prefixes)

    def brief(self, term: NamedNode) -> str:
        """Return a prefixed name, or the last part of an IRI that has no prefix."""
        text = self.compact(term)
        return self.local_name(term) if text.startswith("<") else text

    def local_name(self, term: NamedNode) -> str:
        """Return the last part of an IRI."""
        iri = term.value.rstrip("/#:")
        return iri[max(iri.rfind(mark) for mark in "/#:") + 1 :]

    @cached_property
    def terms(self) -> tuple[NamedNode, ...]:
        """The named classes, properties, concepts and instances."""
        found: dict[NamedNode, None] = {}
        for taxonomy in self.taxonomies.values():
            found.update(dict.fromkeys(named(taxonomy)))
        found.update(dict.fromkeys(term for term in named(self.ontology.types) if self.types(term)))
        return tuple(found)

    @cached_property
    def names(self) -> tuple[Name, ...]:
        """Every name of every term, labels before local names."""
        found: dict[Name, None] = {}
        for term in self.terms:
            found.update(
                (Name(each.value, each.language, term), None) for each in self.labels(term)
            )
        for label in self.ontology.labels():
            found[Name(label.text, label.language, label.concept)] = None
        for term in self.terms:
            found[Name(self.local_name(term), None, term, local=True)] = None
        for triple in self.ontology.stated:
            for other in named(triple):
                root = self.ontology.root(other)
                if root != other and isinstance(root, NamedNode):
                    found[Name(self.local_name(other), None, root, local=True)] = None
        known = frozenset(self.terms)
        return tuple(name for name in found if name.term in known)

    def labels(self, term: NamedNode) -> tuple[Literal, ...]:
        """Return what the ontology calls a term, the best for the reader first."""
        return self.ontology.shown_names.labels(term, self._language)

    def label(self, term: NamedNode) -> str | None:
        """Return the label that a term is shown by."""
        return next((label.value for label in self.labels(term)), None)

    @cached_property
    def labels_by_language(self) -> Mapping[str, int]:
        """How many names each language has among those that text is searched for."""
        labels = self.ontology.labels()
        return dict(Counter(each.language or "without language" for each in labels).most_common())

    def kinds(self, term: NamedNode) -> tuple[str, ...]:
        """Return what a term is: class, property, concept, instance."""
        kinds = [
            kind
            for kind, taxonomy in zip(
                ("class", "property", "concept"), self.taxonomies.values(), strict=True
            )
            if term in taxonomy
        ]
        return tuple([*kinds, "instance"] if self.types(term) else kinds)

    def types(self, term: Term) -> tuple[NamedNode, ...]:
        """Return the classes of an instance."""
        classes = named(self.ontology.types.get(term, ()))
        return tuple(class_ for class_ in classes if not class_.value.startswith(RESERVED))

    def instances(self, class_: Term) -> tuple[NamedNode, ...]:
        """Return the named instances of a class, in code point order."""
        return by_name(self.ontology.instances(class_))

    def parents(self, term: Term) -> tuple[NamedNode, ...]:
        """Return the named terms directly above, the classes of an instance among them."""
        above = dict.fromkeys(p for t in self.taxonomies.values() for p in named(t.parents(term)))
        return tuple(above | dict.fromkeys(self.types(term)))

    def children(self, term: Term) -> tuple[NamedNode, ...]:
        """Return the named terms directly below that are no instances, in code point order."""
        below = (child for t in self.taxonomies.values() for child in t.children(term))
        return by_name(dict.fromkeys(below))

    def count_below(self, term: Term) -> int:
        """Return how many named terms are below that are no instances."""
        below = (t for taxonomy in self.taxonomies.values() for t in taxonomy.descendants(term))
        return len(set(named(below)) - {term})


def named(terms: Iterable[Term]) -> Iterator[NamedNode]:
    """Yield the terms that are IRIs."""
    return (term for term in terms if isinstance(term, NamedNode))


def by_name(terms: Iterable[Term]) -> tuple[NamedNode, ...]:
    """Return the terms that are IRIs, in code point order."""
    return tuple(sorted(named(terms), key=str))
