"""WebSub in the service: feeds that hubs send to us, and match feeds that our hub sends to others.

What hubs are asked for follows from the feeds, and what callbacks are sent from the store: both are
compared every few seconds, and at once when something changes. So nothing that was to be done is
lost, whatever ended the process, and many matches are one delivery.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit

from sqlalchemy import delete, insert, select, update

from graphmatch.broker.db.store import Store
from graphmatch.broker.db.tables import websub
from graphmatch.broker.feeds.feed_store import digest
from graphmatch.broker.feeds.websub_subscriber import Keyed, Lease, Subscriber
from graphmatch.broker.outbox.websub_hub import Hub
from graphmatch.broker.outbox.websub_protocol import Response

if TYPE_CHECKING:
    import aiohttp
    from sqlalchemy import Connection

    from graphmatch.broker.feeds.feed_poller import Poller
    from graphmatch.broker.service.broker import Broker

EVERY_SECONDS = 5.0
"""How often it is scanned what is to be done."""
PAUSE_SECONDS = 1.0
"""How long a round waits for the next: what matches meanwhile is sent together."""
_IDS = 500
_TIMES = frozenset({"until", "due_at"})
_R = TypeVar("_R", bound=Keyed)


def is_reachable(base: str) -> bool:
    """Whether hubs may reach an address: it is not of this machine alone.

    Examples
    --------
    >>> is_reachable("https://broker.example.org"), is_reachable("http://127.0.0.1:8080")
    (True, False)
    """
    host = (urlsplit(base).hostname or "localhost").rstrip(".")
    try:
        address = ip_address(host)
    except ValueError:
        return host != "localhost" and not host.endswith(".localhost")
    return not (address.is_loopback or address.is_unspecified)


class StoredRecords(Generic[_R]):
    """Leases, callbacks or deliveries in a store.

    Parameters
    ----------
    kind
        The class of the records.
    """

    def __init__(self, store: Store, kind: type[_R]) -> None:
        self._store, self._kind = store, kind
        self._mine = websub.c.kind == kind.__name__.lower()

    async def load(self) -> Sequence[_R]:
        """Return all."""
        chosen = select(websub.c.state).where(self._mine)
        states = await self._store.read(lambda db: db.scalars(chosen).all())
        return [self._kind(**{key: _read(key, state[key]) for key in state}) for state in states]

    async def save(self, record: _R) -> None:
        """Keep one in place of the one with its key."""
        state: dict[str, Any] = {}
        for one in fields(record):  # type: ignore[arg-type]
            value = getattr(record, one.name)
            state[one.name] = value.isoformat() if isinstance(value, datetime) else value
        key = digest(*record.key)
        same = update(websub).where(self._mine, websub.c.key == key).values(state=state)
        row = {"kind": self._kind.__name__.lower(), "key": key, "state": state}

        def work(db: Connection) -> None:
            if not db.execute(same).rowcount:
                db.execute(insert(websub).values(row))

        await self._store.write(work)

    async def remove(self, record: _R) -> None:
        """Remove the one with its key, if there is one."""
        gone = delete(websub).where(self._mine, websub.c.key == digest(*record.key))
        await self._store.write(lambda db: db.execute(gone))


def _read(key: str, value: Any) -> Any:
    return datetime.fromisoformat(value) if key in _TIMES and value is not None else value


class WebSub:
    """The subscriber for the feeds of a poller, and the hub of the match feeds.

    Parameters
    ----------
    poller
        Whose feeds are subscribed to, at the hubs that they name; it is started before.
    session
        Refuses addresses that are not public: hubs and callbacks are named by others.
    base
        What the broker's addresses begin with.
    asks
        Whether hubs are asked; by default where they may reach `base`.
    """

    def __init__(
        self,
        broker: Broker,
        poller: Poller,
        session: aiohttp.ClientSession,
        base: str,
        on_delivery: Callable[[], object],
        *,
        asks: bool | None = None,
    ) -> None:
        self.poller, self._clock, self._supervisor = poller, broker.clock, broker.supervisor
        self._asks = is_reachable(base) if asks is None else asks
        store, base = broker.store, base.rstrip("/")
        self.subscriber = Subscriber(
            session,
            StoredRecords(store, Lease),
            f"{base}/websub/callback",
            self._content,
            changed=self._changed,
            clock=broker.clock,
        )
        self.hub = Hub(broker, on_delivery)
        self._feeds_woken = asyncio.Event()
        self._stopping = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self) -> None:
        """Load what is kept, on the loop that runs."""
        self._loop = asyncio.get_running_loop()
        if self._asks:
            await self.subscriber.start()

    async def run(self, seconds: float) -> None:
        """Do what is to be done until `stop`; then let it end, for some seconds."""
        work = [
            self._often("feed hubs", self._compare, self._feeds_woken),
            self.hub.run(self._stopping),
        ]
        tasks = [asyncio.create_task(one) for one in work]
        await self._stopping.wait()
        await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result

    def stop(self) -> None:
        """Have `run` end."""
        self._stopping.set()
        self._feeds_woken.set()
        self.hub.wake()

    def told(self, numbers: Sequence[int] = ()) -> None:
        """Say that subscriptions matched; any thread may call it."""
        self.hub.wake(numbers)

    async def request(self, form: Mapping[str, str]) -> Response:
        """Answer a POST to the hub."""
        return await self.hub.request(form)

    async def _often(
        self, task: str, work: Callable[[], Awaitable[None]], woken: asyncio.Event
    ) -> None:
        async def once() -> float:
            await work()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), PAUSE_SECONDS)
            return EVERY_SECONDS

        await self._supervisor.repeat(task, once, self._stopping, woken)

    # -- feeds ------------------------------------------------------------------------------

    async def _compare(self) -> None:
        """Ask hubs for what the feeds name, no more and no less, and note what came of it."""
        feeds = [feed for feed in self.poller.feeds.values() if feed.same_as is None]
        if self._asks:
            wanted = {(feed.topic, feed.hub) for feed in feeds if feed.topic and feed.hub}
            leases = self.subscriber.leases
            old = [one for one in leases if (one.topic, one.hub) not in wanted]
            work: list[Awaitable[object]] = [
                self.subscriber.unsubscribe(one.id) for one in old if one.pending != "unsubscribe"
            ]
            new = wanted - {(one.topic, one.hub) for one in leases if one.pending != "unsubscribe"}
            work += [self.subscriber.subscribe(t, h) for t, h in new if t and h]
            work.append(self.subscriber.work())
            results = await asyncio.gather(*work, return_exceptions=True)
        else:
            results = []
        await self._note()
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _note(self) -> None:
        """Note with the feeds until when hubs send what is new, and what is wrong."""
        now = self._clock()
        alive = (one for one in self.subscriber.leases if one.pending != "unsubscribe")
        leases = {(one.topic, one.hub): one for one in alive}
        for feed in list(self.poller.feeds.values()):
            lease = leases.get((feed.topic or "", feed.hub or ""))
            until = None if lease is None or (lease.until or now) <= now else lease.until
            problem = None if lease is None else lease.problem
            if (until, problem) != (feed.pushed_until, feed.push_problem):
                changes: dict[str, Any] = {"pushed_until": until, "push_problem": problem}
                if feed.pushed_until is not None and until is None:
                    changes["next_poll_at"] = (
                        None  # what the hub did not send is to be found at once
                    )
                await self.poller.change(feed.url, **changes)

    async def _content(self, lease: Lease, body: bytes, _: str) -> None:
        for feed in list(self.poller.feeds.values()):
            if (feed.topic, feed.hub, feed.same_as) == (lease.topic, lease.hub, None):
                await self.poller.pushed(feed.url, body)

    async def _changed(self, _: Lease) -> None:
        self._feeds_woken.set()
