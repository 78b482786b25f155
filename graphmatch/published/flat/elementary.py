"""Elementary tests of an attribute, as Gryphon's general tree has them, and their results.

Aguilera, Strom, Sturman, Astley, Chandra: "Matching events in a content-based subscription
system", PODC 1999, section 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, nextafter
from typing import TypeAlias

from graphmatch.published.base import (
    Constraint,
    Equal,
    Interval,
    Present,
    number_of,
)
from semantic.terms import Term

VALUE, NUMBER, LESS, PRESENT = range(4)
"""The kinds of tests, in their order."""

Result: TypeAlias = Term | float | bool


@dataclass(frozen=True, order=True, slots=True)
class ElementaryTest:
    """A test of one attribute.

    Parameters
    ----------
    attribute
        Its place in the order of attributes.
    kind
        `VALUE`, `NUMBER`, `LESS` or `PRESENT`.
    constant
        Of `LESS`.
    """

    attribute: int
    kind: int
    constant: float = 0.0

    def result(self, term: Term | None, number: float | None) -> Result | None:
        """Return what the test gives for a value; ``None`` where it cannot be made.

        Examples
        --------
        >>> from pyoxigraph import Literal
        >>> less = ElementaryTest(0, LESS, 400.0)
        >>> less.result(Literal(399), 399.0), less.result(Literal("399"), None)
        (True, None)
        """
        if self.kind == VALUE:
            return term
        if self.kind == PRESENT:
            return term is not None
        if self.kind == NUMBER or number is None:
            return number
        return number < self.constant

    def implied(self, constraint: Constraint) -> Result | None:
        """Return the result that all values have which a constraint has; ``None`` if they differ.

        Examples
        --------
        >>> less = ElementaryTest(0, LESS, 500.0)
        >>> less.implied(Interval(high=400)), less.implied(Interval(low=600))
        (True, False)
        >>> less.implied(Interval(low=450))
        """
        if self.kind == PRESENT:
            return True
        if isinstance(constraint, Equal):
            if self.kind == VALUE:
                return constraint.term
            number = number_of(constraint.term)
            return None if number is None else self._of_range(number, number)
        return self._of_range(*constraint) if isinstance(constraint, Interval) else None

    def _of_range(self, low: float, high: float) -> Result | None:
        if self.kind == NUMBER and low == high:
            return low
        if self.kind == LESS and (high < self.constant or low >= self.constant):
            return high < self.constant
        return None


def tests_of(attribute: int, constraint: Constraint) -> Iterator[ElementaryTest]:
    """Yield the tests whose results are equivalent to a constraint.

    Examples
    --------
    >>> [(test.kind, test.constant) for test in tests_of(0, Interval(100.0, 400.0))]
    [(2, 100.0), (2, 400.00000000000006)]
    """
    match constraint:
        case Equal():
            yield ElementaryTest(attribute, VALUE)
        case Present():
            yield ElementaryTest(attribute, PRESENT)
        case Interval():
            low, high = constraint
            if low == high:
                yield ElementaryTest(attribute, NUMBER)
                return
            if low > -inf or high == inf:  # every number is not below -inf
                yield ElementaryTest(attribute, LESS, low)
            if high < inf:
                yield ElementaryTest(attribute, LESS, nextafter(high, inf))
