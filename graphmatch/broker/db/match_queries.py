"""Queries of matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import select

from graphmatch.broker.db.tables import matches, publications, subscriptions

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping

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
    db: Connection, number: int, since: int, most: int, not_before: int = 0
) -> Sequence[RowMapping]:
    """Return the matches of a subscription after a number, in order.

    Parameters
    ----------
    number
        The subscription's.
    since
        The number of the last match that is known.
    most
        How many, at most.
    not_before
        Older ones are left out; in milliseconds.
    """
    mine = (matches.c.subscription == number) & (matches.c.seq > since)
    chosen = (
        MATCH_ROWS.where(mine, matches.c.matched_at >= not_before)
        .order_by(matches.c.seq)
        .limit(most)
    )
    return db.execute(chosen).mappings().all()


def last_matches(db: Connection, number: int, most: int) -> Sequence[RowMapping]:
    """Return the newest matches of a subscription, newest first."""
    chosen = MATCH_ROWS.where(matches.c.subscription == number).order_by(matches.c.seq.desc())
    return db.execute(chosen.limit(most)).mappings().all()


def match_of(db: Connection, seq: int) -> RowMapping | None:
    """Return a match."""
    return db.execute(MATCH_ROWS.where(matches.c.seq == seq)).mappings().one_or_none()
