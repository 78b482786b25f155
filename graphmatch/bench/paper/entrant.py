"""What measuring asks of who is measured: to be built, to match, and to say what it found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.workloads.workload import Workload

Numbers: TypeAlias = NDArray[np.int64]


@runtime_checkable
class Weighed(Protocol):
    """An algorithm that says how large its index is."""

    @property
    def nbytes(self) -> int:
        """How many bytes it has."""


class Entrant(ABC):
    """One algorithm with one workload's subscriptions; none is there before `build`.

    Attributes
    ----------
    exact
        Whether it reports what matches, and nothing else.
    """

    exact: bool = True

    @abstractmethod
    def given(self, workload: Workload) -> Any:
        """Return the subscriptions as the algorithm takes them; not timed."""

    @abstractmethod
    def build(self, given: Any) -> None:
        """Take them in; timed.

        Raises
        ------
        UnsupportedError
            When it cannot express one.
        """

    @abstractmethod
    def event(self, workload: Workload, number: int) -> Any:
        """Return an event as the algorithm takes it; not timed."""

    @abstractmethod
    def match(self, event: Any) -> Any:
        """Match an event; timed."""

    @abstractmethod
    def numbers(self, found: Any) -> Numbers:
        """Return which subscriptions matched, in any order."""

    @abstractmethod
    def counters(self, found: Any) -> Mapping[str, int]:
        """Return what matching took."""

    def nbytes(self) -> int | None:
        """Return how large the index is, if the algorithm says it."""
        return None

    def forget(self, ids: Iterable[str]) -> bool:  # noqa: ARG002 - most can
        """Unsubscribe; timed. Say whether it can."""
        return False
