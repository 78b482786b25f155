"""Clients, their permissions, and the parameters that endpoints share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from fastapi import Depends, Header, Path, Query, Request
from sqlalchemy import Connection, RowMapping, insert, select

from graphmatch.broker.api.problems import HttpError, media_type
from graphmatch.broker.api.sse import ALIVE_SECONDS, Streams
from graphmatch.broker.app.errors import NotFoundError
from graphmatch.broker.app.rate_limits import RateLimiter
from graphmatch.broker.app.security import ANYBODY, Principal, is_same, read_key
from graphmatch.broker.db.tables import deliveries, matches, owners, subscriptions
from graphmatch.broker.feeds.feed_poller import Poller
from graphmatch.broker.insight.insight_service import InsightService
from graphmatch.broker.metrics import Metrics, without_secrets
from graphmatch.broker.models.base import EXAMPLE_ID
from graphmatch.broker.models.times import millis
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import MatchWorker
from semantic.errors import Place, Problem

LOCAL = "local"
"""Owner of the objects that local clients create without a token."""
LOCAL_SCOPES = frozenset({"feeds", "publish", "subscribe"})
_PROXY_PREFIXES = (
    *("via", "cdn-loop", "cf-", "fastly-", "fly-", "tailscale-", "x-envoy-", "x-varnish"),
    *("forwarded", "original-forwarded", "x-forwarded", "x-original-forwarded"),
)
_PROXY_SUFFIXES = ("real-ip", "realip", "client-ip", "clientip")
"""Beginnings and ends of the names of headers that only proxies send."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""Host names of a broker that listens on loopback. Others show an attack (DNS rebinding)."""
LISTED = 100
"""Limit of objects on a page of a list."""
MAX_NUMBER = 2**53 - 1
"""Largest number in requests. JSON parsers of many languages round larger ones."""
MAX_KEY = 255
"""Limit of the length of an idempotency key."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ApiOptions:
    """Options of the API.

    Parameters
    ----------
    local
        Whether requests that come directly from this machine need no token.
    anonymous
        Whether all clients may publish and subscribe without a token.
    hosts
        Values of the header ``Host`` without the port; ``None`` allows all.
    url
        Base URL of all addresses; by default as in the request.
    alive_seconds
        Seconds between two signs of life of a stream.
    cors_origins
        Origins whose pages may use the API in a browser (CORS).
    """

    local: bool = True
    anonymous: bool = False
    hosts: frozenset[str] | None = LOOPBACK
    url: str | None = None
    alive_seconds: float = ALIVE_SECONDS
    cors_origins: Sequence[str] = ()


class Api:
    """The objects that endpoints use.

    Parameters
    ----------
    broker
        The broker.
    matcher
        Its match worker. The caller starts and stops it.
    feeds
        Follows feeds.
    retry
        Sends a delivery again, by its number.
    options
        Options of the API.
    on_matched
        Called with the numbers of subscriptions that have new matches or deliveries; by default it
        wakes their event streams.
    """

    def __init__(
        self,
        broker: Broker,
        matcher: MatchWorker | None,
        feeds: Poller,
        retry: Callable[[int], Awaitable[None]],
        options: ApiOptions | None = None,
        on_matched: Callable[[Sequence[int]], None] | None = None,
    ) -> None:
        self.broker, self.matcher, self.feeds, self.retry = broker, matcher, feeds, retry
        self.options = options or ApiOptions()
        self.streams = Streams(broker, self.options.alive_seconds)
        self.on_matched = on_matched or self.streams.notify
        self.metrics = Metrics(broker.store, broker.clock)
        self.metrics.registry.register(broker.supervisor)
        self.insight, self.limiter = InsightService(broker), RateLimiter()
        self._local: Principal | None = None

    def root(self, request: Request) -> str:
        """Return the base URL of all addresses."""
        scheme, host = request.scope["scheme"], request.headers.get("host", "")
        return (self.options.url or f"{scheme}://{host}").rstrip("/")

    def token_reason(self, request: Request) -> str | None:
        """Return why a request needs a token; ``None`` if it comes directly from this machine.

        A proxy on this machine also connects from loopback. Most proxies add a header. nginx
        before 1.29.7 does not by default, but it sends HTTP/1.0.
        """
        if not self.options.local:
            return "the broker is open to other machines"
        for header in request.headers:
            name = header.replace("_", "-")
            if name.startswith(_PROXY_PREFIXES) or name.endswith(_PROXY_SUFFIXES):
                return f"the request came through a proxy, which added the header {header[:50]}"
        if request.scope["http_version"] < "1.1":
            return "the request uses HTTP/1.0, as a proxy does"
        return None

    async def local_principal(self) -> Principal:
        """Return the local owner, who needs no token."""
        if self._local is None:
            self._local = Principal(await local_owner(self.broker), LOCAL_SCOPES)
        return self._local


@dataclass(frozen=True, slots=True)
class Caller:
    """A request, and its client: with a token, a ticket or a key for reading, or the local user.

    Parameters
    ----------
    is_local
        Whether the request has no token and comes directly from this machine.
    why
        Why a token is needed, as the end of a message.
    """

    api: Api
    request: Request
    principal: Principal = ANYBODY
    ticket: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    is_local: bool = False
    why: str = ""

    @property
    def root(self) -> str:
        """The base URL of all addresses."""
        return self.api.root(self.request)

    @property
    def owner(self) -> int | None:
        """The number of the token's owner, or of the local user."""
        return self.principal.owner

    def next(self, rows: Sequence[Any], limit: int, **position: object) -> str | None:
        """Return the URL of the next page; ``None`` if this page is not full."""
        address = f"{self.root}{self.request.url.path}?{urlencode({**position, 'limit': limit})}"
        return address if len(rows) == limit else None

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Read the store."""
        return await self.api.broker.store.read(work)

    def check(self, scope: str, *, open: bool = True, anonymous: bool = False) -> None:
        """Refuse a caller without a scope.

        Parameters
        ----------
        open
            Whether the local user needs no token, even for ``admin``.
        anonymous
            Whether anonymous clients need none, if the options allow them.
        """
        if self.principal.may(scope) or (open and self.is_local):
            return
        if self.owner is not None and not self.is_local:
            what = f"the token lacks the scope {scope!r}"
            raise HttpError(403, Problem(what, Place("Authorization"), "Send another token."))
        if not (anonymous and self.api.options.anonymous):
            raise unauthorized(f"this needs a token for {scope!r}{self.why}")

    @property
    def name(self) -> str:
        """The name in the audit log."""
        if self.owner is not None:
            return f"owner {self.owner}"
        return "ticket" if self.ticket else "key" if self.key else "anonymous"

    async def denied(self, kind: str, id: object) -> None:
        """Record a request for an object that does not exist or belongs to another owner."""
        target = without_secrets(f"{kind} {id}")[:200]
        await self.api.broker.accounts.note("denied", target, self.name)

    async def subscription(self, id: str, *, reading: bool = False) -> RowMapping:
        """Return the row of a subscription that the caller may change, or read.

        Raises
        ------
        NotFoundError
            If it does not exist or belongs to another owner. The audit log has the refusal.
        """
        key = self.key if reading else None
        if self.owner is not None:
            self.check("subscribe")
        elif self.ticket is None and key is None:
            raise unauthorized(f"this needs the ticket, or the token of the owner{self.why}")
        try:
            if key is not None:
                chosen = select(subscriptions).where(subscriptions.c.id == id)
                row = await self.read(lambda db: db.execute(chosen).mappings().one_or_none())
                if row is not None and is_same(key, read_key(row["ticket"], id)):
                    return row
            service = self.api.broker.subscriptions
            return await service.subscription(id, self.principal, self.ticket)
        except NotFoundError:
            await self.denied("subscription", id)
            raise

    async def owned(self, kind: str, number: int, *, reading: bool = False) -> RowMapping:
        """Return the row of the subscription of a match or a delivery.

        Raises
        ------
        NotFoundError
            If it does not exist or belongs to another owner. The audit log has the refusal.
        """
        table, key = (matches, matches.c.seq) if kind == "match" else (deliveries, deliveries.c.id)
        is_its = table.c.subscription == subscriptions.c.number
        chosen = select(subscriptions.c.id).join(table, is_its).where(key == number)
        id = await self.read(lambda db: db.scalar(chosen))
        try:
            return await self.subscription(id or "", reading=reading)
        except NotFoundError:
            what = f"the {kind} does not exist or belongs to another owner"
            raise NotFoundError(Problem(what, Place(str(number)), "Send the ticket.")) from None


def unauthorized(what: str) -> HttpError:
    """Return the refusal of a client without a valid token."""
    remedy = "Send a token or a ticket. To make a token: graphmatch serve --new-token OWNER:SCOPE."
    headers = {"WWW-Authenticate": 'Bearer realm="graphmatch", Ticket realm="graphmatch"'}
    return HttpError(401, Problem(what, Place("Authorization"), remedy), headers)


async def api_of(request: Request) -> Api:
    """Return the objects that endpoints use."""
    api: Api = request.app.state.api
    return api


def address_of(request: Request) -> str:
    """Return the address of a client; behind a proxy on this machine, that which the proxy adds."""
    host = request.client.host if request.client is not None else ""
    if host in ("127.0.0.1", "::1"):
        host = ",".join(request.headers.getlist("x-forwarded-for")) or host
    return host.rpartition(",")[2].strip()[:100]


async def caller_of(request: Request) -> Caller:
    """Return the client of a request; refuse an unknown token, and too many requests of others."""
    api = await api_of(request)
    reason = api.token_reason(request)
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if not scheme and reason is None:
        return Caller(api, request, await api.local_principal(), is_local=True)
    scheme, value, principal = scheme.lower(), value.strip(), ANYBODY
    if scheme == "bearer" and value:
        principal = await _principal(api, request, value)
    elif scheme and not (scheme == "ticket" and value):
        raise unauthorized("the header is neither Bearer and a token nor Ticket and a ticket")
    user = principal.owner
    key = f"address {address_of(request)}" if user is None else f"owner {user}"
    api.limiter.check(key, api.broker.limits.requests)
    ticket = value if scheme == "ticket" else None
    return Caller(api, request, principal, ticket, why=f": {reason}" if reason else "")


async def _principal(api: Api, request: Request, token: str) -> Principal:
    """Return the principal of a token. Wrong tokens are counted by address."""
    address = address_of(request)
    api.limiter.check_failures(address)
    try:
        return await api.broker.accounts.principal(token)
    except NotFoundError as error:
        api.limiter.failed(address)
        raise unauthorized(error.problem.what) from None


async def local_owner(broker: Broker) -> int:
    """Return the number of the local owner, who is created if needed."""
    new = insert(owners).values(name=LOCAL, created_at=millis(broker.clock()))

    def work(db: Connection) -> int:
        number: int | None = db.scalar(select(owners.c.id).where(owners.c.name == LOCAL))
        return number or db.execute(new.returning(owners.c.id)).scalar_one()

    return await broker.store.write(work)


TheApi = Annotated[Api, Depends(api_of)]
TheCaller = Annotated[Caller, Depends(caller_of)]
Key = Annotated[str | None, Query(max_length=200, description="The key for reading.")]


async def reader_of(by: TheCaller, key: Key = None) -> Caller:
    """Return a client that may read with a key. If a local client sends a key, only that counts."""
    principal = ANYBODY if key is not None and by.is_local else by.principal
    return replace(by, key=key, principal=principal)


TheReader = Annotated[Caller, Depends(reader_of)]
Id = Annotated[str, Path(max_length=100, examples=[EXAMPLE_ID])]
Number = Annotated[int, Path(ge=1, le=MAX_NUMBER, examples=[41])]
Since = Annotated[int | None, Query(ge=0, le=MAX_NUMBER, description="Last known match, or 0.")]
Before = Annotated[int | None, Query(ge=1, le=MAX_NUMBER, description="Only older ones.")]
Limit = Annotated[int, Query(ge=1, le=LISTED, description="Size of the page.")]
IdempotencyKey = Annotated[
    str | None, Header(max_length=MAX_KEY, description="A repeated request gets the same response.")
]


def content_of(
    *media_types: str, description: str = "The document.", **content: Any
) -> dict[int | str, Any]:
    """Return the description of a response that is a text in one of some media types."""
    one = {"schema": {"type": "string"}, **content}
    return {200: {"description": description, "content": dict.fromkeys(media_types, one)}}


def document_body(examples: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the description of a body that is a document, with examples by media type."""
    content = {
        name: {"schema": {"type": "string"}} | ({"example": text} if text else {})
        for name, text in examples.items()
    }
    return {"requestBody": {"required": True, "content": content}}


def media_type_of(request: Request, known: Iterable[str]) -> str:
    """Return the media type of a body, which must be among the known ones."""
    name = media_type(request.headers)
    if name not in known:
        what = f"the media type {name[:100]!r} is not supported"
        remedy = f"Send {', '.join(filter(None, known))}."
        raise HttpError(415, Problem(what, Place("Content-Type"), remedy))
    return name


def preferred(accept: str | None, offered: Sequence[str]) -> str:
    """Return the first accepted media type, in the order of the client.

    Raises
    ------
    HttpError
        If the client accepts none of them.

    Examples
    --------
    >>> preferred("text/turtle, */*;q=0.5", ("application/ld+json", "text/turtle"))
    'text/turtle'
    >>> preferred(None, ("text/turtle",))
    'text/turtle'
    """
    for part in (accept or "*/*").lower().split(","):
        accepted = part.partition(";")[0].strip()
        for name in offered:
            if accepted in (name, f"{name.partition('/')[0]}/*", "*/*"):
                return name
    what, remedy = "no accepted media type is available", f"Accept {', '.join(offered)}."
    raise HttpError(406, Problem(what, Place("Accept"), remedy))
