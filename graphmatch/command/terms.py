"""The terms of an ontology for people: names, kinds, neighbours.

The triples of restrictions and the reserved vocabularies are left out (blank nodes; that a class is
an ``owl:Class``).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from pyoxigraph import Literal, NamedNode

from semantic.attributes.concepts import Concepts, folded
from semantic.ontology.names import TermNames
from semantic.ontology.ontology import Ontology
from semantic.ontology.taxonomy import Taxonomy
from semantic.terms import Term, compact, local_name
from semantic.vocabulary import RESERVED

_KINDS = {"classes": "class", "properties": "property", "concepts": "concept"}
"""The kind of a term by the name of its taxonomy."""
_CASE = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\-.]+")


@dataclass(frozen=True, slots=True)
class Name:
    """A name of a term: a label, a synonym, or the last part of its IRI (`local`)."""

    text: str
    language: str | None
    term: NamedNode
    local: bool = False

    def __str__(self) -> str:
        """Return the name for display: a label in quotation marks, with its language."""
        if self.local:
            return self.text
        return f"“{self.text}”" + (f"@{self.language}" if self.language else "")


class OntologyView:
    """Look-ups of an ontology's terms for people; labels in the reader's language come first.

    Examples
    --------
    >>> from semantic.vocabulary import SUBCLASS
    >>> laptop, computer = NamedNode("urn:x:laptop"), NamedNode("urn:x:computer")
    >>> view = OntologyView(Ontology([(laptop, SUBCLASS, computer)]))
    >>> view.kinds(laptop), view.parents(laptop)
    (('class',), (<NamedNode value=urn:x:computer>,))
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
        """Return a term abbreviated by the ontology's prefixes."""
        return compact(term, self.ontology.prefixes)

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
            found[Name(local_name(term), None, term, local=True)] = None
        for triple in self.ontology.stated:
            for other in named(triple):
                root = self.ontology.root(other)
                if root != other and isinstance(root, NamedNode):
                    found[Name(local_name(other), None, root, local=True)] = None
        known = frozenset(self.terms)
        return tuple(name for name in found if name.term in known)

    @cached_property
    def resolver(self) -> Concepts:
        """The resolver of names and labels to terms."""
        names = TermNames((), ((name.text, name.term) for name in self.names))
        return Concepts(self.ontology, names, frozenset[Term](self.terms))

    def labels(self, term: NamedNode) -> tuple[Literal, ...]:
        """Return the labels of a term, the best for the reader first."""
        return self.ontology.shown_names.labels(term, self._language)

    def label(self, term: NamedNode) -> str | None:
        """Return the best label for the reader; ``None`` if the term has none."""
        return next((label.value for label in self.labels(term)), None)

    def kinds(self, term: NamedNode) -> tuple[str, ...]:
        """Return the kinds of a term: class, property, concept, instance."""
        kinds = [_KINDS[name] for name, taxonomy in self.taxonomies.items() if term in taxonomy]
        return tuple([*kinds, "instance"] if self.types(term) else kinds)

    def types(self, term: Term) -> tuple[NamedNode, ...]:
        """Return the named classes of an instance, without those of reserved vocabularies."""
        classes = named(self.ontology.types.get(term, ()))
        return tuple(class_ for class_ in classes if not class_.value.startswith(RESERVED))

    def instances(self, class_: Term) -> tuple[NamedNode, ...]:
        """Return the named instances of a class, in code point order."""
        return by_name(self.ontology.instances(class_))

    def parents(self, term: Term) -> tuple[NamedNode, ...]:
        """Return the named terms directly above, including the classes of an instance."""
        above = dict.fromkeys(p for t in self.taxonomies.values() for p in named(t.parents(term)))
        return tuple(above | dict.fromkeys(self.types(term)))

    def children(self, term: Term) -> tuple[NamedNode, ...]:
        """Return the named terms directly below, without instances, in code point order."""
        below = (child for t in self.taxonomies.values() for child in t.children(term))
        return by_name(dict.fromkeys(below))

    def count_below(self, term: Term) -> int:
        """Return the number of named terms below, without instances."""
        below = (t for taxonomy in self.taxonomies.values() for t in taxonomy.descendants(term))
        return len(set(named(below)) - {term})


def named(terms: Iterable[Term]) -> Iterator[NamedNode]:
    """Yield the terms that are IRIs."""
    return (term for term in terms if isinstance(term, NamedNode))


def by_name(terms: Iterable[Term]) -> tuple[NamedNode, ...]:
    """Return the terms that are IRIs, in code point order."""
    return tuple(sorted(named(terms), key=str))


def resolve(view: OntologyView, text: str) -> NamedNode:
    """Return the term with a name or IRI; raise `UnknownNameError` if unknown or ambiguous."""
    found = view.resolver.find(text)
    assert isinstance(found, NamedNode)
    return found


@dataclass(frozen=True, slots=True)
class TermMatch:
    """A term, its matching name, and the kind of match: one of `HOW`."""

    term: NamedNode
    name: Name
    how: str


HOW = ("exact", "prefix", "word", "part")
"""The kinds of matches in a name, best first; ``word``: at the beginning of a word."""


def search(view: OntologyView, text: str) -> list[TermMatch]:
    """Return the terms with a name that contains the text in any case, best first."""
    wanted = folded(text)
    if not wanted:
        return []
    by_term: defaultdict[NamedNode, list[tuple[int, Name]]] = defaultdict(list)
    for name in view.names:
        rank = min(_rank(form, wanted) for form in _forms(name))
        if rank < len(HOW):
            by_term[name.term].append((rank, name))
    best = [(*min(several, key=_preference), term) for term, several in by_term.items()]
    best.sort(key=lambda each: (each[0], len(each[1].text), str(each[2])))
    return [TermMatch(term, name, HOW[rank]) for rank, name, term in best]


def _preference(found: tuple[int, Name]) -> tuple[object, ...]:
    """Return the sort key of one of a term's names: best match, label, English, short."""
    rank, name = found
    return rank, name.local, name.language not in ("en", None), len(name.text), str(name)


def _rank(form: str, wanted: str) -> int:
    if form == wanted:
        return 0
    if form.startswith(wanted):
        return 1
    if wanted not in form:
        return len(HOW)
    return 2 if re.search(rf"\b{re.escape(wanted)}", form) else 3


def _forms(name: Name) -> tuple[str, ...]:
    """Return a name in one case, and a local name also as words: ``SolarPower``, "solar power"."""
    if not name.local:
        return (folded(name.text),)
    return folded(name.text), folded(_CASE.sub(" ", name.text))
