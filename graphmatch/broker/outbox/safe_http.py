"""HTTP to addresses that users name: only to public addresses.

A subscriber names a URL that *this* machine sends to, and a feed is a URL that it reads. Without
this rule, a broker would be a way into its own network (server-side request forgery). The rule is
applied to the addresses that a connection is made to, not to the name in the URL. So a name that
resolves to another address at each look-up (DNS rebinding) does not help, nor does a redirect: each
hop is a request of its own.

Forbidden are all special-purpose blocks of IANA, multicast, IPv6 addresses that are not global
unicast, 6to4 and Teredo, and Azure's metadata address, which is public. An IPv4 address inside an
IPv6 address (mapped, or with the well-known prefix of NAT64) is checked itself. `allow` makes
exceptions for operators who deliver inside their own network.

Limits: name look-ups use threads of the loop's default executor. If a name server does not answer,
each look-up holds a thread until the system's resolver gives up.

Source: https://www.iana.org/assignments/iana-ipv4-special-registry and the same for IPv6.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from importlib.metadata import version
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Self, TypeAlias

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from multidict import CIMultiDictProxy
from yarl import URL

from semantic.errors import GraphMatchError, Place, Problem

CONNECT_SECONDS = 5.0
"""Time limit of the look-up of a name, the connection and its TLS, in seconds."""
REPLY_BYTES = 4096
"""Default maximum size of an answer's body."""

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_FORBIDDEN_BLOCKS = (
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 "
    "192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 "
    "203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 2001::/23 2001:db8::/32 2002::/16 3fff::/20"
)
"""Forbidden blocks, besides all IPv6 addresses that are not in `_GLOBAL_6`."""
_BLOCKS = [ip_network(block) for block in _FORBIDDEN_BLOCKS.split()]
_GLOBAL_6, _NAT64 = IPv6Network("2000::/3"), IPv6Network("64:ff9b::/96")
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")
_REDIRECTS = (301, 302, 303, 307, 308)


class TransportError(GraphMatchError):
    """A request without an answer."""


class ForbiddenAddressError(TransportError):
    """A URL or an address that requests may never be sent to."""


class UnreachableError(TransportError):
    """An address that gave no complete answer; it may give one later."""


def is_forbidden(address: Address, allow: Sequence[Network] = ()) -> bool:
    """Whether requests to an address are forbidden.

    Parameters
    ----------
    allow
        Networks that are exceptions.

    Examples
    --------
    >>> is_forbidden(ip_address("8.8.8.8")), is_forbidden(ip_address("::ffff:169.254.169.254"))
    (False, True)
    >>> is_forbidden(ip_address("127.0.0.1"), allow=[ip_network("127.0.0.0/8")])
    False
    """
    inner = _inner(address)
    if any(one in network for network in allow for one in (address, inner)):
        return False
    is_global = isinstance(inner, IPv4Address) or inner in _GLOBAL_6
    return not is_global or any(inner in block for block in _BLOCKS)


def _inner(address: Address) -> Address:
    """Return the IPv4 address that packets to an IPv6 address go to, if there is one."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address


def checked_url(text: str | URL, allow: Sequence[Network] = ()) -> URL:
    """Return a URL after all checks that are possible before the look-up of its name.

    Raises
    ------
    ForbiddenAddressError
        If the URL is not absolute, neither http nor https, has credentials, an invalid host, a
        number in a form that programs read differently, or a forbidden address.

    Examples
    --------
    >>> checked_url("http://0x7f.1/")
    Traceback (most recent call last):
     ...
    graphmatch.broker.outbox.safe_http.ForbiddenAddressError: the URL: the URL cannot be used. \
Write `https://`, a name or an IP address, and a path, without credentials.
    """
    try:
        url = URL(text)
        is_web = url.port and url.scheme in ("http", "https") and "@" not in url.raw_authority
    except (ValueError, IndexError):  # yarl raises both.
        is_web = False
    if is_web:
        host = url.raw_host or ""
        with suppress(ValueError):  # The host is a name.
            if is_forbidden(address := ip_address(host), allow):
                raise _forbidden_error(address, str(url.origin()))
            return url
        labels = host.removesuffix(".").split(".")
        is_name = len(host) <= 253 and all(map(_LABEL.fullmatch, labels))
        if is_name and not _NUMBER.fullmatch(labels[-1]):
            return url
    remedy = "Write `https://`, a name or an IP address, and a path, without credentials."
    raise ForbiddenAddressError(Problem("the URL cannot be used", Place("the URL"), remedy))


def _forbidden_error(address: Address, where: str) -> ForbiddenAddressError:
    network = next((block for block in _BLOCKS if _inner(address) in block), address)
    what = f"nothing is sent to {address}, which is not public, without --allow {network}"
    remedy = "Name a public address, or use this option (`allow` in graphmatch.toml)."
    return ForbiddenAddressError(Problem(what, Place(where), remedy))


def retry_after(text: str | None, now: datetime, limit: timedelta) -> timedelta | None:
    """Return the wait that a ``Retry-After`` asks for, or ``None`` if the header is invalid.

    Parameters
    ----------
    limit
        Maximum result. A longer wait is probably a mistake.

    Examples
    --------
    >>> now, day = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1)
    >>> retry_after("120", now, day).total_seconds()
    120.0
    >>> retry_after("Thu, 01 Jan 2026 00:01:00 GMT", now, day).total_seconds()
    60.0
    >>> retry_after("soon", now, day)
    """
    text = (text or "").strip()
    if re.fullmatch("[0-9]{1,18}", text):
        return timedelta(seconds=min(float(text), limit.total_seconds()))
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    until = date.replace(tzinfo=UTC) if date.tzinfo is None else date
    return min(max(until - now, timedelta()), limit)


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a request.

    Parameters
    ----------
    body
        The body, up to the limit of the request.
    truncated
        Whether the rest of the body is missing.
    url
        URL of the last hop.
    hops
        The followed redirects: the status of each, and its target.
    """

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes
    truncated: bool
    url: str
    hops: tuple[tuple[int, str], ...] = ()


class _PublicResolver(AbstractResolver):
    """Looks up names, and leaves out forbidden addresses."""

    def __init__(self, names: AbstractResolver, allow: Sequence[Network]) -> None:
        self._names, self._allow = names, allow

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a name to which requests are allowed."""
        found = await self._names.resolve(host, port, family)
        allowed = [one for one in found if not is_forbidden(ip_address(one["host"]), self._allow)]
        if found and not allowed:
            raise _forbidden_error(ip_address(found[0]["host"]), host)
        return allowed

    async def close(self) -> None:
        """Close the resolver."""
        await self._names.close()


class HttpClient:
    """Requests to addresses that users name; an async context manager.

    It uses no proxies, passwords or cookies of its environment, and stores none. It does not limit
    the number of concurrent requests; its callers do.

    Parameters
    ----------
    allow
        Networks that it may reach although they are not public, such as ``127.0.0.0/8``.
    total_seconds
        Time limit of a request with its bodies. Each hop of a redirect is a request.
    tls
        Trusted certificates; by default, those of the system.
    resolver
        Resolver of names; by default, the system's.

    Examples
    --------
    >>> import asyncio
    >>> async def example() -> None:
    ...     async with HttpClient() as client:
    ...         await client.request("GET", "http://169.254.169.254/latest/meta-data/")
    >>> asyncio.run(example())
    Traceback (most recent call last):
     ...
    graphmatch.broker.outbox.safe_http.ForbiddenAddressError: http://169.254.169.254: nothing is \
sent to 169.254.169.254, which is not public, without --allow 169.254.0.0/16. Name a public \
address, or use this option (`allow` in graphmatch.toml).
    """

    def __init__(
        self,
        allow: Sequence[Network | str] = (),
        *,
        total_seconds: float = 20.0,
        tls: ssl.SSLContext | bool = True,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._allow = tuple(ip_network(one) if isinstance(one, str) else one for one in allow)
        self._timeout = aiohttp.ClientTimeout(total=total_seconds, connect=CONNECT_SECONDS)
        self._tls, self._names = tls, resolver
        self.check = lru_cache(1_000)(partial(checked_url, allow=self._allow))
        """Return `checked_url` of a URL, with the exceptions of this client."""
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        resolver = _PublicResolver(self._names or aiohttp.ThreadedResolver(), self._allow)
        # Without limit: a wait for a free connection would count as a slow host.
        connector = aiohttp.TCPConnector(resolver=resolver, ssl=self._tls, limit=0)
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": f"graphmatch/{version('graphmatch')}"},
            timeout=self._timeout,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def request(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        limit: int = REPLY_BYTES,
        redirects: int = 0,
        whole: bool = True,
    ) -> Reply:
        """Send a request, and return the answer with any status.

        Parameters
        ----------
        limit
            Maximum number of bytes to read of the answer's body, after decompression. The rest is
            dropped with the connection.
        redirects
            Maximum number of redirects to follow with the same method. After that, the redirect is
            the answer. A POST only follows 307 and 308.
        whole
            Whether a body that breaks off, or comes too slowly, is an error.

        Raises
        ------
        ForbiddenAddressError
            If the address of the URL, or of a hop, is forbidden.
        UnreachableError
            If there was no answer.
        """
        hop, hops = self.check(url), list[tuple[int, str]]()
        while True:
            try:
                async with self._session.request(
                    method, hop, data=body, headers=headers, allow_redirects=False
                ) as response:
                    start, truncated = await _start(response, limit, whole)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise _unreachable(hop, self._reason(error)) from error
            status, to = response.status, response.headers.get("Location")
            is_redirect = status in (_REDIRECTS if method in ("GET", "HEAD") else (307, 308))
            if to is None or not is_redirect or len(hops) >= redirects:
                return Reply(status, response.headers, start, truncated, str(hop), tuple(hops))
            try:
                hop = self.check(hop.join(URL(to)))
            except (ValueError, IndexError) as error:
                raise _unreachable(hop, "its redirect leads to no URL") from error
            hops.append((status, str(hop)))

    def _reason(self, error: Exception) -> str:
        """Return the reason of a failure, without text of the other side or the URL's path."""
        match error:
            case aiohttp.ClientConnectorDNSError():
                return "the host's name cannot be looked up"
            case aiohttp.ClientConnectorCertificateError():
                reason = getattr(error.certificate_error, "verify_message", "")
                return f"the host's certificate is not trusted: {reason}"
            case aiohttp.ClientSSLError() | ssl.SSLError():
                return "no TLS connection was made"
            case TimeoutError():
                return f"there was no whole answer within {self._timeout.total:g} seconds"
            case aiohttp.ServerDisconnectedError():
                return "the connection was closed"
            case OSError(errno=int(number)) if number > 0:
                return f"the connection failed: {os.strerror(number)}"
        return "the answer is not valid HTTP"


def _unreachable(url: URL, what: str) -> UnreachableError:
    return UnreachableError(Problem(what, Place(str(url.origin())), "Try again later."))


async def _start(response: aiohttp.ClientResponse, limit: int, whole: bool) -> tuple[bytes, bool]:
    """Return the start of a body, and whether the rest is missing; close the connection then."""
    try:
        start = await response.content.readexactly(limit + 1)
    except asyncio.IncompleteReadError as error:
        return error.partial, False
    except (aiohttp.ClientError, TimeoutError, OSError):
        if whole:
            raise
        start = b""
    response.close()
    return start[:limit], True
