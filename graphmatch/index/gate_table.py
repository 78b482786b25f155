"""A table of crowded gates: which columns it has, and what a root's values meet in it.

Columns come when a row asks for them. A value that may be off, or a row with a bound that may be
off, is met for certain only when the value is farther inside the bounds than both may be off.

Cost: that of the table; 0.1 µs a row and column that is compared again because something is off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.gathering import Gathered
from graphmatch.index.paths import Paths
from graphmatch.index.runs import part
from graphmatch.index.shapes import EXISTS, IDENTITY, Asked, near, path_of
from graphmatch.index.stars import WALK
from graphmatch.index.table import ConstraintTable, Found
from graphmatch.index.table_rows import Rows
from graphmatch.index.terms import Ids

_NO_PATHS = np.empty((0, 3), np.int32)


class GateTable:
    """A table, and what its columns are.

    Attributes
    ----------
    intervals, ids
        Property, direction and kind by column, shape (columns, 3); the property of a column that
        is several steps away is a path (`graphmatch.index.paths`).
    """

    def __init__(self) -> None:
        self.rows = ConstraintTable(0, 0)
        self.intervals = self.ids = _NO_PATHS
        self._columns: dict[int, int] = {}
        self._keys: dict[int, int] = {}
        self._chosen: set[int] = set()

    def __len__(self) -> int:
        return len(self.rows)

    # -- columns ----------------------------------------------------------------------------

    def columns(self, asked: Asked, variables: Sequence[int]) -> NDArray[np.int64]:
        """Return the column of each row's leaves (see `tabled.Shape`): shape (rows, leaves).

        Parameters
        ----------
        variables
            By leaf, its variable, -1 for none.
        """
        first = asked.keys[0]
        if (asked.keys == first).all():  # as usual
            known = np.array([self._column(key) for key in first.tolist()], np.int64)
            columns: NDArray[np.int64] = np.broadcast_to(known, asked.keys.shape)
        else:
            keys, inverse = np.unique(asked.keys, return_inverse=True)
            known = np.array([self._column(key) for key in keys.tolist()], np.int64)
            columns = known[inverse].reshape(asked.keys.shape)
        of_variables = columns[:, [n for n, variable in enumerate(variables) if variable >= 0]]
        for column in np.unique(of_variables[of_variables < 0]).tolist():
            if self.ids[-1 - column, 2] == IDENTITY:
                self._chosen.add(-1 - column)
        return columns

    def keys(self, columns: tuple[int, ...]) -> list[int]:
        """Return the keys of columns (`graphmatch.index.shapes`)."""
        return [self._keys[column] for column in columns]

    def kind(self, columns: tuple[int, ...]) -> tuple[int, ...]:
        """Return the keys of columns, in order: what rows have in common that share a table."""
        return tuple(sorted(self.keys(columns)))

    def _column(self, key: int) -> int:
        column = self._columns.get(key)
        if column is None:
            if path_of(key)[2] <= EXISTS:
                column = -1 - self.rows.add_id_column()
            else:
                column = self.rows.add_interval_column()
            self._know(key, column)
        return column

    def _know(self, key: int, column: int) -> None:
        """Note what a new column is; those of each sort come in their order."""
        path = np.array([path_of(key)], np.int32)
        if column < 0:
            self.ids = np.concatenate([self.ids, path])
            if path[0, 1] == WALK and path[0, 2] == IDENTITY:
                self._chosen.add(-1 - column)
        else:
            self.intervals = np.concatenate([self.intervals, path])
        self._columns[key], self._keys[column] = column, key

    # -- saving -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is to be saved; `of_arrays` makes the same table of it."""
        rows = {f"rows.{name}": array for name, array in self.rows.arrays().items()}
        return {
            **rows,
            "columns": np.array([*self._columns.items()], np.int64).reshape(-1, 2),
            "chosen": np.array(sorted(self._chosen), np.int32),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> GateTable:
        """Return the table that gave these arrays."""
        table = cls()
        table.rows = ConstraintTable.of_arrays(part(arrays, "rows"))
        for key, column in arrays["columns"].tolist():
            table._know(key, column)
        table._chosen.update(arrays["chosen"].tolist())
        return table

    # -- rows -------------------------------------------------------------------------------

    def dense(self, asked: Asked, columns: NDArray[np.int64]) -> Rows:
        """Return rows as the table wants them, for the columns of their leaves."""
        intervals, ids = self.rows.columns
        count = len(columns)
        lows, highs = np.full((count, intervals), np.nan), np.full((count, intervals), np.nan)
        own = np.full((count, ids), -1, np.int32)
        for n, column in enumerate(columns.T):
            some = np.flatnonzero(column >= 0)
            lows[some, column[some]] = asked.lows[some, n]
            highs[some, column[some]] = asked.highs[some, n]
            some = np.flatnonzero(column < 0)
            own[some, -1 - column[some]] = asked.ids[some, n]
        return Rows(lows, highs, own)

    def held(self, slot: int, columns: tuple[int, ...], paths: Paths) -> list[int]:
        """Return the ids that a row mentions: properties, and those it asks for."""
        (ids,) = self.rows.rows_at(np.array([slot], np.int32)).ids.tolist()
        held: list[int] = []
        for column in columns:
            path = self.intervals[column] if column >= 0 else self.ids[-1 - column]
            if path[1] == WALK:
                held += paths.properties(int(path[0]))
            elif path[0] >= 0:
                held.append(int(path[0]))
            if column < 0 and path[2] == IDENTITY:
                held.append(ids[-1 - column])
        return held

    # -- matching ---------------------------------------------------------------------------

    def match(self, root: Gathered) -> Found:
        """Return the rows that a root's values meet, or may meet."""
        return self.rows.match(root.values)

    def has_choice(self, root: Gathered) -> bool:
        """Whether there are several values of which a row's variable may be some only.

        Then solutions depend on what the row asks for. That may be so, too, when the variable is
        on the way to a constant.
        """
        starts = root.values.interval_starts.tolist()
        if any(end - start > 1 for start, end in pairwise(starts)):
            return True
        starts = root.values.id_starts.tolist()
        return any(starts[n + 1] - starts[n] > 1 for n in self._chosen)

    def doubtful(self, slots: Ids, inexact: NDArray[np.bool_], root: Gathered) -> NDArray[np.bool_]:
        """Return of which rows that are met one bound or another is not sure of a value.

        Parameters
        ----------
        inexact
            By row, whether its bounds may be off.
        """
        doubtful = np.zeros(len(slots), np.bool_)
        rows = self.rows.rows_at(slots)
        starts, values, ends = (
            root.values.interval_starts,
            root.values.interval_values,
            root.values.highs,
        )
        for column in range(len(self.intervals)):
            low, high = rows.lows[:, column], rows.highs[:, column]
            if np.isnan(low).all():
                continue
            surely_above = low + np.where(inexact, near(low), 0.0)
            surely_below = high - np.where(inexact, near(high), 0.0)
            for value in range(starts[column], starts[column + 1]):
                met = (low <= ends[value]) & (values[value] <= high)
                sure = (surely_above <= values[value]) & (ends[value] <= surely_below)
                doubtful |= met & ~sure
        return doubtful
