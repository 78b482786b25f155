"""The rows of a constraint table at one time, to be read when somebody asks for them.

Blocks are never changed, and what waits in the tail is only added to, so the rows that were there
stay readable when the table has changed.

Cost: none before rows are read; then some microseconds a column, and some nanoseconds a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphmatch.index.table_block import Block
from graphmatch.index.table_rows import Ids, Rows


@dataclass(frozen=True, slots=True)
class Written:
    """What a table held.

    Parameters
    ----------
    blocks, tail
        All rows, those of each block and those behind them.
    columns
        How many columns of intervals and of ids there were.
    """

    blocks: tuple[Block, ...]
    tail: Rows
    columns: tuple[int, int]

    def rows_at(self, slots: Ids) -> Rows:
        """Return the rows of some slots as they were written, dead or not."""
        intervals, ids = self.columns
        rows = Rows(
            np.empty((slots.size, intervals)),
            np.empty((slots.size, intervals)),
            np.empty((slots.size, ids), np.int32),
        )
        start = 0
        for block in self.blocks:
            here = np.flatnonzero((slots >= start) & (slots < start + len(block)))
            if here.size:
                rows.put(here, block.rows_at(slots[here] - start, intervals, ids))
            start += len(block)
        here = np.flatnonzero(slots >= start)
        rows.put(here, self.tail[slots[here] - start])
        return rows
