"""Terms as integers: an id for each term that subscriptions mention.

An id lives as long as somebody mentions its term; then it is given to another one. The
numbers that filters compare stand beside the ids, so that a comparison is one of floats
(`graphmatch.index.numbers`). Terms of a publication that nobody mentions get ids that
are its own (`graphmatch.index.encoding`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.arrays import grown
from graphmatch.index.numbers import TEXT, scale_of
from semantic.pattern import Filter
from semantic.terms import Term

Ids: TypeAlias = NDArray[np.int32]

LOCAL = 1 << 30
"""Ids from here on are a publication's own."""


class Passes(Enum):
    """The property of a term to pass a test."""

    PASSES = "passes"


Mentioned: TypeAlias = Term | Filter | Passes
"""A constant, or a filter that is decided as a whole, whatever its variable is called."""

Numbers: TypeAlias = NDArray[np.float64]
"""By term: what kind of number it is, the number, and how far it may be off (`Scale`)."""


class Terms:
    """The terms that subscriptions mention.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> terms = Terms()
    >>> int(terms.take([NamedNode("urn:a"), NamedNode("urn:b"), NamedNode("urn:a")])[1])
    2
    >>> terms.release(terms.take([NamedNode("urn:b")]))
    >>> len(terms), terms.term(1)
    (2, <NamedNode value=urn:a>)
    """

    def __init__(self) -> None:
        self.ids: dict[Mentioned, int] = {}
        self.numbers = np.zeros((16, 3))
        self._compared = 0
        self._terms: list[Mentioned | None] = []
        self._mentions: list[int] = []
        self._free: list[int] = []
        self.passes = self._take(Passes.PASSES)
        """The id of the property of passing a test."""

    def __len__(self) -> int:
        return len(self.ids) - 1

    @property
    def has_numbers(self) -> bool:
        """Whether any of the terms is a number or a time, so that terms may be compared with it."""
        return self._compared > 0

    def term(self, id: int) -> Mentioned:
        """Return the term that has an id."""
        term = self._terms[id]
        assert term is not None
        return term

    def take(self, terms: Sequence[Mentioned]) -> Ids:
        """Return the terms' ids; each is kept until it is released as often as it was taken."""
        ids = [self._take(term) for term in terms]
        return np.array(ids, np.int32)

    def _take(self, term: Mentioned) -> int:
        id = self.ids.get(term)
        if id is None:
            id = self.ids[term] = self._new(term)
        self._mentions[id] += 1
        return id

    def _new(self, term: Mentioned) -> int:
        if self._free:
            id = self._free.pop()
            self._terms[id] = term
        else:
            id = len(self._terms)
            self._terms.append(term)
            self._mentions.append(0)
            self.numbers = grown(self.numbers, id + 1)
        self.numbers[id] = scale = scale_of(term)
        self._compared += scale.kind > TEXT
        return id

    def mentions(self, id: int) -> int:
        """Return how often an id is taken."""
        return self._mentions[id]

    def release(self, ids: Iterable[int]) -> None:
        """Give ids back, each one time."""
        for id in map(int, ids):
            self._mentions[id] -= 1
            if not self._mentions[id]:
                del self.ids[self.term(id)]
                self._compared -= bool(self.numbers[id, 0] > TEXT)
                self._terms[id] = None
                self._free.append(id)
