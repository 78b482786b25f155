"""Terms as integers: an id for each term that subscriptions mention.

An id lives as long as somebody mentions its term; then it is given to another one. The
numbers that filters compare stand beside the ids, so that a comparison is one of floats
(`graphmatch.index.numbers`). Terms of a publication that nobody mentions get ids that
are its own (`graphmatch.index.encoding`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.arrays import grown
from graphmatch.index.numbers import scales_of
from semantic.noted import NOTHING, Noted
from semantic.numbering import Numbering
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
        self._terms: list[Mentioned | None] = []
        self._mentions = np.zeros(16, np.int64)
        self._free: list[int] = []
        self._noted = Noted()
        self.passes = int(self.take([Passes.PASSES])[0])
        """The id of the property of passing a test."""

    def __len__(self) -> int:
        return len(self.ids) - 1

    def term(self, id: int) -> Mentioned:
        """Return the term that has an id."""
        term = self._terms[id]
        assert term is not None
        return term

    def take(self, terms: Sequence[Mentioned], scales: Numbers | None = None) -> Ids:
        """Return the terms' ids; each is kept until it is released as often as it was taken.

        Parameters
        ----------
        scales
            What the terms are compared by, where that is known: `scales_of`.
        """
        ids = self.enter(terms, scales)
        self.hold(ids)
        return ids

    def enter(self, terms: Sequence[Mentioned], scales: Numbers | None = None) -> Ids:
        """Return the terms' ids; whoever wants to keep them has to `hold` them at once."""
        known, found = self.ids, list(map(self.ids.get, terms))
        missing = [place for place, id in enumerate(found) if id is None]
        new: list[int] = []
        fresh = self._fresh(0)
        for place in missing:
            id = found[place] = known.setdefault(terms[place], fresh)
            if id == fresh:
                new.append(place)
                fresh = self._fresh(len(new))
        if new:
            self._noted.forget()
            self._add([terms[place] for place in new], None if scales is None else scales[new])
        return np.array(found, np.int32)

    def _fresh(self, taken: int) -> int:
        """Return an id that no term has, when so many are taken before."""
        free = len(self._free)
        return self._free[-1 - taken] if taken < free else len(self._terms) + taken - free

    def hold(self, ids: Ids) -> None:
        """Take ids, each as often as it is there: of any shape."""
        np.add.at(self._mentions, ids.ravel(), 1)

    def _add(self, new: list[Mentioned], scales: Numbers | None) -> None:
        """Keep terms that got the next ids."""
        ids = [self._fresh(n) for n in range(min(len(new), len(self._free)))]
        begin, reused = len(self._terms), len(ids)
        del self._free[len(self._free) - reused :]
        for id, term in zip(ids, new, strict=False):
            self._terms[id] = term
        self._terms += new[reused:]
        self.numbers = grown(self.numbers, len(self._terms))
        self._mentions = grown(self._mentions, len(self._terms))
        if scales is None:
            scales = scales_of(new)
        self.numbers[ids] = scales[:reused]
        self.numbers[begin : len(self._terms)] = scales[reused:]

    def mentioned(self) -> NDArray[np.int64]:
        """Return by id how often it is held; it is not to be kept."""
        return self._mentions

    def of(self, numbering: Numbering) -> Ids:
        """Return the ids of a publication's distinct terms, -1 of those that nobody mentions."""
        known, get = numbering.known, self.ids.get
        if known is None:
            return np.array([get(term, -1) for term in numbering.terms], np.int32)
        notes = self._noted.of(known.lexicon)
        ids: Ids = notes[known.numbers]
        if ids.min(initial=0) == NOTHING:
            places = np.flatnonzero(ids == NOTHING)
            for place, number in zip(places.tolist(), known.numbers[places].tolist(), strict=True):
                if number < 0:
                    ids[place] = get(known.others[place], -1)
                else:
                    ids[place] = notes[number] = get(known.lexicon.terms[number], -1)
        return ids

    def mentions(self, id: int) -> int:
        """Return how often an id is taken."""
        return int(self._mentions[id])

    def release(self, ids: Ids) -> None:
        """Give ids back, each as often as it is there."""
        ids = ids.ravel()
        np.subtract.at(self._mentions, ids, 1)
        gone = ids[self._mentions[ids] == 0]
        if gone.size:
            self._noted.forget()
        for id in dict.fromkeys(gone.tolist()):
            del self.ids[self.term(id)]
            self._terms[id] = None
            self._free.append(id)

    # -- saving -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the numbers of all that is to be saved; `all` gives the terms."""
        count = len(self._terms)
        return {"numbers": self.numbers[:count], "mentions": self._mentions[:count]}

    def all(self) -> list[Mentioned | None]:
        """Return the terms by id, ``None`` where an id is free."""
        return list(self._terms)

    @classmethod
    def of_arrays(
        cls, terms: Sequence[Mentioned | None], arrays: Mapping[str, NDArray[Any]]
    ) -> Terms:
        """Return the terms that gave these arrays, which are written on."""
        made = cls()
        made._terms = list(terms)
        made.ids = {term: id for id, term in enumerate(terms) if term is not None}
        made._free = [id for id, term in enumerate(terms) if term is None]
        made.numbers, made._mentions = arrays["numbers"], arrays["mentions"]
        return made
