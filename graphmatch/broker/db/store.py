"""The store of the broker: all acknowledged data, in SQLite or PostgreSQL.

One thread writes, one transaction after the other. With SQLite's ``synchronous=FULL`` and
PostgreSQL's defaults, a committed transaction survives a power cut. Readers have their own
connections, which cannot write.

Cost: some 380 commits per second on a small disk. Therefore frequent writers, such as the intake of
publications, the match worker and the outbox, collect their rows and write them in batches.

Limits: a SQLite file belongs to one process. If several processes share a PostgreSQL database, one
commits at a time, because all of them raise the same counters (`counted`) and could otherwise
deadlock. Therefore a work's reads still hold when it is committed.
SQLite before 3.51.3 can damage a file if several connections write and checkpoint
(https://sqlite.org/wal.html), so only one connection does.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from shutil import disk_usage
from typing import Any, TypeVar

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import URL, Connection, Dialect, Table, create_engine, event, make_url, text
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    ProgrammingError,
    SQLAlchemyError,
)
from sqlalchemy.pool import QueuePool, StaticPool

from graphmatch.broker.db.tables import metadata
from semantic.errors import GraphMatchError, InputError, Place, Problem, pip_install

log = logging.getLogger("graphmatch.broker")

READERS = 4
"""Number of connections that read."""
CHANNEL = "graphmatch"
"""Channel on which transactions notify the processes of a PostgreSQL store, see `counted`."""
_LOCK = 0x676D
_SQLITE: dict[str, Any] = {
    "paramstyle": "named",
    # Without an isolation level, SQLAlchemy begins transactions. Savepoints need that.
    "connect_args": {"timeout": 30, "isolation_level": None},
}
_WRITER = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON"
_TIMES = {"connect_timeout": 5, "keepalives_idle": 5, "keepalives_interval": 2}
_OPTIONS: dict[str, Any] = {
    "pool_pre_ping": True,
    "pool_recycle": 300,
    "connect_args": {**_TIMES, "tcp_user_timeout": 10_000},
}
"""Options of connections to PostgreSQL: a server that disappears ends a wait after some seconds."""
T = TypeVar("T")


class StoreError(GraphMatchError):
    """The store cannot be opened or written; nothing was acknowledged."""


def is_outage(error: BaseException | None) -> bool:
    """Return whether an error means that the store is unusable, not that a value is wrong."""
    if isinstance(error, DBAPIError):
        is_of_value = isinstance(error, IntegrityError | DataError | ProgrammingError)
        is_of_value |= str(getattr(error.orig, "sqlstate", "")).startswith("54")  # Over a limit.
        return error.connection_invalidated or not is_of_value
    return isinstance(error, StoreError)


class Store:
    """An open database with the tables of this version.

    Parameters
    ----------
    url
        Name of a SQLite file, which is created if it is missing, or URL of a database:
        ``postgresql://user@host/name``, ``sqlite:///file``.

    Raises
    ------
    StoreError
        If the database cannot be opened, is open in another process, or has a later version.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sqlalchemy import select
    >>> from graphmatch.broker.db.tables import owners
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(f"{folder}/broker.db")
    ...     row = owners.insert().values(name="a", created_at=0)
    ...     _ = store.write_now(lambda db: db.execute(row))
    ...     names = store.read_now(lambda db: db.scalars(select(owners.c.name)).all())
    ...     store.close()
    >>> names
    ['a']
    """

    def __init__(self, url: str) -> None:
        try:
            self._url = make_url(url if "://" in url else f"sqlite:///{url}")
        except ArgumentError as error:
            remedy = "Write postgresql://user@host/name or the name of a file."
            raise _store_error("not the URL of a database", url, remedy) from error
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        self.name = self._url.render_as_string(hide_password=True)
        self.writer_pid = 0  # The process of PostgreSQL that executes the transactions.
        self._lock: int | None = None
        if self.is_sqlite:
            self._lock = _locked_file(self._url.database or "", self.name)
            self._writer = create_engine(self._url, poolclass=StaticPool, **_SQLITE)
            pooled = {"poolclass": QueuePool, "pool_size": READERS}
            self._readers = create_engine(self._url, **pooled, **_SQLITE)
            for engine, options, begin in (
                (self._writer, _WRITER, "BEGIN IMMEDIATE"),
                (self._readers, "PRAGMA query_only=ON", "BEGIN"),
            ):
                event.listen(engine, "connect", _script(options))
                event.listen(engine, "begin", _statement(begin))
        elif self._url.get_backend_name() == "postgresql":
            self._writer = self._postgresql(pool_size=1, max_overflow=0)
            read_only = {"postgresql_readonly": True}
            self._readers = self._postgresql(pool_size=READERS, execution_options=read_only)
            lock = f"SELECT pg_advisory_xact_lock({_LOCK})"
            event.listen(self._writer, "begin", _statement(lock))
            event.listen(self._writer, "connect", self._note_writer)
        else:
            what = f"{self._url.get_backend_name()} is not supported"
            raise _store_error(what, self.name, "Use postgresql:// or the name of a file.")
        event.listen(self._writer, "before_cursor_execute", _refuse_nul)
        self._writing = ThreadPoolExecutor(1, "store-writer")
        self._reading = ThreadPoolExecutor(READERS, "store-reader")
        try:
            self._writing.submit(self._upgrade).result()
        except SQLAlchemyError as error:
            self.close()
            raise _store_error(f"cannot be opened: {_reason(error)}", self.name, error) from error
        except StoreError:
            self.close()
            raise

    def close(self) -> None:
        """Finish the waiting works, and close all connections."""
        self._writing.shutdown()
        self._reading.shutdown()
        self._writer.dispose()
        self._readers.dispose()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _note_writer(self, connection: Any, _: object) -> None:
        self.writer_pid = connection.info.backend_pid

    @property
    def database(self) -> str | None:
        """URL of a PostgreSQL database, with its password; ``None`` for a SQLite file."""
        return None if self.is_sqlite else self._url.render_as_string(hide_password=False)

    @property
    def free_bytes(self) -> int | None:
        """Free space on the disk of a SQLite file in bytes; ``None`` for another database."""
        return disk_usage(Path(self._url.database or "").parent).free if self.is_sqlite else None

    def _postgresql(self, **options: Any) -> Any:
        url: URL = self._url
        if url.drivername == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        try:
            return create_engine(url, **options, **_OPTIONS)
        except ImportError as error:
            remedy = f"Install it: {pip_install('postgresql')}"
            what = f"PostgreSQL needs psycopg: {error}"
            raise _store_error(what, self.name, remedy) from error

    def _upgrade(self) -> None:
        """Migrate the tables to this version."""
        config = alembic_config()
        with self._writer.begin() as connection:
            if not self.is_sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK + 1})
            config.attributes["connection"] = connection
            names = set(connection.dialect.get_table_names(connection))
            if "alembic_version" not in names and (others := names & metadata.tables.keys()):
                what = f"it has a table {min(others)!r} that graphmatch did not make"
                raise _store_error(what, self.name, "Name another file or database.")
            try:
                command.upgrade(config, "head")
            except CommandError as error:  # The revision is unknown.
                revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
                head = ScriptDirectory.from_config(config).get_current_head()
                what = f"it has schema revision {revision}; this graphmatch knows up to {head}"
                remedy = "Upgrade graphmatch to the version that made the store."
                raise _store_error(what, self.name, remedy) from error

    # -- writing ----------------------------------------------------------------------------

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run a work in a transaction of its own; return its result after the commit.

        Parameters
        ----------
        work
            Called in the writing thread. If it raises, its changes are undone. It must be short.

        Raises
        ------
        StoreError
            If nothing can be committed, because the disk is full or the database is gone.
        """
        return await asyncio.wrap_future(self._writing.submit(self._transaction, work))

    def write_now(self, work: Callable[[Connection], T]) -> T:
        """Run a work as `write` does, for a caller in a thread, which waits."""
        return self._writing.submit(self._transaction, work).result()

    def write_later(self, work: Callable[[Connection], object]) -> None:
        """Run a work as `write` does, without waiting; a failure is logged."""
        self._writing.submit(self._transaction, work).add_done_callback(_log_failure)

    def _transaction(self, work: Callable[[Connection], T]) -> T:
        try:
            with self._writer.begin() as connection:
                return work(connection)
        except DBAPIError as error:
            if not is_outage(error):
                raise
            what = f"nothing was written: {_reason(error)}"
            raise _store_error(what, self.name, error) from error

    # -- reading ----------------------------------------------------------------------------

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run a work that only reads, in a thread; it sees all earlier commits."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reading, self.read_now, work)

    def read_now(self, work: Callable[[Connection], T]) -> T:
        """Run a work as `read` does, for a caller in a thread, which waits.

        Raises
        ------
        StoreError
            If the database is gone.
        """
        try:
            with self._readers.connect() as connection:
                return work(connection)
        except SQLAlchemyError as error:
            raise _store_error(f"cannot be read: {_reason(error)}", self.name, error) from error


def _log_failure(done: Future[Any]) -> None:
    if (error := done.exception()) is not None:
        log.error("%s", error)


def alembic_config() -> Config:
    """Return the configuration of Alembic with the place of the migrations."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    return config


def counted(connection: Connection, key: str, by: int = 1) -> int:
    """Raise a counter and return it; no other transaction raises it before this one ends.

    With PostgreSQL, the commit notifies the other processes.
    """
    raising = _RAISE if connection.dialect.name == "sqlite" else _RAISE_AND_NOTIFY
    return int(connection.execute(raising, {"counted": key, "by": by}).scalar_one())


_RAISE = text(
    """
    INSERT INTO sequences (key, value) VALUES (:counted, :by)
    ON CONFLICT (key) DO UPDATE SET value = sequences.value + excluded.value RETURNING value
    """
)
_RAISE_AND_NOTIFY = text(f"{_RAISE}, pg_notify('{CHANNEL}', key)")
_VALUE = text("SELECT value FROM sequences WHERE key = :counted")


def counter(connection: Connection, key: str) -> int:
    """Return a counter; 0 if it was never raised."""
    return int(connection.scalar(_VALUE, {"counted": key}) or 0)


def insert_many(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows with equal keys. Their values are numbers, texts and bytes.

    SQLAlchemy converts each value of a row, which costs more time than the database needs.
    """
    connection.exec_driver_sql(_insertion(connection.dialect, table, tuple(rows[0])), rows)


@lru_cache
def _insertion(dialect: Dialect, table: Table, columns: Sequence[str]) -> str:
    return str(table.insert().compile(dialect=dialect, column_keys=columns))


_REMEDIES = (
    ("(?i)malformed", "The file is damaged: restore a backup."),
    ("not a database", "Name a file that graphmatch made, or one that does not exist."),
    ("(?i)disk is full|No space|disk I/O", "Make room on the disk; try again."),
    ("(?i)read-?only", "Make the file and its folder writable, or name another file."),
    ("(?i)permission denied|unable to open", "Check the permissions of the file and its folder."),
    ("^(Not a directory|File exists|Is a directory)", "Name a file in a folder."),
    ("password|authentication", "Check the user and the password in the URL."),
    ("role .* does not exist", "Check the user in the URL, or create it: `createuser`."),
    ("database .* does not exist", "Check the name in the URL, or create it: `createdb`."),
    ("resolve host|translate host|Name or service", "Check the host in the URL."),
    ("", "Check that the database runs, and the host and port in the URL; try again."),
)
"""Pairs of a regular expression for the database's message, and a remedy."""


def _store_error(what: str, where: str, remedy: str | Exception) -> StoreError:
    """Return an error; an exception of the database determines the remedy."""
    if isinstance(remedy, Exception):
        reason = _reason(remedy)
        remedy = next(helps for cause, helps in _REMEDIES if re.search(cause, reason))
    return StoreError(Problem(what, Place(where), remedy))


def _reason(error: Exception) -> str:
    """Return the database's message, without the statement and its values."""
    own = getattr(error, "orig", None) or getattr(error, "strerror", None) or error
    return str(own).strip().splitlines()[0].rstrip(".") if str(own).strip() else type(own).__name__


def _locked_file(database: str, name: str) -> int | None:
    """Create the SQLite file if it is missing, and lock it; return the lock's file descriptor.

    Only the owner may read the database and the files next to it (``-wal``, ``-shm``), which SQLite
    creates with the permissions of the database.
    """
    if not database or database == ":memory:":
        what = "a database in memory does not last"
        raise _store_error(what, name, "Give the name of a file.")
    path = Path(database)
    lock = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(ImportError):  # Windows has no fcntl.
            from fcntl import LOCK_EX, LOCK_NB, flock

            lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            flock(lock, LOCK_EX | LOCK_NB)
        # Nothing in this process may have the database open: closing it here ends SQLite's locks.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        if lock is not None:
            os.close(lock)
        if isinstance(error, BlockingIOError):
            remedy = "Stop that process, or use PostgreSQL, which several processes can share."
            raise _store_error("another process has it open", name, remedy) from error
        raise _store_error(f"cannot be opened: {_reason(error)}", name, error) from error
    for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        if file.exists() and file.stat().st_mode & 0o077:
            try:
                file.chmod(0o600)
            except PermissionError:
                log.warning("%s: other users can read it; its owner should run chmod 600", file)
    return lock


def _script(sql: str) -> Callable[[Any, object], None]:
    """Return a listener that executes statements on a new connection to SQLite."""
    return lambda connection, _: connection.executescript(sql)


def _statement(sql: str) -> Callable[[Connection], None]:
    """Return a listener that executes a statement."""

    def execute(connection: Connection) -> None:
        connection.exec_driver_sql(sql)

    return execute


def _refuse_nul(
    _: Connection, __: object, ___: str, values: Any, ____: object, is_many: bool
) -> None:
    """Refuse U+0000 in texts: PostgreSQL cannot store it, so a backup could not move there."""
    for row in values if is_many else [values]:
        for name, value in row.items():
            if isinstance(value, str) and "\0" in value:
                what = f"a text has a NUL (U+0000): {name}"
                raise InputError(Problem(what, Place("the store"), "Leave the NUL out."))
