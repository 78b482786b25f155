"""Compiled loops over a table of ids: finding, taking in, taking out.

The table is an open hash table; beside each cell stands a byte of its id's hash, so that another
id is hardly ever compared. The hash begins with a number of the table's own, so that nobody can
choose ids that all fall into one place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.instructions import prefetch
from graphmatch.index.runs import Ids, Longs
from semantic.jit import kernel, part

Bytes = NDArray[np.uint8]

MADE, FREE, LIVE, SEED = range(4)
"""What `Names.state` holds: numbers that were ever given out, the first free one or -1, how many
are in use, what hashes begin with."""
_EMPTY = 0
_AHEAD = 16
"""So many ids ahead memory is asked for."""


class Names(NamedTuple):
    """A table of ids as arrays.

    `arena`, `start`, `length` and `end` are runs of UTF-8 (`graphmatch.index.runs`); a free
    number's start is the next free one. By cell: `tags` (0: the cell is free) and `cells`.
    """

    arena: Bytes
    start: Longs
    length: Ids
    end: Longs
    tags: Bytes
    cells: Ids
    state: Longs


@part
def _hash(seed: int, data: Bytes, begin: int, length: int) -> int:
    """Return the hash of some bytes: 62 bits; no product is larger than 63."""
    h = seed
    for n in range(begin, begin + length):
        h = (h & 0x7FFFFFFF ^ int(data[n])) * 0x56E8FEB9 ^ h >> 31
    h = (h & 0x7FFFFFFF) * 0x2F58476D ^ h >> 29
    return h ^ h >> 32


@part
def _tag(h: int) -> int:
    return (h >> 40) % 255 + 1


@part
def _same(names: Names, number: int, data: Bytes, begin: int, length: int) -> bool:
    """Compare from the end: that is where ids differ."""
    if names.length[number] != length:
        return False
    last = int(names.start[number]) + length - 1
    for n in range(length):  # noqa: SIM110 -- a generator is not compiled
        if names.arena[last - n] != data[begin + length - 1 - n]:
            return False
    return True


@part
def _cell(names: Names, h: int, data: Bytes, begin: int, length: int) -> int:
    """Return the cell of an id, or the free one where it would be."""
    mask = names.tags.size - 1
    tag = _tag(h)
    cell = h & mask
    while names.tags[cell] != _EMPTY:
        if names.tags[cell] == tag and _same(names, names.cells[cell], data, begin, length):
            return cell
        cell = (cell + 1) & mask
    return cell


@kernel
def find(names: Names, data: Bytes) -> int:
    """Return the number of an id, or -1."""
    h = _hash(int(names.state[SEED]), data, 0, data.size)
    cell = _cell(names, h, data, 0, data.size)
    return int(names.cells[cell]) if names.tags[cell] != _EMPTY else -1


@part
def _new(names: Names) -> int:
    """Return a free number."""
    number = int(names.state[FREE])
    if number < 0:
        number = int(names.state[MADE])
        names.state[MADE] += 1
    else:
        names.state[FREE] = names.start[number]
    names.state[LIVE] += 1
    return number


@part
def _enter(names: Names, data: Bytes, begin: int, length: int) -> int:
    """Take an id in and return its number; -1 if it was there already."""
    h = _hash(int(names.state[SEED]), data, begin, length)
    cell = _cell(names, h, data, begin, length)
    if names.tags[cell] != _EMPTY:
        return -1
    number = _new(names)
    end = int(names.end[0])
    for place in range(length):
        names.arena[end + place] = data[begin + place]
    names.start[number], names.length[number] = end, length
    names.end[0] = end + length
    names.tags[cell], names.cells[cell] = _tag(h), number
    return number


@kernel
def enter_one(names: Names, data: Bytes) -> int:
    """Take an id in and return its number; -1 if it was there already."""
    return _enter(names, data, 0, data.size)


@kernel
def enter(names: Names, data: Bytes, lengths: Ids, numbers: Ids) -> int:
    """Take ids in that stand one after the other; return how many were there already.

    Parameters
    ----------
    numbers
        What each id gets: its number; one that is there already gets -1.
    """
    begin = repeated = 0
    for n in range(lengths.size):
        length = int(lengths[n])
        numbers[n] = _enter(names, data, begin, length)
        repeated += numbers[n] < 0
        begin += length
    return repeated


@part
def _are_distinct(names: Names, numbers: Ids) -> bool:
    """Whether all numbers are in use, and none is there twice; a length tells which was there."""
    seen = 0
    while seen < numbers.size:
        number = numbers[seen]
        if not 0 <= number < names.state[MADE] or names.length[number] < 0:
            break
        names.length[number] = -2 - names.length[number]
        seen += 1
    for n in range(seen):
        names.length[numbers[n]] = -2 - names.length[numbers[n]]
    return seen == numbers.size


@kernel
def leave(names: Names, numbers: Ids) -> int:
    """Take ids out, the last first; what they are written in is still there.

    Returns
    -------
    letters
        How many bytes they have; -1 if a number is not in use or there twice: then all stay.
    """
    if not _are_distinct(names, numbers):
        return -1
    mask = names.tags.size - 1
    seed = int(names.state[SEED])
    letters = 0
    for n in range(numbers.size - 1, -1, -1):
        number = numbers[n]
        begin, length = int(names.start[number]), int(names.length[number])
        hole = _hash(seed, names.arena, begin, length) & mask
        while names.cells[hole] != number or names.tags[hole] == _EMPTY:
            hole = (hole + 1) & mask
        _close(names, hole)
        names.length[number] = -1
        names.start[number] = names.state[FREE]
        names.state[FREE] = number
        names.state[LIVE] -= 1
        letters += length
    return letters


@part
def _close(names: Names, hole: int) -> None:
    """Empty a cell, and close the gap."""
    mask = names.tags.size - 1
    seed = int(names.state[SEED])
    cell = (hole + 1) & mask
    while names.tags[cell] != _EMPTY:
        number = names.cells[cell]
        begin, length = int(names.start[number]), int(names.length[number])
        home = _hash(seed, names.arena, begin, length) & mask
        if ((cell - home) & mask) >= ((cell - hole) & mask):
            names.tags[hole], names.cells[hole] = names.tags[cell], number
            hole = cell
        cell = (cell + 1) & mask
    names.tags[hole] = _EMPTY


@kernel
def refill(names: Names) -> None:
    """Put all numbers in use into empty cells."""
    mask = names.tags.size - 1
    seed = int(names.state[SEED])
    for number in range(names.state[MADE]):
        length = int(names.length[number])
        if length >= 0:
            h = _hash(seed, names.arena, int(names.start[number]), length)
            cell = h & mask
            while names.tags[cell] != _EMPTY:
                cell = (cell + 1) & mask
            names.tags[cell], names.cells[cell] = _tag(h), number


@kernel
def copied(names: Names, numbers: Ids, data: Bytes, ends: Longs) -> int:
    """Write ids one after the other, as far as there is room; return how much they need.

    -1 is returned where a number is not in use.
    """
    end, made = 0, int(names.state[MADE])
    for n in range(numbers.size):
        if not 0 <= numbers[n] < made or names.length[numbers[n]] < 0:
            return -1
    for n in range(numbers.size):
        if n + _AHEAD < numbers.size:
            prefetch(names.arena, int(names.start[numbers[n + _AHEAD]]))
        begin, length = int(names.start[numbers[n]]), int(names.length[numbers[n]])
        if end + length <= data.size:
            for place in range(length):
                data[end + place] = names.arena[begin + place]
        end += length
        ends[n] = end
    return end
