"""Feeds over HTTP: which are followed, and OPML in and out. It needs the scope ``feeds``."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from graphmatch.broker.api.dependencies import (
    LISTED,
    Api,
    Caller,
    Limit,
    TheApi,
    TheCaller,
    document_body,
    media_type_of,
)
from graphmatch.broker.api.problems import told
from graphmatch.broker.app.errors import InvalidRequestError, NotFoundError
from graphmatch.broker.feeds.feed_poller import Poller
from graphmatch.broker.feeds.feed_store import Feed
from graphmatch.broker.feeds.opml import (
    ListedFeed,
    feed_address,
    follow,
    parse_feed_list,
    write_feed_list,
)
from graphmatch.broker.models import schemas as show
from semantic.errors import Place, Problem

OPML = "text/x-opml"
_OUTLINE = '<opml version="2.0"><body><outline xmlUrl="https://example.org/a"/></body></opml>'
_LISTS = {
    OPML: _OUTLINE,
    "application/xml": _OUTLINE,
    "text/xml": _OUTLINE,
    "text/plain": "https://example.org/feed.xml\n",
}
"""Media types of lists, with an example."""
FeedId = Annotated[str, Path(max_length=100, examples=["0123456789abcdef"])]

followed = APIRouter(prefix="/v1")


def feed_id(url: str) -> str:
    """Return what a feed is called in addresses."""
    return sha256(url.encode("utf-8", "replace")).hexdigest()[:16]


def _feeds(api: Api, by: Caller) -> Poller:
    api.check(by, "feeds")
    if api.feeds is None:
        what, remedy = "feeds are not polled by this process", "Ask the one that does."
        raise NotFoundError(Problem(what, Place("feeds"), remedy))
    return api.feeds


async def _feed(api: Api, by: Caller, id: str) -> Feed:
    found = next((one for one in _feeds(api, by).feeds.values() if feed_id(one.url) == id), None)
    if found is None:
        await api.denied("feed", id, by)
        what = "there is no such feed"
        raise NotFoundError(Problem(what, Place(id), "GET /v1/feeds lists the feeds."))
    return found


def _view(feed: Feed) -> show.FeedView:
    same = ("url", "address", "title", "read_at", "next_poll_at", "errors", "status", "problem")
    values = {key: getattr(feed, key) for key in (*same, "pushed_until")}
    return show.FeedView(id=feed_id(feed.url), **values)


@followed.get("/feeds", summary="List the feeds that are followed")
async def list_feeds(
    request: Request,
    api: TheApi,
    by: TheCaller,
    after: Annotated[str, Query(max_length=2000, description="From the page before.")] = "",
    limit: Limit = LISTED,
) -> show.FeedsPage:
    """Return feeds in the order of their addresses, with what became of the last fetch."""
    feeds = _feeds(api, by).feeds
    urls = sorted(url for url in feeds if url > after)[:limit]
    more = api.next(request, urls, limit, after=urls[-1] if urls else after)
    return show.FeedsPage(feeds=[_view(feeds[url]) for url in urls], next=more)


@followed.post("/feeds", status_code=201, summary="Follow a feed")
async def add_feed(
    body: show.FeedRequest, request: Request, response: Response, api: TheApi, by: TheCaller
) -> show.FeedView:
    """Follow a feed; one that is followed already stays as it is. Its items are publications."""
    feeds, url = _feeds(api, by), feed_address(body.url)
    if url is None:
        what, remedy = "not a feed's address", "Write https://example.org/feed."
        raise InvalidRequestError(Problem(what, Place("body", item="url"), remedy))
    await follow(feeds, [ListedFeed(url, body.title)])
    response.headers["Location"] = f"{api.root(request)}/v1/feeds/{feed_id(url)}"
    return _view(feeds.feeds[url])


@followed.get("/feeds/{id}", summary="Look at a feed")
async def get_feed(id: FeedId, api: TheApi, by: TheCaller) -> show.FeedView:
    """Return what is known of a feed."""
    return _view(await _feed(api, by, id))


@followed.delete("/feeds/{id}", status_code=204, summary="Follow a feed no longer")
async def remove_feed(id: FeedId, api: TheApi, by: TheCaller) -> Response:
    """Follow a feed no longer; what it has published stays."""
    feed = await _feed(api, by, id)
    await _feeds(api, by).remove(feed.url)
    return Response(status_code=204)


@followed.get(
    "/feeds.opml",
    summary="Export the feeds as OPML",
    response_class=Response,
    responses={200: {"content": {OPML: {"schema": {"type": "string"}, "example": _OUTLINE}}}},
)
async def export_feeds(api: TheApi, by: TheCaller) -> Response:
    """Return all feeds as OPML, for a reader or another broker."""
    feeds = _feeds(api, by).feeds
    content = await asyncio.to_thread(write_feed_list, [feeds[url] for url in sorted(feeds)])
    return Response(content, media_type=OPML)


@followed.post("/feeds.opml", summary="Import a list of feeds", openapi_extra=document_body(_LISTS))
async def import_feeds(request: Request, api: TheApi, by: TheCaller) -> show.ImportedView:
    """Follow the feeds of a list, OPML or an address a line; those that are followed stay."""
    feeds = _feeds(api, by)
    media_type_of(request, _LISTS)
    problems: list[Problem] = []
    data = await request.body()
    listed = await asyncio.to_thread(parse_feed_list, data, "body", problems.append)
    added = await follow(feeds, listed)
    views = [show.ProblemItem.model_validate(told(one)) for one in problems[:LISTED]]
    return show.ImportedView(added=added, listed=len(listed), problems=views)
