"""The WebSub subscriber in the running service: real hubs and publishers on loopback.

These tests run the checks 100 and 300 to 302 of websub.rocks for subscribers. test_websub.py runs
the other checks against the class.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import aiohttp
import pytest
from aiohttp import web
from sqlalchemy import func, select

from graphmatch.broker.app.assembly import Parts, started
from graphmatch.broker.app.security import ANYBODY
from graphmatch.broker.app.server import serve
from graphmatch.broker.db.store import Store, StoreError
from graphmatch.broker.db.tables import publications
from graphmatch.broker.feeds import websub_subscriber
from graphmatch.broker.feeds.feed_poller import Poller
from graphmatch.broker.feeds.feed_store import Feed
from graphmatch.broker.feeds.websub_subscriber import RETRY_INTERVAL, Subscriber, is_reachable
from graphmatch.broker.models.subscription_settings import SubscriptionSettings
from graphmatch.broker.outbox.websub_protocol import METHODS, sign
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import MatchWorker
from graphmatch.engine import Engine
from semantic.errors import Place, Problem
from tests.graphmatch.broker.harness import LOOPBACK, Receiver, receivers
from tests.graphmatch.broker.live_broker import Clock
from tests.waiting import until

ITEM = "<item><title>{0}</title><guid isPermaLink='false'>{0}</guid></item>"
TITLED = "SELECT ?t { ?s <http://purl.org/rss/1.0/title> ?t }"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websub_subscriber, "ROUND_SECONDS", 0.05)


# --- Service and peers ---------------------------------------------------------------------------


@dataclass
class Service:
    """A running broker."""

    broker: Broker
    base: str
    http: aiohttp.ClientSession
    poller: Poller
    subscriber: Subscriber

    async def send(
        self, method: str, url: str, data: Any = None, **headers: str
    ) -> tuple[int, str, Any]:
        url = url if url.startswith("http") else self.base + url
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.request(method, url, data=data, headers=named) as answer:
            return answer.status, await answer.text(), answer.headers

    async def titles(self) -> list[str]:
        """Return the titles in the log."""
        chosen = select(publications.c.title).order_by(publications.c.seq)
        return list(await self.broker.store.read(lambda db: db.scalars(chosen).all()))


@asynccontextmanager
async def running(
    folder: Path, clock: Clock | None = None, *, port: int = 0, **more: Any
) -> AsyncIterator[Service]:
    """Run all parts of a broker."""
    store = Store(str(folder / "broker.db"))
    try:
        broker = Broker(store, Engine(), clock or Clock())
        matcher = MatchWorker(broker)
        matcher.load()
        matcher.start()
        try:
            listening = socket.create_server(("127.0.0.1", port))
            base = f"http://127.0.0.1:{listening.getsockname()[1]}"
            parts = replace(Parts(LOOPBACK, base=base, asks_hubs=True), **more)
            over = asyncio.Event()
            async with started(broker, matcher, parts) as app:
                live_broker = asyncio.create_task(serve(app, listening, over.is_set))
                try:
                    async with aiohttp.ClientSession() as http:
                        subscriber = app.state.subscriber
                        yield Service(broker, base, http, subscriber.poller, subscriber)
                finally:
                    over.set()
                    await live_broker
                    listening.close()
        finally:
            matcher.stop()
    finally:
        store.close()


@dataclass
class Publisher:
    """A feed and its hub, which verifies at once, and their requests."""

    receiver: Receiver
    items: list[str] = field(default_factory=lambda: ["first"])
    asked: list[dict[str, str]] = field(default_factory=list)
    verified: list[tuple[int, str]] = field(default_factory=list)
    fetched: int = 0
    agrees: bool = True
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.receiver.url("/feed")

    def feed(self) -> str:
        links = "".join(
            f"<atom:link rel='{rel}' href='{self.receiver.url(path)}'/>"
            for rel, path in (("self", "/feed"), ("hub", "/hub"))
        )
        items = "".join(map(ITEM.format, self.items))
        namespace = "xmlns:atom='http://www.w3.org/2005/Atom'"
        return f"<rss {namespace}><channel><title>T</title>{links}{items}</channel></rss>"

    async def answer(self, request: web.Request) -> web.Response:
        if request.path == "/feed":
            self.fetched += 1
            return web.Response(text=self.feed())
        form = dict(parse_qsl((await request.read()).decode()))
        self.asked.append(form)
        if self.agrees:
            self.tasks.append(asyncio.create_task(self.verify(form)))
        return web.Response(status=202)

    async def verify(self, form: dict[str, str], **more: str) -> None:
        query = {name: form[name] for name in ("hub.mode", "hub.topic")}
        query |= {"hub.challenge": "c & 1", "hub.lease_seconds": "864000"} | more
        async with (
            aiohttp.ClientSession() as http,
            http.get(form["hub.callback"], params=query) as answer,
        ):
            self.verified.append((answer.status, await answer.text()))

    async def push(self, service: Service, *items: str, method: str = "sha256") -> int:
        """Send new items to the callback of the last subscription."""
        form = [one for one in self.asked if one["hub.mode"] == "subscribe"][-1]
        self.items = list(items)
        body = self.feed().encode()
        headers = {"X_Hub_Signature": sign(form["hub.secret"], body, method)}
        return (await service.send("POST", form["hub.callback"], BytesIO(body), **headers))[0]


@asynccontextmanager
async def publisher() -> AsyncIterator[Publisher]:
    async with receivers() as (receiver,):
        made = Publisher(receiver)
        receiver.answer = made.answer
        yield made


def is_pushed(service: Service, url: str) -> bool:
    return service.poller.feeds[url].pushed_until is not None


# --- Subscriber ----------------------------------------------------------------------------------


async def test_pushed_items_are_matched_even_after_a_restart(tmp_path: Path) -> None:
    async with publisher() as hub:
        feeds = [Feed(hub.url)]
        async with running(tmp_path, feeds=feeds) as service:
            made = await service.broker.subscriptions.subscribe(
                {"query": TITLED}, SubscriptionSettings()
            )
            await until(lambda: is_pushed(service, hub.url))
            await until(lambda: hub.verified == [(200, "c & 1")])
            fetched, port = hub.fetched, int(service.base.rpartition(":")[2])
            for number, method in enumerate(METHODS):  # This is check 300.
                assert await hub.push(service, f"pushed {number}", method=method) == 202
            expected = ["first", *(f"pushed {number}" for number in range(len(METHODS)))]
            assert await service.titles() == expected

            async def matched() -> bool:
                row = await service.broker.subscriptions.subscription(made.id, ANYBODY, made.ticket)
                return bool(row["match_count"] >= len(METHODS))

            await until(matched)
        async with running(tmp_path, feeds=feeds, port=port) as service:

            async def accepted() -> bool:  # The hub must retry until the subscriber runs.
                return await hub.push(service, "pushed 1", "later") == 202

            await until(accepted)
            assert (await service.titles())[-1] == "later"
            await service.subscriber.work()
            assert is_pushed(service, hub.url)
            assert (len(hub.asked), hub.fetched) == (1, fetched)


async def test_content_without_a_valid_signature_is_refused(tmp_path: Path) -> None:
    """Run checks 301 and 302, and send unrequested content."""

    async with publisher() as hub, running(tmp_path, feeds=[Feed(hub.url)]) as service:
        await until(lambda: is_pushed(service, hub.url))
        (form,) = hub.asked
        callback, secret = form["hub.callback"], form["hub.secret"]
        right = sign(secret, b"<rss/>")
        assert (await service.send("POST", callback, b"<rss/>"))[0] == 403
        plain, md5 = sha256(b"<rss/>").hexdigest(), hmac.new(secret.encode(), b"<rss/>", "md5")
        wrong = ["", "sha256=", f"sha256={plain}", f"md5={md5.hexdigest()}", "=", "sha256"]
        for signature in (*wrong, sign("another", b"<rss/>"), sign(secret, b"other")):
            headers = {"X_Hub_Signature": signature}
            assert (await service.send("POST", callback, b"<rss/>", **headers))[0] == 403
        other = f"{service.base}/websub/callback/gmc_another"
        assert (await service.send("POST", other, b"", X_Hub_Signature=right))[0] == 410
        for query in ("", f"?hub.mode=subscribe&hub.topic={hub.url}&hub.challenge=x"):
            status, text, _ = await service.send("GET", callback + query)
            assert (status, "x" in text) == (404, False)
        hub.items = ["a" * 2_000_000]
        # It exceeds the limit of other bodies.
        assert await hub.push(service, *hub.items) == 202
        assert len(await service.titles()) == 2


async def test_a_denial_is_shown_and_polling_goes_on(tmp_path: Path) -> None:
    async with publisher() as hub, running(tmp_path, feeds=[Feed(hub.url)]) as service:
        await until(lambda: is_pushed(service, hub.url))
        (form,), fetched = hub.asked, hub.fetched
        hub.items = ["missed"]
        denied = {"hub.mode": "denied", "hub.reason": "no\nmore"}
        await hub.verify(form, **denied)
        await until(lambda: not is_pushed(service, hub.url))
        await until(lambda: hub.fetched == fetched + 1)

        async def came() -> bool:
            return await service.titles() == ["first", "missed"]

        await until(came)
        feed = service.poller.feeds[hub.url]
        assert feed.push_problem == "the hub denies it: no more"
        assert feed.errors == 0
        page = (await service.send("GET", "/feeds", Accept="text/html"))[1]
        assert "not pushed: the hub denies it: no more" in page
        assert len(hub.asked) == 1


async def test_a_silent_hub_does_not_stop_polling(tmp_path: Path) -> None:
    """The feed is polled at its own times, and a lease without renewal ends."""

    clock = Clock()
    async with publisher() as hub:
        hub.agrees = False
        async with running(tmp_path, clock, feeds=[Feed(hub.url)]) as service:
            await until(lambda: bool(hub.asked))
            feed = service.poller.feeds[hub.url]
            assert feed.next_poll_at is not None
            assert feed.next_poll_at - clock() < timedelta(hours=1.2)
            assert not is_pushed(service, hub.url)
            hub.agrees = True
            clock.forward += RETRY_INTERVAL
            await until(lambda: is_pushed(service, hub.url))
            hub.agrees, fetched = False, hub.fetched
            clock.forward += timedelta(days=9)
            await until(lambda: len(hub.asked) == 3)  # It asks for renewal.
            assert is_pushed(service, hub.url)
            clock.forward += timedelta(days=2)
            await until(lambda: not is_pushed(service, hub.url))
            await until(lambda: hub.fetched > fetched)


async def test_content_for_a_removed_feed_is_refused(tmp_path: Path) -> None:
    async with publisher() as hub, running(tmp_path, feeds=[Feed(hub.url)]) as service:
        await until(lambda: is_pushed(service, hub.url))
        await service.poller.remove(hub.url)
        assert await hub.push(service, "late") == 410


async def test_a_feed_cannot_send_items_of_another(tmp_path: Path) -> None:
    """A feed that names another's topic, and its own hub, gets its own lease."""

    async with publisher() as hub, publisher() as false:
        topic = hub.url
        false.feed = lambda: hub.feed().replace(  # type: ignore[method-assign]
            hub.receiver.url("/hub"), false.receiver.url("/hub")
        )
        feeds = [Feed(hub.url), Feed(false.url)]
        async with running(tmp_path, feeds=feeds) as service:
            await until(lambda: is_pushed(service, hub.url) and is_pushed(service, false.url))
            assert false.asked[0]["hub.topic"] == topic
            assert await false.push(service) == 202
            sources = select(publications.c.source, func.count()).group_by(publications.c.source)
            rows = await service.broker.store.read(lambda db: db.execute(sources).all())
            assert {source for source, _ in rows} == {hub.url, false.url}
            hub.items = ["new"]
            assert await false.push(service) == 202
            rows = await service.broker.store.read(lambda db: db.execute(sources).all())
            assert dict(map(tuple, rows))[hub.url] == 1
            assert (len(hub.asked), len(false.asked)) == (1, 1)


async def test_hubs_are_asked_only_if_they_can_reach_the_broker(tmp_path: Path) -> None:
    async with publisher() as hub:
        feeds = [Feed(hub.url)]
        async with running(tmp_path, feeds=feeds, asks_hubs=None) as service:
            await until(lambda: service.poller.feeds[hub.url].read_at is not None)
            await service.subscriber.work()
            feed = service.poller.feeds[hub.url]
            assert feed.hub
            assert (feed.pushed_until, feed.push_problem, hub.asked) == (None, None, [])
        async with running(tmp_path) as service:
            await until(lambda: is_pushed(service, hub.url))
        async with running(tmp_path, asks_hubs=None) as service:
            await until(lambda: not is_pushed(service, hub.url))
            assert len(hub.asked) == 1


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("https://broker.example.org/path", True),
        ("http://10.1.2.3:8080", True),
        ("http://localhost:8080", False),
        ("http://broker.localhost", False),
        ("http://[::1]:8080", False),
        ("http://0.0.0.0:8080", False),
        ("http://[::]:8080", False),
    ],
)
def test_hubs_cannot_reach_a_local_address(base: str, expected: bool) -> None:
    assert is_reachable(base) is expected


async def test_the_subscriber_continues_after_the_store_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with publisher() as hub, running(tmp_path) as service:

        async def full(url: str, **_: Any) -> None:
            raise StoreError(Problem("nothing was written", Place("store"), "Wait."))

        with monkeypatch.context() as broken:
            broken.setattr(service.poller, "change", full)
            await service.poller.add(hub.url)
            await until(lambda: "nothing was written" in caplog.text)
        await until(lambda: is_pushed(service, hub.url))


async def test_nothing_is_sent_to_hubs_that_are_not_public(tmp_path: Path) -> None:
    async with publisher() as hub, running(tmp_path, allow=()) as service:
        await service.poller.add(hub.url)
        changes = {"topic": hub.url, "hub": hub.receiver.url("/hub")}
        await until(lambda: service.poller.feeds[hub.url].errors == 1)
        await service.poller.change(hub.url, **changes)
        await until(lambda: service.poller.feeds[hub.url].push_problem is not None)
        problem = service.poller.feeds[hub.url].push_problem
        said = "nothing is sent to 127.0.0.1, which is not public, without --allow 127.0.0.0/8"
        assert problem == f"no answer: {said}"
        assert (hub.asked, hub.fetched) == ([], 0)
