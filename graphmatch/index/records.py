"""Records: what subscriptions say, what they are filed with, and under which rows.

A record is a few numbers in columns and a run of others (`graphmatch.index.record_kernels`): the
ids of the constants, as they were said; those that it is filed with, where an ontology has other
roots for them; its rows. A row knows its owners in turn (`graphmatch.index.owners`).

Cost: 30 bytes, 4 a constant, 8 to 24 a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntFlag

import numpy as np
from numpy.typing import NDArray

from graphmatch.index import record_kernels
from graphmatch.index.owners import Owned, nobody
from graphmatch.index.record_kernels import FILED, NEGATIVE_ROW, NEGATIVE_TERM, SAME_ROW, Records
from graphmatch.index.runs import Array, Ids, Longs, Runs, roomy

_NO_SKELETON = -1
_FAULTS = {
    NEGATIVE_TERM: "ids of terms are 0 or more",
    NEGATIVE_ROW: "rows are 0 or more, or -1 for none",
    SAME_ROW: "a subscription has a row twice: give one back",
}


class Flag(IntFlag):
    """What is known of how a subscription is filed."""

    EXACT = 1  # the index's solutions are the answer
    UNINDEXED = 2  # every publication is a candidate
    SUSPENDED = 4  # it cannot be filed for now
    RESTING = 8  # a solution might rest on the ontology alone


FLAGS = np.uint16(sum(Flag))


@dataclass(frozen=True, slots=True)
class Contents:
    """What some subscriptions hold, for whoever counts uses.

    Parameters
    ----------
    terms
        The ids of the constants that they say, and of those that they are filed with where these
        are kept: as often as they are there.
    rows
        Their rows, as often as they are there.
    """

    terms: Ids
    rows: Ids


class RecordTable:
    """Records by number, and the owners of rows.

    Parameters
    ----------
    slots
        By skeleton: how many constants there are. Whoever adds a skeleton says so.
    """

    def __init__(self, slots: Ids) -> None:
        self.slots = slots
        self.skeleton = np.zeros(0, np.int32)
        self.flags = np.zeros(0, np.uint16)
        self.serial = np.zeros(0, np.int64)
        self.owned = nobody()
        self._writable = True
        self._runs = Runs(np.int32)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, in use or not."""
        columns = self.skeleton.nbytes + self.flags.nbytes + self.serial.nbytes
        return columns + self._runs.nbytes + self.owned.nbytes

    @property
    def kernel(self) -> Records:
        """The records as compiled loops take them."""
        runs = self._runs
        return Records(
            runs.arena, runs.start, runs.length, runs.end, self.skeleton, self.flags, self.slots
        )

    def elements(self, numbers: Ids) -> int:
        """Return how long the runs of some numbers are together; at least so many constants."""
        return int(self._runs.length[numbers].sum())

    def write(self, numbers: Ids, constants: Ids, filed: Ids, rows: Ids, highest: int) -> None:
        """Write the records of numbers whose skeleton and flags are there, under their rows.

        `highest` is the highest row (`check`).
        """
        most = len(numbers) * (2 * constants.shape[1] + 2 * rows.shape[1])
        self._runs.make_room(most, len(self.skeleton))
        records = self.kernel
        record_kernels.write(records, numbers, constants, filed, rows)
        places, done = 0, 0
        while done < len(numbers):
            self.owned = self.owned.with_room(highest + 1, places)
            done = record_kernels.link_all(records, self.owned, numbers, done)
            places = 2 * places + 8

    def make_room(self, numbers: int) -> None:
        """See to it that the numbers below have a place."""
        if numbers > self.skeleton.size or not self._writable:
            self.skeleton = roomy(self.skeleton, numbers, _NO_SKELETON)
            self.flags, self.serial = roomy(self.flags, numbers), roomy(self.serial, numbers)
        if not self._writable:  # all at once, so that loops are compiled for all or none
            self._runs.make_room(0, 0)
            self.owned = self.owned.with_room(0, 0)
            self._writable = True

    def drop(self, numbers: Ids) -> Contents:
        """Take the records of distinct numbers away; return what they held."""
        held = self.contents(numbers)
        self.make_room(0)
        lost = record_kernels.unlink_all(self.kernel, self.owned, numbers)
        self._runs.lose(lost)
        return held

    def contents(self, numbers: Ids) -> Contents:
        """Return what subscriptions hold."""
        size = self.elements(numbers)
        terms, rows, counts = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(2, int)
        record_kernels.contents(self.kernel, numbers, terms, rows, counts)
        return Contents(terms[: counts[0]].copy(), rows[: counts[1]].copy())

    def constants(self, number: int, *, filed: bool = False) -> Ids:
        """Return a subscription's constants: those that it says, or those it is filed with."""
        slots = int(self.slots[self.skeleton[number]])
        first = slots if filed and int(self.flags[number]) & FILED else 0
        return self._runs.of(number)[first : first + slots].copy()

    def constants_of(self, numbers: Ids, slots: int) -> Ids:
        """Return the constants that subscriptions of as many slots say, a row each."""
        starts = self._runs.start[numbers]
        found: Ids = self._runs.arena[starts[:, None] + np.arange(slots)]
        return found

    def arrays(self, numbers: int) -> dict[str, Array]:
        """Return all that is to be saved, of the numbers below."""
        arrays = self._runs.arrays(numbers)
        arrays |= {"owned." + name: array for name, array in self.owned.arrays().items()}
        for name in ("skeleton", "flags", "serial"):
            arrays[name] = getattr(self, name)[:numbers]
        return arrays

    @classmethod
    def of_arrays(cls, slots: Ids, arrays: Mapping[str, Array]) -> RecordTable:
        """Return the records that gave these arrays, which may be read-only."""
        table = cls(slots)
        table._runs = Runs.of_arrays(np.int32, arrays)
        table.skeleton = np.asarray(arrays["skeleton"])
        table.flags = np.asarray(arrays["flags"])
        table.serial, table._writable = np.asarray(arrays["serial"]), False
        own = {name[6:]: array for name, array in arrays.items() if name.startswith("owned.")}
        table.owned = Owned.of_arrays(own)
        return table


def check(count: int, constants: Ids, filed: Ids, rows: Ids) -> int:
    """Refuse contents that compiled loops would trip over; return the highest row, or -1.

    Raises
    ------
    ValueError
        Shapes or types do not fit, a number is negative, a row is there twice.
    """
    for array in (constants, filed, rows):
        if array.dtype != np.int32 or array.ndim != 2:
            raise ValueError("constants, filed and rows are arrays of int32 in two dimensions")
    if constants.shape != filed.shape or not len(constants) == len(rows) == count:
        given = f"{constants.shape}, {filed.shape} and {rows.shape}"
        raise ValueError(f"constants, filed and rows of {count} ids do not fit: {given}")
    highest = record_kernels.highest_row(constants, filed, rows)
    if highest < -1:
        raise ValueError(_FAULTS[highest])
    return highest


def check_columns(count: int, flags: NDArray[np.uint16], serials: Longs | None = None) -> None:
    """Refuse columns that do not fit.

    Raises
    ------
    ValueError
        Shapes or types do not fit, or a flag is unknown.
    """
    if flags.dtype != np.uint16 or flags.shape != (count,):
        raise ValueError(f"flags are {count} of uint16, not {flags.shape} of {flags.dtype}")
    if (flags & ~FLAGS).any():
        raise ValueError("a flag is unknown: see Flag")
    if serials is not None and (serials.dtype != np.int64 or serials.shape != (count,)):
        raise ValueError(f"serials are {count} of int64")
