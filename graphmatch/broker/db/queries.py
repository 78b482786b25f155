"""Queries of the page and of previews; each returns a limited number of rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from sqlalchemy import exists, func, or_, select

from graphmatch.broker.db import tables
from graphmatch.broker.db.store import Store, counter
from graphmatch.broker.db.tables import WAITING, deliveries, matches, publications, subscriptions
from graphmatch.broker.models.stored_publication import StoredPublication
from graphmatch.broker.models.times import time_of

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, RowMapping, Select

LISTED = 50
"""Maximum number of rows of a list."""
RECENT = 2_000
"""Maximum number of publications that a preview reads."""
RECENT_BYTES = 50_000_000
"""Maximum size in bytes of the publications that a preview reads."""
BATCH_SIZE = 200
"""Number of publications per read."""
BATCH_BYTES = 5_000_000
"""Size in bytes of the publications per read."""

Rows = Sequence["RowMapping"]

_OWN_MATCH = matches.c.subscription == subscriptions.c.number
_COUNTED = select(matches.c.seq).where(_OWN_MATCH).limit(10_000).correlate(subscriptions).subquery()
_NEWEST = select(matches.c.matched_at).where(_OWN_MATCH).order_by(matches.c.seq.desc()).limit(1)
MATCHED_AT = _NEWEST.correlate(subscriptions).scalar_subquery().label("last_matched_at")
"""Time of a subscription's last match."""
_MATCH_COUNT = select(func.count()).select_from(_COUNTED).scalar_subquery().label("match_count")
WITH_MATCHES = select(subscriptions, _MATCH_COUNT, MATCHED_AT)
"""Subscriptions with the number of their stored matches, at most 10,000, and the last match."""


def _all(db: Connection, query: Select[Any]) -> Rows:
    return db.execute(query).mappings().all()


def _count(db: Connection, condition: ColumnElement[bool]) -> int:
    return db.scalar(select(func.count()).where(condition)) or 0


# -- Subscriptions ------------------------------------------------------------------------------

_LIVES = subscriptions.c.state != "ended"
SUBSCRIPTION_ORDERS: Mapping[str, ColumnElement[Any]] = {
    "new": subscriptions.c.number.desc(),
    "name": func.lower(subscriptions.c.name),
    "state": subscriptions.c.state,
    "last": MATCHED_AT.desc().nulls_last(),
    "ends": subscriptions.c.expires_at,
}
"""Orders of the list of subscriptions."""


def subscriptions_of(
    db: Connection, owner: int, *, ended: bool = False, words: str = "", order: str = "new"
) -> Rows:
    """Return an owner's subscriptions, either those that live or those that have ended.

    Parameters
    ----------
    words
        Text that the name must contain.
    order
        A key of `SUBSCRIPTION_ORDERS`.
    """
    table = subscriptions.c
    query = WITH_MATCHES.where(table.owner == owner, table.state == "ended" if ended else _LIVES)
    if words:
        query = query.where(table.name.icontains(words, autoescape=True))
    by = SUBSCRIPTION_ORDERS.get(order, SUBSCRIPTION_ORDERS["new"])
    return _all(db, query.order_by(by, table.number.desc()).limit(10 * LISTED))


def living(db: Connection, whose: ColumnElement[bool], limit: int) -> Rows:
    """Return the newest living subscriptions that meet a condition, the oldest of them first."""
    table = subscriptions.c
    query = select(table.number, table.id, table.name, table.created_at, MATCHED_AT)
    query = query.where(whose, _LIVES).order_by(table.number.desc()).limit(limit)
    return _all(db, query)[::-1]


def how_many(db: Connection, whose: ColumnElement[bool]) -> int:
    """Return the number of living subscriptions that meet a condition."""
    return _count(db, whose & _LIVES)


def last_match(db: Connection) -> int:
    """Return the number of the last match."""
    return counter(db, "match")


# -- Publications -------------------------------------------------------------------------------

_NAMES = ("seq", "id", "title", "link", "summary", "source", "received_at", "matched_at", "problem")
_ITEM = select(*(publications.c[name] for name in _NAMES))


def items(db: Connection, *, before: int = 2**62, words: str = "") -> Rows:
    """Return publications, the newest first.

    Parameters
    ----------
    before
        Number of the publication before which the list begins.
    words
        Text that the title must contain, or the id.
    """
    table = publications.c
    query = _ITEM.where(table.seq < before)
    if words:
        query = query.where(or_(table.title.icontains(words, autoescape=True), table.id == words))
    return _all(db, query.order_by(table.seq.desc()).limit(LISTED))


def item(db: Connection, seq: int) -> RowMapping | None:
    """Return a publication with its triples."""
    query = _ITEM.add_columns(publications.c.data).where(publications.c.seq == seq)
    return db.execute(query).mappings().one_or_none()


def stored(row: RowMapping, root: str = "") -> StoredPublication:
    """Return the publication of a row.

    Parameters
    ----------
    root
        Base URL of the broker.
    """
    seq = row["publication"] if "publication" in row else row["seq"]
    received, url = time_of(row["received_at"]), f"{root}/v1/publications/{seq}"
    return StoredPublication(
        row["id"], row["data"], received, row["title"], row["link"], seq, url if root else ""
    )


@dataclass(slots=True)
class Recent:
    """The newest publications, which a thread reads in batches.

    Parameters
    ----------
    most, bytes
        Maximum number of publications, and of their bytes. The first one is always returned.
    root
        Base URL of the broker.
    whole
        Whether all stored publications were returned.
    """

    store: Store
    most: int = RECENT
    bytes: int = RECENT_BYTES
    root: str = ""
    whole: bool = False

    def __iter__(self) -> Iterator[StoredPublication]:
        """Yield the publications, the newest first."""
        table = publications.c
        before, left, room = 2**62, self.most, self.bytes
        while left > 0 and room > 0:
            sizes = select(table.seq, func.length(table.data).label("size"))
            older = sizes.where(table.seq < before).order_by(table.seq.desc())
            rows = self._read(older.limit(min(BATCH_SIZE, left)))
            if not rows:
                self.whole = True
                return
            totals = list(accumulate(row["size"] for row in rows))
            count = max(1, bisect_right(totals, min(BATCH_BYTES, room)))
            batch = [row["seq"] for row in rows[:count]]
            query = _ITEM.add_columns(table.data).where(table.seq.in_(batch))
            for row in self._read(query.order_by(table.seq.desc())):
                yield stored(row, self.root)
            before, left, room = batch[-1], left - count, room - totals[count - 1]

    def _read(self, query: Select[Any]) -> Rows:
        return self.store.read_now(lambda db: _all(db, query))


# -- Deliveries, feeds, health ------------------------------------------------------------------


def deliveries_of(
    db: Connection, owner: int, *conditions: ColumnElement[bool], words: str = ""
) -> Rows:
    """Return deliveries to an owner's sinks that meet conditions, the newest first.

    Parameters
    ----------
    words
        Text that the subscription's name or the host must contain.
    """
    table, name = deliveries.c, subscriptions.c.name
    query = (
        select(deliveries, subscriptions.c.id.label("subscription_id"), name)
        .join(subscriptions, subscriptions.c.number == table.subscription)
        .where(subscriptions.c.owner == owner, *conditions)
    )
    if words:
        query = query.where(or_(*(x.icontains(words, autoescape=True) for x in (name, table.host))))
    return _all(db, query.order_by(table.id.desc()).limit(LISTED))


def kept_feeds(db: Connection) -> list[dict[str, Any]]:
    """Return the stored states of feeds."""
    rows = _all(db, select(*tables.feeds.c["url", "state"]).order_by("url").limit(1000))
    return [{**row["state"], "url": row["url"]} for row in rows]


def counts(db: Connection) -> dict[str, int]:
    """Return the numbers at the top of the health page."""
    return {
        "publications": counter(db, "publication"),
        "not matched yet": _count(db, publications.c.matched_at.is_(None)),
        "active subscriptions": _count(db, subscriptions.c.state == "active"),
        "matches": counter(db, "match"),
        "deliveries waiting": _count(db, WAITING),
    }


def failing(db: Connection, whose: ColumnElement[bool]) -> Rows:
    """Return sinks with a failed attempt and no later delivery, of the subscriptions that live."""
    table, later = deliveries.c, deliveries.alias("later").c
    recovered = exists().where(
        later.subscription == table.subscription, later.state == "delivered", later.id > table.id
    )
    failed = (table.state != "delivered", table.attempt > 0, ~recovered)
    attempts = (
        func.min(table.created_at).label("since"),
        func.sum(table.attempt).label("attempts"),
    )
    responses = (func.max(table.status).label("status"), func.max(table.error).label("error"))
    query = (
        select(table.subscription, table.host, *attempts, *responses)
        .join(subscriptions, subscriptions.c.number == table.subscription)
        .where(whose & _LIVES, *failed)
        .group_by(table.subscription, table.host)
        .limit(10 * LISTED)
    )
    return _all(db, query)


def open_breakers(db: Connection, now: int) -> Rows:
    """Return the hosts in back-off."""
    query = select(tables.circuit_breakers).where(tables.circuit_breakers.c.open_until > now)
    return _all(db, query.order_by("host").limit(LISTED))
