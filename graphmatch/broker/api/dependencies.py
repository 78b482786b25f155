"""Who may do what with the broker's API, and what its endpoints share."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode, urlsplit

from fastapi import Depends, Path, Query, Request
from sqlalchemy import insert, select

from graphmatch.broker.api.problems import BODY_SECONDS, HttpError
from graphmatch.broker.api.sse import ALIVE_SECONDS, Streams
from graphmatch.broker.app.errors import NotFoundError
from graphmatch.broker.app.security import ANYBODY, Principal, read_key
from graphmatch.broker.db.tables import deliveries, matches, owners, subscriptions
from graphmatch.broker.feeds.feed_poller import Poller
from graphmatch.broker.insight.insight_service import InsightService
from graphmatch.broker.metrics import Metrics, without_secrets
from graphmatch.broker.models.schemas import EXAMPLE_ID
from graphmatch.broker.models.times import millis
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import MatchWorker
from semantic.errors import Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping

LOCAL = "local"
"""The owner of subscriptions and publications without a token from this machine."""
LOCAL_SCOPES = frozenset({"feeds", "publish", "subscribe"})
_PROXY_HEADER = re.compile(
    r"via$|cdn-loop|cf-|fastly-|fly-|tailscale-|x-envoy-|x-varnish|([a-z-]*-)?(real|client)-?ip"
    r"|(x-)?(original-)?forwarded"
)
"""The names of headers that only proxies send, or how they begin."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""What a broker that listens on loopback is called; another name is another page's trick."""
LISTED = 100
"""So many things a page of a list has, at most."""
MAX_INT64 = 2**63 - 1
Retry = Callable[[int], Awaitable[None]]
"""Sends a delivery again, by its number."""


@dataclass(frozen=True, slots=True)
class ApiOptions:
    """What the API allows.

    Parameters
    ----------
    local
        Whether requests that come straight from this machine need no token.
    anonymous
        Whether all clients may publish and subscribe without a token.
    hosts
        What may be in the header ``Host``, without the port; ``None``: any.
    url
        The start of all addresses; ``None``: as the client wrote it.
    alive_seconds
        After so long without a match a stream says that it is alive.
    body_seconds
        How long a body may keep us waiting for its next piece.
    hub
        Whether there is a WebSub hub, which match feeds name.
    """

    local: bool = True
    anonymous: bool = False
    hosts: frozenset[str] | None = LOOPBACK
    url: str | None = None
    alive_seconds: float = ALIVE_SECONDS
    body_seconds: float = BODY_SECONDS
    hub: bool = False

    @property
    def netloc(self) -> str | None:
        """The host and the port of `url`."""
        return None if self.url is None else urlsplit(self.url).netloc.lower()


@dataclass(slots=True)
class Api:
    """What the endpoints work with."""

    broker: Broker
    matcher: MatchWorker | None
    streams: Streams
    metrics: Metrics
    options: ApiOptions
    insight: InsightService
    retry: Retry | None = None
    feeds: Poller | None = None
    _local: int | None = field(default=None, init=False)

    def root(self, request: Request) -> str:
        """Return what addresses begin with."""
        return (self.options.url or str(request.base_url)).rstrip("/")

    def next(
        self, request: Request, found: Sequence[Any], limit: int, **last: object
    ) -> str | None:
        """Return the address of the page after one that is full; `last` says where that ends."""
        asked = urlencode({**last, "limit": limit})
        path = f"{self.root(request)}{request.url.path}"
        return f"{path}?{asked}" if len(found) == limit else None

    # -- who may ----------------------------------------------------------------------------

    def token_reason(self, request: Request) -> str | None:
        """Return why a request needs a token; ``None`` if it comes straight from this machine.

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

    def check(
        self, caller: Caller, scope: str, *, open: bool = True, anonymous: bool = False
    ) -> None:
        """Refuse a caller who may not use a scope.

        Parameters
        ----------
        open
            Whether the local user needs no token, even for ``admin``.
        anonymous
            Whether anonymous clients need none, if the options allow them.
        """
        if caller.principal.may(scope) or (open and caller.is_local):
            return
        if caller.principal.owner is not None and not caller.is_local:
            what, remedy = f"the token lacks the scope {scope!r}", "Ask for another."
            raise HttpError(403, Problem(what, Place("Authorization"), remedy))
        if not (anonymous and self.options.anonymous):
            raise unknown(f"this needs a token for {scope!r}{caller.why}")

    async def subscription(self, id: str, caller: Caller, *, reading: bool = False) -> RowMapping:
        """Return the row of a subscription that the caller may change, or read.

        Raises
        ------
        NotThereError
            When there is none, or it is another's; that is noted.
        """
        if caller.principal.owner is not None:
            self.check(caller, "subscribe")
        elif caller.ticket is None and not (reading and caller.key is not None):
            raise unknown(f"this needs the ticket, or the token of the owner{caller.why}")
        try:
            if reading and caller.key is not None:
                mine = select(subscriptions).where(subscriptions.c.id == id)
                row = await self.broker.store.read(
                    lambda db: db.execute(mine).mappings().one_or_none()
                )
                if row is not None and _is_same(read_key(row["ticket"], id), caller.key):
                    return row
            return await self.broker.subscriptions.subscription(id, caller.principal, caller.ticket)
        except NotFoundError:
            await self.denied("subscription", id, caller)
            raise

    async def denied(self, what: str, id: str, caller: Caller) -> None:
        """Note that somebody asked for what is not there, or is another's."""
        subject = without_secrets(f"{what} {id}")[:200]
        await self.broker.accounts.note("denied", subject, caller.name)

    async def owned(self, kind: str, number: int, caller: Caller, *, reading: bool) -> RowMapping:
        """Return the row of the subscription that a match or a delivery is of.

        Raises
        ------
        NotThereError
            When there is none, or it is another's; that is noted.
        """
        table, key = (matches, matches.c.seq) if kind == "match" else (deliveries, deliveries.c.id)
        of = select(subscriptions.c.id).join(table, table.c.subscription == subscriptions.c.number)
        id = await self.broker.store.read(lambda db: db.scalar(of.where(key == number)))
        try:
            return await self.subscription(id or "", caller, reading=reading)
        except NotFoundError:
            what, remedy = f"there is no such {kind}, or it is another's", "Send the ticket."
            raise NotFoundError(Problem(what, Place(str(number)), remedy)) from None


@dataclass(frozen=True, slots=True)
class Caller:
    """The client: with a token, with a ticket, with a key for reading, or the local user.

    Parameters
    ----------
    is_local
        Whether the request has no token and comes straight from this machine.
    why
        Why a token is needed, to end a message with.
    """

    principal: Principal = ANYBODY
    ticket: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    is_local: bool = False
    why: str = ""

    @property
    def name(self) -> str:
        """What the audit log calls them."""
        if self.principal.owner is not None:
            return f"owner {self.principal.owner}"
        return "ticket" if self.ticket else "key" if self.key else "nobody"


def unknown(what: str) -> HttpError:
    """Return the refusal of somebody who has to say who they are."""
    remedy = (
        "Send Authorization: Bearer and a token, or Ticket and a ticket. "
        "The operator makes tokens: graphmatch serve --new-token OWNER:SCOPE."
    )
    headers = {"WWW-Authenticate": 'Bearer realm="graphmatch", Ticket realm="graphmatch"'}
    return HttpError(401, Problem(what, Place("Authorization"), remedy), headers)


def _is_same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode(), other.encode("utf-8", "replace"))


async def api_of(request: Request) -> Api:
    """Return what the endpoints work with."""
    api: Api = request.app.state.api
    return api


async def caller_of(request: Request) -> Caller:
    """Return who asks; refuse a token that is unknown."""
    api = await api_of(request)
    reason = api.token_reason(request)
    is_local, why = reason is None, "" if reason is None else f": {reason}"
    header = request.headers.get("authorization")
    if header is None:
        principal = await api.local_principal() if is_local else ANYBODY
        return Caller(principal, is_local=is_local, why=why)
    scheme, _, value = header.partition(" ")
    value = value.strip()
    if scheme.lower() == "ticket" and value:
        return Caller(ticket=value, why=why)
    if scheme.lower() != "bearer" or not value:
        raise unknown("a way of authorization that is not known here")
    try:
        return Caller(await api.broker.accounts.principal(value))
    except NotFoundError as error:
        raise unknown(error.problem.what) from None


async def local_owner(broker: Broker) -> int:
    """Return the number of the local owner; make the owner if need be."""
    mine = select(owners.c.id).where(owners.c.name == LOCAL)
    number = await broker.store.read(lambda db: db.scalar(mine))
    if number is not None:
        return int(number)

    def work(db: Connection) -> int:
        found = db.scalar(mine)
        if found is None:
            row = insert(owners).values(name=LOCAL, created_at=millis(broker.clock()))
            found = db.scalar(row.returning(owners.c.id))
        assert found is not None
        return int(found)

    return await broker.store.write(work)


TheApi = Annotated[Api, Depends(api_of)]
TheCaller = Annotated[Caller, Depends(caller_of)]
Key = Annotated[
    str | None, Query(max_length=200, description="The key for reading, instead of a header.")
]


async def reader_of(by: TheCaller, key: Key = None) -> Caller:
    """Return who asks, where a key for reading is enough; a wrong key is refused locally, too."""
    principal = ANYBODY if key is not None and by.is_local else by.principal
    return replace(by, key=key, principal=principal)


TheReader = Annotated[Caller, Depends(reader_of)]
Id = Annotated[str, Path(max_length=100, examples=[EXAMPLE_ID])]
Number = Annotated[int, Path(ge=1, le=MAX_INT64, examples=[41])]
Since = Annotated[
    int | None, Query(ge=0, le=MAX_INT64, description="The last match that is known; 0: none.")
]
Before = Annotated[int | None, Query(ge=1, le=MAX_INT64, description="Older than this one.")]
Limit = Annotated[int, Query(ge=1, le=LISTED, description="How many, at most.")]


def document_body(examples: Mapping[str, str]) -> dict[str, Any]:
    """Return the description of a request whose body is a document of some media types."""
    content = {
        media_type: {"schema": {"type": "string"}, "example": example}
        for media_type, example in examples.items()
    }
    return {"requestBody": {"required": True, "content": content}}


def media_type_of(request: Request, known: Iterable[str]) -> str:
    """Return the media type of a request's body; refuse one that is not among those known."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in known:
        what, remedy = "this media type is not supported", f"Send {', '.join(known)}."
        raise HttpError(415, Problem(what, Place("Content-Type"), remedy))
    return media_type


def preferred(accept: str | None, offered: Sequence[str]) -> str:
    """Return which of some media types a client likes best; the first of equals.

    Raises
    ------
    HttpError
        When it takes none of them.

    Examples
    --------
    >>> preferred("text/turtle;q=0.5, application/*", ("text/turtle", "application/ld+json"))
    'application/ld+json'
    >>> preferred(None, ("text/turtle",))
    'text/turtle'
    """
    best: tuple[float, str] = (0.0, "")
    for one in offered:
        quality, near = 0.0, -1
        for part in (accept or "*/*").split(","):
            name, *parameters = (piece.strip().lower() for piece in part.split(";"))
            wide = {one: 2, one.partition("/")[0] + "/*": 1, "*/*": 0}.get(name, -1)
            if wide > near:
                near, quality = wide, _quality(parameters)
        if quality > best[0]:
            best = (quality, one)
    if not best[1]:
        what, remedy = "no accepted media type is available", f"There is {', '.join(offered)}."
        raise HttpError(406, Problem(what, Place("Accept"), remedy))
    return best[1]


def _quality(parameters: Sequence[str]) -> float:
    for one in parameters:
        if one.startswith("q="):
            try:
                quality = float(one[2:])
            except ValueError:
                return 0.0
            return quality if 0 <= quality <= 1 else 0.0
    return 1.0
