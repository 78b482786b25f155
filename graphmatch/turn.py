"""Turns: many threads match at once, one that changes something is alone.

Threads go in the order in which they ask. One that asks for a turn alone waits for those that are
in, and whoever asks after it waits for it, so that neither those that match nor those that change
can keep the others out. A thread that waits sleeps until the one that leaves calls it.

Cost: 1 µs to go in and out where nobody waits.

Source: the order is that of the third readers-writers problem; Courtois, Heymans and Parnas:
Concurrent control with "readers" and "writers", CACM 14 (10), 1971, states the first two.
"""

from __future__ import annotations

from collections import deque
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import Lock

_ALONE = -1
"""Stands for how many share a turn when one thread has it alone."""


def _closed() -> Lock:
    lock = Lock()
    lock.acquire()
    return lock


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """A thread that waits for its turn."""

    alone: bool
    called: Lock = field(default_factory=_closed)
    """Released by whoever lets the thread in."""


class Turn:
    """A lock that may be shared or had alone; no thread may ask again before it has left.

    Examples
    --------
    >>> turn = Turn()
    >>> with turn.shared():
    ...     print("with others")
    with others
    >>> with turn.alone():
    ...     print("alone")
    alone
    """

    def __init__(self) -> None:
        self._guard = Lock()
        """Held for a few instructions, by whoever reads or writes what follows."""
        self._inside = 0
        self._queue: deque[_Waiting] = deque()

    @property
    def waiting(self) -> int:
        """How many threads wait."""
        return len(self._queue)

    def shared(self) -> AbstractContextManager[None]:
        """Have a turn together with others that share theirs."""
        return _Having(self, alone=False)

    def alone(self) -> AbstractContextManager[None]:
        """Have a turn that nobody else has."""
        return _Having(self, alone=True)

    def enter(self, *, alone: bool) -> None:
        """Wait for a turn; whoever has one calls `leave`."""
        with self._guard:
            if not self._queue and self._may_enter(alone=alone):
                self._let_in(alone=alone)
                return
            waiting = _Waiting(alone)
            self._queue.append(waiting)
        called = False
        try:
            called = waiting.called.acquire()
        finally:
            if not called:  # a signal: somebody would wait for this thread for ever
                self._give_up(waiting)

    def _may_enter(self, *, alone: bool) -> bool:
        return self._inside == 0 or (self._inside > 0 and not alone)

    def _let_in(self, *, alone: bool) -> None:
        self._inside = _ALONE if alone else self._inside + 1

    def leave(self) -> None:
        """Let others in."""
        with self._guard:
            self._let_out()

    def _let_out(self) -> None:
        self._inside = 0 if self._inside == _ALONE else self._inside - 1
        self._call()

    def _call(self) -> None:
        """Let those in whose turn it is."""
        while self._queue and self._may_enter(alone=self._queue[0].alone):
            waiting = self._queue.popleft()
            self._let_in(alone=waiting.alone)
            waiting.called.release()

    def _give_up(self, waiting: _Waiting) -> None:
        with self._guard:
            if waiting in self._queue:
                self._queue.remove(waiting)
                self._call()
            else:  # it was let in meanwhile
                self._let_out()


class _Having(AbstractContextManager[None]):
    """A turn, from its begin to its end."""

    __slots__ = ("_alone", "_turn")

    def __init__(self, turn: Turn, *, alone: bool) -> None:
        self._turn, self._alone = turn, alone

    def __enter__(self) -> None:
        self._turn.enter(alone=self._alone)

    def __exit__(self, *_: object) -> None:
        self._turn.leave()
