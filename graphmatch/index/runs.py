"""Runs: stretches of one array, of any length, each of them some number's.

A new run goes to the end. A dropped one leaves a hole; when a third of the array is holes, the runs
are moved together. So neither an object nor a free list stands for a run.

Cost: the elements and 12 bytes a run, and room for a quarter more; an element is moved a few times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from semantic.jit import kernel

Array: TypeAlias = NDArray[Any]
Ids: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]
Scalar = TypeVar("Scalar", np.uint8, np.int32)
_Any = TypeVar("_Any", bound=np.generic)
_Value = TypeVar("_Value")

NONE = -1
"""The length of the run of a number that has none."""
_SMALLEST = 16


class Runs(Generic[Scalar]):
    """Runs of elements, by number.

    Parameters
    ----------
    kind
        What the elements are.

    Attributes
    ----------
    arena
        All elements, one run after the other, and room for more.
    start, length
        By number: where the run begins, how many elements it has (-1: there is none).
    end
        One element: where the last run ends. Whoever writes runs moves it.

    Examples
    --------
    >>> runs = Runs(np.int32)
    >>> runs.append(2, np.array([7, 8], np.int32))
    >>> runs.of(2)
    array([7, 8], dtype=int32)
    >>> runs.drop(np.array([2], np.int32))
    >>> runs.live
    0
    """

    def __init__(self, kind: type[Scalar]) -> None:
        self.arena: NDArray[Scalar] = np.zeros(_SMALLEST, kind)
        self.start = np.zeros(_SMALLEST, np.int64)
        self.length = np.full(_SMALLEST, NONE, np.int32)
        self.end = np.zeros(1, np.int64)
        self.dead = 0
        self._writable = True

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, in use or not."""
        return self.arena.nbytes + self.start.nbytes + self.length.nbytes

    @property
    def live(self) -> int:
        """How many elements belong to a number."""
        return int(self.end[0]) - self.dead

    def of(self, number: int) -> NDArray[Scalar]:
        """Return a number's run; it is not to be kept."""
        begin = int(self.start[number])
        return self.arena[begin : begin + int(self.length[number])]

    def make_room(self, elements: int, numbers: int) -> None:
        """See to it that so many more elements, and the numbers below, have a place."""
        end = int(self.end[0]) + elements
        if end > self.arena.size or numbers > self.start.size or not self._writable:
            self.arena = roomy(self.arena, end)
            self.start = roomy(self.start, numbers)
            self.length = roomy(self.length, numbers, NONE)
            self._writable = True

    def append(self, number: int, run: NDArray[Scalar]) -> None:
        """Give a number a run; it has none yet."""
        self.make_room(len(run), number + 1)
        begin = int(self.end[0])
        self.arena[begin : begin + len(run)] = run
        self.start[number], self.length[number] = begin, len(run)
        self.end[0] += len(run)

    def drop(self, numbers: Ids) -> None:
        """Take the runs of distinct numbers away, and give the space back when it is much."""
        self.make_room(0, 0)
        lost = int(self.length[numbers].sum())
        self.length[numbers] = NONE
        self.lose(lost)

    def lose(self, elements: int) -> None:
        """Note that so many elements are no longer some number's; move the rest together in time.

        That is when a third of the array is holes.
        """
        self.dead += elements
        end = int(self.end[0])
        if 3 * self.dead <= end or end <= _SMALLEST:
            return
        packed = np.zeros(max(_SMALLEST, self.live + self.live // 8), self.arena.dtype)
        self.make_room(0, 0)
        pack(self.arena, self.start, self.length, packed)
        self.end, self.arena, self.dead = np.array([self.live]), packed, 0

    def arrays(self, numbers: int) -> dict[str, Array]:
        """Return all that is to be saved, of the numbers below."""
        end = int(self.end[0])
        return {
            "arena": self.arena[:end],
            "start": self.start[:numbers],
            "length": self.length[:numbers],
        }

    @classmethod
    def of_arrays(cls, kind: type[Scalar], arrays: Mapping[str, Array]) -> Runs[Scalar]:
        """Return the runs that gave these arrays, which may be read-only."""
        runs = cls(kind)
        runs.arena = np.asarray(arrays["arena"])
        runs.start, runs.length = np.asarray(arrays["start"]), np.asarray(arrays["length"])
        runs.end[0], runs._writable = len(runs.arena), False
        runs.dead = len(runs.arena) - int(runs.length[runs.length > 0].sum())
        return runs


def roomy(array: NDArray[_Any], size: int, rest: int = 0) -> NDArray[_Any]:
    """Return an array of at least so many elements that begins with the given ones, to write on.

    Parameters
    ----------
    rest
        What the elements behind them are.

    Examples
    --------
    >>> roomy(np.arange(40), 41).size, roomy(np.arange(3), 2).size
    (50, 3)
    """
    if size <= len(array):
        return array if array.flags.writeable else array.copy()
    new = np.full(max(size, len(array) + len(array) // 4), rest, array.dtype)
    new[: len(array)] = array
    return new


def part(arrays: Mapping[str, _Value], name: str) -> dict[str, _Value]:
    """Return the arrays, or whatever it is, whose names begin with a part's, without that.

    Examples
    --------
    >>> part({"rows.end": np.arange(2), "terms.end": np.arange(3)}, "rows")
    {'end': array([0, 1])}
    """
    return {n[len(name) + 1 :]: a for n, a in arrays.items() if n.startswith(f"{name}.")}


@kernel
def pack(arena: Array, start: Longs, length: Ids, packed: Array) -> None:
    """Copy all runs, one after the other, and write down where they begin now."""
    end = 0
    for number in range(length.size):
        if length[number] >= 0:
            begin = start[number]
            start[number] = end
            for n in range(length[number]):
                packed[end + n] = arena[begin + n]
            end += length[number]
