"""Processes with different roles share a PostgreSQL store: wake-ups, one leader, and kills."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from sqlalchemy import text
from typer.testing import CliRunner

from graphmatch.broker.app.leader import Leader
from graphmatch.broker.app.notifications import Notifications
from graphmatch.broker.app.supervisor import Supervisor
from graphmatch.broker.client import Client
from graphmatch.broker.db.store import Store, counted
from graphmatch.broker.db.tables import COUNTERS
from graphmatch.cli import app
from tests.graphmatch.broker.harness import TYPE, Receiver
from tests.graphmatch.broker.live_broker import ALL, Called
from tests.waiting import is_running, until, wait

ROOT = Path(__file__).parents[3]


# -- The leader ---------------------------------------------------------------------------------


@dataclass
class Candidate:
    """A process that wants to lead, as tasks of this one."""

    leader: Leader
    stop: asyncio.Event
    leads: bool = False
    times: int = 0

    async def work(self, ending: asyncio.Event) -> None:
        self.leads, self.times = True, self.times + 1
        await ending.wait()
        self.leads = False


@asynccontextmanager
async def candidate(database: str | None) -> AsyncIterator[Candidate]:
    stop = asyncio.Event()
    made = Candidate(Leader(database, Supervisor()), stop)
    running = asyncio.create_task(made.leader.run(made.work, stop))
    try:
        yield made
    finally:
        stop.set()
        await running
        assert not made.leads


def end_sessions(database: str) -> None:
    """End all other connections to a database."""
    store = Store(database)
    others = "pid != pg_backend_pid() AND datname = current_database()"
    end = text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
    store.read_now(lambda db: db.execute(end).all())
    store.close()


async def test_one_of_several_leads_and_another_takes_over(database: str) -> None:
    async with candidate(database) as second, candidate(database) as first:
        await until(lambda: first.leads or second.leads)
        if second.leads:
            first, second = second, first
        assert not second.leads
        assert (first.leader.is_leading, second.leader.is_leading) == (True, False)
        first.stop.set()
        await until(lambda: second.leads)
        assert not first.leads


async def test_a_leader_that_loses_its_connection_stops(database: str) -> None:
    async with candidate(database) as alone:
        await until(lambda: alone.leads)
        await asyncio.to_thread(end_sessions, database)
        await until(lambda: alone.times == 2)
        assert alone.leads


async def test_a_process_that_is_alone_leads() -> None:
    async with candidate(None) as alone:
        await until(lambda: alone.leads)


# -- Notifications ------------------------------------------------------------------------------


@asynccontextmanager
async def notified(database: str) -> AsyncIterator[tuple[Store, list[str]]]:
    """Yield a store that listens to other processes, and the counters that they have raised."""
    raised: list[str] = []
    connected, stop, store = asyncio.Event(), asyncio.Event(), Store(database)

    async def on_raised(counter: str) -> None:
        raised.append(counter)
        connected.set()

    notifications = Notifications(store, on_raised)
    running = asyncio.create_task(Supervisor().repeat("notified", notifications.listen, stop))
    await connected.wait()
    await until(lambda: raised == list(COUNTERS))
    raised.clear()
    try:
        yield store, raised
    finally:
        stop.set()
        await running
        await notifications.close()
        store.close()


async def test_a_commit_notifies_the_other_processes(database: str) -> None:
    async with notified(database) as (store, own), notified(database) as (_, raised):
        await store.write(lambda db: (counted(db, "match"), counted(db, "match", 3)))
        await store.write(lambda db: counted(db, "publication"))
        await until(lambda: len(raised) == 2)
        assert (raised, own) == (["match", "publication"], [])


async def test_a_new_connection_counts_as_all_notifications(database: str) -> None:
    async with notified(database) as (_, raised):
        await asyncio.to_thread(end_sessions, database)
        await until(lambda: set(raised) == set(COUNTERS))


# -- Processes ----------------------------------------------------------------------------------


@dataclass
class Serving(Called):
    """A process of ``graphmatch serve``."""

    log: Path
    pid: int
    port: int = 0

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        wait(lambda: not is_running(self.pid))

    @property
    def is_leading(self) -> bool:
        return b"\ngraphmatch_leader 1.0\n" in self.call("GET", "/metrics").content


@dataclass
class Nursery:
    """A process that forks others, so that each need not import everything again."""

    process: subprocess.Popen[str]
    folder: Path
    database: str = ""
    settings: Sequence[str] = ()
    started: list[Serving] = field(default_factory=list)

    def start(self, roles: str, *options: str, port: int = 0) -> Serving:
        log = self.folder / f"{len(self.started)}.log"
        arguments = ["serve", "--store", self.database, "--roles", roles, "--port", str(port)]
        log.touch()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        line = json.dumps([str(log), self.settings, *arguments, "--allow", "127.0.0.0/8", *options])
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        made = Serving(log, int(self.process.stdout.readline()))
        self.started.append(made)

        def listens() -> bool:
            assert is_running(made.pid), log.read_text()
            for line in log.read_text().splitlines():
                if "listening at" in line:
                    made.port = int(
                        line.partition("listening at http://127.0.0.1:")[2].split(",")[0]
                    )
            return made.port > 0

        wait(listens)
        return made


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, __file__]
    with subprocess.Popen(
        command, env=environment, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Nursery(process, tmp_path_factory.mktemp("processes"))
        process.kill()


@pytest.fixture
def processes(nursery: Nursery, database: str) -> Iterator[Nursery]:
    """Yield a nursery for processes that share an empty database."""
    nursery.database, nursery.settings = database, ()
    yield nursery
    for one in nursery.started:
        if is_running(one.pid):
            one.kill()


def quad(name: str) -> str:
    return f"<urn:{name}> {TYPE} <urn:C> <urn:g-{name}> ."


async def test_notifications_carry_a_match_through_all_processes(
    processes: Nursery, hook: Receiver
) -> None:
    """No process polls, so a match comes only if each of them is notified."""
    processes.settings = ["no polls"]
    api, sender, matcher = [
        await asyncio.to_thread(processes.start, roles)
        for roles in ("feeds,api", "deliver", "match")
    ]
    client = Client(api.url)
    made = client.subscribe(query=ALL, sink={"kind": "webhook", "url": hook.url()})
    events = client.events(made.id, made.ticket, since=0)
    await asyncio.to_thread(client.publish, quad("a"), "application/n-quads")
    event = await asyncio.to_thread(next, events)
    await asyncio.to_thread(client.publish, quad("b"), "application/n-quads")
    second = await asyncio.to_thread(next, events)
    events.close()
    assert [one.publication.id for one in (event, second)] == ["urn:g-a", "urn:g-b"]
    await until(lambda: len(hook.got) == 2)
    for process in (sender, matcher):
        assert (await asyncio.to_thread(process.call, "GET", "/readyz")).status == 200
        assert (await asyncio.to_thread(process.call, "GET", "/v1/feeds")).status == 404
        assert (await asyncio.to_thread(process.call, "GET", "/")).status == 404
    assert await asyncio.to_thread(lambda: api.is_leading and not matcher.is_leading)


async def test_a_feed_added_anywhere_is_fetched_by_the_leader_even_after_a_kill(
    processes: Nursery, hook: Receiver
) -> None:
    item = "<item><title>{0}</title><link>https://e.example/{0}</link></item>"
    head = "<rss version='2.0'><channel><title>T</title>"

    async def feed(request: web.Request) -> web.Response:
        return web.Response(text=f"{head}{item.format(request.path[1:])}</channel></rss>")

    hook.answer = feed
    first = await asyncio.to_thread(processes.start, "feeds,api")
    await asyncio.to_thread(lambda: wait(lambda: first.is_leading))
    second = await asyncio.to_thread(processes.start, "feeds,api")
    add = {"url": hook.url("/one")}
    added = await asyncio.to_thread(second.call, "POST", "/v1/feeds", add)
    assert added.status == 201
    await until(lambda: [got.path for got in hook.got] == ["/one"])
    assert not await asyncio.to_thread(lambda: second.is_leading)
    await asyncio.to_thread(first.kill)
    await asyncio.to_thread(lambda: wait(lambda: second.is_leading))
    add = {"url": hook.url("/two")}
    assert (await asyncio.to_thread(second.call, "POST", "/v1/feeds", add)).status == 201
    await until(lambda: "/two" in [got.path for got in hook.got])


def test_a_sqlite_store_is_for_one_process(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "b.db"), "--port", "0")
    ran = CliRunner().invoke(app, ["serve", *store, "--roles", "match,api"])
    assert ran.exit_code == 2
    assert "only one process can use a SQLite store" in " ".join(ran.output.split())
    ran = CliRunner().invoke(app, ["serve", *store, "--roles", "match,fly"])
    assert ran.exit_code == 2
    assert "no role is called 'fly'" in " ".join(ran.output.split())


# -- Kills --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kills", [3, pytest.param(60, marks=pytest.mark.long)])
async def test_nothing_is_lost_if_processes_of_three_roles_are_killed(
    processes: Nursery, hook: Receiver, kills: int
) -> None:
    """Publishers repeat a request with its key until it is acknowledged."""
    chance, taken, acknowledged = random.Random(kills), dict[str, set[str]](), list[str]()

    async def take(request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        if request.transport is not None and not request.transport.is_closing():
            for match in body["matches"]:
                name = match["publication"]["id"]
                taken.setdefault(name, set()).add(request.headers["webhook-id"])
        return web.Response()

    hook.answer = take
    processes.settings = ["short claims"]
    roles = ["feeds,api", "deliver", "match"]
    running = [await asyncio.to_thread(processes.start, each) for each in roles]
    address, stopped = running[0].url, asyncio.Event()
    sink = {"kind": "webhook", "url": hook.url()}
    await asyncio.to_thread(Client(address).subscribe, query=ALL, sink=sink)

    async def publish(http: aiohttp.ClientSession, publisher: int) -> None:
        number = 0
        while not stopped.is_set():
            number += 1
            name, status = f"{publisher}-{number}", 0
            headers = {"Content-Type": "application/n-quads", "Idempotency-Key": name}
            while status != 202:
                try:
                    where = f"{address}/v1/publications"
                    async with http.post(where, data=quad(name), headers=headers) as answer:
                        status = answer.status
                except (aiohttp.ClientError, ConnectionError):
                    await asyncio.sleep(0.05)
            acknowledged.append(f"urn:g-{name}")
            await asyncio.sleep(0.02)

    async with aiohttp.ClientSession() as http:
        publishing = [asyncio.create_task(publish(http, number)) for number in range(3)]
        for kill in range(kills):
            count = len(taken) + chance.randrange(1, 30)
            await until(lambda count=count: len(taken) >= count)  # type: ignore[misc]
            slot = kill % 3 if kills < 10 else chance.randrange(3)
            killed = running[slot]
            await asyncio.to_thread(killed.kill)
            running[slot] = await asyncio.to_thread(
                lambda slot=slot, port=killed.port: processes.start(roles[slot], port=port)
            )
        stopped.set()
        await asyncio.gather(*publishing)
    await until(lambda: set(acknowledged) <= taken.keys(), 300)
    assert len(acknowledged) > 5 * kills
    assert {len(ids) for ids in taken.values()} == {1}
    sys.stdout.write(f"{kills} kills, {len(acknowledged)} acknowledged, {len(hook.got)} requests\n")


def configure(settings: Sequence[str]) -> None:
    """Set the delays of this process."""
    from datetime import timedelta

    from graphmatch.broker.api import sse
    from graphmatch.broker.app import assembly
    from graphmatch.broker.db import delivery_queries
    from graphmatch.broker.outbox import dispatcher
    from graphmatch.broker.service import match_worker

    modules: Any = (assembly, dispatcher, match_worker, sse)
    parts, sending, matching, streams = modules
    parts._FEED_LIST_SECONDS = 0.1
    if "short claims" in settings:
        delivery_queries.CLAIM_DURATION = matching._CLAIM = timedelta(seconds=2)
        sending._MARGIN = timedelta(seconds=1)
    if "no polls" in settings:
        matching.IDLE_SECONDS = streams.POLL_SECONDS = sending._POLL_SECONDS = 1e6


def fork_processes() -> None:
    """Fork a process for each line of standard input, and print its number."""
    from graphmatch import cli
    from graphmatch.broker.app import server

    assert server  # Its import takes a second or more.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        log, settings, *arguments = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            file = os.open(log, os.O_WRONLY | os.O_APPEND)
            for stream in (1, 2):
                os.dup2(file, stream)
            configure(settings)
            sys.argv = ["graphmatch", *arguments]
            cli.main()
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    fork_processes()
