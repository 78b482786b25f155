"""WebSub: what a hub and a subscriber share, and the subscriber, to hear of feeds at once.

No part of this listens. `graphmatch.broker.websub_routes` calls `Subscriber.verify` and
`Subscriber.receive` for a callback's GET and POST, and sends back the `Response`;
`graphmatch.broker.websub_service` calls `Subscriber.work` every few seconds.

A feed that is subscribed to goes on to be polled, seldom: hubs end silently.

Source: W3C WebSub (recommendation of 2018); Link headers: RFC 8288.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from html.parser import HTMLParser
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar
from urllib.parse import urljoin, urlsplit

import aiohttp

from semantic.clock import Clock, utc_now
from semantic.errors import GraphMatchError
from semantic.feeds.model import Channel

LEASE = timedelta(days=10)
"""For how long a subscription is asked for, and given where none is asked for."""
RENEWED = 0.8
"""After this part of a lease it is renewed."""
ANSWERED = timedelta(hours=1)
"""A subscription that was asked for has to be verified in this time, or it is asked for again."""
AGAIN = timedelta(days=1)
"""How long to wait, at most, until a subscription that failed or was denied is asked for again."""
VERIFY_TRIES = 3
"""So often somebody is asked to verify, or to be unsubscribed."""
BODY_BYTES = 10 * 1024 * 1024
AT_ONCE = 20
"""So many requests are under way at once."""
SECONDS = 10.0
"""How long one request may take."""
METHODS = ("sha1", "sha256", "sha384", "sha512")
"""Digests of signatures that are accepted, all that the recommendation names; we send SHA-256."""

_MOST_REDIRECTS = 5
_SAID = 200
ADDRESS = 2000
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
    return bool(is_one) and text.isprintable() and " " not in text and len(text) <= ADDRESS


def hub_of(root: str) -> str:
    """Return the address of our hub, from what the broker's addresses begin with."""
    return f"{root}/websub"


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


class Kept(Generic[R]):
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
        self._leases = Kept(records)
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
