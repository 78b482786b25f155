"""The dispatcher of the outbox: it sends waiting deliveries until they are accepted or given up.

A delivery is claimed for a while and sent, and its result is written back, many in one commit. If
the broker is killed in between, the delivery is sent again: at least once, each time under the same
``webhook-id``. Claims of a process that ended come back when they expire, or at the next start of
a broker with SQLite, which has one process.

One dead host does not delay the others. Hosts take turns. Each has two requests at a time, and
claims of at most `WINDOW` deliveries, which grow with its successes. A host that fails has one
claim, and a host whose breaker is open has none. All failing hosts share half of the room.

Cost: a few microseconds per host with waiting deliveries, each second and after each commit of
matches, and about 0.5 ms per delivery. Messages are made in threads.

Limits: inboxes of several targets on another host are not counted as one host. If the clock is set
back, deliveries are late by as much, and none are lost.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any

from sqlalchemy import select, update

from graphmatch.broker.app.errors import NotFoundError
from graphmatch.broker.db import delivery_queries as queries
from graphmatch.broker.db.store import StoreError
from graphmatch.broker.db.tables import WAITING, circuit_breakers, deliveries
from graphmatch.broker.models.attempt import AttemptResult, RetryDecision
from graphmatch.broker.models.circuit_breaker import CircuitBreaker
from graphmatch.broker.models.claimed_delivery import ClaimedDelivery
from graphmatch.broker.models.subscription_settings import send_at
from graphmatch.broker.models.times import millis, time_of
from graphmatch.broker.outbox.payloads import Composer, Item
from graphmatch.broker.outbox.retry_policy import next_try
from graphmatch.broker.outbox.senders import HubRequest, NetworkSenders
from graphmatch.broker.outbox.websub_hub import finish
from graphmatch.broker.service.broker import Broker
from semantic.errors import Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import Connection

WINDOW = 100
"""Maximum number of claimed deliveries per host."""
MAX_REQUESTS = 1000
"""Maximum number of concurrent requests."""
_MARGIN = timedelta(seconds=45)
"""Least time between the start of a request and the end of its claim; requests are shorter."""
_SLOW_SECONDS = 1.0
_POLL_SECONDS = 1.0
_GATHER_SECONDS = 0.02
"""Time that a result waits for others, to be written with them."""
_KNOWN_HOSTS = 10_000

log = logging.getLogger("graphmatch.broker")


@dataclass(slots=True)
class _Host:
    """A host with its claimed deliveries, and the number of requests to it."""

    name: str
    window: int
    breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    claimed: int = 0
    busy: int = 0
    queue: deque[Item] = field(default_factory=deque)


class Dispatcher:
    """Sends the deliveries of a broker's outbox, in the event loop of `run`.

    Parameters
    ----------
    broker
        Broker with the store, the limits, and the engine for reasons.
    senders
        Senders of all kinds of sinks.
    random
        Source of the jitter of retries.
    base
        URL of the broker, for links.

    Examples
    --------
    ::

        async with HttpClient() as client:
            dispatcher = Dispatcher(broker, NetworkSenders(client), base="https://broker.example")
            matcher.on_matched = dispatcher.wake
            running = asyncio.create_task(dispatcher.run())
            ...
            await dispatcher.stop()
            await running
    """

    def __init__(
        self,
        broker: Broker,
        senders: NetworkSenders,
        random: Random | None = None,
        *,
        base: str = "http://127.0.0.1:8000",
    ) -> None:
        self.broker, self.senders, self.clock = broker, senders, broker.clock
        self.composer = Composer(broker, base.rstrip("/"))
        self.sent = 0
        """Number of requests."""
        self.on_attempt: Callable[[AttemptResult], object] = lambda _: None
        """Called with the result of each attempt."""
        self._random = random or Random()  # noqa: S311 -- no secret depends on it
        self._slots = broker.limits.host_requests
        self._hosts: dict[str, _Host] = {}
        self._ready: dict[str, None] = {}
        """Hosts that may have due deliveries, in the order of their turns."""
        self._active: set[str] = set()
        """Hosts with claims."""
        self._is_begun = False
        self._look_at = self._looked_at = self._look_seconds = 0.0
        """Next and last search for due hosts, and its duration."""
        self._results: list[queries.Result] = []
        """Results that are not written yet."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._explainer = ThreadPoolExecutor(1, "explainer")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken, self._has_results = asyncio.Event(), asyncio.Event()
        self._ending, self._stopped = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        """Send due deliveries until `stop`."""
        self._loop = asyncio.get_running_loop()
        writing = asyncio.create_task(self._write())
        try:
            repeat = self.broker.supervisor.repeat
            await repeat("deliveries", self._round, self._ending, self._woken)
            await self._stopped.wait()
        finally:
            for task in self._tasks:
                task.cancel()
            self._ending.set()
            self._has_results.set()
            await asyncio.gather(writing, return_exceptions=True)
            self._explainer.shutdown(wait=False)

    async def stop(self, seconds: float = 5.0) -> None:
        """Claim no more, wait some seconds for open requests, and release all claims."""
        self._ending.set()
        self._woken.set()
        for wait in (seconds, None):
            for host in self._hosts.values():
                self._give_back(host)
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=wait)
            for task in self._tasks:
                task.cancel()
        self._stopped.set()

    def wake(self, _numbers: Sequence[int] = ()) -> None:
        """Look for due deliveries soon; any thread may call it."""
        if self._loop is not None:
            with suppress(RuntimeError):  # The loop is closed.
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._look_at = min(self._look_at, self._looked_at + 5 * self._look_seconds)
        self._woken.set()

    async def retry(self, delivery: int) -> None:
        """Send a waiting or failed delivery now; its attempts are counted on.

        Raises
        ------
        NotFoundError
            If there is no such delivery, or it was accepted.
        """
        mine = (deliveries.c.id == delivery, deliveries.c.state != "delivered")
        values = {"state": "waiting", "due_at": millis(self.clock()), "done_at": None}

        def work(db: Connection) -> None:
            if not db.execute(update(deliveries).where(*mine).values(**values)).rowcount:
                what = "there is no such delivery, or it was delivered"
                raise NotFoundError(Problem(what, Place(str(delivery)), "Check its state."))

        await self.broker.store.write(work)
        self._wake()

    # -- claiming ---------------------------------------------------------------------------

    async def _round(self) -> float:
        """Claim due deliveries; return the number of seconds until the next round."""
        store, now = self.broker.store, self.clock()
        if not self._is_begun:
            await self._read_breakers()
            if store.is_sqlite:  # 0 and not null: a digest that was claimed is closed.
                claimed = update(deliveries).where(WAITING, deliveries.c.claimed_until > 0)
                await store.write(lambda db: db.execute(claimed.values(claimed_until=0)))
            self._is_begun = True
        if time.monotonic() >= self._look_at:
            await self._look(now)
        wanted = self._wanted(now)
        if not wanted:
            return max(0.0, self._look_at - time.monotonic())
        until = millis(now + queries.CLAIM_DURATION)
        claim = partial(queries.claim, wanted=wanted, now=millis(now), until=until)
        try:
            rows = await store.write(claim)
        except StoreError:  # It can be committed although the connection was lost.
            self._add(partial(queries.release_claim, until=until))
            raise
        counts = Counter(row.host for row in rows)
        for name, limit in wanted.items():
            if counts[name] < limit:
                self._ready.pop(name, None)
            self._hosts[name].claimed += counts[name]
        self._active |= counts.keys()
        if rows:
            self._start(self._prepare(rows))
        return 0.0

    async def _read_breakers(self) -> None:
        """Read the breakers that another process has written."""
        chosen = select(circuit_breakers).where(circuit_breakers.c.failures > 0)
        for row in await self.broker.store.read(lambda db: db.execute(chosen).mappings().all()):
            until, host = row["open_until"], self._host(row["host"])
            if row["failures"] > host.breaker.failures:
                open_until = None if until is None else time_of(until)
                host.breaker = CircuitBreaker(row["failures"], open_until)

    async def _look(self, now: datetime) -> None:
        """Find the hosts with due deliveries."""
        begin = self._looked_at = time.monotonic()
        self._look_at = begin + _POLL_SECONDS
        self._ready |= await self.broker.store.read(partial(queries.due_hosts, now=millis(now)))
        if not self.broker.store.is_sqlite:
            await self._read_breakers()
        self._look_seconds = time.monotonic() - begin
        self._look_at += 20 * self._look_seconds  # `_wake` may have made it earlier.
        if len(self._hosts) > _KNOWN_HOSTS:
            hosts = self._hosts.items()
            self._hosts = {n: host for n, host in hosts if host.claimed or host.breaker.failures}

    def _host(self, name: str) -> _Host:
        if name not in self._hosts:
            self._hosts[name] = _Host(name, self._slots)
        return self._hosts[name]

    def _wanted(self, now: datetime) -> dict[str, int]:
        """Return the number of deliveries to claim, by host."""
        wanted: dict[str, int] = {}
        limit = max(1, MAX_REQUESTS // self._slots)
        room, failing = limit - len(self._active), limit // 2
        failing -= sum(1 for name in self._active if self._hosts[name].breaker.failures)
        is_crowded = len(self._ready) - len(self._active) > room
        for name in list(islice(self._ready, 4 * limit)):
            host = self._host(name)
            if host.breaker.is_open(now):
                del self._ready[name]
                continue
            is_failing = host.breaker.failures > 0
            window = 1 if is_failing else host.window
            free = window - host.claimed
            if free <= 0 or (host.claimed and (is_crowded or free < window // 2)):
                continue
            if not host.claimed:
                if room <= 0 or (is_failing and failing <= 0):
                    continue
                room -= 1
                failing -= is_failing
            wanted[name] = free
            self._ready[name] = self._ready.pop(name)  # Its next turn comes last.
        return wanted

    async def _prepare(self, rows: Sequence[ClaimedDelivery], *, explain: bool = False) -> None:
        """Make the messages of claimed deliveries in a thread, and queue them.

        Messages with reasons are made after the others, in a thread of their own.
        """
        assert self._loop is not None
        made: dict[int, Item | str | None] = {}
        try:
            with self.broker.supervisor.round("messages"):
                executor, work = self._explainer if explain else None, self.composer.compose
                made = await self._loop.run_in_executor(executor, work, rows, explain)
        finally:
            for row in rows:
                host, item = self._hosts[row.host], made.get(row.id, "")
                if isinstance(item, Item):
                    host.queue.append(item)
                elif item is not None:
                    self._add(self._not_sent(row, item) if item else queries.release_row(row))
                    self._done(host)
        if later := [row for row in rows if made.get(row.id, "") is None]:
            self._start(self._prepare(later, explain=True))
        for name in dict.fromkeys(row.host for row in rows):
            self._pump(self._hosts[name])

    # -- sending ----------------------------------------------------------------------------

    def _slots_of(self, host: _Host) -> int:
        return 1 if host.breaker.failures else self._slots

    def _pump(self, host: _Host) -> None:
        """Start as many senders for a host as its queue needs and its limit allows."""
        if self._ending.is_set():
            self._give_back(host)
        for _ in range(min(self._slots_of(host) - host.busy, len(host.queue))):
            host.busy += 1
            self._start(self._drain(host))

    async def _drain(self, host: _Host) -> None:
        """Send the queued messages of a host one after the other."""
        try:
            while host.queue and host.busy <= self._slots_of(host) and not self._ending.is_set():
                item = host.queue.popleft()
                try:
                    if time_of(item.delivery.claimed_until) - self.clock() < _MARGIN:
                        self._add(queries.release_row(item.delivery))
                    else:
                        await self._send(host, item)
                finally:
                    self._done(host)
        finally:
            host.busy -= 1
            self._pump(host)

    async def _send(self, host: _Host, item: Item) -> None:
        """Send one message, and note its result."""
        self._set_breaker(host, host.breaker.probing(self.clock()))
        self.sent += 1
        outcome: AttemptResult | None = None
        try:
            name = f"delivery {item.delivery.id}"
            with self.broker.supervisor.record("deliveries", name) as attempt:
                outcome = await self.senders.send(item.sink, item.message)
            if attempt.error is not None:
                outcome = AttemptResult(RetryDecision.RETRY, attempt.error)
        finally:
            self._settle(host, item, outcome)

    def _settle(self, host: _Host, item: Item, outcome: AttemptResult | None) -> None:
        """Note the result of an attempt; ``None`` if it was cancelled, and may have arrived."""
        row, now = item.delivery, self.clock()
        at, number, sink = millis(now), row.subscription, item.sink
        if outcome is None:
            tries = max(row.attempt, 1)
            self._add(queries.outcome_row(row, "waiting", tries, at, None, None, None))
            return
        self.on_attempt(outcome)
        is_delivered = outcome.decision is RetryDecision.DELIVERED
        self._set_breaker(host, host.breaker.after(outcome, now))
        if outcome.host_failed or outcome.seconds > _SLOW_SECONDS:
            host.window = self._slots
        elif is_delivered:
            host.window = min(host.window + 1, WINDOW)
        if host.breaker.failures:
            self._give_back(host)
        tries, status = row.attempt + 1, outcome.status
        error = None if is_delivered else outcome.reason.replace("\0", "\ufffd")
        if (retry := next_try(tries, outcome, now, self._random)) is not None:
            due = millis(send_at(retry, None, item.quiet_hours))
            self._add(queries.outcome_row(row, "waiting", tries, due, None, status, error))
            return
        state = "delivered" if is_delivered else "failed"
        self._add(queries.outcome_row(row, state, tries, at, at, status, error))
        if isinstance(item.message, HubRequest):
            decision = outcome.decision
            self._add(partial(finish, call=item.message, row=row, decision=decision, now=at))
        elif outcome.decision is RetryDecision.GONE:
            self._add(
                partial(queries.disable, number=number, sink=sink, reason=error or "", now=at)
            )
        elif outcome.inbox is not None and outcome.inbox != sink.get("inbox"):
            self._add(partial(queries.set_inbox, number=number, sink=sink, inbox=outcome.inbox))

    def _set_breaker(self, host: _Host, breaker: CircuitBreaker) -> None:
        if breaker != host.breaker:
            host.breaker, now = breaker, millis(self.clock())
            self._add(partial(queries.set_breaker, host=host.name, breaker=breaker, now=now))

    def _not_sent(self, row: ClaimedDelivery, reason: str) -> queries.Result:
        now = millis(self.clock())
        return queries.outcome_row(row, "failed", row.attempt, now, now, None, reason)

    def _give_back(self, host: _Host) -> None:
        """Release the claims that are not being sent."""
        while host.queue:
            self._add(queries.release_row(host.queue.pop().delivery))
            self._ready.setdefault(host.name)
            self._done(host)

    def _done(self, host: _Host) -> None:
        host.claimed -= 1
        if not host.claimed:
            self._active.discard(host.name)
        has_room = host.name in self._ready and host.claimed <= (host.window + 1) // 2
        if has_room or (self._ready and not host.claimed):
            self._woken.set()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task of the dispatcher failed", exc_info=error)

    # -- writing ----------------------------------------------------------------------------

    def _add(self, result: queries.Result) -> None:
        self._results.append(result)
        self._has_results.set()

    async def _write(self) -> None:
        """Write results back, many at once, until everything has stopped."""
        supervisor, write = self.broker.supervisor, self.broker.store.write
        while not (self._ending.is_set() and not self._tasks and not self._results):
            await self._has_results.wait()
            if not self._ending.is_set():
                await asyncio.sleep(_GATHER_SECONDS)
            self._has_results.clear()
            results, self._results = self._results, []
            while results:
                with supervisor.round("outcomes") as attempt:
                    with supervisor.record("outcomes", "a batch", attempts=0) as batch:
                        await write(partial(queries.write_back, results=results))
                    if batch.error is not None:
                        await write(partial(self._write_each, results=results))
                if attempt.error is None:
                    break
                if self._ending.is_set():
                    return  # The deliveries are sent again, under the same ids.
                await asyncio.sleep(attempt.delay)
            if any(not isinstance(result, dict) for result in results):
                self.broker.on_commit()
                self._wake()

    def _write_each(self, db: Connection, results: Sequence[queries.Result]) -> None:
        """Write results one by one, and the error instead of one that cannot be written."""

        def write(batch: Sequence[queries.Result]) -> None:
            with db.begin_nested():
                queries.write_back(db, batch)

        for result, error in self.broker.supervisor.each("outcomes", results, write, str):
            if isinstance(result, dict) and "new_error" in result:
                write([{**result, "new_error": error}])
