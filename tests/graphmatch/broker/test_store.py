"""The store keeps acknowledged writes, and isolates the errors of callers."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError, NoResultFound, OperationalError

from graphmatch.broker.db.store import Store, StoreError, counted, counter
from graphmatch.broker.db.tables import metadata, owners
from semantic.errors import pip_install


def add(name: str) -> Any:
    return lambda db: db.execute(owners.insert().values(name=name, created_at=0))


def names(store: Store) -> list[str]:
    return store.read_now(lambda db: list(db.scalars(select(owners.c.name).order_by("id"))))


async def together(store: Store, *works: Any) -> list[Any]:
    """Queue writes while the writer is busy."""
    held, release = threading.Event(), threading.Event()

    def hold(_: Connection) -> None:
        held.set()
        release.wait(10)

    first = asyncio.create_task(store.write(hold))
    await asyncio.to_thread(held.wait, 10)
    several = [asyncio.create_task(store.write(work)) for work in works]
    await asyncio.sleep(0.01)
    release.set()
    await first
    return await asyncio.wait_for(asyncio.gather(*several, return_exceptions=True), 10)


def test_the_migrations_create_the_tables(store: Store) -> None:
    def compared(db: Connection) -> list[Any]:
        return compare_metadata(MigrationContext.configure(db), metadata)

    assert store.read_now(compared) == []


def test_readers_cannot_write(store: Store) -> None:
    with pytest.raises(StoreError, match=r"read.?only"):
        store.read_now(add("a"))


def test_only_the_failed_writes_are_undone(store: Store) -> None:
    def partly(db: Connection) -> None:
        add("half")(db)
        raise ZeroDivisionError

    def nothing_found(db: Connection) -> None:
        db.execute(select(owners).where(owners.c.name == "nobody")).one()

    said = asyncio.run(
        together(store, add("a"), add("a"), partly, nothing_found, lambda _: 7, add("b"))
    )
    assert isinstance(said[1], IntegrityError)
    assert isinstance(said[2], ZeroDivisionError)
    assert isinstance(said[3], NoResultFound)
    assert said[4] == 7
    assert names(store) == ["a", "b"]


async def test_a_cancelled_write_does_not_stop_the_others(store: Store) -> None:
    held, release = threading.Event(), threading.Event()

    def hold(_: Connection) -> None:
        held.set()
        release.wait(10)

    first = asyncio.create_task(store.write(hold))
    await asyncio.to_thread(held.wait, 10)
    gone, stays = (asyncio.create_task(store.write(add(one))) for one in ("gone", "stays"))
    await asyncio.sleep(0.01)
    gone.cancel()
    first.cancel()  # A running write still completes.
    await asyncio.sleep(0.01)
    release.set()
    await asyncio.wait_for(stays, 10)
    assert gone.cancelled()
    await store.write(add("later"))
    assert names(store) == ["stays", "later"]


def test_a_file_is_for_one_process(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "a.db"))
    with pytest.raises(StoreError, match="another process has it open"):
        Store(str(tmp_path / "a.db"))
    store.close()


@pytest.mark.parametrize("url", [":memory:", "no://such", "postgresql://nobody@127.0.0.1:1/x"])
def test_an_unusable_url_is_refused(url: str) -> None:
    with pytest.raises(StoreError):
        Store("sqlite:///" if url == ":memory:" else url)


def test_only_the_owner_can_read_the_files(tmp_path: Path) -> None:
    """Files of an earlier version become unreadable for other users."""
    before = os.umask(0o022)
    try:
        files = [tmp_path / f"broker.db{end}" for end in ("", "-wal", "-shm")]
        for others_could in (False, True):
            if others_could:
                files[0].chmod(0o644)
                files[1].touch(0o644)
            store = Store(str(files[0]))
            store.write_now(add("a" if others_could else "b"))
            assert [oct(path.stat().st_mode & 0o777) for path in files] == ["0o600"] * 3
            store.close()
    finally:
        os.umask(before)


def test_counters_have_no_gaps(store: Store) -> None:
    def fails(db: Connection) -> None:
        counted(db, "publication", 5)
        raise ZeroDivisionError

    asyncio.run(together(store, lambda db: counted(db, "publication", 2), fails))
    assert store.write_now(lambda db: counted(db, "publication")) == 3
    assert store.read_now(lambda db: counter(db, "publication")) == 3
    assert store.read_now(lambda db: counter(db, "match")) == 0


async def test_processes_that_count_in_a_different_order_do_not_block_each_other(
    database: str,
) -> None:
    """Each would wait for the other's counter, and the database would abort one."""
    one, two = Store(database), Store(database)

    def counts(*keys: str) -> Any:
        return lambda db: [counted(db, key) for key in keys]

    works = [
        store.write(counts(*keys))
        for _ in range(30)
        for store, keys in ((one, ("a", "b")), (two, ("b", "a")))
    ]
    await asyncio.gather(*works)
    assert one.read_now(lambda db: counter(db, "a")) == 60
    one.close()
    two.close()


def made(path: Path) -> Path:
    Store(str(path)).close()
    return path


def damaged(path: Path) -> None:
    made(path).write_bytes(path.read_bytes()[:5000])


def of_another(path: Path, statement: str = "CREATE TABLE audit (x)") -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(statement)
        db.commit()


def of_a_later_version(path: Path) -> None:
    of_another(made(path), "UPDATE alembic_version SET version_num = '0042'")


UNUSABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "damaged": (damaged, r"malformed\. The file is damaged: restore a backup"),
    "not a database": (lambda path: path.write_text("hello" * 1000), "not a database. Name a file"),
    "another's": (of_another, "a table 'audit' that graphmatch did not make. Name another"),
    "later": (of_a_later_version, "revision 0042; this graphmatch knows up to 0001. Upgrade"),
    "folder": (Path.mkdir, "Is a directory. Name a file"),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_the_error_of_an_unusable_file_has_a_remedy(tmp_path: Path, kind: str) -> None:
    make, said = UNUSABLE[kind]
    make(tmp_path / "a.db")
    with pytest.raises(StoreError, match=said):
        Store(str(tmp_path / "a.db"))
    assert Store(str(tmp_path / "b.db")).close() is None  # The folder is not locked.


@pytest.mark.parametrize(
    ("reason", "helps"),
    [
        ("attempt to write a readonly database", "Make the file and its folder writable"),
        ("unable to open database file", "Check the permissions"),
        ("database or disk is full", "Make room on the disk"),
        ("disk I/O error", "Make room on the disk"),
        ('FATAL:  password authentication failed for user "a"', "Check the user and the password"),
        ("failed to resolve host 'a': Name or service not known", "Check the host"),
        ('connection failed: FATAL:  database "a" does not exist', "Check the name in the URL"),
        ('connection failed: FATAL:  role "a" does not exist', "Check the user in the URL"),
        ("connection failed: Connection refused", "Check that the database runs"),
        ("server closed the connection unexpectedly", "Check that the database runs"),
    ],
)
def test_the_error_of_a_refusing_database_has_a_remedy(
    tmp_path: Path, reason: str, helps: str
) -> None:
    store = Store(str(tmp_path / "a.db"))

    def refuse(_: Connection) -> None:
        raise OperationalError("", {}, Exception(reason))

    for work in (store.read_now, store.write_now):
        with pytest.raises(StoreError) as refused:
            work(refuse)
        assert reason.rstrip(".") in refused.value.problem.what
        assert refused.value.problem.remedy.startswith(helps)
    store.close()


@pytest.mark.parametrize("error", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_the_error_of_a_refusing_folder_has_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "open", refuse)
    said = {
        errno.EACCES: "Permission denied. Check the permissions",
        errno.EROFS: "Read-only file system. Make the file",
        errno.ENOSPC: "No space left on device. Make room",
    }
    with pytest.raises(StoreError, match=said[error]):
        Store(str(tmp_path / "a.db"))


def test_the_error_of_a_missing_database_has_a_remedy(database: str) -> None:
    for url, said in (
        (database.replace("@/test", "@/none"), "does not exist. Check the name in the URL"),
        (database.replace("//", "//not", 1), "does not exist. Check the user in the URL"),
        ("postgresql://a@127.0.0.1:1/a", "refused. Check that the database runs"),
        ("postgresql://a@no-such-host.invalid/a", "Check the host in the URL"),
    ):
        with pytest.raises(StoreError, match=said):
            Store(url)


def test_a_missing_extra_for_postgresql_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=re.escape(pip_install("postgresql"))):
        Store("postgresql://a@127.0.0.1:1/a")
