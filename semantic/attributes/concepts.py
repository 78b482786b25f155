"""Terms of an ontology by name, for attribute subscriptions, topics and the command line.

A name is an IRI, a prefixed name, the last part of an IRI, a label, or one of the last two in
another case. These are tried in this order, and the first hit wins. The author of a subscription
may not know the ontology, so the name is resolved when the engine indexes the subscription.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Mapping
from difflib import get_close_matches
from functools import cached_property

from pyoxigraph import NamedNode

from semantic.attributes.names import concept_name_of
from semantic.errors import Place, Problem, UnknownNameError, listed
from semantic.ontology.names import TermNames
from semantic.ontology.ontology import Ontology
from semantic.terms import Term, compact, expanded, local_name

_LISTED = 10
"""Maximum number of terms listed in a message."""


class Concepts:
    """Finds the term that a name or placeholder denotes: a class, a concept, an instance by IRI.

    A placeholder is a term that `semantic.attributes.names.concept` makes from a name.

    Parameters
    ----------
    names
        Names to search, in place of those of the ontology's classes and concepts.
    terms
        Terms that an IRI may denote, in place of the ontology's classes, concepts and instances.

    Examples
    --------
    >>> from semantic.attributes.names import concept
    >>> from semantic.vocabulary import SUBCLASS
    >>> laptop, computer = NamedNode("urn:e:Laptop"), NamedNode("urn:e:Computer")
    >>> Concepts(Ontology([(laptop, SUBCLASS, computer)])).resolved(concept("laptop")).value
    'urn:e:Laptop'
    """

    def __init__(
        self,
        ontology: Ontology,
        names: TermNames | None = None,
        terms: Container[Term] | None = None,
    ) -> None:
        self._ontology, self._own_names, self._terms = ontology, names, terms
        self._resolved: dict[Term, Term] = {}

    def resolved(self, term: Term) -> Term:
        """Return the term that a placeholder denotes (cached); return any other term unchanged.

        Raises `UnknownNameError` if the name is unknown or ambiguous.
        """
        if (name := concept_name_of(term)) is None:
            return term
        if (known := self._resolved.get(term)) is not None:
            return known
        self._resolved[term] = found = self.find(name)
        return found

    def find(self, name: str) -> Term:
        """Return the only term that a name denotes.

        Raises `UnknownNameError` if the name is unknown or ambiguous.
        """
        found = self.called(name)
        if len(found) == 1:
            return found[0]
        if not found:
            what = f"the ontology has no term called {name!r}"
            raise UnknownNameError(Problem(what, Place(name), self._advice(name)))
        several = listed(sorted(map(self._compact, found)), _LISTED)
        what = f"{len(found)} terms are called {name!r}: {several}"
        raise UnknownNameError(Problem(what, Place(name), "Give one of these, or its IRI."))

    def changed(self, other: Concepts) -> frozenset[Term]:
        """Return the placeholders resolved so far that `other` resolves to another term or none."""
        resolved = tuple(self._resolved)  # Copied, because other threads may be resolving names.
        return frozenset(term for term in resolved if other._found(term) != self._found(term))

    def _found(self, term: Term) -> Term | None:
        try:
            return self.resolved(term)
        except UnknownNameError:
            return None

    @cached_property
    def _names(self) -> TermNames:
        return self._ontology.value_names if self._own_names is None else self._own_names

    def called(self, name: str) -> tuple[Term, ...]:
        """Return the terms that a name denotes; the first kind of name that fits wins.

        The module lists the kinds of names in this order.
        """
        if (term := self._known(name)) is not None:
            return (term,)
        found = self._names.terms(name)
        named = tuple(t for t in found if isinstance(t, NamedNode) and local_name(t) == name)
        return named or found or self._folded.get(folded(name), ())

    def _known(self, name: str) -> Term | None:
        """Return the root term of an IRI or a prefixed name.

        Return ``None`` if it is none of the terms to search: by default the classes, concepts and
        instances of the ontology.
        """
        ontology = self._ontology
        try:
            term = ontology.root(expanded(name, ontology.prefixes))
        except ValueError:
            return None
        if self._terms is not None:
            return term if term in self._terms else None
        known = term in ontology.classes or term in ontology.concepts or term in ontology.types
        return term if known else None

    @cached_property
    def _folded(self) -> Mapping[str, tuple[Term, ...]]:
        """The terms by case-folded name."""
        found: defaultdict[str, dict[Term, None]] = defaultdict(dict)
        for name in self._names:
            found[folded(name)].update(dict.fromkeys(self._names.terms(name)))
        return {name: tuple(terms) for name, terms in found.items()}

    def _advice(self, name: str) -> str:
        """Return advice for an unknown name: up to three similar names' terms, if there are any."""
        local = re.split("[:/#]", name.removesuffix(">"))[-1]
        near = get_close_matches(folded(local), list(self._folded), 3)
        meant = dict.fromkeys(self._compact(term) for each in near for term in self._folded[each])
        if meant:
            return f"Is {' or '.join(meant)} meant?"
        return "Load the ontology that defines it, or give its IRI."

    def _compact(self, term: Term) -> str:
        return compact(term, self._ontology.prefixes)


def folded(text: str) -> str:
    """Return a text case-folded, with single spaces, and none at its ends.

    Examples
    --------
    >>> folded(" Solar  Power")
    'solar power'
    """
    return " ".join(text.casefold().split())
