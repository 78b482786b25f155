"""What was delivered before: a SQLite file, so that a run from cron says nothing twice.

A match is known by its subscription and its publication: by the publication's id; a feed item
without a guid by its link and title; a publication that is called after its file (a Turtle file,
say) by its triples.

Limits: of a feed whose items all have one guid, the oldest item has the bare guid for an id
(`semantic.feeds.triples`). Where all items of such a feed were replaced between two runs, the
oldest of the new ones is taken for the oldest of the old ones. Nothing in one item tells that
others have its guid, and a key with the title would deliver each item again whose title is edited.

A run holds the file from its beginning to its end, so a second one waits for it. What was delivered
is written down after the results were, so a run that is killed in between delivers again, and none
is lost. An entry is 16 bytes and a day; what was not in the sources for `KEPT_DAYS` is dropped.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Self

from pyoxigraph import BlankNode

from graphmatch.matcher import Match
from semantic.errors import GraphMatchError, Place, Problem
from semantic.publication import Publication

KEPT_DAYS = 90
"""For so many days after it was last in the sources, a publication is known."""
WAIT_SECONDS = 60.0
"""For so long a run waits for another one to end."""
_OURS = 0x676D7365
_VERSION = 1


class SeenError(GraphMatchError):
    """A file of what was delivered that cannot be used."""


class Seen:
    """What was delivered; a context manager that holds the file, made where it is not there.

    Parameters
    ----------
    wait
        For how many seconds to wait for another run.
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
        """Forget what was not committed."""
        self._file.close()

    def _run(self, statement: str, *values: object) -> list[tuple[int, ...]]:
        """Return the rows of a statement."""
        try:
            return self._file.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _unusable(self, error: sqlite3.Error) -> SeenError:
        place = Place(str(self._path))
        if "locked" in str(error):
            what = "another run holds it"
            return SeenError(Problem(what, place, "Wait until that one has ended."))
        what = f"cannot be used to remember what was delivered: {error}"
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
        """Return the matches that were not delivered before, and take them for delivered."""
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
        """Keep what was delivered; drop what has not been in the sources for long."""
        self._run("DELETE FROM delivered WHERE day < ?", self._day - KEPT_DAYS)
        self._run("COMMIT")


def _name(publication: Publication) -> str:
    """Return what a publication is known by.

    An item without a guid is known by its link and title: other items may have the link, too, and
    a feed's oldest item then has no more to its id than that (docs/decisions/feeds.md).
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
