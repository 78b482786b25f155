"""Doors: the gates that lead to tables, and the way from there to a row's root.

A row of a table is there by one of its patterns, its gate (`graphmatch.index.gates`). From a
triple that meets the gate one comes to the row's root: it is one of the triple's ends, or some
steps away from it. A gate together with such a way is a *door*; each leads to one table, and a
table may have several. A publication asks a table once for each root that it comes to, through
however many doors.

Cost: a look-up for each triple and kind of gate in use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from graphmatch.index.arrays import grown
from graphmatch.index.chains import COUNT, TRIPLES, nexts_of, term_of
from graphmatch.index.gates import (
    ENTRY,
    KINDS,
    OBJECT,
    PREDICATE,
    ROOM,
    SIZE,
    START,
    SUBJECT,
    Gates,
    file_under,
    find,
    new_gates,
    take_from,
    with_room,
)
from graphmatch.index.runs import Array
from graphmatch.index.stars import FORWARD
from graphmatch.index.terms import Ids
from graphmatch.index.walking import Ways, reached
from semantic.jit import at, kernel

_TABLE, _DIRECTION, _BACK, _ROWS = range(4)
"""What is known of a door: its table, which end of a triple is nearer to the root, the path from
there or -1, how many rows it has."""
_FIRST_ROOM = 64


class Door(NamedTuple):
    """How one comes to a root.

    Parameters
    ----------
    subject, predicate, object
        The constants of the gate; -1 for a variable.
    direction
        Whether the subject or the object is nearer to the root (`graphmatch.index.stars`).
    back
        The number of the path from there to the root; -1 if that is the root.
    """

    subject: int
    predicate: int
    object: int
    direction: int
    back: int


class Met(NamedTuple):
    """What a publication comes to.

    Parameters
    ----------
    roots
        By table, the roots that it is to be asked for.
    doors, rows
        How many doors there were, and how many rows these have.
    """

    roots: dict[int, dict[int, None]]
    doors: int
    rows: int


class Doors:
    """Doors by number.

    Examples
    --------
    >>> doors = Doors()
    >>> door = Door(-1, 4, 5, 0, -1)
    >>> number = doors.open(door, 0)
    >>> doors.number(door) == number, doors.table(number), doors.of((-1, 4, 5))
    (True, 0, 0)
    >>> doors.take(np.array([number, number]))
    >>> doors.of((-1, 4, 5)), doors.release(number), doors.release(number), len(doors)
    (2, False, True, 0)
    """

    def __init__(self) -> None:
        self._gates = new_gates()
        self._known = np.zeros((16, 4), np.int32)
        self._doors: list[Door | None] = []
        self._numbers: dict[Door, int] = {}
        self._filed: list[tuple[int, int]] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, number: int) -> Door:
        """Return the door that has a number."""
        door = self._doors[number]
        assert door is not None
        return door

    def number(self, door: Door) -> int:
        """Return a door's number, or -1."""
        return self._numbers.get(door, -1)

    def table(self, number: int) -> int:
        """Return the table that a door leads to."""
        return int(self._known[number, _TABLE])

    def of(self, gate: tuple[int, int, int]) -> int:
        """Return how many rows the doors of a gate have."""
        own = [number for door, number in self._numbers.items() if door[:3] == gate]
        return int(self._known[own, _ROWS].sum())

    # -- coming and going -------------------------------------------------------------------

    def open(self, door: Door, table: int) -> int:
        """Make a new door, which has no rows yet; return its number."""
        number = self._free.pop() if self._free else len(self._doors)
        self._put(number, door, table, 0)
        return number

    def _put(self, number: int, door: Door, table: int, rows: int) -> None:
        while (gate := file_under(self._gates, *door[:3], number)) < 0:
            self._gates = with_room(self._gates)
        self._known = grown(self._known, number + 1)
        self._known[number] = table, door.direction, door.back, rows
        self._doors[number : number + 1] = [door]
        self._filed[number : number + 1] = [(gate, int(self._gates.records[gate, SIZE]) - 1)]
        self._numbers[door] = number

    def take(self, numbers: Ids) -> None:
        """Note that rows have come, through these doors."""
        counts = np.bincount(numbers)
        self._known[: len(counts), _ROWS] += counts.astype(np.int32)

    def release(self, number: int) -> bool:
        """Note that a row of a door has gone; return whether the door has, too."""
        self._known[number, _ROWS] -= 1
        return self.close(number)

    def close(self, number: int) -> bool:
        """Take a door away if it has no rows; return whether that is so."""
        if self._known[number, _ROWS] > 0:
            return False
        gate, position = self._filed[number]
        moved = take_from(self._gates, gate, position)
        if moved >= 0:
            self._filed[moved] = gate, position
        del self._numbers[self[number]]
        self._doors[number] = None
        self._free.append(number)
        return True

    # -- saving -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, Array]:
        """Return all that is to be saved; `of_arrays` makes the same doors of it."""
        numbers = [*self._numbers.values()]
        return {
            "doors": np.array([*self._numbers], np.int32).reshape(-1, len(Door._fields)),
            "numbers": np.array(numbers, np.int32),
            "known": self._known[numbers],
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> Doors:
        """Return the doors that gave these arrays."""
        doors = cls()
        numbers = arrays["numbers"].tolist()
        places = max(numbers, default=-1) + 1
        doors._doors, doors._filed = [None] * places, [(0, 0)] * places
        known = zip(numbers, arrays["doors"].tolist(), arrays["known"].tolist(), strict=True)
        for number, door, (table, _, _, rows) in known:
            doors._put(number, Door(*door), table, rows)
        doors._free = sorted(set(range(places)) - set(numbers), reverse=True)
        return doors

    # -- matching ---------------------------------------------------------------------------

    def met(self, graph: Ids, ways: Ways) -> Met:
        """Return the tables and roots that a publication comes to."""
        room = _FIRST_ROOM
        while True:
            found, counts = np.empty((room, 2), np.int32), np.zeros(2, np.int32)
            number = _met(graph, tuple(self._gates), self._known, tuple(ways), found, counts)
            if number <= room:
                break
            room = number
        roots: dict[int, dict[int, None]] = {}
        for table, root in found[:number].tolist():
            roots.setdefault(table, {})[root] = None
        return Met(roots, int(counts[0]), int(counts[1]))


@kernel
def _met(
    graph: Ids,
    gate_arrays: tuple[Array, ...],
    known: Ids,
    walked: tuple[Ids, ...],
    found: Ids,
    counts: Ids,
) -> int:
    """Write tables and roots, some of them several times; return how many, more than have room.

    `counts` gets the doors that are met, and their rows.
    """
    gates, ways = Gates(*gate_arrays), Ways(*walked)
    n = int(graph[COUNT])
    count = 0
    for kind in range(KINDS):
        if not gates.kinds[kind]:
            continue
        nexts = nexts_of(graph, kind)
        for first in range(n):
            if not graph[at(TRIPLES + 3 * n + first)] >> kind & 1:
                continue
            s = term_of(graph, kind, SUBJECT, 0, first)
            p = term_of(graph, kind, PREDICATE, 1, first)
            o = term_of(graph, kind, OBJECT, 2, first)
            gate = find(gates.cells, gates.records, s, p, o)
            if gate < 0:
                continue
            start = int(gates.records[gate, START])
            for entry in range(gates.records[gate, SIZE]):
                door = gates.blocks[start + ENTRY * entry] if gates.records[gate, ROOM] else start
                counts[0] += 1
                counts[1] += known[door, _ROWS]
                column = 0 if known[door, _DIRECTION] == FORWARD else 2
                t = first
                while t >= 0:
                    term = graph[at(TRIPLES + column * n + t)]
                    side, there = 0, 1
                    if known[door, _BACK] >= 0:
                        side, there = reached(graph, term, known[door, _BACK], ways)
                    else:
                        ways.levels[0, 0] = term
                    for place in range(there):
                        if count < found.shape[0]:
                            found[count, 0] = known[door, _TABLE]
                            found[count, 1] = ways.levels[side, place]
                        count += 1
                    t = int(graph[at(nexts + t)])
    return count
