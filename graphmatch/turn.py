"""Turns: a lock that threads get in about the order in which they asked for it.

A plain lock that one thread takes again and again hardly lets another one in. Here
whoever asks stands at a door first, and the one who just came out has to come to it
again.
"""

from __future__ import annotations

from threading import Lock
from types import TracebackType


class Turn:
    """A lock with a door in front; not to be taken twice by one thread.

    Examples
    --------
    >>> turn = Turn()
    >>> with turn:
    ...     print("alone")
    alone
    """

    def __init__(self) -> None:
        self._door = Lock()
        self._lock = Lock()

    def __enter__(self) -> None:
        with self._door:
            self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()
