"""What the algorithms that know ranges of numbers only do alike: ends, domains, and their cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from pyoxigraph import NamedNode

from graphmatch.matcher import Capabilities
from graphmatch.published.flat.constraints import Constraint, Interval, Row

Domain: TypeAlias = tuple[float, float]

DOMAIN: Domain = (0.0, 1_000_000.0)
"""Between what most values are, if nothing else is said."""

RANGES = Capabilities(
    property_variables=False,
    taxonomy=False,
    text=False,
    joins=False,
    terms=False,
    presence=False,
)
"""What they can express."""


def ends_of(constraint: Constraint) -> tuple[float, float]:
    """Return the ends of a constraint that is a range, both closed."""
    assert isinstance(constraint, Interval)
    return constraint.closed()


def all_ends(row: Row) -> Iterator[tuple[NamedNode, float, float]]:
    """Yield each attribute with the ends of its range."""
    for attribute, constraint in row.items():
        yield (attribute, *ends_of(constraint))


def share_of(value: float, domain: Domain) -> float:
    """Return how much of a domain is below a number: 0 to 1, also for those beyond it."""
    low, high = domain
    return min(max((value - low) / (high - low), 0.0), 1.0)


def cell_of(value: float, domain: Domain, cells: int) -> int:
    """Return the cell of a number, where cells divide a domain evenly.

    Those beyond the domain are in the first or last, so their order is kept.

    Examples
    --------
    >>> [cell_of(value, (0, 100), 5) for value in (-1, 0, 45, 100, 1000)]
    [0, 0, 2, 4, 4]
    """
    return min(int(share_of(value, domain) * cells), cells - 1)
