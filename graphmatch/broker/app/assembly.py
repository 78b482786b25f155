"""The assembly of a broker: its parts, started and stopped together.

A process runs the parts of its roles:

- ``match``: the match worker (`graphmatch.broker.service.match_worker`), in a thread of its own
- ``deliver``: the dispatcher of the outbox
- ``feeds``: the feed poller, WebSub, Kafka and retention, if this process is the leader
- ``api``: the HTTP interface and the page; without it only health checks and metrics

With any role but ``feeds``, a process loads all subscriptions, for matches, reasons and forecasts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from graphmatch.broker.api import websub as websub_routes
from graphmatch.broker.api.app import make_app
from graphmatch.broker.api.dependencies import Api, ApiOptions
from graphmatch.broker.app import ROLES
from graphmatch.broker.app.leader import Leader
from graphmatch.broker.app.notifications import Notifications
from graphmatch.broker.db.match_queries import matches_since
from graphmatch.broker.db.store import counter as counter_of
from graphmatch.broker.feeds.feed_poller import REQUEST_SECONDS, Poller
from graphmatch.broker.feeds.feed_store import BrokerFeedStore, Cutoff, Feed
from graphmatch.broker.feeds.websub_subscriber import Subscriber
from graphmatch.broker.outbox.dispatcher import Dispatcher, NetworkSenders
from graphmatch.broker.outbox.safe_http import HttpClient
from graphmatch.broker.outbox.websub_hub import Hub
from graphmatch.broker.page.routes import Page, install
from graphmatch.broker.service.match_worker import MatchWorker
from graphmatch.broker.service.retention import Retention

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp, Receive, Scope, Send

    from graphmatch.broker.outbox.email_sender import SmtpServer
    from graphmatch.broker.service.broker import Broker

STOP_SECONDS = 5
"""Time limit for requests in progress, and then for deliveries in progress, at the end."""
_THREADS = 32
_FEED_LIST_SECONDS = 10.0
"""Delay between two reads of the feeds that other processes have changed."""
_HEALTH = ("/healthz", "/readyz", "/metrics")


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a process besides the interface.

    Parameters
    ----------
    allow
        Networks that are not public, but to which requests may go.
    smtp
        The mail server, if there is one.
    feeds
        Feeds to add.
    kafka
        The servers and the topic to read publications from.
    base
        The start of the broker's addresses.
    asks_hubs
        Whether to subscribe at the WebSub hubs of feeds; by default if hubs can reach `base`.
    roles
        The roles of this process, from `ROLES`.
    cutoff
        Returns the date of the oldest accepted item of a feed at a time.
    """

    allow: Sequence[str] = ()
    smtp: SmtpServer | None = None
    feeds: Sequence[Feed] = ()
    kafka: tuple[str, str] | None = None
    base: str = "http://127.0.0.1:8080"
    asks_hubs: bool | None = None
    roles: frozenset[str] = frozenset(ROLES)
    cutoff: Cutoff | None = None


class Follower(MatchWorker):
    """A match worker that keeps the engine up to date, and leaves matching to other processes."""

    def step(self) -> int:
        """Apply changes of subscriptions to the engine, and match nothing."""
        self.catch_up()
        return 0


def _only_health(app: ASGIApp) -> ASGIApp:
    """Return the application of a process without the role ``api``."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in _HEALTH:
            scope = {**scope, "path": "/-"}  # This gives the usual 404.
        await app(scope, receive, send)

    return call


@asynccontextmanager
async def started(
    broker: Broker,
    matcher: MatchWorker | None,
    parts: Parts,
    options: ApiOptions | None = None,
) -> AsyncIterator[FastAPI]:
    """Yield the application of a broker while its other parts run.

    Parameters
    ----------
    broker, matcher
        The broker and its match worker, which is started and stopped elsewhere.
    parts
        The other parts.
    options
        Options of the API.
    """
    workers = ThreadPoolExecutor(_THREADS, "broker")
    asyncio.get_running_loop().set_default_executor(workers)
    store, supervisor, roles, ending = broker.store, broker.supervisor, parts.roles, asyncio.Event()
    broker.allowed_networks = networks = [ip_network(network) for network in parts.allow]
    async with (
        HttpClient(networks) as client,
        HttpClient(networks, total_seconds=REQUEST_SECONDS) as feed_client,
    ):
        senders = NetworkSenders(client, parts.smtp, broker.clock)
        dispatcher = Dispatcher(broker, senders, base=parts.base)
        feed_store = BrokerFeedStore(broker, parts.cutoff)
        poller = Poller(feed_client, feed_store, clock=broker.clock, supervisor=supervisor)
        await poller.start()
        for feed in parts.feeds:
            await poller.add(feed.url, feed.title)
        subscriber = Subscriber(broker, poller, client, parts.base, asks=parts.asks_hubs)
        hub = Hub(broker, client, dispatcher.wake)
        leader = Leader(store.database, supervisor)

        def on_matched(numbers: Sequence[int]) -> None:
            dispatcher.wake(numbers)
            api.streams.notify(numbers)

        api = Api(broker, matcher, poller, dispatcher.retry, options, on_matched)
        app = make_app(api)
        dispatcher.on_attempt = api.metrics.attempted
        api.metrics.leader.set_function(lambda: leader.is_leading)
        websub_routes.install(app, hub, subscriber)
        install(app, Page(api))
        if "api" not in roles:
            app.add_middleware(_only_health)

        async def lead(stop: asyncio.Event) -> None:
            """Do the work of the leader until `stop` is set."""
            await poller.start()
            tasks = [
                Retention(broker).run(stop),
                supervisor.repeat("feeds", partial(poller.run, stop), stop),
                subscriber.run(stop),
                hub.run(stop),
            ]
            if parts.kafka is not None:
                from graphmatch.broker.service.kafka import KafkaSource

                tasks.append(KafkaSource(broker, *parts.kafka).run(stop))
            async with asyncio.TaskGroup() as group:
                for task in tasks:
                    group.create_task(task)

        last_match: int = await store.read(lambda db: counter_of(db, "match"))

        async def on_raised(counter: str) -> None:
            """React to a commit of another process."""
            nonlocal last_match
            if counter in ("publication", "change"):
                if matcher is not None:
                    matcher.wake()
            elif counter == "delivery":
                dispatcher.wake()
            elif len(api.streams) and (
                new := await store.read(partial(matches_since, seq=last_match))
            ):
                last_match = new[0].seq
                api.streams.notify([row.subscription for row in new])

        async def synchronize() -> float:
            """Apply the changes that other processes made to the list of feeds."""
            if not leader.is_leading:
                await poller.start()
                return _FEED_LIST_SECONDS
            known, stored = set(poller.feeds), {feed.url: feed for feed in await feed_store.load()}
            for url in known ^ stored.keys():
                await (poller.add(url, stored[url].title) if url in stored else poller.remove(url))
            return _FEED_LIST_SECONDS

        running: list[Coroutine[Any, Any, object]] = []
        if "feeds" in roles:
            running.append(leader.run(lead, ending))
        if "deliver" in roles:
            running.append(dispatcher.run())
        notifications = Notifications(store, on_raised)
        if not store.is_sqlite:
            running.append(supervisor.repeat("notifications", notifications.listen, ending))
            running.append(supervisor.repeat("feed list", synchronize, ending))
        tasks = [asyncio.create_task(each) for each in running]
        try:
            yield app
        finally:
            ending.set()
            await dispatcher.stop(STOP_SECONDS)
            await asyncio.gather(*tasks)
            await notifications.close()
