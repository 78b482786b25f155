"""The dispatcher of the outbox: it sends waiting deliveries until they are accepted or given up.

A delivery is claimed for a while and sent, and its result is written back, many in one commit. If
the broker is killed in between, the delivery is sent again: at least once, each time under the same
``webhook-id``. Claims of a process that ended come back when they expire, or at the next start of
a broker with SQLite, which has one process.

One dead host does not delay the others. Each gets `BrokerLimits.host_requests` requests at a time,
and has at most `WINDOW` claimed deliveries, fewer if many hosts have due deliveries. A host that
fails has one, and a host whose breaker is open has none. If more than `MAX_HOSTS` hosts have due
deliveries, the dispatcher chooses at random. Failing hosts get at most half of the places.

A result wakes the dispatcher. A round writes results, and claims the next deliveries in the same
transaction. Messages are made in threads.

The answer of the receiver decides about a retry. The reason of a failure may be shown and stored,
so it has no secrets, no path of a URL, and only the start of an answer. Receivers recognize a
repeated message by its ``webhook-id``, or by the ``Message-ID`` of an email.

Cost: a few microseconds per host with waiting deliveries, each second and after each commit of
matches, and about 0.5 ms per delivery.

Limits: if an inbox is on another host than its target, the target's host counts. If the clock is
set back, deliveries are late by as much, and none are lost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from http.client import responses
from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from pyoxigraph import RdfFormat, parse
from sqlalchemy import select, update

from graphmatch.broker.db import delivery_queries as queries
from graphmatch.broker.db.delivery_queries import DeliveryState, Result
from graphmatch.broker.db.store import StoreError
from graphmatch.broker.db.tables import WAITING, circuit_breakers, deliveries
from graphmatch.broker.models.attempt import (
    LONGEST_RETRY_AFTER,
    AttemptResult,
    CircuitBreaker,
    ClaimedDelivery,
    RetryDecision,
    next_try,
)
from graphmatch.broker.models.subscription_settings import send_at
from graphmatch.broker.models.times import millis, time_of
from graphmatch.broker.models.webhook_secret import signed_headers
from graphmatch.broker.outbox.email_sender import LINK, SmtpServer, one_line, send_email
from graphmatch.broker.outbox.payloads import Composer, Item, Message
from graphmatch.broker.outbox.safe_http import HttpClient, Reply, UnreachableError, retry_after
from graphmatch.broker.outbox.websub_hub import HubRequest, finish, hub_request
from graphmatch.broker.outbox.websub_protocol import header_links
from graphmatch.broker.service.broker import Broker
from semantic.clock import Clock, utc_now
from semantic.errors import GraphMatchError

if TYPE_CHECKING:
    from sqlalchemy import Connection

WINDOW, MAX_CLAIMED = 100, 10_000
"""Maximum number of claimed deliveries of one host, and of all."""
MAX_HOSTS = 500
"""Maximum number of hosts with claimed deliveries."""
_INBOX = "http://www.w3.org/ns/ldp#inbox"
NTFY_BYTES = 4096
"""Maximum size of a text for ntfy, whose servers turn longer ones into files."""
_MARGIN = timedelta(seconds=45)
"""Least time between the start of an attempt and the end of its claim."""
ATTEMPT_SECONDS = 40.0
"""Time limit of an attempt with all its requests."""
_POLL_SECONDS = 1.0
_GATHER_SECONDS = 0.02
"""Time that a result waits for others, to be written with them."""


@dataclass(slots=True)
class _Host:
    """A host with its claimed deliveries, and the requests that it may get at a time."""

    name: str
    slots: asyncio.Semaphore
    breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    claimed: set[ClaimedDelivery] = field(default_factory=set)


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
        self.composer = Composer(broker, base.rstrip("/"), hub_request)
        self.on_attempt: Callable[[AttemptResult], object] = lambda _: None
        """Called with the result of each attempt."""
        self._random = random or Random()  # noqa: S311 -- no secret depends on it
        self._hosts: dict[str, _Host] = {}
        self._next_look = 0.0
        """Earliest time of the next round; 0 before the first one."""
        self._results: list[Result] = []
        """Results that are not written yet."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._explainer = ThreadPoolExecutor(1, "explainer")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken, self._ending, self._stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        """Send due deliveries until `stop`, and then release all claims."""
        self._loop = asyncio.get_running_loop()
        try:
            repeat = self.broker.supervisor.repeat
            await repeat("deliveries", self._round, self._ending, self._woken)
            await self._stopped.wait()
        finally:
            for task in self._tasks:
                task.cancel()
            self._explainer.shutdown(wait=False)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for host in self._hosts.values():
            for row in list(host.claimed):
                self._release(host, row)
        with self.broker.supervisor.round("deliveries"):  # If it fails, the claims expire.
            await self._exchange({}, self.clock())

    async def stop(self, seconds: float = 5.0) -> None:
        """Claim no more, and wait some seconds for open requests."""
        self._ending.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        self._stopped.set()

    def wake(self, _numbers: Sequence[int] = ()) -> None:
        """Look for due deliveries soon; any thread may call it."""
        if self._loop is not None:
            with suppress(RuntimeError):  # The loop is closed.
                self._loop.call_soon_threadsafe(self._woken.set)

    async def retry(self, delivery: int) -> None:
        """Make a delivery due now, unless it was delivered. Its number of attempts stays."""
        mine = update(deliveries).where(deliveries.c.id == delivery)
        values = {"state": "waiting", "due_at": millis(self.clock()), "done_at": None}
        again = mine.where(deliveries.c.state != "delivered").values(**values)
        await self.broker.store.write(lambda db: db.execute(again))
        self._woken.set()

    # -- rounds -----------------------------------------------------------------------------

    async def _round(self) -> float:
        """Write results, and claim due deliveries; return the seconds until the next round."""
        store, now, begin = self.broker.store, self.clock(), time.monotonic()
        if begin < self._next_look:
            return self._next_look - begin
        if not self._next_look:
            await store.write(self._begin)
        due = await store.read(partial(queries.due_hosts, now=millis(now)))
        self._next_look = begin + max(5 * (time.monotonic() - begin), _GATHER_SECONDS / 2)
        wanted = self._wanted(due, now)
        if wanted or self._results:
            rows = await self._exchange(wanted, now)
            for row in rows:
                self._hosts[row.host].claimed.add(row)
            if rows:
                self._start(self._prepare(rows))
        return _GATHER_SECONDS if self._results else _POLL_SECONDS

    def _begin(self, db: Connection) -> None:
        """Read the circuit breakers, and release the claims of a process that ended."""
        for row in db.execute(select(circuit_breakers).where(circuit_breakers.c.failures > 0)):
            until = None if row.open_until is None else time_of(row.open_until)
            host = self._hosts[row.host] = self._host(row.host)
            host.breaker = CircuitBreaker(row.failures, until)
        if self.broker.store.is_sqlite:
            # NULL would add new matches to a digest that may have been sent.
            claimed = update(deliveries).where(WAITING, deliveries.c.claimed_until > 0)
            db.execute(claimed.values(claimed_until=0))

    def _host(self, name: str) -> _Host:
        slots = self.broker.limits.host_requests
        return self._hosts.get(name) or _Host(name, asyncio.Semaphore(slots))

    def _wanted(self, due: Sequence[str], now: datetime) -> dict[str, int]:
        """Return the number of deliveries to claim, by host."""
        known = self._hosts.values()
        self._hosts = {host.name: host for host in known if host.claimed or host.breaker.failures}
        hosts = [host for host in map(self._host, due) if not host.breaker.is_open(now)]
        active = [host for host in known if host.claimed]
        room = MAX_HOSTS - len(active)
        failing = MAX_HOSTS // 2 - sum(host.breaker.failures > 0 for host in active)
        wanted: dict[str, int] = {}
        for host in self._random.sample(hosts, len(hosts)):
            is_failing = host.breaker.failures > 0
            window = 1 if is_failing else min(WINDOW, MAX_CLAIMED // min(len(hosts), MAX_HOSTS))
            if host.claimed:  # A host is refilled at half its window.
                if len(hosts) > MAX_HOSTS or len(host.claimed) > window // 2:
                    continue
            elif room <= 0 or (is_failing and failing <= 0):
                continue
            else:
                room -= 1
                failing -= is_failing
            wanted[host.name] = window - len(host.claimed)
            self._hosts[host.name] = host
        return wanted

    async def _exchange(self, wanted: Mapping[str, int], now: datetime) -> list[ClaimedDelivery]:
        """Write the results and claim deliveries in one transaction."""
        at, until, results = millis(now), millis(now + queries.CLAIM_DURATION), list(self._results)

        def work(db: Connection) -> list[ClaimedDelivery]:
            if results:
                self._write(db, results, at)
            return queries.claim(db, wanted, at, until)

        try:
            rows = await self.broker.store.write(work)
        except StoreError:  # The commit may have succeeded.
            self._results.append(partial(queries.release_claim, until=until))
            raise
        del self._results[: len(results)]
        if any(not isinstance(result, DeliveryState) for result in results):
            self.broker.on_commit()
        return rows

    def _write(self, db: Connection, results: Sequence[Result], now: int) -> None:
        """Write results; if one cannot be written, store that error as its text."""

        def write(batch: Sequence[Result]) -> None:
            with db.begin_nested():
                queries.write_back(db, batch, now)

        for result, error in self.broker.supervisor.each("results", results, write, str):
            if isinstance(result, DeliveryState):
                write([result._replace(error=error)])

    async def _prepare(self, rows: Sequence[ClaimedDelivery], *, explain: bool = False) -> None:
        """Make the messages of claimed deliveries in a thread, and queue them.

        Messages with reasons are made after the others, in a thread of their own.
        """
        made: dict[int, Item | Result] = {}
        with self.broker.supervisor.round("messages") as attempt:
            executor, work = self._explainer if explain else None, self.composer.compose
            made = await asyncio.get_running_loop().run_in_executor(executor, work, rows, explain)
        later: list[ClaimedDelivery] = []
        for row in rows:
            host, item = self._hosts[row.host], made.get(row.id)
            if isinstance(item, Item):
                self._start(self._send(host, item, host.breaker.failures))
            elif item is not None:
                self._settle(host, row, item)
            elif attempt.error is None:
                later.append(row)
            else:
                self._release(host, row)
        for row in later:
            self._start(self._prepare([row], explain=True))

    # -- sending ----------------------------------------------------------------------------

    async def _send(self, host: _Host, item: Item, failures: int) -> None:
        """Send a message when the host has a free slot, unless it has failed meanwhile."""
        row = item.delivery
        async with host.slots:
            rest = time_of(row.claimed_until) - self.clock()
            if rest < _MARGIN or host.breaker.failures > failures or self._ending.is_set():
                self._release(host, row)
                return
            result: AttemptResult | None = None
            try:
                with self.broker.supervisor.record("deliveries", f"delivery {row.id}") as attempt:
                    result = await self.senders.send(item.sink, item.message)
                if attempt.error is not None:
                    result = AttemptResult(RetryDecision.RETRY, attempt.error)
            finally:
                self._decide(host, item, result)

    def _decide(self, host: _Host, item: Item, result: AttemptResult | None) -> None:
        """Note the result of an attempt; ``None`` if it was cancelled, and may have arrived."""
        row, now, url = item.delivery, self.clock(), item.sink.get("url", "")
        at, tries = millis(now), row.attempt + 1
        if result is None:
            self._settle(host, row, DeliveryState(row.id, "waiting", max(row.attempt, 1), at))
            return
        self.on_attempt(result)
        is_delivered, decision = result.decision is RetryDecision.DELIVERED, result.decision
        state, due = "delivered" if is_delivered else "failed", None
        if (retry := next_try(tries, result, now, self._random)) is not None:
            state, due = "waiting", millis(retry)
            name = f"the next attempt of delivery {row.id}"
            with self.broker.supervisor.record("deliveries", name, attempts=1):
                due = millis(send_at(retry, None, item.quiet_hours))
        error = None if is_delivered else result.reason.replace("\0", "\ufffd")
        self._settle(host, row, DeliveryState(row.id, state, tries, due, result.status, error))
        breaker = host.breaker.after(result, now)
        if breaker != host.breaker:
            host.breaker = breaker
            self._add(partial(queries.set_breaker, host=host.name, breaker=breaker, now=at))
        if isinstance(item.message, HubRequest) and due is None:
            self._add(partial(finish, call=item.message, row=row, decision=decision, now=at))
        elif decision is RetryDecision.GONE:
            self._add(partial(queries.disable, row=row, url=url, reason=result.reason, now=at))

    def _release(self, host: _Host, row: ClaimedDelivery) -> None:
        """Release the claim of a delivery that is not being sent."""
        self._settle(host, row, partial(queries.release, row=row))

    def _settle(self, host: _Host, row: ClaimedDelivery, result: Result) -> None:
        """Note the result of a claimed delivery."""
        host.claimed.discard(row)
        self._add(result)

    def _add(self, result: Result) -> None:
        if not self._results:
            asyncio.get_running_loop().call_later(_GATHER_SECONDS, self._woken.set)
        self._results.append(result)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


# -- senders ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NetworkSenders:
    """The senders of all kinds of sinks: each sends one message once.

    Webhooks follow Standard Webhooks 1.0: the body is signed, 2xx is success, 410 pauses the
    subscription, and redirects are failures.

    Parameters
    ----------
    client
        Client for webhooks, inboxes, ntfy and callbacks.
    smtp
        Server for email; ``None`` if there is none.
    clock
        Time for signatures and for dates in ``Retry-After``.
    """

    client: HttpClient
    smtp: SmtpServer | None = None
    clock: Clock = utc_now

    async def send(self, sink: Mapping[str, Any], message: Message | HubRequest) -> AttemptResult:
        """Send a message once; an error of the receiver or of the sink is a result."""
        begin = time.monotonic()
        try:
            async with asyncio.timeout(ATTEMPT_SECONDS):
                result = await self._send(sink, message)
        except TimeoutError:
            reason = f"there was no whole answer within {ATTEMPT_SECONDS:g} seconds"
            result = AttemptResult(RetryDecision.RETRY, reason, host_failed=True)
        except UnreachableError as error:
            result = AttemptResult(RetryDecision.RETRY, error.problem.what, host_failed=True)
        except GraphMatchError as error:
            result = AttemptResult(RetryDecision.REFUSED, error.problem.what)
        result.seconds = time.monotonic() - begin
        return result

    async def _send(self, sink: Mapping[str, Any], message: Message | HubRequest) -> AttemptResult:
        kind, url, body, secret = sink["kind"], sink.get("url", ""), message.body, ""
        if isinstance(message, HubRequest):
            url, headers = message.url, message.headers
        elif kind == "webhook":
            secret = sink["secret"]
            headers = signed_headers(secret, message.id, self.clock(), body)
            headers["Content-Type"] = message.content_type
        elif kind == "inbox":
            url = await inbox_of(self.client, url)
            headers = {"Content-Type": "application/ld+json", "webhook-id": message.id}
        elif kind == "ntfy":
            secret = sink.get("token") or ""
            start = message.text.encode("utf-8", "replace")[:NTFY_BYTES]
            body = start.decode("utf-8", "ignore").encode()
            headers = {"Title": one_line(message.title), "Content-Type": "text/plain"}
            if LINK.fullmatch(message.link):
                headers["Click"] = message.link
            if secret:
                headers["Authorization"] = f"Bearer {one_line(secret)}"
        elif self.smtp is None:
            return AttemptResult(RetryDecision.REFUSED, "the broker has no SMTP server")
        else:
            return await asyncio.to_thread(send_email, self.smtp, sink["address"], message)
        reply = await self.client.request("POST", url, body=body, headers=headers, whole=False)
        return result_of(reply, self.clock(), secret)


def result_of(reply: Reply, now: datetime, secret: str = "") -> AttemptResult:
    """Return the result that an answer means.

    Parameters
    ----------
    secret
        Text to remove from the answer before it becomes part of the reason.
    """
    status = reply.status
    reason = f"{status} {responses.get(status, '')}".rstrip()
    if 200 <= status < 300:
        return AttemptResult(RetryDecision.DELIVERED, reason, status)
    if 300 <= status < 400:
        reason += ": redirects are not followed"
    elif text := one_line(reply.body, secret):
        reason += f": {text}"
    if status == HTTPStatus.GONE:
        return AttemptResult(RetryDecision.GONE, reason, status)
    failed = status >= 500 or status == HTTPStatus.TOO_MANY_REQUESTS
    asked = reply.headers.get("Retry-After") if failed else None
    after = retry_after(asked, now, LONGEST_RETRY_AFTER)
    return AttemptResult(RetryDecision.RETRY, reason, status, retry_after=after, host_failed=failed)


async def inbox_of(client: HttpClient, target: str) -> str:
    """Return the inbox that a target names in its ``Link`` or its RDF, or else the target.

    Source: https://www.w3.org/TR/ldn/#discovery.

    Raises
    ------
    ForbiddenAddressError, UnreachableError
        See `HttpClient.request`.
    """
    accept = {"Accept": "text/turtle, application/ld+json;q=0.9"}
    for method in ("HEAD", "GET"):
        reply = await client.request(method, target, headers=accept, limit=200_000, redirects=3)
        for name, to in header_links(reply.headers.getall("Link", [])):
            if name == _INBOX:
                with suppress(ValueError):  # The link is not a URL.
                    return urljoin(reply.url, to)
    syntax = RdfFormat.from_media_type(reply.headers.get("Content-Type", ""))
    if reply.status == HTTPStatus.OK and not reply.truncated and syntax is not None:
        with suppress(SyntaxError, ValueError, OSError):  # The body is not RDF.
            for triple in parse(reply.body, syntax, base_iri=reply.url):
                about = getattr(triple.subject, "value", "").partition("#")[0]
                if triple.predicate.value == _INBOX and about in (target, reply.url):
                    return str(getattr(triple.object, "value", target))
    return target
