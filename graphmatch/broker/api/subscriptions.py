"""Subscriptions over HTTP: create, read, change, end and confirm them."""

from __future__ import annotations

import asyncio
from html import escape
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from pydantic import ValidationError
from starlette.responses import HTMLResponse, Response

from graphmatch.broker.api import dependencies as deps
from graphmatch.broker.api.problems import first_problem, problem_of, request_error
from graphmatch.broker.app.errors import InvalidRequestError, NotFoundError
from graphmatch.broker.app.security import digest_of, read_key
from graphmatch.broker.db.queries import WITH_MATCHES
from graphmatch.broker.db.tables import subscriptions
from graphmatch.broker.models import subscription as model
from graphmatch.broker.models.base import EXAMPLE_QUERY
from graphmatch.broker.models.publication import LINE_TYPES
from graphmatch.broker.service.subscriptions import Created
from semantic.errors import Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

router = APIRouter(prefix="/v1")
_LINES = f'{{"query": "{EXAMPLE_QUERY}"}}\n{{"topics": ["Energy"]}}'
_BODY = deps.document_body(dict.fromkeys(LINE_TYPES, _LINES))
_BODY["requestBody"]["content"]["application/json"] = {
    "schema": {"$ref": "#/components/schemas/SubscriptionRequest"}
}
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'",
    "Referrer-Policy": "same-origin",  # With no-referrer, browsers send Origin: null.
}


def links_of(id: str, key: str, root: str) -> model.Links:
    """Return the addresses of the parts of a subscription; `key` is its key for reading."""
    own = f"{root}/v1/subscriptions/{id}"
    return model.Links(
        self=own,
        matches=f"{own}/matches",
        events=f"{own}/events?since=0",
        feed=f"{own}/feed.atom?key={key}",
        rss=f"{own}/feed.rss?key={key}",
        json_feed=f"{own}/feed.json?key={key}",
        deliveries=f"{own}/deliveries",
    )


def _view(row: RowMapping, root: str) -> model.SubscriptionView:
    links = links_of(row["id"], read_key(row["ticket"], row["id"]), root)
    return model.SubscriptionView(**row, links=links)


def _receipt(created: Created, ticket_hash: bytes, root: str) -> model.SubscriptionReceipt:
    key = read_key(ticket_hash, created.id)
    return model.SubscriptionReceipt(
        id=created.id,
        ticket=created.ticket,
        secret=created.secret,
        read_key=key,
        expires_at=created.expires_at,
        links=links_of(created.id, key, root),
    )


@router.post(
    "/subscriptions",
    status_code=201,
    summary="Subscribe",
    openapi_extra=_BODY,
    response_model=model.SubscriptionReceipt,
    responses={200: {"description": "An answer for each line.", "model": model.BulkReceipt}},
)
async def subscribe(
    by: deps.TheCaller, response: Response, idempotency_key: deps.IdempotencyKey = None
) -> Any:
    """Create a subscription. It matches publications that are accepted later.

    The body is one subscription, or one on each line of `application/x-ndjson`. The answer to lines
    has one entry for each line, in order: the subscription, or the problem of the line. An
    `Idempotency-Key` works for one subscription and clients with a token.
    """
    by.check("subscribe", anonymous=True)
    media_type = deps.media_type_of(by.request, ("application/json", *LINE_TYPES))
    data, service = await by.request.body(), by.api.broker.subscriptions
    if media_type in LINE_TYPES:
        return await _subscribe_lines(by, data)
    try:
        body = model.SubscriptionRequest.model_validate_json(data)
    except ValidationError as error:
        raise request_error(error, "body") from error
    definition, settings = body.definition() or {}, body.settings()
    created = await service.subscribe(definition, settings, by.principal, key=idempotency_key)
    if created.ticket is None:  # An earlier request with the same key created it.
        ticket_hash = (await by.subscription(created.id))["ticket"]
    else:
        ticket_hash = digest_of(created.ticket)
    receipt = _receipt(created, ticket_hash, by.root)
    response.headers["Location"] = receipt.links.self
    return receipt


async def _subscribe_lines(by: deps.Caller, data: bytes) -> Response:
    limit, service = by.api.broker.limits.publications, by.api.broker.subscriptions
    lines = await asyncio.to_thread(_parsed_lines, data, limit)
    valid = [
        (one.definition() or {}, one.settings()) for one in lines if not isinstance(one, Problem)
    ]
    results, root = iter(await service.subscribe_many(valid, by.principal)), by.root

    def content() -> str:
        entries = [one if isinstance(one, Problem) else next(results) for one in lines]
        receipts = [
            problem_of(by.request.scope, 422, one, "invalid-subscription")
            if isinstance(one, Problem)
            else _receipt(one, digest_of(one.ticket or ""), root)
            for one in entries
        ]
        return model.BulkReceipt(subscriptions=receipts).model_dump_json()

    return Response(await asyncio.to_thread(content), media_type="application/json")


def _parsed_lines(data: bytes, limit: int) -> list[model.SubscriptionRequest | Problem]:
    lines: list[model.SubscriptionRequest | Problem] = []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            if line.strip():
                lines.append(model.SubscriptionRequest.model_validate_json(line))
        except ValidationError as error:
            fault = first_problem(error)
            place = Place("body", number, item=fault.where.item)
            lines.append(Problem(fault.what, place, fault.remedy))
    if not 0 < len(lines) <= limit:
        what = f"{len(lines):,} subscriptions instead of 1 to {limit:,}"
        raise InvalidRequestError(Problem(what, Place("body"), "Send another number of lines."))
    return lines


After = Annotated[int, Query(ge=0, le=deps.MAX_NUMBER, description="From `next` of a page.")]


@router.get("/subscriptions", summary="List subscriptions")
async def list_subscriptions(
    by: deps.TheCaller, after: After = 0, limit: deps.Limit = deps.LISTED
) -> model.SubscriptionsPage:
    """Return the subscriptions of the token's owner or of the local user. An admin gets all."""
    by.check("subscribe", open=False)
    table, root = subscriptions.c, by.root
    chosen = WITH_MATCHES.where(table.number > after).order_by(table.number)
    if not by.principal.is_admin:
        chosen = chosen.where(table.owner == by.owner)
    rows = await by.read(lambda db: db.execute(chosen.limit(limit)).mappings().all())
    return model.SubscriptionsPage(
        subscriptions=[_view(row, root) for row in rows],
        next=by.next(rows, limit, after=rows[-1]["number"] if rows else after),
    )


@router.get("/subscriptions/{id}", summary="Read a subscription")
async def get_subscription(id: deps.Id, by: deps.TheCaller) -> model.SubscriptionView:
    """Return a subscription, which may have ended."""
    return _view(await by.subscription(id), by.root)


@router.patch("/subscriptions/{id}", summary="Change, renew, pause or resume a subscription")
async def change(
    id: deps.Id, body: model.SubscriptionChange, by: deps.TheCaller
) -> model.SubscriptionUpdate:
    """Change the fields of the body. A new query matches publications that are accepted later."""
    await by.subscription(id)  # The audit log gets refusals.
    definition, settings, state = body.definition(), body.settings(), body.state
    secret = await by.api.broker.subscriptions.change(
        id, by.principal, by.ticket, definition=definition, settings=settings, state=state
    )
    view = _view(await by.subscription(id), by.root)
    return model.SubscriptionUpdate(subscription=view, secret=secret)


@router.delete("/subscriptions/{id}", status_code=204, summary="Unsubscribe")
async def unsubscribe(id: deps.Id, by: deps.TheCaller) -> Response:
    """End a subscription. Its matches can still be read."""
    row = await by.subscription(id)
    await by.api.broker.subscriptions.unsubscribe(id, by.principal, by.ticket)
    by.api.streams.wake([row["number"]])
    return Response(status_code=204)


# -- links in emails ----------------------------------------------------------------------------


_HTML: dict[str, Any] = {"response_class": HTMLResponse}


def _page(text: str) -> HTMLResponse:
    page = "<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>graphmatch</title>"
    meta = "<meta name='viewport' content='width=device-width'>"
    style = "<style>body{max-width:30rem;margin:4rem auto;font-family:sans-serif}</style>"
    return HTMLResponse(f"{page}{meta}{style}<h1>graphmatch</h1>{text}", headers=_PAGE_HEADERS)


@router.get(
    "/subscriptions/{id}/confirm", summary="Open the link that confirms an email address", **_HTML
)
@router.get(
    "/subscriptions/{id}/unsubscribe", summary="Open the link that ends a subscription", **_HTML
)
async def open_link(id: deps.Id, by: deps.TheCaller, _: deps.Key = None) -> HTMLResponse:
    """Return a page with a button. The link changes nothing, as programs also open links."""
    action = "Confirm" if by.request.url.path.endswith("/confirm") else "End"
    return _page(f"<form method='post'><button>{action} subscription {escape(id)}</button></form>")


@router.post("/subscriptions/{id}/confirm", summary="Confirm an email address", **_HTML)
@router.post(
    "/subscriptions/{id}/unsubscribe", summary="Unsubscribe with one click (RFC 8058)", **_HTML
)
async def follow_link(id: deps.Id, by: deps.TheCaller, key: deps.Key = None) -> HTMLResponse:
    """Confirm or end a subscription with the key of a link in an email."""
    confirms, service = by.request.url.path.endswith("/confirm"), by.api.broker.subscriptions
    action = service.confirm if confirms else service.unsubscribe_with_key
    try:
        row = await action(id, key or "none")  # An empty key would fit a missing confirmation.
    except NotFoundError:
        await by.denied("subscription", id)
        raise
    by.api.streams.wake([row["number"]])
    return _page(f"<p>The subscription {'is confirmed' if confirms else 'has ended'}.</p>")
