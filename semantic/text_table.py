"""The texts of a lexicon as arrays, in which compiled loops look up what lines say.

The arrays are written when lines are cut, with what the lexicon has got since. One reader at a
time may cut.

Cost: some 50 bytes and its own for each text, once lines are cut; 2 to 3 ns a byte to cut lines.
Importing this module imports numba.
"""

from __future__ import annotations

import secrets
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from semantic.line_kernels import (
    ALIASED,
    LENGTH,
    LINE,
    NOT_PLAIN,
    REPEATS,
    START,
    TEXT,
    UNKNOWN,
    Found,
    Ids,
    Table,
    cut,
    enter,
    found_of,
    lines_in,
    work_size,
)

_Number = TypeVar("_Number", np.int32, np.uint8)

_SMALLEST = 1024
_HIGHEST = 2**31 - 1


class TextTable:
    r"""Cuts lines, and looks their texts up.

    Parameters
    ----------
    texts
        The texts by number, which grow.
    aliased
        The numbers of texts that mean what others mean, which grow.

    Examples
    --------
    >>> table = TextTable([b"<urn:a>"], [])
    >>> lines = table.cut(b"<urn:a> <urn:b> <urn:a> .\n", has_graphs=False)
    >>> lines.numbers.tolist(), list(lines.unknown()), [list(run.places) for run in lines.runs()]
    ([0, -1], [(1, b'<urn:b>')], [[0, 1, 0]])
    >>> table.cut(b"<urn:a>\t<urn:b>\t<urn:a> .\n", has_graphs=False) is None
    True
    """

    def __init__(self, texts: Sequence[bytes], aliased: Sequence[int]) -> None:
        self._texts, self._aliased = texts, aliased
        self._entered, self._marked, self._end = 0, 0, 0
        self._key = (1 << 20) + secrets.randbits(28)
        self._table = Table(
            np.full(2 * _SMALLEST, -1, np.int64),
            np.zeros((_SMALLEST, 3), np.int32),
            np.zeros(32 * _SMALLEST, np.uint8),
        )
        self._room, self._base = 0, 0
        self._work = np.zeros(1, np.int32)
        self._found: Found

    def cut(self, data: bytes, *, has_graphs: bool) -> Lines | None:
        """Cut lines at their spaces; ``None`` where not all of them are written plainly.

        Parameters
        ----------
        data
            Whole lines, each of which ends with a line feed.
        has_graphs
            Whether a line says its graph.
        """
        if self._entered < len(self._texts) or self._marked < len(self._aliased):
            self._enter()
        size = len(data)
        if size > self._room:
            self._make_room(size)
        if self._base + size > _HIGHEST:
            self._work[1:], self._base = -1, 0
        letters = np.frombuffer(data, np.uint8)
        runs = cut(letters, has_graphs, self._key, self._base, *self._table, self._work)
        self._base += size
        return None if runs == NOT_PLAIN else Lines(data, has_graphs, runs, self._found)

    def _make_room(self, size: int) -> None:
        """Make room for what is found in lines of so many bytes."""
        self._room, self._base = size, 0
        self._work = np.full(work_size(size), -1, np.int32)
        self._work[0] = lines_in(size)
        self._found = found_of(self._work)

    def _enter(self) -> None:
        """Write down what is new."""
        begin, end = self._entered, len(self._texts)
        new = self._texts[begin:]
        lengths = list(map(len, new))
        letters = self._end + sum(lengths)
        cells, records, arena = self._table
        if end > len(records):
            records = _larger(records, end)
        if letters > len(arena):
            arena = _larger(arena, letters)
        if new:
            arena[self._end : letters] = np.frombuffer(b"".join(new), np.uint8)
            records[begin:end, START] = [*accumulate(lengths[:-1], initial=self._end)]
            records[begin:end, LENGTH] = lengths
        records[self._aliased[self._marked :], ALIASED] = 1
        if 2 * end > len(cells):
            cells, begin = np.full(1 << (2 * end).bit_length(), -1, np.int64), 0
        self._table = Table(cells, records, arena)
        self._entered, self._marked, self._end = end, len(self._aliased), letters
        enter(cells, records, arena, begin, end, self._key)


class Lines:
    """Lines that were cut; to be looked at before others are.

    Parameters
    ----------
    data
        The lines.
    has_graphs
        Whether each says its graph.
    runs
        How many runs of lines of one graph there are.
    found
        What `semantic.line_kernels.cut` wrote.

    Attributes
    ----------
    numbers
        The numbers of all texts in the lexicon, -1 of those that it does not have.
    new
        How many these are.
    """

    __slots__ = ("_data", "_found", "_has_graphs", "_runs", "new", "numbers")

    def __init__(self, data: bytes, has_graphs: bool, runs: int, found: Found) -> None:
        self._data, self._has_graphs, self._found = data, has_graphs, found
        self._runs: list[list[int]] = found.runs[: runs + 1].tolist()
        self.numbers: Ids = found.numbers[: self._runs[-1][TEXT]]
        self.new = self._runs[-1][REPEATS]

    def unknown(self) -> Iterator[tuple[int, bytes]]:
        """Yield the texts that the lexicon does not have, each with its place among all."""
        places = np.flatnonzero(self.numbers == UNKNOWN)
        spans = self._found.spans[places].tolist()
        for place, (begin, end) in zip(places.tolist(), spans, strict=True):
            yield place, self._data[begin:end]

    def runs(self) -> Iterator[CutRun]:
        """Yield the runs, one after the other."""
        places = self._found.places
        for one, following in pairwise(self._runs):
            begin = one[TEXT]
            yield CutRun(
                begin if self._has_graphs else None,
                (begin + self._has_graphs, following[TEXT]),
                array("i", places[3 * one[LINE] : 3 * following[LINE]].tobytes()),
                not one[REPEATS],
            )

    def __len__(self) -> int:
        """Return how many lines there are."""
        return self._runs[-1][LINE]


class CutRun(NamedTuple):
    """Lines of one graph that stand together.

    `graph` is the place of the graph's name among all texts; `texts` are the places where the
    graph's own begin and end; `places` are three a line, as places among these; `is_distinct` says
    that no term has two texts as far as the lexicon knows, and no triple two lines.
    """

    graph: int | None
    texts: tuple[int, int]
    places: array[int]
    is_distinct: bool


def _larger(held: NDArray[_Number], size: int) -> NDArray[_Number]:
    """Return the array with room for twice as much as is asked for."""
    larger = np.zeros((2 * size, *held.shape[1:]), held.dtype)
    larger[: len(held)] = held
    return larger
