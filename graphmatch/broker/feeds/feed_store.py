"""The state of feeds, what items are known by, and a store in SQLite for whom has no broker."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, Self

from pyoxigraph import BlankNode

from semantic.clock import Clock, utc_now
from semantic.errors import GraphMatchError, Place, Problem
from semantic.publication import Publication
from semantic.vocabulary import DC, DCTERMS, RSS, TYPE

KEPT_DAYS = 90
"""For so many days after it was last in a feed, an item's version is known."""
_DATES = frozenset({DC["date"], DCTERMS["modified"]})
_OURS = 0x676D6664
_VERSION = 1
BUSY_SECONDS = 1.0
_TABLES = """
CREATE TABLE feeds (url TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE items (
  feed TEXT NOT NULL, guid BLOB NOT NULL, version BLOB NOT NULL, day INTEGER NOT NULL,
  PRIMARY KEY (feed, guid, version)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Feed:
    """What is known of one feed; it is followed under the address that it was first given.

    Parameters
    ----------
    url
        The address that it was first given.
    moved
        Where it is now, once it was redirected for good.
    title
        As the feed says; or else as a list says.
    etag, modified, validated
        The validators, and the address whose they are.
    digest
        Of the last body that was read.
    next_poll_at
        When it is to be fetched; ``None`` for at once.
    errors, status, problem
        How many fetches in a row failed; the last status; what was wrong the last time.
    read_at
        When it was last fetched without an error.
    ttl, skip_hours, skip_days
        For how many seconds it is to be left alone, as its body says; hours in GMT, days from
        Monday, 0.
    target, seen
        Where it was redirected for good, and in how many polls in a row.
    hub, topic
        Its WebSub hub and what it calls itself.
    pushed_until, push_problem
        Until when the hub sends what is new; why it does not, where it was asked.
    same_as
        The feed that has its address, too, and is fetched in its place.
    """

    url: str
    moved: str | None = None
    title: str = ""
    etag: str | None = None
    modified: str | None = None
    validated: str | None = None
    digest: str | None = None
    next_poll_at: datetime | None = None
    errors: int = 0
    status: int | None = None
    problem: str | None = None
    read_at: datetime | None = None
    ttl: int | None = None
    skip_hours: tuple[int, ...] = ()
    skip_days: tuple[int, ...] = ()
    target: str | None = None
    seen: int = 0
    hub: str | None = None
    topic: str | None = None
    pushed_until: datetime | None = None
    push_problem: str | None = None
    same_as: str | None = None

    @property
    def address(self) -> str:
        """Where it is fetched."""
        return self.moved or self.url

    def is_due(self, now: datetime) -> bool:
        """Whether it is to be fetched now."""
        return self.same_as is None and (self.next_poll_at is None or self.next_poll_at <= now)

    def as_json(self) -> dict[str, Any]:
        """Return what is not as in a new feed, for a store.

        Examples
        --------
        >>> from datetime import UTC
        >>> feed = Feed("https://e.org/", next_poll_at=datetime(2026, 1, 2, tzinfo=UTC))
        >>> Feed.from_json(feed.as_json()) == feed
        True
        """
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        new = {f.name: f.default for f in fields(self)}
        return {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in found.items()
            if value != new[name]
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Feed:
        """Return what `as_json` gave."""
        made = dict(found)
        for name in ("next_poll_at", "read_at", "pushed_until"):
            if name in made:
                made[name] = datetime.fromisoformat(made[name])
        for name in ("skip_hours", "skip_days"):
            if name in made:
                made[name] = tuple(made[name])
        return cls(**made)


@dataclass(frozen=True, slots=True)
class FeedItem:
    """An item of a feed, and the digests that it is known by."""

    publication: Publication
    guid: bytes
    version: bytes

    @classmethod
    def of(cls, publication: Publication) -> FeedItem:
        """Return an item with its digests.

        Examples
        --------
        >>> from semantic.feeds import read_feed
        >>> feed = b"<rss><channel><title>%b</title><item><guid>7</guid></item></channel></rss>"
        >>> one, other = (FeedItem.of(*read_feed(feed % title, "a.rss")) for title in (b"A", b"B"))
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
        own = publication.guid or publication.link or ""
        return cls(publication, digest(own), digest(*lines))


class FeedStore(Protocol):
    """Where feeds and what was seen in them are kept."""

    async def load(self) -> Sequence[Feed]:
        """Return all feeds."""

    async def unknown(self, url: str, items: Sequence[FeedItem]) -> Sequence[FeedItem]:
        """Return the items whose guid and version have not been saved for the feed."""

    async def save(
        self,
        feed: Feed,
        items: Sequence[FeedItem] = (),
        new: Sequence[FeedItem] = (),
        *,
        is_whole: bool = False,
    ) -> None:
        """Keep a feed's state, and items that are in it now, both or neither.

        Those of them that are `new` are what `unknown` returned. Where these are all of its items
        (`is_whole`), old ones may be forgotten.
        """

    async def forget(self, url: str) -> None:
        """Remove a feed and its items."""


def without(known: Container[object], items: Sequence[FeedItem]) -> list[FeedItem]:
    """Return the items whose guid and version are not known, each once."""
    found: dict[tuple[bytes, bytes], FeedItem] = {}
    for item in items:
        found.setdefault((item.guid, item.version), item)
    return [item for key, item in found.items() if key not in known]


def digest(*parts: str | bytes) -> bytes:
    """Return 16 bytes that other parts do not have."""
    texts = (part if isinstance(part, bytes) else part.encode("utf-8", "replace") for part in parts)
    return hashlib.blake2b(b"\0".join(texts), digest_size=16).digest()


class FeedStoreError(GraphMatchError):
    """A file of feeds' state that cannot be used."""


class SqliteFeedStore:
    """A `FeedStore` of one process, which holds its file.

    What was saved survives the end of the process at any moment. After a loss of power, the last of
    it may be gone: then some items come again. All calls are made in the thread that made the
    store, and take well under a millisecond.

    Parameters
    ----------
    path
        The file, made where it is not there; ``None`` for memory.

    Examples
    --------
    >>> import asyncio
    >>> with SqliteFeedStore(None) as store:
    ...     asyncio.run(store.save(Feed("https://e.org/feed")))
    ...     [feed.url for feed in asyncio.run(store.load())]
    ['https://e.org/feed']
    """

    def __init__(self, path: Path | None, clock: Clock = utc_now) -> None:
        self._path, self._clock = path, clock
        try:
            name = ":memory:" if path is None else path
            self._file = sqlite3.connect(name, timeout=BUSY_SECONDS, isolation_level=None)
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._file.close()
            raise self._unusable(error) from error
        except FeedStoreError:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the file."""
        self._file.close()

    def _prepare(self) -> None:
        self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = NORMAL")
        self._file.execute("BEGIN IMMEDIATE")
        (owner,) = self._file.execute("PRAGMA application_id").fetchone()
        (version,) = self._file.execute("PRAGMA user_version").fetchone()
        (tables,) = self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if (owner, version, tables) == (0, 0, 0):
            for statement in _TABLES.split(";"):
                self._file.execute(statement)
            self._file.execute(f"PRAGMA application_id = {_OURS}")
            self._file.execute(f"PRAGMA user_version = {_VERSION}")
        elif (owner, version) != (_OURS, _VERSION):
            what = "a database of something else, or of another version"
            raise FeedStoreError(Problem(what, Place(str(self._path)), "Name another file."))
        self._file.execute("COMMIT")

    def _unusable(self, error: sqlite3.Error) -> FeedStoreError:
        place = Place(str(self._path))
        if "locked" in str(error):
            what = "another run holds it"
            return FeedStoreError(Problem(what, place, "Wait until that one has ended."))
        what = f"cannot be used to remember feeds: {error}"
        return FeedStoreError(Problem(what, place, "Check the name and permissions."))

    async def load(self) -> Sequence[Feed]:
        """Return all feeds."""
        rows = self._file.execute("SELECT state FROM feeds ORDER BY url")
        return [Feed.from_json(json.loads(state)) for (state,) in rows]

    async def unknown(self, url: str, items: Sequence[FeedItem]) -> Sequence[FeedItem]:
        """Return the items whose guid and version have not been saved for the feed."""
        rows = self._file.execute("SELECT guid, version FROM items WHERE feed = ?", (url,))
        known = set(rows.fetchall())
        return without(known, items)

    async def save(
        self,
        feed: Feed,
        items: Sequence[FeedItem] = (),
        new: Sequence[FeedItem] = (),  # noqa: ARG002 -- for those who publish these
        *,
        is_whole: bool = False,
    ) -> None:
        """Keep a feed's state, and items that are in it now, both or neither."""
        day = self._clock().toordinal()
        rows = [(feed.url, item.guid, item.version, day) for item in items]
        state = json.dumps(feed.as_json())
        try:
            self._file.execute("BEGIN")
            self._file.execute("INSERT OR REPLACE INTO feeds VALUES (?, ?)", (feed.url, state))
            if rows:
                insert = "INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?)"
                self._file.executemany(insert, rows)
            if rows and is_whole:
                delete = "DELETE FROM items WHERE feed = ? AND day < ?"
                self._file.execute(delete, (feed.url, day - KEPT_DAYS))
            self._file.execute("COMMIT")
        except sqlite3.Error as error:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")
            raise self._unusable(error) from error

    async def forget(self, url: str) -> None:
        """Remove a feed and its items."""
        self._file.execute("BEGIN")
        self._file.execute("DELETE FROM feeds WHERE url = ?", (url,))
        self._file.execute("DELETE FROM items WHERE feed = ?", (url,))
        self._file.execute("COMMIT")
