"""What a constraint table is measured against: a compiled scan that stops at the first failure.

Columns lie one after the other. Of each 64k rows the first column keeps those that it meets, the
next one looks at these, and so on; there is no branch in a column's loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

from graphmatch.index.table import Values

Ids: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float64]


@numba.njit
def _scan(
    lows: Floats,
    highs: Floats,
    ids: Ids,
    starts: Ids,
    points: Floats,
    id_starts: Ids,
    id_points: Ids,
    met: Ids,
) -> int:
    size, count = met.size, 0
    rows = np.empty(65536, np.int32)
    for start in range(0, size, 65536):
        left = min(size - start, 65536)
        for index in range(left):
            rows[index] = start + index
        for column in range(ids.shape[0]):
            kept, asked = 0, ids[column]
            for index in range(left):
                number = asked[rows[index]]
                good = number < 0
                for place in range(id_starts[column], id_starts[column + 1]):
                    good |= id_points[place] == number
                rows[kept] = rows[index]
                kept += good
            left = kept
        for column in range(lows.shape[0]):
            kept, low, high = 0, lows[column], highs[column]
            for index in range(left):
                row = rows[index]
                good = np.isnan(low[row])
                for place in range(starts[column], starts[column + 1]):
                    good |= (low[row] <= points[place]) & (points[place] <= high[row])
                rows[kept] = row
                kept += good
            left = kept
        met[count : count + left] = rows[:left]
        count += left
    return count


def columnar_scan(lows: Floats, highs: Floats, ids: Ids) -> Callable[[Values], Ids]:
    """Return what says which rows, of shapes ``(n, k)``, ``(n, k)`` and ``(n, m)``, are met."""
    columns = (np.ascontiguousarray(array.T) for array in (lows, highs, ids))
    bounds = tuple(columns)
    met = np.empty(len(ids), np.int32)

    def scan(values: Values) -> Ids:
        points = values.interval_starts, values.interval_values
        count = _scan(*bounds, *points, values.id_starts, values.id_values, met)
        return met[:count]

    return scan
