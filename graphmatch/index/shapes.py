"""Programs as columns of a table, and rows of them as what each column is to hold.

A program can be tabled when it is a star: all its patterns share one variable, the *root*, their
predicates are constant, and every other variable is there once, with or without comparisons. Each
other end of a pattern is a *leaf*, and each leaf is a column of the table: by its property and
direction, and by what kind of value it asks for. Constants are one id; so is a variable that
equals a term which is no number. Comparisons with numbers or times are an interval of values of
that kind. A variable without comparisons asks whether there is a value.

Bounds that no float holds exactly are widened by what they may be off. A row that has one is
called inexact: a value near its bounds may or may not meet it. The last bits of such a bound are
never all zero, so that an exact bound of the same row is known mostly (`near`).

Cost: some operations on arrays, however many rows there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.comparing import ASK, EQ, GE, GT, LE, LT
from graphmatch.index.jit import kernel, part
from graphmatch.index.numbers import ASKED, NUMBER, TEXT
from graphmatch.index.plans import Program
from graphmatch.index.terms import Ids, Numbers

Floats: TypeAlias = NDArray[np.float64]
Longs: TypeAlias = NDArray[np.int64]

FORWARD, BACKWARD, SELF = range(3)
"""How a leaf hangs on its root: the root is the subject, or the object; or it is the root."""
IDENTITY, EXISTS = range(2)
"""Kinds of columns of ids: a certain term, or any (written as the id 0). A column of intervals has
the kind of `graphmatch.index.numbers` whose values it compares."""
MOST_LEAVES = 60
_LITTLE = 2.0**-50
"""Bounds may be off by such a share of them, not by more."""
_NEAR = 2.0**-48
_LAST_BITS = 0xFF
_TINY = 1e-300
"""Bounds that may be off are not nearer to zero."""

_PROPERTY, _DIRECTION, _KIND = 1 << 14, 1 << 12, 1 << 6
"""What a property, a direction, a kind is multiplied with in a key; a count is below."""


class Leaf(NamedTuple):
    """One end of a pattern whose other end is the root, or the root itself with its comparisons.

    Parameters
    ----------
    direction
        How it hangs on the root.
    property, constant
        Which of the program's constants these are; -1 for none.
    variable
        Its number; -1 for a constant.
    checks
        Operators, and which constants they compare with.
    """

    direction: int
    property: int
    constant: int
    variable: int
    checks: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Star:
    """A program that can be tabled.

    Parameters
    ----------
    root
        The variable that all patterns share.
    variables
        How many there are.
    leaves
        In the order of the patterns; the root, if it has checks, comes last.
    directions
        By pattern: whether the root is its subject or its object.
    """

    root: int
    variables: int
    leaves: tuple[Leaf, ...]
    directions: tuple[int, ...]


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
    """Return a column's property, direction and kind; the property of the root itself is -1."""
    return key // _PROPERTY - 1, key % _PROPERTY // _DIRECTION, key % _DIRECTION // _KIND


def star_of(program: Program) -> Star | None:
    """Return how a program can be tabled, or None.

    Examples
    --------
    >>> star = star_of(Program(((0, -1, 1), (0, -1, -1)), ((1, GE, 3),), 2))
    >>> star.root, star.leaves[0].checks, star.leaves[1].constant
    (0, ((4, 3),), 2)
    >>> star_of(Program(((0, -1, 1), (1, -1, 2), (2, -1, -1)), (), 3))
    """
    if any(p >= 0 for _, p, _ in program.patterns) or not program.patterns:
        return None
    if any(operator == ASK for _, operator, _ in program.checks):
        return None
    shared = set.intersection(*({s, o} - {-1} for s, _, o in program.patterns))
    places = [v for s, _, o in program.patterns for v in (s, o) if v >= 0]
    checked = {variable for variable, _, _ in program.checks}
    for root in sorted(shared, key=lambda variable: (variable in checked, variable)):
        if places.count(root) == len(program.patterns) and len(set(places) - {root}) == len(
            places
        ) - len(program.patterns):
            star = _star(program, root)
            return star if len(star.leaves) <= MOST_LEAVES else None
    return None


def _star(program: Program, root: int) -> Star:
    checks: dict[int, list[tuple[int, int]]] = {v: [] for v in range(program.variables)}
    for variable, operator, constant in program.checks:
        checks[variable].append((operator, constant))
    leaves, directions, used = [], [], 0
    for s, _, o in program.patterns:
        numbers = []
        for place in (s, -1, o):
            numbers.append(used if place < 0 else -1)
            used += place < 0
        direction, end = (FORWARD, 2) if s == root else (BACKWARD, 0)
        other = o if direction == FORWARD else s
        own = tuple(checks[other]) if other >= 0 else ()
        leaves.append(Leaf(direction, numbers[1], numbers[end], other, own))
        directions.append(direction)
    if checks[root]:
        leaves.append(Leaf(SELF, -1, -1, root, tuple(checks[root])))
    return Star(root, program.variables, tuple(leaves), tuple(directions))


def asked_of(star: Star, constants: Ids, numbers: Numbers) -> Asked:
    """Return what rows ask for.

    Parameters
    ----------
    constants
        Of the program, shape (rows, constants).
    numbers
        By id: what constants are compared by.
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
    columns = [leaf.property for leaf in star.leaves]
    properties = constants[:, columns].astype(np.int64) + 1
    properties[:, [n for n, column in enumerate(columns) if column < 0]] = 0
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
