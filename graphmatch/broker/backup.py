"""Backup and restore: the whole store as one compressed file, from SQLite and PostgreSQL alike.

The file is JSON Lines, compressed by gzip: first what it is, then a row a line, each table after
those that it refers to. All rows are of one moment (one transaction); the service may run
meanwhile. A backup of SQLite can be restored into PostgreSQL, and the other way: that is how one
moves. Tokens and tickets are in it as digests only; the secrets of webhooks and of WebSub are in it
as they are, so keep it as safe as the store.

Limits: a backup is restored by the version that wrote it, or by a later one.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Table, func, insert, select, text

from graphmatch.broker.store import Store, StoreError, alembic_config
from graphmatch.broker.tables import metadata
from semantic.errors import Place, Problem

_KIND = "graphmatch broker"
_AT_ONCE = 1000


def backup(store: Store, path: Path) -> int:
    """Write all rows of a store to a file; return how many.

    The file takes its name when it is whole: an older one of the same name stays until then.

    Raises
    ------
    StoreError
        When the store cannot be read, or the file not be written.
    """
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with (
            open(beside, "xb", opener=partial(os.open, mode=0o600)) as raw,
            gzip.open(raw, "wt", encoding="utf-8", compresslevel=6) as file,
        ):
            count = store.read_now(lambda db: _written(db, file))
        beside.replace(path)
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise _backup_error(what, path, "Make room, or name another file.") from error
    finally:
        beside.unlink(missing_ok=True)
    return count


def _written(db: Connection, file: Any) -> int:
    if db.dialect.name == "postgresql":
        db.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))
    revision = db.scalar(text("SELECT version_num FROM alembic_version"))
    file.write(json.dumps({"kind": _KIND, "revision": revision}) + "\n")
    count = 0
    for table in metadata.sorted_tables:
        rows = db.execution_options(yield_per=_AT_ONCE).execute(select(table)).mappings()
        for row in rows:
            values = {name: _said(value) for name, value in row.items()}
            file.write(json.dumps([table.name, values], ensure_ascii=False) + "\n")
            count += 1
    return count


def restore(path: Path, store: Store) -> int:
    """Read a backup into an empty store; return how many rows.

    Raises
    ------
    StoreError
        When the file is none, is damaged or of a later version, or the store is not empty.
    """
    return store.write_now(partial(_restored, path=path))


def _restored(db: Connection, path: Path) -> int:
    with _opened(path) as lines:
        header = _line(next(lines, "null"), path)
        if not isinstance(header, dict) or header.get("kind") != _KIND:
            raise _backup_error("no backup of a broker", path, "Name a file that `backup` wrote.")
        scripts = ScriptDirectory.from_config(alembic_config())
        known = {one.revision for one in scripts.walk_revisions()}
        if header.get("revision") not in known:
            raise _backup_error("a backup of a later version", path, "Install that version.")
        return _inserted(db, lines, path)


def _inserted(db: Connection, lines: Iterator[str], path: Path) -> int:
    if any(db.scalar(select(func.count()).select_from(one)) for one in metadata.sorted_tables):
        raise _backup_error("the store is not empty", path, "Restore into a new one.")
    count = 0
    table: Table | None = None
    rows: list[dict[str, Any]] = []

    def write() -> None:
        if table is not None and rows:
            db.execute(insert(table), rows)
        rows.clear()

    for line in lines:
        name, values = _line(line, path)
        if name not in metadata.tables:
            raise _backup_error(
                f"a table {name!r} that is unknown", path, "Install a later version."
            )
        if table is None or name != table.name or len(rows) >= _AT_ONCE:
            write()
            table = metadata.tables[name]
        rows.append({key: _read(value) for key, value in values.items()})
        count += 1
    write()
    if db.dialect.name == "postgresql":
        for one in metadata.sorted_tables:
            for column in one.primary_key:
                _numbered_on(db, one.name, column.name)
    return count


def _numbered_on(db: Connection, table: str, column: str) -> None:
    """Have PostgreSQL number new rows behind those that were restored."""
    sequence = db.scalar(
        text("SELECT pg_get_serial_sequence(:table, :column)"), {"table": table, "column": column}
    )
    if sequence is not None:
        most = f'SELECT setval(:name, GREATEST((SELECT max("{column}") FROM "{table}"), 1))'  # noqa: S608
        db.execute(text(most), {"name": sequence})


@contextmanager
def _opened(path: Path) -> Iterator[Iterator[str]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield iter(file)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.strerror is not None:
            what = f"cannot be read: {error.strerror}"
            raise _backup_error(what, path, "Check the name and the permissions.") from error
        raise _backup_error(
            "damaged: it ends early, or is no backup", path, "Take another one."
        ) from error


def _line(line: str, path: Path) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise _backup_error("damaged: a line is no JSON", path, "Take another one.") from error


def _said(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _read(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return base64.b64decode(value["base64"])
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def _backup_error(what: str, path: Path, remedy: str) -> StoreError:
    return StoreError(Problem(what, Place(str(path)), remedy))
