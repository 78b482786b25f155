"""Queries of matches, for streams and match feeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import select

from graphmatch.broker.db.tables import matches, publications, subscriptions

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row, RowMapping

MATCH_ROWS = (
    select(
        matches,
        subscriptions.c.id.label("subscription_id"),
        publications.c.id.label("publication_id"),
        publications.c.title,
        publications.c.link,
        publications.c.summary,
    )
    .join(publications, publications.c.seq == matches.c.publication)
    .join(subscriptions, subscriptions.c.number == matches.c.subscription)
)
"""Matches with the columns that their JSON needs."""


def matches_after(
    db: Connection, number: int, since: int, limit: int, not_before: int = 0
) -> Sequence[RowMapping]:
    """Return the matches of a subscription after a number, in order.

    Parameters
    ----------
    number
        Number of the subscription.
    since
        Number of the last match that the client has.
    limit
        Maximum number of matches.
    not_before
        Time of the oldest match, in milliseconds.
    """
    newer = (matches.c.subscription == number) & (matches.c.seq > since)
    query = MATCH_ROWS.where(newer, matches.c.matched_at >= not_before).order_by(matches.c.seq)
    return db.execute(query.limit(limit)).mappings().all()


def last_matches(db: Connection, number: int, limit: int) -> Sequence[RowMapping]:
    """Return the newest matches of a subscription, the newest first."""
    query = MATCH_ROWS.where(matches.c.subscription == number).order_by(matches.c.seq.desc())
    return db.execute(query.limit(limit)).mappings().all()


def match_of(db: Connection, seq: int) -> RowMapping | None:
    """Return a match."""
    return db.execute(MATCH_ROWS.where(matches.c.seq == seq)).mappings().one_or_none()


def matches_since(db: Connection, seq: int) -> Sequence[Row[int, int]]:
    """Return the newest 10,000 matches after a number: the number and subscription of each."""
    newer = select(matches.c.seq, matches.c.subscription).where(matches.c.seq > seq)
    return db.execute(newer.order_by(matches.c.seq.desc()).limit(10_000)).all()
