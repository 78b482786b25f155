"""Permissions of clients: tickets, tokens and keys; and times of deliveries."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmatch.broker.app.errors import ConflictError, InvalidRequestError
from graphmatch.broker.app.security import ANYBODY, digest_of
from graphmatch.broker.db.tables import idempotency_keys, publications, subscriptions, tokens
from graphmatch.broker.models.limits import BrokerLimits
from graphmatch.broker.models.subscription_settings import (
    SubscriptionSettings,
    checked_digest,
    checked_quiet,
    checked_sink,
    send_at,
)
from graphmatch.engine import Engine
from semantic.errors import SubscriptionError
from tests.graphmatch.broker.harness import QUERY, BrokerHarness, harness

TEXT = b"<urn:a> a <urn:C> ."
GIVEN = {"query": QUERY}


async def test_tickets_and_tokens_are_not_stored(idle: BrokerHarness) -> None:
    broker = idle.broker
    made = await broker.subscribe(GIVEN, SubscriptionSettings(name=" a\n b "))
    [row] = await idle.rows(subscriptions)
    assert made.ticket not in str(dict(row))
    assert (row["ticket"], row["name"]) == (digest_of(made.ticket), "a b")
    token = await broker.accounts.new_token("bob", ["publish"])
    assert token not in str([dict(row) for row in await idle.rows(tokens)])
    with pytest.raises(InvalidRequestError, match="no scope"):
        await broker.accounts.new_token("ann", ["all"])


async def test_a_key_that_is_used_again_publishes_nothing(idle: BrokerHarness) -> None:
    publish = idle.broker.publish
    at_once = await asyncio.gather(
        *(publish(TEXT, format="ttl", name="urn:p", key="k") for _ in range(5))
    )
    later = await publish(TEXT, format="ttl", name="urn:p", key="k")
    assert {said.publications for said in (*at_once, later)} == {((1, "urn:p"),)}
    with pytest.raises(ConflictError):
        await publish(b"<urn:b> a <urn:C> .", format="ttl", key="k")
    ann = await idle.broker.accounts.principal(
        await idle.broker.accounts.new_token("ann", ["publish"])
    )
    other = await publish(b"<urn:b> a <urn:C> .", format="ttl", name="urn:q", key="k", by=ann)
    assert other.publications == ((2, "urn:q"),)
    assert len(await idle.rows(publications)) == 2
    assert len(await idle.rows(idempotency_keys)) == 2


async def test_publications_and_further_changes_are_committed_together(idle: BrokerHarness) -> None:
    found, _ = idle.broker.publications.read(TEXT, format="ttl", name="urn:p")

    def fails(_: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await idle.broker.publications.take_in(found, source="kafka", also=fails)
    assert not await idle.rows(publications)


async def test_limits_are_kept(tmp_path: Path) -> None:
    limits = BrokerLimits(subscriptions=2, publications=2, query_characters=100)
    async with harness(tmp_path, limits=limits, running=False) as one:
        broker = one.broker
        for _ in range(2):
            made = await broker.subscribe(GIVEN, SubscriptionSettings())
        with pytest.raises(InvalidRequestError, match="2 subscriptions already"):
            await broker.subscribe(GIVEN, SubscriptionSettings())
        await broker.subscriptions.unsubscribe(made.id, ANYBODY, made.ticket)
        await broker.subscribe(GIVEN, SubscriptionSettings())
        with pytest.raises(InvalidRequestError, match="at most 100 characters"):
            await broker.subscribe(
                {"query": QUERY + " " * 100}, SubscriptionSettings()
            )
        with pytest.raises(InvalidRequestError, match="a validity of"):
            await broker.subscribe(
                GIVEN, SubscriptionSettings(expires_in=timedelta(days=367))
            )
        several = "".join(f"<urn:a> <urn:p> {n} <urn:g{n}> .\n" for n in range(3))
        several = several.replace(" 0 ", ' "0" ').replace(" 1 ", ' "1" ').replace(" 2 ", ' "2" ')
        with pytest.raises(InvalidRequestError, match="more than 2 publications"):
            await broker.publish(several.encode(), format="nq")


async def test_an_invalid_subscription_leaves_nothing_behind(idle: BrokerHarness) -> None:
    bad: list[dict[str, Any]] = [{}, {"query": QUERY, "topics": ["a"]}, {"sparql": QUERY}]
    for each in bad:
        with pytest.raises(InvalidRequestError):
            await idle.broker.subscriptions.subscribe(each, SubscriptionSettings())
    with pytest.raises(SubscriptionError):
        await idle.broker.subscriptions.subscribe({"query": "SELECT"}, SubscriptionSettings())
    assert not await idle.rows(subscriptions)
    assert len(idle.broker.engine) == 0


@pytest.mark.parametrize(
    "sink",
    [
        {"kind": "pigeon"},
        {"kind": "webhook"},
        {"kind": "webhook", "url": "ftp://a/"},
        {"kind": "webhook", "url": "http://"},
        {"kind": "webhook", "url": "http://user:word@a/"},
        {"kind": "webhook", "url": "http://a:99999/"},
        {"kind": "webhook", "url": "http://a:x/"},
        {"kind": "webhook", "url": "http://a b/"},
        {"kind": "webhook", "url": "http://a/\n"},
        {"kind": "webhook", "url": "http://[::1/"},
        {"kind": "webhook", "url": ["http://a/"]},
        {"kind": "webhook", "url": "http://a/", "inbox": "http://b/"},
        {"kind": "inbox", "url": "http://a/", "inbox": "http://b/"},
        {"kind": "ntfy", "url": "http://a/", "token": 7},
        {"kind": "email", "address": "a"},
        {"kind": "email", "address": "a@b\nBcc: c@d"},
        {"kind": "sse", "url": "http://a/"},
        {"kind": "webhook", "url": "http://a/", "include_reasons": "yes"},
    ],
)
def test_an_invalid_sink_is_refused(sink: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError):
        checked_sink(sink)


# --- Delivery times ------------------------------------------------------------------------------

BERLIN = ZoneInfo("Europe/Berlin")
SPRING, AUTUMN = datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 10, 24, tzinfo=UTC)


def shown(time: datetime) -> int:
    local = time.astimezone(BERLIN)
    return local.hour * 60 + local.minute


@pytest.mark.parametrize("day", [SPRING, AUTUMN])
def test_times_of_day_hold_when_clocks_change(day: datetime) -> None:
    """Check every minute; times skipped in spring come an hour later by the clock."""
    for hours, (begin, end) in product(
        range(0, 60, 3), [(22 * 60, 7 * 60), (60, 150), (0, 180), (7 * 60, 22 * 60)]
    ):
        now = day + timedelta(hours=hours, minutes=17)
        quiet = {"from": begin, "to": end, "zone": "Europe/Berlin"}
        due = send_at(now, None, quiet)

        def is_quiet(at: datetime, begin: int = begin, end: int = end) -> bool:
            return begin <= shown(at) < end if begin < end else not end <= shown(at) < begin

        assert not is_quiet(due), (now, quiet, due)
        assert due >= now
        steps = int((due - now) / timedelta(minutes=1))
        quietly = [is_quiet(now + timedelta(minutes=n)) for n in range(steps)]
        assert sum(not one for one in quietly) <= 60, (now, quiet, due)
        for minutes in (30, 150, 480):
            digest = {"at": [minutes], "zone": "Europe/Berlin"}
            due = send_at(now, digest, None)
            assert now < due <= now + timedelta(hours=26)
            gap = day == SPRING and minutes == 150 and shown(due) == 210
            assert shown(due) == minutes or gap, (now, digest, due)


def test_a_digest_is_sent_once_at_a_time_that_occurs_twice() -> None:
    digest = checked_digest({"at": ["02:30"], "zone": "Europe/Berlin"})
    first = send_at(datetime(2026, 10, 24, 23, tzinfo=UTC), digest, None)
    assert first == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert send_at(first, digest, None) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


@given(st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)), st.integers(60, 31 * 86400))
def test_a_digest_is_sent_within_its_interval(now: datetime, seconds: int) -> None:
    now = now.replace(tzinfo=UTC)
    due = send_at(now, checked_digest({"every": seconds}), None)
    assert now < due <= now + timedelta(seconds=seconds)


@pytest.mark.parametrize("digest", [{"every": 59}, {"every": 60.5}, {"at": []}, {"at": "08:00"}])
def test_invalid_times_are_refused(digest: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError):
        checked_digest(digest)
    for quiet in ({"from": "22:00"}, {"from": "25:00", "to": "07:00"}):
        with pytest.raises(InvalidRequestError):
            checked_quiet(quiet)
    with pytest.raises(InvalidRequestError, match="is not a time zone"):
        checked_quiet({"from": "22:00", "to": "07:00", "zone": "../etc/passwd"})


async def test_a_query_is_checked_without_the_engine_that_matches(
    monkeypatch: pytest.MonkeyPatch, idle: BrokerHarness
) -> None:
    """The check must be independent of 100,000 subscriptions and running matches."""

    live, subscribe = idle.broker.engine, Engine.subscribe

    def checked(self: Engine, *given: Any) -> None:
        assert self is not live
        subscribe(self, *given)

    monkeypatch.setattr(Engine, "subscribe", checked)
    await idle.broker.subscriptions.subscribe(GIVEN, SubscriptionSettings())
    with pytest.raises(SubscriptionError, match="subscription:1:"):
        await idle.broker.subscriptions.subscribe({"query": "ASK { ?s"}, SubscriptionSettings())
    await idle.broker.subscriptions.subscribe(GIVEN, SubscriptionSettings())
    assert len(await idle.rows(subscriptions)) == 2
