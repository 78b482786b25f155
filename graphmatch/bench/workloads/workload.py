"""What a workload is: subscriptions and events, generated from a seed.

A workload is arrays first; SPARQL texts, Arrow tables, documents and publications are made of them
when a peer asks for them. The same class, size and parameters give the same workload.

An event is asked for by its number and, where it is to be a *new* one, by a serial number: then the
terms that no subscription needs for its wanted matches get names that depend on the serial number
and that nothing else has.
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
    import pyarrow as pa

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
        """Return how many subscriptions are cut out of each event, and of how many events.

        An event is cut up only as far as half of the subscriptions go; where there are more
        events, they come again.

        Parameters
        ----------
        matching
            The share of the subscriptions that an event matches.
        matches
            The number of them instead, where it is given; may be 0.

        Examples
        --------
        >>> Size(30_000, 200).planted(0.001, None), Size(30_000, 1000).planted(0.001, None)
        ((30, 200), (30, 500))
        >>> Size(1_000_000, 1000).planted(0.001, 30), Size(1000, 20).planted(0.001, 0)
        ((30, 1000), (0, 20))
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

    Attributes
    ----------
    renews
        Whether a new event has new terms.
    tabular
        Whether subscriptions and events are tables of attributes (`table`, `attributes`).
    """

    name: ClassVar[str]
    parameters_class: ClassVar[type]
    renews: ClassVar[bool] = False
    tabular: ClassVar[bool] = False

    def __init__(self, size: Size, parameters: Any) -> None:
        self.size = size
        self.parameters = parameters

    @abstractmethod
    def texts(self) -> list[str]:
        """Return the subscriptions as SPARQL, in their order."""

    @abstractmethod
    def publication(self, number: int) -> Publication:
        """Return an event as a publication; made anew at each call, as if it was just read."""

    def publications(self, number: int, serial: int | None = None) -> list[Publication]:  # noqa: ARG002
        """Return what is in an event's document; new if it has a serial number."""
        return [self.publication(number)]

    def document(self, number: int, syntax: str, serial: int | None = None) -> bytes:
        """Return an event as bytes of a syntax; new if it has a serial number."""
        raise NotImplementedError

    def table(self) -> pa.Table:
        """Return the subscriptions as an Arrow table of constraints on attributes."""
        raise NotImplementedError

    def attributes(self, number: int) -> dict[str, object]:
        """Return an event as attributes and values."""
        raise NotImplementedError

    def events_table(self, numbers: Sequence[int]) -> pa.Table:
        """Return events as an Arrow table: a row each, a column ``id``, a column an attribute."""
        import pyarrow as pa

        rows = [{"id": f"urn:e:{number}", **self.attributes(number)} for number in numbers]
        return pa.Table.from_pylist(rows)

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


def ids(count: int) -> list[str]:
    """Return the ids of so many subscriptions: their numbers."""
    return list(map(str, range(count)))


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
