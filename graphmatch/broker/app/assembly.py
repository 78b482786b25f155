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
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_network
from typing import TYPE_CHECKING

from graphmatch.broker.api import websub as websub_routes
from graphmatch.broker.api.app import make_app
from graphmatch.broker.api.dependencies import ApiOptions
from graphmatch.broker.app import ROLES
from graphmatch.broker.app.leader import Leader
from graphmatch.broker.app.notifications import Notifications
from graphmatch.broker.feeds.feed_poller import REQUEST_SECONDS, Poller
from graphmatch.broker.feeds.feed_store import BrokerFeedStore
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
    from structlog.typing import FilteringBoundLogger

    from graphmatch.broker.feeds.opml import ListedFeed
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
    database
        URL of the PostgreSQL database that processes share; ``None`` if this process is alone.
    """

    allow: Sequence[str] = ()
    smtp: SmtpServer | None = None
    feeds: Sequence[ListedFeed] = ()
    kafka: tuple[str, str] | None = None
    base: str = "http://127.0.0.1:8080"
    asks_hubs: bool | None = None
    roles: frozenset[str] = frozenset(ROLES)
    database: str | None = None


class Follower(MatchWorker):
    """A match worker that keeps the engine up to date, and leaves matching to other processes."""

    def step(self) -> int:
        """Match nothing."""
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
    log: FilteringBoundLogger | None = None,
) -> AsyncIterator[FastAPI]:
    """Yield the application of a broker while its other parts run.

    Parameters
    ----------
    broker, matcher
        The broker and its match worker, which is started and stopped elsewhere.
    parts
        The other parts.
    options, log
        See `graphmatch.broker.api.app.make_app`.
    """
    workers = ThreadPoolExecutor(_THREADS, "broker")
    asyncio.get_running_loop().set_default_executor(workers)
    supervisor, roles, ending = broker.supervisor, parts.roles, asyncio.Event()
    broker.allowed_networks = networks = [ip_network(network) for network in parts.allow]
    async with (
        HttpClient(networks) as client,
        HttpClient(networks, total_seconds=REQUEST_SECONDS) as feed_client,
    ):
        senders = NetworkSenders(client, parts.smtp, broker.clock)
        dispatcher = Dispatcher(broker, senders, base=parts.base)
        feed_store = BrokerFeedStore(broker)
        poller = Poller(feed_client, feed_store, clock=broker.clock, supervisor=supervisor)
        await poller.start()
        for feed in parts.feeds:
            if feed.url not in poller.feeds:
                await poller.add(feed.url, feed.title)
        subscriber = Subscriber(broker, poller, client, parts.base, asks=parts.asks_hubs)
        hub = Hub(broker, client, dispatcher.wake)
        leader = Leader(parts.database, supervisor)

        def wake(_: Sequence[int] = ()) -> None:
            if matcher is not None:
                matcher.wake()

        def on_commit() -> None:
            wake()
            notifications.send("commit")

        def on_matched(numbers: Sequence[int], *, is_own: bool = True) -> None:
            dispatcher.wake(numbers)
            if is_own:
                notifications.send("match", numbers)
            else:
                app.state.api.streams.notify(numbers)

        notifications = Notifications(
            parts.database,
            supervisor,
            {"commit": wake, "match": partial(on_matched, is_own=False)},
        )
        app = make_app(
            broker,
            matcher,
            options=replace(options or ApiOptions(), hub="feeds" in roles),
            retry=dispatcher.retry if "deliver" in roles else None,
            feeds=poller,
            on_commit=on_commit,
            on_matched=on_matched,
            log=log,
        )
        dispatcher.on_attempt = app.state.api.metrics.attempted
        app.state.api.metrics.leader.set_function(lambda: leader.is_leading)
        websub_routes.install(app, hub, subscriber)
        install(app, Page(app.state.api))
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
            stops: list[Callable[[], object]] = []
            if parts.kafka is not None:
                from graphmatch.broker.service.kafka import KafkaSource

                source = KafkaSource(broker, *parts.kafka)
                tasks.append(source.run())
                stops.append(source.stop)
            async with asyncio.TaskGroup() as group:
                for task in tasks:
                    group.create_task(task)
                await stop.wait()
                for end in stops:
                    end()

        async def synchronize() -> float:
            """Apply the changes that other processes made to the list of feeds."""
            known = set(poller.feeds)
            if not leader.is_leading:
                await poller.start()
                return _FEED_LIST_SECONDS
            stored = {feed.url: feed.title for feed in await feed_store.load()}
            for url in known ^ stored.keys():
                await (poller.add(url, stored[url]) if url in stored else poller.remove(url))
            return _FEED_LIST_SECONDS

        running = [notifications.run(ending)]
        if "feeds" in roles:
            running.append(leader.run(lead, ending))
        if "deliver" in roles:
            running.append(dispatcher.run())
        if parts.database is not None:
            running.append(supervisor.repeat("feed list", synchronize, ending))
        tasks = [asyncio.create_task(each) for each in running]
        try:
            yield app
        finally:
            ending.set()
            await dispatcher.stop(STOP_SECONDS)
            await asyncio.gather(*tasks)
