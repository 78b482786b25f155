"""The WebSub subscriber, by the checks 100 to 205 of websub.rocks without 101, and the protocol.

A feed is never a page, so 101 does not apply. test_websub_subscriber.py runs the other checks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import aiohttp
import pytest
from aiohttp import web

from graphmatch.broker.db.store import Store
from graphmatch.broker.feeds.feed_poller import Poller
from graphmatch.broker.feeds.feed_store import BrokerFeedStore, Feed
from graphmatch.broker.feeds.websub_subscriber import RENEWAL, RETRY_INTERVAL, Subscriber
from graphmatch.broker.outbox.safe_http import HttpClient
from graphmatch.broker.outbox.websub_protocol import (
    LEASE,
    Response,
    discover,
    header_links,
    sign,
)
from graphmatch.broker.service.broker import Broker
from graphmatch.engine import Engine
from semantic.feeds.model import Channel
from tests.graphmatch.broker.harness import LOOPBACK, FakeClock, receivers

START = datetime(2026, 1, 5, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ITEM = "<item><title>one</title><guid isPermaLink='false'>1</guid></item>"
Page = Callable[[web.Request, dict[str, str]], Awaitable[web.StreamResponse]]


@dataclass
class QueryDefinition:
    """A request to the other side."""

    method: str
    path: str
    form: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass
class World:
    """A clock, a client, and a server with pages, a hub and callbacks."""

    clock: FakeClock
    http: aiohttp.ClientSession
    base: str
    pages: dict[str, Page] = field(default_factory=dict)
    log: list[QueryDefinition] = field(default_factory=list)

    def page(self, path: str, text: str = "", status: int = 200, **headers: Any) -> str:
        async def answer(_: web.Request, form: dict[str, str]) -> web.Response:
            response = web.Response(text=text, status=status, content_type="text/xml")
            for name, value in headers.items():
                for each in [value] if isinstance(value, str) else value:
                    response.headers.add(name, each)
            return response

        self.pages[path] = answer
        return self.base + path


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async def serve(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        form = dict(request.query) or dict(parse_qsl(body.decode("latin-1")))
        made.log.append(
            QueryDefinition(request.method, request.path, form, dict(request.headers), body)
        )
        return await made.pages[request.path](request, form)

    async with receivers() as [receiver], aiohttp.ClientSession() as http:
        receiver.answer = serve
        made = World(FakeClock(START), http, receiver.url(""))
        yield made


# --- Subscriber ----------------------------------------------------------------------------------


@dataclass
class Reader:
    """A poller and a subscriber, connected like in the service, at a verifying hub."""

    world: World
    poller: Poller
    subscriber: Subscriber
    broker: Broker
    client: HttpClient
    answers: list[Response] = field(default_factory=list)
    lease_seconds: int | None = 864000
    topic: str | None = None

    async def hub(self, _: web.Request, form: dict[str, str]) -> web.Response:
        """Accept a request, and verify it before the response."""
        query = {
            "hub.mode": form["hub.mode"],
            "hub.topic": self.topic or form["hub.topic"],
            "hub.challenge": "c h & 1",
        }
        if self.lease_seconds is not None:
            query["hub.lease_seconds"] = str(self.lease_seconds)
        self.answers.append(await self.subscriber.verify(id_of(form["hub.callback"]), query))
        return web.Response(status=202)

    async def follow(self, url: str) -> Feed:
        """Fetch a feed, and subscribe at its hub."""
        await self.poller.add(url)
        await self.poller.poll(url)
        await self.subscriber.work()
        return self.feed()

    def feed(self) -> Feed:
        """Return the only feed, which has a lease or has asked for one."""
        [feed] = self.poller.feeds.values()
        assert feed.hub
        assert feed.callback
        return feed

    async def push(self, headers: Mapping[str, str], body: bytes = b"new") -> int:
        """Send content to the callback; return the status."""

        async def read() -> bytes:
            return body

        return (await self.subscriber.receive(id_of(self.feed().callback), headers, read)).status

    async def is_active(self) -> bool:
        """Whether signed content would be accepted."""
        return await self.push({}) == 403


def id_of(callback: str) -> str:
    return callback.removeprefix("https://me.example/websub/callback/")


@pytest.fixture
async def reader(world: World, tmp_path: Path) -> AsyncIterator[Reader]:
    store = Store(str(tmp_path / "broker.db"))
    broker = Broker(store, Engine(), world.clock)
    async with HttpClient(LOOPBACK) as http:
        poller = Poller(http, BrokerFeedStore(broker), clock=world.clock)
        subscriber = Subscriber(broker, poller, http, "https://me.example/")
        reader = Reader(world, poller, subscriber, broker, http)
        world.pages["/hub"] = reader.hub
        yield reader
    store.close()


def links(world: World, hub: str = "/hub", topic: str = "/feed") -> dict[str, Any]:
    """Return the headers of a topic, with one header per link."""
    return {"Link": [f'<{world.base}{topic}>; rel="self"', f'<{world.base}{hub}>; rel="hub"']}


def rss(hub: str = "", topic: str = "") -> str:
    tags = f"<atom:link rel='self' href='{topic}'/>" if topic else ""
    tags += f"<atom:link rel='hub' href='{hub}'/>" if hub else ""
    namespace = "xmlns:atom='http://www.w3.org/2005/Atom'"
    return f"<rss {namespace}><channel><title>T</title>{tags}{ITEM}</channel></rss>"


def atom(hub: str, topic: str) -> str:
    return (
        "<feed xmlns='http://www.w3.org/2005/Atom'><title>T</title>"
        f"<link rel='self' href='{topic}'/><link rel='hub' href='{hub}'/>"
        "<entry><id>urn:1</id><title>one</title></entry></feed>"
    )


def json_feed(hub: str, topic: str) -> str:
    hubs = f'[{{"type": "WebSub", "url": "{hub}"}}]'
    head = '{"version": "https://jsonfeed.org/version/1.1", "title": "T"'
    return f'{head}, "feed_url": "{topic}", "hubs": {hubs}, "items": [{{"id": "1"}}]}}'


async def test_100_headers_name_the_hub(reader: Reader) -> None:
    lease = await reader.follow(reader.world.page("/feed", rss(), **links(reader.world)))
    assert (lease.hub, lease.topic) == (reader.world.base + "/hub", reader.world.base + "/feed")
    assert await reader.is_active()


@pytest.mark.parametrize("form", [atom, rss, json_feed], ids=["atom", "rss", "json"])
async def test_102_and_103_the_feed_names_the_hub(
    form: Callable[[str, str], str], reader: Reader
) -> None:
    base = reader.world.base
    lease = await reader.follow(reader.world.page("/feed", form(f"{base}/hub", f"{base}/topic")))
    assert (lease.hub, lease.topic) == (f"{base}/hub", f"{base}/topic")
    assert await reader.is_active()


async def test_104_headers_go_before_the_feed(reader: Reader) -> None:
    wrong = atom(f"{reader.world.base}/wrong", f"{reader.world.base}/wrong-topic")
    lease = await reader.follow(reader.world.page("/feed", wrong, **links(reader.world)))
    assert (lease.hub, lease.topic) == (reader.world.base + "/hub", reader.world.base + "/feed")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (['<https://h/>; rel="hub", <https://t/>; rel=self'], [("hub", "https://h/"), ("self", "https://t/")]),
        (["<https://h/>;REL='hub'"], [("'hub'", "https://h/")]),
        (['<https://h/?a=1,2;b>; title="x; rel=self, <y>"; rel="hub next"'],
         [("hub", "https://h/?a=1,2;b"), ("next", "https://h/?a=1,2;b")]),
        (["<https://h/>", "nonsense", "<"], []),
    ],
)  # fmt: skip
def test_link_headers_are_parsed(values: list[str], expected: list[tuple[str, str]]) -> None:
    assert header_links(values) == expected


def test_the_feed_names_the_topic_if_the_headers_name_only_the_hub() -> None:
    channel = Channel(base="https://e.org/x/", self_link="feed", hubs=("https://other/",))
    found = discover("https://e.org/a", [("hub", "hub")], channel)
    assert (found.hubs, found.topic) == (("https://e.org/hub",), "https://e.org/x/feed")


def test_a_hub_must_have_a_web_address() -> None:
    bad = [("hub", "file:///etc/passwd"), ("hub", "http://["), ("hub", "mailto:a@e.org")]
    assert discover("https://e.org/", bad).hubs == ()
    several = [("hub", "https://a/"), ("hub", "https://b/"), ("hub", "https://a/")]
    assert discover("https://e.org/", several).hubs == ("https://a/", "https://b/")


async def test_200_the_topic_is_the_own_address_of_the_feed(reader: Reader) -> None:
    lease = await reader.follow(
        reader.world.page("/feed", rss(), **links(reader.world, topic="/feed?self=other"))
    )
    assert lease.topic == reader.world.base + "/feed?self=other"
    assert await reader.is_active()


@pytest.mark.parametrize("status", [302, 301], ids=["201", "202"])
async def test_201_and_202_a_redirected_topic_is_followed(status: int, reader: Reader) -> None:
    url = reader.world.page("/feed", status=status, Location="/new")
    reader.world.page("/new", rss(), **links(reader.world, topic="/new"))
    lease = await reader.follow(url)
    assert lease.topic == reader.world.base + "/new"
    assert await reader.is_active()


@pytest.mark.parametrize("status", [307, 308], ids=["203", "204"])
async def test_203_and_204_a_redirected_hub_is_followed(status: int, reader: Reader) -> None:
    reader.world.page("/moved", status=status, Location="/hub")
    url = reader.world.page("/feed", rss(), **links(reader.world, hub="/moved"))
    lease = await reader.follow(url)
    assert await reader.is_active()
    assert lease.hub == reader.world.base + "/moved"  # The feed names this address.
    await reader.subscriber.work()
    assert reader.feed() == lease
    [asked] = [a.form for a in reader.world.log if a.path == "/hub"]
    assert [asked] == [a.form for a in reader.world.log if a.path == "/moved"]


async def test_205_the_verification_of_another_topic_is_refused(reader: Reader) -> None:
    reader.topic = "https://e.org/another"
    await reader.follow(reader.world.page("/feed", rss(), **links(reader.world)))
    assert [answer.status for answer in reader.answers] == [404]
    assert b"c h" not in reader.answers[0].body
    assert not await reader.is_active()


async def test_a_hub_gets_a_complete_request(reader: Reader) -> None:
    lease = await reader.follow(reader.world.page("/feed", rss(), **links(reader.world)))
    (asked,) = [a for a in reader.world.log if a.path == "/hub"]
    assert asked.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert asked.form == {
        "hub.mode": "subscribe",
        "hub.topic": lease.topic,
        "hub.callback": lease.callback,
        "hub.lease_seconds": str(int(LEASE.total_seconds())),
        "hub.secret": lease.secret,
    }
    assert len(lease.secret.encode()) < 200
    assert len(id_of(lease.callback)) >= 43
    assert lease.secret not in repr(lease)
    assert lease.callback not in repr(lease)
    (answer,) = reader.answers
    assert (answer.status, answer.body) == (200, b"c h & 1")


async def test_a_lease_is_renewed_before_it_ends(reader: Reader) -> None:
    reader.lease_seconds = 86400
    lease = await reader.follow(reader.world.page("/feed", rss(), **links(reader.world)))
    assert lease.pushed_until == START + DAY
    for _ in range(5 * 24):
        reader.world.clock.now += HOUR
        await reader.subscriber.work()
        assert await reader.is_active()
    asked = [a.form for a in reader.world.log if a.path == "/hub"]
    assert 5 / RENEWAL <= len(asked) <= 5 / RENEWAL + 2
    assert len({form["hub.callback"] for form in asked}) == 1


async def test_a_failed_hub_is_reported_and_asked_again(reader: Reader) -> None:
    reader.lease_seconds = 86400
    url = reader.world.page("/feed", rss(), **links(reader.world))
    await reader.follow(url)
    hub = reader.world.pages["/hub"]
    reader.world.page("/hub", "too\nbusy", status=500)
    before = len(reader.world.log)
    for _ in range(48):
        reader.world.clock.now += HOUR
        await reader.subscriber.work()
    assert len(reader.world.log) - before <= 48 * HOUR / RETRY_INTERVAL
    assert not await reader.is_active()
    feed = reader.poller.feeds[url]
    assert (feed.pushed_until, feed.push_problem) == (None, "the hub answers 500: too busy")
    assert feed in reader.poller.due()
    signed = {"x-hub-signature": sign(feed.secret, b"new")}
    assert await reader.push(signed) == 410
    reader.world.pages["/hub"] = hub
    reader.world.clock.now += RETRY_INTERVAL
    await reader.subscriber.work()
    await reader.subscriber.work()
    assert await reader.is_active()
    assert reader.poller.feeds[url].push_problem is None


async def test_leases_survive_a_restart_and_end_with_their_address(reader: Reader) -> None:
    """A restart asks no hub again; at another address, the hub is asked again."""
    url = reader.world.page("/feed", rss(), **links(reader.world))
    lease = await reader.follow(url)
    before = len(reader.world.log)

    async def restart(base: str) -> None:
        broker = Broker(reader.broker.store, Engine(), reader.world.clock)
        reader.poller = Poller(reader.client, BrokerFeedStore(broker), clock=reader.world.clock)
        await reader.poller.start()
        reader.subscriber = Subscriber(broker, reader.poller, reader.client, base)
        assert await reader.push({}) == 503  # The hub must retry.
        await reader.subscriber.work()

    await restart("https://me.example")
    assert reader.feed() == lease
    assert len(reader.world.log) == before
    await restart("https://you.example")
    assert reader.feed().callback.startswith("https://you.example/websub/callback/gmc_")
    asked = [request.form for request in reader.world.log[before:]]
    assert [form["hub.callback"] for form in asked] == [reader.feed().callback]
    await restart("http://127.0.0.1:8080")  # Hubs cannot reach it.
    assert reader.poller.feeds[url].pushed_until is None


async def test_only_a_request_of_the_broker_is_verified(reader: Reader) -> None:
    lease = await reader.follow(reader.world.page("/feed", rss(), **links(reader.world)))
    form = {"hub.topic": lease.topic, "hub.challenge": "c"}
    for mode in ("subscribe", "unsubscribe", "other"):
        answer = await reader.subscriber.verify(id_of(lease.callback), {**form, "hub.mode": mode})
        assert (answer.status, answer.body) == (404, b"there is no such subscription")
    assert await reader.is_active()


async def test_a_lease_ends_if_the_feed_names_another_hub(reader: Reader) -> None:
    url = reader.world.page("/feed", rss(), **links(reader.world))
    old = await reader.follow(url)
    reader.world.pages["/other"] = reader.world.pages["/hub"]
    reader.world.page("/feed", rss() + " ", **links(reader.world, "/other"))
    await reader.poller.poll(url)
    assert reader.poller.feeds[url].pushed_until is None
    await reader.subscriber.work()
    new = reader.feed()
    assert new.hub == reader.world.base + "/other"
    assert new.callback != old.callback
    assert await reader.is_active()


async def test_a_removed_feed_has_no_callback(reader: Reader) -> None:
    url = reader.world.page("/feed", rss(), **links(reader.world))
    lease = await reader.follow(url)
    await reader.poller.remove(url)
    await reader.subscriber.work()

    async def read() -> bytes:
        raise AssertionError("the body was read")

    response = await reader.subscriber.receive(id_of(lease.callback), {}, read)
    assert response.status == 410
