"""Saved files of each format open and answer, and no format changes under the same version.

`tests/data` has one small file for each format: a snapshot of an engine, and the databases of the
broker, of the reader of feeds and of ``--seen`` as SQL. If a format changes, raise its version (see
`FORMATS`), write its file again with ``.venv/bin/python -m tests.test_saved_formats NAME``, and
commit it. The broker's file stays, because a new migration must open it.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyoxigraph import Literal
from sqlalchemy import select

from graphmatch import Engine
from graphmatch.broker.db.store import Store
from graphmatch.broker.db.tables import matches
from graphmatch.broker.feeds.feed_store import Feed, FeedItem, SqliteFeedStore
from graphmatch.broker.models.subscription_settings import SubscriptionSettings
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import MatchWorker
from graphmatch.command.output import Alert
from graphmatch.command.seen import open_seen
from graphmatch.snapshot import opened
from semantic import Ontology, Publication
from semantic.ontology.synonyms import SynonymPairs
from semantic.vocabulary import SUBCLASS, TYPE, Namespace

FILES = Path(__file__).parent / "data"
EX = Namespace("http://example.org/")
NOW = datetime(2026, 1, 14, 12, tzinfo=UTC)
QUERIES = {
    "class": "SELECT ?x { ?x a e:Computer }",
    "range": "SELECT ?x { ?x a e:Computer ; e:price ?p FILTER(?p > 5 && ?p <= 10) }",
    "other range": "SELECT ?x { ?x a e:Computer ; e:price ?p FILTER(?p > 10 && ?p <= 20) }",
    "word": "SELECT ?x { ?x e:title ?t FILTER(CONTAINS(LCASE(STR(?t)), 'quiet')) }",
    "path": "SELECT ?x ?y { ?x e:part/e:part* ?y OPTIONAL { ?y e:price ?p } }",
    "synonym": "ASK { ?x e:from 'United States' }",
}
OFFER = Publication.of(
    "urn:offer",
    [
        (EX["x"], TYPE, EX["Laptop"]),
        (EX["x"], EX["price"], Literal(7)),
        (EX["x"], EX["title"], Literal("A quiet one")),
        (EX["x"], EX["part"], EX["y"]),
        (EX["x"], EX["from"], Literal("US")),
    ],
)


# --- An engine ------------------------------------------------------------------------------------


def save_engine(path: Path) -> None:
    classes = [(EX["Laptop"], SUBCLASS, EX["Computer"])]
    engine = Engine(Ontology(classes, SynonymPairs(texts={"US": "United States"})))
    for id, query in QUERIES.items():
        engine.subscribe(id, f"PREFIX e: <{EX.iri}> {query}")
    engine.save(path)


def open_engine(path: Path) -> list[str]:
    return sorted(Engine.open(path).match(OFFER).subscriptions)


def engine_format(path: Path) -> tuple[object, object]:
    """Return the version, and the length of the part of the core.

    The order of that is random. Options and ontology are JSON, which may get new fields.
    """
    version, saved = path.read_bytes()[8:12], opened(path, None)
    json_length = len(saved.options.written()) + len(saved.ontology)
    return int.from_bytes(version, "little"), path.stat().st_size - json_length


# --- SQLite ---------------------------------------------------------------------------------------


PRAGMAS = ("application_id", "user_version")


def to_sql(path: Path) -> str:
    with closing(sqlite3.connect(path)) as db:
        numbers = {name: db.execute(f"PRAGMA {name}").fetchone()[0] for name in PRAGMAS}
        lines = [f"PRAGMA {name} = {number};" for name, number in numbers.items() if number]
        return "\n".join([*lines, *db.iterdump(), ""])


def sql_format(path: Path) -> tuple[object, object]:
    """Return the version and the tables."""
    with closing(sqlite3.connect(path)) as db:
        version = db.execute("PRAGMA user_version").fetchone()
        found = db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
        return version, found.fetchall()


def save_seen(path: Path) -> None:
    engine = Engine()
    engine.subscribe("a", "ASK { ?x ?p ?y }")
    with open_seen(path, lambda: NOW) as seen:
        alert = Alert(OFFER, set(seen.names(OFFER)), list(engine.match(OFFER).matches))
        seen.add(alert)


def read_seen(path: Path) -> list[str]:
    """Return the subscriptions with new matches: that of the saved file is known."""
    with open_seen(path, lambda: NOW) as seen:
        return [id for id in "ab" if seen.is_new(id, seen.names(OFFER))]


FEED = Feed("https://e.org/feed", validators={"If-None-Match": '"1"'}, next_poll_at=NOW)
ITEM = FeedItem(OFFER, b"guid", b"version")


def save_feeds(path: Path) -> None:
    with SqliteFeedStore(path, lambda: NOW) as store:
        asyncio.run(store.save(FEED, [ITEM]))


def open_feeds(path: Path) -> bool:
    """Return whether the feed is known, and its item in this version only."""
    changed = FeedItem(OFFER, b"guid", b"other")

    async def read(store: SqliteFeedStore) -> tuple[list[Feed], list[FeedItem]]:
        return list(await store.load()), list(await store.unknown(FEED.url, [ITEM, changed]))

    with SqliteFeedStore(path, lambda: NOW) as store:
        found = asyncio.run(read(store))
    return found == ([FEED], [changed])


def save_broker(path: Path) -> None:
    publish(path, "old", subscribe=True)


def open_broker(path: Path) -> list[int]:
    return publish(path, "new")


def broker_format(path: Path) -> tuple[object, object]:
    """Return the tables. They have the newest version, to which opening brings them."""
    Store(str(path)).close()
    return "the newest", sql_format(path)[1]


def publish(path: Path, name: str, *, subscribe: bool = False) -> list[int]:
    """Match one publication, and return the numbers of the publications of all matches."""
    store = Store(str(path))
    broker = Broker(store, Engine(), lambda: NOW)

    async def run() -> None:
        if subscribe:
            await broker.subscriptions.subscribe(
                {"query": "ASK { ?x a <urn:C> }"}, SubscriptionSettings()
            )
        await broker.publications.publish(b"<urn:x> a <urn:C> .", format="ttl", name=f"urn:{name}")

    asyncio.run(run())
    matcher = MatchWorker(broker)
    matcher.load()
    while matcher.step():
        pass
    found = select(matches.c.publication).order_by(matches.c.seq)
    numbers = store.read_now(lambda db: list(db.scalars(found)))
    store.close()
    return numbers


# --- All ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Format:
    """How to save and open a file, and the parts of its format: its version, and its shape."""

    file: str
    version_in: str
    save: Callable[[Path], None]
    open: Callable[[Path], object]
    answer: object
    format: Callable[[Path], tuple[object, object]]

    def write(self) -> None:
        """Write the committed file again."""
        path = FILES / f"new-{self.file}"
        self.save(path)
        if self.file.endswith(".sql"):
            text = to_sql(path)
            path.unlink()
            path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
            (FILES / self.file).write_text(text, encoding="utf-8")
        else:
            path.replace(FILES / self.file)

    def copy(self, path: Path) -> None:
        """Restore the committed file."""
        if self.file.endswith(".sql"):
            with closing(sqlite3.connect(path)) as db:
                db.executescript((FILES / self.file).read_text(encoding="utf-8"))
        else:
            path.write_bytes((FILES / self.file).read_bytes())


FORMATS = {
    "engine": Format(
        "engine.snapshot",
        "graphmatch/native/src/snapshot.rs: VERSION",
        save_engine,
        open_engine,
        ["class", "path", "range", "synonym", "word"],
        engine_format,
    ),
    "seen": Format(
        "seen.sql", "graphmatch/command/seen.py: _VERSION", save_seen, read_seen, ["b"], sql_format
    ),
    "feeds": Format(
        "feeds.sql",
        "graphmatch/broker/feeds/feed_store.py: _VERSION",
        save_feeds,
        open_feeds,
        True,
        sql_format,
    ),
    "broker": Format(
        "broker.sql",
        "a new file in graphmatch/broker/migrations/versions",
        save_broker,
        open_broker,
        [1, 2],
        broker_format,
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_committed_file_has_the_present_format(tmp_path: Path, name: str) -> None:
    one = FORMATS[name]
    one.copy(tmp_path / "committed")
    one.save(tmp_path / "new")
    anew = f"write tests/data/{one.file} again: .venv/bin/python -m tests.test_saved_formats {name}"
    if name == "engine":  # Another version cannot be opened.
        new, old = ((tmp_path / file).read_bytes()[8:12] for file in ("new", "committed"))
        assert new == old, f"the version was raised: {anew}"
    new_version, new_shape = one.format(tmp_path / "new")
    version, shape = one.format(tmp_path / "committed")
    assert new_version == version, f"the version was raised: {anew}"
    same = f"the format changed, but not its version ({one.version_in}). Raise it, then {anew}"
    assert new_shape == shape, same


@pytest.mark.parametrize("name", FORMATS)
def test_the_committed_file_gives_the_right_answers(tmp_path: Path, name: str) -> None:
    one = FORMATS[name]
    one.copy(tmp_path / "committed")
    assert one.open(tmp_path / "committed") == one.answer


if __name__ == "__main__":
    for chosen in sys.argv[1:] or FORMATS:
        FORMATS[chosen].write()
