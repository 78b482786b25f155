"""Feeds over HTTP: list, follow and export them. Clients need the scope ``feeds``."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response

from graphmatch.broker.api import dependencies as deps
from graphmatch.broker.app.errors import InvalidRequestError, NotFoundError
from graphmatch.broker.feeds import opml
from graphmatch.broker.feeds.feed_poller import Poller
from graphmatch.broker.feeds.feed_store import Feed
from graphmatch.broker.models.feed import FeedRequest, FeedsPage, FeedView
from semantic.errors import Place, Problem

FeedId = Annotated[str, Path(max_length=100, examples=["0123456789abcdef"])]
After = Annotated[str, Query(max_length=2000, description="From `next` of a page.")]
router = APIRouter(prefix="/v1")


class OpmlResponse(Response):
    """A list of feeds."""

    media_type = "text/x-opml"


async def _poller(by: deps.TheCaller) -> Poller:
    by.check("feeds")
    return by.api.feeds


async def _feed(id: FeedId, poller: ThePoller, by: deps.TheCaller) -> Feed:
    for feed in poller.feeds.values():
        if feed.id == id:
            return feed
    await by.denied("feed", id)
    raise NotFoundError(Problem("there is no such feed", Place(id), "List them: GET /v1/feeds."))


ThePoller = Annotated[Poller, Depends(_poller)]
TheFeed = Annotated[Feed, Depends(_feed)]


@router.get("/feeds", summary="List feeds")
async def list_feeds(
    poller: ThePoller, by: deps.TheCaller, after: After = "", limit: deps.Limit = deps.LISTED
) -> FeedsPage:
    """Return the followed feeds in the order of their addresses, with the results of fetches."""
    urls = sorted(url for url in poller.feeds if url > after)[:limit]
    feeds = [FeedView.model_validate(poller.feeds[url]) for url in urls]
    return FeedsPage(feeds=feeds, next=by.next(urls, limit, after=urls[-1] if urls else after))


@router.post("/feeds", status_code=201, summary="Follow a feed")
async def add_feed(
    body: FeedRequest, poller: ThePoller, response: Response, by: deps.TheCaller
) -> FeedView:
    """Follow a feed, whose items become publications. A followed feed does not change."""
    url = opml.feed_address(body.url)
    if url is None:
        what, remedy = "not the address of a feed", "Write an address with http: or https:."
        raise InvalidRequestError(Problem(what, Place("body", item="url"), remedy))
    await opml.follow(poller, [Feed(url, body.title)])
    feed = poller.feeds[url]
    response.headers["Location"] = f"{by.root}/v1/feeds/{feed.id}"
    return FeedView.model_validate(feed)


@router.get("/feeds/{id}", summary="Read a feed")
async def get_feed(feed: TheFeed) -> FeedView:
    """Return a followed feed with the result of the last fetch."""
    return FeedView.model_validate(feed)


@router.delete("/feeds/{id}", status_code=204, summary="Remove a feed")
async def remove_feed(feed: TheFeed, poller: ThePoller) -> None:
    """Stop following a feed. Its publications stay."""
    await poller.remove(feed.url)


@router.get("/feeds.opml", summary="Export feeds", response_class=OpmlResponse)
async def export_feeds(poller: ThePoller) -> Response:
    """Return all feeds as OPML."""
    feeds = [feed for _, feed in sorted(poller.feeds.items())]
    content = await asyncio.to_thread(opml.write_feed_list, feeds)
    return OpmlResponse(content)
