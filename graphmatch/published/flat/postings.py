"""Many growing lists of numbers in one array, for compiled loops; a number goes into several.

A list has a room of the array, as large as a power of two. One that is full moves into a room of
twice the size; the old one is kept for lists of its size. What is taken out is replaced by the last
number of its list, and a list that becomes empty gives its room back.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.published.jit import kernel, part

Places: TypeAlias = NDArray[np.int64]
Sizes: TypeAlias = NDArray[np.int32]
Numbers: TypeAlias = NDArray[np.int32]

_LEAST = 8
_KINDS = 40
"""Sizes of rooms: more than an array could have."""


class Postings:
    """Lists of numbers, in no order; at most 2**31 of them in all, with what rooms have spare.

    Attributes
    ----------
    begin, size
        Shape ``(count,)``: where each list begins in `numbers`, and how long it is.

    Examples
    --------
    >>> postings = Postings(3)
    >>> postings.append(np.array([0, 2]), 7)
    >>> postings.append(np.array([2]), 8)
    >>> [postings.of(number).tolist() for number in range(3)]
    [[7], [], [7, 8]]
    >>> postings.discard(np.array([0, 2]), 7)
    >>> [postings.of(number).tolist() for number in range(3)]
    [[], [], [8]]
    """

    def __init__(self, count: int) -> None:
        self.begin: Places = np.zeros(count, np.int64)
        self.size: Sizes = np.zeros(count, np.int32)
        self._room: Sizes = np.zeros(count, np.int32)
        self.numbers: Numbers = np.empty(0, np.int32)
        self._free: Places = np.full(_KINDS + 1, -1)
        """The first free room of each size; the last entry is where none has been."""
        self._free[-1] = 0

    def __len__(self) -> int:
        return self.size.size

    @property
    def nbytes(self) -> int:
        """How large the arrays are."""
        arrays = (self.begin, self.size, self._room, self.numbers, self._free)
        return sum(array.nbytes for array in arrays)

    def of(self, number: int) -> Numbers:
        """Return a view of one list."""
        return self.numbers[self.begin[number] : self.begin[number] + self.size[number]]

    def extend(self, count: int) -> None:
        """Add empty lists after the last one."""
        self.begin = np.concatenate([self.begin, np.zeros(count, np.int64)])
        self.size = np.concatenate([self.size, np.zeros(count, np.int32)])
        self._room = np.concatenate([self._room, np.zeros(count, np.int32)])

    def append(self, lists: Places, number: int) -> None:
        """Put a number into several lists, each of them once."""
        done = 0
        while True:
            arrays = self.begin, self.size, self._room, self.numbers
            done = _append(lists, done, number, arrays, self._free)
            if done == lists.size:
                return
            more = max(self.numbers.size // 2, 2 * int(self._room[lists[done]]), _LEAST)
            self.numbers = np.concatenate([self.numbers, np.empty(more, np.int32)])

    def discard(self, lists: Places, number: int) -> None:
        """Take a number out of several lists that have it."""
        arrays = self.begin, self.size, self._room, self.numbers
        _discard(lists, number, arrays, self._free)


_Arrays: TypeAlias = tuple[Places, Sizes, Sizes, Numbers]


@kernel
def _append(lists: Places, done: int, number: int, arrays: _Arrays, free: Places) -> int:
    """Append to the lists from one on; return where there is no more room, or how many lists."""
    begin, size, room, numbers = arrays
    for turn in range(done, lists.size):
        list_ = lists[turn]
        if size[list_] == room[list_]:
            larger = max(2 * room[list_], _LEAST)
            kind, old = _kind(larger), begin[list_]
            start = free[kind]
            if start >= 0:
                free[kind] = numbers[start]
            else:
                start = free[_KINDS]
                if start + larger > numbers.size:
                    return turn
                free[_KINDS] += larger
            for place in range(size[list_]):
                numbers[start + place] = numbers[old + place]
            if room[list_] > 0:
                numbers[old] = free[kind - 1]
                free[kind - 1] = old
            begin[list_], room[list_] = start, larger
        numbers[begin[list_] + size[list_]] = number
        size[list_] += 1
    return lists.size


@kernel
def _discard(lists: Places, number: int, arrays: _Arrays, free: Places) -> None:
    begin, size, room, numbers = arrays
    for list_ in lists:
        start = begin[list_]
        place = start
        while numbers[place] != number:
            place += 1
        size[list_] -= 1
        numbers[place] = numbers[start + size[list_]]
        if size[list_] == 0:
            kind = _kind(room[list_])
            numbers[start] = free[kind]
            free[kind] = start
            room[list_] = 0


@part
def _kind(room: int) -> int:
    """Return which power of two a room is."""
    kind = 0
    while room > 1:
        room //= 2
        kind += 1
    return kind
