"""Statements of the outbox: due deliveries, claims and results, in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import bindparam, insert, or_, select, text, update

from graphmatch.broker.db.store import counted
from graphmatch.broker.db.subscription_queries import pause_subscription
from graphmatch.broker.db.tables import WAITING, circuit_breakers, deliveries, subscriptions
from graphmatch.broker.models.circuit_breaker import CircuitBreaker
from graphmatch.broker.models.claimed_delivery import ClaimedDelivery
from graphmatch.broker.models.times import millis

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

CLAIM_DURATION = timedelta(minutes=3)
"""Duration of a claim."""
_HEADS = text(
    """
    WITH RECURSIVE heads(host) AS (
      SELECT min(host) FROM deliveries WHERE state = 'waiting'
      UNION ALL
      SELECT (SELECT min(host) FROM deliveries WHERE state = 'waiting' AND host > heads.host)
      FROM heads WHERE heads.host IS NOT NULL)
    SELECT host, (
      SELECT due_at FROM deliveries AS one
      WHERE one.host = heads.host AND one.state = 'waiting'
        AND (one.claimed_until IS NULL OR one.claimed_until NOT BETWEEN :now + 1 AND :longest)
      ORDER BY due_at LIMIT 1) AS due_at
    FROM heads WHERE host IS NOT NULL
    """
)
"""Each host with waiting deliveries, and the time of the first one: one seek per host."""


def held_until(now: int) -> tuple[int, int]:
    """Return the limits between which the end of a valid claim lies, in milliseconds.

    A later end was written while the clock was wrong. The clocks of processes that share a database
    may differ by `CLAIM_DURATION`.
    """
    return now + 1, now + 2 * (CLAIM_DURATION // timedelta(milliseconds=1))


def is_free(now: int) -> ColumnElement[bool]:
    """Return the condition that no process has claimed a delivery."""
    claimed = deliveries.c.claimed_until
    return or_(claimed.is_(None), ~claimed.between(*held_until(now)))


def due_hosts(db: Connection, now: int) -> dict[str, None]:
    """Return the hosts that have a due delivery, as the keys of a mapping."""
    rows = db.execute(_HEADS, {"now": now, "longest": held_until(now)[1]})
    return {host: None for host, due in rows if due is not None and due <= now}


def claim(db: Connection, wanted: Mapping[str, int], now: int, until: int) -> list[ClaimedDelivery]:
    """Claim due deliveries that no other process has claimed.

    Parameters
    ----------
    wanted
        Maximum number of deliveries by host.
    """
    table = deliveries.c
    chosen = (
        select(table.id)
        .where(table.host == bindparam("name"), WAITING, table.due_at <= now, is_free(now))
        .order_by(table.due_at)
        .limit(bindparam("count"))
    )
    if db.dialect.name != "sqlite":
        chosen = chosen.with_for_update(skip_locked=True)
    names = ("id", "subscription", "kind", "host", "attempt", "callback", "created_at")
    claiming = (
        update(deliveries)
        .where(table.id.in_(chosen))
        .values(claimed_until=until)
        .returning(*(table[name] for name in names))
    )
    claimed: list[ClaimedDelivery] = []
    for name, count in wanted.items():
        rows = db.execute(claiming, {"name": name, "count": count}).mappings()
        several = (ClaimedDelivery(**row, claimed_until=until) for row in rows)
        claimed += sorted(several, key=lambda row: row.id)
    return claimed


def add_delivery(
    db: Connection,
    subscription: int,
    kind: str,
    host: str,
    now: int,
    *,
    due_at: int | None = None,
    callback: int | None = None,
) -> int:
    """Add a delivery, which is due now by default; return its id."""
    id, due = counted(db, "delivery"), now if due_at is None else due_at
    row = {"id": id, "subscription": subscription, "kind": kind, "host": host, "state": "waiting"}
    row |= {"attempt": 0, "due_at": due, "created_at": now, "callback": callback}
    db.execute(insert(deliveries).values(row))
    return id


Result: TypeAlias = dict[str, Any] | Callable[["Connection"], object]
"""An `outcome_row`, a `release_row`, or a change that follows from a result."""
_NAMES = ("state", "attempt", "due_at", "done_at", "status", "error")
_MINE = update(deliveries).where(deliveries.c.id == bindparam("delivery"), WAITING)
_OUTCOME = _MINE.values(claimed_until=None, **{name: bindparam(f"new_{name}") for name in _NAMES})
_RELEASE = _MINE.where(deliveries.c.claimed_until == bindparam("until")).values(claimed_until=None)


def outcome_row(row: ClaimedDelivery, *values: object) -> dict[str, Any]:
    """Return the new values of a delivery: state, attempt, due_at, done_at, status and error."""
    names = (f"new_{name}" for name in _NAMES)
    return {"delivery": row.id, **dict(zip(names, values, strict=True))}


def release_row(row: ClaimedDelivery) -> dict[str, Any]:
    """Return the values that release a claim."""
    return {"delivery": row.id, "until": row.claimed_until}


def release_claim(db: Connection, until: int) -> None:
    """Release all deliveries of a claim, by its end."""
    mine = update(deliveries).where(WAITING, deliveries.c.claimed_until == until)
    db.execute(mine.values(claimed_until=None))


def write_back(db: Connection, results: Sequence[Result]) -> None:
    """Write results of attempts."""
    rows = [result for result in results if isinstance(result, dict)]
    for statement, key in ((_OUTCOME, "new_state"), (_RELEASE, "until")):
        if values := [row for row in rows if key in row]:
            db.execute(statement, values)
    for change in results:
        if not isinstance(change, dict):
            change(db)


def set_breaker(db: Connection, host: str, breaker: CircuitBreaker, now: int) -> None:
    """Store the circuit breaker of a host."""
    until = None if breaker.open_until is None else millis(breaker.open_until)
    row = {"failures": breaker.failures, "open_until": until, "last_at": now}
    known = update(circuit_breakers).where(circuit_breakers.c.host == host)
    if not db.execute(known.values(row)).rowcount:
        db.execute(insert(circuit_breakers).values(host=host, **row))


def move_delivery(db: Connection, id: int, host: str) -> None:
    """Release a delivery, and give it the host of the subscription's new sink."""
    moved = update(deliveries).where(deliveries.c.id == id)
    db.execute(moved.values(host=host, claimed_until=None))


def set_inbox(db: Connection, number: int, sink: Mapping[str, Any], inbox: str) -> None:
    """Store the inbox of a subscription's target, unless its sink has changed."""
    mine = subscriptions.c.number == number
    if db.scalar(select(subscriptions.c.sink).where(mine)) == sink:
        changed = {**sink, "inbox": inbox}
        db.execute(update(subscriptions).where(mine).values(sink=changed))


def disable(db: Connection, number: int, sink: Mapping[str, Any], reason: str, now: int) -> None:
    """Pause a subscription whose sink answered 410, unless its sink has changed."""
    mine = subscriptions.c.number == number
    current: Mapping[str, Any] = db.scalars(select(subscriptions.c.sink).where(mine)).one()
    if current.get("url") == sink.get("url"):
        pause_subscription(db, number, reason, now)
        fail_waiting(db, deliveries.c.subscription == number, "not sent: the sink said 410", now)


def fail_waiting(db: Connection, chosen: ColumnElement[bool], error: str, now: int) -> None:
    """Fail the waiting deliveries of a sink that gets no more."""
    values = {"state": "failed", "done_at": now, "error": error, "claimed_until": None}
    db.execute(update(deliveries).where(chosen, WAITING).values(values))
