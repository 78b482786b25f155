"""The dispatcher of the outbox: it sends waiting deliveries until they are accepted or given up.

A delivery is claimed for a while and sent, and its result is written back, many in one commit. If
the broker is killed in between, the delivery is sent again: at least once, each time under the same
``webhook-id``. Claims of a process that ended come back when they expire, or at the next start of
a broker with SQLite, which has one process.

One dead host does not delay the others. Hosts take turns. Each has two requests at a time, and
claims of at most `WINDOW` deliveries, which grow with its successes. A host that fails has one
claim, and a host whose breaker is open has none. All failing hosts share half of the room.

An answer 410 pauses the subscription. Reasons are sent if the sink has ``include_reasons``, and in
email by default: each match is then matched again.

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
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy import select, update

from graphmatch.broker.app.errors import NotFoundError
from graphmatch.broker.db.delivery_queries import (
    CLAIM_DURATION,
    AttemptResults,
    claim,
    disable,
    due_hosts,
    move_delivery,
    note_failure,
    outcome_row,
    set_inbox,
    write_back,
)
from graphmatch.broker.db.tables import WAITING, circuit_breakers, deliveries, publications
from graphmatch.broker.models.attempt import AttemptResult, RetryDecision
from graphmatch.broker.models.circuit_breaker import CircuitBreaker, CircuitState
from graphmatch.broker.models.claimed_delivery import ClaimedDelivery
from graphmatch.broker.models.subscription_settings import PUSHED, send_at
from graphmatch.broker.models.times import millis, time_of
from graphmatch.broker.outbox.payloads import Contents, Reasons, contents, message, reasons
from graphmatch.broker.outbox.retry_policy import next_try
from graphmatch.broker.outbox.senders import HubRequest, Message
from graphmatch.broker.outbox.websub_hub import KINDS, finish, hub_request
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import host_of
from semantic.clock import Clock
from semantic.errors import Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import Connection, Select

WINDOW = 100
"""Maximum number of claimed deliveries per host."""
MAX_REQUESTS = 1000
"""Maximum number of concurrent requests."""
REASONS_SECONDS = 2.0
"""Time limit of the search for reasons for one batch, in seconds."""
_MARGIN = timedelta(seconds=45)
"""Least time between the start of a request and the end of its claim; requests are shorter."""
_SLOW_SECONDS = 1.0
_POLL_SECONDS = 1.0
_GATHER_SECONDS = 0.005
"""Time that a result waits for others, to be written with them."""
_KNOWN_HOSTS = 10_000

log = logging.getLogger("graphmatch.broker")


def _one(db: Connection, chosen: Select[tuple[str, bytes]]) -> tuple[str, bytes]:
    row = db.execute(chosen).one()
    return row[0], row[1]


class Senders(Protocol):
    """Senders for all kinds of sinks."""

    async def send(self, sink: Mapping[str, Any], message: Message | HubRequest) -> AttemptResult:
        """Send a message once."""


@dataclass(frozen=True, slots=True)
class _Item:
    """A message to send."""

    delivery: ClaimedDelivery
    message: Message | HubRequest
    sink: Mapping[str, Any]
    quiet: Mapping[str, Any] | None


@dataclass(slots=True)
class _Host:
    """A host with its claimed deliveries, of which ``busy`` are being sent."""

    name: str
    breaker: CircuitBreaker
    window: int
    claimed: int = 0
    busy: int = 0
    queue: deque[_Item] = field(default_factory=deque)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Messages, reasons for none, hosts of new sinks, and rows that need reasons, by delivery."""

    items: dict[int, _Item] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    moved: dict[int, str] = field(default_factory=dict)
    later: dict[int, ClaimedDelivery] = field(default_factory=dict)


class Dispatcher:
    """Sends the deliveries of a broker's outbox, in the event loop of `run`.

    Parameters
    ----------
    broker
        Broker with the store, the limits, and the engine for reasons.
    senders
        Senders, such as `graphmatch.broker.outbox.senders.NetworkSenders`.
    clock
        The time; by default, the broker's.
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
        senders: Senders,
        clock: Clock | None = None,
        random: Random | None = None,
        *,
        base: str = "http://127.0.0.1:8000",
    ) -> None:
        self.broker, self.senders, self.base = broker, senders, base.rstrip("/")
        self.clock = clock or broker.clock
        self.sent = 0
        """Number of requests."""
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
        self._written = AttemptResults()
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
        for host in self._hosts.values():
            self._give_back(host)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for host in self._hosts.values():
            self._give_back(host)
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
                what, remedy = "there is no such delivery, or it was taken", "Check its state."
                raise NotFoundError(Problem(what, Place(str(delivery)), remedy))

        await self.broker.store.write(work)
        self._wake()

    # -- claiming ---------------------------------------------------------------------------

    async def _round(self) -> float:
        """Claim due deliveries; return the number of seconds until the next round."""
        if not self._is_begun:
            await self._begin()
        now = self.clock()
        if time.monotonic() >= self._look_at:
            await self._look(now)
        wanted = self._wanted(now)
        if not wanted:
            return max(0.0, self._look_at - time.monotonic())
        until = millis(now + CLAIM_DURATION)
        claiming = partial(claim, wanted=wanted, now=millis(now), until=until)
        rows = await self.broker.store.write(claiming)
        counts = Counter(row.host for row in rows)
        for name, limit in wanted.items():
            if counts[name] < limit:
                self._ready.pop(name, None)
            if counts[name]:
                self._active.add(name)
            self._hosts[name].claimed += counts[name]
        if rows:
            self._start(self._prepare(rows))
        return 0.0

    async def _begin(self) -> None:
        """Read the breakers, and take back the claims of the process before."""
        await self._read_breakers()
        if self.broker.store.is_sqlite:  # 0 and not null: a digest that was claimed is closed.
            claimed = WAITING & (deliveries.c.claimed_until > 0)
            taken = update(deliveries).where(claimed).values(claimed_until=0)
            await self.broker.store.write(lambda db: db.execute(taken))
        self._is_begun = True

    async def _read_breakers(self) -> None:
        """Read the breakers that other processes have written."""
        chosen = select(circuit_breakers).where(circuit_breakers.c.failures > 0)
        for row in await self.broker.store.read(lambda db: db.execute(chosen).mappings().all()):
            until = row["open_until"]
            host, failures = self._host(row["host"]), row["failures"]
            if failures > host.breaker.failures:
                host.breaker = CircuitBreaker(failures, None if until is None else time_of(until))

    async def _look(self, now: datetime) -> None:
        """Find the hosts with due deliveries."""
        begin = self._looked_at = time.monotonic()
        self._look_at = begin + _POLL_SECONDS  # Others may call `_wake` meanwhile.
        names = await self.broker.store.read(partial(due_hosts, now=millis(now)))
        if not self.broker.store.is_sqlite:
            await self._read_breakers()
        self._look_seconds = time.monotonic() - begin
        self._look_at += 20 * self._look_seconds
        self._ready |= dict.fromkeys(names)
        if len(self._hosts) > _KNOWN_HOSTS:
            hosts = self._hosts.items()
            self._hosts = {n: host for n, host in hosts if host.claimed or host.breaker.failures}

    def _host(self, name: str) -> _Host:
        if name not in self._hosts:
            self._hosts[name] = _Host(name, CircuitBreaker(), self._slots)
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
            if host.breaker.state(now) is CircuitState.OPEN:
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

    # -- preparing --------------------------------------------------------------------------

    async def _prepare(self, rows: Sequence[ClaimedDelivery], *, explain: bool = False) -> None:
        """Make the messages of claimed deliveries in a thread, and queue them.

        Messages with reasons are made after the others, in a thread of their own.
        """
        assert self._loop is not None
        made, executor = _Prepared(), self._explainer if explain else None
        try:
            with self.broker.supervisor.round("messages"):
                work = partial(self._made, rows, explain=explain)
                made = await self._loop.run_in_executor(executor, work)
        finally:
            for row in rows:
                host = self._hosts[row.host]
                if row.id in made.items:
                    host.queue.append(made.items[row.id])
                elif row.id not in made.later:
                    if row.id in made.moved:
                        moved = partial(move_delivery, id=row.id, host=made.moved[row.id])
                        self._written.changes.append(moved)
                    elif row.id in made.failed:
                        self._not_sent(row, made.failed[row.id])
                    else:  # The store has failed, or the dispatcher is stopping.
                        self._release(row)
                    self._done(host)
            self._has_results.set()
        if made.later:
            self._start(self._prepare(list(made.later.values()), explain=True))
        for name in dict.fromkeys(row.host for row in rows):
            self._pump(self._hosts[name])

    def _made(self, rows: Sequence[ClaimedDelivery], *, explain: bool) -> _Prepared:
        """Return the messages of deliveries; runs in a thread."""
        made, read = _Prepared(), self.broker.store.read_now

        def work(batch: Sequence[ClaimedDelivery]) -> None:
            known = read(partial(contents, batch=batch))
            why = self._reasons(batch, known) if explain else {}
            for row in batch:
                self._make(made, row, known, why, explain=explain)

        name = "delivery {0.id}".format
        for row, error in self.broker.supervisor.each("messages", rows, work, name):
            made.failed[row.id] = error
        return made

    def _make(
        self,
        made: _Prepared,
        row: ClaimedDelivery,
        known: Contents,
        why: Reasons,
        *,
        explain: bool,
    ) -> None:
        """Make one message, or note the reason that there is none."""
        subscription, limit = (
            known.subscriptions[row.subscription],
            self.broker.limits.payload_bytes,
        )
        sink = subscription["sink"]
        if row.kind in KINDS:
            now = millis(self.clock())
            call = self.broker.store.read_now(partial(hub_request, row=row, limit=limit, now=now))
            if call is None:
                made.failed[row.id] = "the WebSub subscription has ended"
            else:
                made.items[row.id] = _Item(row, call, sink, None)
        elif subscription["reason"] == "unsubscribed":
            made.failed[row.id] = "the subscription was ended"
        elif (subscription["state"] == "unconfirmed") != (row.kind == "confirmation"):
            made.failed[row.id] = "not sent: the state of the confirmation has changed"
        elif sink["kind"] not in PUSHED:
            made.failed[row.id] = "matches of this subscription are fetched now"
        elif host_of(sink) != row.host:
            made.moved[row.id] = host_of(sink)
        elif not explain and sink.get("include_reasons", sink["kind"] == "email"):
            made.later[row.id] = row
        elif (sent := message(row, known, why, self.base, limit)) is None:
            made.failed[row.id] = "its matches were deleted"
        else:
            made.items[row.id] = _Item(row, sent, sink, subscription["quiet_hours"])

    def _reasons(self, batch: Sequence[ClaimedDelivery], known: Contents) -> Reasons:
        """Return the reasons of the matches of a batch that are found in time."""
        wanted: dict[int, set[int]] = {}
        for row in batch:
            generation = known.subscriptions[row.subscription]["generation"]
            for match in known.matches.get(row.id, ()):
                if match["generation"] == generation:
                    wanted.setdefault(match["publication"], set()).add(row.subscription)
        proofs: dict[tuple[int, int], list[dict[str, Any]]] = {}
        until = time.monotonic() + REASONS_SECONDS
        for seq, numbers in wanted.items():
            if time.monotonic() > until:
                log.warning("reasons are left out: they took more than %g s", REASONS_SECONDS)
                break
            with self.broker.supervisor.record("reasons", f"publication {seq}"):
                chosen = select(publications.c.id, publications.c.data)
                mine = chosen.where(publications.c.seq == seq)
                id, data = self.broker.store.read_now(partial(_one, chosen=mine))
                for number, proof in reasons(self.broker.engine, id, data, numbers).items():
                    proofs[seq, number] = proof
        return proofs

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
                        self._release(item.delivery)  # Another process may claim it soon.
                    else:
                        await self._send(host, item)
                finally:
                    self._done(host)
                    self._has_results.set()
        finally:
            host.busy -= 1
            self._pump(host)

    async def _send(self, host: _Host, item: _Item) -> None:
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

    def _settle(self, host: _Host, item: _Item, outcome: AttemptResult | None) -> None:
        """Note the result of an attempt; ``None`` if it was cancelled, and may have arrived."""
        row, now, written = item.delivery, self.clock(), self._written
        at = millis(now)
        if outcome is None:
            tries = max(row.attempt, 1)
            written.outcomes.append(outcome_row(row, "waiting", tries, at, None, None, None))
            return
        is_delivered = outcome.verdict is RetryDecision.DELIVERED
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
            due = millis(send_at(retry, None, item.quiet))
            written.outcomes.append(outcome_row(row, "waiting", tries, due, None, status, error))
            return
        state = "delivered" if is_delivered else "failed"
        written.outcomes.append(outcome_row(row, state, tries, at, at, status, error))
        number, sink, change = row.subscription, item.sink, written.changes.append
        if error is not None:
            change(partial(note_failure, row=row, reason=error, now=at))
        if isinstance(item.message, HubRequest):
            change(partial(finish, call=item.message, row=row, verdict=outcome.verdict, now=at))
        elif outcome.verdict is RetryDecision.GONE:
            change(partial(disable, number=number, sink=sink, reason=error or "", now=at))
        elif outcome.inbox is not None and outcome.inbox != sink.get("inbox"):
            change(partial(set_inbox, number=number, sink=sink, inbox=outcome.inbox))

    def _set_breaker(self, host: _Host, breaker: CircuitBreaker) -> None:
        if breaker != host.breaker:
            host.breaker = self._written.breakers[host.name] = breaker
            self._has_results.set()

    def _not_sent(self, row: ClaimedDelivery, reason: str) -> None:
        now = millis(self.clock())
        values = ("failed", row.attempt, now, now, None, reason)
        self._written.outcomes.append(outcome_row(row, *values))

    def _release(self, row: ClaimedDelivery) -> None:
        self._written.released.append({"delivery": row.id, "until": row.claimed_until})

    def _give_back(self, host: _Host) -> None:
        """Release the claims that are not being sent."""
        while host.queue:
            self._release(host.queue.pop().delivery)
            self._ready.setdefault(host.name)
            self._done(host)
        self._has_results.set()

    def _done(self, host: _Host) -> None:
        host.claimed -= 1
        if not host.claimed:
            self._active.discard(host.name)
        if host.name in self._ready:
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

    async def _write(self) -> None:
        """Write results back, many at once, until everything has stopped."""
        while True:
            await self._has_results.wait()
            if not self._ending.is_set():
                await asyncio.sleep(_GATHER_SECONDS)
            self._has_results.clear()
            written, self._written = self._written, AttemptResults()
            while written:
                with self.broker.supervisor.round("outcomes") as attempt:
                    await self.broker.store.write(partial(self._write_back, written=written))
                if attempt.error is None:
                    break
                if self._ending.is_set():
                    return  # The deliveries are sent again, under the same ids.
                await asyncio.sleep(attempt.delay)
            if written.changes:
                self.broker.on_commit()
                self._wake()
            if self._ending.is_set() and not self._tasks and not self._written:
                return

    def _write_back(self, db: Connection, written: AttemptResults) -> None:
        """Write results together, or one by one if that fails."""

        def write(parts: Sequence[AttemptResults]) -> None:
            for part in parts:
                with db.begin_nested():
                    write_back(db, part, millis(self.clock()))

        supervisor = self.broker.supervisor
        with supervisor.record("outcomes", "a batch", counts=False) as attempt:
            write([written])
        if attempt.error is not None:
            for part, error in supervisor.each("outcomes", written.parts(), write, str):
                write([AttemptResults([{**row, "new_error": error} for row in part.outcomes])])
