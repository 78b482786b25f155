"""HTTP to addresses that users name: only to those that everybody on the internet can reach.

Who subscribes names a URL that *this* machine sends to, and who adds a feed one that it reads. A
broker without this rule is a way into its own network (server-side request forgery). The rule holds
for the address that a socket is opened for, not for the name in the URL: a name that means another
address at each look-up (DNS rebinding) gains nothing, nor does a redirect, each hop of which is
another request here.

Refused are all of IANA's special-purpose blocks, multicast, what is not global unicast in IPv6,
addresses of 6to4 and Teredo, and Azure's metadata, which has a public address. An IPv4 address
inside an IPv6 one (mapped, or of the well-known prefix of NAT64) is judged as what it is. `allow`
makes exceptions, for those who deliver inside their own network.

Limits: name look-ups take threads of the loop's default executor; a name server that does not
answer holds one of them for as long as the system's resolver waits.

Source: https://www.iana.org/assignments/iana-ipv4-special-registry and the same for IPv6.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from types import TracebackType
from typing import Self, TypeAlias

import aiohttp
from aiohttp.abc import AbstractResolver
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from semantic.errors import GraphMatchError, Place, Problem

CONNECT_SECONDS = 5.0
"""So long the look-up of a name, the connection and its TLS may take."""
TOTAL_SECONDS = 20.0
"""So long a request may take, with its body and that of the answer."""
REPLY_BYTES = 4096
"""So much of an answer's body is read, if nobody asks for more."""

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_FORBIDDEN_4 = {
    IPv4Network(block): name
    for block, name in {
        "0.0.0.0/8": "of this network",
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "shared by a carrier's customers",
        "127.0.0.0/8": "loopback",
        "168.63.129.16/32": "a cloud's metadata",
        "169.254.0.0/16": "link-local",
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "reserved",
        "192.0.2.0/24": "for documentation",
        "192.88.99.0/24": "of 6to4",
        "192.168.0.0/16": "private",
        "198.18.0.0/15": "for benchmarks",
        "198.51.100.0/24": "for documentation",
        "203.0.113.0/24": "for documentation",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved",
    }.items()
}
_FORBIDDEN_6 = {
    IPv6Network(block): name
    for block, name in {
        "::/128": "unspecified",
        "::1/128": "loopback",
        "2001::/32": "of Teredo",
        "2001::/23": "reserved",
        "2001:db8::/32": "for documentation",
        "2002::/16": "of 6to4",
        "3fff::/20": "for documentation",
        "fc00::/7": "private",
        "fe80::/10": "link-local",
        "ff00::/8": "multicast",
    }.items()
}
_GLOBAL_6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")
_NAME_CHARACTERS = 253
_REDIRECTS = (301, 302, 303, 307, 308)
_PRIVATE_HEADERS = ("Authorization", "Cookie")
_LATER = "It may be there later; check the URL."


class TransportError(GraphMatchError):
    """A request without an answer."""


class ForbiddenAddressError(TransportError):
    """A URL or an address to which nothing is sent, now or later."""


class UnreachableError(TransportError):
    """An address from which no whole answer came; a later one may."""


class _RefusedError(OSError):
    """What the socket factory raises: aiohttp passes on errors of the system alone."""


_opened: ContextVar[list[ForbiddenAddressError | None]] = ContextVar("opened")
"""What became of the sockets that were asked for in one request: refused, or not."""


def forbidden(address: Address, allow: Sequence[Network] = ()) -> str | None:
    """Return why nothing is sent to an address; ``None`` where it may be.

    Parameters
    ----------
    allow
        Networks that are exceptions.

    Examples
    --------
    >>> forbidden(ip_address("8.8.8.8"))
    >>> forbidden(ip_address("::ffff:169.254.169.254"))
    'link-local'
    >>> forbidden(ip_address("127.0.0.1"), allow=[ip_network("127.0.0.0/8")])
    """
    inner = _inner(address)
    if any(one in network for network in allow for one in (address, inner)):
        return None
    if isinstance(inner, IPv4Address):
        return next((name for block, name in _FORBIDDEN_4.items() if inner in block), None)
    name = next((name for block, name in _FORBIDDEN_6.items() if inner in block), None)
    return name or (None if inner in _GLOBAL_6 else "reserved")


def _inner(address: Address) -> Address:
    """Return the IPv4 address that packets to an IPv6 address go to, if there is one."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address


def origin(url: URL) -> str:
    """Return scheme, host and port: what of a URL messages and logs may have.

    Examples
    --------
    >>> origin(URL("https://user:word@example.org/hooks/secret?key=1"))
    'https://example.org'
    """
    return str(url.origin()) if url.absolute else "the URL"


def checked_url(text: str | URL, allow: Sequence[Network] = ()) -> URL:
    """Return a URL that may be requested, as far as that can be told before its name is looked up.

    Raises
    ------
    ForbiddenAddressError
        When it is not absolute or neither http nor https, has credentials, a host that cannot be
        one, a number in a form that programs read differently, or a forbidden address.

    Examples
    --------
    >>> checked_url("http://0x7f.1/")
    Traceback (most recent call last):
     ...
    graphmatch.broker.outbox.safe_http.ForbiddenAddressError: http://0x7f.1: its host is an IP address \
in an unusual form. Write it as four decimal numbers.
    """
    try:
        url = URL(text)
        place = Place(origin(url))
    except ValueError as error:
        problem = Problem("it is not a URL", Place("the URL"), "Write `https://`, host and path.")
        raise ForbiddenAddressError(problem) from error
    if url.scheme not in ("http", "https"):
        remedy = "Write a whole URL that begins with `https://` or `http://`."
        raise ForbiddenAddressError(Problem("neither http nor https", place, remedy))
    if url.user is not None or url.password is not None:
        remedy = "Leave them out; requests of the broker are signed."
        raise ForbiddenAddressError(Problem("a URL with credentials", place, remedy))
    host = url.raw_host or ""
    if not url.port or not _is_host(host):
        remedy = "Write the name or address of a host."
        raise ForbiddenAddressError(Problem("its host or its port is invalid", place, remedy))
    try:
        address = ip_address(host)
    except ValueError:
        if _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
            what = "its host is an IP address in an unusual form"
            remedy = "Write it as four decimal numbers."
            raise ForbiddenAddressError(Problem(what, place, remedy)) from None
        return url
    _check(address, allow, place)
    return url


def _is_host(host: str) -> bool:
    """Whether a text can be looked up; Python raises other errors where it cannot."""
    if ":" in host:
        return True  # the URL's parser has read the address
    labels = host.removesuffix(".").split(".")
    return len(host) <= _NAME_CHARACTERS and all(map(_LABEL.fullmatch, labels))


def _check(address: Address, allow: Sequence[Network], place: Place) -> None:
    """Raise an error where nothing may be sent to an address."""
    if why := forbidden(address, allow):
        what = f"nothing is sent to {address}, which is {why}"
        remedy = f"Name a public address, or start graphmatch with --allow {address}."
        raise ForbiddenAddressError(Problem(what, place, remedy))


def http_date(text: str | None) -> datetime | None:
    """Return the time of a header; ``None`` for one that cannot be read.

    Examples
    --------
    >>> http_date("Fri, 02 Jan 2026 03:04:05 GMT").isoformat()
    '2026-01-02T03:04:05+00:00'
    >>> http_date("0") is None
    True
    """
    try:
        date = parsedate_to_datetime(text or "")
    except (ValueError, TypeError, OverflowError):
        return None
    return date.replace(tzinfo=UTC) if date.tzinfo is None else date


def retry_after(text: str | None, now: datetime, most: timedelta) -> timedelta | None:
    """Return how long a ``Retry-After`` asks to wait; ``None`` where it cannot be read.

    Parameters
    ----------
    most
        A longer one is taken for a mistake: this is returned.

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
        return timedelta(seconds=min(float(text), most.total_seconds()))
    until = http_date(text)
    return None if until is None else min(max(until - now, timedelta()), most)


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a request.

    Parameters
    ----------
    status, headers
        As HTTP has them.
    body
        As much as was asked for.
    cut
        Whether there was, or should have been, more of it.
    url
        Who answered: the last hop.
    hops
        The redirects that were followed: the status of each, and where it led.
    """

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes
    cut: bool
    url: str
    hops: tuple[tuple[int, str], ...] = ()


class HttpClient:
    """Requests to addresses that users name; an async context manager.

    It takes no proxies, passwords or cookies from its environment, and keeps none. It has no limit
    of its own for how many requests run: whoever sends bounds that.

    Parameters
    ----------
    allow
        Networks that it may reach though they are not public, such as ``127.0.0.0/8``.
    connect_seconds, total_seconds
        How long a request may take; each hop of a redirect is one.
    tls
        What certificates to trust; without it, those of the system.
    resolver
        What looks up names; without it, the system.

    Examples
    --------
    >>> import asyncio
    >>> async def example() -> None:
    ...     async with HttpClient() as client:
    ...         await client.request("GET", "http://169.254.169.254/latest/meta-data/")
    >>> asyncio.run(example())
    Traceback (most recent call last):
     ...
    graphmatch.broker.outbox.safe_http.ForbiddenAddressError: http://169.254.169.254: nothing is sent to \
169.254.169.254, which is link-local. Name a public address, or start graphmatch with \
--allow 169.254.169.254.
    """

    def __init__(
        self,
        allow: Sequence[Network | str] = (),
        *,
        connect_seconds: float = CONNECT_SECONDS,
        total_seconds: float = TOTAL_SECONDS,
        tls: ssl.SSLContext | None = None,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._allow = tuple(ip_network(one) if isinstance(one, str) else one for one in allow)
        self._timeout = aiohttp.ClientTimeout(total=total_seconds, connect=connect_seconds)
        self._tls, self._resolver = tls, resolver
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(
            socket_factory=self._socket,
            resolver=self._resolver,
            ssl=True if self._tls is None else self._tls,
            limit=0,  # waiting for a free connection would count as the host's being slow
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": f"graphmatch/{version('graphmatch')}"},
            timeout=self._timeout,
            trust_env=False,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    @property
    def session(self) -> aiohttp.ClientSession:
        """What makes the requests, for those who need more than `request` has."""
        if self._session is None:
            what, remedy = "it is not open", "Use it in `async with`."
            raise UnreachableError(Problem(what, Place("client"), remedy))
        return self._session

    def _socket(self, info: aiohttp.AddrInfoType) -> socket.socket:
        """Return a socket for an address that is about to be connected to."""
        family, kind, protocol, _, address = info
        opened = _opened.get([])
        try:
            _check(ip_address(str(address[0])), self._allow, Place("connection"))
        except ForbiddenAddressError as error:
            opened.append(error)
            raise _RefusedError(errno.EACCES, error.problem.what) from error
        opened.append(None)
        return socket.socket(family=family, type=kind, proto=protocol)

    def check(self, url: str | URL) -> URL:
        """Return a URL, or raise what `checked_url` raises, with this client's exceptions."""
        return checked_url(url, self._allow)

    async def request(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        most: int = REPLY_BYTES,
        redirects: int = 0,
        whole: bool = True,
    ) -> Reply:
        """Send a request, and return the answer, whatever its status.

        Parameters
        ----------
        most
            How many bytes of the answer's body to read, after decompression; the rest is dropped
            with the connection.
        redirects
            How many redirects of a GET or HEAD to follow; where there are more, the last answer
            is the redirect itself. ``Authorization`` and ``Cookie`` go to the first host only.
        whole
            Whether a body that breaks off, or comes too slowly, is an error.

        Raises
        ------
        ForbiddenAddressError
            When nothing is sent to the address, or to that of a hop.
        UnreachableError
            When no answer came.
        """
        hop, sent = self.check(url), CIMultiDict(headers or {})
        hops: list[tuple[int, str]] = []
        while True:
            reply = await self._once(method, hop, body, sent, most, whole)
            to = reply.headers.get("Location") if reply.status in _REDIRECTS else None
            if to is None or len(hops) >= redirects or method not in ("GET", "HEAD"):
                break
            try:
                after = hop.join(URL(to))
            except ValueError as error:
                what = "its redirect leads to no URL"
                raise UnreachableError(Problem(what, Place(origin(hop)), _LATER)) from error
            after = self.check(after)
            if after.origin() != hop.origin():
                for name in _PRIVATE_HEADERS:
                    sent.popall(name, None)
            hop = after
            hops.append((reply.status, str(hop)))
        return Reply(reply.status, reply.headers, reply.body, reply.cut, reply.url, tuple(hops))

    async def _once(
        self,
        method: str,
        url: URL,
        body: bytes | None,
        headers: CIMultiDict[str],
        most: int,
        whole: bool,
    ) -> Reply:
        """Send one request, following nothing."""
        if self._session is None:
            msg = "a client is used in `async with`"
            raise RuntimeError(msg)
        opened: list[ForbiddenAddressError | None] = []
        token = _opened.set(opened)
        try:
            async with self._session.request(
                method, url, data=body, headers=headers, allow_redirects=False
            ) as response:
                try:
                    start, cut = await _start(response, most)
                except (aiohttp.ClientError, TimeoutError, OSError):
                    if whole:
                        raise
                    start, cut = b"", True
                if cut:
                    response.close()
                return Reply(response.status, response.headers, start, cut, str(url))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            refused = [one for one in opened if one is not None]
            if refused and len(refused) == len(opened):  # else there was an address to try again
                problem = replace(refused[0].problem, where=Place(origin(url)))
                raise ForbiddenAddressError(problem) from error
            problem = Problem(self._reason(error), Place(origin(url)), _LATER)
            raise UnreachableError(problem) from error
        finally:
            _opened.reset(token)

    def _reason(self, error: Exception) -> str:
        """Return what went wrong, without what the other side says, or the URL's path."""
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            return "the host's name cannot be looked up"
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            said = getattr(error.certificate_error, "verify_message", "")
            return f"the host's certificate is not trusted: {said or 'it cannot be verified'}"
        if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
            return "no TLS connection was made"
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return f"there was no connection within {self._timeout.connect:g} seconds"
        if isinstance(error, TimeoutError):
            return f"there was no whole answer within {self._timeout.total:g} seconds"
        if isinstance(error, aiohttp.ServerDisconnectedError):
            return "the connection was closed"
        if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
            return f"the connection failed: {os.strerror(error.errno)}"
        return "the answer is not valid HTTP"


async def _start(response: aiohttp.ClientResponse, most: int) -> tuple[bytes, bool]:
    """Return the start of a body, and whether there is more of it."""
    start = bytearray()
    while len(start) <= most:
        piece = await response.content.read(most + 1 - len(start))
        if not piece:
            return bytes(start), False
        start += piece
    return bytes(start[:most]), True
