"""What page and API read of the store: rows of lists, each list bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, or_, select

from graphmatch.broker.db.store import Store, counter
from graphmatch.broker.db.tables import (
    circuit_breakers,
    deliveries,
    feeds,
    matches,
    publications,
    subscriptions,
)
from graphmatch.broker.models.findings import FailingSink
from graphmatch.broker.models.stored_publication import StoredPublication
from graphmatch.broker.models.times import time_of

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, RowMapping, Select

LISTED = 50
"""So many rows a list has."""
RECENT = 2_000
"""So many publications questions are asked of, at most."""
RECENT_BYTES = 50_000_000
"""So many bytes of publications, at most: of questions that keep them in memory."""
BATCH_SIZE = 200
"""Publications that are read at once."""
BATCH_BYTES = 5_000_000
"""Bytes of publications that are read at once."""
_FAILING = 3
"""After so many attempts that failed a sink is called failing."""

Rows = Sequence["RowMapping"]

_THEIRS = matches.c.subscription == subscriptions.c.number
_SOME = select(matches.c.seq).where(_THEIRS).limit(10_000).correlate(subscriptions).subquery()
_NEWEST = select(matches).where(_THEIRS).order_by(matches.c.seq.desc()).limit(1)
MATCHED_AT = (
    _NEWEST.with_only_columns(matches.c.matched_at)
    .correlate(subscriptions)
    .scalar_subquery()
    .label("last_matched_at")
)
"""When a subscription matched last."""
WITH_MATCHES = select(
    subscriptions,
    select(func.count()).select_from(_SOME).scalar_subquery().label("match_count"),
    MATCHED_AT,
)
"""Subscriptions, with how many matches are kept of each, 10,000 at most, and when the last was."""


def _all(db: Connection, chosen: Select[Any]) -> Rows:
    return db.execute(chosen).mappings().all()


# -- subscriptions ------------------------------------------------------------------------------


def mine(db: Connection, owner: int, *, ended: bool = False) -> Rows:
    """Return somebody's subscriptions, the newest first: those that live, or have ended."""
    table = subscriptions.c
    state = table.state == "ended" if ended else _LIVES
    chosen = WITH_MATCHES.where(table.owner == owner, state)
    return _all(db, chosen.order_by(table.number.desc()).limit(10 * LISTED))


_LIVES = subscriptions.c.state != "ended"


def living(db: Connection, whose: ColumnElement[bool], most: int) -> Rows:
    """Return the newest subscriptions of a condition that live, the oldest of them first."""
    table = subscriptions.c
    chosen = select(table.number, table.id, table.name, table.created_at, MATCHED_AT)
    chosen = chosen.where(whose, _LIVES).order_by(table.number.desc()).limit(most)
    return _all(db, chosen)[::-1]


def how_many(db: Connection, whose: ColumnElement[bool]) -> int:
    """Return how many subscriptions of a condition live."""
    return db.scalar(select(func.count()).select_from(subscriptions).where(whose, _LIVES)) or 0


def names(
    db: Connection, owner: int | None, numbers: Sequence[int] | None = None
) -> dict[int, Any]:
    """Return ids and names of somebody's subscriptions, or of all, by their numbers."""
    table = subscriptions.c
    chosen = select(table.number, table.id, table.name)
    if owner is not None:
        chosen = chosen.where(table.owner == owner)
    if numbers is not None:
        chosen = chosen.where(table.number.in_(numbers[:500]))
    return {row["number"]: row for row in _all(db, chosen)}


# -- matches ------------------------------------------------------------------------------------

_MATCH = (
    select(
        matches.c.seq,
        matches.c.matched_at,
        matches.c.publication,
        matches.c.generation,
        subscriptions.c.number,
        subscriptions.c.id.label("subscription"),
        subscriptions.c.name,
        subscriptions.c.query,
        subscriptions.c.generation.label("now"),
        publications.c.id,
        publications.c.title,
        publications.c.link,
        publications.c.source,
    )
    .join(publications, publications.c.seq == matches.c.publication)
    .join(subscriptions, subscriptions.c.number == matches.c.subscription)
)


def last_match(db: Connection) -> int:
    """Return the number of the last match of all."""
    return counter(db, "match")


def newest_matches(
    db: Connection, owner: int, *, number: int | None = None, before: int | None = None
) -> Rows:
    """Return matches of somebody's subscriptions, or of one of them, the newest first."""
    chosen = _MATCH.where(subscriptions.c.owner == owner)
    if number is not None:
        chosen = chosen.where(matches.c.subscription == number)
    if before is not None:
        chosen = chosen.where(matches.c.seq < before)
    return _all(db, chosen.order_by(matches.c.seq.desc()).limit(LISTED))


def matches_since(db: Connection, owner: int, since: int, number: int | None) -> Rows:
    """Return the matches after one, the oldest first."""
    chosen = _MATCH.where(subscriptions.c.owner == owner, matches.c.seq > since)
    if number is not None:
        chosen = chosen.where(matches.c.subscription == number)
    return _all(db, chosen.order_by(matches.c.seq).limit(LISTED))


def match(db: Connection, owner: int, seq: int) -> RowMapping | None:
    """Return a match of somebody's, with its publication."""
    chosen = _MATCH.add_columns(publications.c.data, publications.c.received_at)
    chosen = chosen.where(matches.c.seq == seq, subscriptions.c.owner == owner)
    return db.execute(chosen).mappings().one_or_none()


def matches_of(db: Connection, owner: int, publication: int) -> Rows:
    """Return which of somebody's subscriptions matched a publication."""
    chosen = _MATCH.where(matches.c.publication == publication, subscriptions.c.owner == owner)
    return _all(db, chosen.order_by(matches.c.seq).limit(LISTED))


# -- publications -------------------------------------------------------------------------------

_ITEM = select(
    publications.c.seq,
    publications.c.id,
    publications.c.title,
    publications.c.link,
    publications.c.source,
    publications.c.received_at,
    publications.c.matched_at,
    publications.c.problem,
)


def items(db: Connection, *, before: int | None = None, words: str = "") -> Rows:
    """Return publications, the newest first; those with a text in title or id."""
    table = publications.c
    chosen = _ITEM
    if before is not None:
        chosen = chosen.where(table.seq < before)
    if words:
        chosen = chosen.where(or_(table.title.icontains(words, autoescape=True), table.id == words))
    return _all(db, chosen.order_by(table.seq.desc()).limit(LISTED))


def item(db: Connection, seq: int) -> RowMapping | None:
    """Return a publication with its triples."""
    chosen = _ITEM.add_columns(publications.c.data).where(publications.c.seq == seq)
    return db.execute(chosen).mappings().one_or_none()


def seqs_of(db: Connection, ids: Sequence[str]) -> dict[str, int]:
    """Return the numbers of publications by their ids; of several the newest."""
    table = publications.c
    chosen = select(table.id, func.max(table.seq)).where(table.id.in_(ids)).group_by(table.id)
    return {row[0]: int(row[1]) for row in db.execute(chosen)}


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
    """Publications, the newest first, read as they are needed; in a thread.

    Parameters
    ----------
    most, bytes
        How many, and of how many bytes in all; the first is always among them.
    whole
        Whether all that is stored was yielded.
    """

    store: Store
    most: int = RECENT
    bytes: int = RECENT_BYTES
    root: str = ""
    whole: bool = False

    def __iter__(self) -> Iterator[StoredPublication]:
        """Yield them."""
        table = publications.c
        before, left, room = 2**62, self.most, self.bytes
        while True:
            sizes = select(table.seq, func.length(table.data).label("size"))
            older = sizes.where(table.seq < before).order_by(table.seq.desc())
            sized = self._read(older.limit(BATCH_SIZE))
            if not sized:
                self.whole = True
                return
            some: list[int] = []
            size = 0
            for row in sized:
                size += row["size"]
                if some and (len(some) == left or size > min(BATCH_BYTES, room)):
                    size -= row["size"]
                    break
                some.append(row["seq"])
            chosen = _ITEM.add_columns(table.data).where(table.seq.in_(some))
            for row in self._read(chosen.order_by(table.seq.desc())):
                yield stored(row, self.root)
            before, left, room = some[-1], left - len(some), room - size
            if left <= 0 or room <= 0:
                return

    def _read(self, chosen: Select[Any]) -> Rows:
        return self.store.read_now(lambda db: _all(db, chosen))


# -- deliveries, feeds, health ------------------------------------------------------------------


def sent(db: Connection, owner: int, *, state: str = "", number: int | None = None) -> Rows:
    """Return deliveries of somebody's, the newest first."""
    table = deliveries.c
    chosen = (
        select(deliveries, subscriptions.c.id.label("subscription_id"), subscriptions.c.name)
        .join(subscriptions, subscriptions.c.number == table.subscription)
        .where(subscriptions.c.owner == owner)
    )
    if state:
        chosen = chosen.where(table.state == state)
    if number is not None:
        chosen = chosen.where(table.subscription == number)
    return _all(db, chosen.order_by(table.id.desc()).limit(LISTED))


def is_mine(db: Connection, owner: int, delivery: int) -> bool:
    """Whether a delivery is somebody's."""
    chosen = (
        select(deliveries.c.id)
        .join(subscriptions, subscriptions.c.number == deliveries.c.subscription)
        .where(deliveries.c.id == delivery, subscriptions.c.owner == owner)
    )
    return db.scalar(chosen) is not None


def kept_feeds(db: Connection) -> list[dict[str, Any]]:
    """Return what the store knows of feeds."""
    rows = _all(db, select(feeds.c.url, feeds.c.state).order_by(feeds.c.url).limit(1000))
    return [{**row["state"], "url": row["url"]} for row in rows]


def counts(db: Connection) -> dict[str, int]:
    """Return how many there are of what."""
    waiting = select(func.count()).where(publications.c.matched_at.is_(None))
    outgoing = select(func.count()).where(deliveries.c.state == "waiting")
    active = select(func.count()).where(subscriptions.c.state == "active")
    return {
        "publications": counter(db, "publication"),
        "not matched yet": db.scalar(waiting) or 0,
        "active subscriptions": db.scalar(active) or 0,
        "matches": counter(db, "match"),
        "deliveries waiting": db.scalar(outgoing) or 0,
    }


def failing(db: Connection, whose: ColumnElement[bool]) -> list[FailingSink]:
    """Return the sinks of subscriptions that take nothing."""
    table = deliveries.c
    chosen = (
        select(
            table.subscription,
            table.host,
            func.min(table.created_at).label("since"),
            func.sum(table.attempt).label("attempts"),
            func.max(table.status).label("status"),
            func.max(table.error).label("error"),
        )
        .join(subscriptions, subscriptions.c.number == table.subscription)
        .where(
            whose & _LIVES,
            table.state != "delivered",
            table.attempt > 0,
        )
        .group_by(table.subscription, table.host)
        .having(func.sum(table.attempt) >= _FAILING)
        .limit(10 * LISTED)
    )
    return [
        FailingSink(
            str(row["subscription"]),
            row["host"],
            time_of(row["since"]),
            int(row["attempts"]),
            row["error"] or f"status {row['status']}",
        )
        for row in _all(db, chosen)
    ]


def open_breakers(db: Connection, now: int) -> Rows:
    """Return the hosts that are spared for a while."""
    chosen = select(circuit_breakers).where(circuit_breakers.c.open_until > now)
    return _all(db, chosen.order_by(circuit_breakers.c.host).limit(LISTED))


def ages(rows: Rows) -> tuple[dict[str, datetime], dict[str, datetime]]:
    """Return when subscriptions began and when they matched last, by number."""
    began = {str(row["number"]): time_of(row["created_at"]) for row in rows}
    last = {str(r["number"]): time_of(r["last_matched_at"]) for r in rows if r["last_matched_at"]}
    return began, last
