"""Numbers found again by a hash of what they stand for.

An open hash table holds the numbers; beside it stands each number's hash, so that it can grow, and
give a number up, without asking what the number stands for. Whoever looks something up compares.

Cost: 4 bytes a number and 5 to 7 for its place in the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.arrays import grown
from graphmatch.index.terms import Ids
from semantic.jit import kernel, part

Hashes: TypeAlias = NDArray[np.uint32]

_FREE = -1
_SMALLEST = 16
_FULL = 0.8
_MORE = 0.25
"""The table has more cells than numbers by so much at least, and grows by so much."""


class Contents:
    """Numbers by hash.

    Examples
    --------
    >>> contents = Contents()
    >>> contents.put(np.array([0, 1], np.int32), np.array([700, 70], np.uint32))
    >>> contents.found(np.array([70, 7], np.uint32)).tolist()
    [1, -1]
    >>> contents.remove(1)
    >>> contents.found(np.array([70, 700], np.uint32)).tolist(), len(contents)
    ([-1, 0], 1)
    """

    def __init__(self) -> None:
        self._cells = np.full(_SMALLEST, _FREE, np.int32)
        self._hashes = np.zeros(_SMALLEST, np.uint32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, in use or not."""
        return self._cells.nbytes + self._hashes.nbytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is to be saved; `of_arrays` makes the same of it."""
        return {"cells": self._cells, "hashes": self._hashes}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Contents:
        """Return the contents that gave these arrays, which are written on."""
        contents = cls()
        contents._cells, contents._hashes = arrays["cells"], arrays["hashes"]
        contents._count = int((contents._cells >= 0).sum())
        return contents

    def put(self, numbers: Ids, hashes: Hashes) -> None:
        """Add numbers that are not there."""
        if not numbers.size:
            return
        self._hashes = grown(self._hashes, int(numbers.max()) + 1, _MORE)
        self._hashes[numbers] = hashes
        self._count += numbers.size
        if self._count > _FULL * self._cells.size:
            size = max(int(self._count / _FULL) + 1, int((1 + _MORE) * self._cells.size))
            old, self._cells = self._cells, np.full(size, _FREE, np.int32)
            _fill(self._cells, self._hashes, old[old >= 0])
        _fill(self._cells, self._hashes, numbers)

    def found(self, hashes: Hashes) -> Ids:
        """Return for each hash a number that has it, or -1."""
        numbers = np.empty(hashes.size, np.int32)
        _find(self._cells, self._hashes, hashes, numbers)
        return numbers

    def remove(self, number: int) -> None:
        """Take out a number that is there."""
        _take_out(self._cells, self._hashes, number)
        self._count -= 1


@part
def _home(hash_: int, size: int) -> int:
    return int(hash_) * size >> 32


@kernel
def _fill(cells: Ids, hashes: Hashes, numbers: Ids) -> None:
    size = cells.size
    for number in numbers:
        cell = _home(hashes[number], size)
        while cells[cell] >= 0:
            cell = cell + 1 if cell + 1 < size else 0
        cells[cell] = number


@kernel
def _find(cells: Ids, hashes: Hashes, wanted: Hashes, numbers: Ids) -> None:
    size = cells.size
    for n in range(wanted.size):
        cell = _home(wanted[n], size)
        while cells[cell] >= 0 and hashes[cells[cell]] != wanted[n]:
            cell = cell + 1 if cell + 1 < size else 0
        numbers[n] = cells[cell]


@kernel
def _take_out(cells: Ids, hashes: Hashes, number: int) -> None:
    """Take a number out, and close the gap that it leaves."""
    size = cells.size
    hole = _home(hashes[number], size)
    while cells[hole] != number:
        hole = hole + 1 if hole + 1 < size else 0
    cell = hole + 1 if hole + 1 < size else 0
    while cells[cell] >= 0:
        home = _home(hashes[cells[cell]], size)
        if (cell - home) % size >= (cell - hole) % size:
            cells[hole] = cells[cell]
            hole = cell
        cell = cell + 1 if cell + 1 < size else 0
    cells[hole] = _FREE
