"""Parsing and writing of numbers and quantities."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semantic.units.quantities import (
    number_literal,
    quantity_literal,
    read_number,
    read_quantity,
    write_number,
)
from semantic.values import ComparisonOperator, Number, compare, value_of

FRACTIONS = st.fractions() | st.builds(
    lambda digits, exponent: digits * Fraction(10) ** exponent,
    st.integers(-(10**12), 10**12),
    st.integers(-40, 40),
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("40 GB", (40, "GB")),
        ("40GB", (40, "GB")),
        (" -4.5e1  km/h ", (-45, "km/h")),
        ("+.5 m", (Fraction(1, 2), "m")),
        ("5 eV", (5, "eV")),
        ("1 in H", (1, "in H")),
        ("40", None),
        ("GB", None),
        ("forty GB", None),
        ("1e999 m", None),
        ("9" * 65 + " m", None),
        ("1,5 m", (1, ",5 m")),  # No unit begins with a comma, so it is unknown.
        ("٤ m", None),
    ],
)
def test_quantity(text: str, found: tuple[Fraction, str] | None) -> None:
    assert read_quantity(text) == found


@given(FRACTIONS)
def test_that_a_literal_is_the_number_or_next_to_it(number: Fraction) -> None:
    literal = number_literal(number)
    assert isinstance(value_of(literal), Number)
    read = Fraction(literal.value)
    assert abs(read - number) <= max(abs(number) / 2**52, Fraction(1, 10**300)) + (
        Fraction(1, 10**18) if abs(number) >= Fraction(1, 10**6) else 0
    )


@given(FRACTIONS, FRACTIONS)
def test_that_order_is_kept(one: Fraction, other: Fraction) -> None:
    low, high = number_literal(min(one, other)), number_literal(max(one, other))
    assert compare(low, ComparisonOperator.LE, high)
    written = quantity_literal(one, "m"), quantity_literal(other, "m")
    assert one > other or compare(written[0], ComparisonOperator.LE, written[1])


@given(st.integers(-(10**30), 10**30), st.integers(0, 4))
def test_that_equal_numbers_are_written_alike(digits: int, places: int) -> None:
    number = Fraction(digits, 10**places)
    text = write_number(number)
    assert read_number(text) == number
    assert write_number(Fraction(text)) == text
