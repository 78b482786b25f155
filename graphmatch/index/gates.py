"""Gates: the triple patterns under which rows are filed.

A gate is a triple pattern's constants: subject, predicate and object, each a term or left out; that
is G-ToPSS's edge of G_M (WWW 2005, section 4.1) without the names of its stars. Gates are found in
an open hash table. The rows of a gate stand together, in a block of a power of two that is
exchanged for a larger or smaller one; the only row of a gate stands in the gate's record. Free
blocks and free gates are chained in the arrays themselves. Beside each row stands the hash of
another of its patterns: a publication that does not have it need not look at the row.

Which of its patterns a row is filed under is decided by how often publications had that gate so
far (a sample of them is counted), with a guess for patterns that are no gates yet. A gate that has
many rows sends others to a table (`graphmatch.index.tables`), and counts them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.arrays import grown
from graphmatch.index.terms import Ids
from semantic.jit import at, kernel, part

KINDS = 8
SUBJECT, PREDICATE, OBJECT = 4, 2, 1
"""A pattern's kind says which constants it has."""
ANY = -1
"""Stands for a variable, or for a term that is not known."""

END, MADE, LIVE, FREE, SAMPLES = range(5)
"""What `Gates.state` holds: where the blocks end; gates that were made, and that are in use; the
first free one; publications counted in the records."""
_ROOMS = 32
_SMALLEST = 16
_MORE = 0.25
"""Records grow by so much: they take much of the memory."""
_TRUST = 50.0
"""So many publications outweigh the guess."""
SUBJ, PRED, OBJ, START, SIZE, ROOM, SEEN, OTHER = range(8)
COLUMNS = 8
LOW = 0xFFFFFFFF
ENTRY = 2
"""An entry of a block: a row, and the hash of another of its patterns, or -1."""


class Gates(NamedTuple):
    """Gates as arrays.

    Parameters
    ----------
    cells
        The hash table: a gate, and above it a part of its hash; -1: free.
    records
        By gate: three constants, where its block begins, how many rows are in it, the block's room
        (it holds 2**room), how often it was seen, and one number more. When the room is 0, there
        is no block, and where the block would begin and that number are the entry. Otherwise it
        says how many rows were sent to a table.
    blocks
        Two numbers a row.
    kinds
        How many gates there are of each kind.
    free
        The first free block of each room.
    """

    cells: NDArray[np.int64]
    records: Ids
    blocks: Ids
    kinds: Ids
    free: Ids
    state: NDArray[np.int64]


def new_gates() -> Gates:
    """Return an empty table."""
    state = np.zeros(5, np.int64)
    state[FREE] = -1
    return Gates(
        np.full(_SMALLEST, -1, np.int64),
        np.zeros((_SMALLEST, COLUMNS), np.int32),
        np.zeros(_SMALLEST, np.int32),
        np.zeros(KINDS, np.int32),
        np.full(_ROOMS, -1, np.int32),
        state,
    )


def with_room(gates: Gates) -> Gates:
    """Return the table with twice the room where there is none left."""
    made, live = int(gates.state[MADE]), int(gates.state[LIVE])
    if full(made, len(gates.records)):
        return gates._replace(records=grown(gates.records, made + 1, _MORE))
    if full(2 * live, len(gates.cells)):
        cells = np.full(2 * len(gates.cells), -1, np.int64)
        fill(cells, gates.cells, gates.records)
        return gates._replace(cells=cells)
    return gates._replace(blocks=grown(gates.blocks, len(gates.blocks) + 1))


@part
def full(used: int, size: int) -> bool:
    """Whether there is no room for one more."""
    return used >= size


@part
def key_of(s: int, p: int, o: int) -> int:
    """Return the hash of three terms; 44 bits. No product is larger than 63 bits."""
    h = (int(s) + 2) * 0x5E3779B1 ^ (int(p) + 2) * 0x42B2AE3D ^ (int(o) + 2) * 0x265667B1
    h ^= h >> 29
    h = (h & 0x7FFFFFFF) * 0x56E8FEB9 ^ (h >> 31) * 0x2F58476D
    return (h ^ (h >> 32)) & 0xFFFFFFFFFFF


@part
def tag_of(key: int) -> int:
    """Return the part of a hash that stands beside a gate, where its number has room below."""
    return (key >> 13) << 32


@part
def kind_of(s: int, p: int, o: int) -> int:
    """Return which of three terms are constants."""
    return SUBJECT * (s >= 0) + PREDICATE * (p >= 0) + OBJECT * (o >= 0)


@part
def find(cells: NDArray[np.int64], records: Ids, s: int, p: int, o: int) -> int:
    """Return the gate of these constants, or -1."""
    mask = cells.size - 1
    key = key_of(s, p, o)
    tag = tag_of(key)
    cell = key & mask
    while cells[at(cell)] >= 0:
        n = int(cells[at(cell)] & LOW)
        if (
            cells[at(cell)] - n == tag
            and records[at(n), SUBJ] == s
            and records[at(n), PRED] == p
            and records[at(n), OBJ] == o
        ):
            return n
        cell = (cell + 1) & mask
    return -1


@part
def _key(records: Ids, n: int) -> int:
    return key_of(records[n, SUBJ], records[n, PRED], records[n, OBJ])


@part
def _put(cells: NDArray[np.int64], key: int, n: int) -> None:
    mask = cells.size - 1
    cell = key & mask
    while cells[cell] >= 0:
        cell = (cell + 1) & mask
    cells[cell] = tag_of(key) | n


@kernel
def fill(cells: NDArray[np.int64], old: NDArray[np.int64], records: Ids) -> None:
    """Put the gates of one hash table into an empty one."""
    for cell in range(old.size):
        if old[cell] >= 0:
            _put(cells, _key(records, old[cell] & LOW), old[cell] & LOW)


@part
def _block(g: Gates, room: int) -> int:
    """Return a free block for 2**room rows; -1 where there is no place for one."""
    start = int(g.free[room])
    if start >= 0:
        g.free[room] = g.blocks[start]
        return start
    start = int(g.state[END])
    if start + (ENTRY << room) > g.blocks.size:
        return -1
    g.state[END] = start + (ENTRY << room)
    return start


@part
def _free_block(g: Gates, n: int) -> None:
    start, room = g.records[n, START], g.records[n, ROOM]
    if room > 0:
        g.blocks[start] = g.free[room]
        g.free[room] = start


@part
def _move(g: Gates, n: int, room: int) -> bool:
    """Give a gate a block of another size, but never none."""
    start = _block(g, room)
    if start < 0:
        return False
    old = g.records[n, START]
    if g.records[n, ROOM] == 0:
        g.blocks[start], g.blocks[start + 1] = old, g.records[n, OTHER]
        g.records[n, OTHER] = 0
    else:
        for place in range(ENTRY * g.records[n, SIZE]):
            g.blocks[start + place] = g.blocks[old + place]
    _free_block(g, n)
    g.records[n, START] = start
    g.records[n, ROOM] = room
    return True


@part
def _new(g: Gates, s: int, p: int, o: int) -> int:
    """Return a new gate; -1 where there is no room."""
    n = int(g.state[FREE])
    if (n < 0 and full(g.state[MADE], len(g.records))) or full(2 * g.state[LIVE], len(g.cells)):
        return -1
    if n >= 0:
        g.state[FREE] = g.records[n, START]
    else:
        n = int(g.state[MADE])
        g.state[MADE] += 1
    g.state[LIVE] += 1
    g.records[n, SUBJ], g.records[n, PRED], g.records[n, OBJ] = s, p, o
    g.records[n, SIZE] = g.records[n, ROOM] = g.records[n, SEEN] = 0
    g.kinds[kind_of(s, p, o)] += 1
    _put(g.cells, key_of(s, p, o), n)
    return n


@part
def append(g: Gates, s: int, p: int, o: int, row: int, other: int) -> int:
    """File a row, as the last one of its gate; return that, or -1 where there is no room."""
    n = find(g.cells, g.records, s, p, o)
    if n < 0:
        n = _new(g, s, p, o)
        if n < 0:
            return -1
    size, room = g.records[n, SIZE], g.records[n, ROOM]
    if size == 1 << room and not _move(g, n, room + 1):
        return -1
    if g.records[n, ROOM] == 0:
        g.records[n, START], g.records[n, OTHER] = row, other
    else:
        place = g.records[n, START] + ENTRY * size
        g.blocks[place], g.blocks[place + 1] = row, other
    g.records[n, SIZE] = size + 1
    return n


@part
def remove(g: Gates, n: int, position: int) -> int:
    """Take a row out of its gate; return the one that has its position now, or -1."""
    last = int(g.records[n, SIZE]) - 1
    start = int(g.records[n, START])
    moved = -1
    if position != last:
        moved = int(g.blocks[start + ENTRY * last])
        g.blocks[start + ENTRY * position] = moved
        g.blocks[start + ENTRY * position + 1] = g.blocks[start + ENTRY * last + 1]
    g.records[n, SIZE] = last
    if last == 0:
        _drop(g, n)
    elif 4 * last <= 1 << g.records[n, ROOM]:
        _move(g, n, g.records[n, ROOM] - 1)  # where there is no place, it keeps what it has
    return moved


@part
def _drop(g: Gates, n: int) -> None:
    """Take a gate out of the hash table, and close the gap."""
    _free_block(g, n)
    mask = g.cells.size - 1
    hole = _key(g.records, n) & mask
    while g.cells[hole] & LOW != n:
        hole = (hole + 1) & mask
    cell = (hole + 1) & mask
    while g.cells[cell] >= 0:
        home = _key(g.records, g.cells[cell] & LOW) & mask
        if ((cell - home) & mask) >= ((cell - hole) & mask):
            g.cells[hole] = g.cells[cell]
            hole = cell
        cell = (cell + 1) & mask
    g.cells[hole] = -1
    g.kinds[kind_of(g.records[n, SUBJ], g.records[n, PRED], g.records[n, OBJ])] -= 1
    g.records[n, START] = g.state[FREE]
    g.state[FREE] = n
    g.state[LIVE] -= 1


@part
def _guess(kind: int) -> float:
    """Return how probable it is, by kind alone, that a publication has a pattern."""
    constants = (kind >> 2) + (kind >> 1 & 1) + (kind & 1)
    if constants == 3:
        return 1e-6
    if constants == 2:
        return 1e-3
    if kind == PREDICATE:
        return 0.3
    return 1e-2 if constants == 1 else 1.0


@part
def probability(g: Gates, s: int, p: int, o: int) -> float:
    """Return how probable it is that a publication has a pattern, and a little for its rows."""
    n = find(g.cells, g.records, s, p, o)
    seen = g.records[n, SEEN] if n >= 0 else 0
    size = g.records[n, SIZE] if n >= 0 else 0
    guess = _guess(kind_of(s, p, o))
    return float((seen + _TRUST * guess) / (g.state[SAMPLES] + _TRUST) * (1.0 + 1e-9 * size))


@kernel
def file_under(g: Gates, s: int, p: int, o: int, row: int) -> int:
    """Do what `append` does, for those who are not compiled; the row has no other pattern."""
    return append(g, s, p, o, row, -1)


@kernel
def take_from(g: Gates, n: int, position: int) -> int:
    """Do what `remove` does, for those who are not compiled."""
    return remove(g, n, position)
