"""What a publication has for the columns of a table: values that hang on one root.

A column is a property, a direction and a kind (`graphmatch.index.shapes`), or a path and a kind.
Its values are found in the publication's chains (`graphmatch.index.walking`). A number that may be
off is a range; so is a time without a zone where times with a zone are asked for. What may be equal
to any number is the range of all.

Cost: a look-up a column, and some nanoseconds a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.chains import COUNT
from graphmatch.index.comparing import Values as Compared
from graphmatch.index.numbers import ASKED, ZONE_SECONDS
from graphmatch.index.shapes import EXISTS
from graphmatch.index.stars import SELF, WALK
from graphmatch.index.table_rows import Values
from graphmatch.index.terms import LOCAL, Ids, Numbers
from graphmatch.index.walking import Ways, end_of, first, reached
from semantic.jit import at, kernel, part

Floats: TypeAlias = NDArray[np.float64]

_PROPERTY, _DIRECTION, _KIND = range(3)
"""A column."""
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
    graph
        The publication (`graphmatch.index.encoding`).
    intervals, ids
        Property, direction and kind of each column, shape (columns, 3).
    """

    values: Values
    interval_terms: Ids
    id_terms: Ids
    root: int
    ranged: bool
    graph: Ids
    intervals: Ids
    ids: Ids


def gathered(
    graph: Ids, root: int, intervals: Ids, ids: Ids, compared: Compared, ways: Ways
) -> Gathered:
    """Return what there is for columns.

    Parameters
    ----------
    intervals, ids
        Property, direction and kind of each column, shape (columns, 3).
    compared
        What terms are compared by.
    ways
        All paths, and what is written on (`graphmatch.index.walking`).
    """
    room, rooms = _rooms(graph, root, (intervals, ids), ways)
    starts, other = np.empty(len(intervals) + 1, np.int32), np.empty(len(ids) + 1, np.int32)
    lows, highs, terms = np.empty(room), np.empty(room), np.empty(room, np.int32)
    asked, own = np.empty(rooms, np.int32), np.empty(rooms, np.int32)
    numbers, ranges = (compared.numbers, compared.local), (lows, highs)
    ranged = _intervals(graph, root, intervals, numbers, tuple(ways), starts, ranges, terms)
    _ids(graph, root, ids, tuple(ways), other, asked, own)
    end, last = int(starts[-1]), int(other[-1])
    ends = highs[:end] if ranged else None
    values = Values(starts, lows[:end], other, asked[:last], ends)
    return Gathered(values, terms[:end], own[:last], root, bool(ranged), graph, intervals, ids)


def _rooms(graph: Ids, root: int, columns: tuple[Ids, Ids], ways: Ways) -> tuple[int, int]:
    """Return how many values there are at most for columns; counted where they may be many."""
    most = int(graph[COUNT]) + 1
    guess = most * len(columns[0]), most * len(columns[1])
    if max(guess) <= _GUESSED:
        return guess
    intervals, ids = (_count(graph, root, own, tuple(ways)) for own in columns)
    return intervals, ids


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


@part
def _terms(graph: Ids, root: int, column: Ids, ways: Ways) -> tuple[int, int]:
    """Write the terms of a column; return in which level they are, and how many."""
    direction = column[_DIRECTION]
    if direction == WALK:
        return reached(graph, root, column[_PROPERTY], ways)
    if direction == SELF:
        ways.levels[0, 0] = root
        return 0, 1
    count = 0
    t, nexts = first(graph, root, column[_PROPERTY], direction)
    while t >= 0:
        ways.levels[0, count] = end_of(graph, t, direction)
        count += 1
        t = int(graph[at(nexts + t)])
    return 0, count


@kernel
def _count(graph: Ids, root: int, columns: Ids, walked: tuple[Ids, ...]) -> int:
    """Return how many terms columns have."""
    ways = Ways(*walked)
    count = 0
    for column in range(columns.shape[0]):
        count += _terms(graph, root, columns[column], ways)[1]
    return count


@kernel
def _intervals(
    graph: Ids,
    root: int,
    columns: Ids,
    compared: tuple[Numbers, Numbers],
    walked: tuple[Ids, ...],
    starts: Ids,
    ranges: tuple[Floats, Floats],
    terms: Ids,
) -> bool:
    """Write the values of columns of intervals; return whether one of them is a range."""
    lows, highs = ranges
    values, ways = Compared(*compared), Ways(*walked)
    count = 0
    ranged = False
    for column in range(columns.shape[0]):
        starts[column] = count
        side, there = _terms(graph, root, columns[column], ways)
        for place in range(there):
            term = int(ways.levels[side, place])
            low, high, some = _range(term, columns[column, _KIND], values)
            if some:
                lows[count], highs[count] = low, high
                terms[count] = term
                count += 1
                ranged |= low < high
    starts[columns.shape[0]] = count
    return ranged


@kernel
def _ids(
    graph: Ids,
    root: int,
    columns: Ids,
    walked: tuple[Ids, ...],
    starts: Ids,
    asked: Ids,
    terms: Ids,
) -> None:
    """Write the values of columns of ids; where any will do, each is written as 0."""
    ways = Ways(*walked)
    count = 0
    for column in range(columns.shape[0]):
        starts[column] = count
        side, there = _terms(graph, root, columns[column], ways)
        for place in range(there):
            term = ways.levels[side, place]
            asked[count] = 0 if columns[column, _KIND] == EXISTS else term
            terms[count] = term
            count += 1
    starts[columns.shape[0]] = count
