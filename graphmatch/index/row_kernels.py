"""Compiled loops over rows: finding one by its content, taking many in, taking one out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.gates import (
    ANY,
    OTHER,
    ROOM,
    SIZE,
    Gates,
    append,
    find,
    key_of,
    probability,
    remove,
)
from graphmatch.index.instructions import prefetch
from graphmatch.index.joins import (
    BEFORE,
    FIRST,
    GATE,
    HEADER,
    PLAN,
    POSITION,
    READ,
    SLOT,
    STEP,
    STEPS,
    VARIABLES,
    WIDTH,
    slots_of,
)
from graphmatch.index.terms import Ids
from semantic.jit import at, kernel, part

_AHEAD = 4
"""So many rows ahead memory is asked for."""
_ALIKE = 2.0
"""A gate that is at most so many times as probable as the least probable one will do as well."""
_RARER = 1e-7
"""A pattern seems so much more probable for each row that mentions its constant."""
_WEAK = 0.03
"""When no gate is less probable, rows that may be tabled come together at few."""

NUMBER, FATE = range(2)
"""What is said of a row that is taken in: its number, and what became of it."""
KNOWN, FRESH, TABLED = range(3)
"""What became of a row: it was there, it is new; or, this plus one of its steps: it is to go to the
table of that step's gate, whose number is said instead of the row's."""


class Stored(NamedTuple):
    """Rows as arrays.

    `arena` holds all rows; a row's number says where it is. By number: `uses`. `same` is a
    hash table of rows by content (-1: free). `code` has the plans. `mentions` says how often rows
    mention an id; later ids are mentioned never.
    """

    arena: Ids
    uses: Ids
    same: Ids
    code: Ids
    mentions: NDArray[np.int64]


@kernel
def repeated(constants: Ids, columns: Ids, codes: NDArray[np.int64]) -> bool:
    """Write for each row which of some columns are equal; return whether all rows agree in that.

    Four bits of its code, from ``4 * (n - 1)`` on, say which one is the first with the constant
    that column `n` has.
    """
    agree = constants.shape[0] > 0
    for row in range(constants.shape[0]):
        code = 0
        for n in range(1, columns.size):
            first = 0
            while constants[row, columns[first]] != constants[row, columns[n]]:
                first += 1
            code |= first << 4 * (n - 1)
        codes[row] = code
        agree = agree and code == codes[0]
    return bool(agree)


@part
def _mixed(h: int, constant: int) -> int:
    return (h & 0x7FFFFFFF ^ constant) * 0x56E8FEB9 ^ h >> 31


@part
def _ended(h: int) -> int:
    return (h ^ h >> 29) & 0xFFFFFFFFFFF


@part
def _content(arena: Ids, row: int, length: int) -> int:
    """Return the hash of a row's content: its plan, its constants."""
    h = int(arena[at(row * SLOT + PLAN)])
    for place in range(row * SLOT + HEADER, row * SLOT + length):
        h = _mixed(h, int(arena[at(place)]))
    return _ended(h)


@part
def _equal(arena: Ids, one: int, other: int, length: int) -> bool:
    if arena[at(one * SLOT + PLAN)] != arena[at(other * SLOT + PLAN)]:
        return False
    for place in range(HEADER, length):
        if arena[at(one * SLOT + place)] != arena[at(other * SLOT + place)]:
            return False
    return True


@part
def _length(rows: Stored, row: int) -> int:
    return HEADER + int(rows.code[at((rows.arena[at(row * SLOT + PLAN)] >> 1) + WIDTH)])


@part
def _cell_of(rows: Stored, row: int) -> int:
    """Return the cell of a row of the same content, or the free one where it would be."""
    mask = rows.same.size - 1
    length = _length(rows, row)
    cell = _content(rows.arena, row, length) & mask
    while True:
        other = int(rows.same[cell])
        if other < 0 or _equal(rows.arena, other, row, length):
            return cell
        cell = (cell + 1) & mask


@kernel
def refill(rows: Stored, numbers: Ids) -> None:
    """Put rows into an empty table of contents."""
    mask = rows.same.size - 1
    for row in numbers:
        cell = _content(rows.arena, int(row), _length(rows, int(row))) & mask
        while rows.same[cell] >= 0:
            cell = (cell + 1) & mask
        rows.same[cell] = row


@part
def _forget(rows: Stored, row: int) -> None:
    """Take a row out of the table of contents, and close the gap that it leaves."""
    mask = rows.same.size - 1
    hole = _cell_of(rows, row)
    cell = (hole + 1) & mask
    while rows.same[cell] >= 0:
        other = int(rows.same[cell])
        home = _content(rows.arena, other, _length(rows, other)) & mask
        if ((cell - home) & mask) >= ((cell - hole) & mask):
            rows.same[hole] = other
            hole = cell
        cell = (cell + 1) & mask
    rows.same[hole] = -1


@part
def _constant(place: int, first: int, row: int, arena: Ids) -> int:
    """Return the constant that a place stands for, or `ANY`; the frame's row begins at `first`."""
    return int(arena[at(row * SLOT + place - first)]) if place >= first else ANY


@part
def _rank(rows: Stored, g: Gates, s: int, p: int, o: int) -> float:
    """Return how probable a pattern is, and of those alike the one that fewer rows mention less."""
    rarest = p if s < 0 and o < 0 else max(s, o) if s < 0 or o < 0 else o
    mentions = 0
    if 0 <= rarest < rows.mentions.size:
        mentions = rows.mentions[rarest]
    return probability(g, s, p, o) * (1.0 + _RARER * float(mentions))


@part
def _gate_of(rows: Stored, g: Gates, row: int, n: int) -> tuple[int, float]:
    """Return the gate of a row's step, or -1, and how probable it is."""
    arena, code = rows.arena, rows.code
    plan = arena[at(row * SLOT + PLAN)] >> 1
    begin = BEFORE + int(code[at(plan + VARIABLES)])
    step = plan + FIRST + STEP * n
    s = _constant(code[at(step + READ)], begin, row, arena)
    p = _constant(code[at(step + READ + 1)], begin, row, arena)
    o = _constant(code[at(step + READ + 2)], begin, row, arena)
    return find(g.cells, g.records, s, p, o), probability(g, s, p, o)


@part
def _crowd(g: Gates, gate: int) -> int:
    """Return how many rows came to a gate, those that it sent to its table too."""
    size = int(g.records[gate, SIZE])
    return size + int(g.records[gate, OTHER]) if g.records[gate, ROOM] else size


@part
def _crowded(rows: Stored, g: Gates, row: int, lowest: float) -> int:
    """Return the step with the largest crowd at its gate, of those whose gates will do, or -1."""
    steps = int(rows.code[at((rows.arena[at(row * SLOT + PLAN)] >> 1) + STEPS)])
    best, most = -1, 0
    for n in range(steps):
        gate, probable = _gate_of(rows, g, row, n)
        if gate >= 0 and probable <= _ALIKE * lowest and _crowd(g, gate) > most:
            best, most = n, _crowd(g, gate)
    return best


@part
def _file(rows: Stored, g: Gates, row: int, full: tuple[int, int]) -> int:
    """File a row under the least probable of its patterns; return what became of it.

    A gate with `full` rows sends it to its table instead, the second number being for rows that
    have a second rare pattern; with 0, it cannot be tabled. KNOWN says that gates need room first.
    """
    arena, code = rows.arena, rows.code
    plan = arena[at(row * SLOT + PLAN)] >> 1
    begin = BEFORE + int(code[at(plan + VARIABLES)])
    best, second = -1, -1
    lowest, lower = 2.0, 2.0
    for n in range(code[at(plan + STEPS)]):
        step = plan + FIRST + STEP * n
        probable = _rank(
            rows,
            g,
            _constant(code[at(step + READ)], begin, row, arena),
            _constant(code[at(step + READ + 1)], begin, row, arena),
            _constant(code[at(step + READ + 2)], begin, row, arena),
        )
        if probable < lowest:
            best, second, lowest, lower = step, best, probable, lowest
        elif probable < lower:
            second, lower = step, probable
    enough = full[1] if lower < _WEAK else full[0]
    crowded = _crowded(rows, g, row, lowest) if enough else -1
    if crowded >= 0:
        gate = _gate_of(rows, g, row, crowded)[0]
        if g.records[gate, SIZE] >= enough:
            g.records[gate, OTHER] += g.records[gate, ROOM] > 0
            return TABLED + crowded
        step = plan + FIRST + STEP * crowded
        if lowest >= _WEAK and step != best:
            best, second = step, best
    other = -1
    if second >= 0:
        other = (
            key_of(
                _constant(code[at(second + READ)], begin, row, arena),
                _constant(code[at(second + READ + 1)], begin, row, arena),
                _constant(code[at(second + READ + 2)], begin, row, arena),
            )
            & 0x7FFFFFFF
        )
    gate = append(
        g,
        _constant(code[at(best + READ)], begin, row, arena),
        _constant(code[at(best + READ + 1)], begin, row, arena),
        _constant(code[at(best + READ + 2)], begin, row, arena),
        row,
        other,
    )
    if gate < 0:
        return KNOWN
    arena[at(row * SLOT + GATE)] = gate
    arena[at(row * SLOT + POSITION)] = g.records[at(gate), SIZE] - 1
    return FRESH


@part
def _ask(rows: Stored, g: Gates, plan: int, constants: Ids, number: int) -> None:
    """Ask for the memory that a row will need: where its like and its gates would be."""
    h = plan
    for n in range(constants.shape[1]):
        h = _mixed(h, int(constants[number, n]))
    prefetch(rows.same, _ended(h) & (rows.same.size - 1))
    code, mask = rows.code, g.cells.size - 1
    first = BEFORE + int(code[at((plan >> 1) + VARIABLES)]) + HEADER
    for n in range(code[at((plan >> 1) + STEPS)]):
        step = (plan >> 1) + FIRST + STEP * n
        s = code[at(step + READ)] - first
        p = code[at(step + READ + 1)] - first
        o = code[at(step + READ + 2)] - first
        key = key_of(
            constants[number, s] if s >= 0 else ANY,
            constants[number, p] if p >= 0 else ANY,
            constants[number, o] if o >= 0 else ANY,
        )
        prefetch(g.cells, key & mask)


@kernel
def insert(
    rows: Stored,
    g: Gates,
    plan: int,
    constants: Ids,
    free: Ids,
    full: tuple[int, int],
    said: Ids,
    progress: Ids,
) -> bool:
    """Take rows of one plan in; `progress` counts those done, and the new ones.

    Parameters
    ----------
    constants
        By row: what it keeps.
    free
        What new rows get, in order: their numbers.
    full
        With so many rows a gate sends others to its table; 0 if these cannot be tabled. The second
        number is for rows that have a second rare pattern.
    said
        What each row gets in the end: see `NUMBER` and `FATE`.

    Returns
    -------
    done
        False where gates need more room first: then it is to be called again.
    """
    done, new = int(progress[0]), int(progress[1])
    while done < constants.shape[0]:
        if done + _AHEAD < constants.shape[0]:
            _ask(rows, g, plan, constants, done + _AHEAD)
        row = int(free[new])
        rows.arena[at(row * SLOT + PLAN)] = plan
        for n in range(constants.shape[1]):
            rows.arena[at(row * SLOT + HEADER + n)] = constants[done, n]
        cell = _cell_of(rows, row)
        if rows.same[cell] < 0:
            rows.uses[row] = 0
            fate = _file(rows, g, row, full)
            if fate == KNOWN:
                progress[0], progress[1] = done, new
                return False
            said[done, FATE] = fate
            if fate >= TABLED:
                said[done, NUMBER] = _gate_of(rows, g, row, fate - TABLED)[0]
                done += 1
                continue
            rows.same[cell] = row
            new += 1
        else:
            row = int(rows.same[cell])
            said[done, FATE] = KNOWN
        rows.uses[row] += 1
        said[done, NUMBER] = row
        done += 1
    progress[0], progress[1] = done, new
    return True


@kernel
def take_out(rows: Stored, g: Gates, row: int) -> int:
    """Take a row out of the table of contents, and out of its gate; return its slots."""
    _forget(rows, row)
    begin = row * SLOT
    moved = remove(g, rows.arena[at(begin + GATE)], rows.arena[at(begin + POSITION)])
    if moved >= 0:
        rows.arena[at(moved * SLOT + POSITION)] = rows.arena[at(begin + POSITION)]
    return slots_of(rows.arena[at(begin + PLAN)] >> 1, rows.code)
