"""Which steps of enrichment a publication's terms call for.

Most terms of most publications call for none: no synonyms, no unit, nothing above them, no rule
about them. Whether a term does is found out once, and remembered as long as what is known and what
is asked for stay the same. A step that no term calls for is not gone, and of the triples only those
are looked at by the rules that have a term that calls for them.

What is found may be too much, never too little: each step looks again.

Cost: a dictionary look-up for each distinct term, and one for each distinct property; of terms that
a lexicon has (`semantic.term_texts`), a step in an array.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property, reduce
from operator import or_
from typing import TypeAlias

import numpy as np
from pyoxigraph import Literal

from semantic.noted import NOTHING, Noted, Notes
from semantic.numbering import Numbering
from semantic.term_texts import Lexicon
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
        self._of_terms, self._of_properties = Noted(), Noted()
        self._always = always

    def of(self, numbering: Numbering) -> int:
        """Return the steps that any term of a publication calls for."""
        found = self._always | self._noted(numbering)
        if found & CLASS and TYPE in numbering.properties():
            found |= RULES
        return found

    def _noted(self, numbering: Numbering) -> int:
        known = numbering.known
        if known is None:
            return self._looked_up(numbering.terms, numbering.properties())
        of_terms = self._of_terms.of(known.lexicon)
        of_properties = self._of_properties.of(known.lexicon)
        places = np.frombuffer(numbering.places, np.int32)
        found = self._either(of_terms, of_properties, known.numbers, places)
        if found == NOTHING:
            properties = known.numbers[places[1::3]]
            _note(of_terms, self._terms, known.lexicon, known.numbers)
            _note(of_properties, self._properties, known.lexicon, properties)
            found = self._either(of_terms, of_properties, known.numbers, places)
        if not known.others:
            return found
        others = known.others
        of_property = others.keys() & set(numbering.places[1::3])
        return found | self._looked_up(others.values(), [others[n] for n in of_property])

    def _looked_up(self, terms: Collection[Term], properties: Collection[Term]) -> int:
        found = 0
        if any(map(self._terms.__getitem__, terms)):
            found |= reduce(or_, map(self._terms.__getitem__, terms))
        if any(map(self._properties.__getitem__, properties)):
            found |= reduce(or_, map(self._properties.__getitem__, properties))
        return found

    @cached_property
    def _either(self) -> Callable[[Notes, Notes, Notes, Notes], int]:
        from semantic.noted_kernels import either

        return either

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


def _note(notes: Notes, find: Remembered, lexicon: Lexicon, numbers: Notes) -> None:
    """Note what terms call for that have some numbers, where nothing is noted yet."""
    for number in set(numbers[notes[numbers] == NOTHING].tolist()):
        if number >= 0:
            notes[number] = find[lexicon.terms[number]]
