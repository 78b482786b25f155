"""Classes and concepts by their names, as attribute subscriptions and topics give them.

A name is a prefixed name, the last part of an IRI, a label, or one of these in another case; the
first that names something decides. Subscriptions are written before anybody knows which ontology
they will be matched under, so a name is resolved when one is filed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property

from pyoxigraph import NamedNode

from semantic.attributes.names import concept_name_of
from semantic.errors import Place, Problem, UnknownNameError
from semantic.ontology.ontology import Ontology
from semantic.terms import Term, compact, local_name

_LISTED = 10
"""How many terms a message names."""


class Concepts:
    """The classes and concepts of one ontology by their names.

    Examples
    --------
    >>> from semantic.attributes.names import concept
    >>> from semantic.vocabulary import SUBCLASS
    >>> laptop, computer = NamedNode("urn:e:Laptop"), NamedNode("urn:e:Computer")
    >>> Concepts(Ontology([(laptop, SUBCLASS, computer)])).resolved(concept("laptop")).value
    'urn:e:Laptop'
    """

    def __init__(self, ontology: Ontology) -> None:
        self._ontology = ontology
        self._resolved: dict[Term, Term] = {}

    def resolved(self, term: Term) -> Term:
        """Return the term that a name stands for; any other term as it is.

        Raises `UnknownNameError` when the name is unknown, or several terms have it.
        """
        if (name := concept_name_of(term)) is None:
            return term
        if (known := self._resolved.get(term)) is not None:
            return known
        found = self.called(name)
        if len(found) == 1:
            self._resolved[term] = found[0]
            return found[0]
        if not found:
            what = f"the ontology has no class or concept called {name!r}"
            raise UnknownNameError(Problem(what, Place(name), self.advice(name)))
        listed = ", ".join(sorted(map(self._compact, found))[:_LISTED])
        more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
        what = f"{len(found)} classes or concepts are called {name!r}: {listed}{more}"
        raise UnknownNameError(Problem(what, Place(name), "Give one of these, or its IRI."))

    def changed(self, other: Concepts) -> frozenset[Term]:
        """Return the names that were resolved here and are otherwise, or not at all, there."""
        resolved = tuple(self._resolved)  # at once: other threads may be resolving names
        return frozenset(term for term in resolved if other._find(term) != self._find(term))

    def _find(self, term: Term) -> Term | None:
        try:
            return self.resolved(term)
        except UnknownNameError:
            return None

    def called(self, name: str) -> tuple[Term, ...]:
        """Return the classes and concepts that a name may stand for."""
        prefix, colon, local = name.partition(":")
        if colon and (namespace := self._ontology.prefixes.get(prefix)) is not None:
            return self.known(namespace + local)
        found = self._ontology.value_names.terms(name)
        named = tuple(t for t in found if isinstance(t, NamedNode) and local_name(t) == name)
        return named or found or self._folded.get(_folded(name), ())

    def known(self, iri: str) -> tuple[Term, ...]:
        """Return the class, concept or instance with an IRI, by its root; empty for none."""
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

    def advice(self, name: str) -> str:
        """Say what may be meant by a name that nothing has."""
        near = get_close_matches(_folded(name.rpartition(":")[2]), list(self._folded), 3)
        meant = dict.fromkeys(self._compact(term) for each in near for term in self._folded[each])
        if meant:
            return f"Is {' or '.join(meant)} meant?"
        return "Load the ontology that has it, or give its IRI."

    def _compact(self, term: Term) -> str:
        return compact(term, self._ontology.prefixes)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
