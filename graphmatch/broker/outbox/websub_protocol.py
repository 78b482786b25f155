"""WebSub: the parts that the hub and the subscriber share."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from html.parser import HTMLParser
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar
from urllib.parse import urljoin, urlsplit

from semantic.errors import GraphMatchError
from semantic.feeds.model import Channel

LEASE = timedelta(days=10)
"""For how long a subscription is asked for, and given where none is asked for."""


VERIFY_TRIES = 3
"""So often somebody is asked to verify, or to be unsubscribed."""


SECONDS = 10.0
"""How long one request may take."""


METHODS = ("sha1", "sha256", "sha384", "sha512")
"""Digests of signatures that are accepted, all that the recommendation names; we send SHA-256."""


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
