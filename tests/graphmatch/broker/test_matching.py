"""From the log to matches: exactly once, despite failures."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from time import monotonic

import pytest

from graphmatch.broker.matching import FAILURES, Matcher, host_of
from graphmatch.broker.service import (
    ANYBODY,
    Broker,
    BrokerLimits,
    Created,
    millis,
)
from graphmatch.broker.settings import Settings
from graphmatch.broker.store import Store
from graphmatch.broker.tables import (
    WITH_MATCHES,
    audit,
    deliveries,
    matches,
    publications,
    subscriptions,
)
from graphmatch.engine import Engine
from semantic.errors import Problem
from tests.graphmatch.broker.rig import NOON, QUERY, FakeClock, Rig, rig

GIVEN = {"query": QUERY}
OTHER = {"query": "SELECT ?s { ?s a <urn:D> }"}


async def log(broker: Broker, name: str, of: str = "C") -> None:
    text = f"<urn:{name}> a <urn:{of}> ."
    await broker.publish(text.encode(), format="ttl", name=f"urn:{name}")


async def found(one: Rig) -> list[tuple[int, int]]:
    return [(row["subscription"], row["publication"]) for row in await one.rows(matches)]


def test_a_subscription_sees_publications_after_its_commit(tmp_path: Path) -> None:
    async def main() -> None:
        async with rig(tmp_path, running=False) as one:
            await one.broker.subscribe(GIVEN, Settings())
            await log(one.broker, "a")
            await one.broker.subscribe(GIVEN, Settings())  # Subscribe before `a` is matched.
            await log(one.broker, "b")
            await one.match()
            assert sorted(await found(one)) == [(1, 1), (1, 2), (2, 2)]
            [first, *_] = await one.rows(matches)
            assert json.loads(first["solutions"]) == [{"s": "<urn:a>"}]
            assert not await one.rows(deliveries)  # Stream subscribers get no deliveries.
            shown = await one.store.read(lambda db: db.execute(WITH_MATCHES).mappings().all())
            assert [(row["matched"], row["matched_at"]) for row in shown] == [
                (2, millis(NOON)),
                (1, millis(NOON)),
            ]

    asyncio.run(main())


def test_changes_hold_for_what_is_published_after_them(tmp_path: Path) -> None:
    async def main() -> None:
        async with rig(tmp_path, running=False) as one:
            made = await one.broker.subscribe(GIVEN, Settings())

            async def change(**to: object) -> None:
                await one.broker.change(made.id, ANYBODY, made.ticket, **to)  # type: ignore[arg-type]

            await log(one.broker, "a")
            await change(given=OTHER)  # Neither query sees `a`.
            await log(one.broker, "b", "D")
            await one.match()
            await change(state="paused")
            await log(one.broker, "c", "D")
            await one.match()
            await change(state="active")
            await log(one.broker, "d", "D")
            await one.match()
            assert await found(one) == [(1, 2), (1, 4)]
            assert {row["generation"] for row in await one.rows(matches)} == {2}

    asyncio.run(main())


def test_nothing_matches_after_the_end(tmp_path: Path) -> None:
    async def main() -> None:
        clock = FakeClock()
        async with rig(tmp_path, clock, running=False) as one:
            await one.broker.subscribe(GIVEN, Settings())
            clock.forward(days=1)
            await log(one.broker, "a")
            await one.match()  # Expired subscriptions have not been swept yet.
            assert await found(one) == []

    asyncio.run(main())


def test_who_cannot_be_evaluated_is_paused_in_the_end(tmp_path: Path) -> None:
    long = "x" * 20_000
    text = f"REPLACE(REPLACE(STR(?s), '', '{long}'), '', '{long}')"
    costly = {"query": f"ASK {{ ?s a <urn:C> FILTER(STRLEN({text}) = 3) }}"}

    async def main() -> None:
        async with rig(tmp_path, running=False) as one:
            told: list[Problem] = []
            one.broker.engine = Engine(on_problem=told.append)
            made = await one.broker.subscribe(costly, Settings())
            await one.broker.subscribe(GIVEN, Settings())

            numbers = itertools.count()

            async def published(count: int) -> str:
                for _ in range(count):
                    await log(one.broker, f"a{next(numbers)}")
                    await one.match()
                [state] = [
                    row["state"] for row in await one.rows(subscriptions) if row["id"] == made.id
                ]
                return str(state)

            assert await published(FAILURES - 1) == "active"
            assert await published(1) == "paused"
            problems = [row["problem"] for row in await one.rows(publications)]
            assert all("bytes of text" in problem for problem in problems)
            await published(1)
            assert (await one.rows(publications))[-1]["problem"] is None
            assert len(told) == FAILURES
            await one.broker.change(made.id, ANYBODY, made.ticket, state="active")
            assert await published(FAILURES - 1) == "active"
            # The count restarts.
            await one.broker.change(made.id, ANYBODY, made.ticket, given=costly)
            assert await published(FAILURES - 1) == "active"
            told_before = len(told)
            for number in range(25):  # One batch contains all.
                await log(one.broker, f"b{number}")
            await one.match()
            assert await published(0) == "paused"
            assert len(told) == told_before + 25
            assert {number for number, _ in await found(one)} == {2}
            said = [row["what"] for row in await one.rows(audit)]
            assert any(
                what.startswith("subscription paused: 10 evaluations failed") for what in said
            )

    asyncio.run(main())


@pytest.mark.parametrize("when", ["before the commit", "after the commit"])
def test_killed_around_the_commit_each_match_is_there_once(tmp_path: Path, when: str) -> None:
    class Killed(BaseException):
        pass

    async def main() -> None:
        async with rig(tmp_path, running=False) as one:
            await one.broker.subscribe(GIVEN, Settings(sink={"kind": "inbox", "url": "http://a/"}))
            await log(one.broker, "a")
            commit = one.matcher._commit
            write = one.store.write_now

            def dies(work: object) -> object:
                if when == "after the commit":
                    write(work)  # type: ignore[arg-type]
                raise Killed

            one.store.write_now = dies  # type: ignore[method-assign, assignment]
            with pytest.raises(Killed):
                one.matcher.step()
            one.store.write_now = write  # type: ignore[method-assign]
            assert commit == one.matcher._commit
            again = Matcher(one.broker)
            one.broker.engine = Engine()
            again.load()
            assert again.step() == (when == "before the commit")
            assert await found(one) == [(1, 1)]
            assert len(await one.rows(deliveries)) == 1
            [row] = await one.rows(publications)
            assert row["matched_at"] is not None

    asyncio.run(main())


def test_a_start_from_a_snapshot_takes_in_what_changed_since(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "broker.db"))
    folder = tmp_path / "snapshots"

    def started(fingerprint: str = "f") -> tuple[Broker, Matcher]:
        broker = Broker(store, Engine(), FakeClock())
        matcher = Matcher(broker, folder, fingerprint)
        matcher.load()
        return broker, matcher

    async def main() -> None:
        broker, matcher = started()
        several: list[Created] = [await broker.subscribe(GIVEN, Settings()) for _ in range(4)]
        matcher.catch_up()
        matcher.save()
        [first] = folder.iterdir()
        assert [path.stat().st_mode & 0o777 for path in (folder, first)] == [0o700, 0o600]
        await broker.subscribe(GIVEN, Settings())
        await broker.unsubscribe(several[0].id, ANYBODY, several[0].ticket)
        await broker.change(several[1].id, ANYBODY, several[1].ticket, given=OTHER)
        await broker.change(several[2].id, ANYBODY, several[2].ticket, state="paused")
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
        broken, _ = started()
        assert _ids(broken) == {"2", "4", "5"}
        other, _ = started("another ontology")
        assert _ids(other) == {"2", "4", "5"}

    asyncio.run(main())
    store.close()


def _ids(broker: Broker) -> set[str]:
    return {one.id for one in broker.engine.subscriptions}


def test_what_the_ontology_of_now_does_not_allow_is_ended(tmp_path: Path) -> None:
    async def main() -> None:
        async with rig(tmp_path, running=False) as one:
            await one.broker.subscribe(GIVEN, Settings())
            broken = subscriptions.update().values(query="SELECT", change=5)
            await one.store.write(lambda db: db.execute(broken))
            one.matcher.catch_up()
            [row] = await one.rows(subscriptions)
            assert row["state"] == "ended"
            assert row["reason"].startswith("refused: ")

    asyncio.run(main())


def test_solutions_have_a_limit(tmp_path: Path) -> None:
    async def main() -> None:
        async with rig(tmp_path, running=False, limits=BrokerLimits(solutions=3)) as one:
            await one.broker.subscribe({"query": "SELECT ?o { ?s <urn:p> ?o }"}, Settings())
            construct = "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }"
            await one.broker.subscribe({"query": construct}, Settings())
            await one.broker.publish(b"<urn:a> <urn:p> 1, 2, 3, 4 .", format="ttl")
            await one.match()
            rows = await one.rows(matches)
            assert [row["cut"] for row in rows] == [True, True]
            solutions = [json.loads(row["solutions"]) for row in rows]
            assert len(solutions[0]) == 3
            assert len(solutions[1]["graph"]) == 3

    asyncio.run(main())


def test_matches_are_told_after_the_commit(tmp_path: Path) -> None:
    async def main() -> None:
        async with rig(tmp_path, running=False) as one:
            told: list[tuple[int, int]] = []

            def note(numbers: object) -> None:
                rows = one.store.read_now(lambda db: db.execute(matches.select()).all())
                told.append((len(list(numbers)), len(rows)))  # type: ignore[call-overload]

            one.matcher.told = note
            for _ in range(2):
                await one.broker.subscribe(GIVEN, Settings())
            await log(one.broker, "a")
            await one.match()
            assert told == [(2, 2)]

    asyncio.run(main())


def test_two_processes_match_each_publication_once(database: str) -> None:
    async def main() -> None:
        async with rig(database, running=False) as one, rig(database, running=False) as two:
            await one.broker.subscribe(GIVEN, Settings(sink={"kind": "inbox", "url": "http://a/"}))
            for n in range(3):
                text = "".join(
                    f"<urn:a{n}-{m}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:C> "
                    f"<urn:g{n}-{m}> .\n"
                    for m in range(100)
                )
                await two.broker.publish(text.encode(), format="nq")
            await asyncio.gather(one.match(), two.match())
            assert len(set(await found(one))) == len(await found(one)) == 300
            assert [row["id"] for row in await one.rows(deliveries)] == list(range(1, 301))

    asyncio.run(main())


@pytest.mark.parametrize(
    ("sink", "host"),
    [
        ({"kind": "webhook", "url": "https://A.example/x"}, "a.example:443"),
        ({"kind": "inbox", "url": "http://a.example"}, "a.example:80"),
        ({"kind": "ntfy", "url": "https://[2001:db8::1]:8443/t"}, "2001:db8::1:8443"),
        ({"kind": "email", "address": "a@b.example"}, "smtp:"),
    ],
)
def test_what_a_breaker_is_for(sink: dict[str, str], host: str) -> None:
    assert host_of(sink) == host


@pytest.mark.parametrize("form", ["*", "DISTINCT ?a0"])
def test_that_solutions_are_looked_for_only_as_far_as_they_are_kept(
    tmp_path: Path, form: str
) -> None:
    """This query has 42 to the power of 9 solutions, which must not delay others."""
    patterns = " . ".join(f"?a{n} ?b{n} ?c{n}" for n in range(9))
    triples = "".join(f"<urn:s{n % 7}> <urn:p{n}> {n} .\n" for n in range(42))

    async def main() -> None:
        async with rig(tmp_path, running=False) as one:
            await one.broker.subscribe({"query": f"SELECT {form} {{ {patterns} }}"}, Settings())
            await one.broker.publish(triples.encode(), format="ttl")
            begun = monotonic()
            await one.match()
            assert monotonic() - begun < 5
            [match] = await one.rows(matches)
            most = one.broker.limits.solutions
            count = len(json.loads(match["solutions"]))
            assert match["cut"]
            assert count == most if form == "*" else 0 < count <= 7

    asyncio.run(main())
