"""Dead letters: records that a background task could not process in three attempts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import func, insert, select

from graphmatch.broker.db.store import Store
from graphmatch.broker.db.tables import dead_letters
from graphmatch.broker.models.times import millis
from semantic.clock import Clock

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping


def dead_letter_writer(store: Store, clock: Clock) -> Callable[[str, str, str], None]:
    """Return the function that inserts a dead letter for the supervisor, without waiting."""

    def write(task: str, record: str, error: str) -> None:
        at = millis(clock())
        store.write_later(partial(add_dead_letter, task=task, record=record, error=error, at=at))

    return write


def add_dead_letter(db: Connection, task: str, record: str, error: str, at: int) -> None:
    """Insert a dead letter; `at` is in milliseconds since 1970."""
    texts = {"task": task, "record": record, "error": error}
    values = {name: text.replace("\0", "\ufffd") for name, text in texts.items()}
    db.execute(insert(dead_letters).values(at=at, **values))


def newest_dead_letters(db: Connection, limit: int = 100) -> Sequence[RowMapping]:
    """Return the newest dead letters, newest first."""
    newest = select(dead_letters).order_by(dead_letters.c.id.desc()).limit(limit)
    return db.execute(newest).mappings().all()


def count_dead_letters(db: Connection) -> int:
    """Return the number of dead letters."""
    return db.scalar(select(func.count()).select_from(dead_letters)) or 0
