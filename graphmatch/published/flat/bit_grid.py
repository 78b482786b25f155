"""Ranges of numbers in a grid of cells, as GEM has them, with a bit array a cell, as CTPS has them.

A range is in the cell of its ends: the column of the low one, the row of the high one. Seen from
the box of a value, most cells hold for it, or do not, as a whole; ends are compared in its own row
and column only (CTPS, sections 4.2 and 5.3).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from bitarray import bitarray
from numpy.typing import NDArray

from graphmatch.published.base import Interval, Tally, cell_of
from graphmatch.published.flat.bits import BitLists
from graphmatch.published.flat.buckets import Values
from graphmatch.published.jit import kernel

Bytes: TypeAlias = NDArray[np.uint8]


class Grid:
    """The ranges of an attribute in T x T cells: ``GEMIndex``.

    Parameters
    ----------
    cells
        T: how many boxes the domain has.

    Examples
    --------
    Section 4.2: of 5 boxes up to 100, [0, 20] is in cell (1, 0).

    >>> grid = Grid((0.0, 100.0), 5, 8)
    >>> grid.add(0, Interval(0, 20))
    >>> list(grid.lists.of)
    [(1, 0)]
    """

    def __init__(self, domain: tuple[float, float], cells: int, length: int) -> None:
        self._domain, self._cells = domain, cells
        self.lists = BitLists[tuple[int, int]](length)
        self._lows: Values = np.empty(length)
        self._highs: Values = np.empty(length)

    def __len__(self) -> int:
        return len(self.lists)

    @property
    def nbytes(self) -> int:
        """How large it is."""
        return self.lists.nbytes + self._lows.nbytes + self._highs.nbytes

    def resize(self, length: int) -> None:
        """Make room for more numbers."""
        self.lists.resize(length)
        self._lows = np.resize(self._lows, length)
        self._highs = np.resize(self._highs, length)

    def add(self, number: int, interval: Interval) -> None:
        """Put a range into its cell (Algorithm 5, insertGEMConstraint)."""
        self._lows[number], self._highs[number] = interval
        self.lists.add(self._cell(interval), number)

    def discard(self, number: int, interval: Interval) -> None:
        """Take a range out of its cell."""
        self.lists.discard(self._cell(interval), number)

    def keep(self, sid: bitarray, value: float, tally: Tally) -> None:
        """Leave of the numbers here only those whose range has the value (Algorithm 9)."""
        r = self._box(value)
        for (y, x), cell in self.lists.of.items():
            tally.probes += 1
            if y < r or x > r:  # parts A and B
                sid &= ~cell
            elif (y == r or x == r) and (live := sid & cell).any():  # parts C, D and E
                tally.gates += 1
                tally.candidates += _compare(
                    np.frombuffer(memoryview(sid), np.uint8),
                    np.frombuffer(memoryview(live), np.uint8),
                    self._lows,
                    self._highs,
                    (x == r, y == r),
                    value,
                )

    def _cell(self, interval: Interval) -> tuple[int, int]:
        low, high = interval
        return self._box(high), self._box(low)

    def _box(self, value: float) -> int:
        """Return the box of a number; those beyond the domain are in the first or last."""
        return cell_of(value, self._domain, self._cells)


@kernel
def _compare(
    left: Bytes, cell: Bytes, lows: Values, highs: Values, tested: tuple[bool, bool], value: float
) -> int:
    """Clear the numbers of a cell whose tested ends exclude the value: how many were compared."""
    low, high = tested
    compared = 0
    for byte in range(cell.size):
        if not cell[byte]:
            continue
        for bit in range(8):
            if cell[byte] >> bit & 1:
                compared += 1
                number = 8 * byte + bit
                if (low and lows[number] > value) or (high and highs[number] < value):
                    left[byte] ^= 1 << bit
    return compared
