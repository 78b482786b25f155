"""Clients, their permissions, and the parameters that endpoints share."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from secrets import compare_digest
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import urlencode, urlsplit

from fastapi import Depends, Header, Path, Query, Request
from sqlalchemy import insert, select

from graphmatch.broker.api.guard import BODY_SECONDS
from graphmatch.broker.api.problems import HttpError
from graphmatch.broker.api.sse import ALIVE_SECONDS, Streams
from graphmatch.broker.app.errors import NotFoundError
from graphmatch.broker.app.rate_limits import RateLimiter
from graphmatch.broker.app.security import ANYBODY, Principal, read_key
from graphmatch.broker.db.tables import deliveries, matches, owners, subscriptions
from graphmatch.broker.feeds.feed_poller import Poller
from graphmatch.broker.insight.insight_service import InsightService
from graphmatch.broker.metrics import Metrics, without_secrets
from graphmatch.broker.models.base import EXAMPLE_ID
from graphmatch.broker.models.times import millis
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import MatchWorker
from semantic.errors import Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping

LOCAL = "local"
"""Owner of the objects that local clients create without a token."""
LOCAL_SCOPES = frozenset({"feeds", "publish", "subscribe"})
_PROXY_HEADER = re.compile(
    r"via$|cdn-loop|cf-|fastly-|fly-|tailscale-|x-envoy-|x-varnish|([a-z-]*-)?(real|client)-?ip"
    r"|(x-)?(original-)?forwarded"
)
"""Names, or beginnings of names, of headers that only proxies send."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""Host names of a broker that listens on loopback. Others show an attack (DNS rebinding)."""
LISTED = 100
"""Limit of objects on a page of a list."""
MAX_NUMBER = 2**53 - 1
"""Largest number in requests. JSON parsers of many languages round larger ones."""
MAX_KEY = 255
"""Limit of the length of an idempotency key."""
_QUALITY = re.compile(r";\s*q=([01](\.\d*)?)\s*(;|$)")
T = TypeVar("T")
Retry = Callable[[int], Awaitable[None]]
"""Sends a delivery again, by its number."""


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
    body_seconds
        Time limit for the next part of a body.
    hub
        Whether match feeds name the broker's WebSub hub.
    cors_origins
        Origins whose pages may use the API in a browser (CORS).
    """

    local: bool = True
    anonymous: bool = False
    hosts: frozenset[str] | None = LOOPBACK
    url: str | None = None
    alive_seconds: float = ALIVE_SECONDS
    body_seconds: float = BODY_SECONDS
    hub: bool = False
    cors_origins: tuple[str, ...] = ()

    @property
    def netloc(self) -> str | None:
        """Host and port of `url`."""
        return None if self.url is None else urlsplit(self.url).netloc.lower()


@dataclass(slots=True)
class Api:
    """The objects that endpoints use."""

    broker: Broker
    matcher: MatchWorker | None
    streams: Streams
    metrics: Metrics
    options: ApiOptions
    insight: InsightService
    retry: Retry | None = None
    feeds: Poller | None = None
    on_matched: Callable[[Sequence[int]], None] = lambda _: None
    limiter: RateLimiter = field(default_factory=RateLimiter)
    _local: int | None = field(default=None, init=False)

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
        for name in request.headers:
            if _PROXY_HEADER.match(name.replace("_", "-")):
                return f"the request came through a proxy, which added the header {name[:50]}"
        if request.scope["http_version"] < "1.1":
            return "the request uses HTTP/1.0, as a proxy does"
        return None

    async def local_principal(self) -> Principal:
        """Return the local owner, who needs no token."""
        if self._local is None:
            self._local = await local_owner(self.broker)
        return Principal(self._local, LOCAL_SCOPES)


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
        """Return the address of the page after a full one, which begins at a position."""
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
            raise unknown(f"this needs a token for {scope!r}{self.why}")

    @property
    def name(self) -> str:
        """The name in the audit log."""
        if self.owner is not None:
            return f"owner {self.owner}"
        return "ticket" if self.ticket else "key" if self.key else "anonymous"

    async def denied(self, kind: str, id: str) -> None:
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
        has_key = reading and self.key is not None
        if self.owner is not None:
            self.check("subscribe")
        elif self.ticket is None and not has_key:
            raise unknown(f"this needs the ticket, or the token of the owner{self.why}")
        try:
            if has_key:
                mine = select(subscriptions).where(subscriptions.c.id == id)
                row = await self.read(lambda db: db.execute(mine).mappings().one_or_none())
                if row is not None and compare_digest(
                    read_key(row["ticket"], id).encode(), str(self.key).encode("utf-8", "replace")
                ):
                    return row
            service = self.api.broker.subscriptions
            return await service.subscription(id, self.principal, self.ticket)
        except NotFoundError:
            await self.denied("subscription", id)
            raise

    async def owned(self, kind: str, number: int, *, reading: bool) -> RowMapping:
        """Return the row of the subscription of a match or a delivery.

        Raises
        ------
        NotFoundError
            If it does not exist or belongs to another owner. The audit log has the refusal.
        """
        table, key = (matches, matches.c.seq) if kind == "match" else (deliveries, deliveries.c.id)
        of = select(subscriptions.c.id).join(table, table.c.subscription == subscriptions.c.number)
        id = await self.read(lambda db: db.scalar(of.where(key == number)))
        try:
            return await self.subscription(id or "", reading=reading)
        except NotFoundError:
            what = f"the {kind} does not exist or belongs to another owner"
            raise NotFoundError(Problem(what, Place(str(number)), "Send the ticket.")) from None


def unknown(what: str) -> HttpError:
    """Return the refusal of a client without a valid token."""
    remedy = (
        "Send Authorization: Bearer and a token, or Ticket and a ticket. "
        "The operator makes tokens: graphmatch serve --new-token OWNER:SCOPE."
    )
    headers = {"WWW-Authenticate": 'Bearer realm="graphmatch", Ticket realm="graphmatch"'}
    return HttpError(401, Problem(what, Place("Authorization"), remedy), headers)


async def api_of(request: Request) -> Api:
    """Return the objects that endpoints use."""
    api: Api = request.app.state.api
    return api


def address_of(request: Request) -> str:
    """Return the address of a client. A proxy adds it to the end of ``X-Forwarded-For``."""
    host = request.client.host if request.client is not None else ""
    if host in ("127.0.0.1", "::1"):
        host = ",".join(request.headers.getlist("x-forwarded-for")) or host
    return host.rpartition(",")[2].strip()[:100]


async def caller_of(request: Request) -> Caller:
    """Return the client of a request, within its rate limit; refuse an unknown token."""
    api = await api_of(request)
    caller = await _authenticated(Caller(api, request))
    if not caller.is_local:
        owner = caller.owner
        key = f"address {address_of(request)}" if owner is None else f"owner {owner}"
        api.limiter.check(key, api.broker.limits.requests)
    return caller


async def _authenticated(caller: Caller) -> Caller:
    api, request = caller.api, caller.request
    reason = api.token_reason(request)
    caller = replace(caller, why="" if reason is None else f": {reason}")
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    value = value.strip()
    if "authorization" not in request.headers:
        if reason is not None:
            return caller
        return replace(caller, principal=await api.local_principal(), is_local=True)
    if scheme.lower() == "ticket" and value:
        return replace(caller, ticket=value)
    if scheme.lower() != "bearer" or not value:
        raise unknown("the scheme of the authorization is unknown")
    api.limiter.check_failures(address_of(request))
    try:
        return replace(caller, principal=await api.broker.accounts.principal(value))
    except NotFoundError as error:
        api.limiter.failed(address_of(request))
        raise unknown(error.problem.what) from None


async def local_owner(broker: Broker) -> int:
    """Return the number of the local owner, who is created if needed."""
    mine = select(owners.c.id).where(owners.c.name == LOCAL)
    new = insert(owners).values(name=LOCAL, created_at=millis(broker.clock()))

    def work(db: Connection) -> int:
        number: int | None = db.scalar(mine)
        if number is None:
            number = db.execute(new.returning(owners.c.id)).scalar_one()
        return number

    number: int | None = await broker.store.read(lambda db: db.scalar(mine))
    return await broker.store.write(work) if number is None else number


TheApi = Annotated[Api, Depends(api_of)]
TheCaller = Annotated[Caller, Depends(caller_of)]
Key = Annotated[
    str | None, Query(max_length=200, description="The key for reading, instead of a header.")
]


async def reader_of(by: TheCaller, key: Key = None) -> Caller:
    """Return a client that may read with a key. A local client with a wrong key is refused, too."""
    principal = ANYBODY if key is not None and by.is_local else by.principal
    return replace(by, key=key, principal=principal)


TheReader = Annotated[Caller, Depends(reader_of)]
Id = Annotated[str, Path(max_length=100, examples=[EXAMPLE_ID])]
Number = Annotated[int, Path(ge=1, le=MAX_NUMBER, examples=[41])]
Since = Annotated[
    int | None, Query(ge=0, le=MAX_NUMBER, description="Number of the last known match, or 0.")
]
Before = Annotated[int | None, Query(ge=1, le=MAX_NUMBER, description="Only older ones.")]
Limit = Annotated[int, Query(ge=1, le=LISTED, description="Size of the page.")]
IdempotencyKey = Annotated[
    str | None, Header(max_length=MAX_KEY, description="A repeated request with it has no effect.")
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
        media_type: {"schema": {"type": "string"}} | ({"example": text} if text else {})
        for media_type, text in examples.items()
    }
    return {"requestBody": {"required": True, "content": content}}


def media_type_of(request: Request, known: Iterable[str]) -> str:
    """Return the media type of a body, which must be among the known ones."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in known:
        what = f"the media type {media_type[:100]!r} is not supported"
        remedy = f"Send {', '.join(filter(None, known))}."
        raise HttpError(415, Problem(what, Place("Content-Type"), remedy))
    return media_type


def preferred(accept: str | None, offered: Sequence[str]) -> str:
    """Return the media type that a client prefers, or the first of equals.

    Raises
    ------
    HttpError
        If the client accepts none of them.

    Examples
    --------
    >>> preferred("text/turtle;q=0.5, application/*", ("text/turtle", "application/ld+json"))
    'application/ld+json'
    >>> preferred(None, ("text/turtle",))
    'text/turtle'
    """
    qualities: dict[str, float] = {}
    for part in (accept or "*/*").lower().split(","):
        quality = _QUALITY.search(part)
        qualities[part.partition(";")[0].strip()] = float(quality[1]) if quality else 1.0

    def quality_of(media_type: str) -> float:
        ranges = (media_type, media_type.partition("/")[0] + "/*", "*/*")
        return next((qualities[one] for one in ranges if one in qualities), 0.0)

    best = max(offered, key=quality_of)
    if not quality_of(best):
        what, remedy = "no accepted media type is available", f"Accept {', '.join(offered)}."
        raise HttpError(406, Problem(what, Place("Accept"), remedy))
    return best
