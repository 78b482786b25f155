"""Statements that change subscriptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import insert, select, update

from graphmatch.broker.db.store import counted
from graphmatch.broker.db.tables import (
    audit,
    subscriptions,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection


def remove_usage_of(db: Connection, seqs: Sequence[int]) -> None:
    """Subtract publications that are about to be deleted from the usage of their owners."""


def pause_subscription(db: Connection, number: int, reason: str, now: int) -> None:
    """Pause a subscription that is active, for a reason that its owner sees; audited."""
    active = (subscriptions.c.number == number, subscriptions.c.state == "active")
    id = db.scalar(select(subscriptions.c.id).where(*active))
    if id is not None:
        values = {"state": "paused", "reason": reason, "change": counted(db, "change")}
        db.execute(update(subscriptions).where(*active).values(**values))
        what = f"subscription paused: {reason}"
        db.execute(insert(audit).values(at=now, action=what, target=id))


def end_subscription(db: Connection, number: int, reason: str, now: int) -> None:
    """End a subscription: engines forget it, and its ticket is for reading only."""
    values = {
        "state": "ended",
        "reason": reason,
        "expires_at": now,
        "change": counted(db, "change"),
    }
    db.execute(update(subscriptions).where(subscriptions.c.number == number).values(values))
