"""The state of feeds, the keys of their items, and the store of both.

The broker's database and the file of ``graphmatch watch`` have the same tables, ``feeds`` and
``feed_items``, so one class reads and writes both. Importing SQLAlchemy would make ``graphmatch
watch`` start half a second later, so the statements are text.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from pydantic import TypeAdapter
from pyoxigraph import BlankNode

from graphmatch.broker.models.times import millis
from semantic.clock import Clock, utc_now
from semantic.publication import Publication
from semantic.sqlite_file import open_sqlite, sqlite_errors
from semantic.vocabulary import DC, DCTERMS, RSS, TYPE

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from graphmatch.broker.service.broker import Broker

ITEM_DAYS = 90
"""Days for which the version of an item is remembered after the feed last contained it."""
BUSY_SECONDS = 1.0
"""Time limit for opening a file that another process uses, in seconds."""
_DATES = frozenset({DC["date"], DCTERMS["modified"]})
_APPLICATION_ID, _VERSION = 0x676D6664, 3
_PRAGMAS = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"
_TABLES = """
CREATE TABLE IF NOT EXISTS feeds (id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE,
  state JSON NOT NULL, created_at BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS feed_items (feed INTEGER NOT NULL, item BLOB NOT NULL,
  version BLOB NOT NULL, at BIGINT NOT NULL, PRIMARY KEY (feed, item, version))
"""
_SEEN = "SELECT item, version FROM feed_items WHERE feed = (SELECT id FROM feeds WHERE url = :url)"
_SAVE_FEED = (
    "INSERT INTO feeds (url, state, created_at) VALUES (:url, :state, :at)"
    " ON CONFLICT (url) DO UPDATE SET state = excluded.state"
)
_SAVE_ITEM = (
    "INSERT INTO feed_items (feed, item, version, at)"
    " SELECT id, :item, :version, :at FROM feeds WHERE url = :url"
    " ON CONFLICT (feed, item, version) DO UPDATE SET at = excluded.at"
)
_FORGET_ITEMS = "DELETE FROM feed_items WHERE feed = (SELECT id FROM feeds WHERE url = :url)"
_FORGET_OLD_ITEMS = f"{_FORGET_ITEMS} AND at < :at"
_FORGET_FEED = "DELETE FROM feeds WHERE url = :url"
Cutoff: TypeAlias = Callable[[datetime], datetime]
"""A function that returns the date of the oldest accepted item at a time."""
_Row: TypeAlias = Mapping[str, Any]
_Statement: TypeAlias = tuple[str, Sequence[_Row]]
"""A statement, and the rows of values that it is executed with."""


@dataclass(frozen=True, slots=True)
class Feed:
    """The state of one feed.

    Parameters
    ----------
    url
        The address under which the feed was added. It never changes.
    title
        The title in the feed, otherwise that in the imported list.
    moved
        The present address, if a permanent redirect led to another one.
    validators
        The headers of conditional requests.
    digest
        The digest of the last body that was read completely, in hexadecimal.
    next_poll_at
        The time of the next fetch; ``None`` means now.
    errors, problem
        The number of failed fetches in a row, and the last problem.
    read_at
        The time of the last fetch without an error.
    hub, topic
        The WebSub hub of the feed, and its topic there.
    callback, secret
        The address that the hub calls, and the key of its signatures. The hub was never asked if
        they are empty.
    hub_due_at, is_pending
        The time at which the hub is asked again, and whether it has not verified the last request.
    pushed_until, push_problem
        The end of the lease at the hub, and the last problem with the hub.
    """

    url: str
    title: str = ""
    moved: str = ""
    validators: dict[str, str] = field(default_factory=dict)
    digest: str = ""
    next_poll_at: datetime | None = None
    errors: int = 0
    problem: str | None = None
    read_at: datetime | None = None
    hub: str = ""
    topic: str = ""
    callback: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    hub_due_at: datetime | None = None
    is_pending: bool = False
    pushed_until: datetime | None = None
    push_problem: str | None = None

    @property
    def id(self) -> str:
        """The id in the API."""
        return hashlib.sha256(self.url.encode("utf-8", "replace")).hexdigest()[:16]

    @property
    def address(self) -> str:
        """The address that is fetched."""
        return self.moved or self.url

    def to_json(self) -> str:
        """Return the values that are not empty, as JSON.

        Examples
        --------
        >>> from datetime import UTC
        >>> feed = Feed("https://e.org/", next_poll_at=datetime(2026, 1, 2, tzinfo=UTC))
        >>> Feed.from_json(json.loads(feed.to_json())) == feed
        True
        """
        return _STATE.dump_json(self, exclude_defaults=True).decode()

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Feed:
        """Return the feed with the values of an object of `to_json`."""
        return _STATE.validate_python(state)


_STATE = TypeAdapter(Feed)


@dataclass(frozen=True, slots=True)
class FeedItem:
    """An item of a feed, with the digests of its guid and of its content."""

    publication: Publication
    guid: bytes
    version: bytes

    @classmethod
    def from_publication(cls, publication: Publication) -> FeedItem:
        """Return an item with its digests.

        Examples
        --------
        >>> from semantic.feeds import read_feed
        >>> feed = b"<rss><channel><title>%b</title><item><guid>7</guid></item></channel></rss>"
        >>> items = [*read_feed(feed % b"A", "a.rss"), *read_feed(feed % b"B", "a.rss")]
        >>> one, other = map(FeedItem.from_publication, items)
        >>> (one.guid, one.version) == (other.guid, other.version)
        True
        """
        items = {s for s, p, o in publication.triples if p == TYPE and o == RSS["item"]}
        channels = {o for s, p, o in publication.triples if p == DCTERMS["isPartOf"] and s in items}

        def text(term: object) -> str:
            if term in items:
                return "_:item"
            return "_:" if isinstance(term, BlankNode) else str(term)

        lines = sorted(
            f"{text(s)} {p} {text(o)}"
            for s, p, o in publication.triples
            if s not in channels and o not in channels and p not in _DATES
        )
        guid = publication.guid or publication.link or ""
        return cls(publication, digest(guid), digest(*lines))


Items: TypeAlias = Sequence[FeedItem]


def digest(*parts: str | bytes) -> bytes:
    """Return a digest of 16 bytes."""
    texts = (part if isinstance(part, bytes) else part.encode("utf-8", "replace") for part in parts)
    return hashlib.blake2b(b"\0".join(texts), digest_size=16).digest()


class FeedStore(ABC):
    """The states of feeds, and the versions of their items that were seen.

    Parameters
    ----------
    cutoff
        Items that are older are never new.
    """

    def __init__(self, clock: Clock = utc_now, cutoff: Cutoff | None = None) -> None:
        self._clock, self._cutoff = clock, cutoff

    async def load(self) -> Sequence[Feed]:
        """Return all feeds."""
        rows = await self._read("SELECT CAST(state AS TEXT) FROM feeds ORDER BY id", {})
        return [Feed.from_json(json.loads(state)) for (state,) in rows]

    async def unknown(self, url: str, items: Items) -> Items:
        """Return the items whose guid and version have not been saved, without duplicates."""
        known = {tuple(row) for row in await self._read(_SEEN, {"url": url})}
        oldest = self._cutoff and self._cutoff(self._clock())
        new = {
            (item.guid, item.version): item
            for item in reversed(items)
            if oldest is None or (item.publication.date or oldest) >= oldest
        }
        return [item for key, item in reversed(new.items()) if key not in known]

    async def save(
        self, feed: Feed, items: Items = (), new: Items = (), *, is_whole: bool = False
    ) -> None:
        """Save the state of a feed and its items in one transaction.

        Parameters
        ----------
        items
            The items that the feed contains now.
        new
            Those of them that `unknown` returned.
        is_whole
            Whether `items` are all items of the feed. If so, old versions are forgotten.
        """
        now = self._clock()
        row = {"url": feed.url, "at": millis(now)}
        statements: list[_Statement] = [(_SAVE_FEED, [{**row, "state": feed.to_json()}])]
        if items:
            keys = [{**row, "item": item.guid, "version": item.version} for item in items]
            statements.append((_SAVE_ITEM, keys))
        if items and is_whole:
            old = {**row, "at": millis(now - timedelta(days=ITEM_DAYS))}
            statements.append((_FORGET_OLD_ITEMS, [old]))
        await self._write(statements, feed.url, new)

    async def forget(self, url: str) -> None:
        """Remove a feed and its items. Publications stay."""
        row = {"url": url}
        await self._write([(_FORGET_ITEMS, [row]), (_FORGET_FEED, [row])], url, ())

    @abstractmethod
    async def _read(self, sql: str, values: _Row) -> Sequence[Sequence[Any]]:
        """Return the rows of a query."""

    @abstractmethod
    async def _write(self, statements: Sequence[_Statement], url: str, new: Items) -> None:
        """Execute statements in one transaction, and publish the new items of a feed in it."""


class BrokerFeedStore(FeedStore):
    """The feeds of a broker.

    A new item enters the log in the transaction that saves its version. So each version is
    published once, even if the process is killed.
    """

    def __init__(self, broker: Broker, cutoff: Cutoff | None = None) -> None:
        super().__init__(broker.clock, cutoff)
        self._broker = broker

    async def _read(self, sql: str, values: _Row) -> Sequence[Sequence[Any]]:
        from sqlalchemy import text

        return await self._broker.store.read(lambda db: db.execute(text(sql), values).all())

    async def _write(self, statements: Sequence[_Statement], url: str, new: Items) -> None:
        from sqlalchemy import text

        from graphmatch.broker.service.publications import Addition

        def execute(db: Connection) -> None:
            for sql, rows in statements:
                db.execute(text(sql), rows)

        publications = [item.publication for item in new]
        await self._broker.publications.add(Addition(publications, url, within=execute))


class SqliteFeedStore(FeedStore):
    """The feeds of one process without a broker, in a file that no other process can open.

    Saved data survives the end of the process at any moment. After a power failure, the last
    changes may be missing, and some items are new again. All calls must come from the thread that
    created the store.

    Parameters
    ----------
    path
        The file, which is created if it does not exist; ``None`` keeps the state in memory.

    Examples
    --------
    >>> import asyncio
    >>> with SqliteFeedStore(None) as store:
    ...     asyncio.run(store.save(Feed("https://e.org/feed")))
    ...     [feed.url for feed in asyncio.run(store.load())]
    ['https://e.org/feed']
    """

    def __init__(
        self, path: Path | None, clock: Clock = utc_now, cutoff: Cutoff | None = None
    ) -> None:
        super().__init__(clock, cutoff)
        self._path = path
        self.connection = open_sqlite(path, _APPLICATION_ID, _VERSION, BUSY_SECONDS, _PRAGMAS)
        with sqlite_errors(path):
            self.connection.executescript(_TABLES)  # This commits the transaction.

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.connection.close()

    async def _read(self, sql: str, values: _Row) -> Sequence[Sequence[Any]]:
        with sqlite_errors(self._path):
            return self.connection.execute(sql, values).fetchall()

    async def _write(self, statements: Sequence[_Statement], *_: object) -> None:
        with sqlite_errors(self._path), self.connection as db:
            db.execute("BEGIN")
            for sql, rows in statements:
                db.executemany(sql, rows)
