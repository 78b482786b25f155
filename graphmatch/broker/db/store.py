"""The store of the broker: all acknowledged data, in SQLite or PostgreSQL.

One thread writes. Works that wait at the same time are committed together (group commit), and their
callers continue after that commit. With SQLite's ``synchronous=FULL`` and PostgreSQL's defaults, a
committed work survives a power cut. If one of them fails, the transaction is undone and repeated
with a savepoint for each work, so that it does not affect the others. Readers have their own
connections, which cannot write.

Cost: some 380 commits per second on a small disk, each of up to `GROUP_SIZE` works.

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
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import URL, Connection, bindparam, create_engine, event, make_url, select, text
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    ProgrammingError,
    SQLAlchemyError,
)
from sqlalchemy.pool import QueuePool, StaticPool

from graphmatch.broker.db.tables import metadata, sequences
from semantic.errors import GraphMatchError, InputError, Place, Problem, pip_install

log = logging.getLogger("graphmatch.broker")

GROUP_SIZE = 200
"""Maximum number of works in one transaction."""
READERS = 4
"""Number of connections that read."""
_LOCK = 0x676D
_BUSY_SECONDS = 30
_OPTIONS: dict[str, Any] = {"pool_pre_ping": True, "pool_recycle": 300}
"""Options of connections to PostgreSQL."""
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


@dataclass(slots=True)
class _Work(Generic[T]):
    run: Callable[[Connection], T]
    done: Future[T]
    result: T | None = None
    error: Exception | None = None


class _KeepError:
    """A context that stores the error of a work, unless the error is an outage."""

    def __init__(self, work: _Work[Any]) -> None:
        self._work = work

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        is_lost = isinstance(error, DBAPIError) and is_outage(error)
        if not isinstance(error, Exception) or is_lost:
            return False
        self._work.error = error
        return True


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
        self._lock: int | None = None
        if self.is_sqlite:
            self._lock = _locked_file(self._url.database or "", self.name)
            self._writer = create_engine(self._url, poolclass=StaticPool)
            self._readers = create_engine(self._url, poolclass=QueuePool, pool_size=READERS)
            for engine, connected, begin in (
                (self._writer, _sqlite_writer, "BEGIN IMMEDIATE"),
                (self._readers, _sqlite_reader, "BEGIN"),
            ):
                event.listen(engine, "connect", connected)
                event.listen(engine, "begin", _statement(begin))
        elif self._url.get_backend_name() == "postgresql":
            self._writer = self._postgresql(pool_size=1, max_overflow=0)
            self._readers = self._postgresql(pool_size=READERS)
            lock = f"SELECT pg_advisory_xact_lock({_LOCK})"
            event.listen(self._writer, "begin", _statement(lock))
            event.listen(self._readers, "begin", _read_only)
        else:
            what = f"{self._url.get_backend_name()} is not supported"
            raise _store_error(what, self.name, "Use postgresql:// or the name of a file.")
        event.listen(self._writer, "before_cursor_execute", _refuse_nul)
        self._writing = ThreadPoolExecutor(1, "store-writer")
        self._reading = ThreadPoolExecutor(READERS, "store-reader")
        self._waiting: list[_Work[Any]] = []
        self._guard = Lock()
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
        """Run a work in the next transaction; return its result after the commit.

        Parameters
        ----------
        work
            Called in the writing thread. If it raises, its changes are undone. It must be short,
            and may be called again after all its changes were undone.

        Raises
        ------
        StoreError
            If nothing can be committed, because the disk is full or the database is gone.
        """
        return await asyncio.wrap_future(self._queue(work))

    def write_now(self, work: Callable[[Connection], T]) -> T:
        """Run a work as `write` does, for a caller in a thread, which waits."""
        return self._queue(work).result()

    def write_later(self, work: Callable[[Connection], object]) -> None:
        """Run a work as `write` does, without waiting; a failure is logged."""
        self._queue(work).add_done_callback(_log_failure)

    def _queue(self, work: Callable[[Connection], T]) -> Future[T]:
        queued = _Work(work, Future[T]())
        with self._guard:
            self._waiting.append(queued)
        self._writing.submit(self._commit)
        return queued.done

    def _commit(self) -> None:
        """Run waiting works in one transaction, and then pass on their results."""
        with self._guard:
            works, self._waiting = self._waiting[:GROUP_SIZE], self._waiting[GROUP_SIZE:]
        # Skip the works of callers that were cancelled; the others cannot be cancelled from here.
        works = [work for work in works if work.done.set_running_or_notify_cancel()]
        if not works:
            return  # An earlier commit included them.
        try:
            if not self._together(works, has_savepoints=False):
                self._together(works, has_savepoints=True)
        except SQLAlchemyError as error:
            lost = _store_error(f"nothing was written: {_reason(error)}", self.name, error)
            lost.__cause__ = error
            for work in works:
                work.error = lost
        for work in works:
            if work.error is not None:
                work.done.set_exception(work.error)
            else:
                work.done.set_result(work.result)

    def _together(self, works: Sequence[_Work[Any]], *, has_savepoints: bool) -> bool:
        """Run works in one transaction; return False if others were undone by a failure."""
        with self._writer.connect() as connection, connection.begin() as transaction:
            for work in works:
                work.error = None
                savepoint = connection.begin_nested() if has_savepoints else nullcontext()
                with _KeepError(work), savepoint:
                    work.result = work.run(connection)
                if work.error is not None and not has_savepoints:
                    transaction.rollback()
                    return len(works) == 1
        return True

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
    """Raise a counter and return it; no other transaction raises it before this one ends."""
    value = connection.scalar(_RAISE, {"counted": key, "by": by})
    if value is None:
        connection.execute(sequences.insert().values(key=key, value=by))
        return by
    return int(value)


_RAISE = (
    sequences.update()
    .where(sequences.c.key == bindparam("counted"))
    .values(value=sequences.c.value + bindparam("by"))
    .returning(sequences.c.value)
)
_VALUE = select(sequences.c.value).where(sequences.c.key == bindparam("counted"))


def counter(connection: Connection, key: str) -> int:
    """Return a counter; 0 if it was never raised."""
    return int(connection.scalar(_VALUE, {"counted": key}) or 0)


_REMEDIES = (
    ("(?i)malformed", "The file is damaged: restore a backup."),
    ("not a database", "Name a file that graphmatch made, or one that does not exist."),
    ("(?i)disk is full|No space|disk I/O", "Make room on the disk; try again."),
    ("(?i)read-?only", "Make the file and its folder writable, or name another file."),
    ("(?i)permission denied|unable to open", "Check the permissions of the file and its folder."),
    ("^(Not a directory|File exists|Is a directory)", "Name a file in a folder that exists."),
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
    if path.exists() and not path.is_file():
        what = "it is a folder" if path.is_dir() else "it is not a file"
        raise _store_error(what, name, "Name a file.")
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


def _sqlite_writer(connection: Any, _: object) -> None:
    connection.isolation_level = None  # SQLAlchemy begins transactions; savepoints need that.
    busy = f"busy_timeout={_BUSY_SECONDS * 1000}"
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", busy):
        connection.execute(f"PRAGMA {pragma}")


def _sqlite_reader(connection: Any, _: object) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA query_only=ON")
    connection.execute(f"PRAGMA busy_timeout={_BUSY_SECONDS * 1000}")


def _statement(sql: str) -> Callable[[Connection], None]:
    """Return a listener that executes a statement."""

    def execute(connection: Connection) -> None:
        connection.exec_driver_sql(sql)

    return execute


def _read_only(connection: Connection) -> None:
    with suppress(SQLAlchemyError):
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")


def _refuse_nul(
    _: Connection, __: object, ___: str, values: Any, context: Any, is_many: bool
) -> None:
    """Refuse U+0000 in texts: PostgreSQL cannot store it, so a backup could not move there."""
    for row in values if is_many else [values]:
        for number, value in enumerate(row.values() if isinstance(row, dict) else row):
            if isinstance(value, str) and "\0" in value:
                names = context.compiled.positiontup or list(row)
                what = f"a text has a NUL (U+0000): {names[number]}"
                raise InputError(Problem(what, Place("the store"), "Leave the NUL out."))
