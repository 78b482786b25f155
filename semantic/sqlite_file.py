"""SQLite files that graphmatch writes, such as those of ``--seen`` and ``--state``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from semantic.errors import GraphMatchError, Place, Problem

_OWNER = (
    "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) > 0"
    " FROM pragma_application_id, pragma_user_version"
)


class SqliteFileError(GraphMatchError):
    """A SQLite file that cannot be used."""


@contextmanager
def sqlite_errors(path: Path | None) -> Iterator[None]:
    """Turn errors of SQLite in the block into a `SqliteFileError` that names the file."""
    try:
        yield
    except sqlite3.Error as error:
        what, remedy = f"cannot be used as a database: {error}", "Check the name and permissions."
        if "locked" in str(error):
            what, remedy = "another process uses the file", "Wait until that process has ended."
        raise SqliteFileError(Problem(what, Place(str(path)), remedy)) from error


def open_sqlite(
    path: Path | None, application: int, version: int, seconds: float, pragmas: str = ""
) -> sqlite3.Connection:
    """Open a file, which is created if it is missing, and begin a transaction that locks it.

    Parameters
    ----------
    path
        The file; ``None`` for a database in memory.
    application, version
        The numbers that show that the file is ours, and has the tables of this version.
    seconds
        The time to wait for another process that uses the file.

    Raises
    ------
    SqliteFileError
        If the file cannot be used, or is a database of something else.
    """
    with sqlite_errors(path), ExitStack() as on_failure:
        db = sqlite3.connect(path or ":memory:", seconds, isolation_level=None)
        on_failure.callback(db.close)
        db.executescript(f"{pragmas}; BEGIN IMMEDIATE")
        [owner] = db.execute(_OWNER)
        if owner in ((application, version, 1), (0, 0, 0)):
            db.execute(f"PRAGMA application_id = {application}")
            db.execute(f"PRAGMA user_version = {version}")
            on_failure.pop_all()
            return db
    what = "a database of another program, or of another version of graphmatch"
    raise SqliteFileError(Problem(what, Place(str(path)), "Name another file."))
