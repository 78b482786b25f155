"""A constraint table against a plain reading of what its rows mean."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphmatch.index import table, table_building
from graphmatch.index.table import ConstraintTable, Values

ROOT = Path(__file__).parents[3]
INFINITE = (-math.inf, math.inf)
POOLS = (
    (0.0, 1.0, 2.0, 3.0, 4.0, 5.0),
    (-3.0, -0.0, 0.0, 30000.0, 70000.0, 2.0**31, 3e9),
    (0.5, 1.5, -2.25, 1e30, float(np.finfo(np.float32).max), float(np.float32(0.1))),
    (0.1, 0.2, math.nextafter(0.1, 1), 1e300, -1e300, 5e-324, sys.float_info.max),
    (2.0**53, 2.0**53 + 2, 2.0**60, -(2.0**60), 2.0**31 - 1, -(2.0**31)),
)
"""Numbers that need different codes, and that are near to each other."""


@dataclass
class Row:
    """A row as the tests know it: `None` does not constrain."""

    intervals: list[tuple[float, float] | None]
    ids: list[int | None]

    def is_met(self, intervals: list[list[float]], ids: list[list[int]]) -> bool:
        for bounds, numbers in zip(self.intervals, intervals, strict=False):
            if bounds and not any(bounds[0] <= number <= bounds[1] for number in numbers):
                return False
        return all(
            wanted is None or wanted in known for wanted, known in zip(self.ids, ids, strict=False)
        )

    def is_met_by_ranges(
        self, intervals: list[list[tuple[float, float]]], ids: list[list[int]]
    ) -> bool:
        for bounds, ranges in zip(self.intervals, intervals, strict=False):
            if bounds and not any(low <= bounds[1] and bounds[0] <= high for low, high in ranges):
                return False
        return Row([], self.ids).is_met([], ids)


@dataclass
class Case:
    """Columns' pools of numbers, and a way to draw rows and values from them."""

    pools: list[tuple[float, ...]]
    ids: list[int]  # of each id column, how many ids there are
    seed: int
    free: float  # how many of a row's columns are not constrained
    sizes: list[int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    pools = draw(st.lists(st.sampled_from(POOLS), max_size=3))
    ids = draw(st.lists(st.sampled_from((1, 3, 9, 40)), max_size=2))
    free = draw(st.sampled_from((0.0, 0.2, 0.6, 1.0)))
    sizes = draw(st.lists(st.integers(0, 90), min_size=1, max_size=6))
    return Case(pools, ids, draw(st.integers(0, 2**32)), free, sizes)


def some_row(case: Case, random: np.random.Generator) -> Row:
    row = Row([], [])
    for pool in case.pools:
        low, high = (float(random.choice([*pool, *INFINITE])) for _ in range(2))
        if low > high and random.random() < 0.9:  # else nothing meets it
            low, high = high, low
        if random.random() < 0.2:
            high = low
        row.intervals.append(None if random.random() < case.free else (low, high))
    for count in case.ids:
        number = int(random.integers(count))
        row.ids.append(None if random.random() < case.free else number)
    return row


def some_values(
    case: Case, random: np.random.Generator
) -> tuple[list[list[float]], list[list[int]]]:
    def count() -> int:
        return int(random.choice([0, 1, 1, 1, 2, 5]))

    intervals: list[list[float]] = []
    for pool in case.pools:
        near = [math.nextafter(pool[0], side) for side in INFINITE]
        choice = [*pool, *near, *INFINITE, math.nan]
        intervals.append([float(random.choice(choice)) for _ in range(count())])
    ids = [[int(random.integers(most + 2)) for _ in range(count())] for most in case.ids]
    return intervals, ids


def arrays_of(rows: list[Row], intervals: int, ids: int) -> tuple[np.ndarray, ...]:
    lows, highs = np.full((len(rows), intervals), np.nan), np.full((len(rows), intervals), np.nan)
    numbers = np.full((len(rows), ids), -1, np.int32)
    for place, row in enumerate(rows):
        for column, bounds in enumerate(row.intervals):
            if bounds:
                lows[place, column], highs[place, column] = bounds
        for column, number in enumerate(row.ids):
            if number is not None:
                numbers[place, column] = number
    return lows, highs, numbers


@contextmanager
def small_blocks(tail: int = 8, block: int = 160, cells: int = 5, own: int = 3) -> Iterator[None]:
    """Make blocks of few rows and few bitmaps, so that few rows go through all there is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "TAIL", tail)
        patch.setattr(table, "BLOCK", block)
        patch.setattr(table_building, "BITMAPS", cells)
        patch.setattr(table_building, "OWN_CELLS", own)
        patch.setattr(table_building, "FREQUENT", 2)
        patch.setattr(table_building, "HASHED", 4)
        yield


class Both:
    """A table and what it should know."""

    def __init__(self, case: Case) -> None:
        self.case, self.random = case, np.random.default_rng(case.seed)
        self.table = ConstraintTable(len(case.pools), len(case.ids))
        self.rows: dict[int, Row] = {}
        self.slots: dict[int, int] = {}
        self.next = 0

    def add(self, count: int) -> None:
        rows = [some_row(self.case, self.random) for _ in range(count)]
        owners = np.arange(self.next, self.next + count, dtype=np.int32)
        self.next += count
        columns = len(self.case.pools), len(self.case.ids)
        slots = self.table.extend(owners, *arrays_of(rows, *columns))
        self.rows |= dict(zip(owners.tolist(), rows, strict=True))
        self.slots |= dict(zip(owners.tolist(), slots.tolist(), strict=True))

    def remove(self, share: float) -> None:
        gone = [owner for owner in self.rows if self.random.random() < share]
        before = self.table.generation
        self.table.remove(np.array([self.slots[owner] for owner in gone], np.int32))
        for owner in gone:
            del self.rows[owner], self.slots[owner]
        if self.table.generation != before:
            known = enumerate(self.table.owners().tolist())
            self.slots = {owner: slot for slot, owner in known if owner >= 0}

    def widen(self) -> None:
        if len(self.case.pools) < 4 and self.random.random() < 0.5:
            assert self.table.add_interval_column() == len(self.case.pools)
            self.case.pools.append(POOLS[int(self.random.integers(len(POOLS)))])
        elif len(self.case.ids) < 3:
            assert self.table.add_id_column() == len(self.case.ids)
            self.case.ids.append(5)

    def save(self) -> None:
        with TemporaryDirectory() as folder:
            saved = {}
            for name, array in self.table.arrays().items():
                path = Path(folder) / f"{name}.npy"
                np.save(path, array)
                saved[name] = np.load(path, mmap_mode="r" if array.size else None)
            again = ConstraintTable.of_arrays(saved)
            assert again.owners().tolist() == self.table.owners().tolist()
            assert again.generation == self.table.generation
            self.table = again
            self.check(1)

    def check(self, times: int = 5) -> None:
        assert len(self.table) == len(self.rows)
        owners = self.table.owners()
        assert {owner: int(owners[slot]) for owner, slot in self.slots.items()} == {
            owner: owner for owner in self.rows
        }
        assert (owners >= 0).sum() == len(self.rows)
        self.read_back()
        for _ in range(times):
            intervals, ids = some_values(self.case, self.random)
            found = self.table.match(Values.of(intervals, ids))
            met = [owner for owner, row in self.rows.items() if row.is_met(intervals, ids)]
            assert sorted(found.owners.tolist()) == met, (intervals, ids)
            assert len(met) <= found.checked + found.scanned
            self.check_ranges(intervals, ids)

    def read_back(self) -> None:
        slots = np.array(list(self.slots.values()), np.int32)
        rows = self.table.rows_at(slots)
        lows, highs, ids = arrays_of(list(self.rows.values()), *self.table.columns)
        np.testing.assert_array_equal(rows.lows, lows)
        np.testing.assert_array_equal(rows.highs, np.where(np.isnan(lows), np.nan, highs))
        np.testing.assert_array_equal(rows.ids, ids)

    def check_ranges(self, intervals: list[list[float]], ids: list[list[int]]) -> None:
        ranges = [
            [(low, low + float(self.random.choice([0, 0, 1e-9, 2, 5e4, 1e308]))) for low in lows]
            for lows in intervals
        ]
        values = Values.of(intervals, ids)
        ends = np.array([end for column in ranges for _, end in column], np.float64)
        asked = replace(values, interval_ends=ends)
        found = set(self.table.match(asked).owners.tolist())
        for owner, row in self.rows.items():
            if not any(bounds and bounds[0] > bounds[1] for bounds in row.intervals):
                assert (owner in found) == row.is_met_by_ranges(ranges, ids)


def live(case: Case) -> None:
    """Go through the life of a table: rows come and go, columns come, it is saved and loaded."""
    both = Both(case)
    both.check()
    for count in case.sizes:
        both.add(count)
        both.check()
        step = both.random.integers(6)
        if step == 0:
            both.widen()
        elif step == 1:
            both.save()
        elif step <= 3:
            both.remove(float(both.random.choice([0.1, 0.4, 0.8, 1.0])))
        both.check(2)


@settings(max_examples=int(os.environ.get("TABLE_EXAMPLES", "150")))
@given(cases())
def test_a_life(case: Case) -> None:
    with small_blocks():
        live(case)


def test_that_rows_come_one_by_one() -> None:
    with small_blocks():
        both = Both(Case([POOLS[0], POOLS[3]], [9], 1, 0.3, []))
        for _ in range(330):
            both.add(1)
        both.check(40)
        for _ in range(300):
            slot = np.array([both.slots[owner := next(iter(both.rows))]], np.int32)
            generation = both.table.generation
            both.table.remove(slot)
            del both.rows[owner], both.slots[owner]
            if both.table.generation != generation:
                owners = both.table.owners().tolist()
                both.slots = {owner: slot for slot, owner in enumerate(owners) if owner >= 0}
        both.check(40)
        assert both.table.owners().size <= 60


def test_a_life_of_one_open_end() -> None:
    """All rows begin at cuts; of those that end elsewhere, none ends in the last cell."""
    highs = [float(end) for end in range(1, 30)] + [30.0] * 40
    for rows in ([(-math.inf, end) for end in highs], [(-end, math.inf) for end in highs]):
        with small_blocks():
            made = ConstraintTable(1, 0)
            owners = np.arange(len(rows), dtype=np.int32)
            made.extend(owners, *arrays_of([Row([bounds], []) for bounds in rows], 1, 0))
            for value in range(-31, 31):
                met = [row for row, (low, high) in enumerate(rows) if low <= value <= high]
                found = made.match(Values.of([[float(value)]], []))
                assert sorted(found.owners.tolist()) == met


def test_a_life_of_few_in_many() -> None:
    """So many columns that words are asked for one by one, the last ones for several values."""
    random = np.random.default_rng(3)
    ids = random.integers(0, 9, (3000, 6), np.int32)
    none = np.empty((len(ids), 0))
    made = ConstraintTable(0, 6)
    made.extend(np.arange(len(ids), dtype=np.int32), none, none, ids)
    several = 0
    for row in ids[:40].tolist():
        asked = [[number] for number in row[:3]] + [
            [number, *random.integers(0, 9, 3).tolist()] for number in row[3:]
        ]
        found = made.match(Values.of([], asked))
        met = [
            place
            for place, numbers in enumerate(ids.tolist())
            if all(number in known for number, known in zip(numbers, asked, strict=True))
        ]
        assert sorted(found.owners.tolist()) == met
        assert found.anded < 8 * (3000 // 64 + 1)  # of fifteen bitmaps that are asked for
        several += len(met) > 1
    assert several


def test_the_kernels_without_compiling_them() -> None:
    """numba's own switch: the same loops run as Python, where a bad index is an error."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "life"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "TABLE_EXAMPLES": "25"},
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert "3 passed" in ran.stdout, ran.stdout


def few() -> ConstraintTable:
    made = ConstraintTable(1, 1)
    lows, highs = np.array([[0.0], [1.0], [np.nan]]), np.array([[5.0], [1.0], [np.nan]])
    owners, ids = np.array([4, 5, 6], np.int32), np.array([[-1], [2], [7]], np.int32)
    made.extend(owners, lows, highs, ids)
    return made


def test_what_cannot_be_added() -> None:
    made = few()
    one, low, no = np.array([1], np.int32), np.array([[1.0]]), np.array([[-1]], np.int32)
    for owners, lows, highs, ids, message in (
        (one, low, low, np.empty((1, 0), np.int32), "shapes"),
        (one, low, np.empty((1, 2)), no, "shapes"),
        (one.astype(np.int64), low, low, no, "int32"),
        (one, low.astype(np.float32), low, no, "float64"),
        (-one, low, low, no, "owners are 0"),
        (one, low, low, no - 1, "ids -1"),
        (one, low, low * np.nan, no, "no high end"),
    ):
        with pytest.raises(ValueError, match=message):
            made.extend(owners, lows, highs, ids)
    assert len(made) == 3


def test_what_cannot_be_removed() -> None:
    made = few()
    for slots in ([3], [-1], [0, 0]):
        with pytest.raises(ValueError, match="slot"):
            made.remove(np.array(slots, np.int32))
    with pytest.raises(ValueError, match="int32"):
        made.remove(np.array([1]))
    made.remove(np.array([1], np.int32))
    with pytest.raises(ValueError, match="no row"):
        made.remove(np.array([1], np.int32))
    made.remove(np.empty(0, np.int32))
    assert made.owners().tolist() == [4, -1, 6]


def test_what_cannot_be_asked() -> None:
    made = few()
    with pytest.raises(ValueError, match="columns"):
        made.match(Values.of([[1.0], []], [[]]))
    good, ids = np.array([0, 1], np.int32), np.array([2], np.int32)
    for starts, points in (
        (good, np.array([1.0], np.float32)),
        (good.astype(np.int64), np.array([1.0])),
        (good, np.array([1.0, 2.0])),
        (np.array([1, 1], np.int32), np.array([1.0])),
        (np.array([0, 2, 1], np.int32), np.array([1.0])),
        (np.empty(0, np.int32), np.empty(0)),
        (np.array([0, 2], np.int32), np.array([1.0, 2.0, 3.0])[::2]),
    ):
        with pytest.raises(ValueError, match="starts"):
            Values(starts, points, good, ids)
    with pytest.raises(ValueError, match="0 columns"):
        ConstraintTable(-1, 0)


def test_that_owners_cannot_be_written() -> None:
    made = few()
    with pytest.raises(ValueError, match="read-only"):
        made.owners()[0] = 9
