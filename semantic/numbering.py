"""A publication's terms, numbered: each is looked up once, however many triples it is in.

To look a term up costs more than all else that is done with it (it is hashed letter by letter, and
compared); a graph has several times as many places for terms as terms. So what is asked about a
publication is asked of its distinct terms, and triples are numbers.

Cost: a look-up a place, less where a reader knows which places have one term (`semantic.rows`).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from semantic.terms import Term, Triple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from semantic.term_texts import Lexicon

_Key = TypeVar("_Key", bound=Hashable)


class Known(NamedTuple):
    """Distinct terms by their numbers in a lexicon.

    `numbers` has one for each term: -1 where the lexicon does not have it; `others` has the terms
    at these places.
    """

    lexicon: Lexicon
    numbers: NDArray[np.int32]
    others: Mapping[int, Term]

    def terms(self) -> list[Term]:
        """Return the terms."""
        of_number, others = self.lexicon.terms.__getitem__, self.others
        if not others:
            return list(map(of_number, self.numbers.tolist()))
        return [
            others[place] if place in others else of_number(number)
            for place, number in enumerate(self.numbers.tolist())
        ]


class Numbering:
    """The distinct terms of some triples.

    What a reader knows by numbers of a lexicon only becomes terms and triples when somebody asks
    for them: most publications are matched without.

    Parameters
    ----------
    places
        Shape ``(3 * triples,)``: subject, predicate and object of each triple, as numbers of its
        distinct terms, which are in the order of their first places.
    known
        The terms, where they are known by a lexicon's numbers.
    terms
        The terms, each once, where they are not.
    triples
        Those that are numbered, where they are made already.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> a, b, p = NamedNode("urn:a"), NamedNode("urn:b"), NamedNode("urn:p")
    >>> numbering = Numbering.of(((a, p, b), (b, p, a)))
    >>> numbering.terms == (a, p, b), list(numbering.places), numbering.size
    (True, [0, 1, 2, 2, 1, 0], 2)
    """

    __slots__ = ("_terms", "_triples", "known", "places")

    def __init__(
        self,
        places: array[int],
        known: Known | None = None,
        terms: Sequence[Term] | None = None,
        triples: tuple[Triple, ...] | None = None,
    ) -> None:
        self.places, self.known = places, known
        self._terms, self._triples = terms, triples

    @property
    def size(self) -> int:
        """How many triples there are."""
        return len(self.places) // 3

    @property
    def terms(self) -> Sequence[Term]:
        """Their terms, each once, in the order of their first places."""
        terms = self._terms
        if terms is None:
            assert self.known is not None
            terms = self._terms = self.known.terms()
        return terms

    @property
    def triples(self) -> tuple[Triple, ...]:
        """The triples that are numbered."""
        triples = self._triples
        if triples is None:
            flat = map(self.terms.__getitem__, self.places)
            triples = self._triples = tuple(zip(flat, flat, flat, strict=True))
        return triples

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
        return cls(places, terms=terms(numbers))

    @classmethod
    def of(cls, triples: tuple[Triple, ...]) -> Numbering:
        """Return the numbering of triples."""
        numbers: dict[Term, int] = {}
        places = _places(triples, numbers)
        return cls(places, terms=tuple(numbers), triples=triples)

    def extended(self, triples: tuple[Triple, ...]) -> Numbering:
        """Return the numbering of these triples and of more, which come after them."""
        numbers = {term: number for number, term in enumerate(self.terms)}
        places = self.places + _places(triples, numbers)
        return Numbering(places, terms=tuple(numbers), triples=self.triples + triples)

    def properties(self) -> list[Term]:
        """Return the distinct predicates, in any order."""
        return [self.terms[number] for number in set(self.places[1::3])]

    def __reduce__(self) -> tuple[object, ...]:
        """Leave a lexicon where it is."""
        return Numbering, (self.places, None, self.terms, self.triples)


def _places(triples: Iterable[Triple], numbers: dict[Term, int]) -> array[int]:
    number = numbers.setdefault
    return array("i", [number(term, len(numbers)) for term in chain.from_iterable(triples)])
