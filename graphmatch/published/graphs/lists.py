"""Many growing lists of numbers in one array, for compiled loops.

A list that is full moves to the end of the array: with twice the room, or with all that it needs
where many numbers come at once. When half of the array is left behind, all lists are moved
together. Appending costs O(1) amortised.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.published.graphs.numbers import Ids
from graphmatch.published.jit import at, kernel

Places: TypeAlias = NDArray[np.int64]

View: TypeAlias = tuple[Places, Ids, Ids]
"""Where each list begins, how long it is, and the numbers."""

_LEAST = 2


class Lists:
    """Lists with a number each, from 0; all of them are there, and empty.

    Examples
    --------
    >>> lists = Lists()
    >>> lists.extend(np.array([3, 0, 3]), np.array([7, 8, 9]))
    >>> lists[3].tolist(), lists[0].tolist(), lists[1].tolist()
    ([7, 9], [8], [])
    >>> lists.discard(3, 7)
    >>> lists[3].tolist(), len(lists)
    ([9], 2)
    """

    def __init__(self) -> None:
        self._begin: Places = np.zeros(4, np.int64)
        self._size: Ids = np.zeros(4, np.int32)
        self._room: Ids = np.zeros(4, np.int32)
        self._numbers: Ids = np.empty(16, np.int32)
        self._end = 0

    def __len__(self) -> int:
        return int(self._size.sum())

    def __getitem__(self, number: int) -> Ids:
        if number >= self._size.size:
            return self._numbers[:0]
        begin = self._begin[number]
        return self._numbers[begin : begin + self._size[number]]

    @property
    def nbytes(self) -> int:
        """How large the arrays are."""
        return sum(a.nbytes for a in (self._begin, self._size, self._room, self._numbers))

    @property
    def view(self) -> View:
        """The arrays, for compiled loops; they hold until the next change."""
        return self._begin, self._size, self._numbers

    def extend(self, lists: Ids | Places, numbers: Ids | Places) -> None:
        """Append each number to its list."""
        if not lists.size:
            return
        self._reach(int(lists.max()) + 1)
        grown, more = np.unique(lists, return_counts=True)
        needed = self._size[grown] + more
        full = needed > self._room[grown]
        if full.any():
            grown, needed = grown[full], needed[full]
            rooms = np.maximum(needed, np.maximum(2 * self._room[grown], _LEAST * (needed > 1)))
            self._move(grown.astype(np.int64), rooms.astype(np.int32))
        _append(lists, numbers, self.view)

    def clear(self, number: int) -> None:
        """Empty a list."""
        self._size[number] = self._room[number] = 0

    def discard(self, number: int, value: int) -> None:
        """Take a value out of a list; the last one takes its place. An empty list has no room."""
        values = self[number]
        values[np.argmax(values == value)] = values[-1]
        self._size[number] -= 1
        if not self._size[number]:
            self._room[number] = 0

    def _reach(self, count: int) -> None:
        """Make sure that there are so many lists."""
        more = max(count, 2 * self._size.size) - self._size.size
        if count > self._size.size:
            self._begin = np.concatenate([self._begin, np.zeros(more, np.int64)])
            self._size = np.concatenate([self._size, np.zeros(more, np.int32)])
            self._room = np.concatenate([self._room, np.zeros(more, np.int32)])

    def _move(self, lists: Places, rooms: Ids) -> None:
        """Move lists to the end, with more room."""
        total = int(rooms.sum())
        if self._end + total > self._numbers.size:
            self._gather(total)
        begin = self._end + np.cumsum(rooms, dtype=np.int64) - rooms
        _copy(lists, begin, self.view, self._numbers)
        self._begin[lists], self._room[lists] = begin, rooms
        self._end += total

    def _gather(self, total: int) -> None:
        """Move all lists together, into an array that has as much again where it is half full."""
        used = int(self._room.sum(dtype=np.int64))
        length = self._numbers.size
        if used + total > length // 2:
            length = max(used + total, min(2 * length, 2 * (used + total)))
        numbers = np.empty(length, np.int32)
        lists = np.flatnonzero(self._room)
        rooms = self._room[lists].astype(np.int64)
        begin = np.cumsum(rooms) - rooms
        _copy(lists, begin, self.view, numbers)
        self._begin[lists], self._numbers, self._end = begin, numbers, used


@kernel
def _append(lists: Ids | Places, values: Ids | Places, view: View) -> None:
    """Write numbers at the ends of their lists, which have room."""
    begin, size, numbers = view
    for k in range(lists.size):
        list_ = lists[k]
        numbers[begin[list_] + size[list_]] = values[k]
        size[list_] += 1


@kernel
def _copy(lists: Places, to: Places, view: View, target: Ids) -> None:
    """Copy lists to where they are to begin."""
    begin, size, numbers = view
    for k in range(lists.size):
        list_ = lists[k]
        for place in range(size[list_]):
            target[at(to[k] + place)] = numbers[at(begin[list_] + place)]
