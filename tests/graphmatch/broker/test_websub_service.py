"""WebSub through the running service: real hubs, publishers and subscribers on loopback.

These tests run the checks of websub.rocks for subscribers (100, 300 to 302) and hubs (100 to 105)
against the service. test_websub.py runs the other checks against the classes.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl
from xml.etree import ElementTree

import aiohttp
import pytest
from aiohttp import web
from graphmatch.broker.feeds.feed_list import ListedFeed
from graphmatch.broker.feeds.websub_service import MatchFeeds, StoredRecords, WebSub
from sqlalchemy import select

from graphmatch.broker.app.assembly import Parts, started
from graphmatch.broker.app.security import ANYBODY
from graphmatch.broker.app.server import serve
from graphmatch.broker.db.store import Store, StoreError
from graphmatch.broker.db.tables import publications
from graphmatch.broker.feeds import websub_service
from graphmatch.broker.feeds.feed_poller import Poller
from graphmatch.broker.feeds.websub_subscriber import Lease
from graphmatch.broker.models.subscription_settings import SubscriptionSettings
from graphmatch.broker.outbox.websub_hub import RETRIES, Callback, HubDelivery
from graphmatch.broker.outbox.websub_protocol import (
    discover,
    header_links,
    is_signed,
    sign,
)
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import MatchWorker
from graphmatch.broker.service.subscriptions import Created
from graphmatch.engine import Engine
from semantic.errors import Place, Problem
from semantic.feeds import open_feed
from tests.graphmatch.broker.harness import LOOPBACK, QUERY, TYPE, Receiver, receivers
from tests.graphmatch.broker.live_broker import Clock
from tests.waiting import until

ITEM = "<item><title>{0}</title><guid isPermaLink='false'>{0}</guid></item>"
TITLED = "SELECT ?t { ?s <http://purl.org/rss/1.0/title> ?t }"
ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websub_service, "EVERY_SECONDS", 0.05)
    monkeypatch.setattr(websub_service, "PAUSE_SECONDS", 0.02)


# --- Service and peers ---------------------------------------------------------------------------


@dataclass
class Service:
    """A running broker."""

    broker: Broker
    base: str
    http: aiohttp.ClientSession
    websub: WebSub
    poller: Poller

    async def send(
        self, method: str, url: str, data: Any = None, **headers: str
    ) -> tuple[int, str, Any]:
        url = url if url.startswith("http") else self.base + url
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.request(method, url, data=data, headers=named) as answer:
            return answer.status, await answer.text(), answer.headers

    async def publish(self, *names: str) -> None:
        text = "".join(f"<urn:{one}> {TYPE} <urn:C> <urn:g-{one}> .\n" for one in names)
        await self.broker.publications.publish(text.encode(), format="nq")

    async def titles(self) -> list[str]:
        """Return the titles in the log."""
        chosen = select(publications.c.title).order_by(publications.c.seq)
        return list(await self.broker.store.read(lambda db: db.scalars(chosen).all()))

    async def topic(self, made: Created) -> str:
        _, _, headers = await self.send(
            "GET", f"/v1/subscriptions/{made.id}/feed.atom", Authorization=f"Ticket {made.ticket}"
        )
        found = discover(self.base, header_links(headers.getall("Link")))
        assert found.hubs == (f"{self.base}/websub",)
        assert found.topic is not None
        return found.topic

    async def ask(self, topic: str, callback: str, mode: str = "subscribe", **more: str) -> int:
        form = {"hub.mode": mode, "hub.topic": topic, "hub.callback": callback}
        form |= {f"hub.{name}": value for name, value in more.items()}
        return (await self.send("POST", "/websub", form))[0]


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
                        websub = app.state.websub
                        yield Service(broker, base, http, websub, websub.poller)
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


@dataclass
class Reader:
    """A callback at the project's hub, with its requests and documents."""

    receiver: Receiver
    asked: list[dict[str, str]] = field(default_factory=list)
    got: list[tuple[bytes, Any]] = field(default_factory=list)
    status: int = 200

    @property
    def url(self) -> str:
        return self.receiver.url("/callback?mine=1")

    async def answer(self, request: web.Request) -> web.Response:
        if request.method == "GET":
            self.asked.append(dict(request.query))
            return web.Response(text=request.query.get("hub.challenge", ""))
        self.got.append((await request.read(), request.headers))
        return web.Response(status=self.status)

    def entries(self, index: int = -1) -> int:
        """Return the number of entries of a received document."""
        return len(ElementTree.fromstring(self.got[index][0]).findall(f"{ATOM}entry"))


@asynccontextmanager
async def reader() -> AsyncIterator[Reader]:
    async with receivers() as (receiver,):
        made = Reader(receiver)
        receiver.answer = made.answer
        yield made


def is_pushed(service: Service, url: str) -> bool:
    return service.poller.feeds[url].pushed_until is not None


# --- Hub -----------------------------------------------------------------------------------------


async def test_subscribers_of_a_hub_get_the_match_feed(tmp_path: Path) -> None:
    """Run checks 100 to 105."""

    async with reader() as one, running(tmp_path) as service:
        made = await service.broker.subscriptions.subscribe(
            {"query": QUERY}, SubscriptionSettings()
        )
        topic = await service.topic(made)
        more = {"secret": "geheim", "lease_seconds": "3600", "verify": "sync"}
        assert await service.ask(topic, one.url, **more) == 202
        await until(lambda: bool(service.websub.hub.callbacks(topic)))
        (asked,) = one.asked
        assert (asked["mine"], asked["hub.mode"]) == ("1", "subscribe")
        assert (asked["hub.topic"], asked["hub.lease_seconds"]) == (topic, "3600")
        await service.publish("a")
        await until(lambda: bool(one.got))
        body, headers = one.got[0]
        assert headers["Content-Type"] == "application/atom+xml"
        assert is_signed("geheim", body, headers["X-Hub-Signature"])
        channel, items = open_feed(body, topic)
        assert [item.title for item in items] == ["urn:g-a"]
        assert discover("", header_links(headers.getall("Link"))) == discover("", [], channel)
        assert (await service.send("GET", topic))[1].encode() == body

        assert await service.ask(topic, one.url, lease_seconds="7200", secret="second") == 202
        await until(lambda: len(one.asked) == 2)
        await until(lambda: service.websub.hub.callbacks(topic)[0].secret == "second")
        await service.publish("b")
        await until(lambda: len(one.got) == 2)
        assert one.got[1][1]["X-Hub-Signature"] == sign("second", one.got[1][0])
        assert await service.ask(topic, one.url, "unsubscribe") == 202
        await until(lambda: not service.websub.hub.callbacks(topic))
        await service.publish("c")
        await asyncio.sleep(0.2)
        assert len(one.got) == 2
        assert await service.ask(topic, one.url, "unsubscribe") == 404


async def test_the_hub_refuses_unknown_topics(tmp_path: Path) -> None:
    async with reader() as one, running(tmp_path) as service:
        made = await service.broker.subscriptions.subscribe(
            {"query": QUERY}, SubscriptionSettings()
        )
        other = await service.broker.subscriptions.subscribe(
            {"query": QUERY}, SubscriptionSettings()
        )
        topic, key = (await service.topic(made)), (await service.topic(other))[-40:]
        wrong = [
            topic[:-1],
            topic[:-40] + key,
            topic.partition("?")[0],
            topic.replace(service.base, "http://broker.example"),
            topic.replace(made.id, "sub_0000000000000000"),
            topic.replace("feed.atom", "events"),
            f"{topic}&more=1",
            f"{service.base}/",
        ]
        for each in wrong:
            assert await service.ask(each, one.url) == 404, each
        assert (await service.send("POST", "/websub", b"{}"))[0] == 415
        assert (await service.send("POST", "/websub", {"a": "b"}))[0] == 400
        await service.broker.subscriptions.unsubscribe(made.id, ANYBODY, made.ticket)
        assert await service.ask(topic, one.url) == 404
        _, text, headers = await service.send("GET", topic)
        assert "Link" not in headers
        assert "rel='hub'" not in text
        assert one.asked == []


async def test_many_matches_are_few_deliveries_and_the_end_is_announced(tmp_path: Path) -> None:
    async with reader() as one, running(tmp_path) as service:
        made = await service.broker.subscriptions.subscribe(
            {"query": QUERY}, SubscriptionSettings()
        )
        topic = await service.topic(made)
        await service.ask(topic, one.url)
        await until(lambda: bool(service.websub.hub.callbacks(topic)))
        await service.publish(*(f"a{number}" for number in range(40)))
        await until(lambda: bool(one.got) and one.entries() == 40)
        assert len(one.got) <= 5
        await service.broker.subscriptions.unsubscribe(made.id, ANYBODY, made.ticket)
        await until(lambda: one.asked[-1]["hub.mode"] == "denied")
        assert one.asked[-1]["hub.reason"] == "the subscription has ended"
        await until(lambda: not service.websub.hub.callbacks())


async def test_matches_during_an_outage_of_the_hub_are_sent(tmp_path: Path) -> None:
    clock = Clock()
    async with reader() as one:
        async with running(tmp_path, clock) as service:
            made = await service.broker.subscriptions.subscribe(
                {"query": QUERY}, SubscriptionSettings()
            )
            topic = await service.topic(made)
            await service.ask(topic, one.url, secret="geheim")
            await until(lambda: bool(service.websub.hub.callbacks(topic)))
            one.status = 503
            await service.publish("a")
            await until(lambda: bool(service.websub.hub.deliveries))
            port = int(service.base.rpartition(":")[2])
        store = Store(str(tmp_path / "broker.db"))
        broker = Broker(store, Engine(), clock)
        await broker.publications.publish(f"<urn:b> {TYPE} <urn:C> .".encode(), format="nt")
        matcher = MatchWorker(broker)
        matcher.load()
        while await asyncio.to_thread(matcher.step):
            pass
        store.close()
        one.status = 200
        clock.forward += RETRIES[0]
        async with running(tmp_path, clock, port=port) as service:
            await until(lambda: bool(one.got) and one.entries() == 2)
            assert is_signed("geheim", one.got[-1][0], one.got[-1][1]["X-Hub-Signature"])

            async def is_sent() -> bool:
                (kept,) = await StoredRecords(service.broker.store, HubDelivery).load()
                return kept == HubDelivery(topic, one.url, 2)

            await until(is_sent)


async def test_nothing_is_sent_to_addresses_that_are_not_public(tmp_path: Path) -> None:
    async with reader() as one, publisher() as hub:
        async with running(tmp_path, allow=(), feeds=[ListedFeed(hub.url)]) as service:
            made = await service.broker.subscriptions.subscribe(
                {"query": QUERY}, SubscriptionSettings()
            )
            assert await service.ask(await service.topic(made), one.url) == 202
            await until(lambda: service.poller.feeds[hub.url].errors == 1)
            problem = service.poller.feeds[hub.url].problem
            assert problem is not None
            assert "nothing is sent to 127.0.0.1, which is loopback" in problem
            records = StoredRecords(service.broker.store, Callback)

            async def is_tried() -> bool:
                return [each.tries for each in await records.load()] == [1]

            await until(is_tried)
        assert (one.asked, hub.fetched) == ([], 0)


async def test_websub_continues_after_the_store_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with publisher() as hub, reader() as one, running(tmp_path) as service:
        made = await service.broker.subscriptions.subscribe(
            {"query": QUERY}, SubscriptionSettings()
        )
        topic = await service.topic(made)
        await service.ask(topic, one.url)
        await until(lambda: bool(service.websub.hub.callbacks(topic)))

        async def full(*_: object) -> None:
            raise StoreError(Problem("nothing was written", Place("store"), "Wait."))

        with monkeypatch.context() as broken:
            broken.setattr(StoredRecords, "save", full)
            await service.poller.add(hub.url)
            await service.publish("a")
            await until(lambda: str(caplog.messages).count("nothing was written") >= 3)
        await until(lambda: is_pushed(service, hub.url))
        await until(lambda: bool(one.got))


async def test_a_feed_that_cannot_be_written_is_retried_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub counts it as a failed delivery; other callbacks get new content."""
    document = MatchFeeds.document

    clock = Clock()
    async with reader() as one, reader() as other, running(tmp_path, clock) as service:
        made = [
            await service.broker.subscriptions.subscribe({"query": QUERY}, SubscriptionSettings())
            for _ in "ab"
        ]
        topics = [await service.topic(each) for each in made]

        async def broken(self: MatchFeeds, topic: str) -> Any:
            if topic == topics[0]:
                raise ValueError("no luck")
            return await document(self, topic)

        monkeypatch.setattr(MatchFeeds, "document", broken)
        for topic, each in zip(topics, (one, other), strict=True):
            await service.ask(topic, each.url)
        await until(lambda: len(service.websub.hub.callbacks()) == 2)
        await service.publish("a")
        await until(lambda: bool(other.got))
        hub = service.websub.hub
        await until(lambda: [each.tries for each in hub.deliveries] == [1])
        due_at = hub.deliveries[0].due_at
        assert due_at is not None
        assert due_at > clock()
        assert service.broker.supervisor.set_aside() == ["WebSub hub: 1 set aside"]
        clock.forward = timedelta(minutes=1)
        monkeypatch.setattr(MatchFeeds, "document", document)
        await until(lambda: bool(one.got))


# --- Retention -----------------------------------------------------------------------------------


def test_records_are_stored_completely(store: Store) -> None:
    now = Clock()()
    lease = Lease("gmc_1", "https://e.org/" + "t" * 2000, "https://h/", "https://me/", "secret")
    callback = Callback("https://e.org/" + "t" * 1900, "https://c/" + "c" * 1900, 3, "ä\0", now)
    delivery = HubDelivery(callback.topic, callback.callback, 3)

    async def test() -> None:
        async def kept(kind: Any) -> Sequence[Any]:
            return await StoredRecords(store, kind).load()

        for record in (lease, callback, delivery):
            records = StoredRecords[Any](store, type(record))
            await records.save(record)
            changed = replace(record, tries=2, due_at=now)
            await records.save(changed)
            assert await kept(type(record)) == [changed]
        await StoredRecords(store, HubDelivery).remove(delivery)
        assert (len(await kept(Lease)), await kept(HubDelivery)) == (1, [])

    asyncio.run(test())
