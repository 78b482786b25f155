"""Classes and concepts by name, for attribute subscriptions and topics.

A name is a prefixed name, the last part of an IRI, a label, or one of these in another case. These
are tried in this order, and the first hit wins. The author of a subscription may not know the
ontology, so the name is resolved when the engine indexes the subscription.
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
"""Maximum number of terms listed in a message."""


class Concepts:
    """The classes and concepts of one ontology by name.

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
        """Resolve a placeholder to its term; return any other term unchanged.

        Raises `UnknownNameError` if the name is unknown or ambiguous.
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
        """Return the placeholders resolved here that `other` resolves differently or not at all."""
        resolved = tuple(self._resolved)  # Copied, because other threads may be resolving names.
        return frozenset(term for term in resolved if other._find(term) != self._find(term))

    def _find(self, term: Term) -> Term | None:
        try:
            return self.resolved(term)
        except UnknownNameError:
            return None

    def called(self, name: str) -> tuple[Term, ...]:
        """Return the classes and concepts that a name may denote."""
        prefix, colon, local = name.partition(":")
        if colon and (namespace := self._ontology.prefixes.get(prefix)) is not None:
            return self.known(namespace + local)
        found = self._ontology.value_names.terms(name)
        named = tuple(t for t in found if isinstance(t, NamedNode) and local_name(t) == name)
        return named or found or self._folded.get(_folded(name), ())

    def known(self, iri: str) -> tuple[Term, ...]:
        """Return the root term of a class, concept or instance by IRI; empty if unknown."""
        try:
            term = self._ontology.root(NamedNode(iri))
        except ValueError:
            return ()
        ontology = self._ontology
        known = term in ontology.classes or term in ontology.concepts or term in ontology.types
        return (term,) if known else ()

    @cached_property
    def _folded(self) -> Mapping[str, tuple[Term, ...]]:
        """The terms by case-folded name."""
        found: defaultdict[str, dict[Term, None]] = defaultdict(dict)
        names = self._ontology.value_names
        for name in names:
            found[_folded(name)].update(dict.fromkeys(names.terms(name)))
        return {name: tuple(terms) for name, terms in found.items()}

    def advice(self, name: str) -> str:
        """Suggest terms for an unknown name."""
        near = get_close_matches(_folded(name.rpartition(":")[2]), list(self._folded), 3)
        meant = dict.fromkeys(self._compact(term) for each in near for term in self._folded[each])
        if meant:
            return f"Is {' or '.join(meant)} meant?"
        return "Load the ontology that defines it, or give its IRI."

    def _compact(self, term: Term) -> str:
        return compact(term, self._ontology.prefixes)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
