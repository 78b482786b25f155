"""Retention deletes old data of each table, in bounded steps."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import Table, delete, insert

from graphmatch.broker.app.security import ANYBODY
from graphmatch.broker.db.tables import (
    audit,
    dead_letters,
    idempotency_keys,
    owners,
    publications,
    read_items,
    sessions,
    subscriptions,
    tokens,
    websub_callbacks,
)
from graphmatch.broker.models.times import millis
from graphmatch.broker.service import retention
from graphmatch.broker.service.retention import Retention
from tests.graphmatch.broker.harness import NOON, BrokerHarness, FakeClock
from tests.waiting import until

AT = millis(NOON)


async def add(broker: BrokerHarness, table: Table, *rows: dict[str, Any]) -> None:
    await broker.store.write(lambda db: db.execute(insert(table), list(rows)))


async def test_old_data_is_deleted_and_new_data_stays(
    monkeypatch: pytest.MonkeyPatch, clock: FakeClock, idle: BrokerHarness
) -> None:
    monkeypatch.setattr(retention, "BATCH_SIZE", 2)
    await add(idle, owners, {"id": 7, "name": "ada", "created_at": AT})
    token = {"owner": 7, "name": "", "scopes": "publish", "created_at": AT}
    await add(idle, tokens, {"id": 1, "hash": b"t", **token})
    await idle.publish("a", "b", "c")
    await add(idle, read_items, *({"owner": 7, "publication": seq} for seq in (1, 2, 3)))
    for number in range(5):
        letter = {"task": "feeds", "record": f"{number}", "error": "e", "at": AT}
        await add(idle, dead_letters, letter)
        await add(idle, audit, {"at": AT, "action": "a"})
        key = {"owner": 7, "key": f"{number}", "hash": b"", "response": {}, "at": AT}
        await add(idle, idempotency_keys, key)
    clock.forward(days=29)
    await idle.publish("d")
    later = millis(clock()) + 10_000
    await add(idle, dead_letters, letter | {"at": later})
    await add(idle, idempotency_keys, key | {"key": "new", "at": later})
    await add(idle, read_items, {"owner": 7, "publication": 4})
    ends = (later, millis(clock()) + 10 * 86_400_000)
    await add(idle, sessions, *({"hash": bytes([n]), "token": 1, "expires_at": at}
                                for n, at in enumerate(ends)))  # fmt: skip
    clock.forward(days=2)
    assert await retention.forget(idle.broker, clock()) == 3 + 5 + 5 + 5 + 1
    assert [row["id"] for row in await idle.rows(publications)] == ["urn:g-d"]
    assert [row["publication"] for row in await idle.rows(read_items)] == [4]
    assert [row["at"] for row in await idle.rows(dead_letters)] == [later]
    assert [row["key"] for row in await idle.rows(idempotency_keys)] == ["new"]
    assert [row["hash"] for row in await idle.rows(sessions)] == [b"\1"]
    assert await idle.rows(audit) == []
    assert await retention.forget(idle.broker, clock()) == 0


async def test_usage_is_reduced_before_publications_are_deleted(
    monkeypatch: pytest.MonkeyPatch, clock: FakeClock, idle: BrokerHarness
) -> None:
    removed: list[int] = []
    monkeypatch.setattr(retention, "remove_usage_of", lambda _, seqs: removed.extend(seqs))
    await idle.publish("a", "b")
    clock.forward(days=31)
    await retention.forget(idle.broker, clock())
    assert removed == [1, 2]


async def test_both_tasks_run_until_the_end(clock: FakeClock, idle: BrokerHarness) -> None:
    changed: list[bool] = []
    await idle.subscribe("http://127.0.0.1:9/hook")
    await idle.broker.accounts.note("something")
    idle.broker.on_commit = lambda: changed.append(True)
    clock.forward(days=400)
    stop = asyncio.Event()
    running = asyncio.create_task(Retention(idle.broker).run(stop))

    async def is_empty() -> bool:
        return not [row for row in await idle.rows(audit) if row["at"] < millis(clock())]

    await until(lambda: changed == [True])
    await until(is_empty)
    stop.set()
    await running


async def test_a_subscription_stays_until_the_hub_has_removed_its_callbacks(
    clock: FakeClock, idle: BrokerHarness
) -> None:
    created = await idle.subscribe("http://127.0.0.1:9/hook")
    await idle.broker.subscriptions.unsubscribe(created.id, ANYBODY, created.ticket)
    callback = {"id": 1, "subscription": 1, "topic": "t", "callback": "c", "key": b"k"}
    await add(idle, websub_callbacks, callback)
    clock.forward(days=400)
    await retention.forget(idle.broker, clock())
    assert [row["number"] for row in await idle.rows(subscriptions)] == [1]
    await idle.store.write(lambda db: db.execute(delete(websub_callbacks)))
    await retention.forget(idle.broker, clock())
    assert not await idle.rows(subscriptions)
