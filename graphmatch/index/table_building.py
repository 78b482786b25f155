"""Building a block of a constraint table: cuts, bitmaps, codes, column by column.

Cost: about 20 ns a row and column; a copy of the bitmaps while they are put together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.codes import TYPES, WIDTHS, coding_of, encode
from graphmatch.index.cuts import next_after, quantile_cuts
from graphmatch.index.table_block import Array, Block
from graphmatch.index.table_rows import Floats, Ids, Rows

BITMAPS = 20
"""So many bitmaps a column of intervals has at most, that of unconstrained rows included."""

OWN_CELLS, FREQUENT, HASHED = 63, 31, 32
"""Up to so many ids have cells of their own; of more, the most frequent do, others are hashed."""


def build(rows: Rows) -> Block:
    """Return a block of rows."""
    return _Building(rows).block()


class _Building:
    """A block in the making: bitmaps and directories grow column by column."""

    def __init__(self, rows: Rows) -> None:
        self._size = len(rows)
        self._words = (self._size + 63) // 64
        self._bits: list[NDArray[np.uint64]] = []
        self._bitmaps = 0
        self._numbers: list[float] = []
        self._own: list[int] = []
        self._intervals: list[list[int]] = []
        self._ids: list[list[int]] = []
        self._codes: tuple[list[tuple[int, bool, Array, Array]], ...] = ([], [], [])
        self._id_columns: list[tuple[int, bool, Ids]] = []
        for column in range(rows.lows.shape[1]):
            lows = np.ascontiguousarray(rows.lows[:, column])
            if not np.isnan(lows).all():
                self._add_intervals(column, lows, np.ascontiguousarray(rows.highs[:, column]))
        for column in range(rows.ids.shape[1]):
            ids = np.ascontiguousarray(rows.ids[:, column])
            if (ids >= 0).any():
                self._add_ids(column, ids)

    def _add_intervals(self, column: int, lows: Floats, highs: Floats) -> None:
        from graphmatch.index import table_cells

        held = ~np.isnan(lows)
        full = bool(held.all())
        kept = (lows, highs) if full else (lows[held], highs[held])
        coding, base = coding_of(*kept)
        cuts = quantile_cuts(*kept, BITMAPS if full else BITMAPS - 1)
        cells = np.empty((cuts.size + 1, self._words), np.uint64)
        null = np.empty(self._words, np.uint64)
        exact = table_cells.fill_intervals(lows, highs, next_after(highs), cuts, cells, null)
        entry = self._file(column, cells, null, full)
        self._intervals.append([*entry, len(self._numbers), coding])
        self._numbers += [base, *cuts.tolist()]
        if not full:
            lows, highs = np.where(held, lows, -np.inf), np.where(held, highs, np.inf)
        begins, ends = encode(lows, coding, base), encode(highs, coding, base)
        if not full:
            limits = np.iinfo(begins.dtype)
            begins[~held], ends[~held] = limits.min, limits.max
        self._codes[WIDTHS[coding]].append((column, exact, begins, ~ends))

    def _add_ids(self, column: int, ids: Ids) -> None:
        from graphmatch.index import table_cells

        held, counts = np.unique(ids[ids >= 0], return_counts=True)
        own, hashed = held, 0
        if held.size > OWN_CELLS:
            frequent = np.argsort(-counts, kind="stable")[:FREQUENT]
            own, hashed = np.sort(held[frequent]), HASHED
        cells = np.zeros((own.size + hashed, self._words), np.uint64)
        null = np.empty(self._words, np.uint64)
        table_cells.fill_ids(ids, own, cells, null)
        entry = self._file(column, cells, null, bool((ids >= 0).all()))
        self._ids.append([*entry, len(self._own), own.size])
        self._own += own.tolist()
        self._id_columns.append((column, not hashed, ids))

    def _file(
        self, column: int, cells: NDArray[np.uint64], null: NDArray[np.uint64], full: bool
    ) -> list[int]:
        """Keep a column's bitmaps; return the first part of its entry in a directory."""
        entry = [column, -1, self._bitmaps, cells.shape[0]]
        self._bits.append(cells)
        self._bitmaps += cells.shape[0]
        if not full:
            entry[1] = self._bitmaps
            self._bits.append(null.reshape(1, -1))
            self._bitmaps += 1
        return entry

    def block(self) -> Block:
        """Return what was made."""
        bits = np.concatenate([np.empty((0, self._words), np.uint64), *self._bits])
        self._bits.clear()
        groups: dict[str, Array] = {}
        for name, integers, group in zip(("16", "32", "64"), TYPES, self._codes, strict=True):
            width = len(group)
            records = np.empty((self._size, 2 * width), integers)
            for place, (_, _, begins, ends) in enumerate(group):
                records[:, place], records[:, width + place] = begins, ends
            groups["records" + name] = records
            groups["columns" + name] = np.array([entry[0] for entry in group], np.int32)
            groups["open" + name] = _open(group)
        records_ids = np.empty((self._size, len(self._id_columns)), np.int32)
        for place, (_, _, ids) in enumerate(self._id_columns):
            records_ids[:, place] = ids
        return Block(
            size=np.array([self._size], np.int32),
            bits=bits,
            counts=np.bitwise_count(bits).sum(1).astype(np.int32),
            intervals=np.array(self._intervals, np.int32).reshape(-1, 6),
            numbers=np.array(self._numbers, np.float64),
            ids=np.array(self._ids, np.int32).reshape(-1, 6),
            own=np.array(self._own, np.int32),
            records_ids=records_ids,
            columns_ids=np.array([entry[0] for entry in self._id_columns], np.int32),
            open_ids=_open(self._id_columns),
            **groups,
        )


def _open(group: Sequence[tuple[Any, ...]]) -> Ids:
    """Return which columns of a group are not decided by their bitmaps; -1 for the others."""
    return np.array([-1 if exact else column for column, exact, *_ in group], np.int32)
