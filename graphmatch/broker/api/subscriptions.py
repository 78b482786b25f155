"""Subscriptions over HTTP: create, read, change, end and confirm them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from pydantic import ValidationError
from starlette.responses import HTMLResponse, Response

from graphmatch.broker.api import dependencies as deps
from graphmatch.broker.api.problems import first_problem, problem_of
from graphmatch.broker.app.errors import InvalidRequestError, NotFoundError
from graphmatch.broker.app.security import read_key
from graphmatch.broker.db.queries import WITH_MATCHES
from graphmatch.broker.db.tables import subscriptions
from graphmatch.broker.models import subscription as model
from graphmatch.broker.models.base import EXAMPLE_QUERY
from graphmatch.broker.models.problem import ProblemAnswer
from graphmatch.broker.models.publication import LINE_TYPES
from graphmatch.broker.service.subscriptions import CONFIRMATION, Request
from semantic.errors import GraphMatchError, Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

router = APIRouter(prefix="/v1")
_LINES = f'{{"query": "{EXAMPLE_QUERY}"}}\n{{"topics": ["Energy"]}}'
_BODY = deps.document_body(dict.fromkeys(LINE_TYPES, _LINES))
# With the referrer policy no-referrer, browsers send Origin: null.
_PAGE_HEADERS = {"Content-Security-Policy": "default-src 'none'", "Referrer-Policy": "same-origin"}


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


@router.post("/subscriptions", status_code=201, summary="Subscribe")
async def subscribe(
    body: model.SubscriptionRequest,
    by: deps.TheCaller,
    response: Response,
    idempotency_key: deps.IdempotencyKey = None,
) -> model.SubscriptionReceipt:
    """Create a subscription. It matches publications that are accepted later.

    An `Idempotency-Key` works for clients with a token.
    """
    by.check("subscribe", anonymous=True)
    service, definition = by.api.broker.subscriptions, body.definition() or {}
    receipt = await service.subscribe(definition, body, by.principal, idempotency_key)
    receipt.links = links_of(receipt.id, receipt.read_key, by.root)
    response.headers["Location"] = receipt.links.self
    return receipt


@router.post(
    "/subscriptions:bulk",
    summary="Create many subscriptions",
    openapi_extra=_BODY,
    response_model=model.BulkReceipt,
)
async def subscribe_many(by: deps.TheCaller) -> Response:
    """Create a subscription for each line of `application/x-ndjson`.

    The answer has one entry for each line, in order: the subscription, or the problem of the line.
    """
    by.check("subscribe", anonymous=True)
    deps.media_type_of(by.request, LINE_TYPES)
    data, broker, root = await by.request.body(), by.api.broker, by.root
    requests = await asyncio.to_thread(_parsed_lines, data, broker.limits.publications)
    results = await broker.subscriptions.subscribe_many(requests, by.principal)

    def answer(
        result: model.SubscriptionReceipt | GraphMatchError,
    ) -> model.SubscriptionReceipt | ProblemAnswer:
        if isinstance(result, GraphMatchError):
            return problem_of(by.request.scope, 422, result.problem, "invalid-subscription")
        result.links = links_of(result.id, result.read_key, root)
        return result

    def content() -> str:
        return model.BulkReceipt(subscriptions=[*map(answer, results)]).model_dump_json()

    return Response(await asyncio.to_thread(content), media_type="application/json")


def _parsed_lines(data: bytes, limit: int) -> list[Request]:
    lines = [(number, line) for number, line in enumerate(data.splitlines(), 1) if line.strip()]
    if not 0 < len(lines) <= limit:
        what = f"{len(lines):,} subscriptions instead of 1 to {limit:,}"
        raise InvalidRequestError(Problem(what, Place("body"), "Send another number of lines."))
    requests: list[Request] = []
    for number, line in lines:
        try:
            body = model.SubscriptionRequest.model_validate_json(line)
            requests.append((body.definition() or {}, body))
        except ValidationError as error:
            problem = first_problem(error)
            where = replace(problem.where, line=number)
            requests.append(InvalidRequestError(replace(problem, where=where)))
    return requests


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
    secret = await by.api.broker.subscriptions.change(id, by.principal, by.ticket, body)
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
    head = "<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>graphmatch</title>"
    meta = "<meta name='viewport' content='width=device-width'>"
    return HTMLResponse(f"{head}{meta}<h1>graphmatch</h1>{text}", headers=_PAGE_HEADERS)


@router.get("/subscriptions/{id}/link", summary="Show the button of a link in an email", **_HTML)
async def open_link(id: deps.Id, key: deps.Key = None) -> HTMLResponse:
    """Return a page with a button. The link changes nothing, as programs also open links."""
    action = "Confirm" if (key or "").startswith(CONFIRMATION) else "End"
    return _page(f"<form method='post'><button>{action} subscription {escape(id)}</button></form>")


@router.post("/subscriptions/{id}/link", summary="Do what a link in an email offers", **_HTML)
async def follow_link(id: deps.Id, by: deps.TheCaller, key: deps.Key = None) -> HTMLResponse:
    """Confirm an email address, or end a subscription with one click (RFC 8058)."""
    key, service = key or "", by.api.broker.subscriptions
    confirms = key.startswith(CONFIRMATION)
    try:
        row = await (service.confirm(id, key) if confirms else service.unsubscribe(id, key=key))
    except NotFoundError:
        await by.denied("subscription", id)
        raise
    by.api.streams.wake([row["number"]])
    return _page(f"<p>The subscription {'is confirmed' if confirms else 'has ended'}.</p>")
