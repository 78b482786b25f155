"""Tickets, tokens, sessions, idempotency keys and the confirmation of email addresses."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from graphmatch.broker.app.errors import ConflictError, InvalidRequestError, NotFoundError
from graphmatch.broker.app.security import ANYBODY, Principal, derived_key, digest_of
from graphmatch.broker.db.tables import (
    deliveries,
    matches,
    publications,
    sessions,
    subscriptions,
    tokens,
    usage,
)
from graphmatch.broker.models.subscription import SubscriptionChange, SubscriptionReceipt
from graphmatch.broker.models.subscription_settings import SubscriptionSettings
from tests.graphmatch.broker.harness import QUERY, BrokerHarness, FakeClock

DEFINITION = {"query": QUERY}
EMAIL = SubscriptionSettings(sink={"kind": "email", "address": "ann@example.org"})


async def principal_of(one: BrokerHarness, owner: str, scope: str = "subscribe") -> Principal:
    token = await one.broker.accounts.new_token(owner, [scope])
    return await one.broker.accounts.principal(token)


async def test_tickets_tokens_and_sessions_are_not_stored(idle: BrokerHarness) -> None:
    broker = idle.broker
    created = await broker.subscriptions.subscribe(DEFINITION, SubscriptionSettings(name=" a\n b "))
    [row] = await idle.rows(subscriptions)
    assert created.ticket is not None
    assert created.ticket not in str(dict(row))
    assert (row["ticket"], row["name"]) == (digest_of(created.ticket), "a b")
    token = await broker.accounts.new_token("bob", ["publish"])
    session = await broker.accounts.begin_session(token)
    for secret in (token, session):
        for table in (tokens, sessions):
            assert secret not in str([dict(row) for row in await idle.rows(table)])
    with pytest.raises(InvalidRequestError, match="no scope is called 'all'"):
        await broker.accounts.new_token("ann", ["all"])


async def test_api_subscriptions_last_thirty_days(idle: BrokerHarness, clock: FakeClock) -> None:
    created = await idle.broker.subscriptions.subscribe(DEFINITION, SubscriptionSettings())
    assert created.expires_at == clock() + timedelta(days=30)


# -- tokens and sessions ------------------------------------------------------------------------


async def test_tokens_can_be_listed_revoked_and_expire(
    idle: BrokerHarness, clock: FakeClock
) -> None:
    accounts = idle.broker.accounts
    first = await accounts.new_token("ann", ["publish"], "till", timedelta(hours=1))
    second = await accounts.new_token("ann", ["subscribe", "feeds"])
    other = await accounts.new_token("bob", ["publish"])
    listed = await accounts.tokens("ann")
    assert [(row["owner"], row["name"], row["scopes"]) for row in listed] == [
        ("ann", "", "feeds subscribe"),
        ("ann", "till", "publish"),
    ]
    assert "hash" not in listed[0]
    assert listed[0]["expires_at"] is None
    assert listed[1]["expires_at"] - listed[1]["created_at"] == 3_600_000
    assert len(await accounts.tokens(None)) == 3

    assert (await accounts.principal(first)).may("publish")
    clock.forward(hours=1)
    with pytest.raises(NotFoundError):
        await accounts.principal(first)
    await accounts.revoke_token(listed[0]["id"])
    with pytest.raises(NotFoundError):
        await accounts.principal(second)
    for id in (listed[0]["id"], 99):
        with pytest.raises(NotFoundError, match="no valid token"):
            await accounts.revoke_token(id)
    assert (await accounts.tokens("ann"))[0]["revoked_at"] is not None
    assert (await accounts.principal(other)).may("publish")


async def test_sessions_end_after_twelve_hours_or_with_their_token(
    idle: BrokerHarness, clock: FakeClock
) -> None:
    accounts = idle.broker.accounts
    token = await accounts.new_token("ann", ["subscribe"], expires_in=timedelta(hours=30))
    principal = await accounts.principal(token)
    first, second = [await accounts.begin_session(token) for _ in range(2)]
    assert first != second
    assert token not in (first, second)
    assert await accounts.session_principal(first) == principal
    assert await accounts.session_principal(token) is None
    await accounts.end_session(first)
    assert await accounts.session_principal(first) is None
    assert await accounts.session_principal(second) == principal
    clock.forward(hours=11, minutes=59)
    assert await accounts.session_principal(second) == principal
    clock.forward(minutes=1)
    assert await accounts.session_principal(second) is None

    third = await accounts.begin_session(token)
    [row] = await accounts.tokens("ann")
    await accounts.revoke_token(row["id"])
    assert await accounts.session_principal(third) is None
    for wrong in (token, "gmk_wrong", first):
        with pytest.raises(NotFoundError):
            await accounts.begin_session(wrong)


async def test_a_session_ends_when_its_token_expires(idle: BrokerHarness, clock: FakeClock) -> None:
    accounts = idle.broker.accounts
    token = await accounts.new_token("ann", ["subscribe"], expires_in=timedelta(hours=1))
    session = await accounts.begin_session(token)
    clock.forward(hours=1)
    assert await accounts.session_principal(session) is None


# -- idempotency keys ---------------------------------------------------------------------------


async def test_a_repeated_request_creates_no_second_subscription(idle: BrokerHarness) -> None:
    ann, bob = await principal_of(idle, "ann"), await principal_of(idle, "bob")
    subscribe = idle.broker.subscriptions.subscribe
    settings = SubscriptionSettings(name="a", expires_in=timedelta(days=2))
    results = await asyncio.gather(*(subscribe(DEFINITION, settings, ann, "k") for _ in range(5)))
    results.append(await subscribe(DEFINITION, settings, ann, "k"))
    assert len({(one.id, one.expires_at) for one in results}) == 1
    assert sum(one.ticket is not None for one in results) == 1
    assert len(await idle.rows(subscriptions)) == 1
    other_settings = SubscriptionSettings(name="b", expires_in=timedelta(days=2))
    for definition, changed in (({"query": QUERY + " "}, settings), (DEFINITION, other_settings)):
        with pytest.raises(ConflictError):
            await subscribe(definition, changed, ann, "k")
    assert (await subscribe(DEFINITION, settings, bob, "k")).ticket is not None
    ids = {(await subscribe(DEFINITION, settings, ANYBODY, "k")).id for _ in range(2)}
    assert len(ids) == 2, "clients without a token share no keys"
    assert [row["subscriptions"] for row in await idle.rows(usage)] == [2, 1, 1]


async def test_a_refused_request_uses_no_key(idle: BrokerHarness) -> None:
    ann = await principal_of(idle, "ann")
    with pytest.raises(InvalidRequestError):
        await idle.broker.subscriptions.subscribe({}, SubscriptionSettings(), ann, "k")
    created = await idle.broker.subscriptions.subscribe(DEFINITION, EMAIL, ann, "k")
    assert created.ticket is not None
    again = await idle.broker.subscriptions.subscribe(DEFINITION, EMAIL, ann, "k")
    assert (again.id, again.ticket) == (created.id, None)
    assert len(await idle.rows(deliveries)) == 1


# -- email --------------------------------------------------------------------------------------


async def test_an_email_sink_needs_confirmation(idle: BrokerHarness, clock: FakeClock) -> None:
    broker = idle.broker
    created = await broker.subscriptions.subscribe(DEFINITION, EMAIL)
    await idle.publish("before")
    [row] = await idle.rows(subscriptions)
    [delivery] = await idle.rows(deliveries)
    assert row["state"] == "unconfirmed"
    assert (delivery["kind"], delivery["host"]) == ("confirmation", "smtp:")
    assert (delivery["subscription"], delivery["state"]) == (row["number"], "waiting")
    assert not await idle.rows(matches)

    ticket = created.ticket or ""
    wrong = ["", ticket, derived_key(digest_of(ticket), created.id, "confirm")]
    for key in wrong:
        with pytest.raises(NotFoundError):
            await broker.subscriptions.confirm(created.id, key)
    with pytest.raises(NotFoundError):
        await broker.subscriptions.confirm("sub_0", row["confirmation"])
    with pytest.raises(InvalidRequestError, match="not confirmed"):
        await broker.subscriptions.change(
            created.id, ANYBODY, ticket, SubscriptionChange(state="active")
        )

    before = await broker.subscriptions.confirm(created.id, row["confirmation"])
    assert (before["number"], before["state"]) == (row["number"], "unconfirmed")
    await idle.match()
    assert not await idle.rows(matches), "publications before the confirmation do not match"
    await idle.publish("after")
    [match] = await idle.rows(matches)
    assert match["publication"] == 2
    await broker.subscriptions.change(
        created.id, ANYBODY, ticket, SubscriptionChange(state="paused")
    )
    await broker.subscriptions.confirm(created.id, row["confirmation"])
    assert [row["state"] for row in await idle.rows(subscriptions)] == ["paused"]


async def test_a_subscription_without_a_confirmation_cannot_be_confirmed(
    idle: BrokerHarness,
) -> None:
    created = await idle.subscribe("http://127.0.0.1:9/hook")
    for key in ("", created.ticket or "", "gmc_0"):
        with pytest.raises(NotFoundError):
            await idle.broker.subscriptions.confirm(created.id, key)


async def test_a_new_email_address_must_be_confirmed(idle: BrokerHarness) -> None:
    broker = idle.broker
    created = await broker.subscriptions.subscribe(DEFINITION, SubscriptionSettings())

    async def change(sink: dict[str, object]) -> tuple[str, str | None]:
        changed = SubscriptionChange(sink=sink)
        await broker.subscriptions.change(created.id, ANYBODY, created.ticket, changed)
        [row] = await idle.rows(subscriptions)
        return row["state"], row["confirmation"]

    state, first = await change({"kind": "email", "address": "ann@example.org"})
    assert (state, len(await idle.rows(deliveries))) == ("unconfirmed", 1)
    assert first is not None
    await broker.subscriptions.confirm(created.id, first)
    sink = {"kind": "email", "address": "ann@example.org", "include_reasons": True}
    assert await change(sink) == ("active", first), "the address is the same"
    state, second = await change({"kind": "email", "address": "bob@example.org"})
    assert (state, len(await idle.rows(deliveries))) == ("unconfirmed", 2)
    with pytest.raises(NotFoundError):
        await broker.subscriptions.confirm(created.id, first)
    sink = {"kind": "email", "address": "bob@example.org", "include_reasons": True}
    assert await change(sink) == ("unconfirmed", second), "the second message stays valid"
    assert (await change({"kind": "sse"}))[0] == "active"
    assert (await change(sink))[0] == "unconfirmed"
    assert len(await idle.rows(deliveries)) == 3


async def test_many_email_sinks_get_a_confirmation_each(idle: BrokerHarness) -> None:
    settings = [EMAIL, SubscriptionSettings(), EMAIL]
    results = await idle.broker.subscriptions.subscribe_many([(DEFINITION, s) for s in settings])
    numbers = {row["id"]: row["number"] for row in await idle.rows(subscriptions)}
    wanted = [
        numbers[one.id] for one in (results[0], results[2]) if isinstance(one, SubscriptionReceipt)
    ]
    rows = await idle.rows(deliveries)
    assert sorted(row["subscription"] for row in rows) == wanted
    assert len(wanted) == 2


async def test_a_key_ends_a_subscription(idle: BrokerHarness) -> None:
    broker = idle.broker
    created = await broker.subscriptions.subscribe(DEFINITION, EMAIL)
    other = await broker.subscriptions.subscribe(DEFINITION, EMAIL)
    digest = digest_of(created.ticket or "")
    key = derived_key(digest, created.id, "unsubscribe")
    for id, wrong in (
        (created.id, derived_key(digest, created.id, "read")),
        (created.id, ""),
        (other.id, key),
        ("sub_0", key),
    ):
        with pytest.raises(NotFoundError):
            await broker.subscriptions.unsubscribe(id, key=wrong)
    for state in ("unconfirmed", "ended"):
        before = await broker.subscriptions.unsubscribe(created.id, key=key)
        assert before["state"] == state
    states = [(row["state"], row["reason"]) for row in await idle.rows(subscriptions)]
    assert states == [("ended", "unsubscribed"), ("unconfirmed", None)]
    assert [row["subscriptions"] for row in await idle.rows(usage)] == [1]
    [first, _] = await idle.rows(subscriptions)
    await broker.subscriptions.confirm(created.id, first["confirmation"])
    assert (await idle.rows(subscriptions))[0]["state"] == "ended"
    assert not await idle.rows(publications)
