"""From the log to matches: exactly once, despite failures."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select

from graphmatch.broker.app.assembly import Follower
from graphmatch.broker.app.errors import ConflictError
from graphmatch.broker.app.security import ANYBODY
from graphmatch.broker.db.match_queries import matches_after
from graphmatch.broker.db.queries import WITH_MATCHES
from graphmatch.broker.db.store import Store
from graphmatch.broker.db.tables import audit, deliveries, matches, publications, subscriptions
from graphmatch.broker.models.limits import BrokerLimits
from graphmatch.broker.models.subscription import SubscriptionChange, SubscriptionReceipt
from graphmatch.broker.models.subscription_settings import SubscriptionSettings
from graphmatch.broker.models.times import millis
from graphmatch.broker.outbox.match_feed import atom
from graphmatch.broker.outbox.payloads import match_view
from graphmatch.broker.service import match_worker
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import FAILURES, MAX_SOURCES, MatchWorker, host_of
from graphmatch.broker.service.publications import Addition
from graphmatch.engine import Engine
from semantic.errors import Problem
from semantic.feeds import read_feed
from tests.graphmatch.broker.harness import NOON, QUERY, BrokerHarness, FakeClock, harness

GIVEN = {"query": QUERY}
OTHER = {"query": "SELECT ?s { ?s a <urn:D> }"}


async def log(broker: Broker, name: str, of: str = "C") -> None:
    text = f"<urn:{name}> a <urn:{of}> ."
    await broker.publications.publish(text.encode(), format="ttl", name=f"urn:{name}")


async def found(one: BrokerHarness) -> list[tuple[int, int]]:
    return [(row["subscription"], row["publication"]) for row in await one.rows(matches)]


async def test_a_subscription_sees_publications_after_its_commit(idle: BrokerHarness) -> None:
    await idle.broker.subscriptions.subscribe(GIVEN, SubscriptionSettings())
    await log(idle.broker, "a")
    await idle.broker.subscriptions.subscribe(
        GIVEN, SubscriptionSettings()
    )  # Subscribe before `a` is matched.
    await log(idle.broker, "b")
    await idle.match()
    assert sorted(await found(idle)) == [(1, 1), (1, 2), (2, 2)]
    [first, *_] = await idle.rows(matches)
    assert json.loads(first["solutions"]) == [{"s": "<urn:a>"}]
    assert not await idle.rows(deliveries)  # Stream subscribers get no deliveries.
    shown = await idle.store.read(lambda db: db.execute(WITH_MATCHES).mappings().all())
    assert [(row["match_count"], row["last_matched_at"]) for row in shown] == [
        (2, millis(NOON)),
        (1, millis(NOON)),
    ]


async def test_a_change_applies_to_later_publications(idle: BrokerHarness) -> None:
    made = await idle.broker.subscriptions.subscribe(GIVEN, SubscriptionSettings())

    async def change(**to: object) -> None:
        await idle.broker.subscriptions.change(
            made.id, ANYBODY, made.ticket, SubscriptionChange(**to)
        )

    await log(idle.broker, "a")
    await change(**OTHER)  # Neither query sees `a`.
    await log(idle.broker, "b", "D")
    await idle.match()
    await change(state="paused")
    await log(idle.broker, "c", "D")
    await idle.match()
    await change(state="active")
    await log(idle.broker, "d", "D")
    await idle.match()
    assert await found(idle) == [(1, 2), (1, 4)]
    assert {row["generation"] for row in await idle.rows(matches)} == {2}


async def test_nothing_matches_after_the_end(clock: FakeClock, idle: BrokerHarness) -> None:
    await idle.broker.subscriptions.subscribe(GIVEN, SubscriptionSettings())
    clock.forward(days=30)
    await log(idle.broker, "a")
    await idle.match()  # Expired subscriptions have not been swept yet.
    assert await found(idle) == []


async def test_a_subscription_whose_evaluation_keeps_failing_is_paused(idle: BrokerHarness) -> None:
    long = "x" * 20_000
    text = f"REPLACE(REPLACE(STR(?s), '', '{long}'), '', '{long}')"
    costly = {"query": f"ASK {{ ?s a <urn:C> FILTER(STRLEN({text}) = 3) }}"}

    told: list[Problem] = []
    idle.broker.engine = Engine(on_problem=told.append)
    made = await idle.broker.subscriptions.subscribe(costly, SubscriptionSettings())
    await idle.broker.subscriptions.subscribe(GIVEN, SubscriptionSettings())

    numbers = itertools.count()

    async def published(count: int) -> str:
        for _ in range(count):
            await log(idle.broker, f"a{next(numbers)}")
            await idle.match()
        [state] = [row["state"] for row in await idle.rows(subscriptions) if row["id"] == made.id]
        return str(state)

    assert await published(FAILURES - 1) == "active"
    assert await published(1) == "paused"
    problems = [row["problem"] for row in await idle.rows(publications)]
    assert all("bytes of text" in problem for problem in problems)
    await published(1)
    assert (await idle.rows(publications))[-1]["problem"] is None
    assert len(told) == FAILURES
    await idle.broker.subscriptions.change(
        made.id, ANYBODY, made.ticket, SubscriptionChange(state="active")
    )
    assert await published(FAILURES - 1) == "active"
    # The count restarts.
    changed = SubscriptionChange(**costly)
    await idle.broker.subscriptions.change(made.id, ANYBODY, made.ticket, changed)
    assert await published(FAILURES - 1) == "active"
    told_before = len(told)
    for number in range(25):  # One batch contains all.
        await log(idle.broker, f"b{number}")
    await idle.match()
    assert await published(0) == "paused"
    assert len(told) == told_before + 25
    assert {number for number, _ in await found(idle)} == {2}
    said = [row["action"] for row in await idle.rows(audit)]
    assert any(what.startswith("subscription paused: 10 evaluations failed") for what in said)


@pytest.mark.parametrize("when", ["before the commit", "after the commit"])
async def test_each_match_is_stored_once_despite_a_kill_around_the_commit(
    when: str, idle: BrokerHarness
) -> None:
    class Killed(BaseException):
        pass

    await idle.broker.subscriptions.subscribe(
        GIVEN, SubscriptionSettings(sink={"kind": "inbox", "url": "http://a/"})
    )
    await log(idle.broker, "a")
    write = idle.store.write_now

    def dies(work: object) -> object:
        if when == "after the commit":
            write(work)  # type: ignore[arg-type]
        raise Killed

    idle.store.write_now = dies  # type: ignore[method-assign, assignment]
    with pytest.raises(Killed):
        idle.matcher.step()
    idle.store.write_now = write  # type: ignore[method-assign]
    again = MatchWorker(idle.broker)
    idle.broker.engine = Engine()
    again.load()
    assert again.step() == (when == "before the commit")
    assert await found(idle) == [(1, 1)]
    assert len(await idle.rows(deliveries)) == 1
    [row] = await idle.rows(publications)
    assert row["matched_at"] is not None


async def test_many_matches_are_committed_in_chunks(
    monkeypatch: pytest.MonkeyPatch, idle: BrokerHarness
) -> None:
    """A kill between two chunks loses and repeats nothing."""
    monkeypatch.setattr(match_worker, "CHUNK_SIZE", 3)
    for _ in range(8):
        await idle.broker.subscriptions.subscribe(GIVEN, SubscriptionSettings())
    await log(idle.broker, "a")
    await log(idle.broker, "b")
    sizes: list[int] = []

    def note(numbers: Sequence[int]) -> None:
        sizes.append(len(numbers))
        if len(sizes) == 2:
            raise KeyboardInterrupt

    idle.matcher.on_matched = note
    with pytest.raises(KeyboardInterrupt):
        idle.matcher.step()
    assert sizes == [3, 3]
    assert len(await found(idle)) == 6
    [first, _] = await idle.rows(publications)
    assert first["matched_at"] is None
    idle.matcher.step()  # The thread continues.
    assert sorted(await found(idle)) == [(n, seq) for n in range(1, 9) for seq in (1, 2)]

    await log(idle.broker, "c")
    again = MatchWorker(idle.broker)
    again.on_matched = note
    sizes[:] = [0]
    with pytest.raises(KeyboardInterrupt):
        again.step()
    assert len(await found(idle)) == 19
    last = MatchWorker(idle.broker)  # The process starts again.
    assert last.step() == 1
    assert sorted(await found(idle)) == [(n, seq) for n in range(1, 9) for seq in (1, 2, 3)]
    assert last.step() == 0


async def test_a_start_from_a_snapshot_applies_later_changes(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "broker.db"))
    folder = tmp_path / "snapshots"

    def started(fingerprint: str = "f") -> tuple[Broker, MatchWorker]:
        broker = Broker(store, Engine(), FakeClock())
        matcher = MatchWorker(broker, folder, fingerprint)
        matcher.load()
        return broker, matcher

    broker, matcher = started()
    several: list[SubscriptionReceipt] = [
        await broker.subscriptions.subscribe(GIVEN, SubscriptionSettings()) for _ in range(4)
    ]
    matcher.catch_up()
    matcher.save()
    [first] = folder.iterdir()
    assert [path.stat().st_mode & 0o777 for path in (folder, first)] == [0o700, 0o600]
    await broker.subscriptions.subscribe(GIVEN, SubscriptionSettings())
    await broker.subscriptions.unsubscribe(several[0].id, ANYBODY, several[0].ticket)
    changed, paused = SubscriptionChange(**OTHER), SubscriptionChange(state="paused")
    await broker.subscriptions.change(several[1].id, ANYBODY, several[1].ticket, changed)
    await broker.subscriptions.change(several[2].id, ANYBODY, several[2].ticket, paused)
    await log(broker, "a")

    again, matcher = started()
    assert _ids(again) == {"2", "4", "5"}
    while matcher.step():
        pass
    rows = store.read_now(lambda db: db.execute(matches.select()).all())
    assert sorted(row.subscription for row in rows) == [4, 5]
    matcher.save()
    [second] = folder.iterdir()
    assert second != first  # The previous snapshot is deleted.

    second.write_bytes(second.read_bytes()[:-100])  # The snapshot is only a cache.
    (folder / "engine-f-7.copy.gm").touch()
    broken, _ = started()
    assert _ids(broken) == {"2", "4", "5"}
    other, _ = started("another ontology")
    assert _ids(other) == {"2", "4", "5"}
    store.close()


def _ids(broker: Broker) -> set[str]:
    return {one.id for one in broker.engine.subscriptions}


async def test_a_stored_query_that_is_invalid_now_ends_its_subscription(
    idle: BrokerHarness,
) -> None:
    await idle.broker.subscriptions.subscribe(GIVEN, SubscriptionSettings())
    broken = subscriptions.update().values(query="SELECT", change=5)
    await idle.store.write(lambda db: db.execute(broken))
    idle.matcher.catch_up()
    [row] = await idle.rows(subscriptions)
    assert row["state"] == "ended"
    assert row["reason"].startswith("refused: ")


async def test_solutions_have_a_limit(tmp_path: Path) -> None:
    async with harness(tmp_path, running=False, limits=BrokerLimits(solutions=3)) as one:
        await one.broker.subscriptions.subscribe(
            {"query": "SELECT ?o { ?s <urn:p> ?o }"}, SubscriptionSettings()
        )
        construct = "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }"
        await one.broker.subscriptions.subscribe({"query": construct}, SubscriptionSettings())
        await one.broker.publications.publish(b"<urn:a> <urn:p> 1, 2, 3, 4 .", format="ttl")
        await one.match()
        rows = await one.rows(matches)
        assert [row["truncated"] for row in rows] == [True, True]
        solutions = [json.loads(row["solutions"]) for row in rows]
        assert len(solutions[0]) == 3
        assert len(solutions[1]["graph"]) == 3


async def test_a_follower_applies_changes_of_subscriptions(idle: BrokerHarness) -> None:
    follower = Follower(idle.broker)
    follower.load()
    await idle.broker.subscriptions.subscribe(GIVEN, SubscriptionSettings())
    await log(idle.broker, "a")
    assert follower.step() == 0
    assert _ids(idle.broker) == {"1"}
    assert not await found(idle)


async def test_parts_of_a_publication_are_completed_after_the_end_of_subscriptions(
    monkeypatch: pytest.MonkeyPatch, idle: BrokerHarness
) -> None:
    """The rest has one part, although some matches are stored."""
    monkeypatch.setattr(match_worker, "CHUNK_SIZE", 3)
    made = [
        await idle.broker.subscriptions.subscribe(GIVEN, SubscriptionSettings()) for _ in range(4)
    ]
    await log(idle.broker, "a")

    def killed(_: Sequence[int]) -> None:
        raise KeyboardInterrupt

    idle.matcher.on_matched = killed
    with pytest.raises(KeyboardInterrupt):
        idle.matcher.step()
    assert len(await found(idle)) == 3
    for one in made[:2]:
        await idle.broker.subscriptions.unsubscribe(one.id, ANYBODY, one.ticket)
    again = MatchWorker(idle.broker)
    again.load()
    assert again.step() == 1
    assert sorted(await found(idle)) == [(n, 1) for n in range(1, 5)]
    assert [row["problem"] for row in await idle.rows(publications)] == [None]


async def test_matches_are_announced_after_the_commit(idle: BrokerHarness) -> None:
    told: list[tuple[int, int]] = []

    def note(numbers: object) -> None:
        rows = idle.store.read_now(lambda db: db.execute(matches.select()).all())
        told.append((len(list(numbers)), len(rows)))  # type: ignore[call-overload]

    idle.matcher.on_matched = note
    for _ in range(2):
        await idle.broker.subscriptions.subscribe(GIVEN, SubscriptionSettings())
    await log(idle.broker, "a")
    await idle.match()
    assert told == [(2, 2)]


async def test_two_processes_match_each_publication_once(database: str) -> None:
    async with harness(database, running=False) as one, harness(database, running=False) as two:
        await one.broker.subscriptions.subscribe(
            GIVEN, SubscriptionSettings(sink={"kind": "inbox", "url": "http://a/"})
        )
        for n in range(3):
            text = "".join(
                f"<urn:a{n}-{m}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:C> "
                f"<urn:g{n}-{m}> .\n"
                for m in range(100)
            )
            await two.broker.publications.publish(text.encode(), format="nq")
        await asyncio.gather(one.match(), two.match())
        assert len(set(await found(one))) == len(await found(one)) == 300
        assert [row["id"] for row in await one.rows(deliveries)] == list(range(1, 301))


@pytest.mark.parametrize(
    ("sink", "host"),
    [
        ({"kind": "webhook", "url": "https://A.example/x"}, "a.example:443"),
        ({"kind": "inbox", "url": "http://a.example"}, "a.example:80"),
        ({"kind": "ntfy", "url": "https://[2001:db8::1]:8443/t"}, "2001:db8::1:8443"),
        ({"kind": "email", "address": "a@b.example"}, "smtp:"),
    ],
)
def test_a_circuit_breaker_is_for_a_host_and_port(sink: dict[str, str], host: str) -> None:
    assert host_of(sink) == host


@pytest.mark.parametrize("form", ["*", "DISTINCT ?a0"])
async def test_the_search_ends_at_the_limit_of_solutions(form: str, idle: BrokerHarness) -> None:
    """This query has 42 to the power of 9 solutions, which must not delay others."""
    patterns = " . ".join(f"?a{n} ?b{n} ?c{n}" for n in range(9))
    triples = "".join(f"<urn:s{n % 7}> <urn:p{n}> {n} .\n" for n in range(42))

    await idle.broker.subscriptions.subscribe(
        {"query": f"SELECT {form} {{ {patterns} }}"}, SubscriptionSettings()
    )
    await idle.broker.publications.publish(triples.encode(), format="ttl")
    await idle.match()
    [match] = await idle.rows(matches)
    most = idle.broker.limits.solutions
    count = len(json.loads(match["solutions"]))
    assert match["truncated"]
    assert count == most if form == "*" else 0 < count <= 7


async def test_feed_items_get_a_summary(idle: BrokerHarness) -> None:
    item = "<item><guid>{0}</guid><title>{0}</title>{1}</item>"
    items = item.format("a", f"<description>&lt;p&gt;{'word ' * 100}&lt;/p&gt;</description>")
    items += item.format("b", "<description>&lt;b&gt;Rain&lt;/b&gt; &amp;amp; sun</description>")
    items += item.format("c", "")
    feed = f"<rss><channel><title>A</title>{items}</channel></rss>"
    await idle.broker.publications.publish(feed.encode())
    await log(idle.broker, "d")
    long, *others = [row["summary"] for row in await idle.rows(publications)]
    assert (len(long), long[:10], long[-6:]) == (300, "word word ", " word…")
    assert others == ["Rain & sun", None, None]


ENTRY = "<item><guid>{}</guid><link>{}</link><title>{}</title><category>{}</category></item>"
WORDS = {"query": "SELECT ?item { ?item a rss:item }"}
NEWS = {"query": "SELECT ?item { ?item dc:subject 'News' }"}


async def arrive(one: BrokerHarness, source: str, *entries: Sequence[str]) -> None:
    items = "".join(ENTRY.format(*entry) for entry in entries)
    feed = f"<rss><channel><title>{source}</title>{items}</channel></rss>"
    if source == "http":
        await one.broker.publications.publish(feed.encode())
    else:
        found = list(read_feed(feed.encode(), source))
        await one.broker.publications.add(Addition(found, source))


@pytest.mark.parametrize("at_once", [True, False])
async def test_copies_of_an_item_are_one_match_that_names_its_sources(
    at_once: bool, idle: BrokerHarness
) -> None:
    """Documents over HTTP and polled feeds; the copies arrive together, or one after the other."""
    await idle.subscribe("http://127.0.0.1:1/", query=WORDS["query"])
    made = await idle.broker.subscriptions.subscribe(NEWS, SubscriptionSettings())
    page = "https://e.org/a"
    for source, *entry in (
        ("https://e.org/rss", "https://e.org/1", page, "Soup", "Food"),
        ("https://e.org/atom", "x", "http://www.e.org/a/?utm_source=b", "soup", "Food"),
        ("http", "https://e.org/1", "https://proxy.example/", "Changed", "News"),
        ("http", "https://e.org/1", "https://proxy.example/", "Changed again", "News"),
        ("https://e.org/rss", "https://e.org/1", page, "Soup, edited", "Food"),
        ("https://e.org/rss", "https://e.org/2", page, "Another story", "Food"),
    ):
        await arrive(idle, source, entry)
        if not at_once:
            await idle.match()
    await idle.match()
    assert sorted(await found(idle)) == [(1, 1), (1, 6), (2, 3)]
    assert len(await idle.rows(deliveries)) == 2
    read = partial(matches_after, since=0, limit=9)
    first, _ = await idle.store.read(partial(read, number=1))
    view = match_view(first, "https://b.example")
    assert view["sources"] == ["https://e.org/rss", "https://e.org/atom", "http"]
    chosen = select(subscriptions).where(subscriptions.c.number == 1)
    row = await idle.store.read(lambda db: db.execute(chosen).mappings().one())
    feed, _ = await idle.store.read(lambda db: atom(db, row, "https://b.example", 1000))
    assert b"in https://e.org/rss, https://e.org/atom, http" in feed
    [other] = await idle.store.read(partial(read, number=2))
    assert match_view(other, "https://b.example")["sources"] == ["http"]
    assert made.id == other["subscription_id"]


async def test_a_match_names_a_limited_number_of_sources(idle: BrokerHarness) -> None:
    await idle.broker.subscriptions.subscribe(WORDS, SubscriptionSettings())
    for number in range(MAX_SOURCES + 5):
        await arrive(idle, f"https://e.org/{number}", ("https://e.org/1", "", "", ""))
    await idle.match()
    [match] = await idle.rows(matches)
    assert match["sources"].split("\n")[-1] == f"https://e.org/{MAX_SOURCES - 1}"


async def test_concurrent_requests_fail_alone(idle: BrokerHarness) -> None:
    """Requests that are committed together do not share the conflict of one of them."""
    publish = idle.broker.publications.publish
    bodies = [f"<urn:{name}> a <urn:C> .".encode() for name in "abcd"]
    keys = ["one", "one", None, "one"]
    results = await asyncio.gather(
        *(publish(body, format="ttl", key=key) for body, key in zip(bodies, keys, strict=True)),
        publish(bodies[0], format="ttl", key="one"),
        return_exceptions=True,
    )
    assert [isinstance(result, ConflictError) for result in results] == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert results[4] == results[0]
    assert [row["seq"] for row in await idle.rows(publications)] == [1, 2]
