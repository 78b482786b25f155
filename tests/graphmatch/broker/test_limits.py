"""Limits of owners: subscriptions, stored bytes, requests and wrong tokens."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select

from graphmatch.broker.app.errors import InvalidRequestError, TooManyRequestsError
from graphmatch.broker.app.rate_limits import FAILURES, MAX_KEYS, RateLimiter
from graphmatch.broker.app.security import ANYBODY, Principal
from graphmatch.broker.db.store import Store
from graphmatch.broker.db.subscription_queries import add_usage, end_subscription, remove_usage_of
from graphmatch.broker.db.tables import matches, publications, subscriptions, usage
from graphmatch.broker.models.limits import BrokerLimits
from graphmatch.broker.models.subscription import SubscriptionReceipt
from graphmatch.broker.models.subscription_settings import SubscriptionSettings
from graphmatch.broker.service.broker import Broker
from graphmatch.engine import Engine
from semantic.errors import SubscriptionError
from tests.graphmatch.broker.harness import QUERY, BrokerHarness, harness

DEFINITION = {"query": QUERY}
SETTINGS = SubscriptionSettings()


async def subscription_counts(one: BrokerHarness) -> dict[int, int]:
    return {row["owner"]: row["subscriptions"] for row in await one.rows(usage)}


async def test_the_number_of_subscriptions_is_limited(tmp_path: Path) -> None:
    limits = BrokerLimits(subscriptions=2, publications=2, query_characters=100)
    async with harness(tmp_path, limits=limits, running=False) as one:
        broker = one.broker
        for _ in range(2):
            created = await broker.subscriptions.subscribe(DEFINITION, SETTINGS)
        with pytest.raises(InvalidRequestError, match="there are 2 subscriptions"):
            await broker.subscriptions.subscribe(DEFINITION, SETTINGS)
        await broker.subscriptions.unsubscribe(created.id, ANYBODY, created.ticket)
        await broker.subscriptions.subscribe(DEFINITION, SETTINGS)
        assert await subscription_counts(one) == {0: 2}
        with pytest.raises(InvalidRequestError, match="at most 100 characters"):
            await broker.subscriptions.subscribe({"query": QUERY + " " * 100}, SETTINGS)
        too_long = SubscriptionSettings(expires_in=timedelta(days=367))
        with pytest.raises(InvalidRequestError, match="a validity of"):
            await broker.subscriptions.subscribe(DEFINITION, too_long)
        text = "".join(f'<urn:a> <urn:p> "{n}" <urn:g{n}> .\n' for n in range(3))
        with pytest.raises(InvalidRequestError, match="more than 2 publications"):
            await broker.publications.publish(text.encode(), format="nq")


async def test_owners_have_separate_limits_and_admins_none(tmp_path: Path) -> None:
    limits = BrokerLimits(subscriptions=1)
    async with harness(tmp_path, limits=limits, running=False) as one:
        subscriptions, accounts = one.broker.subscriptions, one.broker.accounts
        ann, root = [
            await accounts.principal(await accounts.new_token(name, [scope]))
            for name, scope in (("ann", "subscribe"), ("root", "admin"))
        ]
        await subscriptions.subscribe(DEFINITION, SETTINGS)
        await subscriptions.subscribe(DEFINITION, SETTINGS, ann)
        with pytest.raises(InvalidRequestError):
            await subscriptions.subscribe(DEFINITION, SETTINGS, ann)
        for _ in range(3):
            await subscriptions.subscribe(DEFINITION, SETTINGS, root)
        assert await subscription_counts(one) == {0: 1, ann.owner: 1, root.owner: 3}


def test_a_subscription_that_ends_twice_is_subtracted_once(store: Store) -> None:
    """Retention, the matcher and clients can end the same subscription."""
    columns: dict[str, Any] = {
        "id": "sub_1",
        "name": "a",
        "definition": {},
        "query": "",
        "ticket": b"",
        "sink": {},
        "state": "active",
        "created_at": 0,
        "generation": 1,
        "change": 1,
        "after_publication": 0,
    }
    store.write_now(lambda db: db.execute(subscriptions.insert().values(columns)))
    store.write_now(lambda db: add_usage(db, None, subscriptions=5))
    for _ in range(2):
        store.write_now(lambda db: end_subscription(db, 1, "expired", 7))
    assert store.read_now(lambda db: db.execute(select(usage)).all()) == [(0, 4, 0)]


async def test_many_subscriptions_are_created_in_one_request(tmp_path: Path) -> None:
    limits = BrokerLimits(subscriptions=2)
    async with harness(tmp_path, limits=limits, running=False) as one:
        queries = [QUERY, "SELECT", "ASK { ?s a <urn:C> }", QUERY]
        requests = [({"query": query}, SETTINGS) for query in queries]
        first, second, third, fourth = await one.broker.subscriptions.subscribe_many(requests)
        rows = {row["id"]: row["query"] for row in await one.rows(subscriptions)}
        assert isinstance(first, SubscriptionReceipt)
        assert isinstance(third, SubscriptionReceipt)
        assert rows == {first.id: QUERY, third.id: queries[2]}
        assert isinstance(second, SubscriptionError)
        assert second.problem.where.source == "subscription"
        assert isinstance(fourth, InvalidRequestError)
        assert "2 subscriptions" in fourth.problem.what
        assert await one.broker.subscriptions.subscription(third.id, ANYBODY, third.ticket)
        assert await subscription_counts(one) == {0: 2}
        changes = [row["change"] for row in await one.rows(subscriptions)]
        assert len(set(changes)) == 2
        await one.publish("a")
        assert len(await one.rows(matches)) == 2


async def test_more_than_a_batch_keeps_the_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmatch.broker.service.subscriptions.BATCH_SIZE", 3)
    async with harness(tmp_path, running=False) as one:
        settings = [SubscriptionSettings(name=str(number)) for number in range(8)]
        results = await one.broker.subscriptions.subscribe_many([(DEFINITION, s) for s in settings])
        names = {row["id"]: row["name"] for row in await one.rows(subscriptions)}
        ids = [one.id for one in results if isinstance(one, SubscriptionReceipt)]
        assert [names[id] for id in ids] == [str(number) for number in range(8)]


async def test_stored_bytes_are_limited_and_freed(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "a.db"))
    broker = Broker(store, Engine(), limits=BrokerLimits(stored_bytes=100))
    token = await broker.accounts.new_token("ann", ["publish"])
    ann = await broker.accounts.principal(token)

    async def publish(seq: int, by: Principal, source: str = "http", size: int = 60) -> None:
        row = {"seq": seq, "id": "urn:p", "data": b"x" * size, "source": source}

        def work(db: Any) -> None:
            if source == "http":
                broker.accounts.charge(db, by, size)
            row.update(owner=by.owner, received_at=0)
            db.execute(publications.insert().values(row))

        await store.write(work)

    await publish(1, ann)
    await publish(2, ann, source="urn:feed")
    with pytest.raises(TooManyRequestsError, match="more than 100 bytes") as caught:
        await publish(3, ann)
    assert caught.value.retry_after > 0
    await publish(3, ANYBODY)
    await publish(4, Principal(ann.owner, frozenset({"admin"})))

    def delete_first(db: Any) -> None:
        remove_usage_of(db, [1, 2])
        db.execute(delete(publications).where(publications.c.seq.in_([1, 2])))

    await store.write(delete_first)
    rows = await store.read(lambda db: db.execute(select(usage)).all())
    assert sorted(rows) == [(0, 0, 60), (ann.owner, 0, 60)]
    store.close()


# -- requests -----------------------------------------------------------------------------------


class Seconds:
    def __init__(self) -> None:
        self.now = 1e6

    def __call__(self) -> float:
        return self.now


def test_requests_are_limited_per_key_and_refill() -> None:
    seconds = Seconds()
    limiter = RateLimiter(seconds)
    for _ in range(60):
        limiter.check("owner 1", 60)
    with pytest.raises(TooManyRequestsError) as caught:
        limiter.check("owner 1", 60)
    assert caught.value.retry_after == pytest.approx(1)
    limiter.check("owner 2", 60)
    seconds.now += caught.value.retry_after
    limiter.check("owner 1", 60)
    with pytest.raises(TooManyRequestsError):
        limiter.check("owner 1", 60)
    seconds.now += 60
    for _ in range(60):
        limiter.check("owner 1", 60)


def test_refused_requests_do_not_prolong_the_wait() -> None:
    seconds = Seconds()
    limiter = RateLimiter(seconds)
    limiter.check("a", 1)
    for _ in range(100):
        with pytest.raises(TooManyRequestsError):
            limiter.check("a", 1)
    seconds.now += 60
    limiter.check("a", 1)


def test_wrong_tokens_are_slowed_down_per_address() -> None:
    seconds = Seconds()
    limiter = RateLimiter(seconds)
    for _ in range(FAILURES):
        limiter.check_failures("192.0.2.1")
        limiter.failed("192.0.2.1")
    with pytest.raises(TooManyRequestsError) as caught:
        limiter.check_failures("192.0.2.1")
    assert caught.value.retry_after == pytest.approx(60 / FAILURES)
    limiter.check_failures("192.0.2.2")
    limiter.check("192.0.2.1", 60)
    seconds.now += 60
    limiter.check_failures("192.0.2.1")


def test_the_memory_of_the_limiter_is_bounded() -> None:
    limiter = RateLimiter(Seconds())
    limiter.check("first", 1)
    for number in range(MAX_KEYS - 1):
        limiter.check(str(number), 1)
    with pytest.raises(TooManyRequestsError):
        limiter.check("first", 1)
    limiter.check("one more", 1)
    limiter.check("first", 1)
