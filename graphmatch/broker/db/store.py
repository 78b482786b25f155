"""The broker's store: what is acknowledged is in it, in SQLite or PostgreSQL.

One thread writes. What several callers ask for at once is committed together (group commit), and
each is told after that commit: with SQLite's ``synchronous=FULL`` and PostgreSQL's defaults an
answer outlives a power cut. Where one of them fails, all is undone and done again with a savepoint
each: it does not hold up the others. Readers have connections of their own, which cannot write.

Cost: some 380 commits a second on a small disk, each of up to `GROUP` works.

Limits: one process has a SQLite file. Of processes that share a PostgreSQL database one commits
at a time, as all count (`counted`): they would wait for each other's counters in any case, and in
another order for ever. So what a work reads still holds when it is committed.
SQLite before 3.51.3 can damage a file that several connections write and checkpoint
(https://sqlite.org/wal.html): here one does.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, bindparam, create_engine, event, make_url, select, text
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

GROUP = 200
"""So many works are committed together, at most."""
READERS = 4
_LOCK = 0x676D
_BUSY_SECONDS = 30
T = TypeVar("T")


class StoreError(GraphMatchError):
    """The store cannot be opened, or cannot be written: nothing was acknowledged."""


def is_outage(error: BaseException | None) -> bool:
    """Whether an error says that the store cannot be used, and not that a value is wrong."""
    if isinstance(error, DBAPIError):
        own = isinstance(error, IntegrityError | DataError | ProgrammingError)
        own |= str(getattr(error.orig, "sqlstate", "")).startswith("54")  # A limit is exceeded.
        return error.connection_invalidated or not own
    return isinstance(error, StoreError)


@dataclass(slots=True)
class _Work(Generic[T]):
    run: Callable[[Connection], T]
    told: Future[T]
    result: T | None = None
    error: Exception | None = None


class _OwnFault:
    """Keeps what a work raises for who asked for it, unless it tells that the database is gone."""

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
    """A database, opened and brought up to date.

    Parameters
    ----------
    url
        The name of a SQLite file, which is made where it is not there, or the URL of a database:
        ``postgresql://user@host/name``, ``sqlite:///file``.
    read_only
        Whether it is only read, beside a process that may have it open: it has to be there.

    Raises
    ------
    StoreError
        When it cannot be opened, is held by another process, or is of a later version.

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

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        if "://" not in url:
            url = f"sqlite:///{url}"
        try:
            self._url = make_url(url)
        except ArgumentError as error:
            what = "not the URL of a database"
            raise _store_error(
                what, url, "Write postgresql://user@host/name or a file's name."
            ) from error
        if self._url.get_backend_name() not in ("sqlite", "postgresql"):
            what = f"no database is called {self._url.get_backend_name()}"
            raise _store_error(
                what, self._url.render_as_string(), "Use postgresql:// or a file's name."
            )
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        self.name = self._url.render_as_string(hide_password=True)
        self._lock: int | None = None
        if self.is_sqlite:
            file = Path(self._url.database or "")
            if file.exists() and not file.is_file():
                what = "it is a folder" if file.is_dir() else "it is not a file"
                raise _store_error(what, self.name, "Name a file.")
            if not read_only:
                self._hold()
            elif not Path(self._url.database or "").is_file():
                raise _store_error("there is no such file", self.name, "Check the name.")
            self._writer = create_engine(self._url, poolclass=StaticPool)
            self._readers = create_engine(self._url, poolclass=QueuePool, pool_size=READERS)
            event.listen(self._writer, "connect", _sqlite_writer)
            event.listen(self._writer, "begin", _begin)
            event.listen(self._readers, "connect", _sqlite_reader)
            event.listen(self._readers, "begin", _begin_reading)
        else:
            if self._url.drivername == "postgresql":
                self._url = self._url.set(drivername="postgresql+psycopg")
            options: dict[str, Any] = {"pool_pre_ping": True, "pool_recycle": 300}
            try:
                self._writer = create_engine(self._url, pool_size=1, max_overflow=0, **options)
            except ImportError as error:
                remedy = f"Install it: {pip_install('postgresql')}"
                raise _store_error(
                    f"PostgreSQL needs psycopg: {error}", self.name, remedy
                ) from error
            self._readers = create_engine(self._url, pool_size=READERS, **options)
            event.listen(self._writer, "begin", _one_at_a_time)
            event.listen(self._readers, "begin", _read_only)
        event.listen(self._writer, "before_cursor_execute", _refuse_nul)
        self._writing = ThreadPoolExecutor(1, "store-writer")
        self._reading = ThreadPoolExecutor(READERS, "store-reader")
        self._waiting: list[_Work[Any]] = []
        self._guard = Lock()
        if read_only:
            return
        try:
            self._writing.submit(self._upgrade).result()
        except SQLAlchemyError as error:
            self.close()
            raise _store_error(f"cannot be opened: {_reason(error)}", self.name, error) from error
        except StoreError:
            self.close()
            raise

    def close(self) -> None:
        """Finish what is asked for, and let the database go."""
        self._writing.shutdown()
        self._reading.shutdown()
        self._writer.dispose()
        self._readers.dispose()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _hold(self) -> None:
        """Have no other process open the same SQLite file."""
        database = self._url.database
        if not database or database == ":memory:":
            what = "a database in memory keeps nothing"
            raise _store_error(what, self.name, "Give the name of a file.")
        try:
            from fcntl import LOCK_EX, LOCK_NB, flock
        except ImportError:  # pragma: no cover -- there is no such lock on Windows
            return
        lock = Path(database).with_name(Path(database).name + ".lock")
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _store_error(f"cannot be opened: {_reason(error)}", self.name, error) from error
        try:
            flock(self._lock, LOCK_EX | LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock)
            remedy = "Stop that one, or use PostgreSQL, which several processes may share."
            raise _store_error("another process has it open", self.name, remedy) from error
        try:
            _keep_private(Path(database))
        except OSError as error:
            raise _store_error(f"cannot be opened: {_reason(error)}", self.name, error) from error

    def _upgrade(self) -> None:
        """Bring the tables up to this version."""
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
            except CommandError as error:  # the revision is unknown
                found = connection.scalar(text("SELECT version_num FROM alembic_version"))
                head = ScriptDirectory.from_config(config).get_current_head()
                what = f"it has schema revision {found}; this graphmatch knows up to {head}"
                remedy = "Upgrade graphmatch to the version that made the store."
                raise _store_error(what, self.name, remedy) from error

    # -- writing ----------------------------------------------------------------------------

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Do a work in the next commit; return what it returns, once it is committed.

        Parameters
        ----------
        work
            Called in the writing thread: what it did is undone where it raises. It must be short,
            and may be called again after all was undone.

        Raises
        ------
        StoreError
            When it cannot be committed: the disk is full, the database is gone.
        """
        return await asyncio.wrap_future(self._asked(work))

    def write_now(self, work: Callable[[Connection], T]) -> T:
        """Do the same for a caller in a thread, who waits."""
        return self._asked(work).result()

    def _asked(self, work: Callable[[Connection], T]) -> Future[T]:
        one = _Work(work, Future[T]())
        with self._guard:
            self._waiting.append(one)
        self._writing.submit(self._commit)
        return one.told

    def _commit(self) -> None:
        """Do what is waiting in one transaction, and then tell those who asked."""
        with self._guard:
            taken, self._waiting = self._waiting[:GROUP], self._waiting[GROUP:]
        # whoever has gone meanwhile asks for nothing; from here on nobody can go
        taken = [one for one in taken if one.told.set_running_or_notify_cancel()]
        if not taken:
            return  # a commit before had it
        try:
            if not self._together(taken):
                with self._writer.begin() as connection:
                    for one in taken:
                        with _OwnFault(one), connection.begin_nested():
                            one.result = one.run(connection)
        except SQLAlchemyError as error:
            what = f"nothing was written: {_reason(error)}"
            lost = _store_error(what, self.name, error)
            lost.__cause__ = error
            for one in taken:
                one.error = lost
        for one in taken:
            if one.error is not None:
                one.told.set_exception(one.error)
            else:
                one.told.set_result(one.result)

    def _together(self, taken: Sequence[_Work[Any]]) -> bool:
        """Do works in one transaction without savepoints; undo all where one of them fails."""
        failed = False
        with self._writer.connect() as connection, connection.begin() as transaction:
            for one in taken:
                with _OwnFault(one):
                    one.result = one.run(connection)
                if one.error is not None:
                    one.error, failed = None, True
                    transaction.rollback()
                    break
        return not failed

    # -- reading ----------------------------------------------------------------------------

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Do a work that only reads, in a thread: it sees all that was committed before."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reading, self.read_now, work)

    def read_now(self, work: Callable[[Connection], T]) -> T:
        """Do the same for a caller in a thread, who waits.

        Raises
        ------
        StoreError
            When the database is gone.
        """
        try:
            with self._readers.connect() as connection:
                return work(connection)
        except SQLAlchemyError as error:
            raise _store_error(f"cannot be read: {_reason(error)}", self.name, error) from error


def alembic_config() -> Config:
    """Return where Alembic finds the migrations."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    return config


def counted(connection: Connection, key: str, by: int = 1) -> int:
    """Raise a counter and return it; nobody else counts until this transaction is committed."""
    found = connection.scalar(_MORE, {"counted": key, "by": by})
    if found is None:
        connection.execute(sequences.insert().values(key=key, value=by))
        return by
    return int(found)


_MORE = (
    sequences.update()
    .where(sequences.c.key == bindparam("counted"))
    .values(value=sequences.c.value + bindparam("by"))
    .returning(sequences.c.value)
)


def counter(connection: Connection, key: str) -> int:
    """Return a counter; 0 where it was never raised."""
    return int(connection.scalar(select(sequences.c.value).where(sequences.c.key == key)) or 0)


_REMEDIES = (
    ("(?i)malformed", "The file is damaged: restore a backup."),
    ("not a database", "Name a file that graphmatch made, or one that does not exist."),
    ("no such table|relation .* does not exist", "Name a store that graphmatch made."),
    ("(?i)disk is full|No space|disk I/O", "Make room on the disk; try again."),
    ("(?i)read-?only", "Make the file and its folder writable, or name another file."),
    ("(?i)permission denied|unable to open", "Check the permissions of the file and its folder."),
    ("^(Not a directory|File exists|No such file)", "Name a file in a folder that exists."),
    ("password|authentication", "Check the user and the password in the URL."),
    ("role .* does not exist", "Check the user in the URL, or create it: `createuser`."),
    ("database .* does not exist", "Check the name in the URL, or create it: `createdb`."),
    ("resolve host|translate host|Name or service", "Check the host in the URL."),
    ("", "Check that the database runs, and the host and port in the URL; try again."),
)
"""Pairs of a regular expression of the database's message, and what helps."""


def _store_error(what: str, where: str, remedy: str | Exception) -> StoreError:
    """Return an error; that of the database says which remedy helps."""
    if isinstance(remedy, Exception):
        reason = _reason(remedy)
        remedy = next(helps for cause, helps in _REMEDIES if re.search(cause, reason))
    return StoreError(Problem(what, Place(where), remedy))


def _reason(error: Exception) -> str:
    """Return what the database says, without the statement and its values."""
    own = getattr(error, "orig", None) or getattr(error, "strerror", None) or error
    return str(own).strip().splitlines()[0].rstrip(".") if str(own).strip() else type(own).__name__


def _keep_private(database: Path) -> None:
    """Create the SQLite file if it is missing; let only its owner read it and the files beside it.

    SQLite makes these (``-wal``, ``-shm``) with the permissions of the database. Nothing may have
    the database open in this process: closing it here ends all locks that SQLite has on it.
    """
    os.close(os.open(database, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    for path in (database, *(database.with_name(database.name + end) for end in ("-wal", "-shm"))):
        if path.exists() and path.stat().st_mode & 0o077:
            try:
                path.chmod(0o600)
            except PermissionError:
                log.warning("%s: other users can read it; its owner should run chmod 600", path)


def _sqlite_writer(connection: Any, _: object) -> None:
    connection.isolation_level = None  # SQLAlchemy begins; savepoints need that
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        f"busy_timeout={_BUSY_SECONDS * 1000}",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _begin_reading(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _sqlite_reader(connection: Any, _: object) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA query_only=ON")
    connection.execute(f"PRAGMA busy_timeout={_BUSY_SECONDS * 1000}")


def _refuse_nul(
    _: Connection, __: object, ___: str, given: Any, context: Any, is_many: bool
) -> None:
    """Refuse U+0000 in texts: PostgreSQL cannot store it, so that a backup could not move there."""
    for row in given if is_many else [given]:
        values = row.values() if isinstance(row, dict) else row
        for number, value in enumerate(values):
            if isinstance(value, str) and "\0" in value:
                names = context.compiled.positiontup or list(row)
                what = f"a text has a NUL (U+0000): {names[number]}"
                raise InputError(Problem(what, Place("the store"), "Leave the NUL out."))


def _one_at_a_time(connection: Connection) -> None:
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")


def _read_only(connection: Connection) -> None:
    with suppress(SQLAlchemyError):
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
