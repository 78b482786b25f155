"""Tasks continue after failures: bad records are set aside, and `/readyz` names failing tasks."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import Mock

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from sqlalchemy import Connection, select

from graphmatch.broker.app import supervisor
from graphmatch.broker.app.supervisor import Supervisor
from graphmatch.broker.db import delivery_queries
from graphmatch.broker.db.dead_letters import count_dead_letters, newest_dead_letters
from graphmatch.broker.db.store import Store, StoreError
from graphmatch.broker.db.tables import (
    deliveries,
    kafka_offsets,
    matches,
    publications,
    subscriptions,
)
from graphmatch.broker.feeds import feed_poller
from graphmatch.broker.feeds.feed_poller import MIN_INTERVAL, Poller
from graphmatch.broker.feeds.feed_store import BrokerFeedStore
from graphmatch.broker.models.attempt import ClaimedDelivery
from graphmatch.broker.models.subscription_settings import SubscriptionSettings
from graphmatch.broker.outbox import dispatcher as dispatching
from graphmatch.broker.outbox import payloads
from graphmatch.broker.outbox.safe_http import HttpClient
from graphmatch.broker.service import kafka, retention
from graphmatch.broker.service import publications as publications_module
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.kafka import KafkaSource
from graphmatch.broker.service.match_worker import MatchWorker
from graphmatch.broker.service.publications import Publications
from graphmatch.engine import Engine
from semantic.errors import Place, Problem
from tests.graphmatch.broker.harness import (
    LOOPBACK,
    QUERY,
    BrokerHarness,
    FakeClock,
    Receiver,
    harness,
    receivers,
    status,
)
from tests.graphmatch.broker.live_broker import Answer, LiveBroker
from tests.graphmatch.broker.test_kafka_intake import FakeConsumer, record
from tests.waiting import until, wait

DOWN = StoreError(Problem("nothing was written: it is down", Place("store"), "Wait."))
GIVEN = {"query": QUERY}


class Panic(BaseException):
    """A stand-in for a panic of the compiled core."""


Panic.__name__ = "PanicException"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "FIRST_SECONDS", 0.01)
    monkeypatch.setattr(supervisor, "OUTAGE_SECONDS", 0.01)
    monkeypatch.setattr(supervisor, "RETRY_SECONDS", 0.0)


def counted(one: Supervisor) -> dict[str, float]:
    """Return the counters above zero, by name and task."""
    registry = CollectorRegistry()
    registry.register(one)
    lines = generate_latest(registry).decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name.removeprefix("graphmatch_"): float(value) for name, value in pairs}


# --- Rounds and records --------------------------------------------------------------------------


def test_delays_grow_to_a_limit_and_begin_again_after_a_success() -> None:
    one = Supervisor()
    delays = [one.failed("a", "no luck", outage=False) for _ in range(40)]
    assert delays[:3] == [0.01, 0.02, 0.04]
    assert delays[-1] == supervisor.LONGEST_SECONDS
    assert one.failed("a", "down", outage=True) == 0.01
    one.succeeded("a")
    assert one.failed("a", "no luck", outage=False) == 0.01


@pytest.mark.parametrize("error", [KeyboardInterrupt, asyncio.CancelledError, SystemExit])
def test_interrupts_are_not_failures(error: type[BaseException]) -> None:
    one = Supervisor()
    for context in (one.round("a"), one.record("a", "b")):
        with pytest.raises(error), context:
            raise error
    assert one.failing() == one.set_aside() == []


@pytest.mark.parametrize("error", [ValueError("no luck"), MemoryError(), Panic("it is empty")])
def test_a_failure_is_logged_and_counted(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    one = Supervisor()
    with one.record("matching", "publication 17", attempts=1) as attempt:
        raise error
    assert attempt.is_dead
    assert attempt.error == f"{type(error).__name__}: {error}".strip()
    [record] = caplog.records
    assert "matching: publication 17 failed" in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    assert one.set_aside() == ["matching: 1 set aside"]
    assert counted(one) == {'records_set_aside_total{task="matching"}': 1}


def test_a_record_that_fails_three_times_in_a_row_is_a_dead_letter() -> None:
    one, letters = Supervisor(), list[tuple[str, str, str]]()
    one.on_dead_letter = lambda *letter: letters.append(letter)
    for fails in (True, True, False, True, True):  # A success starts the count again.
        with one.record("feeds", "urn:a") as attempt:
            if fails:
                raise ValueError("no luck")
    assert (attempt.is_dead, letters, one.set_aside()) == (False, [], [])
    for name in ("urn:b", "urn:a"):
        with one.record("feeds", name) as attempt:
            raise ValueError("no luck")
    assert attempt.is_dead
    assert letters == [("feeds", "urn:a", "ValueError: no luck")]
    assert one.set_aside() == ["feeds: 1 set aside"]


def test_records_are_tried_together_and_three_times_alone() -> None:
    one, tried = Supervisor(), list[list[str]]()

    def work(records: Sequence[str]) -> None:
        tried.append(list(records))
        if "bad" in records:
            raise ValueError("no luck")

    dead = list(one.each("matching", ["a", "bad", "b"], work, str))
    assert dead == [("bad", "ValueError: no luck")]
    assert tried == [["a", "bad", "b"], ["a"], ["bad"], ["bad"], ["bad"], ["b"]]


def test_a_thread_continues_after_a_failure() -> None:
    one, stop, woken = Supervisor(), threading.Event(), threading.Event()
    errors = [ValueError("a"), Panic("b")]

    def work() -> float:
        if errors:
            raise errors.pop()
        stop.set()
        return 0.0

    one.run("matching", work, stop, woken)
    assert counted(one) == {'task_failures_total{task="matching"}': 2}


async def test_dead_letters_are_stored(idle: BrokerHarness) -> None:
    for number in range(2):
        with idle.broker.supervisor.record("feeds", f"urn:nu\0l{number}", attempts=1):
            raise ValueError("no luck")

    async def rows() -> bool:
        return await idle.store.read(count_dead_letters) == 2

    await until(rows)
    newest = await idle.store.read(lambda db: newest_dead_letters(db, 1))
    assert [(row["record"], row["error"]) for row in newest] == [
        ("urn:nu\ufffdl1", "ValueError: no luck")
    ]


def test_an_outage_of_the_store_is_not_the_fault_of_a_record() -> None:
    one = Supervisor()
    with one.round("matching") as attempt, one.record("matching", "publication 17"):
        raise DOWN
    assert attempt.error is not None
    assert one.set_aside() == []
    assert counted(one) == {'task_failures_total{task="matching"}': 1}


async def test_a_task_that_fails_does_not_spin_and_stops_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervisor, "FIRST_SECONDS", 30.0)

    one, rounds = Supervisor(), 0
    stop, woken = asyncio.Event(), asyncio.Event()

    async def work() -> float:
        nonlocal rounds
        rounds += 1
        raise ValueError("no luck")

    task = asyncio.create_task(one.repeat("a", work, stop, woken))
    for _ in range(20):
        woken.set()
        await asyncio.sleep(0)
    assert rounds == 1
    stop.set()
    await asyncio.wait_for(task, 1)


async def test_a_task_that_waits_stops_at_once() -> None:
    stop, woken, rounds = asyncio.Event(), asyncio.Event(), 0

    async def work() -> float:
        nonlocal rounds
        rounds += 1
        return 3600.0

    task = asyncio.create_task(Supervisor().repeat("a", work, stop, woken))
    await until(lambda: rounds == 1)
    woken.set()
    await until(lambda: rounds == 2)
    stop.set()
    await asyncio.wait_for(task, 1)
    assert rounds == 2


# --- Matching ------------------------------------------------------------------------------------


async def log(broker: Broker, *names: str) -> None:
    for name in names:
        text = f"<urn:{name}> a <urn:C> ."
        await broker.publications.publish(text.encode(), format="ttl", name=f"urn:{name}")


async def matched(one: BrokerHarness) -> list[tuple[int, int]]:
    return [(row["subscription"], row["publication"]) for row in await one.rows(matches)]


@pytest.mark.parametrize("error", [ValueError("no luck"), Panic("it is empty")])
async def test_a_publication_that_cannot_be_matched_is_set_aside(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, idle: BrokerHarness
) -> None:
    filtered = Engine.filter

    def broken(self: Engine, data: Any, *more: Any, **named: Any) -> Any:
        if named["name"] == "urn:bad":
            raise error
        return filtered(self, data, *more, **named)

    monkeypatch.setattr(Engine, "filter", broken)

    await idle.broker.subscriptions.subscribe(GIVEN, SubscriptionSettings())
    await log(idle.broker, "a", "bad", "b")
    await idle.match()
    assert await matched(idle) == [(1, 1), (1, 3)]
    problems = [row["problem"] for row in await idle.rows(publications)]
    assert problems == [None, f"{type(error).__name__}: {error}", None]
    assert idle.broker.supervisor.set_aside() == ["matching: 1 set aside"]
    again = MatchWorker(idle.broker)
    again.load()
    assert again.step() == 0  # It is not read again after a restart.


async def test_a_publication_whose_matches_cannot_be_stored_is_set_aside(
    idle: BrokerHarness,
) -> None:
    await idle.broker.subscriptions.subscribe(GIVEN, SubscriptionSettings())
    await log(idle.broker, "a", "bad", "b")
    trigger = (
        "CREATE TRIGGER bad BEFORE INSERT ON matches WHEN NEW.publication = 2 "
        "BEGIN SELECT RAISE(ABORT, 'no luck'); END"
    )
    await idle.store.write(lambda db: db.exec_driver_sql(trigger))
    await idle.match()
    assert await matched(idle) == [(1, 1), (1, 3)]
    before, problem, after = (row["problem"] for row in await idle.rows(publications))
    assert before is after is None
    assert "no luck" in problem
    assert idle.matcher.step() == 0


async def test_a_subscription_that_cannot_be_added_is_ended(
    monkeypatch: pytest.MonkeyPatch, idle: BrokerHarness
) -> None:
    subscribe = Engine.subscribe_many

    def broken(self: Engine, several: Any, *more: Any) -> Any:
        if any("urn:bad" in query for _, query in several):
            raise UnicodeEncodeError("utf-8", "x", 0, 1, "no luck")
        return subscribe(self, several, *more)

    for query in (QUERY, "ASK { ?s a <urn:bad> }", QUERY):
        await idle.broker.subscriptions.subscribe({"query": query}, SubscriptionSettings())
    monkeypatch.setattr(Engine, "subscribe_many", broken)
    await log(idle.broker, "a")
    await idle.match()
    assert await matched(idle) == [(1, 1), (3, 1)]
    states = [(row["state"], row["reason"] or "") for row in await idle.rows(subscriptions)]
    assert [state for state, _ in states] == ["active", "ended", "active"]
    assert states[1][1].startswith("refused: UnicodeEncodeError")


async def test_a_match_whose_quiet_hours_are_unusable_is_sent_at_once(
    hook: Receiver, idle: BrokerHarness
) -> None:
    for _ in range(2):
        await idle.subscribe(hook.url())
    quiet = {"from": "22:00", "to": "07:00", "zone": "Atlantis/Capital"}
    spoilt = subscriptions.update().where(subscriptions.c.number == 1).values(quiet_hours=quiet)
    await idle.store.write(lambda db: db.execute(spoilt))
    await log(idle.broker, "a")
    await idle.match()
    assert await matched(idle) == [(1, 1), (2, 1)]
    rows = await idle.rows(deliveries)
    assert [(row["subscription"], row["due_at"] - row["created_at"]) for row in rows] == [
        (1, 0),
        (2, 0),
    ]
    assert idle.broker.supervisor.set_aside() == ["matching: 1 set aside"]


async def test_a_webhook_with_an_unusual_port_costs_others_nothing(
    hook: Receiver, idle: BrokerHarness
) -> None:
    await idle.subscribe(hook.url().replace("127.0.0.1:", "127.0.0.1:+"))
    await idle.subscribe(hook.url())
    await log(idle.broker, "a")
    await idle.match()
    assert await matched(idle) == [(1, 1), (2, 1)]
    assert len({row["host"] for row in await idle.rows(deliveries)}) == 1
    assert idle.broker.supervisor.set_aside() == []


async def test_a_retry_whose_quiet_hours_are_unusable_is_noted(
    hook: Receiver, broker: BrokerHarness
) -> None:
    hook.answer = status(503)
    await broker.subscribe(hook.url())
    quiet = {"from": "22:00", "to": "07:00", "zone": "Atlantis/Capital"}
    spoilt = subscriptions.update().values(quiet_hours=quiet)
    await broker.store.write(lambda db: db.execute(spoilt))
    await broker.publish("a")

    async def is_noted() -> bool:
        return [row["attempt"] for row in await broker.rows(deliveries)] == [1]

    await until(is_noted)
    [row] = await broker.rows(deliveries)
    assert (row["state"], row["status"]) == ("waiting", 503)
    assert row["due_at"] > row["created_at"]
    assert len(hook.got) == 1


async def test_a_message_with_reasons_does_not_wait_for_others(
    hook: Receiver, broker: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence, is_first_sent, calls = Engine.evidence, threading.Event(), list[object]()

    def slow(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            assert is_first_sent.wait(10)
        return evidence(*args)

    monkeypatch.setattr(Engine, "evidence", slow)
    sink = {"kind": "webhook", "url": hook.url(), "include_reasons": True}
    for _ in range(2):
        await broker.broker.subscriptions.subscribe(
            {"query": QUERY}, SubscriptionSettings(sink=sink)
        )
    await broker.publish("a")
    await until(lambda: len(hook.got) == 1)
    is_first_sent.set()
    await until(lambda: len(hook.got) == 2)


def test_readyz_names_a_task_that_fails_until_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LiveBroker(tmp_path) as live_broker:
        good, broken = live_broker.matcher.step, threading.Event()
        broken.set()

        def step() -> int:
            if broken.is_set():
                raise ValueError("no luck with gmt_secret")
            return good()

        monkeypatch.setattr(live_broker.matcher, "step", step)
        live_broker.subscribe()
        live_broker.publish()
        wait(lambda: live_broker.call("GET", "/readyz").status == 503)
        said = live_broker.call("GET", "/readyz").json
        assert said["reasons"] == ["matching fails: ValueError: no luck with gmt_…"]
        text = live_broker.call("GET", "/metrics").content.decode()
        assert 'graphmatch_task_failures_total{task="matching"}' in text
        broken.clear()
        wait(lambda: live_broker.call("GET", "/readyz").status == 200)
        live_broker.settled()
        with live_broker.broker.supervisor.record("feeds", "https://e.org/", attempts=1):
            raise ValueError("no luck")
        said = live_broker.call("GET", "/readyz")
        assert (said.status, said.json["set_aside"]) == (200, ["feeds: 1 set aside"])


# --- Inputs --------------------------------------------------------------------------------------

RSS = "<rss><channel><title>A</title>{}</channel></rss>"
ITEM = "<item><guid>{0}</guid><title>{0}</title></item>"


@pytest.fixture
def bad_titles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the store reject publications called `bad`."""
    encoded = publications_module.publication_row

    def row(publication: Any) -> dict[str, Any]:
        is_bad = "bad" in (publication.title, publication.id.removeprefix("urn:"))
        return encoded(publication) | ({"title": "\0"} if is_bad else {})

    monkeypatch.setattr(publications_module, "publication_row", row)


@pytest.mark.usefixtures("bad_titles")
async def test_an_item_that_cannot_be_stored_does_not_come_again(tmp_path: Path) -> None:
    clock = FakeClock()

    async with (
        receivers() as [site],
        harness(tmp_path, clock, running=False) as one,
        HttpClient(LOOPBACK) as http,
    ):

        async def answer(_: web.Request) -> web.Response:
            several = "".join(map(ITEM.format, ["a", "bad", f"b{len(site.got)}"]))
            return web.Response(text=RSS.format(several), content_type="application/rss+xml")

        site.answer = answer
        poller = Poller(http, BrokerFeedStore(one.broker), clock=clock)
        await poller.add(site.url("/feed"))
        for _ in range(2):
            await poller.poll(site.url("/feed"))
            clock.forward(hours=2)
        titles = [row["title"] for row in await one.rows(publications)]
        assert titles == ["a", "b1", "b2"]
        await until(lambda: one.broker.supervisor.set_aside() == ["publications: 1 set aside"])
        letters = await one.store.read(newest_dead_letters)
        assert [row["error"].partition(":")[0] for row in letters] == ["InputError"]


async def test_a_feed_that_fails_is_fetched_later_and_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, open_feed = FakeClock(), feed_poller.open_feed

    def broken(data: bytes, source: str, **options: Any) -> Any:
        if source.endswith("/bad"):
            raise ValueError("no luck")
        return open_feed(data, source, **options)

    monkeypatch.setattr(feed_poller, "open_feed", broken)

    async with (
        receivers() as [site],
        harness(tmp_path, clock, running=False) as one,
        HttpClient(LOOPBACK) as http,
    ):

        async def answer(request: web.Request) -> web.Response:
            text = RSS.format(ITEM.format(request.path))
            return web.Response(text=text, content_type="application/rss+xml")

        site.answer = answer
        poller = Poller(
            http, BrokerFeedStore(one.broker), clock=clock, supervisor=one.broker.supervisor
        )
        await poller.add(site.url("/bad"))
        await poller.add(site.url("/good"))
        await poller.run(asyncio.Event(), once=True)
        assert len(site.got) == 2
        assert [row["title"] for row in await one.rows(publications)] == ["/good"]
        bad, _ = await BrokerFeedStore(one.broker).load()
        assert (bad.errors, bad.problem) == (1, "it failed: ValueError: no luck")
        assert bad.next_poll_at is not None
        assert bad.next_poll_at >= clock() + MIN_INTERVAL
        assert one.broker.supervisor.set_aside() == []  # It can work at the next polls.
        assert one.broker.supervisor.failing() == []


@pytest.mark.usefixtures("bad_titles")
def test_a_publication_that_cannot_be_stored_is_a_problem_of_the_response(tmp_path: Path) -> None:
    with LiveBroker(tmp_path, matching=False) as live_broker:
        lines = [{"id": f"urn:{one}", "data": "<urn:a> a <urn:C> ."} for one in ("a", "bad", "b")]
        headers = {"Content-Type": "application/x-ndjson"}

        def publish(*several: Any) -> Answer:
            body = "\n".join(map(json.dumps, several))
            return live_broker.call("POST", "/v1/publications", body, headers)

        said = publish(*lines)
        assert said.status == 202
        assert [one["id"] for one in said.json["publications"]] == ["urn:a", "urn:b"]
        assert [one["where"]["source"] for one in said.json["problems"]] == ["urn:bad"]
        assert publish(lines[1]).status == 422
        ready = live_broker.call("GET", "/readyz").json
        assert ready["set_aside"] == ["publications: 2 set aside"]


@pytest.mark.usefixtures("bad_titles")
def test_bad_records_of_kafka_are_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is unreadable, one cannot be stored; the connection fails, and so does the store."""
    read = Publications.read

    def broken(self: Publications, data: bytes, **more: Any) -> Any:
        if b"urn:broken" in data:
            raise ValueError("no luck")
        return read(self, data, **more)

    monkeypatch.setattr(Publications, "read", broken)
    names = ["a", "broken", "b", "bad", "c"]
    several = [
        record(0, n, f"urn:{one}", f"<urn:{one}> a <urn:C> .") for n, one in enumerate(names)
    ]
    several.append(record(0, 5, "urn:nu\0l", "<urn:d> a <urn:C> ."))
    consumer, failures = FakeConsumer(several), [kafka.KafkaException("gone"), DOWN]
    consume = consumer.consume

    def fails(*given: object) -> list[Mock]:
        if consumer.at.get(0) and failures:
            raise failures.pop()
        return consume(*given)

    monkeypatch.setattr(consumer, "consume", fails)
    monkeypatch.setattr(kafka, "Consumer", consumer)

    async def read_all(store: Store) -> list[str]:
        broker = Broker(store, Engine())
        source, stop = KafkaSource(broker, "nowhere", "t"), asyncio.Event()
        reading = asyncio.create_task(source.run(stop))
        await until(lambda: bool(consumer.at) and not consumer.left() and not failures)
        stop.set()  # It ends after the records at hand.
        await reading
        return broker.supervisor.set_aside()

    store = Store(str(tmp_path / "broker.db"))
    said = asyncio.run(read_all(store))
    assert said == ["kafka: 1 set aside", "publications: 1 set aside"]
    assert not failures
    ids = store.read_now(lambda db: db.scalars(select(publications.c.id)).all())
    assert ids == ["urn:a", "urn:b", "urn:c", "urn:kafka:t:0:5"]
    letters = store.read_now(newest_dead_letters)
    assert {(row["record"], row["error"][:11]) for row in letters} == {
        ("urn:kafka:t:0:1", "ValueError:"),
        ("urn:bad", "InputError:"),
    }
    assert store.read_now(lambda db: db.scalar(select(kafka_offsets.c.offset))) == 6
    consumer.at = {}
    assert asyncio.run(read_all(store)) == []  # Nothing is read again after a restart.
    assert len(store.read_now(lambda db: db.scalars(select(publications.c.id)).all())) == 4
    store.close()


def test_a_kafka_that_does_not_answer_is_reported() -> None:
    async def main(store: Store) -> list[str]:
        broker = Broker(store, Engine())
        source, stop = KafkaSource(broker, "127.0.0.1:1", "t"), asyncio.Event()
        reading = asyncio.create_task(source.run(stop))
        await until(lambda: broker.supervisor.failing() != [])
        stop.set()
        await reading
        return broker.supervisor.failing()

    with TemporaryDirectory() as folder, closing(Store(f"{folder}/broker.db")) as store:
        (said,) = asyncio.run(main(store))
    assert said.startswith("kafka fails: KafkaException: ")


# --- Outputs -------------------------------------------------------------------------------------


async def test_a_delivery_whose_message_cannot_be_made_has_failed(
    monkeypatch: pytest.MonkeyPatch, hook: Receiver, broker: BrokerHarness
) -> None:
    made, tried = payloads.message, list[int]()

    def broken(row: ClaimedDelivery, *more: Any) -> Any:
        if row.id == 2:
            tried.append(row.id)
            raise ValueError("no luck")
        return made(row, *more)

    monkeypatch.setattr(payloads, "message", broken)

    await broker.subscribe(hook.url())
    await broker.publish("a", "b", "c")

    async def done() -> bool:
        states = [row["state"] for row in await broker.rows(deliveries)]
        return states == ["delivered", "failed", "delivered"]

    await until(done)
    assert (await broker.rows(deliveries))[1]["error"] == "ValueError: no luck"
    assert broker.broker.supervisor.set_aside() == ["messages: 1 set aside"]
    assert len(tried) == 4  # It was tried with the others, and three times alone.


async def test_a_sender_that_fails_counts_as_an_attempt(
    monkeypatch: pytest.MonkeyPatch, hook: Receiver, broker: BrokerHarness
) -> None:
    send = broker.dispatcher.senders.send

    async def broken(_: object, sink: Any, message: Any) -> Any:
        if sink["url"].endswith("/bad"):
            raise ValueError("no luck")
        return await send(sink, message)

    monkeypatch.setattr(type(broker.dispatcher.senders), "send", broken)
    await broker.subscribe(hook.url("/bad"))
    await broker.subscribe(hook.url("/good"))
    await broker.publish("a")

    async def tried() -> bool:
        rows = await broker.rows(deliveries)
        said = [(row["state"], row["attempt"], row["error"]) for row in rows]
        return said == [("waiting", 1, "ValueError: no luck"), ("delivered", 1, None)]

    await until(tried)


async def test_an_outcome_that_cannot_be_written_does_not_hold_up_others(
    monkeypatch: pytest.MonkeyPatch, hook: Receiver, broker: BrokerHarness
) -> None:
    write = delivery_queries.write_back

    def broken(db: Connection, results: Sequence[delivery_queries.Result], now: int) -> None:
        write(db, results, now)
        states = [state for state in results if isinstance(state, delivery_queries.DeliveryState)]
        if any(state.delivery == 2 and state.error is None for state in states):
            raise ValueError("no luck")

    monkeypatch.setattr(delivery_queries, "write_back", broken)

    await broker.subscribe(hook.url())
    await broker.publish("a", "b", "c")
    await until(broker.all_are("delivered"))
    errors = [row["error"] for row in await broker.rows(deliveries)]
    assert errors == [None, "ValueError: no luck", None]


async def test_a_subscription_ends_even_if_its_sink_cannot_be_notified(
    hook: Receiver, clock: FakeClock, idle: BrokerHarness
) -> None:

    for _ in range(2):
        await idle.subscribe(hook.url(), expires_in=timedelta(days=1))
    quiet = {"from": "22:00", "to": "07:00", "zone": "Atlantis/Capital"}
    spoilt = subscriptions.update().where(subscriptions.c.number == 1).values(quiet_hours=quiet)
    await idle.store.write(lambda db: db.execute(spoilt))
    for _ in range(2):
        clock.forward(hours=23)
        await retention.expire(idle.broker, clock())
    assert {row["state"] for row in await idle.rows(subscriptions)} == {"ended"}
    told = [(row["subscription"], row["kind"]) for row in await idle.rows(deliveries)]
    assert told == [(2, "expiring"), (2, "expired")]


@pytest.fixture
def broken_round(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A dispatcher task that fails twice."""
    name, left = "_round", [ValueError("a"), ValueError("b")]
    good = getattr(dispatching.Dispatcher, name)

    async def broken(self: dispatching.Dispatcher) -> float:
        if left:
            raise left.pop()
        return await good(self)  # type: ignore[no-any-return]

    monkeypatch.setattr(dispatching.Dispatcher, name, broken)
    yield "deliveries"
    assert not left


async def test_tasks_of_the_dispatcher_go_on(
    broken_round: str, hook: Receiver, broker: BrokerHarness
) -> None:
    await broker.subscribe(hook.url())
    await broker.publish("a")
    await until(broker.all_are("delivered"))
    key = f'task_failures_total{{task="{broken_round}"}}'
    await until(lambda: counted(broker.broker.supervisor) == {key: 2})
    await until(lambda: broker.broker.supervisor.failing() == [])
