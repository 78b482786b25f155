"""Bounds as integers, in the narrowest type that is exact for all bounds of a column.

A column whose finite bounds are whole numbers within a range of 65,532 takes 16 bits a bound,
within 2³² - 4 it takes 32; so do bounds that are exact in float32; others take 64. Infinite bounds
fit each. All codes are integers in the order of what they stand for (the bits of a float, the lower
ones turned round when it is negative), so that one comparison of integers does for all of them.

A row's code is a pair: the code of its low end, and the *complement* of the code of its high end.
A value has a code rounded down and the complement of one rounded up, so that a row is met when both
of its numbers are at most those of the value.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.signedinteger[Any]]

INT16, INT32, FLOAT32, FLOAT64 = range(4)
"""The codings, narrowest first."""

WIDTHS = (0, 1, 1, 2)
"""Which of the three types of integers each coding is held in."""

TYPES: tuple[type[np.signedinteger[Any]], ...] = (np.int16, np.int32, np.int64)

_WHOLE = 2.0**53
"""Up to here the difference of two whole float64 is exact."""


def coding_of(lows: Floats, highs: Floats) -> tuple[int, float]:
    """Return the narrowest coding for bounds, and the number that it counts from.

    Examples
    --------
    >>> coding_of(np.array([1990.0, -np.inf]), np.array([2025.0, 2000.0]))
    (0, 34756.0)
    >>> coding_of(np.array([0.5]), np.array([np.inf]))
    (2, 0.0)
    """
    from graphmatch.index.table_cells import span_of

    least, most, whole, single = span_of(lows, highs)
    if least > most:
        return INT16, 0.0  # all are infinite
    if whole and least >= -_WHOLE and most <= _WHOLE:
        for coding in (INT16, INT32):
            room = int(np.iinfo(TYPES[WIDTHS[coding]]).max) - 1  # three codes are kept free
            if most - least <= 2 * room - 1:
                return coding, least + room
    return (FLOAT32 if single else FLOAT64), 0.0


def encode(bounds: Floats, coding: int, base: float) -> Codes:
    """Return the codes of bounds, none of them NaN."""
    integers = TYPES[WIDTHS[coding]]
    if coding <= INT32:
        limits = np.iinfo(integers)
        codes: Codes = np.clip(bounds - base, limits.min, limits.max).astype(integers)
        return codes  # the outermost ones stand for infinity
    floats = np.float32 if coding == FLOAT32 else np.float64
    return _turned((bounds + 0.0).astype(floats).view(integers))  # + 0.0: there is one zero


def decode(codes: Codes, coding: int, base: float) -> Floats:
    """Return the bounds that codes stand for.

    Examples
    --------
    >>> decode(encode(np.array([7.0, np.inf]), INT32, 0.0), INT32, 0.0)
    array([ 7., inf])
    """
    if coding <= INT32:
        limits = np.iinfo(TYPES[WIDTHS[coding]])
        bounds = codes.astype(np.float64) + base
        bounds[codes == limits.min], bounds[codes == limits.max] = -np.inf, np.inf
        return bounds
    floats = np.float32 if coding == FLOAT32 else np.float64
    return _turned(np.ascontiguousarray(codes)).view(floats).astype(np.float64)


def _turned(bits: Codes) -> Codes:
    """Turn the bits of negative floats round, or back; the sign stays."""
    limits = np.iinfo(bits.dtype)
    turned: Codes = bits ^ ((bits >> (limits.bits - 1)) & limits.max)
    return turned
