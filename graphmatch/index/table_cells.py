"""Compiled loops that build a constraint table: the bitmaps of a column's cells.

Importing this module imports numba; with ``NUMBA_DISABLE_JIT=1`` the functions run as plain Python.
"""

from __future__ import annotations

from typing import TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float64]
Bits: TypeAlias = NDArray[np.uint64]

HASH, HASH_SHIFT = 2_654_435_761, 16
"""Knuth's multiplicative hash, and which of its bits tell the cell."""


@numba.njit(cache=True, inline="always")
def cell_of_id(number: int, own: Ids, start: int, owns: int, cells: int) -> int:
    """Return the cell of an id: its own, or one by hash, or -1 when no row asks for it."""
    low, high = start, start + owns
    while low < high:
        middle = (low + high) >> 1
        if own[middle] < number:
            low = middle + 1
        else:
            high = middle
    if low < start + owns and own[low] == number:
        return low - start
    if cells == owns or number < 0:
        return -1
    return int(owns + (((np.int64(number) * HASH) >> HASH_SHIFT) & (cells - owns - 1)))


@numba.njit(cache=True)
def span_of(lows: Floats, highs: Floats) -> tuple[float, float, bool, bool]:
    """Return the least and the largest finite bound, and whether all are whole, or float32."""
    least, most, whole, single = np.inf, -np.inf, True, True
    largest = np.float64(np.finfo(np.float32).max)
    for bounds in (lows, highs):
        for place in range(bounds.size):
            bound = bounds[place]
            if np.isfinite(bound):
                least, most = min(least, bound), max(most, bound)
                whole &= np.floor(bound) == bound
                single &= abs(bound) <= largest and np.float64(np.float32(bound)) == bound
    return least, most, whole, single


@numba.njit(cache=True)
def fill_intervals(
    lows: Floats, highs: Floats, ends: Floats, cuts: Floats, cells: Bits, null: Bits
) -> bool:
    """Set the bits of a column's rows; return whether the cells alone decide.

    `lows` and `highs` are one column's, `ends` the next numbers after `highs`; `cells` are its
    bitmaps, shape ``(cuts + 1, words)``, `null` that of the rows that it does not constrain. A
    row's interval begins in one cell and ends in another: both are marked, and the marks summed up
    from cell to cell.
    """
    size, count, exact = lows.size, cuts.size, True
    marks = np.zeros(count + 2, np.uint64)
    for word in range(null.size):
        marks[:] = 0
        free = np.uint64(0)
        for row in range(word * 64, min(size, word * 64 + 64)):
            low, high = lows[row], highs[row]
            bit = np.uint64(1) << np.uint64(row & 63)
            if np.isnan(low):
                free |= bit
            elif low <= high:
                begin, last = 0, 0
                for cut in range(count):
                    begin += cuts[cut] <= low
                    last += cuts[cut] <= high
                marks[begin] ^= bit
                marks[last + 1] ^= bit
                if exact:
                    exact = low == -np.inf if begin == 0 else cuts[begin - 1] == low
                    if exact and high < np.inf:
                        exact = last < count and cuts[last] == ends[row]
        null[word] = free
        running = np.uint64(0)
        for cell in range(count + 1):
            running ^= marks[cell]
            cells[cell, word] = running | free
    return exact


@numba.njit(cache=True)
def fill_ids(ids: Ids, own: Ids, cells: Bits, null: Bits) -> None:
    """Set the bits of a column of ids; the first cells are those of the ids in `own`."""
    for word in range(null.size):
        free = np.uint64(0)
        for row in range(word * 64, min(ids.size, word * 64 + 64)):
            bit = np.uint64(1) << np.uint64(row & 63)
            if ids[row] < 0:
                free |= bit
            else:
                cells[cell_of_id(ids[row], own, 0, own.size, cells.shape[0]), word] |= bit
        null[word] = free
        for cell in range(cells.shape[0]):
            cells[cell, word] |= free
