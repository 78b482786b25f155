"""Many growing lists of ``(number, value)`` in three arrays, for compiled loops.

A list that is full moves to the end of the arrays with twice the room; when half of them is left
behind, all lists are moved together. Appending costs O(1) amortised.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.published.jit import kernel

Places: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.int32]
Values: TypeAlias = NDArray[np.float64]
Arrays: TypeAlias = tuple[Places, Places, Numbers, Values]
"""Where lists begin, how long they are, and what is in them: what compiled loops are given."""

_LEAST = 4


class Buckets:
    """Lists with a number each, from 0.

    Parameters
    ----------
    count
        How many lists there are.

    Attributes
    ----------
    begin, size
        Shape ``(count,)``: where each list begins in `numbers` and `values`, and how long it is.

    Examples
    --------
    >>> buckets = Buckets(2)
    >>> buckets.append(1, 7, 0.5)
    >>> buckets.insert(1, 8, 0.25)
    >>> buckets.of(1)[0].tolist(), buckets.of(1)[1].tolist()
    ([8, 7], [0.25, 0.5])
    >>> buckets.discard(1, 7, 0.5)
    >>> len(buckets)
    1
    """

    def __init__(self, count: int) -> None:
        self.begin: Places = np.zeros(count, np.int64)
        self.size: Places = np.zeros(count, np.int64)
        self._room: Places = np.zeros(count, np.int64)
        self.numbers: Numbers = np.empty(0, np.int32)
        self.values: Values = np.empty(0, np.float64)
        self._end = 0

    def __len__(self) -> int:
        return int(self.size.sum())

    @property
    def nbytes(self) -> int:
        """How large the arrays are."""
        arrays = (self.begin, self.size, self._room, self.numbers, self.values)
        return sum(array.nbytes for array in arrays)

    @property
    def arrays(self) -> Arrays:
        """The arrays as they are now; some move when something is put in."""
        return self.begin, self.size, self.numbers, self.values

    def extend(self, count: int) -> None:
        """Add empty lists after the last one."""
        more = np.zeros(count, np.int64)
        self.begin = np.concatenate([self.begin, more])
        self.size = np.concatenate([self.size, more])
        self._room = np.concatenate([self._room, more])

    def of(self, bucket: int) -> tuple[Numbers, Values]:
        """Return views of one list."""
        start = self.begin[bucket]
        end = start + self.size[bucket]
        return self.numbers[start:end], self.values[start:end]

    def append(self, bucket: int, number: int, value: float) -> None:
        """Put something at a list's end."""
        self._make_room(bucket)
        place = self.begin[bucket] + self.size[bucket]
        self.numbers[place], self.values[place] = number, value
        self.size[bucket] += 1

    def insert(self, bucket: int, number: int, value: float) -> None:
        """Put something into a list that is in ascending order of values."""
        self._make_room(bucket)
        size = self.size[bucket]
        _insert(self.numbers, self.values, self.begin[bucket], size, number, float(value))
        self.size[bucket] = size + 1

    def discard(self, bucket: int, number: int, value: float) -> None:
        """Take out what was put in; the order of the rest stays."""
        numbers, values = self.of(bucket)
        places = np.flatnonzero(numbers == number)
        place = places[values[places] == value][0]
        numbers[place:-1] = numbers[place + 1 :]  # numpy minds that they overlap
        values[place:-1] = values[place + 1 :]
        self.size[bucket] -= 1

    def _make_room(self, bucket: int) -> None:
        if self.size[bucket] < self._room[bucket]:
            return
        room = max(_LEAST, 2 * int(self._room[bucket]))
        if self._end + room > self.numbers.size:
            self._make_space(room)
        self._move(bucket, room)

    def _move(self, bucket: int, room: int) -> None:
        numbers, values = self.of(bucket)
        end = self._end + numbers.size
        self.numbers[self._end : end], self.values[self._end : end] = numbers, values
        self.begin[bucket], self._room[bucket] = self._end, room
        self._end += room

    def _make_space(self, room: int) -> None:
        """Move all lists together, into arrays of twice the size where that is not enough."""
        used = int(self._room.sum())
        length = self.numbers.size
        while used + room > length / 2:
            length = 2 * length + 64
        old = self.numbers, self.values
        numbers, values = np.empty(length, np.int32), np.empty(length, np.float64)
        self._end = 0
        for bucket in np.flatnonzero(self._room).tolist():
            start, size = int(self.begin[bucket]), int(self.size[bucket])
            numbers[self._end : self._end + size] = old[0][start : start + size]
            values[self._end : self._end + size] = old[1][start : start + size]
            self.begin[bucket] = self._end
            self._end += int(self._room[bucket])
        self.numbers, self.values = numbers, values


@kernel
def _insert(
    numbers: Numbers, values: Values, begin: int, size: int, number: int, value: float
) -> None:
    """Put something into a list in ascending order, after those with the same value."""
    low, high = begin, begin + size
    while low < high:
        middle = (low + high) // 2
        if values[middle] <= value:
            low = middle + 1
        else:
            high = middle
    for place in range(begin + size, low, -1):
        numbers[place], values[place] = numbers[place - 1], values[place - 1]
    numbers[low], values[low] = number, value
