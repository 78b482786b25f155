"""A broker at work: all its parts, started and stopped together.

What is published is matched in a thread (`graphmatch.broker.service.match_worker`); requests, deliveries,
feeds and Kafka share one event loop.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_network
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from graphmatch.broker.api import websub as websub_routes
from graphmatch.broker.api.app import make_app
from graphmatch.broker.api.dependencies import ApiOptions
from graphmatch.broker.feeds.broker_feed_store import BrokerFeeds
from graphmatch.broker.feeds.feed_poller import Poller
from graphmatch.broker.feeds.websub_service import WebSub
from graphmatch.broker.outbox.dispatcher import Dispatcher, NetworkSenders
from graphmatch.broker.outbox.safe_http import HttpClient
from graphmatch.broker.page.routes import Page, install

if TYPE_CHECKING:
    from fastapi import FastAPI
    from structlog.typing import FilteringBoundLogger

    from graphmatch.broker.feeds.feed_list import ListedFeed
    from graphmatch.broker.outbox.senders import SmtpServer
    from graphmatch.broker.service.broker import Broker
    from graphmatch.broker.service.match_worker import MatchWorker

STOP_SECONDS = 10
"""So long requests and deliveries that are under way may take when the service is to stop."""

HEAD_BYTES = 100_000
"""About so many bytes the head of a request may have."""
HEAD_SECONDS = 30.0
"""So long a head may take to come."""
_THREADS = 32


@dataclass(frozen=True, slots=True)
class Parts:
    """What runs beside the interface, and how.

    Parameters
    ----------
    allow
        Networks that are delivered to and fetched from though they are not public.
    smtp
        What sends email; ``None``: nothing does.
    feeds
        Feeds that are followed from now on.
    kafka
        The servers and the topic that publications are read from.
    base
        What the broker's addresses begin with.
    asks_hubs
        Whether the WebSub hubs of feeds are asked; by default where they may reach `base`.
    """

    allow: Sequence[str] = ()
    smtp: SmtpServer | None = None
    feeds: Sequence[ListedFeed] = ()
    kafka: tuple[str, str] | None = None
    base: str = "http://127.0.0.1:8080"
    asks_hubs: bool | None = None


@asynccontextmanager
async def started(
    broker: Broker,
    matcher: MatchWorker,
    parts: Parts,
    options: ApiOptions | None = None,
    log: FilteringBoundLogger | None = None,
) -> AsyncIterator[FastAPI]:
    """Yield the application of a broker whose other parts run.

    Parameters
    ----------
    broker, matcher
        What it is of; the matcher is started and stopped elsewhere.
    parts
        What else runs.
    options, log
        As `graphmatch.broker.api.app.make_app` has them.
    """
    workers = ThreadPoolExecutor(_THREADS, "broker")  # looking up names, email, explaining
    asyncio.get_running_loop().set_default_executor(workers)
    networks = [ip_network(one) for one in parts.allow]
    async with HttpClient(networks) as client:
        senders = NetworkSenders(client, parts.smtp, broker.clock)
        dispatcher = Dispatcher(broker, senders, base=parts.base)
        poller = Poller(
            client.session,
            BrokerFeeds(broker),
            clock=broker.clock,
            supervisor=broker.supervisor,
        )
        await poller.start()
        for one in parts.feeds:
            if one.url not in poller.feeds:
                await poller.add(one.url, one.title)
        websub = WebSub(broker, poller, client.session, parts.base, asks=parts.asks_hubs)
        await websub.start()
        ending = asyncio.Event()
        polling = broker.supervisor.repeat("feeds", partial(poller.run, ending), ending)
        running = [dispatcher.run(), polling, websub.run(STOP_SECONDS)]
        stops: list[Callable[[], object]] = [ending.set, websub.stop]
        if parts.kafka is not None:
            from graphmatch.broker.service.kafka import KafkaSource

            source = KafkaSource(broker, *parts.kafka)
            running.append(source.run())
            stops.append(source.stop)

        def told(numbers: Sequence[int]) -> None:
            dispatcher.wake(numbers)
            websub.told(numbers)

        retry, options = dispatcher.retry, replace(options or ApiOptions(), hub=True)
        app = make_app(
            broker, matcher, options=options, retry=retry, feeds=poller, told=told, log=log
        )
        websub_routes.install(app, websub)
        install(app, Page(app.state.api, ending.is_set))
        tasks = [asyncio.create_task(one) for one in running]
        try:
            yield app
        finally:
            for stop in stops:
                stop()
            await dispatcher.stop(STOP_SECONDS)
            await asyncio.gather(*tasks)


def server_of(app: FastAPI) -> uvicorn.Server:
    """Return a server of an application, which ends its streams before it waits for them."""
    config = uvicorn.Config(
        app,
        http=_Protocol,
        log_config=None,
        access_log=False,  # it has whole addresses, keys and all
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    return _Server(config)


async def serve(app: FastAPI, listening: socket.socket, is_over: Callable[[], bool]) -> None:
    """Answer requests until it is over; then end the streams, and what is under way.

    Parameters
    ----------
    listening
        A socket that listens.
    is_over
        Asked ten times a second.
    """
    server = server_of(app)

    async def watch() -> None:
        while not is_over():
            await asyncio.sleep(0.1)
        server.should_exit = True

    watching = asyncio.create_task(watch())
    await server.serve([listening])
    watching.cancel()


class _Server(uvicorn.Server):
    """Ends streams before it waits for them, and leaves signals to the command."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.app.state.api.streams.stop()  # type: ignore[union-attr]
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Protocol(HttpToolsProtocol):
    """Refuses heads that do not end: the parser keeps as much as comes, and waits for more."""

    _head = 0
    _is_head = True
    _seen = False
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        self._expect_nothing()
        self._late = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _expect_nothing(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def on_message_begin(self) -> None:
        self._expect_head()
        super().on_message_begin()

    def data_received(self, data: bytes) -> None:
        was_head, self._seen = self._is_head, False
        super().data_received(data)
        goes_on = was_head and self._is_head and not self._seen  # and is no body's end
        self._head = self._head + len(data) if goes_on else 0
        if self._head > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")

    def on_headers_complete(self) -> None:
        self._seen, self._is_head = True, False
        self._expect_nothing()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_head = True
        super().on_message_complete()
