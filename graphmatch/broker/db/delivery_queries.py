"""Statements of the outbox: due deliveries, claims and results, in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sqlalchemy import BigInteger, bindparam, delete, insert, or_, select, text, update

from graphmatch.broker.db.store import counted
from graphmatch.broker.db.subscription_queries import pause_subscription
from graphmatch.broker.db.tables import WAITING, circuit_breakers, deliveries, subscriptions
from graphmatch.broker.models.attempt import CircuitBreaker, ClaimedDelivery
from graphmatch.broker.models.times import millis

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

CLAIM_DURATION = timedelta(minutes=3)
"""Duration of a claim."""
_table = deliveries.c
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
_HELD = bindparam("now", type_=BigInteger) + 1, bindparam("longest", type_=BigInteger)
_DUE = (
    select(_table.id)
    .where(_table.host == bindparam("name"), WAITING, _table.due_at <= bindparam("now"))
    .where(or_(_table.claimed_until.is_(None), ~_table.claimed_until.between(*_HELD)))
    .order_by(_table.due_at)
    .limit(bindparam("count"))
    .with_for_update(skip_locked=True)  # SQLite has one process, and ignores it.
)
_CLAIM = (
    update(deliveries)
    .where(_table.id.in_(_DUE))
    .values(claimed_until=bindparam("until"))
    .returning(*(_table[name] for name in ClaimedDelivery._fields))
)
_MINE = update(deliveries).where(WAITING)


class DeliveryState(NamedTuple):
    """The new state of a delivery. It waits until ``due_at``; without that time it is done."""

    delivery: int
    state: str
    attempt: int
    due_at: int | None = None
    status: int | None = None
    error: str | None = None


Result: TypeAlias = DeliveryState | Callable[["Connection"], object]
"""The new state of a delivery, or another change that follows from an attempt."""


def held_until(now: int) -> tuple[int, int]:
    """Return the limits between which the end of a valid claim lies, in milliseconds.

    A later end was written while the clock was wrong. The clocks of processes that share a database
    may differ by `CLAIM_DURATION`.
    """
    return now + 1, now + 2 * (CLAIM_DURATION // timedelta(milliseconds=1))


def due_hosts(db: Connection, now: int) -> list[str]:
    """Return the hosts that have a due delivery that no process has claimed."""
    rows = db.execute(_HEADS, {"now": now, "longest": held_until(now)[1]})
    return [host for host, due in rows if due is not None and due <= now]


def claim(db: Connection, wanted: Mapping[str, int], now: int, until: int) -> list[ClaimedDelivery]:
    """Claim due deliveries that no other process has claimed.

    Parameters
    ----------
    wanted
        Maximum number of deliveries by host.
    """
    values = {"now": now, "longest": held_until(now)[1], "until": until}
    claimed: list[ClaimedDelivery] = []
    for name, count in wanted.items():
        rows = db.execute(_CLAIM, {**values, "name": name, "count": count})
        claimed += sorted(ClaimedDelivery(*row) for row in rows)
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


def write_back(db: Connection, results: Sequence[Result], now: int) -> None:
    """Write results of attempts: first the states, and those that are equal in one statement."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for result in results:
        if isinstance(result, DeliveryState):
            groups.setdefault(result[1:], []).append(result.delivery)
    for (state, attempt, due_at, status, error), ids in groups.items():
        values = {"state": state, "attempt": attempt, "status": status, "error": error}
        values |= {"due_at": due_at or now, "done_at": None if due_at else now}
        db.execute(_MINE.where(_table.id.in_(ids)).values(**values, claimed_until=None))
    for result in results:
        if not isinstance(result, DeliveryState):
            result(db)


def release(db: Connection, row: ClaimedDelivery) -> None:
    """Release a claim, unless another process has claimed the delivery since."""
    mine = (_table.id == row.id, _table.claimed_until == row.claimed_until)
    db.execute(_MINE.where(*mine).values(claimed_until=None))


def release_claim(db: Connection, until: int) -> None:
    """Release all deliveries of a claim, by its end."""
    db.execute(_MINE.where(_table.claimed_until == until).values(claimed_until=None))


def set_breaker(db: Connection, host: str, breaker: CircuitBreaker, now: int) -> None:
    """Store the circuit breaker of a host."""
    until = None if breaker.open_until is None else millis(breaker.open_until)
    db.execute(delete(circuit_breakers).where(circuit_breakers.c.host == host))
    row = {"host": host, "failures": breaker.failures, "open_until": until, "last_at": now}
    db.execute(insert(circuit_breakers).values(row))


def move_delivery(db: Connection, id: int, host: str) -> None:
    """Release a delivery, and give it the host of the subscription's new sink."""
    db.execute(_MINE.where(_table.id == id).values(host=host, claimed_until=None))


def disable(db: Connection, row: ClaimedDelivery, url: str, reason: str, now: int) -> None:
    """Pause a subscription whose sink answered 410, unless its sink has changed."""
    mine, number = subscriptions.c.number == row.subscription, row.subscription
    current: Mapping[str, Any] = db.scalars(select(subscriptions.c.sink).where(mine)).one()
    if current.get("url") == url:
        pause_subscription(db, number, reason, now)
        fail_waiting(db, _table.subscription == number, "not sent: the sink said 410", now)


def fail_waiting(db: Connection, chosen: ColumnElement[bool], error: str, now: int) -> int:
    """Fail waiting deliveries that are no longer sent; return their number."""
    values = {"state": "failed", "done_at": now, "error": error, "claimed_until": None}
    return db.execute(_MINE.where(chosen).values(values)).rowcount
