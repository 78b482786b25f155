"""Matches as they come (server-sent events), in pages, and as an Atom feed.

An event's id is the match's number, which is durable: a client that was cut off says the last one
that it has (``Last-Event-ID``, or ``since``) and gets all after it, once each. Whatever else a
stream says (that it is alive, that the subscription has ended) has no id.

The matcher tells which subscriptions matched; that wakes their streams, and each reads what is
after the last match that it sent. So nothing lies between reading and waiting, and a client that
is slow holds one page in memory.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import distinct, select

from graphmatch.broker.db.match_queries import matches_after
from graphmatch.broker.db.store import StoreError, counter
from graphmatch.broker.db.tables import matches, subscriptions
from graphmatch.broker.models.times import millis
from graphmatch.broker.outbox.match_feed import match_view
from graphmatch.broker.service.broker import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, RowMapping

PAGE = 50
"""So many matches are read at once."""
STREAMS = 20
"""So many streams one subscription may have open."""
ALIVE_SECONDS = 15.0
"""After so long without a match a stream says that it is alive."""
STREAM_SECONDS = 3600.0
"""After so long a stream ends: the client comes again, and its right to read is looked at."""
POLL_SECONDS = 5.0
"""How often matches of other processes are looked for, where there may be some."""
# -- reading ------------------------------------------------------------------------------------

# -- streams ------------------------------------------------------------------------------------


class Streams:
    """The open streams of events, and what wakes them.

    Parameters
    ----------
    broker
        Has the store, the clock and the limits.
    alive_seconds
        After so long without a match a stream says that it is alive.
    """

    def __init__(self, broker: Broker, alive_seconds: float = ALIVE_SECONDS) -> None:
        self._broker, self._alive = broker, alive_seconds
        self._waiting: dict[int, set[asyncio.Event]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._polling: asyncio.Task[None] | None = None
        self._last: int | None = None
        self.stopped = False

    def __len__(self) -> int:
        """Return how many streams are open."""
        return sum(map(len, self._waiting.values()))

    def start(self) -> None:
        """Begin, on the loop that runs."""
        self._loop = asyncio.get_running_loop()
        if not self._broker.store.is_sqlite:
            repeat = self._broker.supervisor.repeat
            self._polling = self._loop.create_task(repeat("streams", self._poll, asyncio.Event()))

    def stop(self) -> None:
        """End all streams."""
        self.stopped = True
        if self._polling is not None:
            self._polling.cancel()
        for events in self._waiting.values():
            for event in events:
                event.set()

    def told(self, numbers: Sequence[int]) -> None:
        """Wake the streams of some subscriptions; from any thread."""
        loop = self._loop
        if loop is not None and not self.stopped:
            with suppress(RuntimeError):  # the loop has been closed: nobody reads
                loop.call_soon_threadsafe(self.wake, numbers)

    def wake(self, numbers: Sequence[int]) -> None:
        """Wake the streams of some subscriptions; on the loop."""
        for number in numbers:
            for event in self._waiting.get(number, ()):
                event.set()

    async def _poll(self) -> float:
        """Look for the matches of other processes: one look for all streams."""
        store = self._broker.store
        if self._last is None:
            self._last = await store.read(lambda db: counter(db, "match"))
        elif self._waiting:
            self._last, numbers = await store.read(partial(_matched_after, last=self._last))
            self.wake(numbers)
        return POLL_SECONDS

    def has_room(self, number: int) -> bool:
        """Whether a subscription may have one more stream."""
        return len(self._waiting.get(number, ())) < STREAMS

    @contextmanager
    def _awaiting(self, number: int) -> Iterator[asyncio.Event]:
        event = asyncio.Event()
        self._waiting.setdefault(number, set()).add(event)
        try:
            yield event
        finally:
            self._waiting[number].discard(event)
            if not self._waiting[number]:
                del self._waiting[number]

    async def follow(self, number: int, since: int | None, root: str) -> AsyncIterator[bytes]:
        """Yield the events of a subscription, until it ends, the client goes, or all stops.

        Parameters
        ----------
        number
            The subscription's.
        since
            The last match that the client has; ``None``: it wants those from now on.
        root
            What addresses begin with.
        """
        with self._awaiting(number) as event, suppress(StoreError):  # the client comes again
            async for text in self._followed(number, since, root, event):
                yield text.encode()

    async def _followed(
        self, number: int, since: int | None, root: str, event: asyncio.Event
    ) -> AsyncIterator[str]:
        store, limits = self._broker.store, self._broker.limits
        until = asyncio.get_running_loop().time() + STREAM_SECONDS
        newest = await store.read(lambda db: counter(db, "match"))
        # A number that is not there yet is of a store that was: nothing would come for long.
        last = newest if since is None else min(since, newest)
        yield f"retry: 2000\nid: {last}\n\n"
        if since is not None and await store.read(lambda db: self._is_cut(db, number, last)):
            days = limits.replayed / timedelta(days=1)
            yield _control(
                "truncated", {"what": f"older matches than {days:g} days are left out here"}
            )
        while not self.stopped and asyncio.get_running_loop().time() < until:
            event.clear()  # what comes from here on wakes it again
            page = partial(self._page, number=number, last=last, oldest=self._oldest())
            rows, state = await store.read(page)
            for row in rows:
                view = json.dumps(match_view(row, root, limits.payload_bytes), ensure_ascii=False)
                last = row["seq"]
                yield f"id: {last}\nevent: match\ndata: {view}\n\n"
            if rows:
                continue
            if state == "ended":
                yield _control("ended", {"what": "the subscription has ended"})
                return
            try:
                async with asyncio.timeout(self._alive):
                    await event.wait()
            except TimeoutError:
                yield ": alive\n\n"

    def _oldest(self) -> int:
        return millis(self._broker.clock() - self._broker.limits.replayed)

    def _page(
        self, db: Connection, number: int, last: int, oldest: int
    ) -> tuple[Sequence[RowMapping], str | None]:
        # The state first: what matched before the end is then among the rows.
        mine = subscriptions.c.number == number
        state = db.scalar(select(subscriptions.c.state).where(mine))
        return matches_after(db, number, last, PAGE, oldest), state

    def _is_cut(self, db: Connection, number: int, last: int) -> bool:
        """Whether matches after a number are too old to be sent again."""
        mine = (matches.c.subscription == number) & (matches.c.seq > last)
        old = select(matches.c.seq).where(mine, matches.c.matched_at < self._oldest()).limit(1)
        return db.scalar(old) is not None


def _matched_after(db: Connection, last: int) -> tuple[int, list[int]]:
    newest = counter(db, "match")
    if newest == last:
        return last, []
    mine = (matches.c.seq > last) & (matches.c.seq <= newest)
    return newest, list(db.scalars(select(distinct(matches.c.subscription)).where(mine)))


def _control(event: str, data: Mapping[str, Any]) -> str:
    """Return an event that is no match, and so has no id."""
    return f"event: {event}\ndata: {json.dumps(data)}\n\n"


# -- Atom ---------------------------------------------------------------------------------------
