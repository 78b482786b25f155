"""Compiled loops that choose bitmaps: which cells of a block a publication's values are in.

Importing this module imports numba; with ``NUMBA_DISABLE_JIT=1`` the functions run as plain Python.
"""

from __future__ import annotations

from typing import TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

from graphmatch.index.codes import FLOAT32, FLOAT64
from graphmatch.index.table_cells import cell_of_id
from semantic.jit import part

Ids: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

COLUMN, NULL, FIRST, CELLS, START, CODING = range(6)
"""What a block's directory says of a column: its number in the table; its bitmap of rows that it
does not constrain (or -1); its first cell's bitmap and how many cells there are; where its own
numbers start (of intervals: the base of the codes, then the cuts; of ids: those with cells of
their own); how bounds are coded (of ids: how many ids have cells of their own)."""

ESTIMATE, BEGIN, END, OPEN = range(4)
"""What a span says: how many rows its bitmaps hold together at most, where they are listed, and
whether they may be left out, for rows are compared with the values anyway."""


@numba.njit(cache=True)
def round_to_codes(value: float, coding: int, base: float) -> tuple[np.int64, np.int64]:
    """Return the codes of the nearest bounds that are not above and not below `value`.

    The second one is a complement, as in `graphmatch.index.codes`.
    """
    if coding == FLOAT64:
        exact = np.empty(1, np.float64)
        exact[0] = value + 0.0
        code = exact.view(np.int64)[0]
        code ^= (code >> 63) & np.int64(0x7FFFFFFFFFFFFFFF)
        return code, ~code
    if coding == FLOAT32:
        largest = np.float64(np.finfo(np.float32).max)
        near = np.empty(2, np.float32)
        near[0] = -np.inf if value < -largest else min(value, largest) + 0.0
        near[1] = np.inf if value > largest else max(value, -largest) + 0.0
        if value == np.inf:
            near[0] = np.inf
        if value == -np.inf:
            near[1] = -np.inf
        if np.float64(near[0]) > value:
            near[0] = np.nextafter(near[0], np.float32(-np.inf))
        if np.float64(near[1]) < value:
            near[1] = np.nextafter(near[1], np.float32(np.inf))
        near[0] += np.float32(0.0)
        near[1] += np.float32(0.0)
        bits = near.view(np.int32)
        low, high = np.int64(bits[0]), np.int64(bits[1])
        low ^= (low >> 31) & np.int64(0x7FFFFFFF)
        high ^= (high >> 31) & np.int64(0x7FFFFFFF)
        return low, ~high
    limit = np.int64(32767 if coding == 0 else 2147483647)
    if value == np.inf:
        return limit, ~limit
    if value == -np.inf:
        return -limit - 1, limit
    below, above = np.floor(value) - base, np.ceil(value) - base
    low = np.int64(min(max(below, -float(limit)), float(limit - 1)))
    high = np.int64(min(max(above, -float(limit)), float(limit - 1)))
    return low, ~high


@part
def _listed(
    null: int, counts: Ids, span: Ids, chosen: Ids, begin: int, end: int, estimate: np.int64
) -> int:
    """Write down a column's span, and return its end, or -1 when no row can be met.

    The bitmaps chosen are those from `begin` to `end`, with `estimate` rows; where there are none,
    it is the one of the rows that the column does not constrain.
    """
    if end == begin:
        if null < 0:
            return -1
        chosen[end] = null
        estimate = np.int64(counts[null])
        end += 1
    if estimate == 0:
        return -1
    span[ESTIMATE] = min(estimate, np.int64(2147483647))
    span[BEGIN], span[END], span[OPEN] = begin, end, 0
    return end


@numba.njit(cache=True)
def choose_intervals(
    directory: Ids,
    numbers: Floats,
    counts: Ids,
    starts: Ids,
    ranges: tuple[Floats, Floats],
    codes: Longs,
    spans: Ids,
    chosen: Ids,
) -> int:
    """Write down which bitmaps are to be ORed for each column, and the codes of the values.

    Values are `ranges`, low and high ends. `spans` gets a line for each column, `chosen` the
    bitmaps. NaN is no value; its codes are such that only rows that are not constrained pass.
    Returns how many columns there are, or -1 when no row can be met.
    """
    used, end = 0, 0
    values, ends = ranges
    marked = np.zeros(64, np.bool_)
    for index in range(directory.shape[0]):
        entry = directory[index]
        column, base = entry[COLUMN], entry[START]
        marked[:] = False
        begin, estimate = end, np.int64(0)
        for place in range(starts[column], starts[column + 1]):
            value, end_value = values[place], ends[place]
            if np.isnan(value):
                codes[0, place] = np.iinfo(np.int64).min
                codes[1, place] = np.iinfo(np.int64).min
                continue
            low, high = round_to_codes(value, entry[CODING], numbers[base])
            if end_value != value:
                low = round_to_codes(end_value, entry[CODING], numbers[base])[0]
            codes[0, place], codes[1, place] = low, high
            first, last = 0, 0
            for cut in range(base + 1, base + entry[CELLS]):
                first += numbers[cut] <= value
                last += numbers[cut] <= end_value
            for cell in range(first, last + 1):
                if not marked[cell]:
                    marked[cell] = True
                    chosen[end] = entry[FIRST] + cell
                    estimate += counts[chosen[end]]
                    end += 1
        end = _listed(entry[NULL], counts, spans[used], chosen, begin, end, estimate)
        if end < 0:
            return -1
        used += 1
    return used


@numba.njit(cache=True)
def choose_ids(
    directory: Ids,
    own: Ids,
    counts: Ids,
    starts: Ids,
    values: Ids,
    spans: Ids,
    chosen: Ids,
    used: int,
) -> int:
    """Go on as `choose_intervals` does, with columns of ids after `used` other columns."""
    end = spans[used - 1, END] if used else 0
    marked = np.zeros(128, np.bool_)
    for index in range(directory.shape[0]):
        entry = directory[index]
        column = entry[COLUMN]
        marked[:] = False
        begin, estimate = end, np.int64(0)
        for place in range(starts[column], starts[column + 1]):
            cell = cell_of_id(values[place], own, entry[START], entry[CODING], entry[CELLS])
            if cell >= 0 and not marked[cell]:
                marked[cell] = True
                chosen[end] = entry[FIRST] + cell
                estimate += counts[chosen[end]]
                end += 1
        end = _listed(entry[NULL], counts, spans[used], chosen, begin, end, estimate)
        if end < 0:
            return -1
        spans[used, OPEN] = entry[CODING] < entry[CELLS]
        used += 1
    return used
