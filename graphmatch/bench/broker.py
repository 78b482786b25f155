"""``graphmatch bench broker``: the service, from a request to its result in the store, over HTTP.

It uses the subscriptions and publications of ``graph`` (`graphmatch.bench.workloads.graph`), 10
matches each, in a SQLite store. By default each subscription has a shape of its own. The documents
are new N-Triples. ``graphmatch serve`` runs in a process of its own, restarted for each row. This
process is its client on the same machine.

- ``start``: from the command to the first ready answer; the engine was saved before.
- ``paced``: `RATE` requests per second, on 20 connections. Times are from the due time of a request
  to its acknowledgement, and to the transaction with its matches.
- ``sustained``: the maximum rate, until the last match is in the store.
- ``webhooks``: deliveries to a receiver in this process, one per match.
"""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, time
from typing import Any

import aiohttp
from aiohttp import web
from sqlalchemy import insert

from graphmatch.bench import report
from graphmatch.bench.process import Row, memory
from graphmatch.bench.workloads import Size
from graphmatch.bench.workloads.graph import GraphWorkload
from graphmatch.broker.db.store import Store, counted
from graphmatch.broker.db.tables import subscriptions
from graphmatch.broker.models.subscription_settings import WebhookSink
from graphmatch.console import CommandConsole

RATE = 100
"""Requests per second in ``paced``."""
CONNECTIONS = 20
MATCHES = 10
_NEW = 1_000_000
"""Published names have numbers from here on, which no subscription has."""
_UNMATCHED = "SELECT count(*) FROM publications WHERE matched_at IS NULL"
_COLUMNS = {
    "row": "row",
    "seconds": "s",
    "per_second": "a second",
    "p50_ms": "p50 in ms",
    "p95_ms": "p95 in ms",
    "p99_ms": "p99 in ms",
    "match_p95_ms": "p95 to the match in ms",
    "megabytes": "peak MB",
}


def run(sizes: Sequence[Size], shapes: int = 0, *, json: bool = False) -> int:
    """Measure each size; print a table, or one JSON object per line; return the exit status."""
    out = CommandConsole()
    for size in sizes:
        with TemporaryDirectory(prefix="graphmatch-bench-") as folder:
            planted = replace(size, events=min(size.events, size.subscriptions // MATCHES))
            workload = GraphWorkload(planted, matches=MATCHES, shapes=shapes)
            rows = asyncio.run(_measured(Path(folder), workload, size.events))
        about = {"workload": "broker", **asdict(size), "shapes": shapes}
        if json:
            for row in rows:
                out.write_json({**about, **row})
        else:
            said = f"broker, {size.subscriptions:,} subscriptions"
            out.print(f"{said}\n{report.table(rows, _COLUMNS)}")
    return 0


async def _measured(folder: Path, workload: GraphWorkload, events: int) -> list[Row]:
    store = folder / "many.db"
    _fill(store, workload.texts(), {"kind": "sse"})
    async with _served(store):
        pass  # the engine is built, and saved at the end
    rows: list[Row] = []
    async with _served(store) as service:
        rows.append({"row": "start", "seconds": service.seconds})
        documents = [workload.document(n, "nt", _NEW + n) for n in range(events)]
        times, seconds, to_match = await _publish(service, documents, RATE)
        paced = _percentiles(times, events / seconds)
        paced["match_p95_ms"] = sorted(to_match)[len(to_match) * 95 // 100]
        rows.append({"row": "paced", "seconds": seconds, **paced})
    async with _served(store) as service:
        documents = [workload.document(n, "nt", _NEW + events + n) for n in range(events)]
        _, seconds, _ = await _publish(service, documents, None)
        rows.append({"row": "sustained", "seconds": seconds, "per_second": events / seconds})
        if (peak := memory("VmHWM:", service.process.pid)) is not None:
            rows[-1]["megabytes"] = peak / 2**20
    async with _receiver() as (url, got):
        few = folder / "few.db"
        sink = WebhookSink(kind="webhook", url=url).model_dump(exclude_none=True)
        _fill(few, ["ASK { ?s a <urn:C> }"] * MATCHES, sink)
        async with _served(few, "--allow", "127.0.0.0/8") as service:
            documents = [f"<urn:a{n}> a <urn:C> .".encode() for n in range(events)]
            begun = perf_counter()
            await _publish(service, documents, None, "text/turtle")
            while len(got) < MATCHES * events:
                await asyncio.sleep(0.01)
            seconds = perf_counter() - begun
        rows.append({"row": "webhooks", "seconds": seconds, "per_second": len(got) / seconds})
    return rows


def _fill(path: Path, queries: Sequence[str], sink: dict[str, Any]) -> None:
    """Create a store with a subscription for each query, all with the same sink."""
    store, now = Store(str(path)), int(time() * 1000)
    same = {"name": "bench", "sink": sink, "state": "active", "generation": 1}
    same |= {"after_publication": 0, "created_at": now, "expires_at": now + 10**9}
    for begin in range(0, len(queries), 10_000):
        part = queries[begin : begin + 10_000]

        def work(db: Any, part: Sequence[str] = part) -> None:
            first = counted(db, "change", len(part)) - len(part) + 1
            rows = [
                {
                    "id": f"sub_{secrets.token_hex(8)}",
                    "definition": {"query": query},
                    "query": query,
                    "ticket": b"",
                    "change": change,
                    **same,
                }
                for change, query in enumerate(part, first)
            ]
            db.execute(insert(subscriptions), rows)

        store.write_now(work)
    store.close()


@dataclass(frozen=True, slots=True)
class _Service:
    """A running service: its process, its address, and its start-up time in seconds."""

    process: asyncio.subprocess.Process
    store: Path
    url: str
    seconds: float


@asynccontextmanager
async def _served(store: Path, *more: str) -> AsyncIterator[_Service]:
    """Start the service on a store, yield it when it is ready, and stop it after the block."""
    code = "from graphmatch.cli import main; main()"
    arguments = ["serve", "--store", str(store), "--port", "0", *more]
    begun = perf_counter()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, *arguments, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        said = ""
        while "listening at " not in said:
            line = await process.stderr.readline()
            if not line:
                raise RuntimeError(f"the service has ended: {said}")
            said = line.decode()
        url = said.partition("listening at ")[2].split(",")[0]
        draining = asyncio.create_task(process.stderr.read())  # The pipe must not fill up.
        async with aiohttp.ClientSession() as session:
            while True:
                async with session.get(f"{url}/readyz") as answer:
                    if answer.status == 200:
                        break
                await asyncio.sleep(0.01)
        yield _Service(process, store, url, perf_counter() - begun)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
    await draining


async def _publish(
    service: _Service,
    documents: Sequence[bytes],
    rate: int | None,
    media_type: str = "application/n-triples",
) -> tuple[list[float], float, list[float]]:
    """Publish documents, and wait until all are matched.

    Parameters
    ----------
    rate
        Documents per second; ``None`` for as many as possible.

    Returns
    -------
    times
        Seconds until the acknowledgement of each.
    seconds
        Seconds until all are matched.
    to_match
        Milliseconds until each is matched.
    """
    times: list[float] = []
    due_at: dict[int, float] = {}
    numbered = iter(enumerate(documents))
    headers = {"Content-Type": media_type}
    begun = perf_counter()

    async def connection(session: aiohttp.ClientSession) -> None:
        for number, document in numbered:
            due = perf_counter() if rate is None else begun + number / rate
            await asyncio.sleep(max(0.0, due - perf_counter()))
            sending = session.post(f"{service.url}/v1/publications", data=document, headers=headers)
            async with sending as answer:
                if answer.status != 202:
                    raise RuntimeError(await answer.text())
                seq = (await answer.json())["publications"][0]["seq"]
            times.append(perf_counter() - due)
            due_at[seq] = (time() - times[-1]) * 1000

    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(connection(session) for _ in range(CONNECTIONS)))
    with closing(sqlite3.connect(f"file:{service.store}?mode=ro", uri=True)) as db:
        while db.execute(_UNMATCHED).fetchone() != (0,):
            await asyncio.sleep(0.01)
        seconds = perf_counter() - begun
        (count,) = db.execute("SELECT count(*) FROM matches").fetchone()
        matched_at = dict(db.execute("SELECT seq, matched_at FROM publications"))
    if count % MATCHES or count < MATCHES * len(documents):
        raise RuntimeError(f"{count:,} matches of {len(documents):,} publications")
    return times, seconds, [matched_at[seq] - due for seq, due in due_at.items()]


def _percentiles(times: Sequence[float], rate: float) -> Row:
    ordered = sorted(times)
    places = {f"p{p}_ms": ordered[len(ordered) * p // 100] * 1000 for p in (50, 95, 99)}
    return {"per_second": rate, **places}


@asynccontextmanager
async def _receiver() -> AsyncIterator[tuple[str, list[int]]]:
    """Listen for webhooks; yield the address, and a list that grows with each webhook."""
    got: list[int] = []

    async def take(request: web.Request) -> web.Response:
        got.append(len(await request.read()))
        return web.Response()

    app = web.Application()
    app.router.add_post("/hook", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/hook", got
    finally:
        await runner.cleanup()
