"""Compiled loops that match a constraint table: AND bitmaps, check what is left, scan the tail.

Importing this module imports numba; with ``NUMBA_DISABLE_JIT=1`` the functions run as plain Python.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

from graphmatch.index.instructions import lowest_bit, prefetch
from graphmatch.index.table_choice import BEGIN, END, ESTIMATE, OPEN

Ids: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bits: TypeAlias = NDArray[np.uint64]
Codes: TypeAlias = NDArray[np.signedinteger[Any]]

TILE = 256
"""So many words are ANDed at a time: they stay in the first cache."""

SPARSE = 0.1
"""With fewer rows expected in a word than so many, words are ANDed one by one."""

WORTH = 4.0
"""To compare a row with its ids takes as long as to read so many words, here and there."""

AHEAD = 64
"""So many rows before it is checked, a row is asked for."""


@numba.njit(cache=True, nogil=True)
def survivors(
    bits: Bits, size: int, spans: Ids, used: int, chosen: Ids, rows: Ids
) -> tuple[int, int]:
    """AND the columns' bitmaps, most selective first; return how many rows are left, and ANDs.

    The first `used` spans count; the bitmaps of one span are ORed. `rows` gets the rows that are
    left, in ascending order; it has one place more than rows. A tile of words in which no bit is
    left is not looked at again; once few rows can be left, words are looked at one by one. Then
    many bitmaps that leave much are not worth it, if what they leave is compared anyway.
    """
    words = bits.shape[1]
    flat = bits.ravel()
    order = np.argsort(spans[:used, ESTIMATE])
    some, either = np.empty(TILE, np.uint64), np.empty(TILE, np.uint64)
    places = np.empty(TILE, np.int32)
    count, anded = 0, 0
    full, density = 0, 64.0
    while full < used and density > SPARSE:
        density *= min(1.0, spans[order[full], ESTIMATE] / size)
        full += 1
    last = full
    for index in order[full:]:
        share = min(1.0, spans[index, ESTIMATE] / size)
        several = spans[index, END] - spans[index, BEGIN]
        if not spans[index, OPEN] or several <= WORTH * (1.0 - share):
            order[last] = index
            last += 1
    for start in range(0, words, TILE):
        end = min(words, start + TILE)
        length = end - start
        some[:] = ~np.uint64(0)
        if end == words and size & 63:
            some[length - 1] = (np.uint64(1) << np.uint64(size & 63)) - np.uint64(1)
        any_bit = some[0]
        for index in order[:full]:
            begin, stop = spans[index, BEGIN], spans[index, END]
            if stop == begin + 1 and spans[index, ESTIMATE] >= size:
                continue  # its bitmap holds all rows
            anded += (stop - begin) * length
            for place in range(begin, stop):
                next_tile = chosen[place] * words + end
                for word in range(0, length, 8):
                    prefetch(flat, next_tile + word)
            first = bits[chosen[begin], start:end]
            any_bit = np.uint64(0)
            if stop == begin + 1:
                for word in range(length):
                    some[word] &= first[word]
                    any_bit |= some[word]
            else:
                either[:length] = first
                for place in range(begin + 1, stop):
                    other = bits[chosen[place], start:end]
                    for word in range(length):
                        either[word] |= other[word]
                for word in range(length):
                    some[word] &= either[word]
                    any_bit |= some[word]
            if any_bit == np.uint64(0):
                break
        if any_bit != np.uint64(0):
            left = 0  # first which words are left, then their bits: branches that are foreseen
            for word in range(length):
                places[left] = word
                left += some[word] != np.uint64(0)
            for place in range(left):
                rest = some[places[place]]
                base = (start + places[place]) * 64
                for index in order[full:last]:
                    any_bit = np.uint64(0)
                    anded += spans[index, END] - spans[index, BEGIN]
                    for bitmap in range(spans[index, BEGIN], spans[index, END]):
                        any_bit |= bits[chosen[bitmap], start + places[place]]
                    rest &= any_bit
                    if rest == np.uint64(0):
                        break
                if rest == np.uint64(0):
                    continue
                rows[count] = base + lowest_bit(rest)
                count += 1
                rest &= rest - np.uint64(1)
                rows[count] = base + lowest_bit(rest)  # counted when there is a second one
                count += rest != np.uint64(0)
                rest &= rest - np.uint64(rest != np.uint64(0))
                while rest != np.uint64(0):
                    rows[count] = base + lowest_bit(rest)
                    count += 1
                    rest &= rest - np.uint64(1)
    return count, anded


@numba.njit(cache=True, nogil=True)
def keep_intervals(
    records: Codes,
    columns: Ids,
    starts: Ids,
    codes: Longs,
    rows: Ids,
    count: int,
    owners: Ids,
) -> int:
    """Keep those of the first `count` rows that meet the columns with one value; return how many.

    `records` is of one width; `columns` says which column of the table each of its columns is, or
    -1 when the bitmaps have decided it. `owners` are asked for, since they are read next. There is
    no branch, so that rows overlap.
    """
    width = columns.size
    flat, span = records.ravel(), 2 * width
    least, most = np.iinfo(records.dtype).min, np.iinfo(records.dtype).max
    probe = np.full(span, most, records.dtype)
    for place in range(width):
        column = columns[place]
        if column >= 0 and starts[column + 1] - starts[column] == 1:
            probe[place] = max(codes[0, starts[column]], least)
            probe[width + place] = max(codes[1, starts[column]], least)
    kept = 0
    for index in range(-AHEAD, count):
        if index + AHEAD < count:
            row = rows[index + AHEAD]
            prefetch(flat, row * span)
            prefetch(flat, row * span + span - 1)
            prefetch(owners, row)
        if index >= 0:
            row = rows[index]
            record = records[row]
            fails = 0
            for place in range(span):
                fails |= record[place] > probe[place]
            rows[kept] = row
            kept += fails == 0
    return kept


@numba.njit(cache=True, nogil=True)
def keep_several(
    records: Codes, columns: Ids, starts: Ids, codes: Longs, rows: Ids, count: int
) -> int:
    """Do what `keep_intervals` does, for the columns with several values."""
    width = columns.size
    least = np.iinfo(records.dtype).min
    kept = 0
    for index in range(count):
        row = rows[index]
        met = True
        for place in range(width):
            column = columns[place]
            if column < 0 or starts[column + 1] - starts[column] < 2:
                continue
            met = False
            low, high = records[row, place], records[row, width + place]
            for value in range(starts[column], starts[column + 1]):
                if low <= max(codes[0, value], least) and high <= max(codes[1, value], least):
                    met = True
                    break
            if not met:
                break
        rows[kept] = row
        kept += met
    return kept


@numba.njit(cache=True, nogil=True)
def keep_ids(records: Ids, columns: Ids, starts: Ids, values: Ids, rows: Ids, count: int) -> int:
    """Keep those of the first `count` rows whose ids are among the values; return how many."""
    flat = records.ravel()
    width, kept = columns.size, 0
    for index in range(count):
        row = rows[index]
        if index + AHEAD < count:
            prefetch(flat, rows[index + AHEAD] * width)
        met = True
        for place in range(width):
            column, number = columns[place], records[row, place]
            if column < 0 or number < 0:
                continue
            met = False
            for value in range(starts[column], starts[column + 1]):
                if values[value] == number:
                    met = True
                    break
            if not met:
                break
        rows[kept] = row
        kept += met
    return kept


@numba.njit(cache=True, nogil=True)
def owners_of(rows: Ids, count: int, owners: Ids) -> int:
    """Put in the place of each row its owner, and leave out those without; return how many."""
    kept = 0
    for index in range(count):
        owner = owners[rows[index]]
        rows[kept] = owner
        kept += owner >= 0
    return kept


@numba.njit(cache=True, nogil=True)
def scan(
    lows: Floats,
    highs: Floats,
    ids: Ids,
    interval_starts: Ids,
    ranges: tuple[Floats, Floats],
    id_starts: Ids,
    id_values: Ids,
    rows: Ids,
) -> int:
    """Write into `rows` which rows are met, one by one and column by column; return how many."""
    count = 0
    values, ends = ranges
    for row in range(lows.shape[0]):
        met = True
        for column in range(ids.shape[1]):
            number = ids[row, column]
            if number < 0:
                continue
            met = False
            for place in range(id_starts[column], id_starts[column + 1]):
                if id_values[place] == number:
                    met = True
                    break
            if not met:
                break
        if not met:
            continue
        for column in range(lows.shape[1]):
            low, high = lows[row, column], highs[row, column]
            if np.isnan(low):
                continue
            met = False
            for place in range(interval_starts[column], interval_starts[column + 1]):
                if low <= ends[place] and values[place] <= high:
                    met = True
                    break
            if not met:
                break
        rows[count] = row
        count += met
    return count
