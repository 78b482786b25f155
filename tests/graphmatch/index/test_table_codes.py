"""Codes keep the order of what they stand for, and give it back; cuts are where rows change."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphmatch.index.codes import FLOAT32, FLOAT64, INT16, INT32, coding_of, decode, encode
from graphmatch.index.cuts import quantile_cuts
from graphmatch.index.table_choice import round_to_codes

ROOT = Path(__file__).parents[3]
WIDE = st.floats(allow_nan=False)
SINGLE = st.floats(allow_nan=False, width=32)
WHOLE = st.integers(-(2**31), 2**31).map(float) | st.sampled_from([-math.inf, math.inf])
SMALL = st.integers(1900, 67_000).map(float) | st.sampled_from([-math.inf, math.inf])
COLUMNS = st.one_of([st.lists(kind, min_size=1) for kind in (WIDE, SINGLE, WHOLE, SMALL)])


@given(COLUMNS, st.data())
def test_the_way_of_codes(bounds: list[float], data: st.DataObject) -> None:
    """A value is within bounds when its codes, rounded, are within their codes."""
    column = np.array(bounds)
    coding, base = coding_of(column, column)
    codes = encode(column, coding, base)
    assert decode(codes, coding, base).tolist() == bounds
    near = [math.nextafter(bound, side) for bound in bounds for side in (-math.inf, math.inf)]
    half = [bound + 0.5 for bound in bounds]
    for value in data.draw(st.lists(WIDE | st.sampled_from([*bounds, *near, *half]), max_size=8)):
        low, high = round_to_codes(np.float64(value), coding, base)
        assert (codes.astype(object) <= int(low)).tolist() == [b <= value for b in bounds]
        ends = [int(end) <= int(high) for end in (~codes).tolist()]
        assert ends == [value <= b for b in bounds]


def test_which_coding_is_taken() -> None:
    def coding(*bounds: float) -> int:
        column = np.array(bounds)
        return coding_of(column[:1], column[1:])[0]

    assert coding(-math.inf, math.inf) == INT16
    assert coding(0, 65531) == INT16
    assert coding(1e12, 1e12 + 65531) == INT16
    assert coding(0, 65532) == INT32
    assert coding(-(2**31), 2**31 - 5) == INT32
    assert coding(0, 2**32 - 4) == FLOAT64
    assert coding(0, 2.0**40) == FLOAT32
    assert coding(0.5, -math.inf) == FLOAT32
    assert coding(0.1, math.inf) == FLOAT64
    assert coding(0, 1e300) == FLOAT64


def test_the_codes_without_compiling_them() -> None:
    """numba's own switch: the same function runs as Python, where overflow is a warning."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "way_of"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert "1 passed" in ran.stdout, ran.stdout


@given(st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=60), st.integers(2, 12))
def test_that_cuts_are_places_of_change(rows: list[tuple[float, float]], cells: int) -> None:
    lows = np.array([min(row) for row in rows])
    highs = np.array([max(row) for row in rows])
    changes = {low for low in lows.tolist() if low > -math.inf}
    changes |= {math.nextafter(high, math.inf) for high in highs.tolist() if high < math.inf}
    cuts = quantile_cuts(lows, highs, cells).tolist()
    assert cuts == sorted(set(cuts))
    assert set(cuts) <= changes
    assert len(cuts) < cells
    if len(changes) < cells:
        assert set(cuts) == changes


def test_that_few_rows_change_inside_a_cell() -> None:
    random = np.random.default_rng(0)
    lows = random.gamma(2, 1000, 5000)
    lows[:2000] = 42.0
    highs = lows + random.gamma(2, 500, 5000)
    highs[:1000] = 42.0
    cuts = quantile_cuts(lows, highs, 20)
    assert len(cuts) == 19
    assert 42.0 in cuts
    assert math.nextafter(42.0, 50.0) in cuts
    changes = np.concatenate((lows, np.nextafter(highs, np.inf)))
    inside = changes[~np.isin(changes, cuts)]
    assert np.bincount(np.searchsorted(cuts, inside)).max() <= len(inside) / 17 + 2
