"""The dispatcher of the outbox: sends what waits, each delivery until it is taken or given up.

A delivery is claimed for a while, sent, and its outcome is written back, many in one commit. Killed
between sending and writing, the broker sends it again: at least once, each time under the same
``webhook-id``. What was claimed by a process that is gone comes back when its claim lapses; with
SQLite, which one process has, at the next start.

One dead host does not hold up others. Hosts take turns; each has two requests at once, and as many
more deliveries claimed as it lately took in a second, at most `WINDOW`. Of a host that fails one
delivery is claimed at a time, of one whose breaker is open none, and all that fail have half of
the room together. What has been due for `GIVEN_UP` at a host that does not answer has failed.

Statements are those of `graphmatch.broker.db.delivery_queries`, retries and breakers of
`graphmatch.broker.outbox.retry_policy`, and what is sent of `graphmatch.broker.outbox.payloads`. An answer 410
pauses the subscription. Reasons are sent where the sink has ``why``, in email also where it does
not say: each costs a match more, and the search for evidence.

Cost: finding hosts that something is due for takes a few microseconds for each that something waits
for, each second and after each commit of matches; a delivery some 1 ms of one core.

Limits: a host is that of the sink; inboxes that several targets name on another host are not
counted together. Times are the clock's: one that is put back delays what was due by as much, and
loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
    due_hosts,
    outcome_row,
    write_back,
)
from graphmatch.broker.db.tables import (
    WAITING,
    circuit_breakers,
    deliveries,
    publications,
)
from graphmatch.broker.models.attempt import AttemptResult, RetryDecision
from graphmatch.broker.models.circuit_breaker import CircuitBreaker, CircuitState
from graphmatch.broker.models.claimed_delivery import ClaimedDelivery
from graphmatch.broker.models.subscription_settings import PUSHED, send_at
from graphmatch.broker.models.times import millis, time_of
from graphmatch.broker.outbox.payloads import Contents, Reasons, contents, message, reasons
from graphmatch.broker.outbox.retry_policy import RETRY_SCHEDULE, next_try
from graphmatch.broker.outbox.safe_http import HttpClient, TransportError
from graphmatch.broker.outbox.senders import (
    EmailSender,
    InboxSender,
    Message,
    NtfySender,
    Sender,
    SmtpServer,
    WebhookSender,
)
from graphmatch.broker.service import retention
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import host_of
from semantic.clock import Clock, utc_now
from semantic.errors import GraphMatchError, Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import Connection


WINDOW = 100
"""So many deliveries to one host are claimed, at most."""
MAX_REQUESTS = 1000
"""So many requests run at once, at most."""
GIVEN_UP = sum(RETRY_SCHEDULE, timedelta())
"""So long a delivery waits for a host that is spared."""
WHY_SECONDS = 2.0
"""So long reasons are looked for, for the deliveries of one round."""
_MARGIN = timedelta(seconds=45)
"""A request that begins so long before a claim ends is over before that."""
_SLOW_SECONDS = 1.0
_POLL_SECONDS = 1.0
_SWEEP_SECONDS = 10.0
_FORGET_SECONDS = 3600.0
_KNOWN_HOSTS = 10_000
_CLOSED = CircuitBreaker()
_GATHER_SECONDS = 0.005
"""So long outcomes wait for others, to be written with them."""

log = logging.getLogger("graphmatch.broker")


class Senders(Protocol):
    """Ways to subscribers."""

    def of(self, sink: Mapping[str, Any], found: Callable[[str], None]) -> Sender:
        """Return the way to a sink; ``found`` is told the inbox of a target."""


@dataclass(frozen=True, slots=True)
class NetworkSenders:
    """The ways to subscribers over the network.

    Parameters
    ----------
    client
        For webhooks, inboxes and ntfy.
    smtp
        For email.
    clock
        When it is, for signatures.
    """

    client: HttpClient
    smtp: SmtpServer | None = None
    clock: Clock = utc_now

    def of(self, sink: Mapping[str, Any], found: Callable[[str], None]) -> Sender:
        """Return the way to a sink.

        Raises
        ------
        TransportError
            When there is none.
        """
        kind = sink["kind"]
        if kind == "webhook":
            return WebhookSender(self.client, sink["url"], [sink["secret"]], self.clock)
        if kind == "ntfy":
            return NtfySender(self.client, sink["url"], sink.get("token"), clock=self.clock)
        if kind == "inbox":
            return InboxSender(self.client, sink["url"], sink.get("inbox"), found, self.clock)
        if self.smtp is None:
            what, remedy = "the broker has no SMTP server", "Configure one, or use another sink."
            raise TransportError(Problem(what, Place("sink"), remedy))
        return EmailSender(self.smtp, sink["address"])


@dataclass(frozen=True, slots=True)
class _Item:
    delivery: ClaimedDelivery
    message: Message
    sink: Mapping[str, Any]
    quiet: Mapping[str, Any] | None


@dataclass(slots=True)
class _Host:
    name: str
    breaker: CircuitBreaker
    window: int
    claimed: int = 0
    busy: int = 0
    queue: deque[_Item] = field(default_factory=deque)


class Dispatcher:
    """Sends the deliveries of a broker's outbox, in the loop that `run` is awaited in.

    Parameters
    ----------
    broker
        Has the store, the engine, for reasons, and the limits.
    senders
        Ways to subscribers, such as `NetworkSenders`.
    clock
        The time; the broker's, where none is given.
    random
        Makes retries a little longer or shorter.
    base
        The broker's own URL, for links.

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
        """How many requests were made."""
        self.on_attempt: Callable[[AttemptResult], object] = lambda _: None
        """Called with the result of each attempt, for metrics."""
        self._random = random or Random()  # noqa: S311 -- no secret depends on it
        self._slots = broker.limits.host_requests
        self._hosts: dict[str, _Host] = {}
        self._ready: dict[str, None] = {}
        """Hosts that something may be due for, in the order of their turns."""
        self._breakers: dict[str, CircuitBreaker] = {}
        """Those of hosts that failed."""
        self._active = 0
        self._begun = False
        self._next: int | None = None
        self._news = True
        self._look_at = self._look_not_before = 0.0
        self._written = AttemptResults()
        self._tasks: set[asyncio.Task[None]] = set()
        self._explaining: asyncio.Future[Reasons] | None = None
        self._explainer = ThreadPoolExecutor(1, "explainer")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken, self._some = asyncio.Event(), asyncio.Event()
        self._ending, self._stopped = asyncio.Event(), asyncio.Event()

    # -- the loop ---------------------------------------------------------------------------

    async def run(self) -> None:
        """Send what is due, until `stop`."""
        self._loop = asyncio.get_running_loop()
        writing = asyncio.create_task(self._write())
        repeat = self.broker.supervisor.repeat
        sweeping = [
            asyncio.create_task(repeat("expiry", self._expire, self._ending)),
            asyncio.create_task(repeat("retention", self._forget, self._ending)),
        ]
        try:
            await repeat("deliveries", self._round, self._ending, self._woken)
            await self._stopped.wait()
        finally:
            for task in (*sweeping, *self._tasks):
                task.cancel()
            self._ending.set()
            self._some.set()
            await asyncio.gather(*sweeping, writing, return_exceptions=True)
            self._explainer.shutdown(wait=False)

    async def stop(self, seconds: float = 5.0) -> None:
        """Claim nothing more, let requests end for a while, and give back what is not sent."""
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
        """Say that there may be something to send; any thread may call it."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it is closed
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._news = True
        self._woken.set()

    async def retry(self, delivery: int) -> None:
        """Have a delivery that waits or has failed sent now; its attempts are counted on.

        Raises
        ------
        NotThereError
            When there is none, or it was taken.
        """
        now = millis(self.clock())
        again = update(deliveries).where(
            deliveries.c.id == delivery, deliveries.c.state != "delivered"
        )
        values = {"state": "waiting", "due_at": now, "done_at": None}

        def work(db: Connection) -> None:
            if not db.execute(again.values(**values)).rowcount:
                what, remedy = "there is no such delivery, or it was taken", "Check its state."
                raise NotFoundError(Problem(what, Place(str(delivery)), remedy))

        await self.broker.store.write(work)
        self._wake()

    async def sweep(self, *, forget: bool = False) -> None:
        """Announce and end subscriptions whose time has come; delete what is old.

        Parameters
        ----------
        forget
            Whether to look for what is older than it is kept.
        """
        await self._expire()
        if forget:
            await self._forget()

    async def _expire(self) -> float:
        now, broker = self.clock(), self.broker
        if await retention.expire(broker, now):
            broker.on_commit()
        await retention.give_up(broker, now)
        self._wake()
        return _SWEEP_SECONDS

    async def _forget(self) -> float:
        await retention.forget(self.broker, self.clock())
        return _FORGET_SECONDS

    async def _begin(self) -> None:
        """Know the breakers; take back what a process before had claimed."""
        store = self.broker.store
        await self._read_breakers()
        if store.is_sqlite:  # it alone has the file; 0, as a digest that was claimed is closed
            claimed = WAITING & (deliveries.c.claimed_until > 0)
            await store.write(
                lambda db: db.execute(update(deliveries).where(claimed).values(claimed_until=0))
            )

    async def _read_breakers(self) -> None:
        chosen = select(circuit_breakers).where(circuit_breakers.c.failures > 0)
        for row in await self.broker.store.read(lambda db: db.execute(chosen).mappings().all()):
            until = row["open_until"]
            found = CircuitBreaker(row["failures"], None if until is None else time_of(until))
            mine = self._breakers.get(row["host"], CircuitBreaker())
            if found.failures > mine.failures:
                self._breakers[row["host"]] = found
                if row["host"] in self._hosts:
                    self._hosts[row["host"]].breaker = found

    # -- claiming ---------------------------------------------------------------------------

    async def _round(self) -> float:
        """Claim what is due; return for how many seconds there is nothing more to claim."""
        if not self._begun:
            await self._begin()
            self._begun = True
        now, begin = self.clock(), time.monotonic()
        if self._next is not None and self._next <= millis(now):
            self._news = True
        if begin >= self._look_at or (self._news and begin >= self._look_not_before):
            await self._look(now)
        wanted, wait = self._wanted(now)
        if wanted:
            until = millis(now + CLAIM_DURATION)
            rows = await self.broker.store.write(
                partial(claim, wanted=wanted, now=millis(now), until=until)
            )
            got = Counter(row.host for row in rows)
            for name, count in wanted.items():
                self._granted(name, count, got[name])
            if rows:
                self._start(self._prepare(rows))
            return 0.0
        if self._news:
            wait = min(wait, self._look_not_before - time.monotonic())
        elif self._next is not None:
            wait = min(wait, (self._next - millis(now)) / 1000)
        return max(0.0, min(wait, self._look_at - time.monotonic()))

    async def _look(self, now: datetime) -> None:
        """See which hosts something is due for."""
        self._news, begin = False, time.monotonic()
        rows = await self.broker.store.read(partial(due_hosts, now=millis(now)))
        if not self.broker.store.is_sqlite:
            await self._read_breakers()
        taken = time.monotonic() - begin
        self._look_at, self._look_not_before = begin + _POLL_SECONDS + 20 * taken, begin + 5 * taken
        later: list[int] = []
        for name, due in rows:
            breaker = self._breakers.get(name, _CLOSED)
            if due is not None and due > millis(now):
                later.append(due)
            elif breaker.state(now) is CircuitState.OPEN:
                assert breaker.open_until is not None
                later.append(millis(breaker.open_until) + 1)
            elif due is not None:
                self._ready.setdefault(name)
        self._next = min(later, default=None)
        if len(self._hosts) > _KNOWN_HOSTS:
            self._hosts = {name: host for name, host in self._hosts.items() if host.claimed}

    def _host(self, name: str) -> _Host:
        if name not in self._hosts:
            breaker = self._breakers.get(name, CircuitBreaker())
            self._hosts[name] = _Host(name, breaker, self._slots)
        return self._hosts[name]

    def _wanted(self, now: datetime) -> tuple[dict[str, int], float]:
        """Return how many deliveries to claim of which hosts, and when to look again."""
        wanted: dict[str, int] = {}
        wait = _POLL_SECONDS
        most = max(1, MAX_REQUESTS // self._slots)
        room, failing = most - self._active, most // 2
        failing -= sum(1 for host in self._hosts.values() if host.claimed and host.breaker.failures)
        crowded = len(self._ready) - self._active > room
        for name in list(islice(self._ready, 4 * most)):
            host = self._host(name)
            state = host.breaker.state(now)
            is_failing = host.breaker.failures > 0
            if state is CircuitState.OPEN:
                assert host.breaker.open_until is not None
                until = millis(host.breaker.open_until) + 1
                self._next = min(self._next or until, until)
                del self._ready[name]
                continue
            window = 1 if is_failing else host.window
            free = window - host.claimed
            if free <= 0 or (host.claimed and (crowded or free < window // 2)):
                continue
            if not host.claimed:
                if room <= 0 or (is_failing and failing <= 0):
                    continue
                room -= 1
                failing -= is_failing
            wanted[name] = free
            self._ready[name] = self._ready.pop(name)  # to the end of the line
        return wanted, wait

    def _granted(self, name: str, count: int, got: int) -> None:
        """Note how many of a host's deliveries were claimed, of so many that were wanted."""
        host = self._hosts[name]
        if got < count:
            self._ready.pop(name, None)
        if got and not host.claimed:
            self._active += 1
        host.claimed += got

    # -- preparing --------------------------------------------------------------------------

    async def _prepare(self, rows: Sequence[ClaimedDelivery]) -> None:
        """Make messages of deliveries, and send them; one that fails alone is set aside."""
        left, is_alone = {row.id: row for row in rows}, len(rows) == 1
        name = f"delivery {rows[0].id}" if is_alone else f"{len(rows)} deliveries"
        supervisor = self.broker.supervisor
        try:
            with supervisor.round("messages"):
                with supervisor.record("messages", name, counts=is_alone) as attempt:
                    known = await self.broker.store.read(partial(contents, several=rows))
                    why = await self._why(rows, known)
                    for row in rows:
                        item = self._item(row, known, why)
                        del left[row.id]
                        if item is None:
                            self._done(self._hosts[row.host])
                        else:
                            self._hosts[row.host].queue.append(item)
                for row in list(left.values()):
                    del left[row.id]
                    if is_alone:
                        self._not_sent(row, attempt.error or "")
                        self._done(self._hosts[row.host])
                    else:
                        await self._prepare([row])
        finally:
            for row in left.values():
                self._written.released.append((row.id, row.claimed_until))
                self._done(self._hosts[row.host])
            self._some.set()
        for name in dict.fromkeys(row.host for row in rows):
            self._pump(self._hosts[name])

    def _item(self, row: ClaimedDelivery, known: Contents, why: Reasons) -> _Item | None:
        """Return what to send; ``None`` where nothing is, which is then written."""
        subscription = known.subscriptions[row.subscription]
        sink = subscription["sink"]
        if subscription["reason"] == "unsubscribed":
            self._not_sent(row, "the subscription was ended")
            return None
        if sink["kind"] not in PUSHED:
            self._not_sent(row, "matches of this subscription are fetched now")
            return None
        if (host := host_of(sink)) != row.host:
            self._written.moved.append((row.id, host))
            return None
        said = message(row, known, why, self.base, self.broker.limits.payload_bytes)
        if said is None:
            self._not_sent(row, "its matches are no longer kept")
            return None
        return _Item(row, said, sink, subscription["quiet_hours"])

    def _not_sent(self, row: ClaimedDelivery, why: str) -> None:
        now = millis(self.clock())
        self._written.outcomes.append(outcome_row(row, "failed", row.attempt, now, now, None, why))

    async def _why(self, rows: Sequence[ClaimedDelivery], known: Contents) -> Reasons:
        """Return the reasons that sinks ask for, as far as they are found in time."""
        wanted: dict[int, set[int]] = {}
        for row in rows:
            subscription = known.subscriptions[row.subscription]
            sink = subscription["sink"]
            if not sink.get("include_reasons", sink["kind"] == "email"):
                continue
            for one in known.matches.get(row.id, ()):
                if one["generation"] == subscription["generation"]:
                    wanted.setdefault(one["publication"], set()).add(row.subscription)
        if not wanted or (self._explaining is not None and not self._explaining.done()):
            return {}
        assert self._loop is not None
        self._explaining = self._loop.run_in_executor(self._explainer, self._explained, wanted)
        try:
            return await asyncio.wait_for(asyncio.shield(self._explaining), 2 * WHY_SECONDS)
        except TimeoutError:
            log.warning("reasons are left out: they took more than %g seconds", 2 * WHY_SECONDS)
        except GraphMatchError as error:
            log.warning("reasons are left out: %s", error)
        return {}

    def _explained(self, wanted: Mapping[int, set[int]]) -> Reasons:
        until = time.monotonic() + WHY_SECONDS
        chosen = select(publications.c.seq, publications.c.id, publications.c.data)
        some = chosen.where(publications.c.seq.in_(list(wanted)))
        found: dict[tuple[int, int], list[dict[str, Any]]] = {}
        for seq, id, data in self.broker.store.read_now(lambda db: db.execute(some).all()):
            if time.monotonic() > until:
                break
            with self.broker.supervisor.record("reasons", f"publication {seq}"):
                for number, why in reasons(self.broker.engine, id, data, wanted[seq]).items():
                    found[seq, number] = why
        return found

    # -- sending ----------------------------------------------------------------------------

    def _pump(self, host: _Host) -> None:
        """Send what of a host is claimed, as far as it has room."""
        slots = 1 if host.breaker.failures else self._slots
        while host.queue and host.busy < slots and not self._ending.is_set():
            item = host.queue.popleft()
            if time_of(item.delivery.claimed_until) - self.clock() < _MARGIN:
                row = item.delivery  # another may claim it soon
                self._written.released.append((row.id, row.claimed_until))
                self._some.set()
                self._done(host)
                continue
            before = host.breaker
            host.breaker = before.probing(self.clock())
            if host.breaker is not before:
                self._note(host)
            host.busy += 1
            self.sent += 1
            self._start(self._send(host, item))
        if self._ending.is_set():
            self._give_back(host)

    async def _send(self, host: _Host, item: _Item) -> None:
        """Send one message, and note its outcome."""
        outcome: AttemptResult | None = None
        try:
            name = f"delivery {item.delivery.id}"
            with self.broker.supervisor.record("deliveries", name) as attempt:
                try:
                    sender = self.senders.of(item.sink, partial(self._found_inbox, item))
                    outcome = await sender.send(item.message)
                except GraphMatchError as error:
                    outcome = AttemptResult(RetryDecision.REFUSED, error.problem.what)
            if attempt.error is not None:
                outcome = AttemptResult(RetryDecision.RETRY, attempt.error)
        finally:
            host.busy -= 1
            self._settle(host, item, outcome)
            self._done(host)
            self._some.set()
            self._pump(host)

    def _settle(self, host: _Host, item: _Item, outcome: AttemptResult | None) -> None:
        """Note what became of an attempt; `None`: it was broken off, and may have arrived."""
        row, now, written = item.delivery, self.clock(), self._written
        if outcome is None:
            at, tries = millis(now), max(row.attempt, 1)
            written.outcomes.append(outcome_row(row, "waiting", tries, at, None, None, None))
            return
        self.on_attempt(outcome)
        before, tries = host.breaker, row.attempt + 1
        host.breaker = before.after(outcome, now)
        if host.breaker != before:
            self._note(host)
        if outcome.host_failed or outcome.seconds > _SLOW_SECONDS:
            host.window = self._slots
        elif outcome.verdict is RetryDecision.DELIVERED:
            host.window = min(host.window + 1, WINDOW)
        if host.breaker.failures:
            self._give_back(host)
        at, status, reason = millis(now), outcome.status, outcome.reason.replace("\0", "\ufffd")
        if outcome.verdict is RetryDecision.DELIVERED:
            written.outcomes.append(outcome_row(row, "delivered", tries, at, at, status, None))
            return
        due = next_try(tries, outcome, now, self._random)
        if due is not None:
            due = send_at(due, None, item.quiet)
            self._next = min(self._next or millis(due), millis(due))
            written.outcomes.append(
                outcome_row(row, "waiting", tries, millis(due), None, status, reason)
            )
            return
        written.outcomes.append(outcome_row(row, "failed", tries, at, at, status, reason))
        written.failed.append((row.id, row.subscription, reason))
        if outcome.verdict is RetryDecision.GONE:
            written.gone.append((row.subscription, item.sink, reason))

    def _note(self, host: _Host) -> None:
        self._breakers[host.name] = self._written.breakers[host.name] = host.breaker
        if not host.breaker.failures:
            del self._breakers[host.name]
        self._some.set()

    def _found_inbox(self, item: _Item, inbox: str) -> None:
        self._written.inboxes.append((item.delivery.subscription, item.sink, inbox))

    def _give_back(self, host: _Host) -> None:
        """Release what is claimed and not yet sent."""
        while host.queue:
            row = host.queue.pop().delivery
            self._written.released.append((row.id, row.claimed_until))
            self._ready.setdefault(host.name)
            self._done(host)
        self._some.set()

    def _done(self, host: _Host) -> None:
        host.claimed -= 1
        self._active -= not host.claimed
        if host.name in self._ready:
            self._woken.set()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a delivery failed inside", exc_info=error)

    # -- writing ----------------------------------------------------------------------------

    async def _write(self) -> None:
        """Write outcomes back, many at once, until everything has stopped."""
        while True:
            await self._some.wait()
            if not self._ending.is_set():
                await asyncio.sleep(_GATHER_SECONDS)
            self._some.clear()
            written, self._written = self._written, AttemptResults()
            while written:
                with self.broker.supervisor.round("outcomes") as attempt:
                    await self.broker.store.write(partial(self._write_back, written=written))
                if attempt.error is None:
                    break
                if self._ending.is_set():
                    return  # it is sent again, under the same id
                await asyncio.sleep(attempt.delay)
            if written.gone:
                self.broker.on_commit()
            if written.moved:
                self._wake()
            if self._ending.is_set() and not self._tasks and not self._written:
                return

    def _write_back(self, db: Connection, written: AttemptResults) -> None:
        """Write outcomes, and one by one if that fails."""

        def write(some: Sequence[AttemptResults]) -> None:
            for one in some:
                with db.begin_nested():
                    write_back(db, one, millis(self.clock()))

        supervisor = self.broker.supervisor
        with supervisor.record("outcomes", "a batch", counts=False) as attempt:
            write([written])
        if attempt.error is not None:
            parts = [AttemptResults([row]) for row in written.outcomes]
            parts.append(replace(written, outcomes=[]))
            for part, why in supervisor.each("outcomes", parts, write, str):
                write([AttemptResults([row | {"new_error": why} for row in part.outcomes])])
