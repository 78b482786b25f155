"""A publication's terms, numbered: each is looked up once, however many triples it is in.

To look a term up costs more than all else that is done with it (it is hashed letter by letter, and
compared); a graph has several times as many places for terms as terms. So what is asked about a
publication is asked of its distinct terms, and triples are numbers.

Cost: a look-up a place, less where a reader knows which places have one term (`semantic.rows`).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from semantic.terms import Term, Triple

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Numbering:
    """The distinct terms of some triples.

    Parameters
    ----------
    triples
        Those that are numbered.
    terms
        Their terms, each once, in the order of their first places.
    places
        Shape ``(3 * triples,)``: subject, predicate and object of each triple, as numbers of terms.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> a, b, p = NamedNode("urn:a"), NamedNode("urn:b"), NamedNode("urn:p")
    >>> numbering = Numbering.of(((a, p, b), (b, p, a)))
    >>> numbering.terms == (a, p, b), list(numbering.places)
    (True, [0, 1, 2, 2, 1, 0])
    """

    triples: tuple[Triple, ...]
    terms: Sequence[Term]
    places: array[int]

    @classmethod
    def by_keys(
        cls, keys: Iterable[_Key], terms: Callable[[Collection[_Key]], Sequence[Term]]
    ) -> Numbering:
        """Make triples of what their terms are known by: texts, or numbers.

        Parameters
        ----------
        keys
            Three a triple; the triples are distinct.
        terms
            Gives the terms of distinct keys, which are distinct.
        """
        numbers: dict[_Key, int] = {}
        number = numbers.setdefault
        places = array("i", [number(key, len(numbers)) for key in keys])
        found = terms(numbers)
        flat = map(found.__getitem__, places)
        return cls(tuple(zip(flat, flat, flat, strict=True)), found, places)

    @classmethod
    def of(cls, triples: tuple[Triple, ...]) -> Numbering:
        """Return the numbering of triples."""
        numbers: dict[Term, int] = {}
        places = _places(triples, numbers)
        return cls(triples, tuple(numbers), places)

    def extended(self, triples: tuple[Triple, ...]) -> Numbering:
        """Return the numbering of these triples and of more, which come after them."""
        numbers = {term: number for number, term in enumerate(self.terms)}
        places = self.places + _places(triples, numbers)
        return Numbering(self.triples + triples, tuple(numbers), places)

    def properties(self) -> list[Term]:
        """Return the distinct predicates, in any order."""
        return [self.terms[number] for number in set(self.places[1::3])]


def _places(triples: Iterable[Triple], numbers: dict[Term, int]) -> array[int]:
    number = numbers.setdefault
    return array("i", [number(term, len(numbers)) for term in chain.from_iterable(triples)])
