"""Checks say what holds, what does not, and what was not measured."""

from __future__ import annotations

import pytest

from graphmatch.bench.paper.claims import (
    Below,
    Check,
    Curve,
    Linear,
    Shifts,
    Where,
    beats,
    falling,
    rising,
    steady,
    sublinear,
)

TIME = Where("median_microseconds")
UNIFORM, ZIPF = (Where("median_microseconds", variant=v) for v in ("uniform", "zipf"))

LINE: Curve = [(10, 5.0), (20, 9.0), (40, 17.0)]
FLAT: Curve = [(10, 5.0), (20, 5.5), (40, 5.0)]
SQUARE: Curve = [(10, 1.0), (20, 4.0), (40, 16.0)]
DOWN: Curve = [(10, 9.0), (20, 6.0), (40, 1.0)]


@pytest.mark.parametrize(
    ("check", "holding"),
    [
        (Linear("a", TIME), [LINE]),
        (rising("a", TIME), [LINE, SQUARE]),
        (steady("a", TIME), [FLAT]),
        (sublinear("a", TIME), [FLAT, DOWN, LINE]),
        (falling("a", TIME), [DOWN]),
    ],
)
def test_the_shape_of_a_curve(check: Check, holding: list[Curve]) -> None:
    for curve in (LINE, FLAT, SQUARE, DOWN):
        if curve is FLAT and check == falling("a", TIME):
            continue  # neither up nor down
        assert check.of({(TIME, "a"): curve}).holds is (curve in holding)
    assert check.of({(TIME, "a"): LINE[:1]}).holds is None
    assert check.of({(TIME, "b"): LINE}).holds is None


def test_one_curve_below_another() -> None:
    curves = {(TIME, "a"): FLAT, (TIME, "b"): [(20, 11.0), (40, 50.0), (80, 1.0)]}
    assert Below("a", "b", TIME, 2).of(curves).holds is True
    assert Below("a", "b", TIME, 3).of(curves).holds is False
    assert Below("b", "a", TIME).of(curves).holds is False
    assert [check.other for check in beats("a", ["b", "c"], TIME)] == ["b", "c"]


def test_which_curve_shifts_less() -> None:
    curves = {
        (UNIFORM, "a"): FLAT,
        (ZIPF, "a"): [(x, 1.2 * y) for x, y in FLAT],
        (UNIFORM, "b"): LINE,
        (ZIPF, "b"): [(x, 3 * y) for x, y in LINE],
    }
    assert Shifts("a", "b", UNIFORM, "zipf").of(curves).holds is True
    verdict = Shifts("b", "a", UNIFORM, "zipf").of(curves)
    assert (verdict.holds, verdict.saw) == (False, "by a factor of 3, a 1.2")
    assert Shifts("a", "c", UNIFORM, "zipf").of(curves).holds is None
