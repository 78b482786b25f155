"""WebSub: the parts that the hub and the subscriber share."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from semantic.feeds.model import Channel

LEASE = timedelta(days=10)
"""Default lease of a subscription."""
METHODS = ("sha1", "sha256", "sha384", "sha512")
"""Accepted digests of signatures; the hub signs with SHA-256."""
ADDRESS = 2000
"""Maximum length of a URL."""
_LINK = re.compile(r"<([^<>]*)>((?:[^<\"]|\"[^\"]*\")*)")
_PARAMETER = re.compile(r";\s*([^\s=;,\"]+)\s*=\s*(?:\"([^\"]*)\"|([^\s\",;]+))")
_SIGNATURE = re.compile(r"(\w+)=([0-9a-fA-F]+)")


class Response(NamedTuple):
    """The answer to a request of a hub or a subscriber, as plain text."""

    status: int
    body: bytes = b""


class Discovered(NamedTuple):
    """The hubs and the topic that a document names."""

    hubs: tuple[str, ...] = ()
    topic: str | None = None


def header_links(values: Iterable[str]) -> Sequence[tuple[str, str]]:
    """Return the relation and the URL of each link in Link headers.

    Examples
    --------
    >>> header_links(['<https://e.org/hub>; rel="hub", </feed>; title="a, b"; rel=self'])
    [('hub', 'https://e.org/hub'), ('self', '/feed')]
    """
    return [
        (name, target.strip())
        for value in values
        for target, parameters in _LINK.findall(value[:10_000])
        for key, quoted, token in _PARAMETER.findall(parameters)
        if key.lower() == "rel"
        for name in (quoted or token).lower().split()
    ]


def discover(
    address: str, headers: Sequence[tuple[str, str]], channel: Channel | None = None
) -> Discovered:
    """Find the hubs and the topic of a document, in its headers or else in its content.

    Parameters
    ----------
    address
        URL of the document. Relative URLs are relative to it, and it is the default topic.
    headers
        Links of its Link headers.
    channel
        Content, if the document is a feed.

    Examples
    --------
    >>> discover("https://e.org/feed", [("hub", "/hub")], Channel(hubs=("https://other/",)))
    Discovered(hubs=('https://e.org/hub',), topic='https://e.org/feed')
    """
    channel = channel or Channel()
    hubs = [web_url(address, href) for name, href in headers if name == "hub"]
    hubs = hubs or [web_url(address, channel.base, href) for href in channel.hubs]
    topics = [web_url(address, href) for name, href in headers if name == "self"]
    if not topics and channel.self_link:
        topics = [web_url(address, channel.base, channel.self_link)]
    valid = tuple(dict.fromkeys(hub for hub in hubs if hub is not None))
    return Discovered(valid, next(filter(None, topics), address)) if valid else Discovered()


def web_url(*references: str) -> str | None:
    """Return the http or https URL that references lead to, each relative to those before it."""
    url = ""
    try:
        for reference in references:
            url = urljoin(url, reference)
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return None
    is_plain = url.isprintable() and " " not in url and "@" not in parts.netloc
    return url if is_web and is_plain and len(url) <= ADDRESS else None


def hub_of(root: str) -> str:
    """Return the URL of the broker's hub, from the start of the broker's URLs."""
    return f"{root}/websub"


def hub_links(hub: str, topic: str) -> str:
    """Return the Link header of a topic, for answers of the publisher and requests of the hub.

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
    """Whether X-Hub-Signature is valid for a body, with any of `METHODS`; in constant time.

    Examples
    --------
    >>> is_signed("key", b"body", sign("key", b"body", "sha512")), is_signed("key", b"body", None)
    (True, False)
    """
    match = _SIGNATURE.fullmatch((header or "").strip())
    if match is None or match[1].lower() not in METHODS:
        return False
    valid = sign(secret, body, match[1].lower()).partition("=")[2]
    return hmac.compare_digest(valid, match[2].lower())
