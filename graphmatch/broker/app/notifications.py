"""Notifications between the processes of a PostgreSQL store, with LISTEN and NOTIFY.

A process that commits publications, matches or changes of feeds notifies the others, so that they
need not wait for their next poll. Notifications can be lost with a connection. Therefore a process
acts after each new connection as if it had been notified of everything.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from graphmatch.broker.app.supervisor import Supervisor
from graphmatch.broker.db.store import StoreError
from semantic.errors import Place, Problem

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_NOTIFY = "SELECT pg_notify('graphmatch', payload) FROM unnest(%s::text[]) AS payload"
_CLIENT: dict[str, Any] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "tcp_user_timeout": 10_000,
}
_SERVER = "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_user_timeout=10000"
"""Settings with which both sides notice within some ten seconds that the other one is gone."""
_NUMBERS = 500
"""Maximum number of subscriptions in a notification, which PostgreSQL limits to 8,000 bytes."""
_LISTEN_SECONDS, _GATHER_SECONDS = 5.0, 0.005
"""Length of a round of listening, and of the pause in which notifications are collected."""
_IDLE_SECONDS = 3600.0


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
    """Notifies the other processes of a store, and calls handlers if they notify this one.

    Parameters
    ----------
    database
        URL of the PostgreSQL database; ``None`` if this process is alone.
    handlers
        The function to call for each topic, with the numbers of the subscriptions concerned. There
        are none after a new connection.
    """

    def __init__(
        self,
        database: str | None,
        supervisor: Supervisor,
        handlers: Mapping[str, Callable[[Sequence[int]], object]],
    ) -> None:
        self._database, self._supervisor, self._handlers = database, supervisor, handlers
        self._sender, self._listener = (
            DatabaseSession(database or ""),
            DatabaseSession(database or ""),
        )
        self._pending: deque[tuple[str, Sequence[int]]] = deque(maxlen=10_000)
        self._woken, self._loop = asyncio.Event(), asyncio.get_running_loop()
        self._listening: AsyncConnection | None = None
        self._own = 0

    def send(self, topic: str, numbers: Sequence[int] = ()) -> None:
        """Notify the other processes soon; any thread may call it."""
        if self._database is not None:
            self._pending.append((topic, numbers))
            with suppress(RuntimeError):  # The loop is closed.
                self._loop.call_soon_threadsafe(self._woken.set)

    async def run(self, stop: asyncio.Event) -> None:
        """Send and receive notifications until `stop` is set."""
        if self._database is None:
            return
        repeat = self._supervisor.repeat
        sending = repeat("notifications", self._send, stop, self._woken)
        tasks = asyncio.gather(sending, repeat("notifications", self._listen, stop))
        await stop.wait()
        tasks.cancel()
        await asyncio.wait([tasks])
        await self._sender.close()
        await self._listener.close()

    async def _send(self) -> float:
        payloads: dict[str, None] = {}
        while self._pending:
            topic, numbers = self._pending.popleft()
            for begin in range(0, len(numbers) or 1, _NUMBERS):
                payloads[" ".join([topic, *map(str, numbers[begin : begin + _NUMBERS])])] = None
        if payloads:
            async with self._sender.connection() as connection:
                self._own = connection.info.backend_pid
                await connection.execute(_NOTIFY, [list(payloads)])
            await asyncio.sleep(_GATHER_SECONDS)
        return _IDLE_SECONDS

    async def _listen(self) -> float:
        async with self._listener.connection() as connection:
            if connection is not self._listening:
                await connection.execute("LISTEN graphmatch")
                self._listening = connection
                for handle in self._handlers.values():
                    handle(())
            async for one in connection.notifies(timeout=_LISTEN_SECONDS):
                topic, *numbers = one.payload.split()
                if one.pid != self._own and topic in self._handlers:
                    self._handlers[topic]([int(number) for number in numbers])
        return 0.0
