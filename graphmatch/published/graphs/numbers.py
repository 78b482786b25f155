"""Terms as numbers, for compiled loops.

A term has a number as long as a subscription has the term; numbers are used again. The other terms
of a publication have larger ones, which mean nothing after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from semantic.terms import Term, Triple

Ids: TypeAlias = NDArray[np.int32]


class TermNumbers:
    """Which number each term has.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> a, b, c = (NamedNode(f"urn:{name}") for name in "abc")
    >>> numbers = TermNumbers()
    >>> numbers.add(a), numbers.add(b), numbers.add(a)
    (0, 1, 0)
    >>> triples, terms = numbers.publication([(a, b, c)])
    >>> triples.tolist(), terms[2].value
    ([[0, 1, 2]], 'urn:c')
    >>> numbers.discard(b)
    >>> len(numbers), numbers.add(c)
    (1, 1)
    """

    def __init__(self) -> None:
        self._numbers: dict[Term, int] = {}
        self._uses: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, term: Term) -> int:
        return self._numbers[term]

    @property
    def most(self) -> int:
        """Below what all numbers of subscriptions' terms are."""
        return len(self._uses)

    def add(self, term: Term) -> int:
        """Return a term's number, and count one more use of it."""
        number = self._numbers.get(term)
        if number is None:
            if self._free:
                number = self._free.pop()
            else:
                number = len(self._uses)
                self._uses.append(0)
            self._numbers[term] = number
        self._uses[number] += 1
        return number

    def discard(self, term: Term) -> None:
        """Count one use less; a term without any has no number."""
        number = self._numbers[term]
        self._uses[number] -= 1
        if not self._uses[number]:
            del self._numbers[term]
            self._free.append(number)

    def publication(self, triples: Sequence[Triple]) -> tuple[Ids, dict[int, Term]]:
        """Return triples as numbers, shape ``(triples, 3)``, and the terms of these."""
        known, others = self._numbers, dict[Term, int]()
        terms: dict[int, Term] = {}
        flat = []
        for triple in triples:
            for term in triple:
                number = known.get(term)
                if number is None:
                    number = others.setdefault(term, len(self._uses) + len(others))
                terms[number] = term
                flat.append(number)
        return np.array(flat, np.int32).reshape(-1, 3), terms
