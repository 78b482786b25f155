"""The store of feeds: each version of an item is published once, despite failures."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from sqlalchemy import Engine as SqlEngine
from sqlalchemy import select
from sqlalchemy.event import listen, remove

from graphmatch import Engine
from graphmatch.broker.db.store import Store
from graphmatch.broker.db.tables import feed_items, feeds, matches, publications
from graphmatch.broker.feeds import feed_poller
from graphmatch.broker.feeds.feed_poller import MIN_INTERVAL, Poller
from graphmatch.broker.feeds.feed_store import BrokerFeedStore, Feed, FeedItem, SqliteFeedStore
from graphmatch.broker.models.subscription_settings import SubscriptionSettings
from graphmatch.broker.outbox.safe_http import HttpClient
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import MatchWorker
from semantic.feeds import read_feed
from tests.graphmatch.broker.harness import LOOPBACK, FakeClock, receivers

URL = "https://example.org/feed"
ITEM = "<item><guid>{}</guid><title>{}</title></item>"


def items(**titles: str) -> list[FeedItem]:
    """Return feed items by guid."""
    inside = "".join(ITEM.format(guid, title) for guid, title in titles.items())
    feed = f"<rss><channel><title>A</title>{inside}</channel></rss>"
    return [FeedItem.from_publication(one) for one in read_feed(feed.encode(), URL)]


async def save(
    followed: BrokerFeedStore, feed: Feed, items: list[FeedItem], *, is_whole: bool = False
) -> None:
    """Save items as the poller does."""
    new = await followed.unknown(feed.url, items)
    await followed.save(feed, items, new, is_whole=is_whole)


def titles(store: Store) -> list[str]:
    chosen = select(publications.c.title).order_by(publications.c.seq)
    return [str(one) for one in store.read_now(lambda db: db.scalars(chosen).all())]


async def test_each_version_of_an_item_is_published_once(store: Store) -> None:
    """Versions are remembered after a restart, even if an item reverts to an older one."""
    broker = Broker(store, Engine())

    async def come(**titles: str) -> None:
        followed = BrokerFeedStore(broker)
        for feed in await followed.load() or [Feed(URL)]:
            await save(followed, feed, items(**titles), is_whole=True)

    await come(a="one", b="two")
    await come(a="one", b="two")
    assert titles(store) == ["one", "two"]
    await come(b="two, mended", c="three")
    assert await BrokerFeedStore(broker).unknown(URL, items(c="four") * 2) == items(c="four")
    assert titles(store) == ["one", "two", "two, mended", "three"]
    await come(a="one", b="two", c="three")
    assert titles(store) == ["one", "two", "two, mended", "three"]


async def test_an_item_is_seen_only_if_it_is_published(store: Store) -> None:
    """If the transaction fails, an item is neither seen nor published, and returns."""
    broker = Broker(store, Engine())
    followed = BrokerFeedStore(broker)
    await save(followed, Feed(URL), items(a="one"))

    def fails(*call: object) -> None:
        if str(call[2]).startswith("INSERT INTO feed_items"):
            raise ValueError("no luck")

    listen(SqlEngine, "before_cursor_execute", fails)
    try:
        with pytest.raises(ValueError, match="no luck"):
            await save(followed, Feed(URL), items(a="one", b="two"))
    finally:
        remove(SqlEngine, "before_cursor_execute", fails)
    assert titles(store) == ["one"]
    assert await followed.unknown(URL, items(a="one", b="two")) == items(b="two")
    await save(followed, Feed(URL), items(a="one", b="two"))
    assert titles(store) == ["one", "two"]


async def test_items_of_a_feed_that_is_followed_again_are_new(store: Store) -> None:
    """The feed's publications stay; if it is followed again, its items are new."""
    followed = BrokerFeedStore(Broker(store, Engine()))
    await save(followed, Feed(URL, title="A"), items(a="one"))
    assert [one.title for one in await followed.load()] == ["A"]
    await followed.forget(URL)
    assert await followed.load() == []
    assert titles(store) == ["one"]
    await save(followed, Feed(URL), items(a="one"))
    assert titles(store) == ["one", "one"]


async def test_three_addresses_of_one_feed_give_one_match_of_each_item(store: Store) -> None:
    """A cutoff leaves out older items."""
    item = (
        "<item><guid>{0}</guid><title>{0}</title><pubDate>{1} Jan 2026 00:00 GMT</pubDate></item>"
    )
    items = "".join(item.format(f"https://e.org/{day}", day) for day in (1, 2, 3))

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=f"<rss><channel><title>A</title>{items}</channel></rss>")

    async with receivers() as [site], HttpClient(LOOPBACK) as http:
        site.answer = answer
        broker = Broker(store, Engine())
        query = {"query": "SELECT ?item { ?item a rss:item }"}
        await broker.subscriptions.subscribe(query, SubscriptionSettings())
        second = datetime(2026, 1, 2, tzinfo=UTC)
        poller = Poller(http, BrokerFeedStore(broker, lambda _: second))
        urls = {site.url(path) for path in ("/rss", "/rss?again", "/feed")}
        for url in urls:
            await poller.add(url)
        await poller.run(asyncio.Event(), once=True)
    matcher = MatchWorker(broker)
    matcher.load()
    while await asyncio.to_thread(matcher.step):
        pass
    found = store.read_now(lambda db: db.execute(select(matches.c.sources)).scalars().all())
    assert [set(sources.split("\n")) for sources in found] == [urls, urls]


def test_the_file_has_the_tables_of_the_broker(tmp_path: Path) -> None:
    with SqliteFeedStore(tmp_path / "feeds.db"):
        pass
    with closing(sqlite3.connect(tmp_path / "feeds.db")) as db:
        for table in (feeds, feed_items):
            columns = {row[1] for row in db.execute(f"PRAGMA table_info({table.name})")}
            assert columns == set(table.columns.keys()) - {"owner"}


async def test_a_feed_that_cannot_be_processed_is_retried_with_growing_delays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other feeds and later versions of the feed are published."""
    clock, open_feed = FakeClock(), feed_poller.open_feed

    def broken(data: bytes, source: str, **options: Any) -> Any:
        if b"poison" in data:
            raise ValueError("no luck")
        return open_feed(data, source, **options)

    monkeypatch.setattr(feed_poller, "open_feed", broken)
    contents = {"/bad": "poison", "/good": "one"}

    async def answer(request: web.Request) -> web.Response:
        item = ITEM.format("1", contents[request.path])
        return web.Response(text=f"<rss><channel><title>A</title>{item}</channel></rss>")

    async with receivers() as [site], HttpClient(LOOPBACK) as http:
        site.answer = answer
        broker = Broker(store, Engine(), clock)
        poller = Poller(
            http,
            BrokerFeedStore(broker),
            clock=clock,
            random=lambda: 0.0,
            supervisor=broker.supervisor,
        )
        bad = site.url("/bad")
        for path in contents:
            await poller.add(site.url(path))
        for failures in (1, 2, 3):
            await poller.run(asyncio.Event(), once=True)
            feed = poller.feeds[bad]
            assert (feed.errors, feed.problem) == (failures, "it failed: ValueError: no luck")
            assert feed.next_poll_at == clock() + MIN_INTERVAL * 2 ** (failures - 1)
            clock.now = feed.next_poll_at
        assert titles(store) == ["one"]
        contents["/bad"] = "fixed"
        await poller.run(asyncio.Event(), once=True)
        assert titles(store) == ["one", "fixed"]
        assert poller.feeds[bad].errors == 0
