"""Delivered matches in a SQLite file, so that a run from cron delivers nothing twice.

The key of a match is its subscription and a name of its publication (`Seen.names`).

Limits: if all items of a feed have one guid, the oldest item has the bare guid as its id
(`semantic.feeds.triples`). If all items of such a feed are replaced between two runs, the oldest
new item is mistaken for the oldest previous one.

A run of ``filter`` locks the file until its end, so a second one waits for it. Deliveries are
recorded after the results are written. So a killed run delivers again, and nothing is lost. An
entry is 16 bytes and a day. Entries that were not in the sources for `KEPT_DAYS` are dropped.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from pyoxigraph import BlankNode

from graphmatch.command.output import Alert
from semantic.clock import Clock
from semantic.publication import Publication
from semantic.sqlite_file import open_sqlite, sqlite_errors

KEPT_DAYS = 90
"""Days for which a publication stays known after it was last in the sources."""
WAIT_SECONDS = 60.0
"""Time for which a run waits for another one to end."""
_APPLICATION_ID, _VERSION = 0x676D7365, 1


class Seen:
    """The delivered matches in a database.

    Parameters
    ----------
    path
        The file, for messages.
    clock
        The time: entries have the day on which they were last in the sources.
    """

    def __init__(self, db: sqlite3.Connection, path: Path | None, clock: Clock) -> None:
        self._db, self._path, self._clock, self._day = db, path, clock, 0
        columns = "key BLOB PRIMARY KEY, day INTEGER NOT NULL"
        self._run(f"CREATE TABLE IF NOT EXISTS delivered ({columns}) WITHOUT ROWID")

    @staticmethod
    def names(publication: Publication) -> Sequence[str]:
        """Return the names under which matches of a publication are known.

        They are those of its story, or else its id. An item whose id is only its link, and a
        document named after its file, are known by their triples (docs/decisions/item-ids.md).
        """
        if story := publication.story:
            return story
        if publication.graph_name().value == publication.id and publication.link is None:
            return [publication.id]
        lines = sorted(
            " ".join("_:" if isinstance(term, BlankNode) else str(term) for term in triple)
            for triple in publication.triples
        )
        return [_digest("triples", *lines).hex()]

    def is_new(self, subscription: str, names: Iterable[str]) -> bool:
        """Return whether no match of a subscription and a name is known; if known, it is used."""
        select = "SELECT count(*) FROM delivered WHERE key = ?"
        keys = [_digest(subscription, name) for name in names]
        known = any(self._run(select, key) != [(0,)] for key in keys)
        if known:
            self._record(keys)
        return not known

    def add(self, alert: Alert) -> None:
        """Record the matches of an alert under all of its names."""
        self._record(_digest(m.subscription, name) for m in alert.matches for name in alert.names)

    def _record(self, keys: Iterable[bytes]) -> None:
        """Store keys with the present day; forget those older than `KEPT_DAYS` once a day."""
        day = self._clock().toordinal()
        if day != self._day:
            self._day = day
            self._run("DELETE FROM delivered WHERE day < ?", day - KEPT_DAYS)
        for key in keys:
            self._run("INSERT OR REPLACE INTO delivered VALUES (?, ?)", key, day)

    def _run(self, statement: str, *values: object) -> list[tuple[int, ...]]:
        """Execute an SQL statement and return its rows; raise `SqliteFileError` if it fails."""
        with sqlite_errors(self._path):
            return self._db.execute(statement, values).fetchall()


@contextmanager
def open_seen(path: Path, clock: Clock, wait: float = WAIT_SECONDS) -> Iterator[Seen]:
    """Open a file of delivered matches, which is created if missing, and lock it.

    Changes are committed if the block ends without an error.

    Parameters
    ----------
    wait
        The seconds to wait for another run.
    """
    with closing(open_sqlite(path, _APPLICATION_ID, _VERSION, wait)) as db:
        yield Seen(db, path, clock)
        with sqlite_errors(path):
            db.execute("COMMIT")


def _digest(*texts: str) -> bytes:
    whole = "\0".join(texts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(whole, digest_size=16).digest()
