"""WebSub, by the checks of websub.rocks for subscribers, 100 to 205.

Further requirements of the recommendation are tested below each. test_websub_service.py runs the
other checks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl

import aiohttp
import pytest
from aiohttp import web

from graphmatch.broker.feeds.feed_poller import Poller
from graphmatch.broker.feeds.feed_store import SqliteFeedStore
from graphmatch.broker.feeds.websub_subscriber import AGAIN, RENEWED, Keyed, Lease, Subscriber
from graphmatch.broker.outbox.websub_protocol import (
    LEASE,
    Response,
    discover,
    header_links,
    sign,
)
from semantic.feeds.model import Channel
from tests.graphmatch.broker.harness import FakeClock, receivers

START = datetime(2026, 1, 5, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ITEM = "<item><title>one</title><guid isPermaLink='false'>1</guid></item>"
R = TypeVar("R", bound=Keyed)
Page = Callable[[web.Request, dict[str, str]], Awaitable[web.StreamResponse]]


class MemoryRecords(Generic[R]):
    """Records in memory."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, ...], R] = {}

    async def load(self) -> Sequence[R]:
        return list(self._records.values())

    async def save(self, record: R) -> None:
        self._records[record.key] = record

    async def remove(self, record: R) -> None:
        self._records.pop(record.key, None)


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
    content: list[tuple[str, bytes, str]] = field(default_factory=list)
    answers: list[Response] = field(default_factory=list)
    changes: list[Lease] = field(default_factory=list)
    lease_seconds: int | None = 864000
    topic: str | None = None

    @classmethod
    async def of(cls, world: World, store: SqliteFeedStore) -> Reader:
        async def content(lease: Lease, body: bytes, content_type: str) -> None:
            reader.content.append((lease.topic, body, content_type))

        async def changed(lease: Lease) -> None:
            reader.changes.append(lease)

        subscriber = Subscriber(
            world.http,
            MemoryRecords(),
            "https://me.example/websub/",
            content,
            changed=changed,
            clock=world.clock,
            seconds=1,
        )
        reader = cls(world, Poller(world.http, store, clock=world.clock), subscriber)

        async def hub(_: web.Request, form: dict[str, str]) -> web.Response:
            id = form["hub.callback"].removeprefix("https://me.example/websub/")
            query = {
                "hub.mode": form["hub.mode"],
                "hub.topic": reader.topic or form["hub.topic"],
                "hub.challenge": "c h & 1",
            }
            if reader.lease_seconds is not None:
                query["hub.lease_seconds"] = str(reader.lease_seconds)
            reader.answers.append(await subscriber.verify(id, query))
            return web.Response(status=202)

        world.pages["/hub"] = hub
        return reader

    async def follow(self, url: str) -> Lease:
        """Fetch a feed, and subscribe at its hub."""
        await self.poller.add(url)
        await self.poller.poll(url)
        feed = self.poller.feeds[url]
        assert feed.hub is not None
        assert feed.topic is not None
        await self.subscriber.subscribe(feed.topic, feed.hub)
        (lease,) = self.subscriber.leases
        return lease

    def is_active(self) -> bool:
        return any(
            lease.until is not None and lease.until > self.world.clock()
            for lease in self.subscriber.leases
        )


@pytest.fixture
async def reader(world: World) -> AsyncIterator[Reader]:
    with SqliteFeedStore(None) as store:
        yield await Reader.of(world, store)


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
    assert reader.is_active()


@pytest.mark.parametrize("form", [atom, rss, json_feed], ids=["atom", "rss", "json"])
async def test_102_and_103_the_feed_names_the_hub(
    form: Callable[[str, str], str], reader: Reader
) -> None:
    base = reader.world.base
    lease = await reader.follow(reader.world.page("/feed", form(f"{base}/hub", f"{base}/topic")))
    assert (lease.hub, lease.topic) == (f"{base}/hub", f"{base}/topic")
    assert reader.is_active()


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
    assert reader.is_active()


@pytest.mark.parametrize("status", [302, 301], ids=["201", "202"])
async def test_201_and_202_a_redirected_topic_is_followed(status: int, reader: Reader) -> None:
    url = reader.world.page("/feed", status=status, Location="/new")
    reader.world.page("/new", rss(), **links(reader.world, topic="/new"))
    lease = await reader.follow(url)
    assert lease.topic == reader.world.base + "/new"
    assert reader.is_active()


@pytest.mark.parametrize("status", [307, 308], ids=["203", "204"])
async def test_203_and_204_a_redirected_hub_is_followed(status: int, reader: Reader) -> None:
    reader.world.page("/moved", status=status, Location="/hub")
    url = reader.world.page("/feed", rss(), **links(reader.world, hub="/moved"))
    lease = await reader.follow(url)
    assert reader.is_active()
    kept = "/hub" if status == 308 else "/moved"
    assert lease.hub == reader.world.base + "/moved"  # The feed names this address.
    assert lease.address == reader.world.base + kept
    assert await reader.subscriber.subscribe(lease.topic, lease.hub) == lease
    assert [a.form for a in reader.world.log if a.path == "/hub"] == [
        a.form for a in reader.world.log if a.path == "/moved"
    ]


async def test_205_the_verification_of_another_topic_is_refused(reader: Reader) -> None:
    reader.topic = "https://e.org/another"
    await reader.follow(reader.world.page("/feed", rss(), **links(reader.world)))
    assert [answer.status for answer in reader.answers] == [404]
    assert b"c h" not in reader.answers[0].body
    assert not reader.is_active()


async def test_a_hub_gets_a_complete_request(reader: Reader) -> None:
    lease = await reader.follow(reader.world.page("/feed", rss(), **links(reader.world)))
    (asked,) = [a for a in reader.world.log if a.path == "/hub"]
    assert asked.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert asked.form == {
        "hub.mode": "subscribe",
        "hub.topic": lease.topic,
        "hub.callback": f"https://me.example/websub/{lease.id}",
        "hub.lease_seconds": str(int(LEASE.total_seconds())),
        "hub.secret": lease.secret,
    }
    assert len(lease.secret.encode()) < 200
    assert len(lease.id) >= 43
    assert lease.secret not in repr(lease)
    (answer,) = reader.answers
    assert (answer.status, answer.body) == (200, b"c h & 1")


async def test_a_lease_is_renewed_before_it_ends(reader: Reader) -> None:
    reader.lease_seconds = 86400
    lease = await reader.follow(reader.world.page("/feed", rss(), **links(reader.world)))
    assert lease.until == START + DAY
    for _ in range(5 * 24):
        reader.world.clock.now += HOUR
        await reader.subscriber.work()
        assert reader.is_active()
    asked = [a.form for a in reader.world.log if a.path == "/hub"]
    assert 5 / RENEWED <= len(asked) <= 5 / RENEWED + 2
    assert len({form["hub.callback"] for form in asked}) == 1


async def test_a_failed_hub_is_reported_and_asked_again(reader: Reader) -> None:
    reader.lease_seconds = 86400
    lease = await reader.follow(reader.world.page("/feed", rss(), **links(reader.world)))
    hub = reader.world.pages["/hub"]
    reader.world.page("/hub", status=500)
    for _ in range(48):
        reader.world.clock.now += HOUR
        await reader.subscriber.work()
    assert not reader.is_active()
    assert reader.changes[-1].until is None
    signed = {"X-Hub-Signature": sign(lease.secret, b"new")}
    assert (await reader.subscriber.receive(lease.id, signed, b"new")).status == 410
    reader.world.pages["/hub"] = hub
    reader.world.clock.now += AGAIN
    await reader.subscriber.work()
    assert reader.is_active()
