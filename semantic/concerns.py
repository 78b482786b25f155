"""Which steps of enrichment a publication's terms call for.

Most terms of most publications call for none: no synonyms, no unit, nothing above them, no rule
about them. Whether a term does is found out once, and remembered as long as what is known and what
is asked for stay the same. A step that no term calls for is not gone, and of the triples only those
are looked at by the rules that have a term that calls for them.

What is found may be too much, never too little: each step looks again.

Cost: a dictionary look-up for each distinct term, and one for each distinct property.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import TypeAlias

from pyoxigraph import Literal

from semantic.numbering import Numbering
from semantic.terms import Term, Triple
from semantic.vocabulary import TYPE

ITEM, EVENT, ROOTS, UNITS, RULES, MAPPING, ATTRIBUTES, CLASS = (1 << bit for bit in range(8))
"""The steps, a bit each. `CLASS` is that of a class with others above it: `RULES`, where anything
has a type."""

_REMEMBERED = 65_536
"""So many terms are remembered; when there are more, all are forgotten."""
_LONG = 200
"""Texts of more characters are not remembered: they hardly come again, and take room."""

Find: TypeAlias = Callable[[Term], int]
"""Finds the steps that a term calls for."""


class Remembered(dict[Term, int]):
    """What terms call for, found out when it is first asked for; at most so many terms.

    Examples
    --------
    >>> from pyoxigraph import BlankNode
    >>> known = Remembered(lambda term: len(term.value), most=2)
    >>> [known[BlankNode(name)] for name in ("a", "bb", "ccc")], len(known)
    ([1, 2, 3], 1)
    """

    __slots__ = ("_find", "_most")

    def __init__(self, find: Find, most: int = _REMEMBERED) -> None:
        self._find = find
        self._most = most

    def __missing__(self, term: Term) -> int:
        found = self._find(term)
        if isinstance(term, Literal) and len(term.value) > _LONG:
            return found
        if len(self) >= self._most:
            self.clear()
        self[term] = found
        return found


class Concerns:
    """What publications call for, as long as the answers stay the same.

    Parameters
    ----------
    of_term
        Finds the steps that a term calls for, wherever in a triple it is.
    of_property
        Finds those that it calls for as a property.
    always
        The steps that every publication calls for.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> x, brand, price = (NamedNode(f"urn:{name}") for name in ("x", "brand", "price"))
    >>> concerns = Concerns(lambda term: 0, lambda property_: RULES if property_ == brand else 0)
    >>> numbering = Numbering.of(((x, price, x), (x, brand, x)))
    >>> concerns.of(numbering) == RULES, [t[1].value for t in concerns.agenda(numbering)]
    (True, ['urn:brand'])
    """

    def __init__(self, of_term: Find, of_property: Find, always: int = 0) -> None:
        self._terms = Remembered(of_term)
        self._properties = Remembered(of_property)
        self._always = always

    def of(self, numbering: Numbering) -> int:
        """Return the steps that any term of a publication calls for."""
        found = self._always
        if any(map(self._terms.__getitem__, numbering.terms)):
            found |= reduce(or_, map(self._terms.__getitem__, numbering.terms))
        properties = numbering.properties()
        if any(map(self._properties.__getitem__, properties)):
            found |= reduce(or_, map(self._properties.__getitem__, properties))
        if found & CLASS and TYPE in properties:
            found |= RULES
        return found

    def agenda(self, numbering: Numbering) -> list[Triple]:
        """Return the triples from which anything may follow by rules."""
        terms, places = numbering.terms, numbering.places
        of_term, of_property = self._terms.__getitem__, self._properties.__getitem__
        rules = [of_term(term) & (RULES | CLASS) for term in terms]
        leading = {number for number in set(places[1::3]) if of_property(terms[number]) & RULES}
        return [
            triple
            for triple, p, o in zip(numbering.triples, places[1::3], places[2::3], strict=True)
            if rules[o] or p in leading
        ]
