"""Feeds that a broker follows: their states, and what was seen in them, are in its store.

An item that is new goes to the log in the transaction that notes that it was seen: killed at any
moment, each is published once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, insert, select, update

from graphmatch.broker.db.tables import feed_items, feeds
from graphmatch.broker.feeds.feed_store import KEPT_DAYS, Feed, FeedItem, without
from graphmatch.broker.models.times import millis
from graphmatch.broker.service.broker import Broker

if TYPE_CHECKING:
    from sqlalchemy import Connection

_FAR = 2**62
"""When a feed is due that never is."""


class BrokerFeeds:
    """A `graphmatch.broker.feeds.feed_store.FeedStore` that publishes what is new.

    Parameters
    ----------
    broker
        Takes the items in.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def load(self) -> Sequence[Feed]:
        """Return all feeds."""
        chosen = select(feeds.c.state).order_by(feeds.c.id)
        rows = await self._broker.store.read(lambda db: db.scalars(chosen).all())
        return [Feed.from_json(state) for state in rows]

    async def unknown(self, url: str, items: Sequence[FeedItem]) -> Sequence[FeedItem]:
        """Return the items that have not been published in this version."""
        mine = select(feed_items.c.item, feed_items.c.version)
        chosen = mine.join(feeds, feeds.c.id == feed_items.c.feed).where(feeds.c.url == url)
        rows = await self._broker.store.read(lambda db: db.execute(chosen).all())
        known = {(bytes(item), bytes(version)) for item, version in rows}
        return without(known, items)

    async def save(
        self,
        feed: Feed,
        items: Sequence[FeedItem] = (),
        new: Sequence[FeedItem] = (),
        *,
        is_whole: bool = False,
    ) -> None:
        """Keep a feed's state and publish what is new of the items that are in it now."""
        fresh = {(one.guid, one.version) for one in new}
        now = self._broker.clock()

        def also(db: Connection) -> None:
            number = _number(db, feed, millis(now))
            mine = feed_items.c.feed == number
            seen = {(one.guid, one.version) for one in items} - fresh
            if seen:
                one = (feed_items.c.item == bindparam("a")) & (
                    feed_items.c.version == bindparam("b")
                )
                again = update(feed_items).where(mine, one).values(at=millis(now))
                db.execute(again, [{"a": guid, "b": version} for guid, version in seen])
            if fresh:
                row = {"feed": number, "at": millis(now)}
                rows = [{**row, "item": guid, "version": version} for guid, version in fresh]
                db.execute(insert(feed_items), rows)
            if is_whole:
                old = feed_items.c.at < millis(now - timedelta(days=KEPT_DAYS))
                db.execute(delete(feed_items).where(mine, old))

        found = [one.publication for one in new]
        await self._broker.publications.take_in(found, source=feed.url, also=also, task="feeds")

    async def forget(self, url: str) -> None:
        """Remove a feed and what was seen in it; what was published stays."""
        chosen = select(feeds.c.id).where(feeds.c.url == url)

        def work(db: Connection) -> None:
            number = db.scalar(chosen)
            if number is not None:
                db.execute(delete(feed_items).where(feed_items.c.feed == number))
                db.execute(delete(feeds).where(feeds.c.id == number))

        await self._broker.store.write(work)


def _number(db: Connection, feed: Feed, now: int) -> int:
    """Write the state of a feed, and return its number."""
    values: dict[str, Any] = {"state": feed.as_json()}
    values["next_poll_at"] = _FAR if feed.next_poll_at is None else millis(feed.next_poll_at)
    same = update(feeds).where(feeds.c.url == feed.url).values(**values)
    number = db.scalar(same.returning(feeds.c.id))
    if number is None:
        made = insert(feeds).values(url=feed.url, created_at=now, **values)
        number = db.scalar(made.returning(feeds.c.id))
    assert number is not None
    return int(number)
