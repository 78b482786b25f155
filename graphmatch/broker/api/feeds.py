"""Feeds over HTTP: list, follow, export and import them. Clients need the scope ``feeds``."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from graphmatch.broker.api import dependencies as deps
from graphmatch.broker.app.errors import InvalidRequestError, NotFoundError
from graphmatch.broker.feeds import opml
from graphmatch.broker.feeds.feed_poller import Poller
from graphmatch.broker.feeds.feed_store import Feed
from graphmatch.broker.models.feed import FeedListReceipt, FeedRequest, FeedsPage, FeedView
from graphmatch.broker.models.problem import ProblemItem
from semantic.errors import Place, Problem

OPML = "text/x-opml"
_OUTLINE = '<opml version="2.0"><body><outline xmlUrl="https://example.org/a"/></body></opml>'
_LISTS = dict.fromkeys((OPML, "application/xml", "text/xml"), _OUTLINE) | {
    "text/plain": "https://example.org/feed.xml\n"
}
"""Media types of lists, with an example."""
FeedId = Annotated[str, Path(max_length=100, examples=["0123456789abcdef"])]
After = Annotated[str, Query(max_length=2000, description="From `next` of a page.")]
router = APIRouter(prefix="/v1")


def feed_id(url: str) -> str:
    """Return the id of a feed in addresses."""
    return sha256(url.encode("utf-8", "replace")).hexdigest()[:16]


def _feeds(by: deps.Caller) -> Poller:
    by.check("feeds")
    if by.api.feeds is None:
        what, remedy = (
            "this process does not follow feeds",
            "Send it to the process that does.",
        )
        raise NotFoundError(Problem(what, Place("feeds"), remedy))
    return by.api.feeds


async def _feed(by: deps.Caller, id: str) -> Feed:
    for feed in _feeds(by).feeds.values():
        if feed_id(feed.url) == id:
            return feed
    await by.denied("feed", id)
    raise NotFoundError(Problem("there is no such feed", Place(id), "List them: GET /v1/feeds."))


def _view(feed: Feed) -> FeedView:
    values = {key: getattr(feed, key) for key in FeedView.model_fields if key != "id"}
    return FeedView(id=feed_id(feed.url), **values)


@router.get("/feeds", summary="List feeds")
async def list_feeds(
    by: deps.TheCaller, after: After = "", limit: deps.Limit = deps.LISTED
) -> FeedsPage:
    """Return the followed feeds in the order of their addresses, with the results of fetches."""
    feeds = _feeds(by).feeds
    urls = sorted(url for url in feeds if url > after)[:limit]
    next = by.next(urls, limit, after=urls[-1] if urls else after)
    return FeedsPage(feeds=[_view(feeds[url]) for url in urls], next=next)


@router.post("/feeds", status_code=201, summary="Follow a feed")
async def add_feed(body: FeedRequest, response: Response, by: deps.TheCaller) -> FeedView:
    """Follow a feed, whose items become publications. A followed feed does not change."""
    feeds, url = _feeds(by), opml.feed_address(body.url)
    if url is None:
        what, remedy = "not the address of a feed", "Write an address with http: or https:."
        raise InvalidRequestError(Problem(what, Place("body", item="url"), remedy))
    await opml.follow(feeds, [Feed(url, body.title)])
    response.headers["Location"] = f"{by.root}/v1/feeds/{feed_id(url)}"
    return _view(feeds.feeds[url])


@router.get("/feeds/{id}", summary="Read a feed")
async def get_feed(id: FeedId, by: deps.TheCaller) -> FeedView:
    """Return a followed feed with the result of the last fetch."""
    return _view(await _feed(by, id))


@router.delete("/feeds/{id}", status_code=204, summary="Remove a feed")
async def remove_feed(id: FeedId, by: deps.TheCaller) -> Response:
    """Stop following a feed. Its publications stay."""
    feed = await _feed(by, id)
    await _feeds(by).remove(feed.url)
    return Response(status_code=204)


@router.get(
    "/feeds.opml",
    summary="Export feeds",
    response_class=Response,
    responses=deps.content_of(OPML, example=_OUTLINE),
)
async def export_feeds(by: deps.TheCaller) -> Response:
    """Return all feeds as OPML."""
    feeds = _feeds(by).feeds
    content = await asyncio.to_thread(opml.write_feed_list, [feeds[url] for url in sorted(feeds)])
    return Response(content, media_type=OPML)


@router.post("/feeds.opml", summary="Import feeds", openapi_extra=deps.document_body(_LISTS))
async def import_feeds(by: deps.TheCaller) -> FeedListReceipt:
    """Follow the feeds of a list: OPML, or one address on each line."""
    feeds, problems = _feeds(by), list[Problem]()
    deps.media_type_of(by.request, _LISTS)
    data = await by.request.body()
    listed = await asyncio.to_thread(opml.parse_feed_list, data, "body", problems.append)
    added = await opml.follow(feeds, listed)
    items = [ProblemItem.model_validate(one) for one in problems[: deps.LISTED]]
    return FeedListReceipt(added=added, listed=len(listed), problems=items)
