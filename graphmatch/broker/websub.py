"""WebSub: as a subscriber, to hear of feeds at once; as a hub, for the feeds of matches.

No part of this listens. Whoever serves HTTP calls `Subscriber.verify` and `Subscriber.receive` for
a callback's GET and POST, and `Hub.request` for a POST to the hub, and sends back the `Response`;
and calls `Subscriber.work` and `Hub.work` every few seconds.

A feed that is subscribed to goes on to be polled, seldom: hubs end silently.

As a hub, the whole document of a topic is delivered, signed with HMAC-SHA256 where there is a
secret. A delivery that waits for another try gives way to a newer one of the same topic.

Source: W3C WebSub (recommendation of 2018); Link headers: RFC 8288.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from html.parser import HTMLParser
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar
from urllib.parse import urlencode, urljoin, urlsplit, urlunsplit

import aiohttp

from semantic.clock import Clock, utc_now
from semantic.feeds.model import Channel

LEASE = timedelta(days=10)
"""For how long a subscription is asked for, and given where none is asked for."""
LEAST_LEASE, MOST_LEASE = timedelta(minutes=5), timedelta(days=30)
RENEWED = 0.8
"""After this part of a lease it is renewed."""
ANSWERED = timedelta(hours=1)
"""A subscription that was asked for has to be verified in this time, or it is asked for again."""
AGAIN = timedelta(days=1)
"""How long to wait, at most, until a subscription that failed or was denied is asked for again."""
RETRIES = tuple(timedelta(seconds=s) for s in (10, 60, 600, 3600, 3 * 3600, 6 * 3600, 12 * 3600))
"""How long a hub waits after each delivery that failed; after the last it gives that one up."""
VERIFY_TRIES = 3
"""So often a hub tries to reach a callback to verify it."""
SECRET_BYTES = 200
"""A secret has to be shorter."""
BODY_BYTES = 10 * 1024 * 1024
SECONDS = 10.0
"""How long one request may take."""
AT_ONCE, PER_HOST = 20, 2
"""So many requests of a hub are under way at once, in all and to one host."""
CALLBACKS_PER_TOPIC, CALLBACKS_PER_HOST = 10_000, 1_000
METHODS = ("sha1", "sha256", "sha384", "sha512")
"""Digests of signatures that are accepted, all that the recommendation names; we send SHA-256."""

_MOST_REDIRECTS = 5
_ADDRESS = 2000
_LINK = re.compile(
    r"<([^<>]*)>((?:\s*;\s*[\w!#$%&'*+.^`|~-]+\s*(?:=\s*(?:\"[^\"]*\"|[^\s\",;]*))?)*)"
)
_PARAMETER = re.compile(r";\s*([^\s=;,]+)\s*(?:=\s*(?:\"([^\"]*)\"|([^\s\",;]*)))?")
_SIGNATURE = re.compile(r"(\w+)=([0-9a-fA-F]+)")

Mode: TypeAlias = Literal["subscribe", "unsubscribe"]
Links: TypeAlias = Sequence[tuple[str, str]]
"""Pairs of a relation and an address."""


@dataclass(frozen=True, slots=True)
class Response:
    """What is to be sent back."""

    status: int
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"


# -- discovery -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Discovered:
    """The hubs of a document, and what it calls itself."""

    hubs: tuple[str, ...] = ()
    topic: str | None = None


def header_links(values: Iterable[str]) -> Links:
    """Return the links of Link headers.

    Examples
    --------
    >>> header_links(['<https://e.org/hub>; rel="hub", </feed>; title="a, b"; rel=self'])
    [('hub', 'https://e.org/hub'), ('self', '/feed')]
    """
    found = []
    for value in values:
        for target, parameters in _LINK.findall(value[:10_000]):
            given = _PARAMETER.findall(parameters)
            names = next((a or b for name, a, b in given if name.lower() == "rel"), "")
            found += [(name, target.strip()) for name in names.lower().split()]
    return found


class _LinkElements(HTMLParser):
    """Collects the link elements of a page's head."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._in_body = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_body = self._in_body or tag == "body"
        if tag == "link" and not self._in_body:
            given = {name: value or "" for name, value in attrs}
            names = given.get("rel", "").lower().split()
            self.found += [(name, given.get("href", "").strip()) for name in names]


def page_links(text: str) -> Links:
    """Return the links in the head of a page of HTML.

    Examples
    --------
    >>> page_links('<head><link rel=hub href="/hub"></head><body><link rel=self href="/a">')
    [('hub', '/hub')]
    """
    parser = _LinkElements()
    parser.feed(text)
    parser.close()
    return parser.found


def discover(address: str, headers: Links, channel: Channel | None = None) -> Discovered:
    """Find the hubs and the topic of a document: in its headers, or else in what it says itself.

    Parameters
    ----------
    address
        Where it was fetched: relative addresses are relative to it, and it is the topic where the
        document does not call itself anything.
    headers
        Of its Link headers; of a page, followed by the links in its head.
    channel
        What a feed says.

    Examples
    --------
    >>> discover("https://e.org/feed", [("hub", "/hub")], Channel(hubs=("https://other/",)))
    Discovered(hubs=('https://e.org/hub',), topic='https://e.org/feed')
    """
    channel = channel or Channel()
    hubs = [href for name, href in headers if name == "hub"]
    selves = [href for name, href in headers if name == "self"]
    resolved = [_resolved(address, "", href) for href in hubs]
    if not hubs:
        resolved = [_resolved(address, channel.base, href) for href in channel.hubs]
    topics = [_resolved(address, "", href) for href in selves if href]
    if not selves and channel.self_link:
        topics = [_resolved(address, channel.base, channel.self_link)]
    topic = next(filter(None, topics), None)
    found = tuple(dict.fromkeys(hub for hub in resolved if hub is not None))
    return Discovered(found, topic or address) if found else Discovered()


def _resolved(address: str, base: str, href: str) -> str | None:
    try:
        url = urljoin(urljoin(address, base), href)
    except ValueError:
        return None
    return url if is_address(url) else None


def is_address(text: str) -> bool:
    """Whether a text is an absolute http or https address that can be asked."""
    try:
        parts = urlsplit(text)
        is_one = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return False
    return bool(is_one) and text.isprintable() and " " not in text and len(text) <= _ADDRESS


def hub_links(hub: str, topic: str) -> str:
    """Return the Link header of a topic: publishers send it with each answer, hubs with content.

    Examples
    --------
    >>> hub_links("https://e.org/hub", "https://e.org/feed")
    '<https://e.org/hub>; rel="hub", <https://e.org/feed>; rel="self"'
    """
    return f'<{hub}>; rel="hub", <{topic}>; rel="self"'


# -- signatures ----------------------------------------------------------------------------------


def sign(secret: str, body: bytes, method: str = "sha256") -> str:
    """Return the value of X-Hub-Signature.

    Examples
    --------
    >>> sign("key", b"body")[:20]
    'sha256=515aae133b435'
    """
    return f"{method}={hmac.new(secret.encode(), body, method).hexdigest()}"


def is_signed(secret: str, body: bytes, header: str | None) -> bool:
    """Whether X-Hub-Signature is that of the body, by any of `METHODS`; in constant time.

    Examples
    --------
    >>> is_signed("key", b"body", sign("key", b"body", "sha512")), is_signed("key", b"body", None)
    (True, False)
    """
    found = _SIGNATURE.fullmatch((header or "").strip())
    if found is None or found[1].lower() not in METHODS:
        return False
    right = hmac.new(secret.encode(), body, found[1].lower()).digest()
    return hmac.compare_digest(right.hex(), found[2].lower())


# -- state ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lease:
    """A subscription of ours at somebody's hub.

    Parameters
    ----------
    id
        What the callback's address ends with; nobody can guess it.
    secret
        What the hub signs with.
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
    secret: str = field(repr=False)
    pending: Mode | None = None
    until: datetime | None = None
    due_at: datetime | None = None
    tries: int = 0
    problem: str | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What it is known by."""
        return (self.id,)


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


class MemoryRecords(Generic[R]):
    """Records that end with the process."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, ...], R] = {}

    async def load(self) -> Sequence[R]:
        """Return all."""
        return list(self._records.values())

    async def save(self, record: R) -> None:
        """Keep one in place of the one with its key."""
        self._records[record.key] = record

    async def remove(self, record: R) -> None:
        """Remove the one with its key, if there is one."""
        self._records.pop(record.key, None)


class _Kept(Generic[R]):
    """Records in memory, and in what they are loaded from."""

    def __init__(self, records: Records[R]) -> None:
        self._records = records
        self._known: dict[tuple[str, ...], R] = {}

    async def load(self) -> None:
        self._known = {record.key: record for record in await self._records.load()}

    def __iter__(self) -> Iterator[R]:
        return iter(list(self._known.values()))

    def get(self, *key: str) -> R | None:
        return self._known.get(key)

    async def save(self, record: R) -> R:
        self._known[record.key] = record
        await self._records.save(record)
        return record

    async def remove(self, record: R) -> None:
        self._known.pop(record.key, None)
        await self._records.remove(record)


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
        self._leases = _Kept(records)
        self._all = asyncio.Semaphore(AT_ONCE)

    async def start(self) -> None:
        """Load the leases."""
        await self._leases.load()

    @property
    def leases(self) -> Sequence[Lease]:
        """All leases, those in question included."""
        return list(self._leases)

    async def subscribe(self, topic: str, hub: str) -> Lease:
        """Ask a hub for a topic; one that was asked for already stays as it is."""
        for lease in self._leases:
            if lease.topic == topic and lease.pending != "unsubscribe":
                if lease.hub == hub:
                    return lease
                await self.unsubscribe(lease.id)
        lease = Lease(secrets.token_urlsafe(32), topic, hub, secrets.token_urlsafe(32))
        return await self._ask(lease, "subscribe")

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
        await asyncio.gather(*(self._ask_again(lease, now) for lease in due))

    async def verify(self, id: str, parameters: Mapping[str, str]) -> Response:
        """Answer the GET of a hub that wants to know whether we have asked for this."""
        lease, mode = self._leases.get(id), parameters.get("hub.mode")
        if lease is None or parameters.get("hub.topic") != lease.topic:
            return Response(404, b"nobody has asked for this")
        if mode == "denied":
            reason = parameters.get("hub.reason", "")[:_ADDRESS]
            problem = f"the hub denies it: {reason}" if reason else "the hub denies it"
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
        if lease is None or lease.until is None or lease.until <= self._clock():
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
        async with self._all:
            await self._ask(replace(lease, tries=tried), lease.pending or "subscribe")

    async def _ask(self, lease: Lease, mode: Mode) -> Lease:
        """Send a request; the hub may verify it before it answers."""
        lease = replace(lease, pending=mode, due_at=self._clock() + ANSWERED)
        await self._leases.save(lease)
        form = {
            "hub.mode": mode,
            "hub.topic": lease.topic,
            "hub.callback": f"{self._callback}/{lease.id}",
        }
        if mode == "subscribe":
            form["hub.lease_seconds"] = str(int(LEASE.total_seconds()))
            form["hub.secret"] = lease.secret
        try:
            status, reason, hub = await self._post(lease.hub, form)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            reason = str(error) or type(error).__name__
            status, hub = 0, lease.hub
        lease = self._leases.get(lease.id) or lease
        if 200 <= status < 300:
            return lease if hub == lease.hub else await self._leases.save(replace(lease, hub=hub))
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
                    text = (await response.content.read(_ADDRESS)).decode("utf-8", "replace")
                    return response.status, text.strip(), hub
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


# -- as a hub ------------------------------------------------------------------------------------


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
        self._callbacks, self._deliveries = _Kept(callbacks), _Kept(deliveries)
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
                return response.status, await response.content.read(_ADDRESS)
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
