"""The constraints of each conjunction in arrays, for algorithms that look at some one by one.

A constraint is an interval of doubles in a *slot*, which stands for an attribute (or for a kind of
constraint on one). An event is an array with a value for each slot; what it has no value for is
NaN, which is in no interval. `Terms` gives numbers to terms, so that one can be an interval, too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphmatch.published.flat.buckets import Places, Values
from graphmatch.published.jit import at, part
from semantic.terms import Term

Key = TypeVar("Key", bound=Hashable)
Ends: TypeAlias = tuple[float, float]
Marks: TypeAlias = NDArray[np.uint8]
Table: TypeAlias = tuple[Places, Values]
"""Where each conjunction's constraints begin and end; of each its slot, its low and high end.

Both have their numbers side by side, so that a conjunction costs two lines of a processor's cache.
"""


class Rows(Generic[Key]):
    """Intervals by the numbers of conjunctions.

    Attributes
    ----------
    slots
        Key to slot, for those that a conjunction asks for.
    keys
        Slot to key; that of a free slot says nothing.

    Examples
    --------
    >>> rows = Rows[str]()
    >>> rows.insert(0, {"price": (100.0, 400.0), "weight": (0.0, 1.0)})
    >>> rows.of(0)
    {0: (100.0, 400.0), 1: (0.0, 1.0)}
    >>> rows.values([("price", 350.0), ("colour", 7.0)]).tolist()
    [350.0, nan]
    >>> rows.remove(0, ["price", "weight"])
    >>> rows.slots
    {}
    """

    def __init__(self) -> None:
        self.slots: dict[Key, int] = {}
        self.keys: list[Key] = []
        self._asked: list[int] = []
        self._free_slots: list[int] = []
        self._where: Places = np.zeros((0, 2), np.int64)
        self._tests: Values = np.empty((0, 3), np.float64)
        self._end = 0
        self._free: defaultdict[int, list[int]] = defaultdict(list)

    @property
    def table(self) -> Table:
        """The arrays, for compiled loops."""
        return self._where, self._tests

    @property
    def room(self) -> int:
        """How many numbers of conjunctions there is room for."""
        return len(self._where)

    @property
    def nbytes(self) -> int:
        """How large the arrays are."""
        return sum(array.nbytes for array in self.table)

    def insert(self, number: int, row: Mapping[Key, Ends]) -> None:
        """Keep a conjunction's constraints, under a number that is free."""
        tests = [(self._slot_of(key), low, high) for key, (low, high) in row.items()]
        size = len(tests)
        self._reserve(number, size)
        if self._free[size]:
            begin = self._free[size].pop()
        else:
            begin, self._end = self._end, self._end + size
        self._where[number] = begin, begin + size
        self._tests[begin : begin + size] = tests

    def remove(self, number: int, keys: Iterable[Key]) -> None:
        """Forget a conjunction's constraints; these are its keys."""
        begin, end = self._where[number].tolist()
        self._free[end - begin].append(begin)
        for key in keys:
            slot = self.slots[key]
            self._asked[slot] -= 1
            if not self._asked[slot]:
                del self.slots[key]
                self._free_slots.append(slot)

    def of(self, number: int) -> dict[int, Ends]:
        """Return a conjunction's constraints: slot to interval."""
        begin, end = self._where[number].tolist()
        return {int(slot): (low, high) for slot, low, high in self._tests[begin:end].tolist()}

    def values(self, pairs: Iterable[tuple[Key, float]]) -> Values:
        """Return an event: the value of each slot, shape ``(slots,)``, where it has one."""
        values = np.full(len(self.keys), np.nan)
        for key, value in pairs:
            slot = self.slots.get(key)
            if slot is not None:
                values[slot] = value
        return values

    def _slot_of(self, key: Key) -> int:
        slot = self.slots.get(key)
        if slot is None:
            if self._free_slots:
                slot = self._free_slots.pop()
                self.keys[slot] = key
            else:
                slot = len(self.keys)
                self.keys.append(key)
                self._asked.append(0)
            self.slots[key] = slot
        self._asked[slot] += 1
        return slot

    def _reserve(self, number: int, size: int) -> None:
        if number >= len(self._where):
            more = np.zeros((max(64, len(self._where)), 2), np.int64)
            self._where = np.concatenate([self._where, more])
        if self._end + size > len(self._tests):
            tests = np.empty((max(256, size, len(self._tests)), 3), np.float64)
            self._tests = np.concatenate([self._tests, tests])


class Terms:
    """Numbers of terms, from 1, for as long as somebody names them.

    Examples
    --------
    >>> from pyoxigraph import Literal
    >>> terms = Terms()
    >>> terms.name(Literal("a")), terms.name(Literal("b")), terms.name(Literal("a"))
    (1, 2, 1)
    >>> terms.forget(Literal("b"))
    >>> list(terms.numbers.values())
    [1]
    """

    def __init__(self) -> None:
        self.numbers: dict[Term, int] = {}
        self._named: Counter[Term] = Counter()
        self._free: list[int] = []

    def name(self, term: Term) -> int:
        """Return a term's number; it has one as long as each naming is not forgotten."""
        if term not in self.numbers:
            self.numbers[term] = self._free.pop() if self._free else len(self.numbers) + 1
        self._named[term] += 1
        return self.numbers[term]

    def forget(self, term: Term) -> None:
        """Take one naming back."""
        self._named[term] -= 1
        if not self._named[term]:
            del self._named[term]
            self._free.append(self.numbers.pop(term))


@part
def passes(table: Table, number: int, values: Values) -> bool:
    """Say whether an event's values are in all of a conjunction's intervals."""
    where, tests = table
    for place in range(where[number, 0], where[number, 1]):
        value = values[at(int(tests[at(place), 0]))]
        if not tests[at(place), 1] <= value <= tests[at(place), 2]:
            return False
    return True
