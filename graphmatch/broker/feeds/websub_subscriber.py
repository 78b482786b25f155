"""WebSub: what a hub and a subscriber share, and the subscriber, to hear of feeds at once.

No part of this listens. `graphmatch.broker.api.websub` calls `Subscriber.verify` and
`Subscriber.receive` for a callback's GET and POST, and sends back the `Response`;
`graphmatch.broker.feeds.websub_service` calls `Subscriber.work` every few seconds.

A feed that is subscribed to goes on to be polled, seldom: hubs end silently.

Source: W3C WebSub (recommendation of 2018); Link headers: RFC 8288.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeAlias, TypeVar
from urllib.parse import urljoin

import aiohttp

from graphmatch.broker.outbox.websub_protocol import (
    ADDRESS,
    LEASE,
    SECONDS,
    VERIFY_TRIES,
    Mode,
    Response,
    is_address,
    is_signed,
)
from semantic.clock import Clock, utc_now
from semantic.errors import GraphMatchError

RENEWED = 0.8
"""After this part of a lease it is renewed."""
ANSWERED = timedelta(hours=1)
"""A subscription that was asked for has to be verified in this time, or it is asked for again."""
AGAIN = timedelta(days=1)
"""How long to wait, at most, until a subscription that failed or was denied is asked for again."""
BODY_BYTES = 10 * 1024 * 1024
AT_ONCE = 20
"""So many requests are under way at once."""
_MOST_REDIRECTS = 5
_SAID = 200
# -- discovery -----------------------------------------------------------------------------------


# -- signatures ----------------------------------------------------------------------------------


# -- state ---------------------------------------------------------------------------------------


class Keyed(Protocol):
    """What has a key."""

    @property
    def key(self) -> tuple[str, ...]:
        """What it is known by."""


R = TypeVar("R", bound=Keyed)


class Records(Protocol[R]):
    """Where leases, callbacks or deliveries are kept, one for each key."""

    async def load(self) -> Sequence[R]:
        """Return all."""

    async def save(self, record: R) -> None:
        """Keep one in place of the one with its key."""

    async def remove(self, record: R) -> None:
        """Remove the one with its key, if there is one."""


class RecordCache(Generic[R]):
    """Records in memory, and in what they are loaded from.

    Memory is first, so that what is done at the same time sees it. What is new and cannot be
    written is forgotten. Of the rest what is loaded the next time is older then: a hub is asked
    again, or content is sent again.
    """

    def __init__(self, records: Records[R]) -> None:
        self._records = records
        self._known: dict[tuple[str, ...], R] = {}

    async def load(self) -> None:
        """Load all."""
        self._known = {record.key: record for record in await self._records.load()}

    def __iter__(self) -> Iterator[R]:
        return iter(list(self._known.values()))

    def get(self, *key: str) -> R | None:
        """Return the one with a key, if there is one."""
        return self._known.get(key)

    async def save(self, record: R) -> R:
        """Keep one in place of the one with its key, and return it."""
        is_new = record.key not in self._known
        self._known[record.key] = record
        try:
            await self._records.save(record)
        except GraphMatchError:
            if is_new:
                self._known.pop(record.key, None)
            raise
        return record

    async def remove(self, record: R) -> None:
        """Remove the one with its key, if there is one."""
        self._known.pop(record.key, None)
        await self._records.remove(record)


@dataclass(frozen=True, slots=True)
class Lease:
    """A subscription of ours at somebody's hub.

    Parameters
    ----------
    id
        What the callback's address ends with; nobody can guess it.
    topic, hub
        As the feed names them.
    callback
        The address that the hub is to call.
    secret
        What the hub signs with.
    moved
        Where the hub is now, once it was redirected for good.
    pending
        What the hub was asked for, and has not verified yet.
    until
        Until when the hub sends what is new.
    due_at
        When the hub is to be asked again.
    tries
        How often it was asked in vain.
    problem
        Why it failed or was denied the last time.
    """

    id: str
    topic: str
    hub: str
    callback: str = field(repr=False)
    secret: str = field(repr=False)
    moved: str | None = None
    pending: Mode | None = None
    until: datetime | None = None
    due_at: datetime | None = None
    tries: int = 0
    problem: str | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What it is known by."""
        return (self.id,)

    @property
    def address(self) -> str:
        """Where the hub is asked."""
        return self.moved or self.hub


# -- as a subscriber -----------------------------------------------------------------------------

Content: TypeAlias = Callable[[Lease, bytes, str], Awaitable[None]]
"""What is called with the lease, the body and its media type, once the signature is found right."""
Changed: TypeAlias = Callable[[Lease], Awaitable[None]]


class Subscriber:
    """Subscribes to topics at their hubs, and renews before a lease ends.

    Parameters
    ----------
    session
        The HTTP client.
    records
        Where leases are kept.
    callback
        The address that hubs are to call: all but the last part, which is the lease's id.
    content
        What is called with what is new.
    changed
        Called when a lease began, was renewed, was denied or ended.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        records: Records[Lease],
        callback: str,
        content: Content,
        *,
        changed: Changed | None = None,
        clock: Clock = utc_now,
        seconds: float = SECONDS,
    ) -> None:
        self._session, self._callback, self._content = session, callback.rstrip("/"), content
        self._changed, self._clock = changed, clock
        self._timeout = aiohttp.ClientTimeout(total=seconds)
        self._leases = RecordCache(records)
        self._all = asyncio.Semaphore(AT_ONCE)

    async def start(self) -> None:
        """Load the leases; those whose callback was at another address are forgotten."""
        await self._leases.load()
        for lease in self._leases:
            if lease.callback != f"{self._callback}/{lease.id}":
                await self._leases.remove(lease)

    @property
    def leases(self) -> Sequence[Lease]:
        """All leases, those in question included."""
        return list(self._leases)

    def lease(self, topic: str | None, hub: str | None) -> Lease | None:
        """Return the lease of a topic at a hub, if there is one that is not to end."""
        several = (one for one in self._leases if (one.topic, one.hub) == (topic, hub))
        return next((one for one in several if one.pending != "unsubscribe"), None)

    def awaits(self, id: str) -> bool:
        """Whether content may come to a callback."""
        lease = self._leases.get(id)
        return lease is not None and lease.until is not None and lease.until > self._clock()

    async def subscribe(self, topic: str, hub: str) -> Lease:
        """Ask a hub for a topic; one that was asked for already stays as it is.

        Another hub of the same topic is another lease: a feed can name any topic.
        """
        if (lease := self.lease(topic, hub)) is not None:
            return lease
        id, secret = f"gmc_{secrets.token_urlsafe(32)}", secrets.token_urlsafe(32)
        made = Lease(id, topic, hub, f"{self._callback}/{id}", secret)
        return await self._ask(made, "subscribe")

    async def unsubscribe(self, id: str) -> None:
        """Ask a hub to send a topic no more; what it sends from now on is refused."""
        lease = self._leases.get(id)
        if lease is not None:
            await self._tell(replace(lease, until=None))
            await self._ask(replace(lease, until=None, tries=0), "unsubscribe")

    async def work(self) -> None:
        """Renew and ask again where it is time to; forget what was asked to end."""
        now = self._clock()
        due = [lease for lease in self._leases if lease.due_at is not None and lease.due_at <= now]
        again = (self._ask_again(lease, now) for lease in due)
        for result in await asyncio.gather(*again, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    async def verify(self, id: str, parameters: Mapping[str, str]) -> Response:
        """Answer the GET of a hub that wants to know whether we have asked for this."""
        lease, mode = self._leases.get(id), parameters.get("hub.mode")
        if lease is None or parameters.get("hub.topic") != lease.topic:
            return Response(404, b"nobody has asked for this")
        if mode == "denied":
            reason = _said(parameters.get("hub.reason", ""))
            problem = f"the hub denies it{f': {reason}' if reason else ''}"
            await self._put_off(lease, problem, AGAIN, until=None)
            return Response(200)
        challenge = parameters.get("hub.challenge")
        if not challenge or mode != lease.pending:
            return Response(404, b"nobody has asked for this")
        if mode == "unsubscribe":
            await self._leases.remove(lease)
            return Response(200, challenge.encode())
        now = self._clock()
        given = parameters.get("hub.lease_seconds", "")
        seconds = int(given) if re.fullmatch(r"[0-9]{1,9}", given) else 0
        length = timedelta(seconds=seconds) if seconds else LEASE
        renewed = replace(
            lease,
            pending=None,
            until=now + length,
            due_at=now + max(length * RENEWED, timedelta(minutes=1)),
            tries=0,
            problem=None,
        )
        await self._tell(await self._leases.save(renewed))
        return Response(200, challenge.encode())

    async def receive(self, id: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Take what a hub sends; a wrong signature is refused, and nobody hears of the content."""
        lease = self._leases.get(id)
        if lease is None or not self.awaits(id):
            return Response(410, b"nobody has asked for this")
        if len(body) > BODY_BYTES:
            return Response(413)
        given = {name.lower(): value for name, value in headers.items()}
        if not is_signed(lease.secret, body, given.get("x-hub-signature")):
            return Response(403, b"the signature is not right")
        await self._content(lease, body, given.get("content-type", ""))
        return Response(202)

    async def _ask_again(self, lease: Lease, now: datetime) -> None:
        if lease.pending == "unsubscribe" and lease.tries >= VERIFY_TRIES:
            await self._leases.remove(lease)  # its callback answers 410 from now on
            return
        if lease.until is not None and lease.until <= now:
            lease = await self._leases.save(replace(lease, until=None))
            await self._tell(lease)
        tried = lease.tries + (lease.pending is not None)
        await self._ask(replace(lease, tries=tried), lease.pending or "subscribe")

    async def _ask(self, lease: Lease, mode: Mode) -> Lease:
        """Send a request; the hub may verify it before it answers."""
        lease = replace(lease, pending=mode, due_at=self._clock() + ANSWERED)
        await self._leases.save(lease)
        form = {
            "hub.mode": mode,
            "hub.topic": lease.topic,
            "hub.callback": lease.callback,
        }
        if mode == "subscribe":
            form["hub.lease_seconds"] = str(int(LEASE.total_seconds()))
            form["hub.secret"] = lease.secret
        try:
            async with self._all:
                status, reason, address = await self._post(lease.address, form)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            reason = _said(str(error)) or type(error).__name__
            status, address = 0, lease.address
        lease = self._leases.get(lease.id) or lease
        if 200 <= status < 300:
            if address != lease.address:
                lease = await self._leases.save(replace(lease, moved=address))
            return lease
        problem = f"the hub answers {status}: {reason}" if status else f"no answer: {reason}"
        first = AGAIN if 400 <= status < 500 else ANSWERED
        wait = min(first * 2 ** min(lease.tries, 10), AGAIN)
        return await self._put_off(lease, problem, wait, until=lease.until)

    async def _post(self, hub: str, form: Mapping[str, str]) -> tuple[int, str, str]:
        """Return the status, the text, and where the hub is now: 307 and 308 are followed."""
        address, is_kept = hub, True
        for _ in range(_MOST_REDIRECTS + 1):
            async with self._session.post(
                address, data=form, allow_redirects=False, timeout=self._timeout
            ) as response:
                if response.status not in (307, 308):
                    text = (await response.content.read(ADDRESS)).decode("utf-8", "replace")
                    return response.status, _said(text), hub
                location = response.headers.get("Location", "")
                is_kept = is_kept and response.status == 308
            address = urljoin(address, location)
            if not is_address(address):
                break
            hub = address if is_kept else hub
        return 400, "its redirects lead nowhere", hub

    async def _put_off(
        self, lease: Lease, problem: str, wait: timedelta, until: datetime | None
    ) -> Lease:
        later = replace(lease, problem=problem, due_at=self._clock() + wait, until=until)
        if lease.pending == "subscribe":
            later = replace(later, pending=None, tries=lease.tries + 1)
        await self._leases.save(later)
        await self._tell(later)
        return later

    async def _tell(self, lease: Lease) -> None:
        if self._changed is not None:
            await self._changed(lease)


def _said(text: str) -> str:
    """Return what the other side says, short and on one line."""
    return " ".join(text.split())[:_SAID]
