"""Rows of a star as columns of a table, and what each column is to hold.

Each leaf of a star (`graphmatch.index.stars`) is a column of the table: by its property and
direction, or by its path when it is several steps away (`graphmatch.index.paths`), and by what
kind of value it asks for. Constants are one id; so is a variable that equals a term which is no
number. Comparisons with numbers or times are an interval of values of that kind. A variable
without comparisons asks whether there is a value.

Bounds that no float holds exactly are widened by what they may be off. A row that has one is
called inexact: a value near its bounds may or may not meet it. The last bits of such a bound are
never all zero, so that an exact bound of the same row is known mostly (`near`).

Cost: some operations on arrays, however many rows there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.comparing import EQ, GE, GT, LE, LT
from graphmatch.index.numbers import ASKED, NUMBER, TEXT
from graphmatch.index.paths import Paths
from graphmatch.index.stars import WALK, Star
from graphmatch.index.terms import Ids, Numbers
from semantic.jit import kernel, part

Floats: TypeAlias = NDArray[np.float64]
Longs: TypeAlias = NDArray[np.int64]

IDENTITY, EXISTS = range(2)
"""Kinds of columns of ids: a certain term, or any (written as the id 0). A column of intervals has
the kind of `graphmatch.index.numbers` whose values it compares."""
_LITTLE = 2.0**-50
"""Bounds may be off by such a share of them, not by more."""
_NEAR = 2.0**-48
_LAST_BITS = 0xFF
_TINY = 1e-300
"""Bounds that may be off are not nearer to zero."""

_PROPERTY, _DIRECTION, _KIND = 1 << 14, 1 << 12, 1 << 6
"""What a property, a direction, a kind is multiplied with in a key; a count is below."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What rows ask of their leaves; all arrays but the first and the last are (rows, leaves).

    Parameters
    ----------
    tabled
        Which rows can be tabled, shape (rows,).
    keys
        Which column a leaf is: see `path_of`. Two leaves of a row have different ones.
    lows, highs
        The closed ends of intervals, NaN in columns of ids.
    ids
        The ids, -1 in columns of intervals.
    inexact
        Which rows have a bound that may be off, shape (rows,).
    """

    tabled: NDArray[np.bool_]
    keys: Longs
    lows: Floats
    highs: Floats
    ids: Ids
    inexact: NDArray[np.bool_]

    def __getitem__(self, part: NDArray[np.intp] | NDArray[np.bool_]) -> Asked:
        """Return some of the rows."""
        return Asked(
            self.tabled[part],
            self.keys[part],
            self.lows[part],
            self.highs[part],
            self.ids[part],
            self.inexact[part],
        )


def path_of(key: int) -> tuple[int, int, int]:
    """Return a column's property, direction and kind.

    The property of the root itself is -1; of a column that is several steps away it is the number
    of the path.
    """
    return key // _PROPERTY - 1, key % _PROPERTY // _DIRECTION, key % _DIRECTION // _KIND


def asked_of(star: Star, constants: Ids, numbers: Numbers, paths: Paths) -> Asked:
    """Return what rows ask for.

    Parameters
    ----------
    constants
        Of the program, shape (rows, constants).
    numbers
        By id: what constants are compared by.
    paths
        The numbers of paths; new ones are put there.
    """
    shape = len(constants), len(star.leaves)
    lows, highs = np.full(shape, np.nan), np.full(shape, np.nan)
    ids, kinds = np.full(shape, -1, np.int32), np.full(shape, EXISTS, np.int64)
    tabled, inexact = np.ones(shape[0], np.bool_), np.zeros(shape[0], np.bool_)
    for n, leaf in enumerate(star.leaves):
        if leaf.constant >= 0:
            ids[:, n], kinds[:, n] = constants[:, leaf.constant], IDENTITY
        elif not leaf.checks:
            ids[:, n] = 0
    checks = [
        (n, operator, constant, len(leaf.checks))
        for n, leaf in enumerate(star.leaves)
        for operator, constant in leaf.checks
    ]
    if checks:
        made = (lows, highs), (ids, kinds), (tabled, inexact)
        _constrain(constants, numbers, np.array(checks, np.int32), *made)
    properties = np.zeros(shape, np.int64)
    for n, leaf in enumerate(star.leaves):
        walked = constants[:, [column for column, _ in leaf.steps]]
        if leaf.direction == WALK:
            properties[:, n] = paths.numbers((d for _, d in leaf.steps), walked) + 1
        elif leaf.steps:
            properties[:, n] = walked[:, 0].astype(np.int64) + 1
    directions = np.array([leaf.direction for leaf in star.leaves], np.int64)
    keys = properties * _PROPERTY + directions * _DIRECTION + kinds * _KIND
    _tell_apart(keys)
    return Asked(tabled, keys, lows, highs, ids, inexact)


@kernel
def _constrain(
    constants: Ids,
    numbers: Numbers,
    checks: Ids,
    ends: tuple[Floats, Floats],
    columns: tuple[Ids, Longs],
    said: tuple[NDArray[np.bool_], NDArray[np.bool_]],
) -> None:
    """Write what checks ask for: leaf, operator, constant, and how many the leaf has, in order."""
    lows, highs = ends
    ids, kinds = columns
    tabled, inexact = said
    for row in range(constants.shape[0]):
        for n in range(checks.shape[0]):
            leaf, operator = checks[n, 0], checks[n, 1]
            id_ = constants[row, checks[n, 2]]
            kind, value, error = int(numbers[id_, 0]), numbers[id_, 1], numbers[id_, 2]
            if kind <= TEXT and operator == EQ and checks[n, 3] == 1:
                ids[row, leaf], kinds[row, leaf] = id_, IDENTITY
                continue
            if n == 0 or checks[n - 1, 0] != leaf:
                kinds[row, leaf] = kind
                lows[row, leaf], highs[row, leaf] = -np.inf, np.inf
            if (
                kind < NUMBER
                or kind >= ASKED
                or kind != kinds[row, leaf]
                or (error > 0.0 and (error > abs(value) * _LITTLE or abs(value) < _TINY))
            ):
                tabled[row] = False
                continue
            inexact[row] |= error > 0.0
            if operator in (GE, GT, EQ):
                low = np.nextafter(value, np.inf) if operator == GT else value
                if error > 0.0:
                    low = _widened(value - error, -np.inf)
                lows[row, leaf] = max(lows[row, leaf], low + 0.0)
            if operator in (LE, LT, EQ):
                high = np.nextafter(value, -np.inf) if operator == LT else value
                if error > 0.0:
                    high = _widened(value + error, np.inf)
                highs[row, leaf] = min(highs[row, leaf], high + 0.0)
            if lows[row, leaf] > highs[row, leaf]:
                tabled[row] = False


@part
def _widened(bound: float, towards: float) -> float:
    """Return a bound a little farther out, whose last bits are not all zero."""
    wide = np.nextafter(bound, towards)
    mantissa, _ = math.frexp(wide)
    if int(abs(mantissa) * 2.0**53) & _LAST_BITS == 0:
        wide = np.nextafter(wide, towards)
    return float(wide)


def near(bounds: Floats) -> Floats:
    """Return how far inside the bounds of inexact rows a value must be to meet them for certain."""
    short = bounds.view(np.int64) & _LAST_BITS == 0
    return np.where(short, 0.0, np.abs(bounds) * _NEAR)


def _tell_apart(keys: Longs) -> None:
    """Tell the leaves of a row apart that would have one key."""
    ordered = np.sort(keys, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        for n in range(keys.shape[1] - 1, 0, -1):
            keys[:, n] += (keys[:, :n] == keys[:, n : n + 1]).sum(axis=1)
