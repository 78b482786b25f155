"""Full disks, clock jumps, and failing databases and networks lose nothing acknowledged."""

from __future__ import annotations

import asyncio
import json
import resource
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web
from sqlalchemy import Connection, func, select, text

from graphmatch.broker.client import Client
from graphmatch.broker.db.delivery_queries import CLAIM_DURATION, claim
from graphmatch.broker.db.store import Store, StoreError
from graphmatch.broker.db.tables import deliveries, matches, publications, subscriptions
from graphmatch.broker.feeds.feed_poller import Poller
from graphmatch.broker.feeds.feed_store import BrokerFeedStore
from graphmatch.broker.insight import backtest as backtest_module
from graphmatch.broker.insight.backtest import backtest
from graphmatch.broker.models.stored_publication import StoredPublication
from graphmatch.broker.models.subscription_settings import SubscriptionSettings
from graphmatch.broker.models.times import millis, time_of
from graphmatch.broker.outbox.email_sender import SmtpServer
from graphmatch.broker.outbox.safe_http import HttpClient
from graphmatch.broker.service import match_worker
from graphmatch.broker.service.backtester import Backtester
from graphmatch.broker.service.match_worker import MatchWorker
from graphmatch.broker.service.publications import Addition
from graphmatch.engine import Engine
from semantic.errors import Place, Problem
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.reading import read_publications
from tests.feed_subscriptions import FeedSubscriptions
from tests.graphmatch.broker.harness import (
    LOOPBACK,
    TYPE,
    BrokerHarness,
    Cluster,
    FakeClock,
    Receiver,
    Smtp,
    hang,
    harness,
    receivers,
    status,
    talking,
)
from tests.graphmatch.broker.live_broker import ALL, Answer, LiveBroker, Process
from tests.waiting import until, wait

ROOT = Path(__file__).parents[3]
MONTH: Mapping[str, Any] = {"expires_in": timedelta(days=30)}
N_QUADS = {"Content-Type": "application/n-quads"}


def quad(name: str, size: int = 0) -> str:
    more = f'<urn:{name}> <urn:text> "{"x" * size}" <urn:g-{name}> .' if size else ""
    return f"<urn:{name}> {TYPE} <urn:C> <urn:g-{name}> .\n{more}"


def told(one: Receiver) -> dict[str, set[str]]:
    """Return the message ids with which a receiver got each publication."""
    found: dict[str, set[str]] = defaultdict(set)
    for got in one.got:
        for match in json.loads(got.body)["matches"]:
            found[match["publication"]["id"]].add(got.id)
    return found


def once(*names: str) -> Callable[[Receiver], bool]:
    """Return a check that a receiver got each publication under one id."""

    def check(one: Receiver) -> bool:
        found = told(one)
        assert all(len(ids) == 1 for ids in found.values())
        return found.keys() == {f"urn:g-{name}" for name in names}

    return check


# --- Full disk -----------------------------------------------------------------------------------


@contextmanager
def mounted(folder: Path) -> Iterator[bool]:
    """Mount a small file system if permitted (only to root)."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], capture_output=True
    )
    try:
        yield done.returncode == 0
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """Fill a file system, or reach a file size limit if none can be mounted."""
    disk, unlimited = tmp_path / "disk", resource.RLIM_INFINITY
    with mounted(disk) as is_mounted:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(1_500_000))
        arguments = ("serve", "--store", str(disk / "broker.db"), "--port", "0")
        with Process(tmp_path, *arguments) as broker:

            def publish(name: str) -> Answer:
                return broker.call("POST", "/v1/publications", quad(name, 50_000), N_QUADS)

            if not is_mounted:
                pid = broker.process.pid
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (700_000, unlimited))
            made = Client(broker.url).subscribe(query=ALL)
            taken: list[str] = []
            while (said := publish(f"a{len(taken)}")).status == 202:
                taken.append(f"a{len(taken)}")
                assert len(taken) < 100
            assert len(taken) > 3
            assert said.status == 503
            assert said.headers["retry-after"]
            assert said.json["what"].startswith("nothing was written: ")
            assert said.json["where"]["source"].endswith("/disk/broker.db")
            assert said.json["remedy"].startswith("Make room on the disk")
            more = {f"b{n}": publish(f"b{n}").status for n in range(5)}
            assert set(more.values()) <= {202, 503}
            assert 503 in more.values()
            # Errors can free some space.
            taken += [name for name, status in more.items() if status == 202]
            assert broker.call("GET", "/healthz").status == 200
            assert broker.call("GET", f"/v1/publications/{len(taken)}").status == 200
            ballast.unlink()
            if not is_mounted:
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))
            assert publish("c").status == 202
            taken.append("c")

            def matched() -> list[str]:
                found = Client(broker.url).matches(made.id, made.ticket)
                return [one.publication.id.removeprefix("urn:g-") for one in found]

            wait(lambda: "c" in matched())
            assert matched() == taken  # Each is matched once, in order, without refused ones.
            assert broker.counted("graphmatch_publications_total") == len(taken)
            assert broker.runs


# --- Clock jumps ---------------------------------------------------------------------------------


async def test_a_clock_that_jumps_loses_nothing(tmp_path: Path) -> None:
    """Jump two days ahead and back while a host fails, and back an hour while a digest waits.

    A delivery in progress at a jump ahead may be repeated under the same id.
    """

    clock = FakeClock()
    async with receivers(3) as [good, bad, digests], harness(tmp_path, clock) as broker:
        for hook in (good, bad):
            await broker.subscribe(hook.url(), **MONTH)
        await broker.subscribe(digests.url(), digest={"every": 3600}, **MONTH)
        bad.answer = status(500)
        await broker.publish(*(f"a{n}" for n in range(6)))
        await until(lambda: len(good.count()) == 6 and len(bad.got) >= 5)
        clock.forward(minutes=59)
        clock.forward(hours=-1)
        broker.dispatcher.wake()
        await broker.publish("b")
        await until(lambda: len(good.count()) == 7)
        assert not digests.got  # It is not due.

        clock.forward(days=2, hours=1)
        tried = len(bad.got)
        await broker.publish("c")
        await until(
            lambda: len(good.count()) == 8 and len(bad.got) > tried and len(digests.got) > 0
        )
        clock.forward(days=-2)
        bad.answer = None
        tried = len(bad.got)
        await broker.publish("d")
        broker.dispatcher.wake()
        await until(lambda: len(good.count()) == 9)
        await until(lambda: len(bad.got) > tried)  # Its back-off does not last two days.
        clock.forward(days=2, hours=3)
        broker.dispatcher.wake()
        names = [*(f"a{n}" for n in range(6)), "b", "c", "d"]
        await until(lambda: all(once(*names)(hook) for hook in (good, bad, digests)))
        numbers = [row["seq"] for row in await broker.rows(matches)]
        assert numbers == list(range(1, 28))


async def test_claims_of_a_process_with_a_wrong_clock_are_released(database: str) -> None:
    """A process with a wrong clock claims two days ahead, and is killed."""

    ahead, clock = FakeClock(), FakeClock()
    async with receivers() as [hook], harness(database, ahead, running=False) as killed:
        await killed.subscribe(hook.url(), **MONTH)
        await killed.publish("a")
        ahead.forward(days=2)
        await killed.broker.publications.publish(quad("b").encode(), format="nq")
        [row] = await killed.rows(deliveries)
        wanted, at = {row["host"]: 1}, millis(ahead())
        until_ = at + CLAIM_DURATION // timedelta(milliseconds=1)
        held = await killed.store.write(lambda db: claim(db, wanted, at, until_))
        assert [one.id for one in held] == [1]
        _, claimed = await killed.store.write(killed.matcher.claim)
        assert len(claimed) == 1
        async with harness(database, clock) as broker:
            await broker.match()
            await broker.publish("c")
            await until(lambda: once("a", "b", "c")(hook))


def test_a_stream_keeps_its_order_when_the_clock_jumps(tmp_path: Path) -> None:
    with LiveBroker(tmp_path) as live_broker:
        id, ticket = live_broker.subscribe(expires_in=30 * 86400)
        jumps = [timedelta(0), timedelta(days=2), -timedelta(days=2), -timedelta(hours=1)]
        for number in range(12):
            live_broker.clock.forward += jumps[number % 4]
            live_broker.publish(f"<urn:{number}> a <urn:C> .")
        found = []
        for event in Client(live_broker.url).events(
            id, ticket["Authorization"].split()[1], since=0
        ):
            found.append(event)
            if len(found) == 12:
                break
        assert [one.seq for one in found] == list(range(1, 13))
        assert [one.solutions for one in found] == [[{"s": f"<urn:{n}>"}] for n in range(12)]


async def test_snapshots_are_saved_if_the_clock_stands_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, idle: BrokerHarness
) -> None:
    monkeypatch.setattr(match_worker, "SAVE_SECONDS", 0.01)
    monkeypatch.setattr(match_worker, "IDLE_SECONDS", 0.02)

    await idle.broker.subscriptions.subscribe({"query": ALL}, SubscriptionSettings())
    matcher = MatchWorker(idle.broker, tmp_path / "saved", "f")
    matcher.load()
    matcher.start()
    await until(lambda: bool(list((tmp_path / "saved").glob("*.gm"))))
    await asyncio.to_thread(matcher.stop)


# --- Database failures ---------------------------------------------------------------------------


async def test_a_restart_of_the_database_under_load_loses_nothing(
    tmp_path: Path, cluster: Cluster
) -> None:
    """Processes and connections end at once; publishers retry with their keys."""
    url = cluster()

    asked = ("serve", "--port", "0", "--allow", "127.0.0.0/8", "--store", url)
    async with receivers() as [hook], aiohttp.ClientSession() as http:
        with Process(tmp_path, *asked) as broker:
            sink = {"kind": "webhook", "url": hook.url()}
            made = Client(broker.url).subscribe(query=ALL, sink=sink)
            taken: list[str] = []
            statuses: set[int] = set()
            stopped = asyncio.Event()

            async def publish(who: int) -> None:
                number = 0
                while not stopped.is_set():
                    number += 1
                    name, answered = f"{who}-{number}", 0
                    headers = {**N_QUADS, "Idempotency-Key": name}
                    while answered != 202:
                        said = await http.post(
                            f"{broker.url}/v1/publications", data=quad(name), headers=headers
                        )
                        answered = said.status
                        statuses.add(answered)
                        await asyncio.sleep(0.02)
                    taken.append(name)

            async def some(count: int) -> None:
                before = len(taken)
                await until(lambda: len(taken) >= before + count, 30)

            publishing = [asyncio.create_task(publish(who)) for who in range(4)]
            await some(20)
            cut = text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid != pg_backend_pid() AND datname = current_database()"
            )
            other = Store(url)
            for _ in range(5):
                with suppress(StoreError):
                    await other.write(lambda db: db.execute(cut).all())
                await asyncio.sleep(0.05)
            await asyncio.to_thread(other.close)
            await some(20)
            await asyncio.to_thread(cluster.stop)
            await asyncio.sleep(0.3)
            await asyncio.to_thread(cluster.start)
            await some(20)
            stopped.set()
            await asyncio.gather(*publishing)
            assert statuses == {202, 503}
            await until(lambda: told(hook).keys() == {f"urn:g-{one}" for one in taken}, 90)
            assert {len(ids) for ids in told(hook).values()} == {1}
            found = Client(broker.url).matches(made.id, made.ticket)
            names = [one.publication.id.removeprefix("urn:g-") for one in found]
            assert sorted(names) == sorted(taken)
            assert broker.counted("graphmatch_publications_total") == len(taken)
            assert broker.runs


@pytest.mark.parametrize("lost", ["the claim", "the matches"])
async def test_claimed_publications_are_matched_after_an_outage_of_the_database(
    lost: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The matcher continues at once, before the claim expires."""

    async with harness(database, running=False) as broker:
        await broker.broker.subscriptions.subscribe({"query": ALL}, SubscriptionSettings())
        await broker.broker.publications.publish(quad("a").encode(), format="nq")
        write = broker.store.write_now

        def cut(work: Callable[[Connection], Any]) -> Any:
            def ends(db: Connection) -> None:
                work(db)
                db.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")

            is_claim = work == broker.matcher.claim
            if is_claim != (lost == "the claim"):
                return write(work)
            if is_claim:  # The commit succeeds, but its acknowledgement is lost.
                write(work)
            return write(ends)

        monkeypatch.setattr(broker.store, "write_now", cut)
        for _ in range(2):
            with pytest.raises(StoreError, match="nothing was written"):
                broker.matcher.step()
        monkeypatch.undo()
        assert not await broker.rows(matches)
        async with harness(database, running=False) as other:
            assert other.matcher.step() == 0  # The claim is valid.
        assert broker.matcher.step() == 1
        assert len(await broker.rows(matches)) == 1
        assert broker.matcher.step() == 0


async def test_deliveries_are_sent_if_the_commit_of_their_claim_is_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dispatcher does not wait until the claim expires."""
    async with receivers() as [hook], harness(tmp_path, running=False) as broker:
        await broker.subscribe(hook.url())
        await broker.publish("a")
        write, lost = broker.store.write, list[bool]()

        async def cut(work: Callable[[Connection], Any]) -> Any:
            result = await write(work)
            if isinstance(result, list) and result and not lost:  # Some are claimed.
                lost.append(True)
                raise StoreError(Problem("the connection was lost", Place("store"), "Wait."))
            return result

        monkeypatch.setattr(broker.store, "write", cut)
        running = asyncio.create_task(broker.dispatcher.run())
        await until(broker.all_are("delivered"), 20)
        assert lost
        await broker.dispatcher.stop()
        await running


async def test_feeds_are_polled_after_an_outage_of_the_database(cluster: Cluster) -> None:
    """Unsaved items are fetched again."""
    url, clock = cluster(), FakeClock()
    feed = """<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>f</title>
      <updated>2026-01-01T00:00:00Z</updated><entry><id>urn:item</id><title>t</title>
      <updated>2026-01-01T00:00:00Z</updated></entry></feed>"""

    async with (
        receivers() as [site],
        harness(url, clock, running=False) as broker,
        HttpClient(LOOPBACK) as http,
    ):

        async def answer(_: web.Request) -> web.Response:
            return web.Response(text=feed, content_type="application/atom+xml")

        site.answer = answer
        supervisor = broker.broker.supervisor
        poller = Poller(http, BrokerFeedStore(broker.broker), clock=clock, supervisor=supervisor)
        await poller.start()
        await poller.add(site.url("/feed"))
        await asyncio.to_thread(cluster.stop)
        ending = asyncio.Event()
        running = asyncio.create_task(poller.run(ending))
        try:
            await until(lambda: len(site.got) == 1)
            await asyncio.sleep(0.2)
            await asyncio.to_thread(cluster.start)
            assert not running.done()
            clock.forward(hours=2)
            await poller.change(site.url("/feed"))  # This wakes the poller.

            async def there() -> bool:
                return len(await broker.rows(publications)) == 1

            await until(there)
        finally:
            ending.set()
            await running


# --- Network failures ----------------------------------------------------------------------------


async def test_receivers_that_return_get_everything_once(tmp_path: Path) -> None:
    """One refuses, one accepts connections silently, one resets them during its response."""

    async def reset(request: web.Request) -> web.StreamResponse:
        transport = request.transport
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"HTTP/1.1 20")
        await asyncio.sleep(0.01)
        transport.abort()
        return web.Response()

    clock = FakeClock()
    async with (
        receivers(4) as [good, silent, torn, away],
        harness(tmp_path, clock, seconds=1.5) as broker,
    ):
        silent.answer, torn.answer = hang, reset
        await away.leave()
        for hook in (silent, torn, away, good):
            await broker.subscribe(hook.url(), **MONTH)
        names = [f"a{n}" for n in range(8)]
        for name in names:
            await broker.publish(name)
        await until(lambda: once(*names)(good))
        assert len(silent.got) < len(names)

        async def failed() -> bool:
            rows = await broker.rows(deliveries)
            tried = Counter(row["host"] for row in rows if row["attempt"])
            taken = [row for row in rows if row["state"] == "delivered"]
            return len(taken) == len(names) and all(
                tried[urlsplit(hook.url()).netloc] >= 5 for hook in (torn, away)
            )

        await until(failed)
        silent.answer = torn.answer = None
        await away.come_back()
        for _ in range(60):  # Breakers first admit one; this is less time than the retries.
            clock.forward(hours=1, minutes=1)
            broker.dispatcher.wake()
            with suppress(AssertionError):
                await until(broker.all_are("delivered"), 0.3)
                break
        assert all(once(*names)(hook) for hook in (good, silent, torn, away))
        assert max(good.count().values()) == 1


# --- Email and ntfy through the outbox -----------------------------------------------------------


async def test_email_is_retried_and_has_digests(tmp_path: Path) -> None:
    clock, server = FakeClock(), Smtp({"text": "451 later"})
    async with talking(server.talk) as port:
        smtp = SmtpServer("127.0.0.1", "broker@example.com", port, "none")
        async with harness(tmp_path, clock, smtp=smtp) as broker:
            sink = {"kind": "email", "address": "ann@example.org"}
            given = {"query": ALL}

            async def subscribe(settings: SubscriptionSettings) -> None:
                """Subscribe and confirm, without the message that asks for it."""
                created = await broker.broker.subscriptions.subscribe(given, settings)
                key = (await broker.rows(subscriptions))[-1]["confirmation"]
                await broker.broker.subscriptions.confirm(created.id, key)
                asking = deliveries.delete().where(deliveries.c.kind == "confirmation")
                await broker.store.write(lambda db: db.execute(asking))

            await subscribe(SubscriptionSettings(name="Soup", sink=sink, **MONTH))
            await broker.publish("a")

            async def tried() -> bool:
                [row] = await broker.rows(deliveries)
                return (row["attempt"], row["state"], row["status"]) == (1, "waiting", 451)

            await until(tried)
            del server.answers["text"]
            clock.forward(seconds=6)
            broker.dispatcher.wake()
            await until(broker.all_are("delivered"))
            first, again = mails(server)
            assert first["Message-ID"] == again["Message-ID"]
            assert again["To"] == "ann@example.org"
            assert "Soup" in again["Subject"]
            assert "urn:g-a" in again.get_content()
            assert "/v1/deliveries/2" in again.get_content()

            digest = SubscriptionSettings(name="Digest", sink=sink, digest={"every": 60}, **MONTH)
            await subscribe(digest)
            server.mails.clear()
            await broker.publish("b")
            await broker.publish("c")
            await until(lambda: len(server.mails) == 2)
            clock.forward(seconds=61)
            broker.dispatcher.wake()
            await until(broker.all_are("delivered"))
            *_, last = mails(server)
            assert len(server.mails) == 3
            assert "Digest" in last["Subject"]
            assert {"urn:g-b", "urn:g-c"} <= set(last.get_content().split())

            server.answers["RCPT"] = "550 nobody is called so"
            await broker.publish("d")
            await until(broker.has("failed"))
            assert len(server.mails) == 3


def mails(server: Smtp) -> list[EmailMessage]:
    found = [message_from_bytes(one[:-3], policy=policy.default) for one in server.mails]
    return [one for one in found if isinstance(one, EmailMessage)]


async def test_ntfy_is_retried_and_has_digests(
    hook: Receiver, clock: FakeClock, broker: BrokerHarness
) -> None:
    sink = {"kind": "ntfy", "url": hook.url("/topic"), "token": "tk_secret"}
    for path, more in (("/topic", {}), ("/digest", {"digest": {"every": 60}})):
        settings = SubscriptionSettings(
            name="Soup", sink={**sink, "url": hook.url(path)}, **more, **MONTH
        )
        await broker.broker.subscriptions.subscribe({"query": ALL}, settings)
    hook.answer = status(429, Retry_After="30")
    await broker.publish("a")
    await broker.publish("b")
    await until(lambda: len(hook.got) == 2)
    hook.answer = None
    clock.forward(seconds=10)
    broker.dispatcher.wake()
    await asyncio.sleep(0.05)
    assert len(hook.got) == 2  # It waits as Retry-After says.
    clock.forward(seconds=51)
    broker.dispatcher.wake()
    await until(broker.all_are("delivered"))
    texts = [one.body.decode() for one in hook.got]
    assert Counter(one.path for one in hook.got) == {"/topic": 4, "/digest": 1}
    assert texts[:2] == texts[2:4] or sorted(texts[:2]) == sorted(
        one.body.decode() for one in hook.got[2:] if one.path == "/topic"
    )
    [digest] = [one for one in hook.got if one.path == "/digest"]
    assert {"urn:g-a", "urn:g-b"} <= set(digest.body.decode().split())
    for one in hook.got:
        assert one.headers["Authorization"] == "Bearer tk_secret"
        assert "Soup" in one.headers["Title"]
        assert "/v1/deliveries/" in one.headers["Click"]


# --- Several processes ---------------------------------------------------------------------------


@pytest.mark.long
def test_processes_share_a_log_and_take_over(tmp_path: Path, database: str) -> None:
    """Each process has its own ontology, so matches identify their process."""
    store = Store(database)
    whose = select(matches.c.ontology_version, func.count().label("found")).group_by(
        matches.c.ontology_version
    )
    waiting = select(func.count()).where(publications.c.matched_at.is_(None))

    def shares() -> dict[int, int]:
        rows = store.read_now(lambda db: db.execute(whose).all())
        return {row.ontology_version: row.found for row in rows}

    def left() -> int:
        return store.read_now(lambda db: db.scalar(waiting)) or 0

    published = 0
    serve = ("serve", "--port", "0", "--store", database)
    others = [
        (*serve, "--roles", "match", "-o", f"ontologies/{name}.ttl") for name in ("news", "jobs")
    ]
    with (
        Process(tmp_path, *serve) as broker,
        Process(tmp_path, *others[0], says="listening at") as first,
        Process(tmp_path, *others[1], says="listening at") as second,
    ):
        made = Client(broker.url).subscribe(query=ALL)

        def publish() -> None:
            nonlocal published
            text = "".join(quad(f"{published + n}") for n in range(400))
            assert broker.call("POST", "/v1/publications", text, N_QUADS).status == 202
            published += 400

        for _ in range(20):
            publish()
            wait(lambda: left() == 0, 60)
            if len(shares()) == 3:
                break
        assert len(shares()) == 3, shares()
        assert sum(shares().values()) == published
        sys.stdout.write(f"shares of {published}: {sorted(shares().values())}\n")

        for _ in range(50):
            publish()
            first.process.send_signal(signal.SIGSTOP)
            with suppress(AssertionError):
                wait(lambda: left() == 0, 1)
            if left():
                break
            first.process.send_signal(signal.SIGCONT)
        assert left()
        first.kill()
        wait(lambda: left() == 0, 90)
        assert second.runs
        assert broker.runs
        assert sum(shares().values()) == published
        shown = Client(broker.url).subscription(made.id, made.ticket)["match_count"]
        assert shown == min(published, 10_000)  # Larger numbers are not counted.
        found = [one.publication.id for one in Client(broker.url).matches(made.id, made.ticket)]
        assert len(set(found)) == len(found) == published
    store.close()


# --- Backtests -----------------------------------------------------------------------------------


def compared(place: Path, items: Sequence[Publication], count: int, seed: int) -> tuple[int, int]:
    """Publish items, backtest each subscription on the store, and return the match counts."""

    async def main() -> tuple[int, int]:
        clock = FakeClock()
        files = sorted((ROOT / "ontologies").glob("*.ttl"))
        engine = Engine(Ontology.load(*files), clock=clock)
        enriched = [engine.enrich(one) for one in items]
        drawn = FeedSubscriptions(engine.ontology, enriched, seed).texts(count)
        written = [one.read_text() for one in sorted((ROOT / "data/subscriptions").glob("*.rq"))]
        given: list[dict[str, Any]] = [{"query": one} for one in (*written, *drawn)]
        given += [
            {"topics": ["Sport"]},
            {"words": ["space"]},
            {"topics": ["Politics"], "words": ["vote"]},
        ]
        async with harness(place, clock, engine=engine, running=False) as broker:
            for one in given:
                await broker.broker.subscriptions.subscribe(one, SubscriptionSettings(**MONTH))
            for begin in range(0, len(items), 50):
                await broker.broker.publications.add(Addition(items[begin : begin + 50], "test"))
                await broker.match()
                clock.forward(minutes=7)
            log = {row["seq"]: row for row in await broker.rows(publications)}
            delivered: dict[int, Counter[str]] = defaultdict(Counter)
            for row in await broker.rows(matches):
                delivered[row["subscription"]][log[row["publication"]]["id"]] += 1
            stored = [
                StoredPublication(row["id"], row["data"], time_of(row["received_at"]))
                for row in reversed(log.values())
            ]
            assert len(stored) == len(items)
            backtester = Backtester(engine)
            for row in await broker.rows(subscriptions):
                trial = backtest(engine, row["query"], stored, 600, backtester)
                assert trial.complete
                tried = Counter(hit.id for hit in trial.newest)
                assert tried == delivered[row["number"]], row["query"]
            return len(delivered), sum(count.total() for count in delivered.values())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backtest_module, "NEWEST", len(items))
        patch.setattr(backtest_module, "conditions", lambda *_: [])  # They take time.
        return asyncio.run(main())


def test_a_backtest_equals_the_deliveries(tmp_path: Path) -> None:
    items = list(read_publications(ROOT / "data/feeds", ROOT / "data/publications"))
    some, total = compared(tmp_path, items, count=20, seed=1)
    assert some > 20
    assert total > 100
