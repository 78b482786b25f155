"""The dispatcher against real servers on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import quantiles
from typing import Any

import pytest
import standardwebhooks
from aiohttp import web

from graphmatch.broker.app.errors import InvalidRequestError
from graphmatch.broker.app.security import Principal
from graphmatch.broker.db import delivery_queries
from graphmatch.broker.db.store import Store
from graphmatch.broker.db.tables import (
    audit,
    circuit_breakers,
    deliveries,
    idempotency_keys,
    matches,
    publications,
    subscriptions,
)
from graphmatch.broker.models.attempt import FAILURES, GIVEN_UP, JITTER, RETRY_SCHEDULE
from graphmatch.broker.models.limits import BrokerLimits
from graphmatch.broker.models.subscription import SubscriptionChange
from graphmatch.broker.models.subscription_settings import SubscriptionSettings
from graphmatch.broker.models.times import millis
from graphmatch.broker.outbox import dispatcher as module
from graphmatch.broker.service import match_worker, retention
from semantic.clock import utc_now
from tests.graphmatch.broker.harness import (
    NOON,
    TYPE,
    BrokerHarness,
    FakeClock,
    Got,
    Receiver,
    hang,
    harness,
    postgresql,
    receivers,
    status,
)
from tests.waiting import until

ADMIN = Principal(scopes=frozenset({"admin"}))


async def states(one: BrokerHarness) -> list[str]:
    return [row["state"] for row in await one.rows(deliveries)]


async def test_a_match_is_posted_with_a_signature(tmp_path: Path) -> None:
    async with receivers() as [hook], harness(tmp_path, utc_now) as broker:
        made = await broker.subscribe(hook.url(), name="Soup")
        await broker.publish("a", "b")
        await until(broker.all_are("delivered"))
        assert made.secret is not None
        assert len(hook.got) == 2
        for one in hook.got:
            standardwebhooks.Webhook(made.secret).verify(one.body, dict(one.headers))
        said = json.loads(hook.got[0].body)
        assert said["type"] == "match"
        assert said["id"] == hook.got[0].id
        assert (said["subscription"], said["name"]) == (made.id, "Soup")
        [match] = said["matches"]
        assert match["publication"]["id"] == "urn:g-a"
        assert match["solutions"] == [{"s": "<urn:a>"}]
        assert "reasons" not in match
        row = (await broker.rows(deliveries))[0]
        assert (row["attempt"], row["status"], row["error"]) == (1, 200, None)
        assert row["claimed_until"] is None


async def test_a_delivery_is_tried_ten_times_under_one_id(
    hook: Receiver, clock: FakeClock, broker: BrokerHarness
) -> None:
    hook.answer = status(500)
    await broker.subscribe(hook.url(), expires_in=timedelta(days=30))
    await broker.publish("a")
    for attempt in range(1, 11):

        async def tried(attempt: int = attempt) -> bool:
            [row] = await broker.rows(deliveries)
            return bool(row["attempt"] == attempt)

        await until(tried)
        [row] = await broker.rows(deliveries)
        if attempt == 10:
            break
        wait = row["due_at"] - millis(clock())
        planned = RETRY_SCHEDULE[attempt - 1] / timedelta(milliseconds=1)
        assert abs(wait - planned) <= JITTER * planned + 1
        assert (row["state"], row["status"]) == ("waiting", 500)
        clock.forward(milliseconds=max(wait - 1, 0))
        broker.dispatcher.wake()
        await asyncio.sleep(0.02)
        assert len(hook.got) == attempt  # The retry is not due.
        [host] = await broker.rows(circuit_breakers)
        open_until = max(0, (host["open_until"] or 0) - millis(clock()))
        clock.forward(milliseconds=open_until + 2)
        broker.dispatcher.wake()
    assert row["state"] == "failed"
    assert "500" in row["error"]
    assert len(hook.count()) == 1
    assert len(hook.got) == 10

    hook.answer = None  # Retry by hand.
    clock.forward(hours=2)
    await broker.dispatcher.retry(1)
    await until(broker.all_are("delivered"))
    [row] = await broker.rows(deliveries)
    assert row["attempt"] == 11
    assert len(hook.count()) == 1
    await broker.dispatcher.retry(1)
    assert (await broker.rows(deliveries))[0]["state"] == "delivered"
    [host] = await broker.rows(circuit_breakers)
    assert (host["failures"], host["open_until"]) == (0, None)


async def _attempted(broker: BrokerHarness, times: int) -> bool:
    return all(row["attempt"] >= times for row in await broker.rows(deliveries))


async def test_410_disables_the_subscription(tmp_path: Path) -> None:
    async with receivers(2) as [hook, other], harness(tmp_path) as broker:
        hook.answer = status(410)
        made = await broker.subscribe(hook.url(), digest={"every": 86400})
        await broker.publish("a")
        await broker.broker.subscriptions.change(
            made.id, ADMIN, None, SubscriptionChange(digest=None)
        )
        await broker.subscribe(other.url())
        await broker.publish("b")  # The digest waits next to it.
        await until(lambda: _ended(broker, 1))
        [row, second] = await broker.rows(subscriptions)
        assert (row["state"], row["reason"]) == ("paused", "410 Gone")
        assert second["state"] == "active"
        await broker.publish("c")
        await until(lambda: len(other.got) == 2)
        await until(lambda: _ended(broker, 4))
        assert len(hook.got) == 1
        lines = [line["action"] for line in await broker.rows(audit)]
        assert "subscription paused: 410 Gone" in lines
        mine = [one for one in await broker.rows(deliveries) if one["subscription"] == 1]
        assert [one["state"] for one in mine] == ["failed", "failed"]

        hook.answer = None
        await broker.broker.subscriptions.change(
            made.id, ADMIN, None, SubscriptionChange(state="active")
        )
        await broker.publish("d")
        await until(lambda: len(hook.got) == 2)
        assert b"urn:g-d" in hook.got[1].body


async def _ended(broker: BrokerHarness, count: int) -> bool:
    found = await states(broker)
    return len(found) >= count and "waiting" not in found


async def test_a_410_of_a_replaced_address_disables_nothing(
    hook: Receiver, broker: BrokerHarness
) -> None:
    release = asyncio.Event()

    async def late(_: web.Request) -> web.Response:
        await release.wait()
        return web.Response(status=410)

    hook.answer = late
    made = await broker.subscribe(hook.url("/old"))
    await broker.publish("a")
    await until(lambda: len(hook.got) == 1)
    sink = {"kind": "webhook", "url": hook.url("/new")}
    await broker.broker.subscriptions.change(made.id, ADMIN, None, SubscriptionChange(sink=sink))
    release.set()
    await until(broker.all_are("failed"))
    [row] = await broker.rows(subscriptions)
    assert row["state"] == "active"


async def test_a_forbidden_address_is_not_tried_again(tmp_path: Path) -> None:
    async with receivers() as [hook], harness(tmp_path, allow=[]) as broker:
        await broker.subscribe(hook.url())
        await broker.publish("a")
        await until(broker.all_are("failed"))
        [row] = await broker.rows(deliveries)
        said = "nothing is sent to 127.0.0.1, which is not public, without --allow 127.0.0.0/8"
        assert row["error"] == said
        assert not hook.got


async def test_email_without_a_server_fails_with_its_reason(broker: BrokerHarness) -> None:
    sink = {"kind": "email", "address": "ann@example.org"}
    await broker.broker.subscriptions.subscribe(
        {"query": "ASK { ?s a <urn:C> }"}, SubscriptionSettings(sink=sink)
    )
    await broker.publish("a")
    await until(broker.all_are("failed"))
    [row] = await broker.rows(deliveries)
    assert row["error"] == "the broker has no SMTP server"


async def test_a_host_gets_two_requests_at_once(hook: Receiver, broker: BrokerHarness) -> None:
    async def slow(_: web.Request) -> web.Response:
        await asyncio.sleep(0.02)
        return web.Response()

    hook.answer = slow
    await broker.subscribe(hook.url("/one"))
    await broker.subscribe(hook.url("/two"))
    await broker.publish(*(f"a{n}" for n in range(10)))
    await until(broker.all_are("delivered"))
    assert hook.most_at_once == 2
    assert set(hook.count().values()) == {1}


def published(got: Got) -> str:
    return str(json.loads(got.body)["matches"][0]["publication"]["id"])


async def test_a_dead_host_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async with receivers(5) as [dead, *alive], harness(tmp_path, utc_now, seconds=600) as broker:
        dead.answer = hang
        for one in (dead, *alive):
            await broker.subscribe(one.url())
        for n in range(25):
            await broker.publish(f"a{n}")
        await until(lambda: all(len(one.got) == 25 for one in alive))
        assert len(dead.got) == 2


@pytest.mark.long  # The delay is the promise, and only a clock shows it.
def test_a_dead_host_does_not_delay_the_others(tmp_path: Path) -> None:
    """A request to the dead host takes three seconds, which would delay the others."""

    async def taken(folder: Path, *, dead: bool) -> list[float]:
        async with receivers(20) as several, harness(folder, utc_now, seconds=3.0) as broker:
            for one in several:
                await broker.subscribe(one.url())
            if dead:
                several[0].answer = hang
            begun: dict[str, datetime] = {}
            for n in range(25):
                begun[f"urn:g-a{n}"] = utc_now()
                await broker.publish(f"a{n}")
                await asyncio.sleep(0.02)
            alive = several[1:]
            await until(lambda: all(len(one.got) == 25 for one in alive))
            assert not dead or len(several[0].got) == 2
            return quantiles(
                [
                    (got.at - begun[published(got)]).total_seconds()
                    for one in alive
                    for got in one.got
                ],
                n=20,
            )

    without = asyncio.run(taken(tmp_path / "without", dead=False))
    beside = asyncio.run(taken(tmp_path / "beside", dead=True))
    assert beside[9] < without[9] * 2 + 0.05  # The median must tolerate other programs.
    assert beside[18] < 1.0


async def test_a_failing_host_is_in_back_off(
    hook: Receiver, clock: FakeClock, broker: BrokerHarness
) -> None:
    hook.answer = status(500)
    await broker.subscribe(hook.url(), expires_in=timedelta(days=30))
    await broker.publish(*(f"a{n}" for n in range(30)))
    await until(lambda: _spared(broker))
    await asyncio.sleep(0.1)
    assert 5 <= len(hook.got) <= 6  # The breaker is open, and the others wait unclaimed.
    waiting = [row for row in await broker.rows(deliveries) if not row["attempt"]]
    assert len(waiting) >= 24
    assert all(row["claimed_until"] is None for row in waiting)
    before = len(hook.got)
    clock.forward(seconds=121)
    broker.dispatcher.wake()
    await until(lambda: len(hook.got) == before + 1)  # One probe is sent.
    await asyncio.sleep(0.1)
    assert len(hook.got) == before + 1
    hook.answer = None
    clock.forward(hours=1)
    broker.dispatcher.wake()
    await until(broker.all_are("delivered"))
    assert len(hook.count()) == 30


async def test_a_delivery_that_waits_too_long_for_a_dead_host_fails(
    hook: Receiver, clock: FakeClock, broker: BrokerHarness
) -> None:
    hook.answer = status(500)
    await broker.subscribe(hook.url(), expires_in=timedelta(days=30))
    await broker.publish(*(f"a{n}" for n in range(8)))
    await until(lambda: _spared(broker))
    clock.forward(seconds=GIVEN_UP.total_seconds() + 60)
    await give_up(broker)  # The broker may have been stopped meanwhile.

    async def probed() -> bool:
        [host] = await broker.rows(circuit_breakers)
        return bool(host["last_at"] == millis(clock()))

    await until(probed)
    assert "failed" not in await states(broker)
    await give_up(broker)
    await until(all_are_but_tried(broker))


async def give_up(broker: BrokerHarness) -> None:
    await retention.give_up(broker.broker, broker.broker.clock())
    broker.dispatcher.wake()


async def _spared(broker: BrokerHarness) -> bool:
    return any(row["failures"] >= FAILURES for row in await broker.rows(circuit_breakers))


def all_are_but_tried(one: BrokerHarness) -> Any:
    async def check() -> bool:
        rows = [row for row in await one.rows(deliveries) if not row["attempt"]]
        return {row["state"] for row in rows} == {"failed"}

    return check


# --- Digests and quiet hours ---------------------------------------------------------------------


async def test_a_digest_has_all_matches_and_later_ones_go_with_the_next(
    hook: Receiver, clock: FakeClock, broker: BrokerHarness
) -> None:
    release = asyncio.Event()

    async def late(_: web.Request) -> web.Response:
        await release.wait()
        return web.Response()

    hook.answer = late
    quiet = {"from": "07:00", "to": "09:30", "zone": "UTC"}
    await broker.subscribe(
        hook.url(), digest={"at": ["08:00"]}, quiet_hours=quiet, expires_in=timedelta(days=9)
    )
    await broker.publish("a")
    clock.forward(hours=18)
    await broker.publish("b")
    clock.now = datetime(2026, 1, 15, 9, 29, tzinfo=UTC)
    broker.dispatcher.wake()
    await asyncio.sleep(0.1)
    assert not hook.got
    clock.forward(minutes=1)
    broker.dispatcher.wake()
    await until(lambda: len(hook.got) == 1)
    await broker.publish("c")  # The first is still being sent.
    release.set()
    await until(broker.has("delivered"))
    clock.now = datetime(2026, 1, 16, 9, 30, tzinfo=UTC)
    broker.dispatcher.wake()
    await until(broker.all_are("delivered"))
    told = [json.loads(one.body) for one in hook.got]
    assert [one["type"] for one in told] == ["digest", "digest"]
    names = [[m["publication"]["id"] for m in one["matches"]] for one in told]
    assert names == [["urn:g-a", "urn:g-b"], ["urn:g-c"]]


async def test_a_retry_keeps_quiet_hours(
    hook: Receiver, clock: FakeClock, broker: BrokerHarness
) -> None:
    clock.now = datetime(2026, 1, 14, 21, 59, 58, tzinfo=UTC)
    hook.answer = status(500)
    await broker.subscribe(hook.url(), quiet_hours={"from": "22:00", "to": "07:00"})
    await broker.publish("a")
    await until(lambda: _attempted(broker, 1))
    [row] = await broker.rows(deliveries)
    assert row["due_at"] == millis(datetime(2026, 1, 15, 7, tzinfo=UTC))


async def test_payloads_have_a_limit_and_name_omitted_parts(tmp_path: Path) -> None:
    clock = FakeClock()
    async with receivers(3) as [one, two, three], harness(tmp_path, clock) as broker:
        await broker.subscribe(one.url(), query="SELECT ?o { ?s <urn:p> ?o }")
        await broker.subscribe(two.url(), digest={"every": 60}, sink={"include_reasons": True})
        await broker.subscribe(three.url(), query="SELECT ?o { ?s <urn:long> ?o }")
        many = "".join(f'<urn:a> <urn:p> "{n} {"x" * 300}" <urn:g> .\n' for n in range(90))
        many += f'<urn:a> <urn:long> "{"y" * 30_000}" <urn:g> .\n'
        await broker.broker.publications.publish(many.encode(), format="nq")
        await broker.publish(*(f"a{n}" for n in range(250)))
        clock.forward(seconds=61)
        broker.dispatcher.wake()
        await until(broker.all_are("delivered"))
        limit = BrokerLimits().payload_bytes
        for got in (one.got, two.got, three.got):
            assert [len(each.body) <= limit for each in got] == [True]
        solutions, digest, long = (json.loads(each.got[0].body) for each in (one, two, three))
        assert solutions["matches"][0]["truncated"] is True
        assert solutions["matches"][0]["solutions"] == []
        assert digest["total"] == 250
        assert 50 < len(digest["matches"]) <= 100
        assert digest["link"] == f"http://127.0.0.1:8000/v1/deliveries/{digest['id'][-1]}"
        assert long["matches"][0]["solutions"] == []
        assert long["matches"][0]["truncated"] is True


async def test_reasons_are_sent_if_requested(hook: Receiver, broker: BrokerHarness) -> None:
    query = "SELECT ?s { ?s a ?c . ?s <urn:p> ?n FILTER(?n > 5) }"
    await broker.subscribe(hook.url(), query=query, sink={"include_reasons": True})
    text = f"<urn:a> {TYPE} <urn:C> ; <urn:p> 7 ."
    await broker.broker.publications.publish(text.encode(), format="ttl")
    await broker.match()
    await until(broker.all_are("delivered"))
    [match] = json.loads(hook.got[0].body)["matches"]
    told = [part.get("triple") for part in match["reasons"]]
    assert f"<urn:a> {TYPE} <urn:C>" in told


# --- Inboxes -------------------------------------------------------------------------------------

INBOX = "http://www.w3.org/ns/ldp#inbox"


async def test_an_inbox_is_found_and_notified_in_json_ld(
    hook: Receiver, broker: BrokerHarness
) -> None:
    async def target(request: web.Request) -> web.Response:
        if request.method == "POST":
            return web.Response(status=201 if request.path == "/in/" else 405)
        return web.Response(headers={"Link": f'<x>; rel=next, </in/>; rel="other {INBOX}"'})

    hook.answer = target
    await broker.subscribe(hook.url("/me"), sink={"kind": "inbox"})
    for name in "ab":
        await broker.publish(name)
        await until(broker.all_are("delivered"))
    assert [(one.method, one.path) for one in hook.got] == [
        ("HEAD", "/me"),
        ("POST", "/in/"),
    ] * 2
    post = hook.got[1]
    assert post.headers["Content-Type"] == "application/ld+json"
    said = json.loads(post.body)
    assert said["@context"] == "https://www.w3.org/ns/activitystreams"
    assert said["type"] == "Announce"
    assert said["object"] == [{"id": "urn:g-a", "type": "Document"}]


@pytest.mark.parametrize(
    ("links", "body", "type", "inbox"),
    [
        ([f'<http://[>; rel="{INBOX}", </in/>; rel="{INBOX}"'], "", "text/plain", "/in/"),
        ([f'<http://[>; rel="{INBOX}"'], "", "text/plain", "/me"),
        (["<a>; rel=next"], "", "text/plain", "/me"),
        (["<" * 8000] * 20, "", "text/plain", "/me"),
        ([], f"<> <{INBOX}> </in/> .", "text/turtle", "/in/"),
        ([], f'{{"@id": "", "{INBOX}": {{"@id": "/in/"}}}}', "application/ld+json", "/in/"),
        ([], f"<> <{INBOX}", "text/turtle", "/me"),
        ([], "<p>Hello</p>", "text/html", "/me"),
    ],
)
async def test_an_inbox_is_named_by_a_header_or_in_rdf(
    hook: Receiver, broker: BrokerHarness, links: list[str], body: str, type: str, inbox: str
) -> None:
    async def target(request: web.Request) -> web.Response:
        response = web.Response(text=body, content_type=type)
        for link in links:
            response.headers.add("Link", link)
        return response

    hook.answer = target
    await broker.subscribe(hook.url("/me"), sink={"kind": "inbox"})
    await broker.publish("a")
    await until(broker.all_are("delivered"), 10)  # Invalid headers must not take time.
    *found, last = [(one.method, one.path) for one in hook.got]
    assert found[0] == ("HEAD", "/me")
    assert found[1:] in ([], [("GET", "/me")])
    assert last == ("POST", inbox)


# --- Concurrent changes --------------------------------------------------------------------------


async def test_an_ended_subscription_gets_no_deliveries(
    hook: Receiver, clock: FakeClock, broker: BrokerHarness
) -> None:
    made = await broker.subscribe(hook.url(), digest={"every": 60})
    await broker.publish("a")
    await broker.broker.subscriptions.unsubscribe(made.id, ADMIN, None)
    clock.forward(seconds=61)
    broker.dispatcher.wake()
    await until(broker.all_are("failed"))
    assert not hook.got


async def test_waiting_matches_go_to_the_new_address(tmp_path: Path) -> None:
    clock = FakeClock()
    async with receivers(2) as [old, new], harness(tmp_path, clock) as broker:
        made = await broker.subscribe(old.url(), digest={"every": 60})
        await broker.publish("a")
        sink = {"kind": "webhook", "url": new.url()}
        await broker.broker.subscriptions.change(
            made.id, ADMIN, None, SubscriptionChange(sink=sink)
        )
        clock.forward(seconds=61)
        broker.dispatcher.wake()
        await until(broker.all_are("delivered"))
        assert (len(old.got), len(new.got)) == (0, 1)
        [row] = await broker.rows(deliveries)
        assert row["host"] == f"127.0.0.1:{new.port}"


async def test_expiry_is_announced_once_and_then_final(
    hook: Receiver, clock: FakeClock, broker: BrokerHarness
) -> None:
    # It lasts a day and is announced 2.4 hours before its end.
    made = await broker.subscribe(hook.url(), expires_in=timedelta(days=1))

    async def after(**length: float) -> list[str]:
        clock.forward(**length)
        await retention.expire(broker.broker, clock())
        broker.dispatcher.wake()
        await until(lambda: _ended(broker, 0))
        return [json.loads(one.body)["type"] for one in hook.got]

    assert await after(hours=21.5) == []
    assert await after(minutes=10) == ["subscription.expiring"]
    assert await after(minutes=10) == ["subscription.expiring"]
    assert await after(hours=-1) == ["subscription.expiring"]
    assert await after(hours=1) == ["subscription.expiring"]
    renewed = SubscriptionChange(expires_in=timedelta(days=2))
    await broker.broker.subscriptions.change(made.id, ADMIN, None, renewed)
    assert await after(hours=8) == ["subscription.expiring"]
    assert len(await after(hours=38)) == 2
    final = ["subscription.expiring", "subscription.expiring", "subscription.expired"]
    assert await after(hours=2) == final
    assert await after(days=-2) == final
    [row] = await broker.rows(subscriptions)
    assert (row["state"], row["reason"]) == ("ended", "expired")
    with pytest.raises(InvalidRequestError, match="has ended"):
        await broker.broker.subscriptions.change(made.id, ADMIN, None, renewed)
    await broker.publish("a")
    assert not await broker.rows(matches)


async def test_old_records_are_deleted_and_waiting_ones_are_kept(tmp_path: Path) -> None:
    month = 31 * 86400  # A digest is just due, and the next is due in 31 days.
    clock = FakeClock(datetime.fromtimestamp(NOON.timestamp() // month * month + 60, UTC))
    async with receivers() as [hook], harness(tmp_path, clock) as broker:
        gone = await broker.subscribe(hook.url())
        await broker.broker.publications.publish(b"<urn:x> a <urn:D> .", format="ttl", key="k")
        await broker.publish("a", "b")
        await until(broker.all_are("delivered"))
        await broker.broker.subscriptions.unsubscribe(gone.id, ADMIN, None)
        more: Any = {"expires_in": timedelta(days=300)}
        await broker.subscribe(hook.url(), digest={"every": 31 * 86400}, **more)
        await broker.publish("c")
        await broker.broker.accounts.note("something")
        clock.forward(days=30, hours=1)
        assert len(await broker.rows(publications)) == 4
        await retention.forget(broker.broker, clock())
        assert [row["number"] for row in await broker.rows(subscriptions)] == [2]
        assert [row["id"] for row in await broker.rows(publications)] == ["urn:g-c"]
        assert len(await broker.rows(matches)) == 1
        [waiting] = await broker.rows(deliveries)
        assert waiting["state"] == "waiting"
        assert not await broker.rows(audit)
        assert not await broker.rows(idempotency_keys)


# --- Restarts ------------------------------------------------------------------------------------


async def test_a_stop_gives_claims_back(tmp_path: Path, hook: Receiver) -> None:
    async with harness(tmp_path) as broker:
        hook.answer = hang
        await broker.subscribe(hook.url())
        await broker.publish(*(f"a{n}" for n in range(10)))
        await until(lambda: len(hook.got) == 2)
    hook.answer = None
    async with harness(tmp_path, running=False) as broker:
        rows = await broker.rows(deliveries)
        assert [row["claimed_until"] for row in rows] == [None] * 10
        # Deliveries in progress may have arrived.
        assert sorted(row["attempt"] for row in rows) == [0] * 8 + [1] * 2
    async with harness(tmp_path) as broker:
        await until(broker.all_are("delivered"))
    assert len(hook.count()) == 10
    assert sorted(hook.count().values()) == [1] * 8 + [2] * 2


async def test_a_digest_that_may_have_arrived_gets_no_more_matches(
    tmp_path: Path, hook: Receiver, clock: FakeClock
) -> None:
    """The receiver knows the digest's id, so it would drop added matches."""

    async with harness(tmp_path, clock) as broker:
        hook.answer = hang
        await broker.subscribe(hook.url(), digest={"every": 60})
        await broker.publish("a")
        clock.forward(seconds=61)
        broker.dispatcher.wake()
        await until(lambda: len(hook.got) == 1)
    async with harness(tmp_path, clock) as broker:
        await broker.publish("b")
        rows = await broker.rows(matches)
        assert [row["delivery"] for row in rows] == [1, 2]


async def test_claims_of_a_killed_process_are_released(tmp_path: Path, hook: Receiver) -> None:
    async with harness(tmp_path, running=False) as broker:
        await broker.subscribe(hook.url())
        await broker.publish("a")
        claimed = deliveries.update().values(claimed_until=millis(NOON) + 10**9)
        await broker.store.write(lambda db: db.execute(claimed))
    async with harness(tmp_path) as broker:
        await until(broker.all_are("delivered"))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return a store that waits for the disk."""
    if request.param == "sqlite":
        yield str(tmp_path / "broker.db")
    else:
        with postgresql("fsync=on") as cluster:
            yield cluster()


@pytest.mark.parametrize("kills", [5, pytest.param(200, marks=pytest.mark.long)])
async def test_nothing_is_lost_by_kill_9(
    tmp_path: Path, place: str, kills: int, hook: Receiver
) -> None:
    """A process publishes, matches and sends; it is killed at random moments and restarted.

    In PostgreSQL its claims must expire first, so they are short if there are few kills.
    """

    chance, published = random.Random(kills), tmp_path / "published"
    published.touch()
    taken: list[tuple[str, str]] = []

    async def take(request: web.Request) -> web.Response:
        """Record only answered requests, because a killed client gets no response."""
        await asyncio.sleep(chance.random() * 0.03)
        if request.transport is not None and not request.transport.is_closing():
            taken.extend(told(await request.read(), request.headers["webhook-id"]))
        return web.Response()

    hook.answer = take
    root = Path(__file__).parents[3]
    claims = "1" if kills < 100 else ""
    command = [sys.executable, __file__, place, hook.url(), str(published), claims]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    nursery = subprocess.Popen(
        command, cwd=root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    for kill in range(kills + 1):
        before = len(hook.got)
        nursery.stdin.write(b"\n")
        nursery.stdin.flush()
        process = int(await asyncio.to_thread(nursery.stdout.readline))
        if kill < kills:
            some = before + chance.randrange(1, 40)
            await until(lambda some=some: len(hook.got) >= some)  # type: ignore[misc]
            await asyncio.sleep(chance.random() * 0.02)
            os.kill(process, signal.SIGKILL)
        else:
            acknowledged = set(published.read_text().split())

            def all_there(names: set[str] = acknowledged) -> bool:
                return names <= {name for name, _ in taken}

            await until(all_there, 300)
            os.kill(process, signal.SIGTERM)
    await asyncio.to_thread(nursery.communicate)
    assert len(acknowledged) > 5 * kills
    ids: dict[str, set[str]] = {}
    for name, id in taken:
        ids.setdefault(name, set()).add(id)
    assert acknowledged <= ids.keys()
    assert {len(several) for several in ids.values()} == {1}
    store = Store(place)
    count = store.read_now(lambda db: len(db.execute(matches.select()).all()))
    done = publications.select().where(publications.c.matched_at.is_not(None))
    numbered = store.read_now(lambda db: len(db.execute(done).all()))
    store.close()
    assert count == numbered  # Each publication matched once.
    figures = f"{kills} kills, {len(acknowledged)} acknowledged, {len(hook.got)} requests"
    sys.stdout.write(f"{figures}\n")


def told(body: bytes, id: str) -> list[tuple[str, str]]:
    return [(match["publication"]["id"], id) for match in json.loads(body)["matches"]]


async def publish_and_send(place: str, url: str, published: str, claims: str) -> None:
    """Run the process to kill: it records acknowledged publications."""
    if claims:
        length = match_worker._CLAIM = timedelta(seconds=float(claims))
        delivery_queries.CLAIM_DURATION, module._MARGIN = length, length / 2
    async with harness(place, utc_now, limits=BrokerLimits()) as broker:
        if not await broker.rows(subscriptions):
            await broker.subscribe(url)
        broker.broker.on_commit = broker.matcher.wake
        broker.matcher.start()
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        with Path(published).open("a") as file:
            while not stopped.is_set():
                name = f"{random.randrange(2**60):x}"
                text = f"<urn:{name}> {TYPE} <urn:C> <urn:g-{name}> ."
                await broker.broker.publications.publish(text.encode(), format="nq")
                file.write(f"urn:g-{name}\n")
                file.flush()
                # Otherwise, a backlog would grow at the receiver.
                await asyncio.sleep(0.015)
        await asyncio.to_thread(broker.matcher.stop)


# --- PostgreSQL ----------------------------------------------------------------------------------


async def test_two_processes_send_each_delivery_once(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Otherwise, the first could send all before the other polls, once per second.
    monkeypatch.setattr(module, "WINDOW", 2)

    async def slow(_: web.Request) -> web.Response:
        await asyncio.sleep(0.03)
        return web.Response()

    async with (
        receivers(3) as several,
        harness(database, utc_now) as one,
        harness(database, utc_now) as two,
    ):
        for hook in several:
            hook.answer = slow
            await one.subscribe(hook.url())
        names = [f"a{n}" for n in range(60)]
        one.matcher.on_matched = lambda _: (one.dispatcher.wake(), two.dispatcher.wake())[0]
        sent = Counter[str]()
        one.dispatcher.on_attempt = lambda _: sent.update(["one"])
        two.dispatcher.on_attempt = lambda _: sent.update(["two"])
        await one.publish(*names)
        await until(one.all_are("delivered"))
        for hook in several:
            assert set(hook.count().values()) == {1}
            assert len(hook.got) == 60
        assert sent.total() == 180
        assert len(sent) == 2


async def test_another_process_takes_an_expired_claim(database: str) -> None:
    clock = FakeClock()
    async with receivers() as [hook], harness(database, clock) as broker:
        await broker.subscribe(hook.url())
        claimed = millis(NOON + delivery_queries.CLAIM_DURATION)
        await broker.dispatcher.stop()
        await broker.publish("a")
        held = deliveries.update().values(claimed_until=claimed)
        await broker.store.write(lambda db: db.execute(held))
        async with harness(database, clock) as other:
            await asyncio.sleep(0.1)
            assert not hook.got
            clock.now = NOON + delivery_queries.CLAIM_DURATION
            other.dispatcher.wake()
            await until(other.all_are("delivered"))


def nurse(*arguments: str) -> None:
    """Fork a program for each input line and print its number, to import only once."""
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            sys.stdin.close()
            asyncio.run(publish_and_send(*arguments))
            os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        os.waitpid(child, 0)


if __name__ == "__main__":
    nurse(*sys.argv[1:])
