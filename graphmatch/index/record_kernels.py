"""Compiled loops over the records of subscriptions: writing, filing under rows, reading."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.owners import Owned, link, unlink
from graphmatch.index.runs import Ids, Longs
from semantic.jit import kernel, part

FILED = 1 << 15
"""The flag of a subscription that is filed with other constants than it says."""
ANY = -1
FIXED = -2
"""How a pattern is written: a slot's number; -1 for a variable; -2 less the id of a term."""
NEGATIVE_TERM, NEGATIVE_ROW, SAME_ROW = -2, -3, -4
NUMBER = 32
"""So many bits of a posting are a number; what is above them is what it is looked up by."""


class Records(NamedTuple):
    """Records as arrays.

    `arena`, `start`, `length`, `end` are runs (`graphmatch.index.runs`): the constants said;
    those that it is filed with, if they are others; two numbers for each of its rows, the row
    and its position among the row's owners (-1: not yet). By number: `skeleton`, `flags`. By
    skeleton: `slots`.
    """

    arena: Ids
    start: Longs
    length: Ids
    end: Longs
    skeleton: Ids
    flags: NDArray[np.uint16]
    slots: Ids


class Templates(NamedTuple):
    """The triple patterns of skeletons: runs of three numbers each."""

    arena: Ids
    start: Longs
    length: Ids


@part
def _slots(r: Records, number: int) -> int:
    return int(r.slots[r.skeleton[number]])


@part
def _filed(r: Records, number: int) -> int:
    """Return where the constants begin that a subscription is filed with."""
    start = int(r.start[number])
    return start + _slots(r, number) if r.flags[number] & FILED else start


@part
def _links(r: Records, number: int) -> int:
    """Return where a subscription's rows begin."""
    return _filed(r, number) + _slots(r, number)


@kernel
def highest_row(constants: Ids, filed: Ids, rows: Ids) -> int:
    """Return the highest row, -1 if there is none; below that, what cannot be written.

    These are `NEGATIVE_TERM`, `NEGATIVE_ROW` and `SAME_ROW`.
    """
    for n in range(constants.shape[0]):
        for slot in range(constants.shape[1]):
            if constants[n, slot] < 0 or filed[n, slot] < 0:
                return NEGATIVE_TERM
    highest = -1
    for n in range(rows.shape[0]):
        for place in range(rows.shape[1]):
            row = rows[n, place]
            if row < -1:
                return NEGATIVE_ROW
            highest = max(highest, row)
            for other in range(place):
                if row >= 0 and rows[n, other] == row:
                    return SAME_ROW
    return int(highest)


@kernel
def write(r: Records, numbers: Ids, constants: Ids, filed: Ids, rows: Ids) -> None:
    """Write records; skeleton and flags are there already. A row of -1 is none."""
    end = int(r.end[0])
    for n in range(numbers.size):
        number = numbers[n]
        r.start[number] = end
        otherwise = False
        for slot in range(constants.shape[1]):
            r.arena[end + slot] = constants[n, slot]
            otherwise |= constants[n, slot] != filed[n, slot]
        end += constants.shape[1]
        if otherwise:
            r.flags[number] |= FILED
            for slot in range(constants.shape[1]):
                r.arena[end + slot] = filed[n, slot]
            end += constants.shape[1]
        for place in range(rows.shape[1]):
            if rows[n, place] >= 0:
                r.arena[end], r.arena[end + 1] = rows[n, place], -1
                end += 2
        r.length[number] = end - int(r.start[number])
    r.end[0] = end


@kernel
def link_all(r: Records, owned: Owned, numbers: Ids, done: int) -> int:
    """Make subscriptions the owners of their rows, from place `done` on.

    Returns
    -------
    done
        Less than all where blocks need more place first: then it is to be called again.
    """
    for n in range(done, numbers.size):
        number = numbers[n]
        for place in range(_links(r, number), int(r.start[number]) + int(r.length[number]), 2):
            if r.arena[place + 1] < 0:
                position = link(owned, r.arena[place], number)
                if position < 0:
                    return n
                r.arena[place + 1] = position
    return numbers.size


@kernel
def unlink_all(r: Records, owned: Owned, numbers: Ids) -> int:
    """Take subscriptions from their rows, and their runs away; return how long these were."""
    lost = 0
    for n in range(numbers.size):
        number = numbers[n]
        for place in range(_links(r, number), int(r.start[number]) + int(r.length[number]), 2):
            row, position = r.arena[place], int(r.arena[place + 1])
            moved = unlink(owned, row, position)
            if moved >= 0:
                at = _links(r, moved)
                while r.arena[at] != row:
                    at += 2
                r.arena[at + 1] = position
        lost += int(r.length[number])
        r.length[number] = -1
    return lost


@kernel
def contents(r: Records, numbers: Ids, terms: Ids, rows: Ids, counts: Longs) -> None:
    """Write what subscriptions hold, and how much: ids of terms, rows."""
    some = others = 0
    for n in range(numbers.size):
        number = numbers[n]
        links = _links(r, number)
        for place in range(int(r.start[number]), links):
            terms[some] = r.arena[place]
            some += 1
        for place in range(links, int(r.start[number]) + int(r.length[number]), 2):
            rows[others] = r.arena[place]
            others += 1
    counts[0], counts[1] = some, others


# -- postings -----------------------------------------------------------------------------------


@kernel
def term_postings(r: Records, numbers: Ids, found: Longs) -> int:
    """Write a posting for each constant that a subscription says; return how many."""
    count = 0
    for n in range(numbers.size):
        number = int(numbers[n])
        start = int(r.start[number])
        for place in range(start, start + _slots(r, number)):
            found[count] = int(r.arena[place]) << NUMBER | number
            count += 1
    return count


@kernel
def says(r: Records, numbers: Ids, terms: Ids, found: NDArray[np.bool_]) -> None:
    """Find out which subscriptions say one of some terms, which ascend."""
    for n in range(numbers.size):
        number = numbers[n]
        found[n] = False
        if r.length[number] < 0:
            continue
        start = int(r.start[number])
        for place in range(start, start + _slots(r, number)):
            at = np.searchsorted(terms, r.arena[place])
            if at < terms.size and terms[at] == r.arena[place]:
                found[n] = True
                break


@part
def _place(r: Records, filed: int, code: int) -> int:
    """Return a pattern's constant, -1 for a variable."""
    if code >= 0:
        return int(r.arena[filed + code])
    return ANY if code == ANY else FIXED - code


@part
def _hash(s: int, p: int, o: int) -> int:
    """Return the hash of three terms: 31 bits; no product is larger than 63."""
    h = (s + 2) * 0x5E3779B1 ^ (p + 2) * 0x42B2AE3D ^ (o + 2) * 0x265667B1
    h ^= h >> 29
    h = (h & 0x7FFFFFFF) * 0x56E8FEB9 ^ (h >> 31) * 0x2F58476D
    return (h ^ h >> 32) & 0x7FFFFFFF


@kernel
def hashes(patterns: Ids, found: Longs) -> None:
    """Write the hash of each pattern."""
    for n in range(patterns.shape[0]):
        found[n] = _hash(int(patterns[n, 0]), int(patterns[n, 1]), int(patterns[n, 2]))


@kernel
def pattern_postings(r: Records, t: Templates, numbers: Ids, found: Longs) -> int:
    """Write a posting for each pattern that a subscription is filed with; return how many."""
    count = 0
    for n in range(numbers.size):
        number = int(numbers[n])
        filed, skeleton = _filed(r, number), r.skeleton[number]
        start = int(t.start[skeleton])
        for at in range(start, start + int(t.length[skeleton]), 3):
            h = _hash(
                _place(r, filed, int(t.arena[at])),
                _place(r, filed, int(t.arena[at + 1])),
                _place(r, filed, int(t.arena[at + 2])),
            )
            found[count] = h << NUMBER | number
            count += 1
    return count


@kernel
def asks(
    r: Records,
    t: Templates,
    numbers: Ids,
    patterns: Ids,
    hashed: Longs,
    found: NDArray[np.bool_],
) -> None:
    """Find out which subscriptions are filed with one of some patterns, whose hashes ascend."""
    for n in range(numbers.size):
        number = numbers[n]
        found[n] = False
        if r.length[number] < 0:
            continue
        filed, skeleton = _filed(r, number), r.skeleton[number]
        start = int(t.start[skeleton])
        for at in range(start, start + int(t.length[skeleton]), 3):
            s = _place(r, filed, int(t.arena[at]))
            p = _place(r, filed, int(t.arena[at + 1]))
            o = _place(r, filed, int(t.arena[at + 2]))
            h = _hash(s, p, o)
            k = int(np.searchsorted(hashed, h))
            while k < hashed.size and hashed[k] == h and not found[n]:
                found[n] = patterns[k, 0] == s and patterns[k, 1] == p and patterns[k, 2] == o
                k += 1
            if found[n]:
                break
