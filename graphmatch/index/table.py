"""Which of a million rows of constraints are met by a publication's values.

A row constrains some columns of the table: an *interval* column to a closed range of numbers, an
*id* column to one term. It is met when every column that it constrains has a value that satisfies
the constraint. Rows are kept in blocks of bitmaps (`graphmatch.index.table_block`). New rows go to
a tail, which is scanned plainly; a full tail becomes a block, and blocks of like size are joined
and built anew, with cuts that fit what they now hold, up to `BLOCK` rows.

Cost: a row is built into a block some eight times, or once when many come together. A match costs
one AND of 64 rows a column, less where few rows are left, and a check of what is left
(docs/decisions/constraint-tables.md).

Source: the joining of blocks is the logarithmic method of Bentley and Saxe, Decomposable searching
problems I, Journal of Algorithms 1, 1980.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.table_block import Block, Room
from graphmatch.index.table_building import build
from graphmatch.index.table_rows import Floats, Ids, Rows, Values
from graphmatch.index.table_tail import Tail
from graphmatch.index.table_written import Written

Array: TypeAlias = NDArray[Any]

__all__ = ["ConstraintTable", "Found", "Values"]

_TYPES = (np.dtype(np.int32), np.dtype(np.int32), np.dtype(np.float64), np.dtype(np.float64))

TAIL = 1024
"""So many rows make a block."""

BLOCK = 2**18
"""So many rows a block has at most."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a match found, and what it took.

    Parameters
    ----------
    owners
        The owners of the rows that are met, in no order: shape ``(matches,)``.
    anded
        How many words of bitmaps were read.
    checked
        How many rows the bitmaps left.
    scanned
        How many rows of the tail were looked at.
    """

    owners: Ids
    anded: int
    checked: int
    scanned: int


class ConstraintTable:
    """Rows of constraints on intervals and ids.

    Several threads may match at once while nobody changes the table.

    Parameters
    ----------
    intervals, ids
        How many columns of each kind there are at first.

    Attributes
    ----------
    generation
        Goes up when slots are given out anew; `owners` then says who has which.

    Examples
    --------
    >>> table = ConstraintTable(intervals=1, ids=1)
    >>> low, high = np.array([[18.0], [np.nan]]), np.array([[65.0], [np.nan]])
    >>> table.extend(np.array([70, 71], np.int32), low, high, np.array([[-1], [5]], np.int32))
    array([0, 1], dtype=int32)
    >>> table.match(Values.of([[40.0]], [[5, 9]])).owners
    array([70, 71], dtype=int32)
    >>> table.match(Values.of([[]], [[5]])).owners
    array([71], dtype=int32)
    >>> table.remove(np.array([1], np.int32))
    >>> len(table)
    1
    """

    def __init__(self, intervals: int, ids: int) -> None:
        if intervals < 0 or ids < 0:
            raise ValueError(f"a table has 0 columns or more, not {intervals} and {ids}")
        self.generation = 0
        self._intervals, self._ids = intervals, ids
        self._blocks: list[Block] = []
        self._owners = np.empty(0, np.int32)
        self._size = self._dead = 0  # slots, and those without an owner
        self._tail = Tail.empty(intervals, ids)

    def __len__(self) -> int:
        """Return how many rows there are."""
        return self._size - self._dead

    @property
    def nbytes(self) -> int:
        """How much memory the rows take, in bytes."""
        blocks = sum(block.nbytes for block in self._blocks)
        return self._owners.nbytes + self._tail.nbytes + blocks

    @property
    def columns(self) -> tuple[int, int]:
        """How many columns of intervals and of ids there are."""
        return self._intervals, self._ids

    def owners(self) -> Ids:
        """Return whom each slot belongs to, -1 for nobody: shape ``(slots,)``, read-only."""
        owners = self._owners[: self._size]
        owners.flags.writeable = False
        return owners

    def add_interval_column(self) -> int:
        """Add a column of intervals, which no row constrains yet; return its number."""
        self._intervals += 1
        self._tail.widen(*self.columns)
        return self._intervals - 1

    def add_id_column(self) -> int:
        """Add a column of ids, which no row constrains yet; return its number."""
        self._ids += 1
        self._tail.widen(*self.columns)
        return self._ids - 1

    def extend(self, owners: Ids, lows: Floats, highs: Floats, ids: Ids) -> Ids:
        """Add rows; return their slots.

        Parameters
        ----------
        owners
            Whom each row belongs to, 0 or more: shape ``(n,)``.
        lows, highs
            The closed ends of the intervals, shape ``(n, k)``; infinite where there is none. NaN
            as a low end means that the row does not constrain the column; from ``-inf`` to
            ``inf`` that there must be some value.
        ids
            The id that a value has to be, shape ``(n, m)``; -1 does not constrain.

        Raises
        ------
        ValueError
            Shapes or types do not fit, or a number is none of these.
        """
        self._check_rows(owners, lows, highs, ids)
        first = self._size
        self._make_room(first + owners.size)
        self._owners[first : first + owners.size] = owners
        self._size += owners.size
        self._file(Rows(lows, highs, ids))
        return np.arange(first, self._size, dtype=np.int32)

    def remove(self, slots: Ids) -> None:
        """Take rows away; when more than half of the slots are dead, slots are given out anew.

        Raises
        ------
        ValueError
            A slot has no owner, or is named twice.
        """
        slots = np.asarray(slots)
        if slots.size == 0:
            return
        if slots.dtype != np.int32 or slots.ndim != 1:
            raise ValueError(f"slots are a flat array of int32, not {slots.ndim}-d {slots.dtype}")
        if slots.min() < 0 or slots.max() >= self._size or (self._owners[slots] < 0).any():
            raise ValueError("a slot has no row: ask owners() after generation has changed")
        if slots.size > 1 and np.unique(slots).size < slots.size:
            raise ValueError("a slot is named twice: name each once")
        if not self._owners.flags.writeable:
            self._owners = self._owners.copy()
        self._owners[slots] = -1
        self._dead += slots.size
        if 2 * self._dead > self._size:
            self._compact()

    def match(self, values: Values) -> Found:
        """Return the owners of the rows that are met.

        Raises
        ------
        ValueError
            The values are not those of this table's columns.
        """
        if (values.interval_starts.size - 1, values.id_starts.size - 1) != self.columns:
            raise ValueError(f"values are of {self.columns} columns of intervals and ids")
        room = Room.of(values, max(map(len, self._blocks), default=0))
        owners = self.owners()
        found, start, anded, checked = [], 0, 0, 0
        for block in self._blocks:
            own = owners[start : start + len(block)]
            count, words, left = block.match(values, room, own)
            if count:
                found.append(room.rows[:count].copy())
            start, anded, checked = start + len(block), anded + words, checked + left
        if len(self._tail):
            found.append(self._tail.match(values, owners[start:]))
        met = np.concatenate(found) if found else np.empty(0, np.int32)
        return Found(met, anded, checked, len(self._tail))

    def rows_at(self, slots: Ids) -> Rows:
        """Return the rows of some slots as they were written, dead or not.

        Raises
        ------
        ValueError
            There is no such slot.
        """
        if slots.size and (slots.min() < 0 or slots.max() >= self._size):
            raise ValueError(f"slots are 0 or more, and below {self._size}")
        return self.written().rows_at(slots)

    def written(self) -> Written:
        """Return the rows of all slots as they are now, whatever becomes of the table."""
        return Written(tuple(self._blocks), self._tail.rows(), self.columns)

    def arrays(self) -> dict[str, Array]:
        """Return all that is to be saved; `of_arrays` makes the same table of it."""
        rows = self._tail.rows()
        sizes = [self._intervals, self._ids, self.generation, len(self._blocks)]
        arrays: dict[str, Array] = {
            "sizes": np.array(sizes, np.int64),
            "owners": self.owners(),
            "tail.lows": rows.lows,
            "tail.highs": rows.highs,
            "tail.ids": rows.ids,
        }
        for number, block in enumerate(self._blocks):
            arrays |= {f"{number}.{name}": array for name, array in block.arrays().items()}
        return arrays

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> ConstraintTable:
        """Return the table that gave these arrays.

        They may be read-only and mapped from a file; nothing is copied before the table changes.
        """
        intervals, ids, generation, blocks = arrays["sizes"].tolist()
        table = cls(intervals, ids)
        table.generation = generation
        for number in range(blocks):
            own = {name.partition(".")[2]: name for name in arrays if name.startswith(f"{number}.")}
            table._blocks.append(Block.of_arrays({key: arrays[own[key]] for key in own}))
        table._owners = np.asarray(arrays["owners"])
        table._size = table._owners.size
        table._dead = int((table._owners < 0).sum())
        tail = (np.asarray(arrays["tail." + name]) for name in ("lows", "highs", "ids"))
        table._tail = Tail(Rows(*tail))
        return table

    def _check_rows(self, owners: Ids, lows: Floats, highs: Floats, ids: Ids) -> None:
        """Refuse rows that do not fit."""
        shapes = ((owners.size,), (owners.size, self._intervals), (owners.size, self._ids))
        if (owners.shape, lows.shape, ids.shape) != shapes or highs.shape != lows.shape:
            given = f"{owners.shape}, {lows.shape}, {highs.shape} and {ids.shape}"
            raise ValueError(f"owners, lows, highs and ids are of shapes that do not fit: {given}")
        if (owners.dtype, ids.dtype, lows.dtype, highs.dtype) != _TYPES:
            raise ValueError("owners and ids are int32, lows and highs are float64")
        if owners.size and (owners.min() < 0 or (ids.size and ids.min() < -1)):
            raise ValueError("owners are 0 or more, ids -1 or more")
        without_end = np.isnan(highs)
        if without_end.any() and not np.isnan(lows[without_end]).all():
            raise ValueError("an interval has a low end and no high end: write inf")

    def _make_room(self, size: int) -> None:
        """See to it that so many slots have a place."""
        if size > self._owners.size or not self._owners.flags.writeable:
            place = max(size, min(2 * self._size, self._size + BLOCK // 4))
            owners = np.empty(max(place, self._owners.size), np.int32)
            owners[: self._size] = self._owners[: self._size]
            self._owners = owners

    def _file(self, rows: Rows) -> None:
        """Put rows behind those that are there: into blocks when they are enough."""
        start, waiting = 0, len(self._tail)
        if waiting + len(rows) < TAIL:
            self._tail.append(rows, TAIL)
            return
        if waiting:
            start = min(len(rows), BLOCK - waiting)
            first = Rows.joined([self._tail.rows(), rows[:start]])
            self._tail = Tail.empty(*self.columns)
            self._add_block(first)
        while len(rows) - start >= TAIL:
            part = rows[start : start + BLOCK]
            self._add_block(part)
            start += len(part)
        self._tail.append(rows[start:], TAIL)

    def _add_block(self, rows: Rows) -> None:
        """Make a block of rows, together with blocks before it that are not larger."""
        while self._blocks and len(self._blocks[-1]) <= min(len(rows), BLOCK - len(rows)):
            rows = Rows.joined([self._blocks.pop().rows(*self.columns), rows])
        self._blocks.append(build(rows))

    def _compact(self) -> None:
        """Leave dead rows out, and give slots out anew."""
        old, tail = self._blocks[::-1], self._tail.rows()
        alive = self._owners[: self._size] >= 0
        self._owners = self._owners[: self._size][alive]
        self._size, self._dead, self._blocks = self._owners.size, 0, []
        self._tail = Tail.empty(*self.columns)
        self.generation += 1
        start = 0
        while old:  # one at a time, so that little is held twice
            rows = old.pop().rows(*self.columns)
            end = start + len(rows)
            self._file(rows[alive[start:end]])
            start = end
        self._file(tail[alive[start:]])
