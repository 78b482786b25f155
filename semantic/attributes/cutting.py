"""Compiled loops over lines of JSON: what repeats is told apart from what differs.

A line is cut into its *rest*, which is all that it says but the texts and numbers that are values,
and these, its *spans*. Lines with the same rest say the same of other constants, and a span that
was there before is the same constant. Keys stand in the rest as they are written, a text is ``s``
there, or ``d`` where it may be a date, a number is ``n``, and ``true``, ``false`` and ``null`` are
their first letters; blanks between tokens are left out. So a rest says which tokens a line has,
and that is all that JSON's grammar asks for.

What is not certain is not cut: escapes, bytes that are not ASCII outside of texts, numbers and
words that JSON does not have, and very long numbers.

Every function gets flat arrays and fills flat arrays, and makes none, so that numba need not count
references; a small function is compiled into those that call it because it is not cached by
itself. Importing this module imports numba; with ``NUMBA_DISABLE_JIT=1`` the functions run as plain
Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Places: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.int32]

NO_FORM = -1
"""Of a line that was not cut."""
PASSED_OVER = 0
"""The role of a span that is no constant."""

_Function = TypeVar("_Function", bound=Callable[..., Any])
_PLAIN: dict[str, Any] = {"_nrt": False}


def _kernel(function: _Function) -> _Function:
    """Compile a function that Python calls."""
    compiled: _Function = numba.njit(cache=True, nogil=True, **_PLAIN)(function)
    return compiled


def _part(function: _Function) -> _Function:
    """Compile a function that these call."""
    compiled: _Function = numba.njit(**_PLAIN)(function)
    return compiled


_SEED, _PRIME, _MASK = 2166136261, 16777619, 0xFFFFFFFF  # FNV-1a; products stay below 57 bits
_TAB, _NEWLINE, _RETURN, _SPACE = 9, 10, 13, 32
_QUOTE, _ESCAPE, _COLON, _COMMA, _OPEN, _CLOSE = 34, 92, 58, 44, 91, 93
_OPEN_OBJECT, _CLOSE_OBJECT = 123, 125
_PLUS, _MINUS, _POINT, _ZERO, _NINE, _E, _SMALL_E = 43, 45, 46, 48, 57, 69, 101
_TEXT, _DATED, _NUMBER = 115, 100, 110
_ASCII = 128
_DASH = 4
"""Where a date has its first dash."""
_LONGEST = 1000
"""A longer number is left to who knows whether it is too long."""
_WORDS = np.frombuffer(b"true\0false\0null\0", np.uint8)


@_kernel
def cut(
    data: Bytes, ends: Places, wide: bool, rest: Bytes, slots: Numbers, lines: Places, spans: Places
) -> int:
    """Cut lines, and find those with the same rest.

    Parameters
    ----------
    data
        The lines.
    ends
        Where each line ends, at its line feed.
    wide
        Whether bytes that are not ASCII may be in texts: the lines are UTF-8.
    rest
        As long as `data`; gets the rests.
    slots
        A table of places, all 0, twice as many as lines at least: a power of two.
    lines
        One row more than lines. Each gets where its rest and its spans begin, and its form: the
        first line with this rest, or `NO_FORM`.
    spans
        Half as many rows as `data` has bytes; each gets where a span begins and ends.

    Returns
    -------
        How many spans there are.
    """
    begin, filled, count = 0, 0, 0
    for line in range(ends.size):
        lines[line, 0], lines[line, 1] = filled, count
        stop_rest, stop_spans = _cut_line(data, begin, ends[line], wide, rest, filled, spans, count)
        lines[line, 2] = NO_FORM
        if stop_rest > filled:
            lines[line, 2] = _first(rest, filled, stop_rest, lines, slots, line)
            filled, count = stop_rest, stop_spans
        begin = ends[line] + 1
    lines[ends.size, 0], lines[ends.size, 1] = filled, count
    return count


@_part
def _cut_line(
    data: Bytes,
    place: int,
    end: int,
    wide: bool,
    rest: Bytes,
    filled: int,
    spans: Places,
    count: int,
) -> tuple[int, int]:
    """Return where the rest and the spans of a line end; -1 where it is not certain."""
    while place < end:
        byte = data[place]
        if byte == _QUOTE:
            stop = place + 1
            while (
                stop < end
                and data[stop] >= _SPACE
                and data[stop] != _QUOTE
                and data[stop] != _ESCAPE
                and (wide or data[stop] < _ASCII)
            ):
                stop += 1
            if stop == end or data[stop] != _QUOTE:
                return -1, -1
            after = stop + 1
            while after < end and _blank(data[after]):
                after += 1
            if after < end and data[after] == _COLON:
                for each in range(place, stop + 1):
                    rest[filled] = data[each]
                    filled += 1
            else:
                dated = stop - place > _DASH and data[place + 1 + _DASH] == _MINUS
                rest[filled] = _DATED if dated else _TEXT
                spans[count, 0], spans[count, 1] = place + 1, stop
                filled, count = filled + 1, count + 1
            place = stop + 1
        elif _ZERO <= byte <= _NINE or byte == _MINUS:
            stop = _number_end(data, place, end)
            if stop < 0:
                return -1, -1
            rest[filled] = _NUMBER
            spans[count, 0], spans[count, 1] = place, stop
            filled, count, place = filled + 1, count + 1, stop
        elif _blank(byte):
            place += 1
        elif byte in (_COLON, _COMMA, _OPEN, _CLOSE, _OPEN_OBJECT, _CLOSE_OBJECT):
            rest[filled] = byte
            filled, place = filled + 1, place + 1
        else:
            stop = _word_end(data, place, end)
            if stop < 0:
                return -1, -1
            rest[filled] = byte
            filled, place = filled + 1, stop
    return filled, count


@_part
def _blank(byte: int) -> bool:
    return byte in (_SPACE, _TAB, _RETURN, _NEWLINE)


@_part
def _digits_end(data: Bytes, place: int, end: int) -> int:
    while place < end and _ZERO <= data[place] <= _NINE:
        place += 1
    return place


@_part
def _number_end(data: Bytes, place: int, end: int) -> int:
    """Return where a number of JSON ends, -1 where there is none."""
    begin = place
    if data[place] == _MINUS:
        place += 1
    stop = _digits_end(data, place, end)
    if stop == place or (data[place] == _ZERO and stop > place + 1):
        return -1
    if stop < end and data[stop] == _POINT:
        place = stop + 1
        stop = _digits_end(data, place, end)
        if stop == place:
            return -1
    if stop < end and (data[stop] == _E or data[stop] == _SMALL_E):
        place = stop + 1
        if place < end and (data[place] == _PLUS or data[place] == _MINUS):
            place += 1
        stop = _digits_end(data, place, end)
        if stop == place:
            return -1
    return stop if stop - begin <= _LONGEST else -1


@_part
def _word_end(data: Bytes, place: int, end: int) -> int:
    """Return where ``true``, ``false`` or ``null`` ends, -1 where there is none."""
    word = 0
    while word < _WORDS.size and _WORDS[word] != data[place]:
        while _WORDS[word] != 0:
            word += 1
        word += 1
    if word == _WORDS.size:
        return -1
    while _WORDS[word] != 0:
        if place == end or data[place] != _WORDS[word]:
            return -1
        word, place = word + 1, place + 1
    return place


@_part
def _hashed(data: Bytes, begin: int, end: int, seed: int) -> int:
    found = _SEED ^ seed
    for place in range(begin, end):
        found = ((found ^ int(data[place])) * _PRIME) & _MASK
    return found ^ (found >> 15)


@_part
def _same(data: Bytes, one: int, other: int, length: int) -> bool:
    place = 0
    while place < length and data[one + place] == data[other + place]:
        place += 1
    return place == length


@_part
def _first(rest: Bytes, begin: int, end: int, lines: Places, slots: Numbers, line: int) -> int:
    """Return the first line with a rest, which may be this line."""
    slot = _hashed(rest, begin, end, 0) & (slots.size - 1)
    while slots[slot] != 0:
        known = int(slots[slot]) - 1
        other = int(lines[known, 0])
        if lines[known + 1, 0] - other == end - begin and _same(rest, other, begin, end - begin):
            return known
        slot = (slot + 1) & (slots.size - 1)
    slots[slot] = line + 1
    return line


@_kernel
def number(
    data: Bytes,
    lines: Places,
    spans: Places,
    begins: Places,
    roles: Bytes,
    slots: Numbers,
    numbers: Numbers,
    firsts: Places,
) -> int:
    """Give the different constants of lines numbers, in their order, from 0.

    A constant is what is written and its role.

    Parameters
    ----------
    data, lines, spans
        As `cut` filled them.
    begins
        By form: where in `roles` those of its spans begin.
    roles
        Of the spans of each form; `PASSED_OVER` of those that are not to be numbered.
    slots
        A table of places, all 0, twice as many as spans at least: a power of two.
    numbers
        One a span: the number of its constant. What is not numbered stays as it is.
    firsts
        As many rows as spans; each gets the first span of a constant and its role.

    Returns
    -------
        How many constants there are.
    """
    count = 0
    for line in range(len(lines) - 1):
        form = lines[line, 2]
        if form == NO_FORM:
            continue
        first = lines[line, 1]
        for span in range(first, lines[line + 1, 1]):
            role = roles[begins[form] + span - first]
            if role == PASSED_OVER:
                continue
            begin, length = spans[span, 0], spans[span, 1] - spans[span, 0]
            slot = _hashed(data, begin, begin + length, int(role)) & (slots.size - 1)
            found = -1
            while found < 0 and slots[slot] != 0:
                known = slots[slot] - 1
                other = spans[firsts[known, 0], 0]
                if (
                    firsts[known, 1] == role
                    and spans[firsts[known, 0], 1] - other == length
                    and _same(data, other, begin, length)
                ):
                    found = known
                slot = (slot + 1) & (slots.size - 1)
            if found < 0:
                slots[slot] = count + 1
                firsts[count, 0], firsts[count, 1] = span, role
                found = count
                count += 1
            numbers[span] = found
    return count
