"""One block of a constraint table: rows that came together, never changed.

For each column and each cell of its values one bitmap holds the rows that a value in that cell may
meet: those whose interval intersects the cell, or whose id falls into it, or that do not constrain
the column. One more bitmap holds the rows that do not constrain the column, for when there is no
value. Candidates are the AND of one bitmap a column; what the bitmaps leave open is checked on
records, a row's bounds side by side in the narrowest integers that are exact
(`graphmatch.index.codes`). A column that no row constrains is not held at all.

Cost: with 10 columns of intervals and 32-bit bounds 80 bytes of records and 25 of bitmaps a row.

Source: bitmaps on ranges are those of O'Neil, Quass, Improved query performance with variant
indexes, SIGMOD 1997, and Chan, Ioannidis, An efficient bitmap encoding scheme for selection
queries, SIGMOD 1999, turned round: there, values are stored and ranges are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.codes import decode
from graphmatch.index.table_rows import Floats, Ids, Rows, Values

Array: TypeAlias = NDArray[Any]

_MOST_CELLS = 64
"""A column of intervals has no more cells."""


@dataclass(frozen=True, slots=True)
class Room:
    """What one match writes into; each has its own, so that threads do not meet.

    Parameters
    ----------
    spans, chosen
        Which bitmaps are ANDed: see `graphmatch.index.table_choice`.
    codes
        The codes of the values, shape ``(2, values)``.
    rows
        The rows that are left, shape ``(rows of the largest block + 1,)``.
    """

    spans: Ids
    chosen: Ids
    codes: NDArray[np.int64]
    rows: Ids

    @classmethod
    def of(cls, values: Values, rows: int) -> Room:
        """Return room for a match of these values with at most so many rows."""
        columns = values.interval_starts.size + values.id_starts.size - 2
        points = values.interval_values.size
        cells = points if values.interval_ends is None else _MOST_CELLS * columns
        return cls(
            np.empty((columns, 4), np.int32),
            np.empty(columns + cells + values.id_values.size, np.int32),
            np.empty((2, points), np.int64),
            np.empty(rows + 1, np.int32),
        )


@dataclass(frozen=True, slots=True)
class Block:
    """The arrays of a block; all are read-only, and may be mapped from a file.

    Parameters
    ----------
    size
        The number of rows, shape ``(1,)``.
    bits, counts
        All bitmaps, shape ``(bitmaps, words)``, and how many rows each holds.
    intervals, numbers
        The directory of interval columns (see `graphmatch.index.table_choice`), and for each
        column the number that its codes count from, then its cuts.
    ids, own
        The directory of id columns, and the ids that have cells of their own, in order.
    records16, records32, records64, records_ids
        A row's codes: of all low ends, then of all high ends; and its ids.
    columns16, columns32, columns64, columns_ids
        Which columns of the table the records hold.
    open16, open32, open64, open_ids
        The same, with -1 where the bitmaps alone decide.
    """

    size: Ids
    bits: NDArray[np.uint64]
    counts: Ids
    intervals: Ids
    numbers: Floats
    ids: Ids
    own: Ids
    records16: NDArray[np.int16]
    records32: NDArray[np.int32]
    records64: NDArray[np.int64]
    records_ids: Ids
    columns16: Ids
    columns32: Ids
    columns64: Ids
    columns_ids: Ids
    open16: Ids
    open32: Ids
    open64: Ids
    open_ids: Ids
    _length: int = field(init=False)
    _checks: int = field(init=False)
    _arrays: tuple[Array, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Make all arrays plain and read-only, so that each loop is compiled once."""
        for name in ARRAYS:
            array = np.asarray(getattr(self, name)).view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        opened = self.open16, self.open32, self.open64, self.open_ids
        checks = sum(1 << n for n, left in enumerate(opened) if (left >= 0).any())
        object.__setattr__(self, "_length", int(self.size[0]))
        object.__setattr__(self, "_checks", checks)
        directories = self.intervals, self.numbers, self.ids, self.own
        records = self.records16, self.records32, self.records64, self.records_ids
        arrays = self.bits, self.counts, *directories, *records, *opened
        object.__setattr__(self, "_arrays", arrays)

    def __len__(self) -> int:
        """Return how many rows there are."""
        return self._length

    @property
    def nbytes(self) -> int:
        """How much memory the arrays take, in bytes."""
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, Array]:
        """Return all arrays by name."""
        return {name: getattr(self, name) for name in ARRAYS}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> Block:
        """Return the block that gave these arrays; they are not copied."""
        return cls(**{name: arrays[name] for name in ARRAYS})

    def groups(self) -> tuple[tuple[Array, Ids, Ids], ...]:
        """Return records, columns and open columns of intervals, by width."""
        return (
            (self.records16, self.columns16, self.open16),
            (self.records32, self.columns32, self.open32),
            (self.records64, self.columns64, self.open64),
        )

    def match(self, values: Values, room: Room, owners: Ids) -> tuple[int, int, int]:
        """Write into ``room.rows`` the owners of the rows that are met.

        Returns how many these are, how many words were ANDed, and how many rows were left of it.
        """
        from graphmatch.index.table_match import match_block

        asked = values.interval_starts, values.interval_values, values.highs
        ids = values.id_starts, values.id_values
        written = room.spans, room.chosen, room.codes, room.rows
        found: tuple[int, int, int] = match_block(
            self._length, self._checks, self._arrays, asked + ids, written, owners
        )
        return found

    def rows(self, intervals: int, ids: int) -> Rows:
        """Return the rows as they were written, with so many columns."""
        return self.rows_at(np.arange(len(self), dtype=np.int32), intervals, ids)

    def rows_at(self, places: Ids, intervals: int, ids: int) -> Rows:
        """Return some rows as they were written, with so many columns."""
        size = places.size
        lows, highs = np.full((size, intervals), np.nan), np.full((size, intervals), np.nan)
        found = np.full((size, ids), -1, np.int32)
        found[:, self.columns_ids] = self.records_ids[places]
        entries = {int(entry[0]): entry for entry in self.intervals}
        for records, columns, _ in self.groups():
            width = columns.size
            for place, column in enumerate(columns.tolist()):
                _, null, _, _, start, coding = entries[column].tolist()
                base = float(self.numbers[start])
                lows[:, column] = decode(records[places, place], coding, base)
                highs[:, column] = decode(~records[places, width + place], coding, base)
                if null >= 0:
                    bits = self.bits[null].view(np.uint8)
                    free = bits[places >> 3] >> (places & 7).astype(np.uint8) & 1 == 1
                    lows[free, column] = highs[free, column] = np.nan
        return Rows(lows, highs, found)


ARRAYS = tuple(entry.name for entry in fields(Block) if entry.init)
"""The names of a block's arrays."""
