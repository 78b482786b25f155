"""Streams of matches as server-sent events.

The id of an event is the number of the match, which is durable. After a disconnection, a client
sends the last id (``Last-Event-ID`` or ``since``) and gets all later matches once. Other events of
a stream have no id.

A new match wakes the streams of its subscription. Each stream then reads the matches after the last
one that it sent, so it misses none, and a slow client holds one page in memory. A stream also reads
after each sign of life, in case that a notification of another process was lost.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import select

from graphmatch.broker.db.match_queries import matches_after
from graphmatch.broker.db.store import StoreError, counter
from graphmatch.broker.db.tables import matches, subscriptions
from graphmatch.broker.models.times import millis
from graphmatch.broker.outbox.payloads import match_view
from graphmatch.broker.service.broker import Broker

if TYPE_CHECKING:
    from sqlalchemy import Connection

PAGE = 50
"""Number of matches in one read."""
STREAMS = 20
"""Limit of open streams of a subscription."""
ALIVE_SECONDS = 15.0
"""Seconds between two signs of life."""
STREAM_SECONDS = 3600.0
"""Lifetime of a stream. The client connects again, and its permission is checked again."""


class Streams:
    """The open event streams of a process.

    Parameters
    ----------
    broker
        Its store, clock and limits are used.
    alive_seconds
        Seconds between two signs of life.
    """

    def __init__(self, broker: Broker, alive_seconds: float = ALIVE_SECONDS) -> None:
        self._broker, self._alive = broker, alive_seconds
        self._waiting: dict[int, set[asyncio.Event]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self.stopped = False

    def __len__(self) -> int:
        """Return the number of open streams."""
        return sum(map(len, list(self._waiting.values())))

    def start(self) -> None:
        """Start on the running event loop."""
        self._loop = asyncio.get_running_loop()

    def stop(self) -> None:
        """End all streams."""
        self.stopped = True
        self.wake()

    def notify(self, numbers: Sequence[int] = ()) -> None:
        """Wake the streams of subscriptions, or all, from any thread."""
        if self._loop is not None and not self.stopped:
            with suppress(RuntimeError):  # The loop is closed, so no stream is open.
                self._loop.call_soon_threadsafe(self.wake, numbers)

    def wake(self, numbers: Sequence[int] = ()) -> None:
        """Wake the streams of subscriptions, or all, on the event loop."""
        for number in numbers or list(self._waiting):
            for event in self._waiting.get(number, ()):
                event.set()

    def has_room(self, number: int) -> bool:
        """Return whether a subscription may open another stream."""
        return len(self._waiting.get(number, ())) < STREAMS

    async def follow(self, number: int, since: int | None, root: str) -> AsyncIterator[str]:
        """Yield the events of a subscription.

        Parameters
        ----------
        number
            Number of the subscription.
        since
            Number of the last match that the client has; ``None`` if it wants new ones only.
        root
            Base URL of the broker.
        """
        woken = asyncio.Event()
        self._waiting.setdefault(number, set()).add(woken)
        try:
            with suppress(StoreError):  # The client connects again.
                async for text in self._events(number, since, root, woken):
                    yield text
        finally:
            self._waiting[number].discard(woken)
            if not self._waiting[number]:
                del self._waiting[number]

    async def _events(
        self, number: int, since: int | None, root: str, woken: asyncio.Event
    ) -> AsyncIterator[str]:
        read, now = self._broker.store.read, asyncio.get_running_loop().time
        until = now() + STREAM_SECONDS
        newest = await read(lambda db: counter(db, "match"))
        # A higher number is from another store. Without this, new matches would be missing.
        last = newest if since is None else min(since, newest)
        yield f"retry: 2000\nid: {last}\n\n"
        if since is not None and await read(partial(self._is_cut, number=number, last=last)):
            days = self._broker.limits.replayed / timedelta(days=1)
            yield _control("truncated", f"matches older than {days:g} days are missing here")
        while not self.stopped and now() < until:
            woken.clear()
            rows, state = await read(partial(self._page, number=number, last=last, root=root))
            for seq, view in rows:
                last = seq
                yield f"id: {seq}\nevent: match\ndata: {view}\n\n"
            if not rows and state == "ended":
                yield _control("ended", "the subscription has ended")
                return
            if not rows:
                try:
                    await asyncio.wait_for(woken.wait(), self._alive)
                except TimeoutError:
                    yield ": alive\n\n"

    def _oldest(self) -> int:
        return millis(self._broker.clock() - self._broker.limits.replayed)

    def _page(
        self, db: Connection, number: int, last: int, root: str
    ) -> tuple[list[tuple[int, str]], str | None]:
        """Return the numbers and the JSON of the next matches, and the subscription's state."""
        # The state is read first, so the rows contain all matches before the end.
        state = db.scalar(select(subscriptions.c.state).where(subscriptions.c.number == number))
        rows = matches_after(db, number, last, PAGE, self._oldest())
        most = self._broker.limits.payload_bytes
        views = [json.dumps(match_view(row, root, most), ensure_ascii=False) for row in rows]
        return [(row["seq"], view) for row, view in zip(rows, views, strict=True)], state

    def _is_cut(self, db: Connection, number: int, last: int) -> bool:
        """Return whether later matches are too old for a stream."""
        mine = (matches.c.subscription == number) & (matches.c.seq > last)
        old = select(matches.c.seq).where(mine, matches.c.matched_at < self._oldest()).limit(1)
        return db.scalar(old) is not None


def _control(event: str, what: str) -> str:
    """Return an event without an id."""
    return f"event: {event}\ndata: {json.dumps({'what': what})}\n\n"
