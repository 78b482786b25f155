"""What ends with time: subscriptions, deliveries to dead hosts, and what is no longer kept.

Each step is short, so that others write in between.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, exists, insert, or_, select, update

from graphmatch.broker.db.delivery_queries import held_until
from graphmatch.broker.db.store import counted
from graphmatch.broker.db.subscription_queries import end_subscription
from graphmatch.broker.db.tables import (
    WAITING,
    audit,
    circuit_breakers,
    deliveries,
    idempotency_keys,
    matches,
    publications,
    subscriptions,
)
from graphmatch.broker.models.subscription_settings import PUSHED, send_at
from graphmatch.broker.models.times import millis, time_of
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import host_of

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping, Select, Table

STEP = 500
"""So many rows are changed in one commit, at most."""
_PROBED = timedelta(hours=3)
"""A host that is spared is tried more often than this."""


async def expire(broker: Broker, now: datetime) -> int:
    """Announce the end of subscriptions, once, and end those whose time has come.

    Returns
    -------
    How many have ended.

    The sink is told `BrokerLimits.announced` before the end, or a tenth of the time from its
    beginning to its end where that is less; in quiet hours only where they last until the end.
    """
    ended = 0
    while True:
        count = await broker.store.write(partial(_announce, broker=broker, now=now))
        if count < STEP:
            break
    while True:
        count = await broker.store.write(partial(_end, broker=broker, now=now))
        ended += count
        if count < STEP:
            return ended


def _alive() -> Any:
    return subscriptions.c.state.in_(("active", "paused"))


def _announce(db: Connection, broker: Broker, now: datetime) -> int:
    table, at = subscriptions.c, millis(now)
    announced = broker.limits.announced // timedelta(milliseconds=1)
    due = (
        _alive(),
        table.announced_at.is_(None),
        table.expires_at > at,
        table.expires_at <= at + announced,
        (table.expires_at - at) * 10 <= table.expires_at - table.created_at,
    )
    rows = db.execute(select(subscriptions).where(*due).limit(STEP)).mappings().all()
    for row in rows:
        with broker.supervisor.record("expiry", f"the announcement of {row['id']}"):
            when = send_at(now, None, row["quiet_hours"])
            _tell(db, row, "expiring", now if when >= time_of(row["expires_at"]) else when, now)
    numbers = [row["number"] for row in rows]
    db.execute(update(subscriptions).where(table.number.in_(numbers)).values(announced_at=at))
    return len(rows)


def _end(db: Connection, broker: Broker, now: datetime) -> int:
    table, at = subscriptions.c, millis(now)
    due = select(subscriptions).where(_alive(), table.expires_at <= at).limit(STEP)
    rows = db.execute(due).mappings().all()
    for row in rows:
        end_subscription(db, row["number"], "expired", at)
        with broker.supervisor.record("expiry", f"the end of {row['id']}"):
            _tell(db, row, "expired", send_at(now, None, row["quiet_hours"]), now)
        said = {"at": at, "action": "subscription expired", "target": row["id"]}
        db.execute(insert(audit).values(said))
    return len(rows)


def _tell(db: Connection, row: RowMapping, kind: str, due: datetime, now: datetime) -> None:
    """Insert a delivery, where the sink is one that is sent to."""
    if row["sink"]["kind"] not in PUSHED:
        return
    values = {
        "id": counted(db, "delivery"),
        "subscription": row["number"],
        "kind": kind,
        "host": host_of(row["sink"]),
        "state": "waiting",
        "attempt": 0,
        "due_at": millis(due),
        "created_at": millis(now),
    }
    db.execute(insert(deliveries).values(**values))


async def give_up(broker: Broker, now: datetime, after: timedelta, failures: int) -> int:
    """Fail deliveries that never had their turn: their host is spared, and was for so long.

    Parameters
    ----------
    failures
        After how many a host is spared.

    Returns
    -------
    How many have failed.
    """
    at, table = millis(now), deliveries.c
    dead = select(circuit_breakers.c.host).where(
        circuit_breakers.c.failures >= failures, circuit_breakers.c.last_at > millis(now - _PROBED)
    )
    names = await broker.store.read(lambda db: db.scalars(dead).all())
    free = or_(table.claimed_until.is_(None), ~table.claimed_until.between(*held_until(at)))

    def work(db: Connection, host: str) -> int:
        old = (table.host == host, WAITING, table.due_at <= millis(now - after), free)
        some = select(table.id).where(*old).order_by(table.due_at).limit(STEP)
        error = f"not sent: its host has not answered for {after.days} days"
        values = {"state": "failed", "done_at": at, "error": error, "claimed_until": None}
        failed = update(deliveries).where(table.id.in_(some)).values(**values)
        return db.execute(failed).rowcount

    total = 0
    for host in names:
        while True:
            count = await broker.store.write(partial(work, host=host))
            total += count
            if count < STEP:
                break
    return total


async def forget(broker: Broker, now: datetime) -> int:
    """Delete what is older than `BrokerLimits.retention`; a match stays while its delivery waits.

    Returns
    -------
    How many rows were deleted.

    Cost: reads through publications that are old, and through all deliveries and audit lines.
    """
    old = millis(now - broker.limits.retention)
    waiting = exists().where(deliveries.c.id == matches.c.delivery, WAITING)
    held = exists().where(matches.c.publication == publications.c.seq, waiting)
    matched = publications.c.matched_at.is_not(None)
    past = publications.c.received_at < old
    gone = select(publications.c.seq).where(past, matched, ~held)
    theirs = select(matches.c.seq).where(matches.c.publication.in_(gone))
    of_publication = exists().where(matches.c.publication == publications.c.seq)
    of_delivery = exists().where(matches.c.delivery == deliveries.c.id)
    quiet = select(deliveries.c.id).where(
        deliveries.c.created_at < old, deliveries.c.state != "waiting", ~of_delivery
    )
    of_match = exists().where(matches.c.subscription == subscriptions.c.number)
    of_other = exists().where(deliveries.c.subscription == subscriptions.c.number)
    ended = select(subscriptions.c.number).where(
        subscriptions.c.state == "ended", subscriptions.c.expires_at < old, ~of_match, ~of_other
    )
    steps: tuple[tuple[Table, Select[tuple[Any]]], ...] = (
        (matches, theirs),
        (publications, gone.where(~of_publication)),
        (deliveries, quiet),
        (subscriptions, ended),
        (audit, select(audit.c.seq).where(audit.c.at < old)),
    )
    total = 0
    for table, chosen in steps:
        key = next(iter(table.primary_key.columns))
        while True:
            ids = await broker.store.read(partial(_ids, chosen=chosen.limit(STEP)))
            if ids:
                rows = delete(table).where(key.in_(ids))
                total += await broker.store.write(partial(_deleted, rows=rows))
            if len(ids) < STEP:
                break
    past_requests = delete(idempotency_keys).where(idempotency_keys.c.at < old)
    return total + await broker.store.write(partial(_deleted, rows=past_requests))


def _ids(db: Connection, chosen: Select[tuple[Any]]) -> list[Any]:
    return list(db.scalars(chosen))


def _deleted(db: Connection, rows: Any) -> int:
    return int(db.execute(rows).rowcount)
