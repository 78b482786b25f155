"""Skeletons as numbers: what queries have in common that differ in constants only.

A number lives as long as a subscription has the skeleton. Beside it stand the skeleton's triple
patterns, ready for constants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from pyoxigraph import Variable

from graphmatch.index.record_kernels import ANY, FIXED, Templates
from graphmatch.index.runs import Array, Ids, Runs, roomy
from graphmatch.index.terms import Terms
from semantic.sparql.query import Skeleton
from semantic.sparql.slots import slot_number
from semantic.terms import Node


class SkeletonTable:
    """The skeletons of subscriptions.

    Parameters
    ----------
    terms
        Gives ids to the constants of patterns that are no slots.

    Attributes
    ----------
    slots
        By number: how many constants a query has.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._numbers: dict[int, int] = {}  # by the object's identity, which is kept below
        self._skeletons: list[Skeleton | None] = []
        self._lent = False
        self._uses: list[int] = []
        self._free: list[int] = []
        self._patterns = Runs(np.int32)
        self.slots: Ids = np.zeros(4, np.int32)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, number: int) -> Skeleton:
        """Return the skeleton that has a number."""
        skeleton = self._skeletons[number]
        assert skeleton is not None
        return skeleton

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays; the skeletons themselves are not counted."""
        return self.slots.nbytes + self._patterns.nbytes

    @property
    def templates(self) -> Templates:
        """The triple patterns of all skeletons."""
        patterns = self._patterns
        return Templates(patterns.arena, patterns.start, patterns.length)

    def all(self) -> Sequence[Skeleton | None]:
        """Return the skeletons by number, ``None`` where a number is free: as it is now."""
        self._lent = True
        return self._skeletons

    def slots_of(self, skeleton: Skeleton) -> int | None:
        """Return how many constants the queries of a skeleton have, if one is there."""
        number = self._numbers.get(id(skeleton))
        return None if number is None else int(self.slots[number])

    def take(self, skeleton: Skeleton, slots: int, uses: int) -> int:
        """Return a skeleton's number; it is kept until it is released as often as it was taken."""
        number = self._numbers.get(id(skeleton))
        if number is None:
            number = self._free.pop() if self._free else len(self._skeletons)
            self._put(number, skeleton, slots)
        self._uses[number] += uses
        return number

    def release(self, numbers: Ids) -> None:
        """Give numbers back, each as often as it is there."""
        for number, count in Counter(numbers.tolist()).items():
            self._uses[number] -= count
            if not self._uses[number]:
                self._forget(number)

    def _put(self, number: int, skeleton: Skeleton, slots: int) -> None:
        if number == len(self._skeletons):
            self._skeletons.append(None)
            self._uses.append(0)
        self._own()
        self._skeletons[number] = skeleton
        self._numbers[id(skeleton)] = number
        self.slots = roomy(self.slots, number + 1)
        self.slots[number] = slots
        self._patterns.append(number, np.array(list(self._codes(skeleton)), np.int32))

    def _forget(self, number: int) -> None:
        codes = self._patterns.of(number)
        self._terms.release(FIXED - codes[codes <= FIXED])
        del self._numbers[id(self[number])]
        self._own()
        self._skeletons[number] = None
        self._free.append(number)
        self._patterns.drop(np.array([number], np.int32))

    def _own(self) -> None:
        """Go on with a copy where somebody has the list: for him, it stays what it was."""
        if self._lent:
            self._skeletons, self._lent = list(self._skeletons), False

    def _codes(self, skeleton: Skeleton) -> Iterator[int]:
        for branch in skeleton.branches:
            for pattern in branch.patterns:
                yield from map(self._code, pattern)

    def _code(self, node: Node) -> int:
        if isinstance(node, Variable):
            return ANY
        slot = slot_number(node)
        return FIXED - int(self._terms.take([node])[0]) if slot is None else slot

    # -- saving -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, Array]:
        """Return all that is to be saved but the skeletons themselves; see `all`."""
        count = len(self._skeletons)
        uses = np.array(self._uses, np.int32)
        own: dict[str, Array] = {"slots": self.slots[:count], "uses": uses}
        return self._patterns.arrays(count) | own

    @classmethod
    def of_arrays(
        cls, terms: Terms, skeletons: Sequence[Skeleton | None], arrays: Mapping[str, Array]
    ) -> SkeletonTable:
        """Return the table that gave these arrays and skeletons, over the terms that it had."""
        table = cls(terms)
        table._skeletons, table._uses = list(skeletons), arrays["uses"].tolist()
        table._numbers = {id(s): n for n, s in enumerate(skeletons) if s is not None}
        table._free = [n for n, s in enumerate(skeletons) if s is None]
        own = {name: array.copy() for name, array in arrays.items()}  # they are small
        table._patterns = Runs.of_arrays(np.int32, own)
        table.slots = own["slots"]
        return table
