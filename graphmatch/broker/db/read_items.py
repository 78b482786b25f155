"""The page's list of matches, with one entry per item, and the items that an owner has read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import exists, insert, literal, select

from graphmatch.broker.db.queries import LISTED
from graphmatch.broker.db.tables import matches, publications, read_items, subscriptions

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, RowMapping, Select

_MATCHES = 1_000
"""Maximum number of matches of all entries of a list."""
_MARKED = 10_000
"""Maximum number of matches whose items are marked as read at once, the newest first."""


@dataclass(slots=True)
class Entry:
    """An item with its matches, the newest first.

    Items with the same link are one entry, because a feed may have several addresses.
    """

    item: RowMapping
    matches: list[RowMapping]
    is_read: bool

    @property
    def last(self) -> int:
        """Number of the newest match."""
        return int(self.matches[0]["seq"])


def entries(
    db: Connection, owner: int, conditions: Sequence[ColumnElement[bool]]
) -> tuple[list[Entry], int | None]:
    """Return the newest entries of an owner's matches that meet conditions, the newest first.

    The second value is the number of the oldest match if there may be older ones.
    """
    table, names = matches.c, ("id", "title", "link", "summary")
    subscribed = (subscriptions.c.id.label("subscription"), subscriptions.c.name)
    is_read = _is_read(owner, table.publication).label("is_read")
    query = (
        select(*table["seq", "matched_at", "publication", "sources"], *subscribed, is_read)
        .add_columns(*(publications.c[name] for name in names))
        .join(publications, publications.c.seq == table.publication)
        .join(subscriptions, subscriptions.c.number == table.subscription)
        .where(subscriptions.c.owner == owner, *conditions)
    )
    found: dict[object, Entry] = {}
    oldest: int | None = None
    rows = db.execute(query.order_by(table.seq.desc()).limit(_MATCHES)).mappings().all()
    for row in rows:
        key = row["link"] or row["publication"]
        if key not in found and len(found) == LISTED:
            return list(found.values()), oldest
        entry = found.setdefault(key, Entry(row, [], False))
        entry.is_read |= row["is_read"]
        if all(row["subscription"] != one["subscription"] for one in entry.matches):
            entry.matches.append(row)
        oldest = row["seq"]
    return list(found.values()), oldest if len(rows) == _MATCHES else None


def _is_read(owner: int, publication: ColumnElement[int]) -> ColumnElement[bool]:
    return exists().where(read_items.c.owner == owner, read_items.c.publication == publication)


def matched_after(seq: int) -> ColumnElement[bool]:
    """Return the condition of matches whose item matched after another match."""
    return matches.c.publication.in_(select(matches.c.publication).where(matches.c.seq > seq))


def mark_read(db: Connection, owner: int, publication: int) -> None:
    """Mark an item as read."""
    table = publications.c
    _mark(db, owner, select(table.seq.label("publication")).where(table.seq == publication))


def mark_all_read(db: Connection, owner: int, until: int) -> None:
    """Mark the items of an owner's newest matches as read, up to the number of a match."""
    newest = (
        select(matches.c.publication)
        .join(subscriptions, subscriptions.c.number == matches.c.subscription)
        .where(subscriptions.c.owner == owner, matches.c.seq <= until)
    )
    _mark(db, owner, newest.order_by(matches.c.seq.desc()).limit(_MARKED))


def _mark(db: Connection, owner: int, query: Select[tuple[int]]) -> None:
    seq = query.subquery().c.publication
    unread = select(seq, literal(owner)).where(~_is_read(owner, seq)).distinct()
    db.execute(insert(read_items).from_select(["publication", "owner"], unread))
