"""Constraint tables that are large enough for tiles, hashed ids, and what they promise to cost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from graphmatch.index.table import ConstraintTable, Found, Values
from graphmatch.index.table_rows import Rows
from tests.graphmatch.index.columnar_scan import columnar_scan

SIZE = 40_000
DIVIDED = ((1, 7.0), (2, 99.0), (3, 8.0), (4, 2e5))
"""Columns, and what their numbers are divided by: they take 64, 16, 32 and 16 bits then."""


def ranges(random: np.random.Generator, size: int, columns: int, share: float) -> Rows:
    """Rows each column of which holds for about that share of the values up to a million."""
    width = 1e6 * share / (1 - share)
    lows = np.floor(random.uniform(-width, 1e6, (size, columns)))
    highs = np.floor(lows + width * random.uniform(0.9, 1.1, lows.shape))
    lows[lows <= 0], highs[highs >= 1e6] = -np.inf, np.inf
    return Rows(lows, highs, np.empty((size, 0), np.int32))


def numbers(random: np.random.Generator, columns: int) -> list[list[float]]:
    return [[float(value)] for value in np.floor(random.uniform(0, 1e6, columns))]


def table_of(rows: Rows) -> ConstraintTable:
    table = ConstraintTable(rows.lows.shape[1], rows.ids.shape[1])
    table.extend(np.arange(len(rows), dtype=np.int32), rows.lows, rows.highs, rows.ids)
    return table


def concepts(random: np.random.Generator) -> Rows:
    """Three columns of 3000 ids, two of 100, two of ranges; each left free by some rows."""
    count = 2 * SIZE
    ids = np.hstack(
        (random.integers(0, 3000, (count, 3)), random.integers(0, 100, (count, 2)))
    ).astype(np.int32)
    ids[random.random(ids.shape) < 0.3] = -1
    lows = np.floor(random.uniform(0, 1000, (count, 2)))
    highs = lows + np.floor(random.uniform(0, 700, lows.shape))
    return Rows(lows, highs, ids)


def concept_values(random: np.random.Generator) -> Values:
    ids = [random.choice(3000, int(random.integers(1, 12)), False).tolist() for _ in range(3)]
    ids += [[int(random.integers(100))] for _ in range(2)]
    return Values.of([[float(random.integers(1700))] for _ in range(2)], ids)


def checked(table: ConstraintTable, rows: Rows, asked: list[Values]) -> list[Found]:
    scan = columnar_scan(rows.lows, rows.highs, rows.ids)
    found = [table.match(values) for values in asked]
    for values, one in zip(asked, found, strict=True):
        assert np.array_equal(np.sort(one.owners), scan(values))
    assert any(one.owners.size for one in found)
    return found


@pytest.mark.parametrize("share", [0.5, 0.63, 0.9])
def test_ten_columns_of_ranges(share: float) -> None:
    random = np.random.default_rng(5)
    rows = ranges(random, SIZE, 10, share)
    table = table_of(rows)
    found = checked(table, rows, [Values.of(numbers(random, 10), []) for _ in range(12)])
    words = SIZE // 64 + 1
    met = sum(one.owners.size for one in found)
    assert max(one.anded for one in found) <= 10 * words
    assert met <= sum(one.checked for one in found) <= 1.9 * met + 200
    assert table.nbytes <= 110 * SIZE
    assert found[0].scanned == 0


def test_bounds_of_every_width_with_columns_left_free() -> None:
    random = np.random.default_rng(6)
    rows = ranges(random, SIZE, 8, 0.8)
    for column, part in DIVIDED:
        for bounds in (rows.lows, rows.highs):
            divided = bounds[:, column] / part
            bounds[:, column] = divided if part < 9 else np.floor(divided)
    rows.lows[random.random(rows.lows.shape) < 0.5] = np.nan
    table, asked = table_of(rows), []
    for _ in range(20):
        points = numbers(random, 8)
        for column, part in DIVIDED:
            points[column] = [points[column][0] / part, points[column][0] / part + 3]
        points[int(random.integers(8))] = []
        asked.append(Values.of(points, []))
    checked(table, rows, asked)


def test_concepts() -> None:
    random = np.random.default_rng(7)
    rows = concepts(random)
    table = table_of(rows)
    found = checked(table, rows, [concept_values(random) for _ in range(40)])
    words = 2 * SIZE // 64
    assert sum(one.checked for one in found) < 40 * SIZE // 200  # few are left to check
    assert sum(one.anded for one in found) < 40 * words * 25  # of 37 bitmaps that are asked for
    assert table.nbytes <= 80 * len(rows)


def test_that_a_column_with_few_numbers_needs_no_check() -> None:
    random = np.random.default_rng(8)
    lows = random.integers(1, 9, (SIZE, 3)).astype(np.float64)
    ids = random.integers(0, 60, (SIZE, 1), np.int32)
    rows = Rows(lows, lows + random.integers(0, 2, lows.shape), ids)
    asked = [
        Values.of([[float(random.integers(10))]] * 3, [[int(random.integers(60))]])
        for _ in range(30)
    ]
    for one in checked(table_of(rows), rows, asked):
        assert one.checked == one.owners.size


def test_that_threads_do_not_meet() -> None:
    random = np.random.default_rng(9)
    rows = concepts(random)
    table = table_of(rows)
    asked = [concept_values(random) for _ in range(60)]
    alone = [table.match(values).owners.tolist() for values in asked]
    with ThreadPoolExecutor(4) as pool:
        together = pool.map(lambda values: table.match(values).owners.tolist(), asked * 4)
        assert list(together) == alone * 4


def test_that_a_saved_table_is_not_copied_before_it_changes(tmp_path: Path) -> None:
    random = np.random.default_rng(10)
    rows = ranges(random, SIZE, 3, 0.7)
    table = table_of(rows)
    for name, array in table.arrays().items():
        np.save(tmp_path / f"{name}.npy", array)
    saved = {
        path.stem: np.load(path, mmap_mode="r" if path.stat().st_size > 128 else None)
        for path in tmp_path.iterdir()
    }
    again = ConstraintTable.of_arrays(saved)
    for name, array in again.arrays().items():
        assert array.size == 0 or name == "sizes" or np.shares_memory(array, saved[name])
    values = Values.of(numbers(random, 3), [])
    before = np.sort(table.match(values).owners)
    assert np.array_equal(np.sort(again.match(values).owners), before)
    again.remove(before[:1])
    again.extend(before[1:3], rows.lows[:2], rows.highs[:2], rows.ids[:2])
    assert len(again) == SIZE + 1
    assert saved["owners"][before[0]] == before[0]
    assert np.array_equal(np.sort(ConstraintTable.of_arrays(saved).match(values).owners), before)


def test_that_space_is_given_back() -> None:
    random = np.random.default_rng(11)
    rows = ranges(random, SIZE, 3, 0.7)
    table = table_of(rows)
    whole = table.nbytes
    table.remove(random.permutation(SIZE)[: SIZE // 2].astype(np.int32))
    assert (table.generation, table.owners().size) == (0, SIZE)
    table.remove(np.flatnonzero(table.owners() >= 0)[:1].astype(np.int32))
    assert (table.generation, table.owners().size) == (1, SIZE // 2 - 1)
    assert table.nbytes < 0.55 * whole
    kept = table.owners()
    some = Rows(rows.lows[kept], rows.highs[kept], rows.ids[kept])
    asked = [Values.of(numbers(random, 3), []) for _ in range(5)]
    scan = columnar_scan(some.lows, some.highs, some.ids)
    for values in asked:
        assert np.array_equal(np.sort(table.match(values).owners), kept[scan(values)])
