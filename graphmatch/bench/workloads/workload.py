"""What a workload is: subscriptions and events, generated from a seed.

A workload is arrays first; texts of SPARQL and publications are made of them when a peer asks for
them. The same class, size and parameters give the same workload.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from semantic.publication import Publication

if TYPE_CHECKING:
    from semantic.ontology.ontology import Ontology


@dataclass(frozen=True, slots=True)
class Size:
    """How much is generated, and from which seed.

    Parameters
    ----------
    subscriptions, events
        How many of each; at least one.
    """

    subscriptions: int
    events: int
    seed: int = 1

    def planted(self, matching: float, matches: int | None) -> tuple[int, int]:
        """Say how many subscriptions are cut out of each event, and of how many events.

        An event is cut up only as far as half of the subscriptions go; where there are more
        events, they come again.

        Parameters
        ----------
        matching
            The share of the subscriptions that an event matches.
        matches
            The number of them instead, where it is given.

        Examples
        --------
        >>> Size(30_000, 200).planted(0.001, None), Size(30_000, 1000).planted(0.001, None)
        ((30, 200), (30, 500))
        >>> Size(1_000_000, 1000).planted(0.001, 30)
        (30, 1000)
        """
        wanted = max(1, round(matching * self.subscriptions)) if matches is None else matches
        cut = min(wanted, max(1, self.subscriptions // 2))
        return cut, min(self.events, max(1, self.subscriptions // (2 * max(cut, 1))))


class Workload(ABC):
    """Subscriptions and events.

    Parameters
    ----------
    size
        How many of each, and the seed.
    parameters
        One of `parameters_class`.
    """

    name: ClassVar[str]
    parameters_class: ClassVar[type]

    def __init__(self, size: Size, parameters: Any) -> None:
        self.size = size
        self.parameters = parameters

    @abstractmethod
    def texts(self) -> list[str]:
        """Return the subscriptions as SPARQL, in their order."""

    @abstractmethod
    def publication(self, number: int) -> Publication:
        """Return an event as a publication; made anew at each call, as if it was just read."""

    def materialised(self, number: int) -> Publication:
        """Return an event with all that the ontology says of it, for peers that know none."""
        return self.publication(number)

    def ontology(self) -> Ontology:
        """Return the ontology; an empty one, if nothing else is said."""
        from semantic.ontology.ontology import Ontology

        return Ontology()

    def described(self) -> dict[str, object]:
        """Return the parameters, for the output."""
        assert is_dataclass(self.parameters)
        assert not isinstance(self.parameters, type)
        given = asdict(self.parameters)
        return {name: value for name, value in given.items() if value is not None}

    def row(self) -> dict[str, object]:
        """Return what a row of output says of this workload beside what all rows have."""
        return {}


@dataclass(frozen=True, slots=True)
class Rows:
    """Subscriptions as rows of closed intervals, and events as rows of numbers.

    A subscription matches an event when each of its intervals has the event's number in it.

    Parameters
    ----------
    low, high
        Shape ``(columns, subscriptions)``, int32. An interval from the smallest int32 to the
        largest one constrains nothing.
    values
        Shape ``(events, columns)``, int32.
    """

    low: NDArray[np.int32]
    high: NDArray[np.int32]
    values: NDArray[np.int32]


UNBOUNDED = (int(np.iinfo(np.int32).min), int(np.iinfo(np.int32).max))
"""The interval that constrains nothing."""


def formatted(
    formats: Sequence[str],
    columns: Sequence[NDArray[np.intp]],
    shape_of: NDArray[np.int32],
    numbers: NDArray[np.int32],
) -> list[str]:
    """Write one text for each row: its shape's format, with its numbers put in.

    Parameters
    ----------
    formats
        One ``%`` format for each shape.
    columns
        For each shape the columns whose numbers go into its format, in order.
    shape_of
        Shape ``(rows,)``: each row's shape.
    numbers
        Shape ``(rows, columns)``.

    Examples
    --------
    >>> numbers = np.array([[1, 2], [3, 4]], np.int32)
    >>> formatted(["a%d", "b%d-%d"], [np.array([1]), np.array([0, 1])], np.array([0, 1]), numbers)
    ['a2', 'b3-4']
    """
    texts = [""] * len(shape_of)
    order = np.argsort(shape_of, kind="stable")
    bounds = np.searchsorted(shape_of[order], np.arange(len(formats) + 1))
    for shape, form in enumerate(formats):
        rows = order[bounds[shape] : bounds[shape + 1]]
        put = numbers[np.ix_(rows, columns[shape])].tolist()
        for row, values in zip(rows.tolist(), put, strict=True):
            texts[row] = form % tuple(values)
    return texts


def distinct_rows(
    random: np.random.Generator, count: int, width: int, below: int
) -> NDArray[np.int32]:
    """Draw rows of different numbers: rows in which one comes twice are drawn again.

    Examples
    --------
    >>> rows = distinct_rows(np.random.default_rng(1), 100, 5, 8)
    >>> rows.shape, bool((np.diff(np.sort(rows)) > 0).all())
    ((100, 5), True)
    """
    rows = random.integers(0, below, (count, width), dtype=np.int32)
    again = np.arange(count)
    while again.size:
        ordered = np.sort(rows[again], axis=1)
        again = again[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)]
        rows[again] = random.integers(0, below, (again.size, width), dtype=np.int32)
    return rows
