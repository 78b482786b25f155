"""The broker's HTTP API, under ``/v1``.

Who may do what: an API token is sent as ``Authorization: Bearer gmk_…`` and has scopes. What
belongs to a subscription may also be asked for with its ticket, ``Authorization: Ticket gmt_…``;
and read with its key, ``?key=gmr_…``, for those who cannot send headers: feed readers, and
``EventSource`` in browsers. A request that comes straight from this machine needs no token: it is
made by the owner ``local`` (`ApiOptions.local`). An object of another owner is
answered with 404, and noted in the audit log.

``/v1/publications`` is an inbox as Linked Data Notifications have it
(https://www.w3.org/TR/ldn/): found by the header ``Link`` of ``/``, posted to, and listed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Body, FastAPI, Header, Path, Query, Request
from fastapi.openapi.utils import get_openapi
from sqlalchemy import select, update
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.types import Scope

import graphmatch
from graphmatch.broker.api.dependencies import (
    LISTED,
    MAX_INT64,
    Api,
    ApiOptions,
    Before,
    Caller,
    Id,
    Limit,
    Number,
    Retry,
    Since,
    TheApi,
    TheCaller,
    TheReader,
)
from graphmatch.broker.api.feeds import followed
from graphmatch.broker.api.insight import publication_row, questions
from graphmatch.broker.api.problems import Guard, HttpError, handle
from graphmatch.broker.api.publications import LDP, inbox
from graphmatch.broker.api.sse import PAGE, Streams
from graphmatch.broker.app.security import digest_of, read_key
from graphmatch.broker.db.match_queries import match_of, matches_after
from graphmatch.broker.db.queries import WITH_MATCHES, stored
from graphmatch.broker.db.store import StoreError, counter
from graphmatch.broker.db.tables import deliveries, matches, subscriptions
from graphmatch.broker.feeds.feed_list import Feeds
from graphmatch.broker.insight.insight_service import InsightService
from graphmatch.broker.metrics import Metrics, without_secrets
from graphmatch.broker.models import schemas as show
from graphmatch.broker.models.subscription_settings import SubscriptionSettings
from graphmatch.broker.models.times import millis
from graphmatch.broker.outbox.match_feed import atom, feed_url, match_view
from graphmatch.broker.outbox.websub_protocol import hub_links, hub_of
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import MatchWorker
from semantic.errors import Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping
    from structlog.typing import FilteringBoundLogger

router = APIRouter(prefix="/v1")


# -- subscriptions ------------------------------------------------------------------------------


def links_of(row: Mapping[Any, Any], root: str) -> show.Links:
    """Return where the rest of a subscription is."""
    own = f"{root}/v1/subscriptions/{row['id']}"
    return show.Links(
        self=own,
        matches=f"{own}/matches",
        events=f"{own}/events?since=0",
        feed=feed_url(row, root),
        deliveries=f"{own}/deliveries",
    )


def subscription_view(row: Mapping[Any, Any], root: str) -> show.SubscriptionView:
    """Return a subscription without its secrets."""
    sink = {key: value for key, value in row["sink"].items() if key not in ("secret", "token")}
    when = show.times(row, "created_at", "expires_at", "last_matched_at")
    same = ("id", "name", "state", "reason", "definition", "query", "generation", "match_count")
    shown = {key: row[key] for key in same} | when
    shown |= {key: show.clock_times(row[key]) for key in ("digest", "quiet_hours")}
    return show.SubscriptionView(**shown, sink=sink, links=links_of(row, root))


@router.post("/subscriptions", status_code=201, summary="Subscribe")
async def subscribe(
    body: show.SubscriptionRequest, request: Request, response: Response, api: TheApi, by: TheCaller
) -> show.CreatedView:
    """Take a subscription in; it sees what is published from now on."""
    api.check(by, "subscribe", anonymous=True)
    made = await api.broker.subscriptions.subscribe(
        body.given() or {}, body.settings(), by.principal
    )
    row = {"id": made.id, "ticket": digest_of(made.ticket)}
    links = links_of(row, api.root(request))
    response.headers["Location"] = links.self
    return show.CreatedView(
        id=made.id,
        ticket=made.ticket,
        secret=made.secret,
        read_key=read_key(row["ticket"], made.id),  # type: ignore[arg-type]
        expires_at=made.expires_at,
        links=links,
    )


@router.get("/subscriptions", summary="List one's subscriptions")
async def list_subscriptions(
    request: Request,
    api: TheApi,
    by: TheCaller,
    after: Annotated[int, Query(ge=0, le=MAX_INT64, description="From the page before.")] = 0,
    limit: Limit = LISTED,
) -> show.SubscriptionsPage:
    """Return the subscriptions of the token's owner, or of the local user; of all to an admin."""
    api.check(by, "subscribe", open=False)
    table, root = subscriptions.c, api.root(request)
    chosen = WITH_MATCHES.where(table.number > after).order_by(table.number)
    if not by.principal.is_admin:
        chosen = chosen.where(table.owner == by.principal.owner)
    rows = await api.broker.store.read(lambda db: db.execute(chosen.limit(limit)).mappings().all())
    return show.SubscriptionsPage(
        subscriptions=[subscription_view(row, root) for row in rows],
        next=api.next(request, rows, limit, after=rows[-1]["number"] if rows else after),
    )


@router.get("/subscriptions/{id}", summary="Look at a subscription")
async def get_subscription(
    id: Id, request: Request, api: TheApi, by: TheCaller
) -> show.SubscriptionView:
    """Return a subscription, also one that has ended."""
    return subscription_view(await api.subscription(id, by), api.root(request))


async def _changed(
    api: Api,
    by: Caller,
    id: str,
    request: Request,
    settings: SubscriptionSettings | None = None,
    given: Mapping[str, Any] | None = None,
    state: str | None = None,
) -> show.ChangedView:
    await api.subscription(id, by)  # says and notes who may not
    secret = await api.broker.subscriptions.change(
        id, by.principal, by.ticket, given=given, settings=settings, state=state
    )
    row = await api.subscription(id, by)
    view = subscription_view(row, api.root(request))
    return show.ChangedView(subscription=view, secret=secret)


@router.patch("/subscriptions/{id}", summary="Change a subscription")
async def change(
    id: Id, body: show.SubscriptionChange, request: Request, api: TheApi, by: TheCaller
) -> show.ChangedView:
    """Change what is said; the rest stays. A changed query sees what is published from now on."""
    return await _changed(api, by, id, request, body.settings(), body.given())


@router.delete("/subscriptions/{id}", status_code=204, summary="Unsubscribe")
async def unsubscribe(id: Id, api: TheApi, by: TheCaller) -> Response:
    """End a subscription; its matches can be read as long as those of others."""
    row = await api.subscription(id, by)
    await api.broker.subscriptions.unsubscribe(id, by.principal, by.ticket)
    api.streams.wake([row["number"]])
    return Response(status_code=204)


@router.post("/subscriptions/{id}/renew", summary="Renew a subscription")
async def renew(
    id: Id,
    request: Request,
    api: TheApi,
    by: TheCaller,
    body: Annotated[show.Renewal | None, Body()] = None,
) -> show.ChangedView:
    """Have a subscription last longer, from now on."""
    seconds = None if body is None else body.expires_in
    length = api.broker.limits.validity if seconds is None else timedelta(seconds=seconds)
    return await _changed(api, by, id, request, SubscriptionSettings(expires_in=length))


@router.post("/subscriptions/{id}/pause", summary="Pause a subscription")
async def pause(id: Id, request: Request, api: TheApi, by: TheCaller) -> show.ChangedView:
    """Have a subscription match nothing until it is resumed."""
    return await _changed(api, by, id, request, state="paused")


@router.post("/subscriptions/{id}/resume", summary="Resume a subscription")
async def resume(id: Id, request: Request, api: TheApi, by: TheCaller) -> show.ChangedView:
    """Have a paused subscription match again what is published from now on."""
    return await _changed(api, by, id, request, state="active")


# -- matches ------------------------------------------------------------------------------------


@router.get("/subscriptions/{id}/matches", summary="Read matches in pages")
async def list_matches(
    id: Id,
    request: Request,
    api: TheApi,
    by: TheReader,
    since: Since = None,
    limit: Limit = PAGE,
) -> show.MatchesPage:
    """Return matches after `since`, oldest first, as long as they are kept."""
    row = await api.subscription(id, by, reading=True)
    root, most = api.root(request), api.broker.limits.payload_bytes
    rows = await api.broker.store.read(
        lambda db: matches_after(db, row["number"], since or 0, limit)
    )
    last = rows[-1]["seq"] if rows else since or 0
    return show.MatchesPage(
        matches=[show.MatchView(**match_view(one, root, most)) for one in rows],
        next=api.next(request, rows, limit, since=last),
        last=last,
    )


@router.get(
    "/subscriptions/{id}/events",
    summary="Follow matches",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Events called `match`, as long as the subscription lasts.",
            "content": {
                "text/event-stream": {
                    "schema": {"type": "string"},
                    "example": 'id: 41\nevent: match\ndata: {"seq": 41, …}\n\n',
                }
            },
        },
        204: {"description": "It has ended, and there is no more: do not come again."},
    },
)
async def events(
    id: Id,
    request: Request,
    api: TheApi,
    by: TheReader,
    since: Since = None,
    last_event_id: Annotated[
        int | None, Header(ge=0, le=MAX_INT64, description="The last match that is known.")
    ] = None,
) -> Response:
    """Stream matches as server-sent events: all after `since`, and then as they come.

    The id of an event is the match's number; a client that was cut off sends the last one
    (`Last-Event-ID`, which goes before `since`) and gets all after it, once each. Without either
    it gets those from now on. How far back it goes is limited; the event `cut` says so.
    """
    row = await api.subscription(id, by, reading=True)
    known = since if last_event_id is None else last_event_id
    number = row["number"]
    if row["state"] == "ended":
        left = await api.broker.store.read(lambda db: matches_after(db, number, known or 0, 1))
        if known is None or not left:
            return Response(status_code=204)
    if not api.streams.has_room(number):
        what, remedy = "this subscription has too many open streams", "Close a stream."
        raise HttpError(429, Problem(what, Place(id), remedy), {"Retry-After": "60"})
    if api.streams.stopped:
        what, remedy = "the broker is stopping", "Try again later."
        raise HttpError(503, Problem(what, Place(id), remedy), {"Retry-After": "5"})

    async def counted() -> AsyncIterator[bytes]:
        with api.metrics.streams.track_inprogress():
            async for piece in api.streams.follow(number, known, api.root(request)):
                yield piece

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(counted(), media_type="text/event-stream", headers=headers)


@router.get(
    "/subscriptions/{id}/feed.atom",
    summary="Read matches as Atom",
    response_class=Response,
    responses={
        200: {
            "description": "The newest matches.",
            "content": {"application/atom+xml": {"schema": {"type": "string"}}},
        },
        304: {"description": "Nothing has changed."},
    },
)
async def feed(
    id: Id,
    request: Request,
    api: TheApi,
    by: TheReader,
    if_none_match: Annotated[str | None, Header(max_length=1000)] = None,
) -> Response:
    """Return the newest matches as an Atom feed; with an entity tag, so that it is read seldom."""
    row = await api.subscription(id, by, reading=True)
    root, most = api.root(request), api.broker.limits.payload_bytes
    hub = hub_of(root) if api.options.hub and row["state"] != "ended" else None
    content, tag = await api.broker.store.read(lambda db: atom(db, row, root, most, hub))
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if hub is not None:
        headers["Link"] = hub_links(hub, feed_url(row, root))
    tags = [one.strip().removeprefix("W/") for one in (if_none_match or "").split(",")]
    if tag in tags or "*" in tags:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type="application/atom+xml", headers=headers)


@router.get("/matches/{seq}", summary="Look at a match")
async def get_match(seq: Number, request: Request, api: TheApi, by: TheReader) -> show.MatchView:
    """Return a match with all of its solutions that are kept."""
    await api.owned("match", seq, by, reading=True)
    return await _match_view(api, seq, request)


async def _match_view(api: Api, seq: int, request: Request) -> show.MatchView:
    row = await api.broker.store.read(lambda db: match_of(db, seq))
    assert row is not None
    return show.MatchView(**match_view(row, api.root(request)))


@router.get("/matches/{seq}/why", summary="Ask why it matched")
async def get_why(seq: Number, request: Request, api: TheApi, by: TheReader) -> show.WhyView:
    """Return a match, and what it rests on with the ontology and the query of now."""
    mine = await api.owned("match", seq, by, reading=True)
    view = await _match_view(api, seq, request)
    row = await publication_row(api, view.publication.seq, by)
    asked = api.insight.reasons, mine["id"], mine["query"], stored(row)
    return show.WhyView(match=view, reasons=await api.insight.ask(*asked))


# -- deliveries ---------------------------------------------------------------------------------


def _delivery_views(db: Connection, rows: Sequence[RowMapping]) -> list[show.DeliveryView]:
    shown = []
    for row in rows:
        told_ = select(matches.c.seq).where(matches.c.delivery == row["id"])
        seqs = db.scalars(told_.order_by(matches.c.seq).limit(LISTED)).all()
        same = ("id", "kind", "state", "attempt", "status")
        when: dict[str, Any] = show.times(row, "due_at", "created_at", "done_at")
        error = None if row["error"] is None else without_secrets(row["error"])
        values = {key: row[key] for key in same} | when | {"error": error, "matches": list(seqs)}
        shown.append(show.DeliveryView(subscription=row["subscription_id"], **values))
    return shown


_DELIVERIES = select(deliveries, subscriptions.c.id.label("subscription_id")).join(
    subscriptions, subscriptions.c.number == deliveries.c.subscription
)


@router.get("/subscriptions/{id}/deliveries", summary="List deliveries")
async def list_deliveries(
    id: Id,
    request: Request,
    api: TheApi,
    by: TheCaller,
    before: Before = None,
    limit: Limit = PAGE,
) -> show.DeliveriesPage:
    """Return the deliveries of a subscription, newest first."""
    row = await api.subscription(id, by)
    chosen = _DELIVERIES.where(deliveries.c.subscription == row["number"])
    if before is not None:
        chosen = chosen.where(deliveries.c.id < before)
    chosen = chosen.order_by(deliveries.c.id.desc()).limit(limit)
    views = await api.broker.store.read(
        lambda db: _delivery_views(db, db.execute(chosen).mappings().all())
    )
    more = api.next(request, views, limit, before=views[-1].id if views else before)
    return show.DeliveriesPage(deliveries=views, next=more)


async def _delivery(api: Api, number: int) -> show.DeliveryView:
    chosen = _DELIVERIES.where(deliveries.c.id == number)
    (view,) = await api.broker.store.read(
        lambda db: _delivery_views(db, db.execute(chosen).mappings().all())
    )
    return view


@router.get("/deliveries/{number}", summary="Look at a delivery")
async def get_delivery(number: Number, api: TheApi, by: TheCaller) -> show.DeliveryView:
    """Return what became of a delivery."""
    await api.owned("delivery", number, by, reading=False)
    return await _delivery(api, number)


@router.post("/deliveries/{number}/retry", status_code=202, summary="Deliver again")
async def retry(number: Number, api: TheApi, by: TheCaller) -> show.DeliveryView:
    """Send a delivery that has failed, or that waits for its next attempt, at once."""
    await api.owned("delivery", number, by, reading=False)
    if (await _delivery(api, number)).state == "delivered":
        what, remedy = "it was delivered already", "No action is needed."
        raise HttpError(409, Problem(what, Place(str(number)), remedy))
    if api.retry is not None:
        await api.retry(number)
    else:
        now = millis(api.broker.clock())
        mine = (deliveries.c.id == number) & (deliveries.c.state != "delivered")
        again = update(deliveries).where(mine)
        values = again.values(state="waiting", attempt=0, due_at=now, claimed_until=None)
        await api.broker.store.write(lambda db: db.execute(values))
    return await _delivery(api, number)


# -- tokens -------------------------------------------------------------------------------------


@router.post("/tokens", status_code=201, summary="Make a token (admin)")
async def new_token(body: show.TokenRequest, api: TheApi, by: TheCaller) -> show.TokenView:
    """Make an API token of an owner."""
    api.check(by, "admin", open=False)
    token = await api.broker.accounts.new_token(body.owner, body.scopes, body.name)
    await api.broker.accounts.note("token", body.owner, by.name)
    return show.TokenView(token=token, owner=body.owner, scopes=list(body.scopes))


@router.delete("/owners/{owner}/tokens", summary="Revoke all tokens of an owner (admin)")
async def revoke_tokens(
    owner: Annotated[str, Path(max_length=100)], api: TheApi, by: TheCaller
) -> show.RevokedView:
    """Make all tokens of an owner invalid."""
    api.check(by, "admin", open=False)
    revoked = await api.broker.accounts.revoke_tokens(owner)
    await api.broker.accounts.note("revoked", owner, by.name)
    return show.RevokedView(revoked=revoked)


# -- beside /v1 ---------------------------------------------------------------------------------

outer = APIRouter()


@outer.get(
    "/",
    summary="Find the inbox",
    response_class=Response,
    responses={200: {"content": {"application/ld+json": {"schema": {"type": "object"}}}}},
)
async def discovery(request: Request, api: TheApi) -> Response:
    """Say where publications are posted (LDN), and where the rest is."""
    root = api.root(request)
    inbox = f"{root}/v1/publications"
    body = {"@context": LDP, "@id": f"{root}/", "inbox": inbox}
    link = f'<{inbox}>; rel="{LDP}#inbox", <{root}/openapi.json>; rel="service-desc"'
    return Response(json.dumps(body), media_type="application/ld+json", headers={"Link": link})


@outer.get("/healthz", summary="Ask whether it runs")
async def healthz() -> show.HealthView:
    """Say that the broker answers."""
    return show.HealthView(status="ok")


@outer.get(
    "/readyz",
    summary="Ask whether it works",
    responses={503: {"description": "It does not.", "model": show.HealthView}},
)
async def readyz(response: Response, api: TheApi) -> show.HealthView:
    """Say whether the store can be read and all background tasks work.

    `set_aside` counts the records that tasks could not process since the start; the log and the
    audit log have their errors.
    """
    supervisor = api.broker.supervisor
    reasons = [without_secrets(one) for one in supervisor.failing()]
    try:
        await api.broker.store.read(lambda db: counter(db, "change"))
    except StoreError:
        reasons.append("the store cannot be read")
    if api.matcher is not None and not api.matcher.is_running:
        reasons.append("publications are not being matched")
    if api.streams.stopped:
        reasons.append("it is stopping")
    if reasons:
        response.status_code = 503
    status: Literal["ok", "not ready"] = "not ready" if reasons else "ok"
    return show.HealthView(status=status, reasons=reasons, set_aside=supervisor.set_aside())


@outer.get(
    "/metrics",
    summary="Read counters (admin, where tokens are needed)",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(api: TheApi, by: TheCaller) -> Response:
    """Return counters as Prometheus reads them."""
    api.check(by, "admin")
    content = await asyncio.to_thread(api.metrics.text)
    return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")


@outer.get("/docs", summary="Read this", response_class=HTMLResponse)
async def docs(request: Request) -> str:
    """Return the endpoints as a page that loads nothing from elsewhere."""
    from graphmatch.broker.api.api_docs import manual

    return manual(request.app.openapi())


# -- the application ----------------------------------------------------------------------------


def make_app(
    broker: Broker,
    matcher: MatchWorker | None = None,
    *,
    options: ApiOptions | None = None,
    retry: Retry | None = None,
    feeds: Feeds | None = None,
    on_commit: Callable[[], None] | None = None,
    on_matched: Callable[[Sequence[int]], None] | None = None,
    log: FilteringBoundLogger | None = None,
) -> FastAPI:
    """Return the application.

    Parameters
    ----------
    broker
        What clients speak to.
    matcher
        Tells who matched. It is started and stopped elsewhere.
    options
        What is allowed.
    retry
        Sends a delivery again; by default it is only made due.
    feeds
        Polls feeds; ``None``: it is not done here.
    on_commit
        Called after each commit of publications or subscriptions; by default it wakes `matcher`.
    on_matched
        Called with the numbers of the subscriptions that matched.
    log
        Where requests are noted, each as a line of JSON; ``None``: nowhere.
    """
    options = options or ApiOptions()
    measured = Metrics(broker.store, broker.clock)
    measured.registry.register(broker.supervisor)
    streams = Streams(broker, options.alive_seconds)

    def tell(numbers: Sequence[int]) -> None:
        streams.told(numbers)
        if on_matched is not None:
            on_matched(numbers)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        streams.start()
        if on_commit is not None:
            broker.on_commit = on_commit
        elif matcher is not None:
            broker.on_commit = matcher.wake
        if matcher is not None:
            matcher.on_matched, matcher.on_timed = tell, measured.matched
        yield
        streams.stop()

    def observe(scope: Scope, status: int, seconds: float) -> None:
        measured.answered(scope, status, seconds)
        if log is not None:
            ms = round(seconds * 1000, 1)
            path = scope["path"][:200]
            log.info("request", method=scope["method"], path=path, status=status, ms=ms)

    app = FastAPI(
        title="graphmatch broker",
        version=graphmatch.__version__,
        description=__doc__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=_PROBLEMS,
    )
    app.state.api = Api(
        broker, matcher, streams, measured, options, InsightService(broker), retry, feeds
    )
    for one in (router, inbox, questions, followed, outer):
        app.include_router(one)
    handle(app, "/docs#publications")
    app.add_middleware(
        Guard,
        body_bytes=broker.limits.body_bytes,
        hosts=options.hosts,
        observe=observe,
        seconds=options.body_seconds,
        own=options.netloc,
    )
    vars(app)["openapi"] = lambda: _openapi(app)
    return app


_PROBLEM = {"$ref": "#/components/schemas/ProblemView"}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": description,
        "content": {"application/problem+json": {"schema": _PROBLEM}},
    }
    for status, description in (
        ("4XX", "Refused."),
        ("422", "Understood, and refused."),
        ("5XX", "Not possible now."),
    )
}


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return the description of the API, with its problems and ways of authorization."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        parts = made.setdefault("components", {})
        known = parts.setdefault("schemas", {})
        for model in (show.ProblemView, show.PublicationView):
            schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
            known |= schema.pop("$defs", {}) | {model.__name__: schema}
        for unused in ("HTTPValidationError", "ValidationError"):
            known.pop(unused, None)
        parts["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": "An API token, gmk_…"},
            "ticket": {"type": "http", "scheme": "Ticket", "description": "A ticket, gmt_…"},
            "key": {"type": "apiKey", "in": "query", "name": "key", "description": "For reading."},
        }
        made["security"] = [{}, {"token": []}, {"ticket": []}, {"key": []}]
        app.openapi_schema = made
    return app.openapi_schema
