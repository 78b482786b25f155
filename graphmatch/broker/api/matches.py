"""Matches over HTTP: pages, event streams, feeds, and single matches with their reasons."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Header
from starlette.responses import Response, StreamingResponse

from graphmatch.broker.api import dependencies as deps
from graphmatch.broker.api.insight import ExplainedMatch, publication_of
from graphmatch.broker.api.sse import PAGE
from graphmatch.broker.app.errors import NotFoundError, TooManyRequestsError
from graphmatch.broker.db.match_queries import match_of, matches_after
from graphmatch.broker.models.match import MatchesPage, MatchView
from graphmatch.broker.outbox.match_feed import atom, feed_url, json_feed, rss
from graphmatch.broker.outbox.payloads import match_view
from graphmatch.broker.outbox.websub_protocol import hub_links, hub_of
from semantic.errors import Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import Connection

router = APIRouter(prefix="/v1")
_EVENT = 'id: 41\nevent: match\ndata: {"seq": 41, …}\n\n'


@router.get("/subscriptions/{id}/matches", summary="List matches")
async def list_matches(
    id: deps.Id, by: deps.TheReader, since: deps.Since = None, limit: deps.Limit = PAGE
) -> MatchesPage:
    """Return the stored matches after `since`, oldest first."""
    row, root = await by.subscription(id, reading=True), by.root
    size, begin = by.api.broker.limits.payload_bytes, since or 0

    def read(db: Connection) -> list[MatchView]:
        rows = matches_after(db, row["number"], begin, limit)
        return [MatchView(**match_view(one, root, size)) for one in rows]

    views = await by.read(read)
    last = views[-1].seq if views else begin
    return MatchesPage(matches=views, next=by.next(views, limit, since=last), last=last)


@router.get(
    "/subscriptions/{id}/events",
    summary="Stream matches",
    response_class=StreamingResponse,
    responses={
        **deps.content_of("text/event-stream", example=_EVENT),
        204: {"description": "The subscription has ended, and there are no more matches."},
    },
)
async def events(
    id: deps.Id,
    by: deps.TheReader,
    since: deps.Since = None,
    last_event_id: Annotated[
        int | None, Header(ge=0, le=deps.MAX_NUMBER, description="Id of the last received event.")
    ] = None,
) -> Response:
    """Stream matches as server-sent events: all after `since`, and then new ones.

    The id of an event is the number of the match. A client that connects again sends the last one
    as `Last-Event-ID`, which replaces `since`, and gets all later matches once. Without both it
    gets new matches. If older matches are too old for a stream, the event `truncated` says so.
    """
    row, root = await by.subscription(id, reading=True), by.root
    known = since if last_event_id is None else last_event_id
    number, streams = row["number"], by.api.streams
    if row["state"] == "ended" and (
        known is None or not await by.read(lambda db: matches_after(db, number, known, 1))
    ):
        return Response(status_code=204)
    if not streams.has_room(number):
        what, remedy = "this subscription has too many open streams", "Close a stream."
        raise TooManyRequestsError(Problem(what, Place(id), remedy), 60)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    followed = streams.follow(number, known, root)
    return StreamingResponse(followed, media_type="text/event-stream", headers=headers)


_FORMATS = {
    "atom": (atom, "application/atom+xml"),
    "rss": (rss, "application/rss+xml"),
    "json": (json_feed, "application/feed+json"),
}
_FEEDS = deps.content_of(*(media_type for _, media_type in _FORMATS.values()), schema={})
_FEEDS[304] = {"description": "The feed has not changed."}


@router.get(
    "/subscriptions/{id}/feed.{format}",
    summary="Read the newest matches as a feed",
    response_class=Response,
    responses=_FEEDS,
)
async def feed(
    id: deps.Id,
    format: Literal["atom", "rss", "json"],
    by: deps.TheReader,
    if_none_match: Annotated[str | None, Header(max_length=1000)] = None,
) -> Response:
    """Return the newest matches as a feed, with an entity tag for conditional requests."""
    render, media_type = _FORMATS[format]
    row, root = await by.subscription(id, reading=True), by.root
    headers, more = {"Cache-Control": "private, no-cache"}, {}
    if row["state"] != "ended" and format == "atom":
        more["hub"] = hub_of(root)
        headers["Link"] = hub_links(more["hub"], feed_url(row, root))
    size = by.api.broker.limits.payload_bytes
    content, headers["ETag"] = await by.read(lambda db: render(db, row, root, size, **more))
    known = [one.strip().removeprefix("W/") for one in (if_none_match or "").split(",")]
    if headers["ETag"] in known or "*" in known:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)


async def _match(seq: int, by: deps.Caller) -> MatchView:
    row, root = await by.read(lambda db: match_of(db, seq)), by.root
    if row is None:
        raise NotFoundError(Problem("the match was deleted", Place(str(seq)), "List the matches."))
    return MatchView(**await asyncio.to_thread(match_view, row, root))


@router.get("/matches/{seq}", summary="Read a match")
async def get_match(seq: deps.Number, by: deps.TheReader) -> MatchView:
    """Return a match with all stored solutions."""
    await by.owned("match", seq, reading=True)
    return await _match(seq, by)


@router.get("/matches/{seq}/why", summary="Explain a match")
async def get_why(seq: deps.Number, by: deps.TheReader) -> ExplainedMatch:
    """Return a match with its reasons, by the current ontology and query."""
    row, insight = await by.owned("match", seq, reading=True), by.api.insight
    match = await _match(seq, by)
    publication = await publication_of(by, match.publication.seq)
    reasons = await insight.ask(insight.reasons, row["id"], row["query"], publication)
    return ExplainedMatch(match=match, reasons=reasons)
