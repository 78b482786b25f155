"""A broker with its matcher and its dispatcher, and receivers on loopback; for tests."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from aiohttp import web
from sqlalchemy import RowMapping, Table, select

from graphmatch.broker.delivery import Dispatcher, NetworkSenders
from graphmatch.broker.matching import Matcher
from graphmatch.broker.safe_http import HttpClient
from graphmatch.broker.service import Broker, BrokerLimits, Created, Settings
from graphmatch.broker.store import Store
from graphmatch.engine import Engine

LOOPBACK = ["127.0.0.0/8"]
QUERY = "SELECT ?s { ?s a <urn:C> }"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
NOON = datetime(2026, 1, 14, 12, tzinfo=UTC)


class FakeClock:
    """A clock that goes when it is told to."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **length: float) -> None:
        self.now += timedelta(**length)


@dataclass
class Got:
    """A request that a receiver got."""

    path: str
    id: str
    body: bytes
    headers: Any
    at: float
    method: str = "POST"


@dataclass
class Receiver:
    """A server that notes what it gets, and answers what `answer` says, 200 by default."""

    port: int = 0
    got: list[Got] = field(default_factory=list)
    most_at_once: int = 0
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]] | None = None
    _now: int = 0

    def url(self, path: str = "/hook") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def count(self) -> Counter[str]:
        return Counter(one.id for one in self.got)

    async def take(self, request: web.Request) -> web.StreamResponse:
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            body, id = await request.read(), request.headers.get("webhook-id", "")
            one = Got(request.path, id, body, request.headers, time.perf_counter(), request.method)
            self.got.append(one)
            return web.Response() if self.answer is None else await self.answer(request)
        finally:
            self._now -= 1


@asynccontextmanager
async def receivers(count: int = 1) -> AsyncIterator[list[Receiver]]:
    runners, several = [], []
    for _ in range(count):
        one, app = Receiver(), web.Application()
        app.router.add_route("*", "/{rest:.*}", one.take)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        one.port = runner.addresses[0][1]
        runners.append(runner)
        several.append(one)
    try:
        yield several
    finally:
        for runner in runners:
            await runner.cleanup()


def status(code: int, **headers: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Return an answer with a status."""

    async def answer(_: web.Request) -> web.Response:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=code, headers=names)

    return answer


async def hang(_: web.Request) -> web.Response:
    """Answer never."""
    await asyncio.sleep(60)
    return web.Response()


class Rig:
    """A broker, its matcher and its dispatcher, on one store."""

    def __init__(self, store: Store, clock: Any, limits: BrokerLimits | None, client: HttpClient):
        self.store = store
        self.broker = Broker(store, Engine(), clock, limits)
        self.matcher = Matcher(self.broker)
        self.matcher.load()
        senders = NetworkSenders(client, clock=clock)
        self.dispatcher = Dispatcher(self.broker, senders, random=Random(1))
        self.matcher.told = self.dispatcher.wake

    async def subscribe(self, url: str, **more: Any) -> Created:
        sink = {"kind": "webhook", "url": url} | more.pop("sink", {})
        given = {"query": more.pop("query", QUERY)}
        return await self.broker.subscribe(given, Settings(sink=sink, **more))

    async def publish(self, *names: str) -> None:
        """Publish something of the class C under each name, and match it."""
        text = "".join(f"<urn:{one}> {TYPE} <urn:C> <urn:g-{one}> .\n" for one in names)
        await self.broker.publish(text.encode(), format="nq")
        await self.match()

    async def match(self) -> None:
        while await asyncio.to_thread(self.matcher.step):
            pass

    async def rows(self, table: Table) -> Sequence[RowMapping]:
        key = next(iter(table.primary_key.columns))
        chosen = select(table).order_by(key)
        return await self.store.read(lambda db: db.execute(chosen).mappings().all())


@asynccontextmanager
async def rig(
    place: Path | str,
    clock: Any = None,
    *,
    limits: BrokerLimits | None = None,
    allow: Sequence[str] = LOOPBACK,
    running: bool = True,
    seconds: float = 20.0,
) -> AsyncIterator[Rig]:
    url = str(place / "broker.db") if isinstance(place, Path) else place
    store = Store(url)
    try:
        async with HttpClient(allow, total_seconds=seconds) as client:
            made = Rig(store, clock or FakeClock(), limits, client)
            task = asyncio.create_task(made.dispatcher.run()) if running else None
            try:
                yield made
            finally:
                await made.dispatcher.stop(0.2)
                if task is not None:
                    await task
    finally:
        store.close()


async def until(
    said: Callable[[], bool | Awaitable[bool]], seconds: float = 10.0, every: float = 0.005
) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while True:
        found = said()
        if found if isinstance(found, bool) else await found:
            return
        assert time.monotonic() < end, "it has not come to hold"
        await asyncio.sleep(every)


# --- PostgreSQL ----------------------------------------------------------------------------------


@contextmanager
def postgresql() -> Iterator[Callable[[], str]]:
    """Start a cluster in a temporary folder; yield what makes a database and returns its URL."""
    unprivileged: dict[str, Any] = {"user": "nobody"} if os.getuid() == 0 else {}
    user = "nobody" if unprivileged else "tester"
    folder = Path(tempfile.mkdtemp(prefix="graphmatch-postgres-"))
    try:
        if unprivileged:
            shutil.chown(folder, "nobody")
        quiet: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder}
        data = folder / "data"
        subprocess.run(
            ["initdb", "-D", data, "-U", user, "-A", "trust", "-N", "--locale=C.UTF-8"],
            **quiet,
            **unprivileged,
        )
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        control = ["pg_ctl", "-D", data, "-w", "-s"]
        log = ["-l", folder / "log"]
        subprocess.run([*control, *log, "-o", options, "start"], **quiet, **unprivileged)
        made = 0

        def database() -> str:
            nonlocal made
            made += 1
            subprocess.run(["createdb", "-h", folder, "-U", user, f"test{made}"], **quiet)
            return f"postgresql://{user}@/test{made}?host={folder}"

        try:
            yield database
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **quiet, **unprivileged)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
