"""What a peer is: an engine that takes a workload's subscriptions, and matches its events.

Only `Peer.build` and `Peer.match` are timed. What they are given is made by `Peer.given` and
`Peer.event` beforehand, in the form in which a user of that engine would have it; what
`Peer.match` returns is read by `Peer.numbers` and `Peer.counters` afterwards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.workloads.workload import Workload


class Listed(ABC):
    """What can be measured, as a list of engines shows it.

    Attributes
    ----------
    name
        As it is listed.
    workloads
        Those that it can express.
    requires
        The module that has to be installed, if any.
    most
        How many subscriptions it is given at the most, unless it is named; ``None`` for any number.
    """

    name: ClassVar[str]
    workloads: ClassVar[frozenset[str]]
    requires: ClassVar[str | None] = None
    most: ClassVar[int | None] = None

    @classmethod
    def is_installed(cls) -> bool:
        """Say whether what it requires is there."""
        return cls.requires is None or find_spec(cls.requires) is not None

    @classmethod
    def takes(cls, parameters: Mapping[str, Any]) -> bool:  # noqa: ARG003 - some look at them
        """Say whether it can express a workload that it knows, with these parameters."""
        return True


class Peer(Listed):
    """An engine with one workload's subscriptions.

    Attributes
    ----------
    matches
        Whether it says which subscriptions match; one that does not is the floor of others.
    """

    matches: ClassVar[bool] = True

    @abstractmethod
    def given(self, workload: Workload) -> Any:
        """Return the subscriptions as the engine takes them; not timed."""

    @abstractmethod
    def build(self, given: Any) -> None:
        """Take the subscriptions in; timed."""

    @abstractmethod
    def event(self, workload: Workload, number: int) -> Any:
        """Return an event as the engine takes it, read already; not timed."""

    @abstractmethod
    def match(self, event: Any) -> Any:
        """Match an event; timed."""

    @abstractmethod
    def numbers(self, found: Any) -> NDArray[np.int64]:
        """Return which subscriptions matched, in any order, each once a publication."""

    def counters(self, found: Any) -> Mapping[str, int]:  # noqa: ARG002 - some have none
        """Return what the engine says that it did for an event."""
        return {}

    def reported_bytes(self) -> int | None:
        """Return how much memory the engine itself says that it has, if it does."""
        return None

    def close(self) -> None:
        """Give back what the interpreter does not; nothing, if nothing else is said."""
        return
