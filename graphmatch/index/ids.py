"""Ids as numbers: an id for each number, and the number of each id.

The ids' text stands in one array of bytes, and is found again by a hash of it; there is no Python
object for an id. A number lives as long as its id; then it is given to another one.

Cost: the id's own bytes and some 20 to 30 more; a look-up takes about a microsecond, of which the
hash is the smaller part.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from graphmatch.index import id_kernels
from graphmatch.index.id_kernels import LIVE, MADE, Names
from graphmatch.index.runs import Array, Ids, Longs, Runs, roomy
from graphmatch.matcher import DuplicateError

_SMALLEST = 16


@dataclass(frozen=True, slots=True, eq=False)
class Written(Sequence[str]):
    """Ids as they are written, one after the other; each becomes a string when it is looked at.

    They stay what they were when the table changes, and equal any sequence of the same ids.

    Parameters
    ----------
    data
        UTF-8.
    ends
        Where each ends, in bytes.
    """

    data: bytes
    ends: Longs

    def __len__(self) -> int:
        return len(self.ends)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[n] for n in range(len(self))[place]]
        place = range(len(self))[place]
        start = int(self.ends[place - 1]) if place else 0
        return _decoded(self.data[start : int(self.ends[place])])

    def __iter__(self) -> Iterator[str]:
        """Yield all ids, faster than one by one."""
        ends = self.ends.tolist()
        starts = [0, *ends][: len(ends)]
        if self.data.isascii():
            text = self.data.decode("ascii")
            return (text[start:end] for start, end in zip(starts, ends, strict=True))
        return (_decoded(self.data[start:end]) for start, end in zip(starts, ends, strict=True))


class IdTable:
    """Distinct ids and their numbers.

    Parameters
    ----------
    seed
        What the hashes begin with, 0 or more and below 2**31; a random one by default.

    Examples
    --------
    >>> ids = IdTable()
    >>> ids.add("alice"), ids.add_many(["bob", "eve"]).tolist(), ids.number("bob")
    (0, [1, 2], 1)
    >>> ids.remove(np.array([1], np.int32))
    >>> ids.number("bob"), ids.name(2), len(ids)
    (-1, 'eve', 2)
    """

    def __init__(self, seed: int | None = None) -> None:
        self._runs = Runs(np.uint8)
        self._tags = np.zeros(_SMALLEST, np.uint8)
        self._cells = np.zeros(_SMALLEST, np.int32)
        self._writable = True
        self._state = np.array([0, -1, 0, secrets.randbits(31) if seed is None else seed])

    def __len__(self) -> int:
        return int(self._state[LIVE])

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self.number(id) >= 0

    @property
    def made(self) -> int:
        """All numbers in use are below this."""
        return int(self._state[MADE])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, in use or not."""
        return self._runs.nbytes + self._tags.nbytes + self._cells.nbytes

    def number(self, id: str) -> int:
        """Return an id's number, -1 if it has none."""
        return id_kernels.find(self._names(), np.frombuffer(_encoded(id), np.uint8))

    def has(self, number: int) -> bool:
        """Whether a number is in use."""
        return 0 <= number < self.made and bool(self._runs.length[number] >= 0)

    def numbers(self) -> Ids:
        """Return all numbers in use, ascending."""
        return np.flatnonzero(self._runs.length[: self.made] >= 0).astype(np.int32)

    def are_used(self, numbers: Ids) -> bool:
        """Whether all numbers are in use."""
        inside = not numbers.size or (numbers.min() >= 0 and numbers.max() < self.made)
        return bool(inside and (self._runs.length[numbers] >= 0).all())

    def name(self, number: int) -> str:
        """Return the id of a number.

        Raises
        ------
        ValueError
            The number is not in use.
        """
        if not self.has(number):
            raise ValueError(f"no id has the number {number}")
        return _decoded(self._runs.of(number).tobytes())

    def names(self, numbers: Ids) -> list[str]:
        """Return the ids of numbers; see `written`."""
        return list(self.written(numbers))

    def written(self, numbers: Ids) -> Written:
        """Return the ids of numbers as bytes: a tenth of the work.

        Raises
        ------
        ValueError
            A number is not in use.
        """
        data, ends = np.empty(32 * len(numbers), np.uint8), np.empty(len(numbers), np.int64)
        needed = id_kernels.copied(self._names(), numbers, data, ends)
        if needed < 0:
            raise ValueError("a number is not in use")
        if needed > len(data):
            data = np.empty(needed, np.uint8)
            id_kernels.copied(self._names(), numbers, data, ends)
        return Written(data[:needed].tobytes(), ends)

    # -- coming and going -------------------------------------------------------------------

    def add(self, id: str) -> int:
        """Give an id a number.

        Raises
        ------
        DuplicateError
            It has one already.
        """
        data = np.frombuffer(_encoded(id), np.uint8)
        self._own(len(data), 1)
        number = id_kernels.enter_one(self._names(), data)
        if number < 0:
            raise DuplicateError(id)
        return number

    def add_many(self, ids: Sequence[str]) -> Ids:
        """Give ids numbers: all of them, or none if one has a number already.

        Raises
        ------
        DuplicateError
            An id has a number already, or is there twice; it says which one.
        """
        numbers = self._entered(ids)
        if numbers.min(initial=0) < 0:
            self._withdraw(numbers)
            raise DuplicateError(ids[int(np.argmax(numbers < 0))])
        return numbers

    def repeated(self, ids: Sequence[str]) -> NDArray[np.bool_]:
        """Say which of the ids have a number already, or stand before among these."""
        numbers = self._entered(ids)
        self._withdraw(numbers)
        return numbers < 0

    def remove(self, numbers: Ids) -> None:
        """Take away distinct numbers that are in use, and their ids.

        Raises
        ------
        ValueError
            A number is not in use, or named twice.
        """
        self._own(0, 0)
        letters = id_kernels.leave(self._names(), numbers)
        if letters < 0:
            raise ValueError("a number is not in use, or is named twice")
        self._runs.lose(letters)
        if len(self._tags) > max(_SMALLEST, 8 * len(self)):
            self._spread(0)

    def _entered(self, ids: Sequence[str]) -> Ids:
        """Take in those ids that are new; the others get -1."""
        data, lengths = _joined(ids)
        self._own(len(data), len(ids))
        numbers = np.empty(len(ids), np.int32)
        id_kernels.enter(self._names(), data, lengths, numbers)
        return numbers

    def _withdraw(self, numbers: Ids) -> None:
        """Take out what was just entered, as if it had not been."""
        self._runs.end[0] -= id_kernels.leave(self._names(), numbers[numbers >= 0])

    def _own(self, letters: int, more: int) -> None:
        """See to it that so many more ids, of so many bytes, have a place."""
        self._runs.make_room(letters, max(self.made, len(self) + more))
        if not self._writable:
            self._state = roomy(self._state, 0)
            self._tags, self._cells = roomy(self._tags, 0), roomy(self._cells, 0)
            self._writable = True
        if 3 * (len(self) + more) > 2 * len(self._tags):
            self._spread(more)

    def _spread(self, more: int) -> None:
        """Make as many cells as so many more ids need."""
        size = _SMALLEST
        while 3 * (len(self) + more) > 2 * size:
            size *= 2
        self._tags, self._cells = np.zeros(size, np.uint8), np.zeros(size, np.int32)
        id_kernels.refill(self._names())

    def _names(self) -> Names:
        runs = self._runs
        return Names(
            runs.arena, runs.start, runs.length, runs.end, self._tags, self._cells, self._state
        )

    # -- saving -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, Array]:
        """Return all that is to be saved; `of_arrays` makes the same table of it."""
        own: dict[str, Array] = {"tags": self._tags, "cells": self._cells, "state": self._state}
        return self._runs.arrays(self.made) | own

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> IdTable:
        """Return the table that gave these arrays.

        They may be read-only and mapped from a file; they are copied when the table first changes.
        """
        table = cls(0)
        table._runs = Runs.of_arrays(np.uint8, arrays)
        table._tags, table._cells = np.asarray(arrays["tags"]), np.asarray(arrays["cells"])
        table._state, table._writable = np.asarray(arrays["state"]), False
        return table


def _encoded(id: str) -> bytes:
    return id.encode("utf-8", "surrogatepass")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _joined(ids: Sequence[str]) -> tuple[NDArray[np.uint8], Ids]:
    """Return the bytes of all ids, and how many each has."""
    text = "".join(ids)
    lengths = map(len, ids if text.isascii() else map(_encoded, ids))
    data = np.frombuffer(_encoded(text), np.uint8)
    return data, np.fromiter(lengths, np.int32, len(ids))
