"""A broker with its matcher and dispatcher, and receivers on loopback, for tests."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import subprocess
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiohttp import web
from sqlalchemy import RowMapping, Table, select

from graphmatch.broker.db.store import Store
from graphmatch.broker.db.tables import deliveries
from graphmatch.broker.models.limits import BrokerLimits
from graphmatch.broker.models.subscription import SubscriptionReceipt
from graphmatch.broker.models.subscription_settings import SubscriptionSettings
from graphmatch.broker.outbox.dispatcher import Dispatcher, NetworkSenders
from graphmatch.broker.outbox.email_sender import SmtpServer
from graphmatch.broker.outbox.safe_http import HttpClient
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import MatchWorker
from graphmatch.engine import Engine
from semantic.clock import utc_now

LOOPBACK = ["127.0.0.0/8"]
QUERY = "SELECT ?s { ?s a <urn:C> }"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
NOON = datetime(2026, 1, 14, 12, tzinfo=UTC)


class FakeClock:
    """A clock that only tests move."""

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
    at: Any
    method: str = "POST"
    status: int = 0


@dataclass
class Receiver:
    """A server that records requests and responds as `answer` does, with 200 by default."""

    port: int = 0
    got: list[Got] = field(default_factory=list)
    most_at_once: int = 0
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]] | None = None
    tls: ssl.SSLContext | None = None
    clock: Callable[[], Any] = utc_now
    _now: int = 0
    _runner: web.AppRunner | None = None
    _site: web.BaseSite | None = None

    async def come_back(self) -> None:
        """Listen again on the same port."""
        if self._runner is None:
            app = web.Application()
            app.router.add_route("*", "/{rest:.*}", self.take)
            self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            await self._runner.setup()
        self._site = web.TCPSite(
            self._runner, "127.0.0.1", self.port, reuse_address=True, ssl_context=self.tls
        )
        await self._site.start()
        self.port = self._runner.addresses[0][1]

    async def leave(self) -> None:
        """Refuse connections."""
        assert self._site is not None
        await self._site.stop()

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def url(self, path: str = "/hook", host: str = "127.0.0.1") -> str:
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{path}"

    def count(self) -> Counter[str]:
        return Counter(one.id for one in self.got)

    async def take(self, request: web.Request) -> web.StreamResponse:
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            body, id = await request.read(), request.headers.get("webhook-id", "")
            one = Got(request.path, id, body, request.headers, self.clock(), request.method)
            self.got.append(one)
            response = web.Response() if self.answer is None else await self.answer(request)
            one.status = response.status
            return response
        finally:
            self._now -= 1


@asynccontextmanager
async def receivers(count: int = 1, **options: Any) -> AsyncIterator[list[Receiver]]:
    several = [Receiver(**options) for _ in range(count)]
    try:
        for one in several:
            await one.come_back()
        yield several
    finally:
        for one in several:
            await one.close()


def status(
    code: int, body: bytes = b"", **headers: str
) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Return a handler that responds with a status."""

    async def answer(_: web.Request) -> web.Response:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=code, body=body, headers=names)

    return answer


async def hang(_: web.Request) -> web.Response:
    """Never respond."""
    await asyncio.sleep(60)
    return web.Response()


class BrokerHarness:
    """A broker, its matcher and its dispatcher, on one store."""

    def __init__(
        self,
        store: Store,
        clock: Any,
        limits: BrokerLimits | None,
        client: HttpClient,
        smtp: SmtpServer | None = None,
        engine: Engine | None = None,
    ) -> None:
        self.store = store
        self.broker = Broker(store, Engine() if engine is None else engine, clock, limits)
        self.broker.allowed_networks = [ip_network(network) for network in LOOPBACK]
        self.matcher = MatchWorker(self.broker)
        self.matcher.load()
        senders = NetworkSenders(client, smtp, clock)
        self.dispatcher = Dispatcher(self.broker, senders, random=Random(1))
        self.matcher.on_matched = self.dispatcher.wake

    async def subscribe(self, url: str, **more: Any) -> SubscriptionReceipt:
        sink = {"kind": "webhook", "url": url} | more.pop("sink", {})
        given = {"query": more.pop("query", QUERY)}
        return await self.broker.subscriptions.subscribe(
            given, SubscriptionSettings(sink=sink, **more)
        )

    async def publish(self, *names: str) -> None:
        """Publish a member of class C under each name, and match it."""
        text = "".join(f"<urn:{one}> {TYPE} <urn:C> <urn:g-{one}> .\n" for one in names)
        await self.broker.publications.publish(text.encode(), format="nq")
        await self.match()

    async def match(self) -> None:
        while await asyncio.to_thread(self.matcher.step):
            pass

    def all_are(self, state: str) -> Callable[[], Awaitable[bool]]:
        """Return whether deliveries exist and all have a state."""

        async def check() -> bool:
            return {row["state"] for row in await self.rows(deliveries)} == {state}

        return check

    def has(self, state: str) -> Callable[[], Awaitable[bool]]:
        """Return whether a delivery has a state."""

        async def check() -> bool:
            return state in {row["state"] for row in await self.rows(deliveries)}

        return check

    async def rows(self, table: Table) -> Sequence[RowMapping]:
        key = next(iter(table.primary_key.columns))
        chosen = select(table).order_by(key)
        return await self.store.read(lambda db: db.execute(chosen).mappings().all())


@asynccontextmanager
async def harness(
    place: Path | str,
    clock: Any = None,
    *,
    limits: BrokerLimits | None = None,
    allow: Sequence[str] = LOOPBACK,
    running: bool = True,
    seconds: float = 20.0,
    smtp: SmtpServer | None = None,
    engine: Engine | None = None,
) -> AsyncIterator[BrokerHarness]:
    url = str(place / "broker.db") if isinstance(place, Path) else place
    store = Store(url)
    try:
        async with HttpClient(allow, total_seconds=seconds) as client:
            made = BrokerHarness(store, clock or FakeClock(), limits, client, smtp, engine)
            task = asyncio.create_task(made.dispatcher.run()) if running else None
            try:
                yield made
            finally:
                await made.dispatcher.stop(0.2)
                if task is not None:
                    await task
    finally:
        store.close()


# --- Other servers ------------------------------------------------------------------------------


@asynccontextmanager
async def talking(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Yield the port of a server that sends given bytes."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls) as server:
        yield server.sockets[0].getsockname()[1]


USUAL = {"AUTH": "235 in", "STARTTLS": "220 go on", "QUIT": "221 bye"}


@dataclass
class Smtp:
    """An SMTP server with its responses, and the commands and mails that it received."""

    answers: dict[str, str] = field(default_factory=dict)
    extensions: Sequence[str] = ("AUTH PLAIN", "8BITMIME")
    upgrade: ssl.SSLContext | None = None
    said: list[str] = field(default_factory=list)
    mails: list[bytes] = field(default_factory=list)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greeting = self.answers.get("greeting", "220 smtp.example")
        writer.write(greeting.encode() + b"\r\n")
        while line := (await reader.readline()).decode("utf-8", "replace").rstrip("\r\n"):
            self.said.append(line)
            verb = line.partition(" ")[0].upper()
            answer = self.answers.get(verb, USUAL.get(verb, "250 OK"))
            if answer == "silence":
                await asyncio.sleep(1)
                return
            if answer == "leave":
                return
            if verb == "EHLO":
                more = [*self.extensions, *(["STARTTLS"] if self.upgrade else [])]
                answer = "\r\n".join(f"250-{one}" for one in ("smtp.example", *more)) + "\r\n250 OK"
            if verb == "DATA" and "DATA" not in self.answers:
                writer.write(b"354 go on\r\n")
                self.mails.append(await reader.readuntil(b"\r\n.\r\n"))
                answer = self.answers.get("text", "250 taken")
                if answer == "leave":
                    return
            writer.write(answer.encode() + b"\r\n")
            if verb == "STARTTLS" and self.upgrade:
                await writer.drain()
                await writer.start_tls(self.upgrade)
            if verb == "QUIT":
                return


# --- PostgreSQL ----------------------------------------------------------------------------------


def postgresql_folder() -> Path | None:
    """Return the folder of PostgreSQL's programs. Debian does not put it into PATH."""
    found = shutil.which("initdb")
    every = [Path(found).resolve()] if found else Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((path.parent for path in every), default=None)


class Cluster:
    """A PostgreSQL server in a folder; a call creates a database and returns its URL."""

    def __init__(self, programs: Path, folder: Path, *options: str) -> None:
        self._programs, self._folder, self._made = programs, folder, 0
        self._run: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder}
        self._as: dict[str, Any] = {"user": "nobody"} if os.getuid() == 0 else {}
        self._user = "nobody" if self._as else "tester"
        if self._as:
            shutil.chown(folder, "nobody")
        said = ["-U", self._user, "-A", "trust", "-N", "--locale=C.UTF-8"]
        subprocess.run([programs / "initdb", "-D", folder / "data", *said], **self._run, **self._as)
        several = ["listen_addresses=''", *options]
        self._options = " ".join([f"-k {folder}", *(f"-c {one}" for one in several)])
        self.start()

    def __call__(self) -> str:
        self._made += 1
        made = [
            self._programs / "createdb",
            "-h",
            self._folder,
            "-U",
            self._user,
            f"test{self._made}",
        ]
        subprocess.run(made, **self._run)
        return f"postgresql://{self._user}@/test{self._made}?host={self._folder}"

    def start(self) -> None:
        self._control("-l", str(self._folder / "log"), "-o", self._options, "start")

    def stop(self) -> None:
        """Stop all processes immediately, as a power cut would."""
        self._control("-m", "immediate", "stop")

    def _control(self, *arguments: str) -> None:
        command = [self._programs / "pg_ctl", "-D", self._folder / "data", "-w", "-s", *arguments]
        subprocess.run(command, **self._run, **self._as)


@contextmanager
def postgresql(*options: str) -> Iterator[Cluster]:
    """Start a cluster in a temporary folder, without waiting for the disk by default."""
    if (programs := postgresql_folder()) is None:
        pytest.skip("PostgreSQL is missing: install Debian's package postgresql")
    folder = Path(tempfile.mkdtemp(prefix="graphmatch-postgres-"))
    try:
        cluster = Cluster(programs, folder, *(options or ["fsync=off"]))
        try:
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
