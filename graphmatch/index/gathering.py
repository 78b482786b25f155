"""What a publication has for the columns of a table: values that hang on one root.

A column is a property, a direction and a kind (`graphmatch.index.shapes`). Its values are found in
the publication's chains. A number that may be off is a range; so is a time without a zone where
times with a zone are asked for. What may be equal to any number is the range of all.

Cost: a look-up a column, and some nanoseconds a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.chains import COUNT, TRIPLES, cell_of, nexts_of, term_of
from graphmatch.index.comparing import Values as Compared
from graphmatch.index.gates import (
    ANY,
    ENTRY,
    KINDS,
    OBJECT,
    PREDICATE,
    ROOM,
    SIZE,
    START,
    SUBJECT,
    Gates,
    find,
)
from graphmatch.index.jit import at, kernel, part
from graphmatch.index.numbers import ASKED, ZONE_SECONDS
from graphmatch.index.shapes import EXISTS, FORWARD, SELF
from graphmatch.index.table_rows import Values
from graphmatch.index.terms import LOCAL, Ids, Numbers

Floats: TypeAlias = NDArray[np.float64]

LOOKUPS = 1 << (SUBJECT | PREDICATE) | 1 << (PREDICATE | OBJECT)
"""The kinds of look-up that values need, a bit each."""

_PROPERTY, _DIRECTION, _KIND = range(3)
"""A column."""
_S, _O = 0, 2
"""Places of a triple."""
_GUESSED = 1 << 16
"""Room for so many values is taken without counting them."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The values of a table's columns, for one root.

    Parameters
    ----------
    values
        What the table is asked for.
    interval_terms, id_terms
        By value, the id of its term.
    root
        The id of the root.
    ranged
        Whether there is a range among the values.
    """

    values: Values
    interval_terms: Ids
    id_terms: Ids
    root: int
    ranged: bool


def tables_met(graph: Ids, gates: Gates, tables: int) -> list[int]:
    """Return the tables whose gates a publication meets; each is filed under one.

    Parameters
    ----------
    tables
        How many there are.
    """
    found = np.empty(tables, np.int32)
    met: list[int] = found[: _met(graph, gates, found)].tolist()
    return met


def roots_of(graph: Ids, gate: tuple[int, int, int], direction: int) -> list[int]:
    """Return the roots that a gate binds."""
    found = np.empty(int(graph[COUNT]), np.int32)
    count = _roots(graph, *gate, direction, found)
    return list(dict.fromkeys(found[:count].tolist()))


def gathered(graph: Ids, root: int, intervals: Ids, ids: Ids, compared: Compared) -> Gathered:
    """Return what there is for columns.

    Parameters
    ----------
    intervals, ids
        Property, direction and kind of each column, shape (columns, 3).
    compared
        What terms are compared by.
    """
    room, rooms = _rooms(graph, root, (intervals, ids))
    starts, other = np.empty(len(intervals) + 1, np.int32), np.empty(len(ids) + 1, np.int32)
    lows, highs, terms = np.empty(room), np.empty(room), np.empty(room, np.int32)
    asked, own = np.empty(rooms, np.int32), np.empty(rooms, np.int32)
    numbers, ranges = (compared.numbers, compared.local), (lows, highs)
    ranged = _intervals(graph, root, intervals, numbers, starts, ranges, terms)
    _ids(graph, root, ids, other, asked, own)
    end, last = int(starts[-1]), int(other[-1])
    ends = highs[:end] if ranged else None
    values = Values(starts, lows[:end], other, asked[:last], ends)
    return Gathered(values, terms[:end], own[:last], root, bool(ranged))


def _rooms(graph: Ids, root: int, columns: tuple[Ids, Ids]) -> tuple[int, int]:
    """Return how many values there are at most for columns; counted where they may be many."""
    most = int(graph[COUNT]) + 1
    guess = most * len(columns[0]), most * len(columns[1])
    if max(guess) <= _GUESSED:
        return guess
    return _count(graph, root, columns[0]), _count(graph, root, columns[1])


@kernel
def _count(graph: Ids, root: int, columns: Ids) -> int:
    """Return how many values there are at most."""
    count = 0
    for column in range(columns.shape[0]):
        direction = columns[column, _DIRECTION]
        if direction == SELF:
            count += 1
            continue
        t, nexts = _first(graph, root, columns[column, _PROPERTY], direction)
        while t >= 0:
            count += 1
            t = int(graph[at(nexts + t)])
    return count


@kernel
def _met(graph: Ids, gates: Gates, found: Ids) -> int:
    """Write the tables whose gates are met; return how many."""
    n = int(graph[COUNT])
    count = 0
    for kind in range(KINDS):
        if not gates.kinds[kind]:
            continue
        for t in range(n):
            if not graph[at(TRIPLES + 3 * n + t)] >> kind & 1:
                continue
            s = term_of(graph, kind, SUBJECT, 0, t)
            p = term_of(graph, kind, PREDICATE, 1, t)
            o = term_of(graph, kind, OBJECT, 2, t)
            gate = find(gates.cells, gates.records, s, p, o)
            if gate < 0:
                continue
            start = int(gates.records[gate, START])
            if gates.records[gate, ROOM] == 0:
                found[count] = start
                count += 1
            else:
                for entry in range(gates.records[gate, SIZE]):
                    found[count] = gates.blocks[start + ENTRY * entry]
                    count += 1
    return count


@kernel
def _roots(graph: Ids, s: int, p: int, o: int, direction: int, found: Ids) -> int:
    """Write the roots of a gate's triples; return how many."""
    kind = SUBJECT * (s >= 0) + PREDICATE * (p >= 0) + OBJECT * (o >= 0)
    n = int(graph[COUNT])
    column = _S if direction == FORWARD else _O
    nexts = nexts_of(graph, kind)
    t = int(graph[at(cell_of(graph, kind, s, p, o))])
    count = 0
    while t >= 0:
        found[count] = graph[at(TRIPLES + column * n + t)]
        count += 1
        t = int(graph[at(nexts + t)])
    return count


@part
def _first(graph: Ids, root: int, property_: int, direction: int) -> tuple[int, int]:
    """Return the first triple of a column's chain, and where the chain goes on."""
    if direction == FORWARD:
        kind = SUBJECT | PREDICATE
        return int(graph[at(cell_of(graph, kind, root, property_, ANY))]), nexts_of(graph, kind)
    kind = PREDICATE | OBJECT
    return int(graph[at(cell_of(graph, kind, ANY, property_, root))]), nexts_of(graph, kind)


@part
def _range(term: int, kind: int, values: Compared) -> tuple[float, float, bool]:
    """Return the range of a term's number as a column of some kind sees it; and if there is one."""
    numbers = values.numbers
    if term >= LOCAL:
        numbers, term = values.local, term - LOCAL
    own = int(numbers[term, 0])
    if own == ASKED:
        return -np.inf, np.inf, True
    if own >> 1 != kind >> 1:
        return 0.0, 0.0, False
    value, error = numbers[term, 1], numbers[term, 2]
    if own != kind:
        error += ZONE_SECONDS
    if error == 0.0:
        return value, value, True
    return np.nextafter(value - error, -np.inf), np.nextafter(value + error, np.inf), True


@kernel
def _intervals(
    graph: Ids,
    root: int,
    columns: Ids,
    compared: tuple[Numbers, Numbers],
    starts: Ids,
    ranges: tuple[Floats, Floats],
    terms: Ids,
) -> bool:
    """Write the values of columns of intervals; return whether one of them is a range."""
    n = int(graph[COUNT])
    lows, highs = ranges
    values = Compared(*compared)
    count = 0
    ranged = False
    for column in range(columns.shape[0]):
        starts[column] = count
        direction, kind = columns[column, _DIRECTION], columns[column, _KIND]
        t, nexts = n, 0
        if direction != SELF:
            t, nexts = _first(graph, root, columns[column, _PROPERTY], direction)
        end = _O if direction == FORWARD else _S
        while t >= 0:
            term = root if direction == SELF else int(graph[at(TRIPLES + end * n + t)])
            low, high, some = _range(term, kind, values)
            if some:
                lows[count], highs[count] = low, high
                terms[count] = term
                count += 1
                ranged |= low < high
            t = -1 if direction == SELF else int(graph[at(nexts + t)])
    starts[columns.shape[0]] = count
    return ranged


@kernel
def _ids(graph: Ids, root: int, columns: Ids, starts: Ids, asked: Ids, terms: Ids) -> None:
    """Write the values of columns of ids; where any will do, each is written as 0."""
    n = int(graph[COUNT])
    count = 0
    for column in range(columns.shape[0]):
        starts[column] = count
        direction, kind = columns[column, _DIRECTION], columns[column, _KIND]
        t, nexts = n, 0
        if direction != SELF:
            t, nexts = _first(graph, root, columns[column, _PROPERTY], direction)
        end = _O if direction == FORWARD else _S
        while t >= 0:
            term = root if direction == SELF else int(graph[at(TRIPLES + end * n + t)])
            asked[count] = 0 if kind == EXISTS else term
            terms[count] = term
            count += 1
            t = -1 if direction == SELF else int(graph[at(nexts + t)])
    starts[columns.shape[0]] = count
