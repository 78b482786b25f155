"""Statements that change subscriptions and the usage of their owners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import func, insert, select, text, update

from graphmatch.broker.db.store import counted
from graphmatch.broker.db.tables import audit, publications, subscriptions

if TYPE_CHECKING:
    from sqlalchemy import Connection

_ADD_USAGE = text(
    """
    INSERT INTO usage (owner, subscriptions, stored_bytes) VALUES (:owner, :subscriptions, :bytes)
    ON CONFLICT (owner) DO UPDATE SET
      subscriptions = usage.subscriptions + excluded.subscriptions,
      stored_bytes = usage.stored_bytes + excluded.stored_bytes
    RETURNING subscriptions, stored_bytes
    """
)


def add_usage(
    db: Connection, owner: int | None, subscriptions: int = 0, stored_bytes: int = 0
) -> tuple[int, int]:
    """Add to the usage of an owner, and return the new numbers of subscriptions and bytes.

    `service.accounts.Accounts.charge` calls it, with the limits, before publications that came over
    HTTP are inserted. `remove_usage_of` subtracts them before retention deletes them.
    """
    added = {"owner": owner or 0, "subscriptions": subscriptions, "bytes": stored_bytes}
    row = db.execute(_ADD_USAGE, added).one()
    return row[0], row[1]


def remove_usage_of(db: Connection, seqs: Sequence[int]) -> None:
    """Subtract publications that are about to be deleted from the usage of their owners."""
    table = publications.c
    sizes = select(table.owner, func.sum(func.length(table.data))).group_by(table.owner)
    for owner, size in db.execute(sizes.where(table.seq.in_(seqs), table.source == "http")).all():
        add_usage(db, owner, stored_bytes=-size)


def pause_subscription(db: Connection, number: int, reason: str, now: int) -> None:
    """Pause an active subscription for a reason that its owner sees, and write an audit line."""
    active = (subscriptions.c.number == number, subscriptions.c.state == "active")
    values = {"state": "paused", "reason": reason, "change": counted(db, "change")}
    paused = update(subscriptions).where(*active).values(values).returning(subscriptions.c.id)
    if (id := db.scalar(paused)) is not None:
        action = f"subscription paused: {reason}"
        db.execute(insert(audit).values(at=now, action=action, target=id))


def end_subscription(db: Connection, number: int, reason: str, now: int) -> None:
    """End a subscription: engines remove it, and its ticket only allows reading."""
    values = {"state": "ended", "reason": reason, "expires_at": now}
    alive = (subscriptions.c.number == number, subscriptions.c.state != "ended")
    ended = update(subscriptions).where(*alive).values(change=counted(db, "change"), **values)
    for owner in db.scalars(ended.returning(subscriptions.c.owner)).all():
        add_usage(db, owner, subscriptions=-1)
