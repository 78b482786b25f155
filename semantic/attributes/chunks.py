"""A chunk of lines of JSON, cut (`semantic.attributes.cutting`) and looked at from Python.

Cost: eight bytes for each byte of the lines, of which most are never touched, and a nanosecond or
two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from semantic.attributes.cutting import NO_FORM, PASSED_OVER, cut, number


class Chunk:
    """Lines, and what `cut` says of them.

    Parameters
    ----------
    data
        Whole lines; the last one may lack its line feed.

    Examples
    --------
    >>> lines = [b'{"id": "a", "size": 5}', b'{"id": "b", "size": 7}', b'{"id": "c"}']
    >>> chunk = Chunk(bytes([10]).join(lines))
    >>> chunk.forms.tolist(), chunk.rest_of(0), chunk.texts(np.array([1, 2]))
    ([0, 0, 2], b'{"id":s,"size":n}', ['5', 'b'])
    """

    NO_FORM = NO_FORM
    PASSED_OVER = PASSED_OVER

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._text = _decoded(data)
        self._bytes = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(self._bytes == ord("\n"))
        self._ends = ends if data.endswith(b"\n") else np.append(ends, len(data))
        self.lines = np.empty((len(self._ends) + 1, 3), np.int64)
        """Where the rest and the spans of each line begin, and its form; one row more."""
        self._rest = np.empty(len(data), np.uint8)
        spans = np.empty((len(data) // 2 + 1, 2), np.int64)
        wide, slots = self._text is not None, _slots(len(self._ends))
        count = cut(self._bytes, self._ends, wide, self._rest, slots, self.lines, spans)
        self._spans = spans[:count]
        self.forms = self.lines[:-1, 2]
        """The form of each line; whoever cannot use it writes `NO_FORM` there."""

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self._ends)

    def line(self, place: int) -> bytes:
        """Return a line, counted from 0."""
        begin = self._ends[place - 1] + 1 if place else 0
        return self._data[begin : self._ends[place]]

    def rest_of(self, place: int) -> bytes:
        """Return the rest of a line."""
        return self._rest[self.lines[place, 0] : self.lines[place + 1, 0]].tobytes()

    def texts(self, spans: NDArray[np.int64]) -> list[str]:
        """Return what stands in spans."""
        bounds = self._spans[spans]
        pairs = zip(bounds[:, 0].tolist(), bounds[:, 1].tolist(), strict=True)
        if self._text is not None and len(self._text) == len(self._data):  # ASCII
            text = self._text
            return [text[begin:end] for begin, end in pairs]
        data = self._data
        return [data[begin:end].decode() for begin, end in pairs]

    def numbered(
        self, begins: NDArray[np.int64], roles: NDArray[np.uint8]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the number of each span's constant, and the first span and role of each constant.

        Parameters
        ----------
        begins, roles
            By form, as `semantic.attributes.cutting.number` takes them.
        """
        count = len(self._spans)
        numbers, firsts = np.full(count, -1, np.int32), np.empty((count, 2), np.int64)
        slots = _slots(count)
        found = number(self._bytes, self.lines, self._spans, begins, roles, slots, numbers, firsts)
        return numbers, firsts[:found]


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _slots(count: int) -> NDArray[np.int32]:
    """Return the slots of a hash table for so many things."""
    return np.zeros(1 << (2 * count + 1).bit_length(), np.int32)
