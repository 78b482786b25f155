"""What filters compare, as floats that say how far they may be off.

SPARQL compares numbers in the type that both can be promoted to, decimals with all
their digits, points of time by the order of XML Schema (`semantic.values`). The index
compares floats. Where two of them differ by more than both may be off, the order of the
floats is the order of the values; where they do not, the answer is to be asked of
`semantic.values.compare`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal

from semantic.values import Instant, Number, NumericType, value_of
from semantic.vocabulary import XSD

NOTHING, TEXT, NUMBER, DATE_TIME, DATE, ASKED = 0, 2, 4, 6, 8, 10
"""The kinds: only values of one kind compare; an asked one may compare with anything. The next
higher number is the same kind without a time zone."""

_DOUBLE_ERROR = 2.0**-50
"""Four units in the last place: decimals are rounded twice on the way to a double."""
_SINGLE_ERROR = 2.0**-21
_SMALLEST = 1e-44
"""Single precision knows no smaller numbers than about this."""
ZONE_SECONDS = 14 * 3600.0 + 1.0
"""How far a point of time without a zone may be off against one with a zone."""
_SURE_DIGITS = 15
"""Decimals of so many digits that equal a double are promoted to that double."""
_WHOLE = XSD["integer"]


class Scale(NamedTuple):
    """A value's kind, the float nearest to it, and how far the two may be apart."""

    kind: int
    value: float
    error: float


_NOTHING = Scale(NOTHING, 0.0, 0.0)
_TEXT = Scale(TEXT, 0.0, 0.0)
_ASKED = Scale(ASKED, 0.0, 0.0)


def scale_of(term: object) -> Scale:
    """Return what a term is compared by.

    Examples
    --------
    >>> from semantic.vocabulary import XSD
    >>> scale_of(Literal("5", datatype=XSD["integer"]))
    Scale(kind=4, value=5.0, error=0.0)
    >>> scale_of(Literal("five")).kind == TEXT
    True
    """
    if not isinstance(term, Literal):
        return _NOTHING
    value = value_of(term)
    if isinstance(value, Number):
        return _number(value)
    if isinstance(value, Instant):
        return _instant(value)
    if isinstance(value, str):
        return _TEXT
    return _NOTHING if value is None else _ASKED


def scales_of(terms: Iterable[object]) -> NDArray[np.float64]:
    """Return what terms are compared by, as `scale_of` does: shape (terms, 3)."""
    rows = []
    for term in terms:
        if isinstance(term, Literal):
            text = term.value
            is_short = text.isdigit() and len(text) <= _SURE_DIGITS and text.isascii()
            if is_short and term.datatype == _WHOLE:
                rows.append((NUMBER, float(text), 0.0))
                continue
        rows.append(scale_of(term))
    return np.array(rows, np.float64).reshape(-1, 3)


def _number(number: Number) -> Scale:
    value = float(number.value)
    if not math.isfinite(value):
        return _ASKED
    if isinstance(number.value, float):
        error = abs(value) * _SINGLE_ERROR + _SMALLEST if number.type is NumericType.FLOAT else 0.0
        return Scale(NUMBER, value, error)
    digits = len(number.value.normalize().as_tuple().digits)
    exact = digits <= _SURE_DIGITS and Decimal(value) == number.value
    return Scale(NUMBER, value, 0.0 if exact else abs(value) * _DOUBLE_ERROR)


def _instant(instant: Instant) -> Scale:
    kind = (DATE_TIME if instant.kind == "dateTime" else DATE) + (not instant.zoned)
    value = float(instant.seconds)
    exact = Decimal(value) == instant.seconds
    return Scale(kind, value, 0.0 if exact else abs(value) * _DOUBLE_ERROR)
