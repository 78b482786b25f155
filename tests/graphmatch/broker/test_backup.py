"""A backup contains everything, and a store restored from it is equal."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from graphmatch import Engine
from graphmatch.broker.backup import backup, restore
from graphmatch.broker.matching import Matcher
from graphmatch.broker.service import Broker
from graphmatch.broker.settings import Settings
from graphmatch.broker.store import Store, StoreError
from graphmatch.broker.tables import matches, metadata, publications
from semantic.errors import InputError

LINE = b'<urn:a> <urn:p> "\xc3\xbc" .\n'


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """Return a filled store and a new one."""
    several = Store(str(tmp_path / "one.db")), Store(str(tmp_path / "two.db"))
    broker = Broker(several[0], Engine())

    async def fill() -> None:
        sink = {"kind": "webhook", "url": "http://192.0.2.1/x"}
        await broker.subscribe({"query": "ASK { ?s <urn:p> ?o }"}, Settings(sink=sink))
        await broker.new_token("alice", ["publish"])
        await broker.publish(LINE, format="nt", name="urn:1", key="k")
        await broker.note("noted")

    asyncio.run(fill())
    matcher = Matcher(broker)
    matcher.load()
    assert matcher.step() == 1
    yield several
    for store in several:
        store.close()


def all_of(store: Store) -> dict[str, list[Any]]:
    return store.read_now(
        lambda db: {
            table.name: [tuple(row) for row in db.execute(select(table))]
            for table in metadata.sorted_tables
        }
    )


def test_all_comes_back(stores: tuple[Store, Store], tmp_path: Path) -> None:
    """A second store object reads while the first is open."""
    full, empty = stores
    beside = Store(full.name, read_only=True)
    count = backup(beside, tmp_path / "saved.gz")
    beside.close()
    assert restore(tmp_path / "saved.gz", empty) == count
    found = all_of(empty)
    assert found == all_of(full)
    assert all(found[name] for name in ("subscriptions", "matches", "deliveries", "tokens", "meta"))


def test_only_the_owner_can_read_a_backup_while_it_is_written(
    stores: tuple[Store, Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []

    def look(*_: object) -> int:
        modes.extend(path.stat().st_mode & 0o777 for path in tmp_path.glob("saved.gz.*"))
        return 0

    monkeypatch.setattr("graphmatch.broker.backup._written", look)
    backup(stores[0], tmp_path / "saved.gz")
    modes.append((tmp_path / "saved.gz").stat().st_mode & 0o777)
    assert modes == [0o600, 0o600]


def test_what_is_restored_goes_on(stores: tuple[Store, Store], tmp_path: Path) -> None:
    """New publications continue the numbering, and old tickets stay valid."""
    full, empty = stores
    backup(full, tmp_path / "saved.gz")
    restore(tmp_path / "saved.gz", empty)
    broker = Broker(empty, Engine())
    matcher = Matcher(broker)
    matcher.load()
    accepted = asyncio.run(broker.publish(LINE, format="nt", name="urn:2"))
    assert accepted.publications == ((2, "urn:2"),)
    assert matcher.step() == 1
    found = empty.read_now(lambda db: db.execute(select(matches.c.seq)).scalars().all())
    assert found == [1, 2]


def test_what_is_no_backup(stores: tuple[Store, Store], tmp_path: Path) -> None:
    """Invalid backups are refused, and nothing of them is restored."""
    full, empty = stores
    path = tmp_path / "saved.gz"
    backup(full, path)
    with pytest.raises(StoreError, match="the store is not empty"):
        restore(path, full)
    whole = path.read_bytes()
    lines = gzip.decompress(whole).splitlines(keepends=True)
    bad = {
        "cannot be read": None,
        "no backup of a broker": gzip.compress(b"{}\n"),
        "damaged: it ends early": whole[: len(whole) // 2],
        "damaged: a line is no JSON": gzip.compress(b"".join(lines) + b"{"),
        "a later version": gzip.compress(lines[0].replace(b"0001", b"9999")),
        "a table 'x' that is unknown": gzip.compress(lines[0] + b'["x", {}]\n'),
    }
    for said, data in bad.items():
        path.unlink(missing_ok=True)
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(StoreError, match=said):
            restore(path, empty)
        assert not any(all_of(empty).values())


def test_a_nul_in_a_literal_moves_from_sqlite_to_postgresql(tmp_path: Path, database: str) -> None:
    """Published, matched and sent literals may contain NUL; other strings cannot."""
    store = Store(str(tmp_path / "one.db"))
    broker = Broker(store, Engine())
    title = "<http://purl.org/dc/terms/title>"
    line = rf'<urn:a> {title} "a\u0000b" . <urn:a> <urn:\u00fc> "\u0000" .'

    async def fill() -> None:
        await broker.subscribe({"query": "SELECT * { ?s ?p ?o }"}, Settings())
        await broker.publish(line.encode(), format="ttl", name="urn:1")
        item = {"id": "a\0", "title": "b\0", "url": "http://e.org/\0", "content_text": "c\0"}
        feed = {"version": "https://jsonfeed.org/version/1.1", "title": "\0", "items": [item]}
        await broker.publish(json.dumps(feed).encode(), name="urn:2")
        with pytest.raises(InputError, match=r"NUL \(U\+0000\): subject"):
            await broker.note("a", "b\0")

    asyncio.run(fill())
    matcher = Matcher(broker)
    matcher.load()
    assert matcher.step() == 2
    problems = store.read_now(lambda db: db.scalars(select(publications.c.problem)).all())
    assert problems == [None, None]
    moved = Store(database)
    assert backup(store, tmp_path / "saved.gz") == restore(tmp_path / "saved.gz", moved)
    assert all_of(moved) == all_of(store)
    moved.close()
    store.close()


def test_a_nul_in_an_old_backup_is_replaced(
    stores: tuple[Store, Store], tmp_path: Path, database: str
) -> None:
    full, _ = stores
    backup(full, tmp_path / "saved.gz")
    lines = gzip.decompress((tmp_path / "saved.gz").read_bytes())
    old = lines.replace(b'"urn:1"', rb'"urn:\u00001"')
    (tmp_path / "saved.gz").write_bytes(gzip.compress(old))
    moved = Store(database)
    restore(tmp_path / "saved.gz", moved)
    assert all_of(moved)["publications"][0][1] == "urn:\ufffd1"
    moved.close()
