"""Retention: subscriptions, deliveries and stored data that end with time.

`Retention` runs in one process of a store, see `graphmatch.broker.app.leader`. Each commit changes
at most `BATCH_SIZE` rows, so that other writers proceed in between.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, exists, insert, or_, select, tuple_, update

from graphmatch.broker.db import tables
from graphmatch.broker.db.delivery_queries import add_delivery, fail_waiting, held_until
from graphmatch.broker.db.subscription_queries import end_subscription, remove_usage_of
from graphmatch.broker.db.tables import WAITING, deliveries, matches, publications, subscriptions
from graphmatch.broker.models.attempt import FAILURES, GIVEN_UP
from graphmatch.broker.models.subscription_settings import PUSHED, send_at
from graphmatch.broker.models.times import millis, time_of
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import ColumnElement, Connection, Row, RowMapping, Select, Table

BATCH_SIZE = 500
"""Maximum number of rows that one commit changes."""
EXPIRY_SECONDS, RETENTION_SECONDS = 10.0, 3600.0
"""Delays between two rounds of the tasks."""
_PROBED = timedelta(hours=3)
"""The circuit breaker of a host that does not respond changes more often than this."""


class Retention:
    """The tasks ``expiry`` and ``retention`` of a broker.

    Parameters
    ----------
    broker
        The broker with the store, the clock and the limits.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def run(self, stop: asyncio.Event) -> None:
        """Run both tasks until `stop` is set."""
        repeat = self._broker.supervisor.repeat
        await asyncio.gather(
            repeat("expiry", self._expire, stop), repeat("retention", self._delete, stop)
        )

    async def _expire(self) -> float:
        now = self._broker.clock()
        if await expire(self._broker, now):
            self._broker.on_commit()
        await give_up(self._broker, now)
        return EXPIRY_SECONDS

    async def _delete(self) -> float:
        await forget(self._broker, self._broker.clock())
        return RETENTION_SECONDS


async def expire(broker: Broker, now: datetime) -> int:
    """Announce the end of subscriptions once, and end those that have expired.

    The announcement is due `BrokerLimits.announced` before the end, or a tenth of the validity if
    that is shorter. It waits for the end of quiet hours, unless they last until the subscription
    ends.

    Returns
    -------
    The number of subscriptions that have ended.
    """
    await _in_batches(broker, partial(_announce, broker=broker, now=now))
    return await _in_batches(broker, partial(_end, broker=broker, now=now))


async def _in_batches(broker: Broker, work: Callable[[Connection], int]) -> int:
    """Repeat a work until it changes fewer than `BATCH_SIZE` rows; return their total number."""
    total = count = await broker.store.write(work)
    while count == BATCH_SIZE:
        total += (count := await broker.store.write(work))
    return total


def _announce(db: Connection, broker: Broker, now: datetime) -> int:
    table, at = subscriptions.c, millis(now)
    due = (
        table.state.in_(("active", "paused")),
        table.announced_at.is_(None),
        table.expires_at > at,
        table.expires_at <= millis(now + broker.limits.announced),
        (table.expires_at - at) * 10 <= table.expires_at - table.created_at,
    )
    rows = db.execute(select(subscriptions).where(*due).limit(BATCH_SIZE)).mappings().all()
    for row in rows:
        with broker.supervisor.record("expiry", f"the announcement of {row['id']}", attempts=1):
            time = send_at(now, None, row["quiet_hours"])
            _notify(db, row, "expiring", now if time >= time_of(row["expires_at"]) else time, now)
    numbers = [row["number"] for row in rows]
    db.execute(update(subscriptions).where(table.number.in_(numbers)).values(announced_at=at))
    return len(rows)


def _end(db: Connection, broker: Broker, now: datetime) -> int:
    table, at = subscriptions.c, millis(now)
    alive = table.state.in_(("active", "paused", "unconfirmed"))
    due = select(subscriptions).where(alive, table.expires_at <= at).limit(BATCH_SIZE)
    rows = db.execute(due).mappings().all()
    for row in rows:
        end_subscription(db, row["number"], "expired", at)
        with broker.supervisor.record("expiry", f"the end of {row['id']}", attempts=1):
            if row["state"] != "unconfirmed":
                _notify(db, row, "expired", send_at(now, None, row["quiet_hours"]), now)
        line = {"at": at, "action": "subscription expired", "target": row["id"]}
        db.execute(insert(tables.audit).values(line))
    return len(rows)


def _notify(db: Connection, row: RowMapping, kind: str, due: datetime, now: datetime) -> None:
    """Insert a delivery to the sink of a subscription, if the broker sends to it."""
    if (sink := row["sink"])["kind"] in PUSHED:
        add_delivery(db, row["number"], kind, host_of(sink), millis(now), due_at=millis(due))


async def give_up(broker: Broker, now: datetime) -> int:
    """Fail the deliveries that have waited for `GIVEN_UP` for a host that does not respond.

    Returns
    -------
    The number of deliveries that have failed.
    """
    at, table, breakers = millis(now), deliveries.c, tables.circuit_breakers.c
    dead = breakers.failures >= FAILURES, breakers.last_at > millis(now - _PROBED)
    hosts = table.host.in_(select(breakers.host).where(*dead))
    free = or_(table.claimed_until.is_(None), ~table.claimed_until.between(*held_until(at)))
    old = select(table.id).where(hosts, WAITING, table.due_at <= millis(now - GIVEN_UP), free)
    error = f"not sent: its host has not answered for {GIVEN_UP.days} days"
    batch = table.id.in_(old.limit(BATCH_SIZE))
    return await _in_batches(broker, partial(fail_waiting, chosen=batch, error=error, now=at))


async def forget(broker: Broker, now: datetime) -> int:
    """Delete data that is older than `BrokerLimits.retention`, and expired sessions.

    A match stays while its delivery waits, and everything stays that another row refers to.

    Returns
    -------
    The number of deleted rows, without those of the table ``read_items``.

    Cost: reads the old publications, and all deliveries and audit lines.
    """
    old, table = millis(now - broker.limits.retention), publications.c
    waiting = exists().where(deliveries.c.id == matches.c.delivery, WAITING)
    held = exists().where(matches.c.publication == table.seq, waiting)
    past = (table.received_at < old) & table.matched_at.is_not(None) & ~held
    total = 0
    for rows, condition in (
        (matches, matches.c.publication.in_(select(table.seq).where(past))),
        (publications, past),
        (deliveries, (deliveries.c.created_at < old) & (deliveries.c.state != "waiting")),
        (subscriptions, (subscriptions.c.state == "ended") & (subscriptions.c.expires_at < old)),
        (tables.audit, tables.audit.c.at < old),
        (tables.dead_letters, tables.dead_letters.c.at < old),
        (tables.idempotency_keys, tables.idempotency_keys.c.at < old),
        (tables.sessions, tables.sessions.c.expires_at < millis(now)),
    ):
        chosen = select(*rows.primary_key).where(condition, *_unreferenced(rows)).limit(BATCH_SIZE)
        while keys := await broker.store.read(partial(_rows, chosen)):
            total += await broker.store.write(partial(_delete, table=rows, keys=keys))
    return total


def _unreferenced(table: Table) -> list[ColumnElement[bool]]:
    """Return the conditions that no row of another table refers to a row."""
    return [
        ~exists().where(column == key.column)
        for other in tables.metadata.tables.values()
        if other is not tables.read_items
        for column in other.columns
        for key in column.foreign_keys
        if key.column.table is table
    ]


def _rows(chosen: Select[Any], db: Connection) -> Sequence[Row[*tuple[Any, ...]]]:
    return db.execute(chosen).all()


def _delete(db: Connection, table: Table, keys: Sequence[Row[*tuple[Any, ...]]]) -> int:
    """Delete rows by their primary keys; with publications, also what refers to them."""
    if table is publications:
        numbers = [key[0] for key in keys]
        remove_usage_of(db, numbers)
        db.execute(delete(tables.read_items).where(tables.read_items.c.publication.in_(numbers)))
    return db.execute(delete(table).where(tuple_(*table.primary_key).in_(keys))).rowcount
