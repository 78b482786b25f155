"""The rows of a constraint table that are not yet enough for a block; they are scanned one by one.

Cost: some 15 ns a row and match; an added row is copied about twice.
"""

from __future__ import annotations

import numpy as np

from graphmatch.index.table_rows import Ids, Rows, Values


class Tail:
    """Rows that wait, with room for more.

    Parameters
    ----------
    rows
        The first rows; they may be read-only, and are not copied before more are added.
    """

    def __init__(self, rows: Rows) -> None:
        self._room, self._count = rows, len(rows)

    @classmethod
    def empty(cls, intervals: int, ids: int) -> Tail:
        """Return a tail of no rows with so many columns."""
        return cls(_room(0, intervals, ids))

    def __len__(self) -> int:
        """Return how many rows there are."""
        return self._count

    @property
    def nbytes(self) -> int:
        """How much memory the rows and the room for more take, in bytes."""
        return self._room.lows.nbytes + self._room.highs.nbytes + self._room.ids.nbytes

    def rows(self) -> Rows:
        """Return the rows."""
        return self._room[: self._count]

    def widen(self, intervals: int, ids: int) -> None:
        """Make it so many columns; the rows do not constrain the new ones."""
        self._room = self.rows().widened(intervals, ids)

    def append(self, rows: Rows, most: int) -> None:
        """Add rows; `most` is how many there will be before they are taken away."""
        start, end = self._count, self._count + len(rows)
        if start == end:
            return  # also when the rows are mapped from a file
        if end > len(self._room):
            old = self.rows()
            intervals, ids = old.lows.shape[1], old.ids.shape[1]
            self._room = _room(max(end, min(2 * start, most)), intervals, ids)
            self._room.put(slice(start), old)
        self._room.put(slice(start, end), rows)
        self._count = end

    def match(self, values: Values, owners: Ids) -> Ids:
        """Return the owners of the rows that are met; `owners` has one a row."""
        from graphmatch.index import table_kernels

        tail, found = self.rows().frozen(), np.empty(self._count, np.int32)
        starts, ranges = values.interval_starts, (values.interval_values, values.highs)
        id_starts, ids = values.id_starts, values.id_values
        bounds = tail.lows, tail.highs, tail.ids
        count = table_kernels.scan(*bounds, starts, ranges, id_starts, ids, found)
        return found[: table_kernels.owners_of(found, count, owners)]


def _room(rows: int, intervals: int, ids: int) -> Rows:
    bounds = rows, intervals
    return Rows(np.empty(bounds), np.empty(bounds), np.empty((rows, ids), np.int32))
