"""Feeds and what was seen in them, in a SQLite file or in memory: for whom has no broker."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from graphmatch.broker.feeds import Feed, FeedItem
from semantic.clock import Clock, utc_now
from semantic.errors import GraphMatchError, Place, Problem

KEPT_DAYS = 90
"""For so many days after it was last in a feed, an item's version is known."""
_OURS = 0x676D6664
_VERSION = 1
_TABLES = """
CREATE TABLE feeds (url TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE items (
  feed TEXT NOT NULL, guid BLOB NOT NULL, version BLOB NOT NULL, day INTEGER NOT NULL,
  PRIMARY KEY (feed, guid, version)
) WITHOUT ROWID;
"""


class FeedStoreError(GraphMatchError):
    """A file of feeds' state that cannot be used."""


class SqliteFeedStore:
    """A `graphmatch.broker.feeds.FeedStore` of one process, which holds its file.

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
            self._file = sqlite3.connect(name, timeout=1, isolation_level=None)
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
        found: dict[tuple[bytes, bytes], FeedItem] = {}
        for item in items:
            found.setdefault((item.guid, item.version), item)
        return [item for key, item in found.items() if key not in known]

    async def save(
        self, feed: Feed, items: Sequence[FeedItem] = (), *, is_whole: bool = False
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
