"""Postings: which subscriptions have something, found by what they have.

A posting is one number: what is looked up, above the number of who has it. Postings stand sorted,
in a few levels; new ones become a level, which is joined with those that are not larger. Nothing
is kept before it is first asked for, and what goes is not looked up: whoever asks checks what is
found. When as much has come and gone as there was, all is made anew.

Cost: 8 bytes a posting once asked for. A change costs nothing until something is asked, then its
share of the sorting. A look-up costs a binary search in each level and what is found.

Source: the levels are the logarithmic method of Bentley and Saxe, Decomposable searching
problems I, Journal of Algorithms 1, 1980.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

import numpy as np

from graphmatch.index.record_kernels import NUMBER
from graphmatch.index.runs import Ids, Longs


class Postings:
    """Postings that are made when they are first asked for.

    Parameters
    ----------
    everybody
        Returns all numbers.
    postings_of
        Returns the postings of some numbers, in any order.

    Examples
    --------
    >>> has = {4: 70, 5: 71, 6: 70}
    >>> def postings_of(numbers):
    ...     return np.array([has[n] << NUMBER | n for n in numbers.tolist()])
    >>> postings = Postings(lambda: np.array(list(has), np.int32), postings_of)
    >>> postings.candidates(np.array([70]))
    array([4, 6], dtype=int32)
    >>> has[5] = 70
    >>> postings.changed(np.array([5], np.int32))
    >>> postings.candidates(np.array([70]))
    array([4, 5, 6], dtype=int32)
    """

    def __init__(self, everybody: Callable[[], Ids], postings_of: Callable[[Ids], Longs]) -> None:
        self._everybody, self._postings_of = everybody, postings_of
        self._levels: list[Longs] | None = None
        self._waiting = array("i")
        self._changes = self._size = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all postings; 0 before something was asked."""
        levels = sum(level.nbytes for level in self._levels or ())
        return levels + len(self._waiting) * self._waiting.itemsize

    def changed(self, numbers: Ids) -> None:
        """Note that numbers have something else than before, or are new."""
        if self._levels is not None:
            self._waiting.frombytes(numbers.tobytes())
            self.gone(len(numbers))

    def gone(self, count: int) -> None:
        """Note that so many numbers are no longer there."""
        self._changes += count
        if self._changes >= self._size:
            self._levels, self._waiting, self._changes = None, array("i"), 0

    def candidates(self, keys: Longs) -> Ids:
        """Return, ascending, the numbers that have one of some keys, and perhaps some that had.

        Parameters
        ----------
        keys
            What is looked up: distinct, 0 or more.
        """
        found = [_within(level, keys) for level in self._current()]
        return np.unique(np.concatenate(found) & (1 << NUMBER) - 1).astype(np.int32)

    def _current(self) -> list[Longs]:
        if self._levels is None:
            numbers = self._everybody()
            self._levels, self._size = [], len(numbers)
        else:
            numbers = np.array(self._waiting, np.int32)
        self._waiting = array("i")
        if len(numbers) or not self._levels:
            self._add(self._levels, _sorted(self._postings_of(numbers)))
        return self._levels

    def _add(self, levels: list[Longs], postings: Longs) -> None:
        while levels and len(levels[-1]) <= 2 * len(postings):
            postings = _sorted(np.concatenate((levels.pop(), postings)))
        levels.append(postings)


def _sorted(postings: Longs) -> Longs:
    """Return distinct postings, ascending."""
    postings = np.sort(postings)
    new = np.ones(len(postings), np.bool_)
    np.not_equal(postings[1:], postings[:-1], out=new[1:])
    distinct: Longs = postings[new]
    return distinct


def _within(level: Longs, keys: Longs) -> Longs:
    """Return the postings of some keys."""
    starts = np.searchsorted(level, keys << NUMBER)
    counts = np.searchsorted(level, keys + 1 << NUMBER) - starts
    before = np.cumsum(counts) - counts
    places: Longs = np.repeat(starts - before, counts) + np.arange(counts.sum())
    return level[places]
