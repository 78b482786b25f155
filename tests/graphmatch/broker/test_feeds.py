"""The poller follows the rules of servers, and each item arrives once."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import sqlite3
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from graphmatch.broker.feeds import feed_poller, feed_store
from graphmatch.broker.feeds.feed_poller import (
    DEFAULT_INTERVAL,
    JITTER,
    MAX_BODY_BYTES,
    MAX_INTERVAL,
    MAX_REDIRECTS,
    MAX_REQUESTS_PER_HOST,
    MAX_RETRY_AFTER,
    MIN_INTERVAL,
    PUSHED_INTERVAL,
    Poller,
)
from graphmatch.broker.feeds.feed_store import (
    ITEM_DAYS,
    Feed,
    FeedItem,
    Items,
    SqliteFeedStore,
)
from graphmatch.broker.feeds.opml import parse_feed_list, read_feed_list
from graphmatch.broker.outbox.safe_http import HttpClient
from semantic.errors import InputError, Problem, Severity
from semantic.feeds import read_feed
from semantic.sqlite_file import SqliteFileError
from tests.graphmatch.broker.harness import (
    LOOPBACK,
    FakeClock,
    Got,
    Receiver,
    receivers,
    status,
)
from tests.waiting import until

START = datetime(2026, 1, 5, 0, 30, tzinfo=UTC)  # This is a Monday.
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def rss(*items: str, extra: str = "", guids: Sequence[str] | None = None) -> str:
    names = guids or items
    inner = "".join(
        f"<item><title>{title}</title><guid isPermaLink='false'>{name}</guid></item>"
        for title, name in zip(items, names, strict=True)
    )
    link = "<link>https://e.org/</link>"
    return f"<rss version='2.0'><channel><title>T</title>{link}{extra}{inner}</channel></rss>"


@dataclass
class Server:
    """A loopback server with functions as pages."""

    receiver: Receiver
    pages: dict[str, Answer] = field(default_factory=dict)

    @property
    def log(self) -> list[Got]:
        return self.receiver.got

    async def serve(self, request: web.Request) -> web.StreamResponse:
        return await self.pages[request.path](request)

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return self.receiver.url(path, host)

    def page(self, path: str, text: str | bytes = "", code: int = 200, **headers: str) -> str:
        """Serve the same response each time."""
        self.pages[path] = status(code, text.encode() if isinstance(text, str) else text, **headers)
        return self.url(path)

    def times(self, path: str) -> list[datetime]:
        return [request.at for request in self.log if request.path == path]


@dataclass
class FetchResult:
    """The arguments of a call of `Poller.on_fetch`."""

    feed: Feed
    items: Items
    problems: Sequence[Problem]


@dataclass
class World:
    """A server, a poller and a clock."""

    clock: FakeClock
    server: Server
    poller: Poller
    store: SqliteFeedStore
    fetched: list[FetchResult] = field(default_factory=list)

    async def take(self, *result: Any) -> None:
        self.fetched.append(FetchResult(*result))

    def titles(self) -> list[str | None]:
        return [item.publication.title for each in self.fetched for item in each.items]

    async def go(self, length: timedelta, grain: timedelta | None = None) -> None:
        """Poll for a time; a grain groups polls with nearby times."""
        end = self.clock.now + length
        while (at := self.next_at()) is not None and at <= end:
            if grain is not None:
                at = START - -(at - START) // grain * grain
            self.clock.now = max(self.clock.now, at)
            await self.poll_due()
        self.clock.now = end

    def next_at(self) -> datetime | None:
        """Return the time of the next poll."""
        times = [feed.next_poll_at or self.clock.now for feed in self.poller.feeds.values()]
        return min(times, default=None)

    async def poll_due(self) -> None:
        """Poll the feeds that are due."""
        await asyncio.gather(*(self.poller.poll(feed.url) for feed in self.poller.due()))

    async def poll(self, url: str) -> Feed:
        """Poll one feed now."""
        await self.poller.poll(url)
        return self.poller.feeds[url]

    def wait(self, url: str) -> timedelta:
        """Return the time until the next poll."""
        at = self.poller.feeds[url].next_poll_at
        assert at is not None
        return at - self.clock()


@asynccontextmanager
async def worlds(
    path: Path | None = None,
    *,
    clock: FakeClock | None = None,
    seed: int | None = None,
    seconds: float = 5,
) -> AsyncIterator[World]:
    """Yield a world; without a seed, nothing is random."""
    time = clock or FakeClock(START)
    number = (lambda: 0.0) if seed is None else random.Random(seed).random
    world: World

    async def take(*result: Any) -> None:
        await world.take(*result)

    client = HttpClient(LOOPBACK, total_seconds=seconds)
    async with receivers(clock=time) as [receiver], client as http:
        server = Server(receiver)
        receiver.answer = server.serve
        with SqliteFeedStore(path, time) as store:
            poller = Poller(http, store, take, clock=time, random=number)
            await poller.start()
            world = World(time, server, poller, store)
            yield world


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with worlds() as made:
        yield made


# --- Conditional requests ------------------------------------------------------------------------


@pytest.mark.parametrize("etag", ['"a-1"', 'W/"ä b"', "not quoted", '"'])
async def test_validators_are_sent_back_unchanged(etag: str, world: World) -> None:
    modified = "Mon, 5 Jan 2026 00:00:00 +0000"  # The RFC requires two digits.

    url = world.server.page("/a", rss("one"), ETag=etag, Last_Modified=modified)
    await world.poller.add(url)
    await world.poll(url)
    world.server.page("/a", code=304)
    await world.poll(url)
    await world.poll(url)
    first, *others = world.server.log
    assert not {"If-None-Match", "If-Modified-Since"} & first.headers.keys()
    for request in others:
        assert request.headers["If-None-Match"] == etag
        assert request.headers["If-Modified-Since"] == modified
    assert world.titles() == ["one"]
    assert world.poller.feeds[url].errors == 0


@pytest.mark.parametrize("code", [301, 302])
async def test_a_validator_that_matches_at_another_address_hides_no_items(
    code: int, world: World
) -> None:
    async def other(request: web.Request) -> web.Response:
        if request.headers.get("If-None-Match") == '"1"':
            return web.Response(status=304)
        return web.Response(text=rss("two"), headers={"ETag": '"1"'})

    url = world.server.page("/a", rss("one"), ETag='"1"')
    world.server.pages["/b"] = other
    await world.poller.add(url)
    await world.poll(url)
    world.server.page("/a", code=code, Location="/b")
    await world.poll(url)
    assert world.titles() == ["one"]
    await world.poll(url)
    assert world.titles() == ["one", "two"]


async def test_validators_of_a_truncated_document_are_not_stored(world: World) -> None:
    url = world.server.page("/a", rss("one", "two")[:-60], ETag='"1"')
    await world.poller.add(url)
    await world.poll(url)
    world.server.page("/a", rss("one", "two"), ETag='"1"')
    await world.poll(url)
    assert "If-None-Match" not in world.server.log[1].headers
    assert world.titles() == ["one", "two"]
    assert [p.severity for p in world.fetched[0].problems] == [Severity.REFUSED]


# --- Poll intervals ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, DEFAULT_INTERVAL),
        ({"Cache_Control": "public, max-age=7200"}, 2 * HOUR),
        ({"Cache_Control": "max-age=60"}, MIN_INTERVAL),
        ({"Cache_Control": "max-age=0"}, DEFAULT_INTERVAL),
        ({"Cache_Control": "max-age=99999999"}, MAX_INTERVAL),
    ],
)
async def test_a_feed_sets_its_polling_interval(
    world: World, headers: dict[str, str], expected: timedelta
) -> None:
    url = world.server.page("/a", rss("one"), **headers)
    await world.poller.add(url)
    await world.poll(url)
    assert world.wait(url) == expected


async def test_random_jitter_only_lengthens_intervals() -> None:
    waits = []
    async with worlds(seed=1) as world:
        url = world.server.page("/a", rss("one"))
        await world.poller.add(url)
        for _ in range(40):
            await world.poll(url)
            waits.append(world.wait(url))
    assert min(waits) >= DEFAULT_INTERVAL
    assert max(waits) <= DEFAULT_INTERVAL * (1 + JITTER)
    assert len(set(waits)) > 30


async def test_a_feed_with_a_hub_is_polled_seldom_while_the_lease_lasts(world: World) -> None:
    link = "<atom:link rel='hub' href='https://hub.example/'/>"
    url = world.server.page("/a", rss("one", extra=link))
    await world.poller.add(url)
    feed = await world.poll(url)
    assert (feed.hub, feed.topic, world.wait(url)) == (
        "https://hub.example/",
        url,
        DEFAULT_INTERVAL,
    )
    await world.poller.change(url, pushed_until=world.clock() + DAY)
    await world.poll(url)
    assert world.wait(url) == PUSHED_INTERVAL
    world.clock.now += 2 * DAY
    await world.poll(url)
    assert world.wait(url) == DEFAULT_INTERVAL


# --- Errors --------------------------------------------------------------------------------------


async def test_a_failing_feed_is_in_back_off_but_never_given_up(world: World) -> None:
    url = world.server.page("/a", code=500)
    await world.poller.add(url)
    await world.go(12 * DAY)
    times = world.server.times("/a")
    gaps = [later - before for before, later in pairwise(times)]
    doubled = [min(MIN_INTERVAL * 2**n, MAX_INTERVAL) for n in range(len(gaps))]
    assert gaps == doubled
    assert gaps.count(MAX_INTERVAL) > 5
    world.server.page("/a", rss("one"))
    await world.go(MAX_INTERVAL)
    assert world.titles() == ["one"]
    assert world.poller.feeds[url].errors == 0


@pytest.mark.parametrize("code", [429, 503])
@pytest.mark.parametrize(
    ("retry_after", "expected"),
    [
        ("7200", 2 * HOUR),
        ("5", MIN_INTERVAL),
        ("99999999", MAX_RETRY_AFTER),
        (format_datetime(START + 5 * HOUR, usegmt=True), 5 * HOUR),
        (format_datetime(START - 5 * HOUR, usegmt=True), MIN_INTERVAL),
        ("later", MIN_INTERVAL),
    ],
)
async def test_retry_after_is_obeyed(
    world: World, code: int, retry_after: str, expected: timedelta
) -> None:
    url = world.server.page("/a", code=code, Retry_After=retry_after)
    await world.poller.add(url)
    await world.poll(url)
    assert world.wait(url) == expected


async def test_another_kind_of_document_is_an_error_and_its_validators_are_not_stored(
    world: World,
) -> None:
    url = world.server.page("/a", "<!DOCTYPE html><html></html>", ETag='"1"')
    await world.poller.add(url)
    feed = await world.poll(url)
    assert (feed.errors, feed.validators) == (1, {})
    assert world.wait(url) == MIN_INTERVAL
    assert len(world.fetched[0].problems) == 1


async def test_a_slow_server_times_out_and_delays_no_other() -> None:
    async with worlds(seconds=0.3) as world:

        async def slow(_: web.Request) -> web.Response:
            await asyncio.sleep(3)
            return web.Response(text=rss("slow"))

        async def trickle(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            for _ in range(30):
                await response.write(b" ")
                await asyncio.sleep(0.1)
            return response

        world.server.pages |= {"/a": slow, "/b": trickle}
        world.server.page("/c", rss("fast"))
        for path, host in (("/a", "127.0.0.1"), ("/b", "127.0.0.1"), ("/c", "localhost")):
            await world.poller.add(world.server.url(path, host))
        await world.poll_due()
        assert world.titles() == ["fast"]
        assert world.fetched[0].feed.url.endswith("/c")
        for path in ("/a", "/b"):
            feed = world.poller.feeds[world.server.url(path)]
            assert feed.errors == 1
            assert feed.problem == "there was no whole answer within 0.3 seconds"


async def test_the_size_of_a_body_is_limited(world: World) -> None:
    bomb = gzip.compress(b" " * (200 * MAX_BODY_BYTES // 10), 1)
    urls = [
        world.server.page("/bomb", bomb, Content_Encoding="gzip"),
        world.server.page("/long", b" " * (MAX_BODY_BYTES + 1)),
        world.server.page("/not-gzip", b"no", Content_Encoding="gzip"),
    ]

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" " * 65536)

    world.server.pages["/endless"] = endless
    urls.append(world.server.url("/endless"))
    for url in urls:
        await world.poller.add(url)
        feed = await world.poll(url)
        assert feed.errors == 1, url
        large = f"it has more than {MAX_BODY_BYTES:,} bytes"
        assert feed.problem is not None
        assert feed.problem == large or "not-gzip" in url


async def test_a_host_gets_two_requests_at_once(world: World) -> None:
    async def answer(_: web.Request) -> web.Response:
        await asyncio.sleep(0.01)
        return web.Response(text=rss("one"))

    for number in range(20):
        world.server.pages[f"/{number}"] = answer
        await world.poller.add(world.server.url(f"/{number}"))
    await world.poll_due()
    assert len(world.server.log) == 20
    assert world.server.receiver.most_at_once == MAX_REQUESTS_PER_HOST


# --- Redirects -----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [301, 308])
async def test_a_permanent_redirect_to_a_feed_is_stored(code: int, world: World) -> None:
    url = world.server.page("/a", code=code, Location="/b")
    world.server.page("/b", "<!DOCTYPE html><html></html>")
    await world.poller.add(url)
    assert (await world.poll(url)).address == url
    world.server.page("/b", rss("one"), ETag='"1"')
    assert (await world.poll(url)).address == world.server.url("/b")
    for _ in range(2):
        await world.poll(url)
    assert len(world.server.times("/a")) == 2
    sent = [r.headers.get("If-None-Match") for r in world.server.log if r.path == "/b"]
    assert sent == [None, None, None, '"1"']
    assert world.titles() == ["one"]


@pytest.mark.parametrize("code", [302, 303, 307])
async def test_a_temporary_redirect_is_not_stored(code: int, world: World) -> None:
    url = world.server.page("/a", code=code, Location="/b")
    # It is permanent, but follows a temporary one.
    world.server.page("/b", code=301, Location="/c")
    world.server.page("/c", rss("one"))
    await world.poller.add(url)
    for _ in range(3):
        assert (await world.poll(url)).address == url
    assert world.titles() == ["one"]


@pytest.mark.parametrize(
    ("location", "problem"),
    [
        ("/a", "it is redirected more than 5 times"),
        ("/b", "it is redirected more than 5 times"),
        ("file:///etc/passwd", "the URL cannot be used"),
        ("http://[", "its redirect leads to no URL"),
        (None, "the server answers 302 Found"),
    ],
)
async def test_a_redirect_that_leads_nowhere_is_an_error(
    location: str | None, problem: str, world: World
) -> None:
    headers = {} if location is None else {"Location": location}
    url = world.server.page("/a", code=302, **headers)
    world.server.page("/b", code=302, Location="/a")
    await world.poller.add(url)
    feed = await world.poll(url)
    assert (feed.errors, feed.problem) == (1, problem)
    assert len(world.server.log) <= MAX_REDIRECTS + 1


async def test_the_number_of_redirects_is_limited(world: World) -> None:
    for number in range(20):
        world.server.page(f"/{number}", code=302, Location=f"/{number + 1}")
    url = world.server.url("/0")
    await world.poller.add(url)
    feed = await world.poll(url)
    assert feed.problem == f"it is redirected more than {MAX_REDIRECTS} times"
    assert len(world.server.log) == MAX_REDIRECTS + 1


async def test_the_refusal_of_an_address_names_the_remedy(tmp_path: Path) -> None:
    async with receivers() as [site], HttpClient() as http:
        problems: list[Problem] = []

        async def take(_: Feed, __: Items, found: Sequence[Problem]) -> None:
            problems.extend(found)

        with SqliteFeedStore(None) as store:
            poller = Poller(http, store, take)
            await poller.add(site.url("/a"))
            await poller.poll(site.url("/a"))
        [problem] = problems
        assert str(problem) == (
            f"{site.url('/a')}: nothing is sent to 127.0.0.1, which is not public, without "
            "--allow 127.0.0.0/8. Name a public address, or use this option (`allow` in "
            "graphmatch.toml)."
        )
        assert site.got == []


# --- Duplicates ----------------------------------------------------------------------------------


def note(_: Problem) -> None:
    """Ignore a problem."""


def read(feed: str) -> list[FeedItem]:
    return [
        FeedItem.from_publication(item)
        for item in read_feed(feed.encode(), "a.rss", on_problem=note)
    ]


def keys(*feeds: str) -> list[tuple[bytes, bytes]]:
    return [(item.guid, item.version) for feed in feeds for item in read(feed)]


def test_only_the_content_of_an_item_makes_a_version() -> None:
    plain = rss("one")
    dated = plain.replace("</item>", "<pubDate>Mon, 5 Jan 2026 00:00:00 GMT</pubDate></item>")
    renamed = plain.replace("<title>T</title>", "<title>U</title>")
    moved = plain.replace("https://e.org/", "https://f.org/")
    assert len(set(keys(plain, dated, renamed))) == 1
    assert len({version for _, version in keys(plain, moved)}) == 1
    assert len(set(keys(plain, rss("two", guids=["one"])))) == 2
    assert len({guid for guid, _ in keys(plain, rss("two", guids=["one"]))}) == 1


def test_items_with_one_guid_keep_their_keys_when_the_oldest_leaves() -> None:
    both = keys(rss("new", "old", guids=["same", "same"]))
    assert keys(rss("new", guids=["same"])) == both[:1]


def test_names_of_blank_nodes_do_not_change_a_version() -> None:
    enclosure = "<enclosure url='not an iri:' type='a'/></item>"
    feed = rss("one").replace("</item>", enclosure)
    first, second = ([i.version for i in read(feed)] for _ in range(2))
    assert first == second


async def test_each_version_of_an_item_arrives_once_across_restarts(tmp_path: Path) -> None:
    clock = FakeClock(START)
    states = [
        rss("one"),
        rss("two", "one"),
        rss("two, corrected", "one", guids=["two", "one"]),
        rss("two", "one"),
        rss("three", "two", "one"),
    ]
    found: list[str | None] = []
    for state in states:
        async with worlds(tmp_path / "state.db", clock=clock) as world:
            world.server.page("/a", state)
            known = list(world.poller.feeds)
            url = known[0] if known else "http://127.0.0.1:1/a"
            await world.poller.add(url)
            await world.poller.change(url, moved=world.server.url("/a"))
            await world.poll(url)
            clock.now += DAY
            found.extend(world.titles())
    assert found == ["one", "two", "two, corrected", "three"]


async def test_a_failed_hand_over_loses_nothing(world: World) -> None:
    url = world.server.page("/a", rss("one"), ETag='"1"')
    await world.poller.add(url)
    real = world.take

    async def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    world.take = fail  # type: ignore[method-assign]
    with pytest.raises(OSError, match="disk"):
        await world.poll(url)
    assert world.poller.feeds[url].validators == {}
    world.take = real  # type: ignore[method-assign]
    await world.poll(url)
    assert world.titles() == ["one"]


async def test_a_push_and_a_fetch_at_the_same_time_bring_an_item_once(world: World) -> None:
    url = world.server.page("/a", rss("two", "one"))
    await world.poller.add(url)
    pushed = [world.poller.pushed(url, rss("two").encode()) for _ in range(3)]
    await asyncio.gather(world.poller.poll(url), *pushed)
    assert Counter(world.titles()) == {"one": 1, "two": 1}
    await world.poller.pushed(url, b"no feed")
    assert world.poller.feeds[url].push_problem is not None
    await world.poller.pushed(url, rss("one").encode())
    assert world.poller.feeds[url].push_problem is None


@pytest.mark.parametrize("guids", [None, ["same"] * 3])
async def test_items_in_another_order_are_not_new(world: World, guids: list[str] | None) -> None:
    names = ["three", "two", "one"]
    url = world.server.page("/a", rss(*names, guids=guids))
    await world.poller.add(url)
    await world.poll(url)
    for order in (names[::-1], ["two", "three", "one"]):
        world.server.page("/a", rss(*order, guids=guids))
        world.clock.now += HOUR
        await world.poll(url)
    assert Counter(world.titles()) == dict.fromkeys(names, 1)


async def test_old_versions_are_forgotten_only_after_the_whole_feed_was_read(
    tmp_path: Path, world: World
) -> None:
    url = world.server.page("/a", rss("two", "one"))
    await world.poller.add(url)
    await world.poll(url)
    world.clock.now += (ITEM_DAYS + 1) * DAY
    await world.poller.pushed(url, rss("three").encode())
    world.server.page("/a", rss("three", "two", "one"))
    await world.poll(url)
    world.clock.now += (ITEM_DAYS + 1) * DAY
    world.server.page("/a", rss("four", "three"))
    await world.poll(url)
    assert world.titles() == ["two", "one", "three", "four"]
    items = read(rss("four", "three", "two", "one"))
    unknown = await world.store.unknown(url, items)
    assert [item.publication.title for item in unknown] == ["two", "one"]


def test_a_locked_or_foreign_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_store, "BUSY_SECONDS", 0.05)
    path = tmp_path / "state.db"
    with (
        SqliteFeedStore(path),
        pytest.raises(SqliteFileError, match="another process uses the file"),
    ):
        SqliteFeedStore(path)
    other = tmp_path / "notes.txt"
    other.write_text("no database, but long enough to be taken for one" * 50)
    with pytest.raises(SqliteFileError, match="as a database: file is not a database"):
        SqliteFeedStore(other)
    with closing(sqlite3.connect(tmp_path / "other.db")) as db:
        db.execute("CREATE TABLE mine (a)")
    with pytest.raises(SqliteFileError, match="a database of another program"):
        SqliteFeedStore(tmp_path / "other.db")


def test_the_state_of_a_feed_is_stored_completely() -> None:
    feed = Feed(
        "https://e.org/",
        moved="https://f.org/",
        validators={"If-None-Match": 'W/"ä"'},
        next_poll_at=START,
        pushed_until=START,
        read_at=START,
        is_pending=True,
        errors=3,
    )
    assert Feed.from_json(json.loads(feed.to_json())) == feed


# --- The loop ------------------------------------------------------------------------------------


async def test_the_poller_runs_until_it_is_stopped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_poller, "ROUND_SECONDS", 0.01)
    stop = asyncio.Event()
    world.server.page("/a", rss("one"))
    running = asyncio.create_task(world.poller.run(stop))
    await asyncio.sleep(0)  # Let it wait.
    url = world.server.url("/a")
    await world.poller.add(url)
    await until(lambda: len(world.fetched) == 1)
    assert world.wait(url) == DEFAULT_INTERVAL
    await world.poller.change(url, next_poll_at=None)
    await until(lambda: len(world.fetched) == 2)
    world.clock.now += DEFAULT_INTERVAL
    await world.poller.add(world.server.page("/b", rss("two")))
    await until(lambda: len(world.fetched) == 4)
    stop.set()
    await asyncio.wait_for(running, 2)
    assert world.titles() == ["one", "two"]


async def test_a_slow_fetch_delays_no_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_poller, "ROUND_SECONDS", 0.01)
    stop, asked, answered = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        asked.set()
        await answered.wait()
        return web.Response(text=rss("slow"))

    world.server.pages["/slow"] = slow
    await world.poller.add(world.server.url("/slow"))
    running = asyncio.create_task(world.poller.run(stop))
    await asked.wait()
    await world.poller.add(world.server.page("/fast", rss("fast")))
    await until(lambda: world.titles() == ["fast"])
    answered.set()
    await until(lambda: world.titles() == ["fast", "slow"])
    assert len(world.server.times("/slow")) == 1
    stop.set()
    await running


async def test_a_hand_over_at_the_end_is_finished(world: World) -> None:
    stop, begun = asyncio.Event(), asyncio.Event()
    url = world.server.page("/a", rss("one"))

    async def hang(_: web.Request) -> web.Response:
        await asyncio.sleep(4)
        return web.Response(text=rss("never"))

    async def take(*result: Any) -> None:
        begun.set()
        await asyncio.sleep(0.1)
        world.fetched.append(FetchResult(*result))

    world.take = take  # type: ignore[method-assign]
    world.server.pages["/b"] = hang
    await world.poller.add(url)
    await world.poller.add(world.server.url("/b"))
    running = asyncio.create_task(world.poller.run(stop))
    await begun.wait()
    stop.set()
    await asyncio.wait_for(running, 1)
    assert world.titles() == ["one"]
    assert (await world.store.unknown(url, read(rss("one")))) == []
    stored = {feed.url: feed for feed in await world.store.load()}
    assert stored[world.server.url("/b")].next_poll_at is None


# --- A simulated day -----------------------------------------------------------------------------


class Site:
    """A feed of the simulated day: the server's behaviour, and its items."""

    def __init__(self, number: int, kind: str, chance: random.Random) -> None:
        self.path, self.kind, self.chance = f"/{number}", kind, chance
        self.published: list[str] = []
        self.revision = 0
        self.requests = 0

    def body(self, clock: FakeClock) -> str:
        """Return the feed, with an item for every three hours."""
        hours = int((clock() - START) / HOUR)
        self.published = [f"{self.path} {n}" for n in range(hours // 3 + 1)]
        return rss(*reversed(self.published))

    async def answer(self, request: web.Request, clock: FakeClock) -> web.StreamResponse:
        self.requests += 1
        body = self.body(clock)
        etag = f'"{len(self.published)}"'
        match self.kind:
            case "conditional":
                if request.headers.get("If-None-Match") == etag:
                    return web.Response(status=304)
                return web.Response(text=body, headers={"ETag": etag})
            case "cached":
                return web.Response(text=body, headers={"Cache-Control": "max-age=10800"})
            case "limited":
                if self.requests % 3 == 2:
                    return web.Response(status=503, headers={"Retry-After": "5400"})
            case "failing":
                if self.requests % 2:
                    return web.Response(status=self.chance.choice((500, 502, 404)))
            case "slow":
                if self.requests % 12 == 1:
                    await asyncio.sleep(3)
            case "cut":
                if self.requests % 2:
                    return web.Response(text=body[: -len(body) // 3], headers={"ETag": etag})
            case "moved":
                if not request.path.endswith("/new"):
                    return web.Response(status=301, headers={"Location": f"{self.path}/new"})
            case "gone":
                return web.Response(status=410)
            case "closed":
                assert request.transport is not None
                request.transport.abort()
        return web.Response(text=body)


GRAIN = 5 * MINUTE
KINDS = (
    ["plain"] * 2
    + ["conditional"] * 3
    + ["cached"] * 10
    + ["limited", "failing", "cut", "moved", "gone"]
)


@pytest.mark.parametrize(("count", "slow"), [(39, 0), pytest.param(196, 3, marks=pytest.mark.long)])
async def test_each_item_arrives_once_in_a_day_of_many_feeds(
    tmp_path: Path, count: int, slow: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each item arrives once although the poller restarts; the log obeys each rule."""
    monkeypatch.setattr(feed_poller, "MAX_REQUESTS_PER_HOST", 20)
    clock, chance = FakeClock(START), random.Random(1)
    kinds = [*(KINDS[number % len(KINDS)] for number in range(count)), *["slow"] * slow, "closed"]
    sites = [Site(number, kind, chance) for number, kind in enumerate(kinds)]
    found: Counter[str] = Counter()
    log: list[Got] = []
    feeds: dict[str, Feed] = {}

    async def part(world: World, http: HttpClient) -> None:
        chance = random.Random(2).random
        world.poller = Poller(http, world.store, world.take, clock=clock, random=chance)
        await world.poller.start()
        for site in sites:

            async def answer(request: web.Request, site: Site = site) -> web.StreamResponse:
                return await site.answer(request, clock)

            world.server.pages[site.path] = world.server.pages[f"{site.path}/new"] = answer
            url = f"http://feeds.example{site.path}"
            await world.poller.add(url)
        await world.go(6 * HOUR, GRAIN)
        found.update(title or "" for title in world.titles())
        log.extend(world.server.log)
        feeds.update(world.poller.feeds)

    for _ in range(4):
        async with worlds(tmp_path / "state.db", clock=clock) as world:
            resolver = Resolver(world.server.receiver.port)
            # It is real time, so allow for a busy machine.
            async with HttpClient(LOOPBACK, total_seconds=1.5, resolver=resolver) as http:
                await part(world, http)

    by_path = defaultdict[str, list[Got]](list)
    for request in log:
        by_path[request.path.removesuffix("/new")].append(request)
    expected = {title for site in sites if site.kind not in ("gone", "closed")
                for title in site.published}  # fmt: skip
    assert max(found.values()) == 1
    assert set(found) <= expected
    # Items published after the last poll are missing.
    assert len(expected) - len(found) <= len(sites)
    assert len(found) > 5 * len(sites)

    for site in sites:
        requests = sorted(by_path[site.path], key=lambda request: request.at)
        if site.kind == "closed":  # aiohttp retries at once on a reused connection.
            requests = list({request.at: request for request in requests}.values())
        first = [request for request in requests if not request.path.endswith("/new")]
        gaps = [(a, b.at - a.at) for a, b in pairwise(first)]
        most = 24 * HOUR / MIN_INTERVAL
        assert len(requests) <= most
        assert all(gap >= MIN_INTERVAL for _, gap in gaps)
        match site.kind:
            case "plain" | "conditional":
                assert all(
                    DEFAULT_INTERVAL <= gap <= DEFAULT_INTERVAL * (1 + JITTER) + GRAIN
                    for _, gap in gaps
                )
                assert len(first) >= 21
            case "cached":
                assert all(gap >= 3 * HOUR for _, gap in gaps)
            case "limited":
                assert any(request.status == 503 for request in requests)
                assert all(gap >= 1.5 * HOUR for a, gap in gaps if a.status == 503)
            case "moved":
                assert len(first) == 1
                assert len(requests) > 15
            case "gone" | "closed":
                assert 5 <= len(requests) <= 8
        if site.kind == "conditional":
            assert all("If-None-Match" in request.headers for request in requests[1:])
            assert Counter(request.status for request in requests)[304] >= 10


class Resolver(aiohttp.abc.AbstractResolver):
    """A resolver that gives the loopback server for every name."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> Any:
        place = {"host": "127.0.0.1", "port": self.port, "family": 2}
        return [{"hostname": host, "proto": 0, "flags": 0, **place}]

    async def close(self) -> None:
        pass


# --- Lists ---------------------------------------------------------------------------------------


def test_a_list_of_addresses_is_read(tmp_path: Path) -> None:
    path = tmp_path / "feeds.txt"
    path.write_text("\ufeff# mine\nhttps://e.org/a\n\nftp://e.org/\nhttps://e.org/a\nhttp://:80/\n")
    problems: list[Problem] = []
    assert read_feed_list(str(path), problems.append) == [Feed("https://e.org/a")]
    assert [p.where.line for p in problems] == [4, 6]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_opml_is_read(encoding: str) -> None:
    text = f"""<?xml version="1.0" encoding="{encoding}"?>
    <opml version="2.0"><head><title>Ä</title></head><body>
    <outline text="Küche"><outline text="Brühe &amp; Brot" type="rss" xmlUrl="https://e.org/ä?a=1&amp;b=2"/>
    <outline text="bad" type="rss" xmlUrl="javascript:alert(1)"/></outline>
    <outline text="more" type="include" url="https://e.org/more.opml"/>
    <outline text="again" xmlUrl="https://e.org/b"/><outline xmlUrl="https://e.org/b"/>
    </body></opml>"""
    problems: list[Problem] = []
    found = parse_feed_list(text.encode(encoding), "feeds.opml", problems.append)
    assert found == [
        Feed("https://e.org/ä?a=1&b=2", "Brühe & Brot"),
        Feed("https://e.org/b", "again"),
    ]
    told = {(p.where.item, p.severity.name) for p in problems}
    assert told == {(None, "WARNING"), ("bad", "REFUSED")}


def test_a_broken_list_is_read_up_to_the_error() -> None:
    text = b"<opml><body><outline text='a & b' xmlUrl='https://e.org/a'/><outline xmlUrl="
    problems: list[Problem] = []
    found = parse_feed_list(text, "feeds.opml", problems.append)
    assert [feed.url for feed in found] == ["https://e.org/a"]
    assert [p.severity for p in problems] == [Severity.WARNING]


@pytest.mark.parametrize(
    "text",
    [
        b"<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><opml><outline xmlUrl='&e;'/>",
        b"<!DOCTYPE a [<!ENTITY a 'xxxxxxxxxxxxxxxxxxxx'>"
        + b"".join(b"<!ENTITY a%d '%s'>" % (n, b"&a%d;" % (n - 1) * 20) for n in range(1, 9))
        + b"]><opml>&a8;</opml>",
        b"<outline>" * 100_000,
        b"<rss><channel/></rss>",
        b"# nothing",
        b"",
    ],
    ids=["external", "bomb", "deep", "feed", "comment", "empty"],
)
def test_a_hostile_or_empty_list_is_refused(text: bytes) -> None:
    with pytest.raises(InputError):
        parse_feed_list(text, "feeds.opml", lambda _: None)
