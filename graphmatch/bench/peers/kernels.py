"""The compiled loop of the peer `scan`.

It gets flat arrays; the peer checks what goes in. Importing this module imports numba; with
``NUMBA_DISABLE_JIT=1`` the function runs as plain Python.
"""

from __future__ import annotations

from typing import TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[np.int32]

BLOCK = 4096
"""How many rows of a column are looked at before the next column: they fit into a cache."""


@numba.njit(cache=True)
def scan(low: Ids, high: Ids, values: Ids, found: Ids) -> int:
    """Note the rows all of whose intervals have the values in them; return how many.

    `low` and `high` have shape ``(columns, rows)``, `found` has room for all rows.
    """
    columns, rows = low.shape
    count = 0
    left = np.empty(BLOCK, np.int32)
    for start in range(0, rows, BLOCK):
        end = min(start + BLOCK, rows)
        value, lows, highs = values[0], low[0], high[0]
        alive = 0
        for row in range(start, end):
            left[alive] = row
            alive += (lows[row] <= value) & (value <= highs[row])
        for column in range(1, columns):
            if alive == 0:
                break
            value, lows, highs = values[column], low[column], high[column]
            kept = 0
            for place in range(alive):
                row = left[place]
                left[kept] = row
                kept += (lows[row] <= value) & (value <= highs[row])
            alive = kept
        for place in range(alive):
            found[count] = left[place]
            count += 1
    return count
