"""Delivered matches in a SQLite file, so that a run from cron delivers nothing twice.

The key of a match is its subscription and its publication. The key of a publication is its id. For
a feed item without a guid it is its link and title, and for a publication named after its file
(such as a Turtle file) its triples.

Limits: if all items of a feed have one guid, the oldest item has the bare guid as its id
(`semantic.feeds.triples`). If all items of such a feed are replaced between two runs, the oldest
new item is mistaken for the oldest previous one. An item does not show that others have its guid,
and a key with the title would deliver an item again if its title is edited.

A run locks the file until its end, so a second one waits for it. Deliveries are recorded after the
results are written. So a killed run delivers again, and nothing is lost. An entry is 16 bytes and a
day. Entries that were not in the sources for `KEPT_DAYS` are dropped.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Self

from pyoxigraph import BlankNode

from graphmatch.report import Match
from semantic.errors import GraphMatchError, Place, Problem
from semantic.publication import Publication

KEPT_DAYS = 90
"""Days for which a publication stays known after it was last in the sources."""
WAIT_SECONDS = 60.0
"""Time for which a run waits for another one to end."""
_OURS = 0x676D7365
_VERSION = 1


class SeenError(GraphMatchError):
    """An unusable file of delivered matches."""


class Seen:
    """The file of delivered matches: a context manager that creates it if missing, and locks it.

    Parameters
    ----------
    wait
        The seconds to wait for another run.
    """

    def __init__(self, path: Path, now: datetime, wait: float = WAIT_SECONDS) -> None:
        self._path, self._day = path, now.toordinal()
        try:
            self._file = sqlite3.connect(path, timeout=wait, isolation_level=None)
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def __enter__(self) -> Self:
        try:
            self._run("BEGIN IMMEDIATE")
            self._prepare()
        except SeenError:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file, which discards uncommitted changes."""
        self._file.close()

    def _run(self, statement: str, *values: object) -> list[tuple[int, ...]]:
        """Execute an SQL statement and return its rows; raise `SeenError` if it fails."""
        try:
            return self._file.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _unusable(self, error: sqlite3.Error) -> SeenError:
        place = Place(str(self._path))
        if "locked" in str(error):
            what = "another run holds it"
            return SeenError(Problem(what, place, "Wait until that one has ended."))
        what = f"cannot be used as the file of --seen: {error}"
        return SeenError(Problem(what, place, "Check the name and permissions."))

    def _prepare(self) -> None:
        owner = self._run("PRAGMA application_id"), self._run("PRAGMA user_version")
        if owner == ([(_OURS,)], [(_VERSION,)]):
            return
        if owner != ([(0,)], [(0,)]) or self._run("SELECT count(*) FROM sqlite_master") != [(0,)]:
            what = "a database of something else, or of another version"
            raise SeenError(Problem(what, Place(str(self._path)), "Name another file."))
        columns = "key BLOB PRIMARY KEY, day INTEGER NOT NULL"
        self._run(f"CREATE TABLE delivered ({columns}) WITHOUT ROWID")
        self._run(f"PRAGMA application_id = {_OURS}")
        self._run(f"PRAGMA user_version = {_VERSION}")

    def new(self, publication: Publication, matches: Sequence[Match]) -> list[Match]:
        """Return the matches that were not delivered before; record all with the day of the run."""
        name = _name(publication)
        return [match for match in matches if self._is_new(match.subscription, name)]

    def _is_new(self, subscription: str, name: str) -> bool:
        key = _digest(subscription, name)
        select = "SELECT CAST(day AS INTEGER) FROM delivered WHERE key = ?"
        days = [day for (day,) in self._run(select, key)]
        if not days or days[0] < self._day:
            self._run("INSERT OR REPLACE INTO delivered VALUES (?, ?)", key, self._day)
        return not days

    def commit(self) -> None:
        """Commit the records; drop those last in the sources over `KEPT_DAYS` days ago."""
        self._run("DELETE FROM delivered WHERE day < ?", self._day - KEPT_DAYS)
        self._run("COMMIT")


def fingerprint(files: Iterable[Path], *options: object) -> bytes | None:
    """Return a digest of files' contents, options, and this package's version.

    Equal options must have equal texts. It is ``None`` if a file cannot be read.
    """
    states = [_state(path) for path in files]
    known = [state for state in states if state is not None]
    return _digest(version("graphmatch"), repr(options), *known) if known == states else None


def _state(path: Path) -> str | None:
    """Return the digest of a file's content; ``None`` if it is not a file or not readable."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "blake2b").hexdigest()
    except OSError:
        return None


def _name(publication: Publication) -> str:
    """Return the key of a publication: its id, or a digest of its link and title, or its triples.

    An item without a guid has its link and title as its key, because other items may also have the
    link. The id of a feed's oldest item is then only the link (docs/decisions/item-ids.md).
    """
    about = publication.link is not None and publication.guid is None
    if about and publication.title is not None:
        return _digest("link", publication.link or "", publication.title).hex()
    if publication.graph_name().value == publication.id and not about:
        return publication.id
    lines = sorted(
        " ".join("_:" if isinstance(term, BlankNode) else str(term) for term in triple)
        for triple in publication.triples
    )
    return _digest("triples", *lines).hex()


def _digest(*texts: str) -> bytes:
    whole = "\0".join(texts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(whole, digest_size=16).digest()
