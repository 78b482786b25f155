"""A WebSub hub for our own topics: the feeds of matches.

It does not listen: `graphmatch.broker.api.websub` calls `Hub.request` for a POST, and sends back
its `Response`; `graphmatch.broker.feeds.websub_service` calls `Hub.begin` every few seconds.

Each topic has a version, which rises with what is new. What a callback was sent is kept as a
version, too: so what comes while the hub is down is sent when it is there again, and several
changes are one delivery. The whole document of a topic is sent, as it is then, signed with
HMAC-SHA256 where there is a secret.

Limits: all callbacks are in memory. One process is the hub of a store.

Source: W3C WebSub (recommendation of 2018).
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
from collections import defaultdict
from collections.abc import Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from io import BytesIO
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit, urlunsplit

import aiohttp

from graphmatch.broker.app.supervisor import Supervisor
from graphmatch.broker.outbox.websub_protocol import (
    ADDRESS,
    LEASE,
    SECONDS,
    VERIFY_TRIES,
    Mode,
    RecordCache,
    Records,
    Response,
    hub_links,
    is_address,
    sign,
)
from semantic.clock import Clock, utc_now

LEAST_LEASE, MOST_LEASE = timedelta(minutes=5), timedelta(days=30)
RETRIES = tuple(timedelta(seconds=s) for s in (10, 60, 600, 3600, 3 * 3600, 6 * 3600, 12 * 3600))
"""How long a hub waits after each delivery that failed; after the last it gives that one up."""
SECRET_BYTES = 200
"""A secret has to be shorter."""
CALLBACKS_PER_TOPIC, CALLBACKS_PER_HOST = 10_000, 1_000
AT_ONCE, PER_HOST = 100, 2
"""So many requests are under way at once, and to one host."""


@dataclass(frozen=True, slots=True)
class Callback:
    """Somebody's subscription at our hub.

    Parameters
    ----------
    secret
        What content is signed with, if anything.
    version
        Of the topic when it was first asked for.
    until
        When it ends; ``None`` before it was verified.
    pending, wanted, new_secret
        What was asked for, and has not been verified yet; for how many seconds, with what secret.
    due_at, tries
        When that is to be verified, and how often it was tried.
    """

    topic: str
    callback: str
    version: int = 0
    secret: str | None = field(default=None, repr=False)
    until: datetime | None = None
    pending: Mode | None = None
    wanted: int = 0
    new_secret: str | None = field(default=None, repr=False)
    due_at: datetime | None = None
    tries: int = 0

    @property
    def key(self) -> tuple[str, ...]:
        """What it is known by."""
        return (self.topic, self.callback)


@dataclass(frozen=True, slots=True)
class HubDelivery:
    """What a callback was sent, or is to be sent.

    Parameters
    ----------
    version
        Of the topic.
    due_at
        When it is to be sent; ``None``: it was.
    tries
        How often it was tried.
    """

    topic: str
    callback: str
    version: int
    due_at: datetime | None = None
    tries: int = 0

    @property
    def key(self) -> tuple[str, ...]:
        """What it is known by."""
        return (self.topic, self.callback)


@dataclass(frozen=True, slots=True)
class Document:
    """What a topic says now."""

    body: bytes
    content_type: str
    version: int


class Topics(Protocol):
    """Our own topics."""

    async def versions(self, topics: Collection[str]) -> Mapping[str, int]:
        """Return which versions topics have; one that is none, or has ended, is left out."""

    async def document(self, topic: str) -> Document | None:
        """Return what a topic says now; ``None`` where it is none, or has ended."""


class Hub:
    """Takes subscriptions to our own topics, verifies them, and delivers what is new.

    Parameters
    ----------
    address
        The hub's own address.
    session
        The HTTP client; redirects are never followed.
    callbacks, deliveries
        Where they are kept.
    topics
        Our topics.
    """

    def __init__(
        self,
        address: str,
        session: aiohttp.ClientSession,
        callbacks: Records[Callback],
        deliveries: Records[HubDelivery],
        topics: Topics,
        *,
        clock: Clock = utc_now,
        seconds: float = SECONDS,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._address, self._session, self._topics = address, session, topics
        self._clock, self._supervisor = clock, supervisor or Supervisor()
        self._timeout = aiohttp.ClientTimeout(total=seconds)
        self._callbacks, self._deliveries = RecordCache(callbacks), RecordCache(deliveries)
        self._all = asyncio.Semaphore(AT_ONCE)
        self._hosts = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(PER_HOST))
        self._tasks: dict[tuple[str, ...], asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Load what is kept."""
        await self._callbacks.load()
        await self._deliveries.load()

    def callbacks(self, topic: str | None = None) -> list[Callback]:
        """Return the subscriptions that are in force, of one topic or of all."""
        now = self._clock()
        every = (c for c in self._callbacks if c.until is not None and c.until > now)
        return [c for c in every if topic is None or c.topic == topic]

    @property
    def deliveries(self) -> Sequence[HubDelivery]:
        """Return what waits to be delivered."""
        return [one for one in self._deliveries if one.due_at is not None]

    async def request(self, form: Mapping[str, str]) -> Response:
        """Answer a POST to the hub; `begin` verifies what it asks for."""
        mode, topic = form.get("hub.mode"), form.get("hub.topic", "")
        callback, secret = form.get("hub.callback", ""), form.get("hub.secret") or None
        lease = form.get("hub.lease_seconds", "")
        if mode not in ("subscribe", "unsubscribe"):
            return Response(400, b"hub.mode has to be subscribe or unsubscribe")
        if not is_address(callback) or "@" in urlsplit(callback).netloc:
            return Response(400, b"hub.callback has to be an http or https address")
        if secret is not None and len(secret.encode("utf-8", "replace")) >= SECRET_BYTES:
            return Response(400, b"hub.secret has to be shorter than 200 bytes")
        if lease and not re.fullmatch(r"[0-9]{1,9}", lease):
            return Response(400, b"hub.lease_seconds has to be a number of seconds")
        version = (await self._topics.versions([topic])).get(topic)
        known = self._callbacks.get(topic, callback)
        if mode == "subscribe" and version is None:
            return Response(404, b"hub.topic is no topic of this hub")
        if known is None:
            if mode == "unsubscribe":
                return Response(404, b"there is no such subscription")
            if self._is_full(topic, callback):
                return Response(429, b"there are too many subscriptions")
        wanted = int(lease) if lease else int(LEASE.total_seconds())
        await self._callbacks.save(
            replace(
                known or Callback(topic, callback, version or 0),
                pending="subscribe" if mode == "subscribe" else "unsubscribe",
                wanted=wanted,
                new_secret=secret,
                due_at=self._clock(),
                tries=0,
            )
        )
        return Response(202)

    def _is_full(self, topic: str, callback: str) -> bool:
        host = _host(callback)
        of_topic = sum(c.topic == topic for c in self._callbacks)
        of_host = sum(_host(c.callback) == host for c in self._callbacks)
        return of_topic >= CALLBACKS_PER_TOPIC or of_host >= CALLBACKS_PER_HOST

    async def begin(self) -> None:
        """Begin what is to be done now, without waiting for others: one that is slow holds up none.

        What was asked for is verified, and what is new delivered; those whose time is over are
        dropped, and those whose topic has ended are told so.
        """
        keys, now = [each.key for each in self._callbacks], self._clock()
        versions = await self._topics.versions({topic for topic, _ in keys})
        for key in keys:
            if (each := self._callbacks.get(*key)) is None:
                continue
            is_over = each.until is None or each.until <= now
            version = versions.get(each.topic)
            if version is None:
                self._do("end", each.key, self._end(each))
            elif each.pending is None and is_over:
                await self._forget(each)
            elif not is_over:
                await self._compare(each, version, now)
            if version is not None and each.pending and each.due_at and each.due_at <= now:
                self._do("verify", each.key, self._verify(each))
        for delivery in self.deliveries:
            if delivery.due_at is not None and delivery.due_at <= now:
                self._do("deliver", delivery.key, self._deliver(delivery))

    async def work(self) -> None:
        """Do what is to be done now, and wait until it is done."""
        await self.begin()
        if self._tasks:
            await asyncio.wait(self._tasks.values())

    async def stop(self, seconds: float) -> None:
        """Let requests end for a while; what is not sent then is sent after the next start."""
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=seconds)
        late = list(self._tasks.values())
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _do(self, what: str, key: tuple[str, ...], work: Coroutine[Any, Any, None]) -> None:
        """Do something in a task of its own, unless it is being done."""
        name = (what, *key)
        if name in self._tasks:
            work.close()
            return

        async def done() -> None:
            try:
                with self._supervisor.round("WebSub hub"):
                    await work
            finally:
                del self._tasks[name]

        self._tasks[name] = asyncio.create_task(done())

    async def _compare(self, callback: Callback, version: int, now: datetime) -> None:
        """Note that a callback is to get what is new; what waits for it keeps its time."""
        known = self._deliveries.get(*callback.key)
        if known is None:
            known = HubDelivery(callback.topic, callback.callback, callback.version)
        if known.version < version:
            due_at = now if known.due_at is None else known.due_at
            await self._deliveries.save(replace(known, version=version, due_at=due_at))

    async def _end(self, callback: Callback) -> None:
        """Tell a subscriber that the topic has ended."""
        parameters = {
            "hub.mode": "denied",
            "hub.topic": callback.topic,
            "hub.reason": "the subscription has ended",
        }
        await self._get(callback.callback, parameters)
        await self._forget(callback)

    async def _forget(self, callback: Callback) -> None:
        await self._callbacks.remove(callback)
        waiting = self._deliveries.get(*callback.key)
        if waiting is not None:
            await self._deliveries.remove(waiting)

    async def _verify(self, asked: Callback) -> None:
        """Ask a callback whether it wants what was asked for in its name."""
        least, most = (int(each.total_seconds()) for each in (LEAST_LEASE, MOST_LEASE))
        seconds = min(max(asked.wanted, least), most)
        challenge = secrets.token_urlsafe(32)
        parameters = {
            "hub.mode": asked.pending or "",
            "hub.topic": asked.topic,
            "hub.challenge": challenge,
        }
        if asked.pending == "subscribe":
            parameters["hub.lease_seconds"] = str(seconds)
        status, text = await self._get(asked.callback, parameters)
        if self._callbacks.get(*asked.key) != asked:
            return  # asked for anew meanwhile
        calm = replace(asked, pending=None, new_secret=None, due_at=None, tries=0)
        if 200 <= status < 300 and hmac.compare_digest(text, challenge.encode()):
            if asked.pending == "unsubscribe":
                await self._forget(asked)
            else:
                until = self._clock() + timedelta(seconds=seconds)
                await self._callbacks.save(replace(calm, until=until, secret=asked.new_secret))
        elif (status == 0 or status >= 500) and asked.tries + 1 < VERIFY_TRIES:
            wait = self._clock() + RETRIES[asked.tries]
            await self._callbacks.save(replace(asked, tries=asked.tries + 1, due_at=wait))
        elif asked.until is None:
            await self._forget(asked)
        else:
            await self._callbacks.save(calm)

    async def _get(self, callback: str, parameters: Mapping[str, str]) -> tuple[int, bytes]:
        """Return the status and the text of a callback, status 0 where it cannot be reached."""
        address = with_parameters(callback, parameters)
        try:
            async with (
                self._hosts[_host(callback)],
                self._all,
                self._session.get(
                    address, allow_redirects=False, timeout=self._timeout
                ) as response,
            ):
                return response.status, await response.content.read(ADDRESS)
        except (aiohttp.ClientError, OSError, ValueError):
            return 0, b""

    async def _deliver(self, delivery: HubDelivery) -> None:
        """Send a topic's document to a callback; what fails waits for its next try."""
        callback = self._callbacks.get(*delivery.key)
        if callback is None or callback.until is None or callback.until <= self._clock():
            return
        status = version = 0
        with self._supervisor.record("WebSub hub", f"the delivery to {delivery.callback}"):
            document = await self._topics.document(delivery.topic)
            if document is None:
                return  # `begin` says that the topic has ended
            version = document.version
            headers = {
                "Content-Type": document.content_type,
                "Link": hub_links(self._address, delivery.topic),
            }
            if callback.secret is not None:
                headers["X-Hub-Signature"] = sign(callback.secret, document.body)
            with suppress(aiohttp.ClientError, OSError, ValueError):
                async with (
                    self._hosts[_host(delivery.callback)],
                    self._all,
                    self._session.post(
                        delivery.callback,
                        data=BytesIO(document.body),
                        headers=headers,
                        allow_redirects=False,
                        timeout=self._timeout,
                    ) as response,
                ):
                    status = response.status
        now, known = self._clock(), self._deliveries.get(*delivery.key)  # of a later version, maybe
        if known is None:
            return
        if status == 410:
            await self._forget(callback)
        elif 200 <= status < 300:
            sent = max(version, delivery.version)
            due_at = None if sent >= known.version else now
            version = max(sent, known.version)
            await self._deliveries.save(replace(known, version=version, due_at=due_at, tries=0))
        elif known.tries >= len(RETRIES):
            await self._deliveries.save(replace(known, due_at=None, tries=0))
        else:
            due_at = now + RETRIES[known.tries]
            await self._deliveries.save(replace(known, tries=known.tries + 1, due_at=due_at))


@lru_cache(maxsize=CALLBACKS_PER_TOPIC)
def _host(address: str) -> str:
    return urlsplit(address).hostname or ""


def with_parameters(address: str, parameters: Mapping[str, str]) -> str:
    """Return an address with more parameters; those that it has stay.

    Examples
    --------
    >>> with_parameters("https://e.org/a?b=c", {"hub.mode": "denied"})
    'https://e.org/a?b=c&hub.mode=denied'
    """
    parts = urlsplit(address)
    query = "&".join(filter(None, (parts.query, urlencode(parameters))))
    return urlunsplit(parts._replace(query=query, fragment=""))
