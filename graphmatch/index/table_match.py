"""The compiled loop that matches one block of a constraint table.

It is all that a match of a block takes, in one call: to hand arrays over costs more than most of
the loops.

Importing this module imports numba; with ``NUMBA_DISABLE_JIT=1`` the functions run as plain Python.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

from graphmatch.index.table_choice import choose_ids, choose_intervals
from graphmatch.index.table_kernels import (
    keep_ids,
    keep_intervals,
    keep_several,
    owners_of,
    survivors,
)

Ids: TypeAlias = NDArray[np.int32]

CHECKS_16, CHECKS_32, CHECKS_64, CHECKS_IDS = 1, 2, 4, 8
"""Which records of a block are to be looked at: the bitmaps do not decide alone."""


@numba.njit(cache=True, nogil=True)
def match_block(
    size: int, checks: int, block: Any, values: Any, written: Any, owners: Ids
) -> tuple[int, int, int]:
    """Write the owners of the rows that are met; see `graphmatch.index.table_block`.

    Parameters
    ----------
    size, checks
        How many rows there are, and what is to be checked on records.
    block
        Bitmaps and their counts; directory and numbers of columns of intervals, those of columns
        of ids; records by width, those of ids, and the open columns of each.
    values
        Starts, low and high ends of intervals; starts and values of ids.
    written
        Spans, chosen bitmaps, codes, rows: what is written on.

    Returns
    -------
    count, anded, left
        How many rows are met, how many words were ANDed, how many rows were left of it.
    """
    bits, counts, intervals, numbers, ids, own = block[:6]
    starts, lows, highs, id_starts, id_values = values
    spans, chosen, codes, rows = written
    used = 0
    if intervals.shape[0]:
        used = choose_intervals(
            intervals, numbers, counts, starts, (lows, highs), codes, spans, chosen
        )
    if ids.shape[0] and used >= 0:
        used = choose_ids(ids, own, counts, id_starts, id_values, spans, chosen, used)
    if used < 0:
        return 0, 0, 0
    left, anded = survivors(bits, size, spans, used, chosen, rows)
    count = left
    if count and checks & CHECKS_IDS:
        count = keep_ids(block[9], block[13], id_starts, id_values, rows, count)
    several = False
    for column in range(starts.size - 1):
        several |= starts[column + 1] - starts[column] > 1
    if count and checks & CHECKS_16:
        count = keep_intervals(block[6], block[10], starts, codes, rows, count, owners)
        if several:
            count = keep_several(block[6], block[10], starts, codes, rows, count)
    if count and checks & CHECKS_32:
        count = keep_intervals(block[7], block[11], starts, codes, rows, count, owners)
        if several:
            count = keep_several(block[7], block[11], starts, codes, rows, count)
    if count and checks & CHECKS_64:
        count = keep_intervals(block[8], block[12], starts, codes, rows, count, owners)
        if several:
            count = keep_several(block[8], block[12], starts, codes, rows, count)
    return owners_of(rows, count, owners), anded, left
