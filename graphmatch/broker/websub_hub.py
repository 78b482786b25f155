"""A WebSub hub for our own topics: the feeds of matches.

It does not listen: whoever serves HTTP calls `Hub.request` for a POST, sends back its `Response`,
and calls `Hub.work` every few seconds.

The whole document of a topic is delivered, signed with HMAC-SHA256 where there is a secret. A
delivery that waits for another try gives way to a newer one of the same topic.

Source: W3C WebSub (recommendation of 2018).
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from urllib.parse import urlencode, urlsplit, urlunsplit

import aiohttp

from graphmatch.broker.websub import (
    ADDRESS,
    AT_ONCE,
    LEASE,
    SECONDS,
    VERIFY_TRIES,
    Kept,
    Mode,
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
PER_HOST = 2
"""So many requests are under way at once to one host."""


@dataclass(frozen=True, slots=True)
class Callback:
    """Somebody's subscription at our hub.

    Parameters
    ----------
    secret
        What content is signed with, if anything.
    until
        When it ends; ``None`` before it was verified.
    pending, wanted, new_secret
        What was asked for, and has not been verified yet; for how many seconds, with what secret.
    due_at, tries
        When that is to be verified, and how often it was tried.
    """

    topic: str
    callback: str
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
class Delivery:
    """Content that a callback is to get."""

    topic: str
    callback: str
    body: bytes = field(repr=False)
    content_type: str
    due_at: datetime
    tries: int = 0

    @property
    def key(self) -> tuple[str, ...]:
        """What it is known by."""
        return (self.topic, self.callback)


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
    is_topic
        Whether an address is a topic of ours.
    """

    def __init__(
        self,
        address: str,
        session: aiohttp.ClientSession,
        callbacks: Records[Callback],
        deliveries: Records[Delivery],
        is_topic: Callable[[str], Awaitable[bool]],
        *,
        clock: Clock = utc_now,
        seconds: float = SECONDS,
    ) -> None:
        self._address, self._session, self._is_topic = address, session, is_topic
        self._clock = clock
        self._timeout = aiohttp.ClientTimeout(total=seconds)
        self._callbacks, self._deliveries = Kept(callbacks), Kept(deliveries)
        self._all = asyncio.Semaphore(AT_ONCE)
        self._hosts = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(PER_HOST))

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
    def deliveries(self) -> Sequence[Delivery]:
        """Return what waits to be delivered."""
        return list(self._deliveries)

    async def request(self, form: Mapping[str, str]) -> Response:
        """Answer a POST to the hub; what it asks for is verified by `work`."""
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
        known = self._callbacks.get(topic, callback)
        if mode == "subscribe" and not await self._is_topic(topic):
            return Response(404, b"hub.topic is no topic of this hub")
        if known is None:
            if mode == "unsubscribe":
                return Response(404, b"there is no such subscription")
            if self._is_full(topic, callback):
                return Response(429, b"there are too many subscriptions")
        wanted = int(lease) if lease else int(LEASE.total_seconds())
        await self._callbacks.save(
            replace(
                known or Callback(topic, callback),
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

    async def publish(self, topic: str, body: bytes, content_type: str) -> int:
        """Have a topic's document delivered by `work`; return to how many callbacks."""
        callbacks = self.callbacks(topic)
        for each in callbacks:
            delivery = Delivery(topic, each.callback, body, content_type, self._clock())
            await self._deliveries.save(delivery)
        return len(callbacks)

    async def close(self, topic: str, reason: str) -> None:
        """End all subscriptions to a topic, and tell the subscribers that they are denied."""
        for each in [c for c in self._callbacks if c.topic == topic]:
            parameters = {"hub.mode": "denied", "hub.topic": topic, "hub.reason": reason}
            await self._forget(each)
            await self._get(each.callback, parameters)

    def next_at(self) -> datetime | None:
        """Return when there is work; ``None`` while there is none."""
        verify = (c.due_at for c in self._callbacks if c.pending is not None)
        times = [time for time in verify if time is not None]
        return min([*times, *(d.due_at for d in self._deliveries)], default=None)

    async def work(self) -> None:
        """Verify what was asked for, deliver what is due, and drop what has ended."""
        now = self._clock()
        for each in list(self._callbacks):
            if each.pending is None and (each.until is None or each.until <= now):
                await self._forget(each)
        asked = [c for c in self._callbacks if c.pending and c.due_at and c.due_at <= now]
        await asyncio.gather(*map(self._verify, asked))
        due = [d for d in self._deliveries if d.due_at <= now]
        await asyncio.gather(*map(self._deliver, due))

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

    async def _deliver(self, delivery: Delivery) -> None:
        """Send content to a callback; what fails waits for its next try."""
        callback = self._callbacks.get(*delivery.key)
        if callback is None or callback.until is None or callback.until <= self._clock():
            await self._deliveries.remove(delivery)
            return
        headers = {
            "Content-Type": delivery.content_type,
            "Link": hub_links(self._address, delivery.topic),
        }
        if callback.secret is not None:
            headers["X-Hub-Signature"] = sign(callback.secret, delivery.body)
        try:
            async with (
                self._hosts[_host(delivery.callback)],
                self._all,
                self._session.post(
                    delivery.callback,
                    data=delivery.body,
                    headers=headers,
                    allow_redirects=False,
                    timeout=self._timeout,
                ) as response,
            ):
                status = response.status
        except (aiohttp.ClientError, OSError, ValueError):
            status = 0
        if status == 410:
            await self._forget(callback)
        elif self._deliveries.get(*delivery.key) != delivery:
            return  # a newer one waits
        elif 200 <= status < 300 or delivery.tries >= len(RETRIES):
            await self._deliveries.remove(delivery)
        else:
            due_at = self._clock() + RETRIES[delivery.tries]
            again = replace(delivery, tries=delivery.tries + 1, due_at=due_at)
            await self._deliveries.save(again)


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
