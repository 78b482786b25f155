"""Notifications between the processes of a PostgreSQL store, with LISTEN and NOTIFY.

The transaction that raises a counter notifies the other processes (`graphmatch.broker.db.store`),
so that they need not wait for their next poll. Notifications can be lost with a connection.
Therefore a process acts after each new connection as if it had been notified of everything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from graphmatch.broker.db.store import CHANNEL, Store, StoreError
from graphmatch.broker.db.tables import COUNTERS
from semantic.errors import Place, Problem

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_CLIENT: dict[str, Any] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "tcp_user_timeout": 10_000,
}
_SERVER = "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_user_timeout=10000"
"""Settings with which both sides notice within some ten seconds that the other one is gone."""
_LISTEN_SECONDS = 1.0
"""Length of a round of listening."""


class DatabaseSession:
    """A connection to PostgreSQL outside of the store's, opened again after a failure.

    Parameters
    ----------
    database
        URL of the database.
    """

    def __init__(self, database: str) -> None:
        self._url = database.replace("postgresql+psycopg:", "postgresql:", 1)
        self._connection: AsyncConnection | None = None

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection]:
        """Yield the connection; raise `StoreError` if it fails."""
        from psycopg import AsyncConnection, Error

        try:
            if self._connection is None:
                self._connection = await AsyncConnection.connect(
                    self._url, autocommit=True, connect_timeout=5, options=_SERVER, **_CLIENT
                )
            yield self._connection
        except Error as error:
            await self.close()
            what = f"the connection failed: {' '.join(str(error).split())}"
            problem = Problem(what, Place("the store"), "Check that the database runs.")
            raise StoreError(problem) from error

    async def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


class Notifications:
    """Learns which counters other processes of a store have raised.

    Parameters
    ----------
    store
        A PostgreSQL store. Notifications of its own transactions are ignored.
    on_raised
        Called with the name of each raised counter, a key of
        `graphmatch.broker.db.tables.sequences`.
    """

    def __init__(self, store: Store, on_raised: Callable[[str], Awaitable[object]]) -> None:
        self._store, self._on_raised = store, on_raised
        self._session = DatabaseSession(store.database or "")
        self._listening: AsyncConnection | None = None

    async def listen(self) -> None:
        """Receive notifications for `_LISTEN_SECONDS`."""
        async with self._session.connection() as connection:
            if connection is not self._listening:
                await connection.execute(f"LISTEN {CHANNEL}")
                self._listening = connection
                for name in COUNTERS:
                    await self._on_raised(name)
            async for notification in connection.notifies(timeout=_LISTEN_SECONDS):
                if notification.pid != self._store.writer_pid:
                    await self._on_raised(notification.payload)

    async def close(self) -> None:
        """Close the connection."""
        await self._session.close()
