"""What names stand for under one ontology: properties by steps, classes by what they are called.

A step means every property of its local name, and every property one of whose other names (in the
ontology, or a file of synonyms) has that local name: where ``shop:mobile`` is a name of
``shop:cellphoneNumber``, the attributes ``seller.mobile`` and ``seller.cellphoneNumber`` are one.

A subscription may be written before its ontology is known, and outlives it. So the class in
``{"isa": "laptop PC"}`` is the IRI ``urn:graphmatch:concept:laptop%20PC`` until the subscription is
filed under an ontology, and then the term that is called so: by a prefixed name, the last part of
its IRI, a label, or one of these in another case; the first that names something decides.

Cost: the names of an ontology are gathered when the first one is looked up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property, lru_cache
from urllib.parse import unquote

from pyoxigraph import NamedNode

from semantic.attributes.names import encoded, step_names
from semantic.errors import Place, Problem, UnknownNameError
from semantic.ontology.ontology import Ontology
from semantic.terms import Term, compact, local_name
from semantic.vocabulary import GM


class AttributeProperties:
    """What steps mean under one ontology.

    Parameters
    ----------
    ontology
        What is known.

    Examples
    --------
    >>> from semantic.vocabulary import SUBPROPERTY
    >>> email, contact = NamedNode("http://e/email"), NamedNode("http://e/contact")
    >>> properties = AttributeProperties(Ontology([(email, SUBPROPERTY, contact)]))
    >>> properties.called("email")
    (<NamedNode value=http://e/email>,)
    >>> sorted(properties.names(email))
    ['<http://e/email>', 'email']
    """

    def __init__(self, ontology: Ontology) -> None:
        self._ontology = ontology
        self._names: dict[Term, frozenset[str]] = {}

    def called(self, step: str) -> tuple[NamedNode, ...]:
        """Return the properties that a step means, roots of synonyms; none where none is known."""
        if step.startswith("<"):
            root = self._ontology.root(NamedNode(step[1:-1]))
            return (root,) if isinstance(root, NamedNode) else ()
        return self._by_name.get(step, ())

    def names(self, property_: NamedNode) -> frozenset[str]:
        """Return the names of the steps that go along a property (a root of synonyms)."""
        found = self._names.get(property_)
        if found is None:
            others = self._ontology.roots.names(property_)
            named = (term for term in others if isinstance(term, NamedNode))
            found = self._names[property_] = step_names((property_, *named))
        return found

    @cached_property
    def _by_name(self) -> Mapping[str, tuple[NamedNode, ...]]:
        found: defaultdict[str, dict[NamedNode, None]] = defaultdict(dict)
        for property_ in self._known():
            for name in self.names(property_):
                found[name][property_] = None
        return {name: tuple(properties) for name, properties in found.items()}

    def _known(self) -> Iterator[NamedNode]:
        schema = self._ontology.schema
        places: Iterable[Iterable[Term]] = (
            self._ontology.properties,
            schema.domains,
            schema.ranges,
            schema.inverses,
        )
        for place in places:
            yield from (term for term in place if isinstance(term, NamedNode))


_CONCEPT = GM["concept:"].value
_LISTED = 10
"""How many terms a message names."""


@lru_cache(maxsize=65_536)
def concept(name: str) -> NamedNode:
    """Return the term that stands for a name until an ontology is known.

    An IRI, in angle brackets or not, is itself.

    Examples
    --------
    >>> concept("laptop PC").value
    'urn:graphmatch:concept:laptop%20PC'
    >>> concept("http://example.org/Laptop").value
    'http://example.org/Laptop'
    """
    iri = name.removeprefix("<").removesuffix(">")
    if "://" in iri or iri.startswith("urn:"):
        try:
            return NamedNode(iri)
        except ValueError:
            pass  # an odd name: no term is called so
    return NamedNode(_CONCEPT + encoded(name))


def is_concept(term: Term) -> bool:
    """Whether a term stands for a name until an ontology is known."""
    return isinstance(term, NamedNode) and term.value.startswith(_CONCEPT)


class Concepts:
    """The classes and concepts of one ontology by their names.

    Parameters
    ----------
    ontology
        What is known.

    Examples
    --------
    >>> from semantic.vocabulary import SUBCLASS
    >>> laptop, computer = NamedNode("urn:e:Laptop"), NamedNode("urn:e:Computer")
    >>> concepts = Concepts(Ontology([(laptop, SUBCLASS, computer)]))
    >>> concepts.resolved(concept("laptop")).value
    'urn:e:Laptop'
    """

    def __init__(self, ontology: Ontology) -> None:
        self._ontology = ontology
        self._resolved: dict[NamedNode, Term] = {}

    def resolved(self, term: Term) -> Term:
        """Return the term that a name stands for; any other term as it is.

        Raises
        ------
        UnknownNameError
            When the name is unknown, or several terms have it.
        """
        if not isinstance(term, NamedNode) or not term.value.startswith(_CONCEPT):
            return term
        if (known := self._resolved.get(term)) is not None:
            return known
        name = unquote(term.value.removeprefix(_CONCEPT))
        found = self.called(name)
        if len(found) == 1:
            self._resolved[term] = found[0]
            return found[0]
        if not found:
            what = f"the ontology has no class or concept called {name!r}"
            raise UnknownNameError(Problem(what, Place(name), self._advice(name)))
        listed = ", ".join(sorted(map(self._compact, found))[:_LISTED])
        more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
        what = f"{len(found)} classes or concepts are called {name!r}: {listed}{more}"
        raise UnknownNameError(Problem(what, Place(name), "Give one of these, or its IRI."))

    def changed(self, other: Concepts) -> frozenset[Term]:
        """Return the names that were resolved here and are otherwise, or not at all, there."""
        resolved = tuple(self._resolved)  # at once: other threads may be resolving names
        return frozenset(term for term in resolved if other._find(term) != self._find(term))

    def _find(self, term: NamedNode) -> Term | None:
        try:
            return self.resolved(term)
        except UnknownNameError:
            return None

    def called(self, name: str) -> tuple[Term, ...]:
        """Return the classes and concepts that a name may stand for."""
        prefix, colon, local = name.partition(":")
        if colon and (namespace := self._ontology.prefixes.get(prefix)) is not None:
            return self._known(namespace + local)
        found = self._ontology.value_names.terms(name)
        named = tuple(t for t in found if isinstance(t, NamedNode) and local_name(t) == name)
        return named or found or self._folded.get(_folded(name), ())

    def _known(self, iri: str) -> tuple[Term, ...]:
        try:
            term = self._ontology.root(NamedNode(iri))
        except ValueError:
            return ()
        ontology = self._ontology
        known = term in ontology.classes or term in ontology.concepts or term in ontology.types
        return (term,) if known else ()

    @cached_property
    def _folded(self) -> Mapping[str, tuple[Term, ...]]:
        """The terms by their names in one case."""
        found: defaultdict[str, dict[Term, None]] = defaultdict(dict)
        names = self._ontology.value_names
        for name in names:
            found[_folded(name)].update(dict.fromkeys(names.terms(name)))
        return {name: tuple(terms) for name, terms in found.items()}

    def _advice(self, name: str) -> str:
        near = get_close_matches(_folded(name.rpartition(":")[2]), list(self._folded), 3)
        meant = dict.fromkeys(self._compact(term) for each in near for term in self._folded[each])
        if meant:
            return f"Is {' or '.join(meant)} meant?"
        return "Load the ontology that has it, or give its IRI."

    def _compact(self, term: Term) -> str:
        return compact(term, self._ontology.prefixes)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
