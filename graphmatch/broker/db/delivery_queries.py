"""The outbox in the store: what is due, claims, and outcomes, many in one statement or commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, insert, or_, select, text, update

from graphmatch.broker.db.subscription_queries import pause_subscription
from graphmatch.broker.db.tables import WAITING, audit, circuit_breakers, deliveries, subscriptions
from graphmatch.broker.models.circuit_breaker import CircuitBreaker
from graphmatch.broker.models.claimed_delivery import ClaimedDelivery
from graphmatch.broker.models.times import millis

if TYPE_CHECKING:
    from sqlalchemy import Connection, ScalarSelect

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
"""Each host that something waits for, and when the first of that is due: a seek for each host."""


CLAIM_DURATION = timedelta(minutes=3)
"""So long a delivery is claimed."""


def held_until(now: int) -> tuple[int, int]:
    """Return between which times the end of a claim lies that holds now.

    One that lies further ahead was made when the clock was wrong; clocks of processes that share a
    database may differ by `CLAIM_DURATION`.
    """
    return now + 1, now + 2 * (CLAIM_DURATION // timedelta(milliseconds=1))


def due_hosts(db: Connection, now: int) -> Sequence[tuple[str, int | None]]:
    """Return each host that something waits for, and when the first that is free is due."""
    rows = db.execute(_HEADS, {"now": now, "longest": held_until(now)[1]})
    return [(host, due) for host, due in rows]


def claim(db: Connection, wanted: Mapping[str, int], now: int, until: int) -> list[ClaimedDelivery]:
    """Claim deliveries that no other process has claimed, of each host so many at most."""
    table = deliveries.c
    free = or_(table.claimed_until.is_(None), ~table.claimed_until.between(*held_until(now)))
    some = (
        select(table.id)
        .where(table.host == bindparam("one"), WAITING, table.due_at <= now, free)
        .order_by(table.due_at)
        .limit(bindparam("most"))
    )
    if db.dialect.name != "sqlite":
        some = some.with_for_update(skip_locked=True)
    claiming = (
        update(deliveries)
        .where(table.id.in_(some))
        .values(claimed_until=until)
        .returning(
            table.id,
            table.subscription,
            table.kind,
            table.host,
            table.attempt,
            table.created_at,
        )
    )
    found: list[ClaimedDelivery] = []
    for name, count in wanted.items():
        rows = db.execute(claiming, {"one": name, "most": count}).mappings()
        found += sorted(
            (ClaimedDelivery(**row, claimed_until=until) for row in rows), key=lambda one: one.id
        )
    return found


@dataclass(slots=True)
class AttemptResults:
    """What is to be written together.

    Parameters
    ----------
    outcomes
        What became of deliveries, see `outcome_row`.
    gone
        Subscriptions, by number, whose sink answered 410; the sink, and the reason.
    failed
        Deliveries that are given up: their ids, subscriptions and reasons.
    released
        Claims that are given back: ids, and until when they were claimed.
    moved
        Deliveries whose subscription has another sink, and that one's host.
    inboxes
        Subscriptions whose inbox was found, their sinks, and the inbox.
    breakers
        By host.
    """

    outcomes: list[dict[str, Any]] = field(default_factory=list)
    gone: list[tuple[int, Mapping[str, Any], str]] = field(default_factory=list)
    failed: list[tuple[int, int, str]] = field(default_factory=list)
    released: list[tuple[int, int]] = field(default_factory=list)
    moved: list[tuple[int, str]] = field(default_factory=list)
    inboxes: list[tuple[int, Mapping[str, Any], str]] = field(default_factory=list)
    breakers: dict[str, CircuitBreaker] = field(default_factory=dict)

    def __bool__(self) -> bool:
        several = (self.outcomes, self.released, self.moved, self.inboxes, self.breakers)
        return any(several)


def write_back(db: Connection, written: AttemptResults, now: int) -> None:
    """Write what became of deliveries, in one transaction."""
    table = deliveries.c
    if written.outcomes:
        mine = table.id == bindparam("one")
        names = ("state", "attempt", "due_at", "done_at", "status", "error")
        values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in names}
        db.execute(
            update(deliveries).where(mine, WAITING).values(claimed_until=None, **values),
            written.outcomes,
        )
    if written.released:
        mine = table.id == bindparam("one")
        held = table.claimed_until == bindparam("until")
        back = update(deliveries).where(mine, held, WAITING).values(claimed_until=None)
        db.execute(back, [{"one": id, "until": until} for id, until in written.released])
    for id, host in written.moved:
        moved = update(deliveries).where(table.id == id)
        db.execute(moved.values(host=host, claimed_until=None))
    for id, number, reason in written.failed:
        about = _id(number)
        said = {"at": now, "action": f"delivery {id} failed: {reason}", "target": about}
        db.execute(insert(audit).values(said))
    for number, sink, reason in written.gone:
        _disable(db, number, sink, reason, now)
    for number, sink, inbox in written.inboxes:
        if _sink(db, number) == sink:
            kept = update(subscriptions).where(subscriptions.c.number == number)
            db.execute(kept.values(sink={**sink, "inbox": inbox}))
    for name, breaker in written.breakers.items():
        until = None if breaker.open_until is None else millis(breaker.open_until)
        row = {"failures": breaker.failures, "open_until": until, "last_at": now}
        if not db.execute(
            update(circuit_breakers).where(circuit_breakers.c.host == name).values(row)
        ).rowcount:
            db.execute(insert(circuit_breakers).values(host=name, **row))


def _id(number: int) -> ScalarSelect[str]:
    mine = subscriptions.c.number == number
    return select(subscriptions.c.id).where(mine).scalar_subquery()


def outcome_row(
    row: ClaimedDelivery,
    state: str,
    attempt: int,
    due: int,
    done: int | None,
    status: int | None,
    error: str | None,
) -> dict[str, Any]:
    """Return what is to be written of a delivery; ``attempt`` counts the one that has ended."""
    return {
        "one": row.id,
        "new_state": state,
        "new_attempt": attempt,
        "new_due_at": due,
        "new_done_at": done,
        "new_status": status,
        "new_error": error,
    }


def _sink(db: Connection, number: int) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = db.scalar(
        select(subscriptions.c.sink).where(subscriptions.c.number == number)
    )
    return found


def _disable(db: Connection, number: int, sink: Mapping[str, Any], reason: str, now: int) -> None:
    """Pause a subscription whose sink wants nothing any more."""
    table = subscriptions.c
    of_now: Mapping[str, Any] = db.scalars(select(table.sink).where(table.number == number)).one()
    if of_now.get("url") != sink.get("url"):
        return  # it has another since
    pause_subscription(db, number, reason, now)
    rest = update(deliveries).where(deliveries.c.subscription == number, WAITING)
    error = "not sent: the sink said 410"
    db.execute(rest.values(state="failed", done_at=now, error=error, claimed_until=None))
