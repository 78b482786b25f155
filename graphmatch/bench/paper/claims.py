"""What a claim asks of measurements, so that a run says itself whether it holds.

A claim is some checks. Each looks at the curve of one algorithm, or compares curves, and says what
it saw; where an algorithm was not measured it says nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from statistics import linear_regression
from typing import TypeAlias

Curve: TypeAlias = Sequence[tuple[float, float]]
"""Places on the horizontal axis, in ascending order, and what was measured there."""

STEADY = 0.25
"""What grows by less than this power of x does not grow, as far as a claim goes."""

STRAIGHT = 0.25
"""By how much of itself a point may lie beside a straight line."""


QUANTITIES = {
    "median_microseconds": "time",
    "deviation_microseconds": "deviation",
    "bytes": "memory",
    "index_bytes": "index",
    "resident_bytes": "process",
    "subscribe_seconds": "subscribing",
    "unsubscribe_microseconds": "unsubscribing",
    "steps_per_subscription": "steps",
    "counters.probes": "nodes",
}
"""Keys of rows that claims speak of, in words."""


@dataclass(frozen=True, slots=True)
class Where:
    """Which curves a check looks at.

    Parameters
    ----------
    key
        Of the rows.
    """

    key: str
    sweep: str = ""
    variant: str = ""

    @property
    def quantity(self) -> str:
        """What is looked at, in words."""
        of = QUANTITIES[self.key]
        return f"{of} by {self.sweep}" if self.sweep else of


Curves: TypeAlias = Mapping[tuple[Where, str], Curve]
"""Where, and an algorithm's label, to the curve."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check says.

    Parameters
    ----------
    asks
        What should be.
    saw
        What is.
    holds
        ``None`` where something was not measured.
    """

    asks: str
    saw: str
    holds: bool | None


class Check(ABC):
    """Something that has to be true of a figure.

    Attributes
    ----------
    where
        Which curves it looks at.
    """

    where: Where

    @abstractmethod
    def of(self, curves: Curves) -> Verdict:
        """Look at what was measured."""


def growth(curve: Curve) -> float:
    """Return the power of x by which a curve grows from its first point to its last one.

    Examples
    --------
    >>> growth([(10, 3.0), (100, 30.0)])
    1.0
    """
    (x, y), (last_x, last_y) = curve[0], curve[-1]
    return log(max(last_y, 1e-12) / max(y, 1e-12)) / log(last_x / x)


@dataclass(frozen=True, slots=True)
class Linear(Check):
    """A curve is a straight line that rises, give or take.

    Examples
    --------
    >>> where = Where("bytes")
    >>> Linear("a", where).of({(where, "a"): [(1, 2.0), (2, 3.0), (9, 10.0)]})
    Verdict(asks='memory: a grows linearly', saw='a straight line within 0 %', holds=True)
    """

    label: str
    where: Where

    def of(self, curves: Curves) -> Verdict:
        """Put a line through all points, by least squares."""
        asks = f"{self.where.quantity}: {self.label} grows linearly"
        curve = curves.get((self.where, self.label), ())
        if len(curve) < 3:
            return Verdict(asks, "not measured", None)
        slope, offset = linear_regression(*zip(*curve, strict=True))
        off = max(abs(offset + slope * x - y) / max(y, 1e-12) for x, y in curve)
        if slope <= 0:
            return Verdict(asks, "it does not rise", holds=False)
        return Verdict(
            asks, f"a straight line within {off:.0%}".replace("%", " %"), off <= STRAIGHT
        )


@dataclass(frozen=True, slots=True)
class Grows(Check):
    """A curve grows by a power of x between two others.

    Examples
    --------
    >>> where = Where("bytes")
    >>> verdict = Grows("a", where, "with x", 0.8, 1.2).of({(where, "a"): [(1, 2.0), (9, 18.0)]})
    >>> verdict.asks, verdict.saw, verdict.holds
    ('memory: a grows with x', 'as x^1.00', True)
    """

    label: str
    where: Where
    how: str
    least: float
    most: float

    def of(self, curves: Curves) -> Verdict:
        """Look at the first point and the last one."""
        verb = "is" if self.how == "steady" else "grows"
        asks = f"{self.where.quantity}: {self.label} {verb} {self.how}"
        curve = curves.get((self.where, self.label), ())
        if len(curve) < 2:
            return Verdict(asks, "not measured", None)
        power = growth(curve)
        return Verdict(asks, f"as x^{power:.2f}", self.least <= power <= self.most)


def sublinear(label: str, where: Where) -> Grows:
    """Return a check that a curve grows more slowly than x."""
    return Grows(label, where, "less than linearly", -10.0, 0.9)


def rising(label: str, where: Where) -> Grows:
    """Return a check that a curve grows."""
    return Grows(label, where, "with x", STEADY, 10.0)


def falling(label: str, where: Where) -> Grows:
    """Return a check that a curve falls."""
    return Grows(label, where, "smaller with x", -10.0, 0.0)


def proportional(label: str, where: Where) -> Grows:
    """Return a check that a curve grows as x does: for memory, whose arrays grow in steps."""
    return Grows(label, where, "in proportion to x", 0.8, 1.2)


def steady(label: str, where: Where) -> Grows:
    """Return a check that a curve hardly changes."""
    return Grows(label, where, "steady", -STEADY, STEADY)


@dataclass(frozen=True, slots=True)
class Below(Check):
    """A curve is below another one, by a factor at least, at every point that both have.

    Examples
    --------
    >>> where = Where("bytes")
    >>> curves = {(where, "a"): [(1, 2.0), (9, 8.0)], (where, "b"): [(1, 3.0), (9, 80.0)]}
    >>> Below("a", "b", where).of(curves)
    Verdict(asks='memory: a is below b', saw='by a factor of 1.5 to 10', holds=True)
    """

    label: str
    other: str
    where: Where
    factor: float = 1.0

    def of(self, curves: Curves) -> Verdict:
        """Compare point by point."""
        by = "" if self.factor == 1 else f" by {self.factor:g}"
        asks = f"{self.where.quantity}: {self.label} is below {self.other}{by}"
        mine = dict(curves.get((self.where, self.label), ()))
        theirs = dict(curves.get((self.where, self.other), ()))
        ratios = [theirs[x] / max(mine[x], 1e-12) for x in mine if x in theirs]
        if not ratios:
            return Verdict(asks, "not measured", None)
        least, most = min(ratios), max(ratios)
        holds = least >= self.factor
        return Verdict(asks, f"by a factor of {_factor(least)} to {_factor(most)}", holds)


@dataclass(frozen=True, slots=True)
class Shifts(Check):
    """From one kind of workload to another, a curve rises by less than another one does.

    Parameters
    ----------
    variant
        The other kind.
    """

    label: str
    other: str
    where: Where
    variant: str

    def of(self, curves: Curves) -> Verdict:
        """Compare the means of the ratios."""
        change = f"from {self.where.variant} to {self.variant}"
        asks = f"{self.where.quantity}: {self.label} changes less than {self.other} {change}"
        mine, theirs = (self._shift(curves, label) for label in (self.label, self.other))
        if mine is None or theirs is None:
            return Verdict(asks, "not measured", None)
        saw = f"by a factor of {mine:.2g}, {self.other} {theirs:.2g}"
        return Verdict(asks, saw, abs(log(mine)) <= abs(log(theirs)))

    def _shift(self, curves: Curves, label: str) -> float | None:
        to = Where(self.where.key, self.where.sweep, self.variant)
        before = dict(curves.get((self.where, label), ()))
        after = dict(curves.get((to, label), ()))
        ratios = [after[x] / max(before[x], 1e-12) for x in before if x in after]
        return sum(ratios) / len(ratios) if ratios else None


def _factor(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def beats(label: str, others: Sequence[str], where: Where) -> tuple[Below, ...]:
    """Return a check for each of several others that a curve is below it."""
    return tuple(Below(label, other, where) for other in others)
