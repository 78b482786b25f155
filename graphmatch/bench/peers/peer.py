"""What a peer is: an engine that takes a workload's subscriptions, and matches its events.

Only `Peer.build` and `Peer.match` are timed. What they are given is made by `Peer.given` and
`Peer.prepare` beforehand, in the *form* in which a user of that engine has it (bytes of a syntax,
Python objects, an Arrow table, integers); what `Peer.match` returns is what a user reads: the ids
of the subscriptions that match.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.workloads.workload import Workload

Asked: TypeAlias = tuple[int, int | None]
"""The number of an event, and a serial number if it is to be new."""


class Peer(ABC):
    """An engine with one workload's subscriptions.

    Attributes
    ----------
    name
        As it is listed.
    forms
        The workloads that it can express, and the forms in which it takes their events.
    requires
        The module that has to be installed, if any.
    most
        How many subscriptions it is given at the most, unless it is named; ``None`` for any number.
    matches
        Whether it says which subscriptions match; one that does not is the floor of others.
    """

    name: ClassVar[str]
    forms: ClassVar[Mapping[str, Sequence[str]]]
    requires: ClassVar[str | None] = None
    most: ClassVar[int | None] = None
    matches: ClassVar[bool] = True

    @classmethod
    def is_installed(cls) -> bool:
        """Say whether what it requires is there."""
        return cls.requires is None or find_spec(cls.requires) is not None

    @classmethod
    def takes(cls, parameters: Mapping[str, Any]) -> bool:  # noqa: ARG003 - some look at them
        """Say whether it can express a workload that it knows, with these parameters."""
        return True

    @abstractmethod
    def given(self, workload: Workload) -> Any:
        """Return the subscriptions as the engine takes them; not timed."""

    @abstractmethod
    def build(self, given: Any) -> None:
        """Take the subscriptions in; timed."""

    def prepare(self, workload: Workload, asked: Sequence[Asked], form: str) -> list[Any]:
        """Return events as the engine takes them; not timed."""
        return [self.event(workload, number, serial, form) for number, serial in asked]

    def event(self, workload: Workload, number: int, serial: int | None, form: str) -> Any:
        """Return one event."""
        raise NotImplementedError

    @abstractmethod
    def match(self, event: Any, form: str) -> Sequence[Any]:
        """Match what `prepare` made, and read the ids; timed. Return one answer an event."""

    def numbers(self, answer: Any) -> NDArray[np.int64]:
        """Return which subscriptions matched, in any order; not timed."""
        if isinstance(answer, np.ndarray):
            return answer.astype(np.int64)
        ids: Iterable[Any] = answer
        return np.array([int(id) for id in ids], np.int64)

    def reported_bytes(self) -> int | None:
        """Return how much memory the engine itself says that it has, if it does."""
        return None

    def close(self) -> None:
        """Give back what the interpreter does not; nothing, if nothing else is said."""
        return
