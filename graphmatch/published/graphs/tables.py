"""Hash tables from numbers to numbers, for compiled loops.

Keys lie in an array with a power of two of places, at the first free one from where their search
begins (linear probing). When a key is taken out, those after it move up, so that no mark is left.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.published.graphs.numbers import Ids
from graphmatch.published.jit import at, kernel, part

Keys: TypeAlias = NDArray[np.int64]

TableView: TypeAlias = tuple[Keys, Ids]
"""Keys, `EMPTY` where there is none, and their values."""

PoolView: TypeAlias = tuple[Ids, Keys]
"""Free numbers, and how many there are."""

EMPTY = -1

BITS = 31
"""How many each half of a key has."""


class Table:
    """A hash table; keys are no negative numbers.

    Examples
    --------
    >>> table = Table()
    >>> table.reserve(1000)
    >>> put(2**40, 7, *table.view)
    >>> table[2**40], table[5]
    (7, -1)
    """

    def __init__(self) -> None:
        self._keys: Keys = np.full(8, EMPTY, np.int64)
        self._values: Ids = np.empty(8, np.int32)

    @property
    def nbytes(self) -> int:
        """How large the arrays are."""
        return self._keys.nbytes + self._values.nbytes

    @property
    def view(self) -> TableView:
        """The arrays, for compiled loops; they hold until the next `reserve`."""
        return self._keys, self._values

    def reserve(self, count: int) -> None:
        """Make sure that there is room for so many keys: half of the places stay free."""
        if 2 * count <= self._keys.size:
            return
        places = 1 << (2 * count - 1).bit_length()
        old = self.view
        self._keys, self._values = np.full(places, EMPTY, np.int64), np.empty(places, np.int32)
        _put_all(old, self.view)

    def __getitem__(self, key: int) -> int:
        """Return a key's value, or `EMPTY`."""
        return _get(key, self.view)

    def discard(self, key: int) -> None:
        """Take a key out that is there."""
        _discard(key, self.view)


class Pool:
    """Numbers from 0 that are free.

    Examples
    --------
    >>> pool = Pool()
    >>> pool.reserve(2)
    >>> [take(*pool.view), take(*pool.view)]
    [0, 1]
    >>> pool.give(0)
    >>> take(*pool.view)
    0
    """

    def __init__(self) -> None:
        self._free: Ids = np.empty(0, np.int32)
        self._count = np.zeros(1, np.int64)
        self.most = 0
        """Below what all numbers are."""

    @property
    def view(self) -> PoolView:
        """The arrays, for compiled loops; they hold until the next `reserve`."""
        return self._free, self._count

    @property
    def nbytes(self) -> int:
        """How large the array is."""
        return self._free.nbytes

    @property
    def taken(self) -> int:
        """How many numbers are not free."""
        return self.most - int(self._count[0])

    def reserve(self, count: int) -> None:
        """Make sure that so many numbers are free."""
        free = int(self._count[0])
        if count <= free:
            return
        more = max(count - free, self.most)
        new = np.arange(self.most + more - 1, self.most - 1, -1, dtype=np.int32)
        taken = np.empty(self.most - free, np.int32)
        self._free = np.concatenate([new, self._free[:free], taken])
        self._count[0] += more
        self.most += more

    def give(self, number: int) -> None:
        """Free a number."""
        self._free[self._count[0]] = number
        self._count[0] += 1


@part
def take(free: Ids, count: Keys) -> int:
    """Take a number that is free."""
    count[0] -= 1
    return int(free[count[0]])


@part
def joined(high: int, low: int) -> int:
    """Return the key that is made of two numbers."""
    return int(np.int64(high) << BITS | low)


@part
def begin(key: int, mask: int) -> int:
    """Return where a key's search begins, in a table of ``mask + 1`` places.

    Both halves of the key are mixed; no product is larger than 62 bits, with compiling or without.
    """
    low, high = key & 0x7FFFFFFF, key >> BITS
    mixed = (low * 0x2545F491) ^ (high * 0x1B873593)
    return int((mixed ^ (mixed >> 15) ^ (mixed >> 32)) & mask)


@part
def find(key: int, keys: Keys, values: Ids) -> int:
    """Return a key's value, or `EMPTY`."""
    mask = keys.size - 1
    place = begin(key, mask)
    while keys[at(place)] != key:
        if keys[at(place)] == EMPTY:
            return EMPTY
        place = (place + 1) & mask
    return int(values[at(place)])


@part
def put(key: int, value: int, keys: Keys, values: Ids) -> None:
    """Put in a key that is not there."""
    mask = keys.size - 1
    place = begin(key, mask)
    while keys[at(place)] != EMPTY:
        place = (place + 1) & mask
    keys[at(place)] = key
    values[at(place)] = value


@kernel
def _get(key: int, table: TableView) -> int:
    """Return a key's value, or `EMPTY`."""
    return find(key, *table)


@kernel
def _put_all(old: TableView, new: TableView) -> None:
    keys, values = old
    for place in range(keys.size):
        if keys[place] != EMPTY:
            put(keys[place], values[place], *new)


@kernel
def _discard(key: int, table: TableView) -> None:
    """Take a key out; each after it that may be at the free place moves there."""
    keys, values = table
    mask = keys.size - 1
    free = begin(key, mask)
    while keys[free] != key:
        free = (free + 1) & mask
    place = free
    while True:
        place = (place + 1) & mask
        if keys[place] == EMPTY:
            break
        if (place - begin(keys[place], mask)) & mask >= (place - free) & mask:
            keys[free], values[free] = keys[place], values[place]
            free = place
    keys[free] = EMPTY
