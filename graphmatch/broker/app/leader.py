"""One leader among the processes of a PostgreSQL store.

The leader holds an advisory lock of the database. PostgreSQL releases it when the connection of the
leader ends, so another process takes over `CHECK_SECONDS` after the leader was killed. A leader
that loses its connection stops its work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from graphmatch.broker.app.notifications import DatabaseSession
from graphmatch.broker.app.supervisor import Supervisor
from graphmatch.broker.db.store import StoreError

CHECK_SECONDS = 1.0
"""Delay between two attempts to become the leader, and between two checks of the connection."""
_TRY_LOCK = "SELECT pg_try_advisory_lock(6778220)"
Work: TypeAlias = Callable[[asyncio.Event], Awaitable[object]]
"""The work of the leader, which ends after the event is set."""


class Leader:
    """The election of the leader.

    Parameters
    ----------
    database
        URL of the PostgreSQL database; ``None`` if this process is alone, which makes it the
        leader.
    supervisor
        The supervisor of the task ``leader``.
    """

    def __init__(self, database: str | None, supervisor: Supervisor) -> None:
        self._database, self._supervisor = database, supervisor
        self._session = DatabaseSession(database or "")
        self._ending = asyncio.Event()
        self._work: asyncio.Future[object] | None = None

    @property
    def is_leading(self) -> bool:
        """Whether this process is the leader."""
        return self._work is not None

    async def run(self, work: Work, stop: asyncio.Event) -> None:
        """Do the work whenever this process is the leader, until `stop` is set."""
        try:
            await self._supervisor.repeat("leader", partial(self._round, work), stop)
        finally:
            await self._resign()

    async def _round(self, work: Work) -> float:
        if self._work is not None and self._work.done():
            ended, self._work = self._work, None
            await ended  # If it failed, the supervisor delays the next attempt.
        if self._database is not None:
            statement = "SELECT true" if self.is_leading else _TRY_LOCK
            try:
                async with self._session.connection() as connection:
                    row = await (await connection.execute(statement)).fetchone()
            except StoreError:  # Another process can have the lock now.
                await self._resign()
                raise
            if row != (True,):
                return CHECK_SECONDS
        if self._work is None:
            self._ending = asyncio.Event()
            self._work = asyncio.ensure_future(work(self._ending))
        return CHECK_SECONDS

    async def _resign(self) -> None:
        """End the work, and release the lock."""
        self._ending.set()
        if self._work is not None:
            ended, self._work = self._work, None
            await asyncio.wait([ended])
        await self._session.close()
