"""Compiled loops over lines of N-Triples and N-Quads: terms are cut out, told apart, looked up.

Two tables. Texts that are remembered stand in an open hash table of a lexicon: a cell has the hash
and the number of a text, so that another text is hardly ever compared. The distinct texts of a
graph stand in a small one, which is written anew for each graph: what is in a cell from before is
below the graph's first number, and counts as nothing.

The hash is a polynomial modulo a prime, of three bytes at a time, in a key of the table's own, so
that nobody can choose texts that all fall into one place; no product is larger than 61 bits.

Source: Carter and Wegman, Universal classes of hash functions, JCSS 18 (2), 1979; for polynomials,
Dietzfelbinger, Gil, Matias and Pippenger, Polynomial hash functions are reliable, ICALP 1992.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from semantic.jit import at, kernel, part

Bytes: TypeAlias = NDArray[np.uint8]
Ids: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]

UNKNOWN = -1
"""The number of a text that is not remembered."""
NOT_PLAIN = -1
"""Lines that are written otherwise."""
START, LENGTH, ALIASED = range(3)
"""What is known of a text by its number: where it is in the arena, how many bytes it has, and
whether another one means the same."""
BEGIN, END = range(2)
"""By distinct text of a graph: its bytes."""
LINE, TEXT, REPEATS = range(3)
"""By run of lines of one graph: its first line, its first text (where lines say their graph, that
is the graph's name), and whether it may say a triple twice. One more row says where all end, and
how many of the texts are unknown."""
LINE_BYTES = 13
"""No line has fewer bytes."""

_PRIME = (1 << 31) - 1
_NUMBER = (1 << 32) - 1
_RETURN, _NEWLINE, _SPACE, _QUOTE, _DOT, _OPEN, _BLANK = 13, 10, 32, 34, 46, 60, 95
_S, _P, _O, _SHIFT = 0x2545F491, 0x1B873593, 0x3C6EF372, 17


class Table(NamedTuple):
    """The texts of a lexicon as arrays.

    `cells` has a power of two of elements: -1, or a hash and a number. `records` has a row for each
    number, `arena` the bytes of all texts.
    """

    cells: Longs
    records: Ids
    arena: Bytes


class Found(NamedTuple):
    """What comes out of lines.

    By distinct text, graph by graph: `numbers` in the lexicon, `spans`. By line: three `places`, as
    numbers of distinct texts of its graph. By graph: `runs`. `cells` are those of the small tables.
    """

    runs: Ids
    places: Ids
    numbers: Ids
    spans: Ids
    cells: Ids


def found_of(work: Ids) -> Found:
    """Return the parts of an array of `work_size` elements, the first of which says its room.

    The next four are counters.
    """
    lines = int(work[0])
    places = 5 + 3 * (lines + 1)
    numbers = places + 3 * lines
    spans = numbers + 4 * lines
    cells = spans + 8 * lines
    return Found(
        work[5:places].reshape(lines + 1, 3),
        work[places:numbers],
        work[numbers:spans],
        work[spans:cells].reshape(4 * lines, 2),
        work[cells:],
    )


def lines_in(size: int) -> int:
    """Return how many lines so many bytes may be at the most."""
    return size // LINE_BYTES + 1


def cells_for(size: int) -> int:
    """Return how many cells the small tables have for lines of so many bytes: a power of two."""
    cells = 64
    while cells < 8 * (size // LINE_BYTES + 1):
        cells *= 2
    return cells


def work_size(size: int) -> int:
    """Return how many elements are needed to cut lines of so many bytes."""
    return 8 + 18 * lines_in(size) + 2 * cells_for(size)


_found_of, _cells_for = part(found_of), part(cells_for)


@part
def _byte(data: Bytes, place: int) -> int:
    return int(np.int64(data[at(place)]))


@part
def _hash(data: Bytes, begin: int, end: int, key: int) -> int:
    """Return the hash of some bytes: 31 bits."""
    h = end - begin
    n = begin
    while n + 3 <= end:
        h = h * key + (_byte(data, n) | _byte(data, n + 1) << 8 | _byte(data, n + 2) << 16)
        h = (h & _PRIME) + (h >> 31)
        n += 3
    while n < end:
        h = h * key + _byte(data, n)
        h = (h & _PRIME) + (h >> 31)
        n += 1
    h *= key
    h = (h & _PRIME) + (h >> 31)
    return (h & _PRIME) + (h >> 31) & _PRIME


@part
def _same(data: Bytes, begin: int, other: Bytes, start: int, length: int) -> bool:
    n = 0
    while n < length and data[at(begin + n)] == other[at(start + n)]:
        n += 1
    return n == length


@part
def _number(table: Table, data: Bytes, begin: int, end: int, h: int) -> int:
    """Return the number of a text, or `UNKNOWN`."""
    records, mask = table.records, table.cells.size - 1
    place = h & mask
    while True:
        cell = int(table.cells[at(place)])
        if cell < 0:
            return UNKNOWN
        if cell >> 32 == h:
            number = cell & _NUMBER
            start, length = int(records[at(number), START]), int(records[at(number), LENGTH])
            if length == end - begin and _same(data, begin, table.arena, start, length):
                return number
        place = (place + 1) & mask


@kernel
def enter(cells: Longs, records: Ids, arena: Bytes, begin: int, end: int, key: int) -> None:
    """Take texts in, by their numbers, whose bytes are there; each is a new one."""
    mask = cells.size - 1
    for number in range(begin, end):
        start = int(records[number, START])
        h = _hash(arena, start, start + int(records[number, LENGTH]), key)
        place = h & mask
        while cells[place] >= 0:
            place = (place + 1) & mask
        cells[place] = h << 32 | number


@part
def _is_name(data: Bytes, begin: int) -> bool:
    """Whether a text is an IRI, if it is a term at all."""
    return _byte(data, begin) == _OPEN and _byte(data, begin + 1) != _OPEN


@part
def _text(
    data: Bytes, begin: int, end: int, key: int, table: Table, found: Found, base: int, top: Ids
) -> int:
    """Return the place of a text among all distinct ones; it gets the next one if it is new.

    `top` has the places of the graph's first text and of the next one, whether the graph may say a
    triple twice, and how many texts are unknown.
    """
    h, mask = _hash(data, begin, end, key), _cells_for(data.size) - 1
    cell = h & mask
    while True:
        n = int(found.cells[at(cell)]) - base
        if n < top[0]:
            break
        start = int(found.spans[at(n), BEGIN])
        length = int(found.spans[at(n), END]) - start
        if length == end - begin and _same(data, begin, data, start, length):
            return n
        cell = (cell + 1) & mask
    n = int(top[1])
    top[1] = n + 1
    number = _number(table, data, begin, end, h)
    found.cells[at(cell)] = n + base
    found.spans[at(n), BEGIN], found.spans[at(n), END] = begin, end
    found.numbers[at(n)] = number
    if number == UNKNOWN:
        top[3] += 1
    elif table.records[at(number), ALIASED] != 0:
        top[2] = 1
    return n


@part
def _is_repeated(size: int, found: Found, base: int, first: int, line: int) -> bool:
    """Whether a line of a graph, which begins with some line, says what one before it says."""
    begin = _cells_for(size)
    mask = begin - 1
    places, n = found.places, 3 * line
    s, p, o = int(places[at(n)]), int(places[at(n + 1)]), int(places[at(n + 2)])
    cell = (s * _S + p * _P + o * _O) >> _SHIFT & mask
    while True:
        other = int(found.cells[at(begin + cell)]) - base
        if other < first:
            found.cells[at(begin + cell)] = line + base
            return False
        n = 3 * other
        if (places[at(n)] == s) & (places[at(n + 1)] == p) & (places[at(n + 2)] == o):
            return True
        cell = (cell + 1) & mask


@part
def _may_be_subject(data: Bytes, begin: int) -> bool:
    """Whether a text, if it is a term, is one that can be a subject or the name of a graph."""
    return _is_name(data, begin) or _byte(data, begin) == _BLANK


@kernel
def cut(
    data: Bytes, has_graphs: bool, key: int, base: int, cells: Longs, records: Ids, arena: Bytes,
    work: Ids,
) -> int:  # fmt: skip
    """Cut lines at their spaces; return how many runs of one graph they are, or `NOT_PLAIN`.

    Parameters
    ----------
    data
        Whole lines, each of which ends with a line feed.
    has_graphs
        Whether a line says its graph.
    key
        The key of the lexicon's hashes.
    base
        No cell of the small tables has so high a number yet.
    cells, records, arena
        Those of `Table`.
    work
        Gets what is found: `found_of`.
    """
    table, found = Table(cells, records, arena), _found_of(work)
    runs, top = found.runs, work[1:5]
    top[:] = 0
    count, line, n = 0, 0, 0
    s0, s1, g0, g1 = 0, 0, 0, 0
    subject = -1
    if not has_graphs and data.size > 0:
        count, runs[0, LINE], runs[0, TEXT] = 1, 0, 0
    while n < data.size:
        begin = n
        n += s1 - s0
        if (
            subject < 0
            or n >= data.size
            or _byte(data, n) != _SPACE
            or not _same(data, begin, data, s0, s1 - s0)
        ):
            subject, n = -1, begin
            while _byte(data, n) > _SPACE:
                n += 1
            if _byte(data, n) != _SPACE or n - begin < 3 or not _may_be_subject(data, begin):
                return NOT_PLAIN
        s0, s1 = begin, n
        n += 1
        p0 = n
        while _byte(data, n) > _SPACE:
            n += 1
        if _byte(data, n) != _SPACE or n - p0 < 3 or not _is_name(data, p0):
            return NOT_PLAIN
        p1 = n
        n += 1
        o0 = n
        while _byte(data, n) != _NEWLINE:
            n += 1
        o1 = n - 3 if _byte(data, n - 1) == _RETURN else n - 2
        n += 1
        if o1 < o0 + 2 or _byte(data, o1) != _SPACE or _byte(data, o1 + 1) != _DOT:
            return NOT_PLAIN
        first = _byte(data, o0)
        if first != _OPEN and first != _QUOTE and first != _BLANK:
            return NOT_PLAIN
        if has_graphs:
            end = o1
            while o1 > o0 and _byte(data, o1 - 1) != _SPACE:
                o1 -= 1
            begin = o1
            o1 -= 1
            if o1 < o0 + 2 or end - begin < 3:
                return NOT_PLAIN
            if count == 0 or end - begin != g1 - g0 or not _same(data, begin, data, g0, g1 - g0):
                if not _may_be_subject(data, begin):
                    return NOT_PLAIN
                runs[count, LINE], runs[count, TEXT] = line, top[1]
                if count > 0:
                    runs[count - 1, REPEATS] = top[2]
                count += 1
                top[0] = top[1]
                _text(data, begin, end, key, table, found, base, top)
                top[0], top[2] = top[1], 0
                subject = -1
                g0, g1 = begin, end
        if subject < 0:
            subject = _text(data, s0, s1, key, table, found, base, top) - int(top[0])
        found.places[at(3 * line)] = subject
        property_ = _text(data, p0, p1, key, table, found, base, top) - int(top[0])
        found.places[at(3 * line + 1)] = property_
        object_ = _text(data, o0, o1, key, table, found, base, top) - int(top[0])
        found.places[at(3 * line + 2)] = object_
        if _is_repeated(data.size, found, base, int(runs[count - 1, LINE]), line):
            top[2] = 1
        line += 1
    if count > 0:
        runs[count - 1, REPEATS] = top[2]
    runs[count, LINE], runs[count, TEXT], runs[count, REPEATS] = line, top[1], top[3]
    return count
