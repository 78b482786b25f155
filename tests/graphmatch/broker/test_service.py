"""Permissions of clients: tickets, tokens and keys; and times of deliveries."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from graphmatch.broker.app.errors import ConflictError, InvalidRequestError
from graphmatch.broker.app.security import ANYBODY
from graphmatch.broker.db.tables import idempotency_keys, publications, subscriptions
from graphmatch.broker.models.subscription import SubscriptionChange
from graphmatch.broker.models.subscription_settings import (
    SubscriptionSettings,
    default_name,
    send_at,
)
from graphmatch.broker.service.publications import BATCH_SIZE, Addition
from graphmatch.engine import Engine
from semantic.errors import GraphMatchError, SubscriptionError
from tests.graphmatch.broker.harness import QUERY, BrokerHarness
from tests.waiting import until

TEXT = b"<urn:a> a <urn:C> ."
GIVEN = {"query": QUERY}


async def test_a_key_that_is_used_again_publishes_nothing(idle: BrokerHarness) -> None:
    publish = idle.broker.publications.publish
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
        await idle.broker.publications.add(Addition(found, "kafka", within=fails))
    assert not await idle.rows(publications)


async def test_a_failure_after_a_commit_does_not_stop_later_commits(idle: BrokerHarness) -> None:
    def fails() -> None:
        raise ZeroDivisionError

    idle.broker.on_commit = fails
    publish = idle.broker.publications.publish
    several = (publish(TEXT, format="ttl") for _ in range(BATCH_SIZE + 1))
    async with asyncio.timeout(20):
        await asyncio.gather(*several)
    assert len(await idle.rows(publications)) == BATCH_SIZE + 1
    await until(lambda: idle.broker.supervisor.failing() != [])
    assert idle.broker.supervisor.failing() == ["publications fails: ZeroDivisionError:"]


async def test_an_invalid_subscription_leaves_nothing_behind(idle: BrokerHarness) -> None:
    bad: list[dict[str, Any]] = [{}, {"query": QUERY, "topics": ["a"]}, {"sparql": QUERY}]
    for definition in bad:
        with pytest.raises(InvalidRequestError):
            await idle.broker.subscriptions.subscribe(definition, SubscriptionSettings())
    with pytest.raises(SubscriptionError):
        await idle.broker.subscriptions.subscribe({"query": "SELECT"}, SubscriptionSettings())
    assert not await idle.rows(subscriptions)
    assert len(idle.broker.engine) == 0


@pytest.mark.parametrize(
    ("sink", "place"),
    [
        ({}, "sink"),
        ({"kind": "pigeon"}, "sink"),
        ({"kind": ["webhook"]}, "sink"),
        ({"kind": "webhook"}, "sink.webhook.url"),
        ({"kind": "webhook", "url": "ftp://a/"}, "the URL"),
        ({"kind": "webhook", "url": "http://"}, "the URL"),
        ({"kind": "webhook", "url": "http://user:word@a/"}, "the URL"),
        ({"kind": "webhook", "url": "http://a:99999/"}, "the URL"),
        ({"kind": "webhook", "url": "http://a:x/"}, "the URL"),
        ({"kind": "webhook", "url": "http://a b/"}, "the URL"),
        ({"kind": "webhook", "url": "http://[::1/"}, "the URL"),
        ({"kind": "webhook", "url": ["http://a/"]}, "sink.webhook.url"),
        ({"kind": "webhook", "url": "http://169.254.169.254/latest"}, "http://169.254.169.254"),
        ({"kind": "inbox", "url": "http://[::ffff:10.0.0.1]/"}, "http://[::ffff:a00:1]"),
        ({"kind": "ntfy", "url": "http://0x7f.1/"}, "the URL"),
        ({"kind": "webhook", "url": "http://a/", "inbox": "http://b/"}, "sink.webhook.inbox"),
        ({"kind": "inbox", "url": "http://a/", "inbox": "http://b/"}, "sink.inbox.inbox"),
        ({"kind": "inbox", "url": "http://a/", "format": "cloudevents"}, "sink.inbox.format"),
        ({"kind": "webhook", "url": "http://a/", "format": "xml"}, "sink.webhook.format"),
        ({"kind": "webhook", "url": "http://a/", "secret": "short"}, "webhook secret"),
        ({"kind": "inbox", "url": "http://a/", "include_reasons": 2}, "sink.inbox.include_reasons"),
        ({"kind": "ntfy", "url": "http://a/", "token": 7}, "sink.ntfy.token"),
        ({"kind": "email", "address": "a"}, "sink.email.address"),
        ({"kind": "email", "address": "a@b\nBcc: c@d"}, "sink.email.address"),
        ({"kind": "email", "address": "a@b\n"}, "sink.email.address"),
        ({"kind": "sse", "url": "http://a/"}, "sink.sse.url"),
    ],
)
async def test_an_invalid_sink_is_refused(
    idle: BrokerHarness, sink: dict[str, Any], place: str
) -> None:
    with pytest.raises((ValidationError, GraphMatchError)) as caught:
        await idle.broker.subscriptions.subscribe(GIVEN, SubscriptionSettings(sink=sink))
    assert place_of(caught.value) == place
    assert not await idle.rows(subscriptions)


def place_of(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return ".".join(map(str, error.errors()[0]["loc"]))
    assert isinstance(error, GraphMatchError)
    return error.problem.where.source


async def test_networks_that_are_not_public_can_be_allowed(idle: BrokerHarness) -> None:
    settings = SubscriptionSettings(sink={"kind": "inbox", "url": "http://10.1.2.3/"})
    with pytest.raises(GraphMatchError, match="not public"):
        await idle.broker.subscriptions.subscribe(GIVEN, settings)
    idle.broker.allowed_networks = [ip_network("10.0.0.0/8")]
    created = await idle.broker.subscriptions.subscribe(GIVEN, settings)
    loopback = SubscriptionChange(sink={"kind": "inbox", "url": "http://127.0.0.1/"})
    with pytest.raises(GraphMatchError, match="not public"):
        await idle.broker.subscriptions.change(created.id, ANYBODY, created.ticket, loopback)


def test_a_webhook_gets_a_secret_and_keeps_its_format() -> None:
    sink = {"kind": "webhook", "url": "http://a/", "format": "cloudevents"}
    first, second = [SubscriptionSettings(sink=sink).columns()["sink"] for _ in range(2)]
    assert first == {**sink, "secret": first["secret"]}
    assert second["secret"] != first["secret"]
    assert SubscriptionSettings(sink=first).columns() == {"sink": first}


# --- Delivery times ------------------------------------------------------------------------------

BERLIN = ZoneInfo("Europe/Berlin")
SPRING, AUTUMN = datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 10, 24, tzinfo=UTC)


def shown(time: datetime) -> str:
    return f"{time.astimezone(BERLIN):%H:%M}"


@pytest.mark.parametrize("day", [SPRING, AUTUMN])
def test_times_of_day_hold_when_clocks_change(day: datetime) -> None:
    """Check every minute; times skipped in spring come an hour later by the clock."""
    for hours, (begin, end) in product(
        range(0, 60, 3),
        [("22:00", "07:00"), ("01:00", "02:30"), ("00:00", "03:00"), ("07:00", "22:00")],
    ):
        now = day + timedelta(hours=hours, minutes=17)
        quiet = {"from": begin, "to": end, "zone": "Europe/Berlin"}
        due = send_at(now, None, quiet)

        def is_quiet(at: datetime, begin: str = begin, end: str = end) -> bool:
            return begin <= shown(at) < end if begin < end else not end <= shown(at) < begin

        assert not is_quiet(due), (now, quiet, due)
        assert due >= now
        steps = int((due - now) / timedelta(minutes=1))
        quietly = [is_quiet(now + timedelta(minutes=n)) for n in range(steps)]
        assert sum(not one for one in quietly) <= 60, (now, quiet, due)
        for clock in ("00:30", "02:30", "08:00"):
            digest = {"at": [clock], "zone": "Europe/Berlin"}
            due = send_at(now, digest, None)
            assert now < due <= now + timedelta(hours=26)
            gap = day == SPRING and clock == "02:30" and shown(due) == "03:30"
            assert shown(due) == clock or gap, (now, digest, due)


def test_a_digest_is_sent_once_at_a_time_that_occurs_twice() -> None:
    digest = {"at": ["02:30"], "zone": "Europe/Berlin"}
    first = send_at(datetime(2026, 10, 24, 23, tzinfo=UTC), digest, None)
    assert first == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert send_at(first, digest, None) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


@given(st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)), st.integers(60, 31 * 86400))
def test_a_digest_is_sent_within_its_interval(now: datetime, seconds: int) -> None:
    now = now.replace(tzinfo=UTC)
    due = send_at(now, {"every": seconds}, None)
    assert now < due <= now + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"digest": {"every": 59}}, "digest.every"),
        ({"digest": {"every": 60.5}}, "digest.every"),
        ({"digest": {}}, "digest"),
        ({"digest": {"every": 60, "at": ["08:00"]}}, "digest"),
        ({"digest": {"at": []}}, "digest"),
        ({"digest": {"at": ["8:00"]}}, "digest.at"),
        ({"digest": {"at": "08:00"}}, "digest"),
        ({"digest": {"at": ["08:00"], "zone": "Nowhere"}}, "digest"),
        ({"quiet_hours": {"from": "22:00"}}, "quiet_hours.to"),
        ({"quiet_hours": {"from": "25:00", "to": "07:00"}}, "quiet_hours.from"),
        ({"quiet_hours": {"from": "22:00", "to": "07:00", "zone": "../etc"}}, "quiet_hours.zone"),
    ],
)
def test_invalid_times_are_refused(settings: dict[str, Any], place: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SubscriptionSettings(**settings)
    assert place_of(caught.value).startswith(place)


def test_settings_are_stored_as_in_the_request() -> None:
    quiet = {"from": "22:00", "to": "07:30"}
    settings = SubscriptionSettings(
        name=" a\n b ", sink={"kind": "sse"}, digest=None, quiet_hours=quiet
    )
    assert settings.columns() == {
        "name": "a b",
        "sink": {"kind": "sse"},
        "digest": None,
        "quiet_hours": {**quiet, "zone": "UTC"},
    }
    assert SubscriptionSettings().columns() == {}
    assert SubscriptionSettings(name=" ").columns() == {}
    [digest] = SubscriptionSettings(digest={"at": ["08:00"]}).columns().values()
    assert digest == {"at": ["08:00"], "zone": "UTC"}
    assert default_name({"topics": ["Energy", "Oil"], "words": "gas"}) == "Energy and Oil and gas"


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
