"""Followed feeds: each version of an item is published once, despite failures."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine as SqlEngine
from sqlalchemy import select
from sqlalchemy.event import listen, remove

from graphmatch import Engine
from graphmatch.broker.db.store import Store
from graphmatch.broker.db.tables import publications
from graphmatch.broker.feeds.feed_store import BrokerFeedStore, Feed, FeedItem
from graphmatch.broker.service.broker import Broker
from semantic.feeds import read_feed

URL = "https://example.org/feed"
ITEM = "<item><guid>{}</guid><title>{}</title></item>"


def items(**titles: str) -> list[FeedItem]:
    """Return feed items by guid."""
    inside = "".join(ITEM.format(guid, title) for guid, title in titles.items())
    feed = f"<rss><channel><title>A</title>{inside}</channel></rss>"
    return [FeedItem.of(one) for one in read_feed(feed.encode(), URL)]


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
