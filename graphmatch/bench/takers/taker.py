"""What a taker is: an engine that takes subscriptions in, a chunk at a time.

Only `Taker.take` and `Taker.drop` are timed. What they are given is made beforehand, in the form in
which a user of that engine would have it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.peers.peer import Listed
from graphmatch.bench.workloads.workload import Workload


class Taker(Listed):
    """An engine that nobody has subscribed to yet.

    Parameters
    ----------
    source
        What subscriptions are read from.
    workload
        Whose subscriptions they are.

    Attributes
    ----------
    sources
        Those that it takes.
    ways
        In which ways it takes them in: ``one`` by one, or ``many`` in one call.
    drops
        Whether it forgets subscriptions, too.
    """

    workloads: ClassVar = frozenset({"subscribe"})
    sources: ClassVar[frozenset[str]]
    ways: ClassVar[tuple[str, ...]] = ("one",)
    drops: ClassVar[bool] = False

    @classmethod
    def takes(cls, parameters: Mapping[str, Any]) -> bool:
        """Say whether it takes the source."""
        return parameters["source"] in cls.sources

    def __init__(self, source: str, workload: Workload) -> None:
        self.source = source
        self.workload = workload

    @abstractmethod
    def chunks(self, bounds: Sequence[range]) -> list[Any]:
        """Return the subscriptions of each range of numbers, as they are taken in; not timed."""

    @abstractmethod
    def take(self, chunk: Any, way: str) -> None:
        """Take a chunk in; timed."""

    def drop(self, ids: Sequence[str]) -> None:
        """Forget subscriptions; timed."""
        raise NotImplementedError

    @abstractmethod
    def __len__(self) -> int:
        """Return how many subscriptions there are."""

    def matched(self, number: int) -> NDArray[np.int64] | None:  # noqa: ARG002 - some say nothing
        """Return which subscriptions an event matches, sorted; ``None`` where it is not asked."""
        return None

    def close(self) -> None:
        """Give back what the interpreter does not; nothing, if nothing else is said."""
        return
