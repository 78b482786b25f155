"""The pages of feeds and deliveries."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response

from graphmatch.broker.api.dependencies import Number
from graphmatch.broker.db import queries
from graphmatch.broker.db.tables import deliveries
from graphmatch.broker.feeds.feed_store import Feed
from graphmatch.broker.feeds.opml import feed_address, follow, parse_feed_list
from graphmatch.broker.page.session import TheForm
from graphmatch.broker.page.site import Seq, Text, TheVisit, Visit, not_there, page_router
from semantic.errors import InputError, Place, Problem

router = page_router()


@router.get("/feeds")
async def feeds(visit: TheVisit, added: Seq = 0, q: Text = "") -> Response:
    """Show the feeds, those that fail first."""
    return await _feeds(visit, added=added, q=q)


async def _feeds(visit: Visit, q: str = "", **values: Any) -> Response:
    if visit.page.api.feeds is not None:
        known = list(visit.page.api.feeds.feeds.values())
    else:
        known = [Feed.from_json(state) for state in await visit.read(queries.kept_feeds)]
    words = q.strip().casefold()
    rows = [feed for feed in known if words in f"{feed.title} {feed.url}".casefold()]
    rows.sort(key=lambda feed: (not feed.errors, (feed.title or feed.url).casefold()))
    code = 422 if "problem" in values else 200
    return visit.show("feeds.html", code, rows=rows, q=q, **values)


@router.post("/feeds")
async def add_feeds(visit: TheVisit, form: TheForm) -> Response:
    """Add a feed, or the feeds of a list."""
    visit.check("feeds")
    poller = visit.page.api.feeds
    if poller is None:
        raise not_there("poller", "feeds")
    problems: list[Problem] = []
    if (upload := form.files.get("list")) is not None:
        try:
            name = upload.name[:200]
            listed = await asyncio.to_thread(parse_feed_list, upload.data, name, problems.append)
            await follow(poller, listed)
        except InputError as error:
            return await _feeds(visit, problem=error.problem)
        if problems:
            return await _feeds(visit, added=len(listed), warnings=problems[:20])
        return visit.see(f"/feeds?added={len(listed)}")
    address = feed_address(form["url"])
    if address is None:
        what, remedy = "the address is not valid", "Write https://example.org/feed.xml."
        return await _feeds(visit, problem=Problem(what, Place("address"), remedy), url=form["url"])
    await follow(poller, [Feed(address)])
    return visit.see("/feeds?added=1")


@router.post("/feeds/remove")
async def remove_feed(visit: TheVisit, form: TheForm) -> Response:
    """Remove a feed; its items stay."""
    visit.check("feeds")
    poller = visit.page.api.feeds
    if form["url"] not in poller.feeds:
        raise not_there("feed", form["url"][:200])
    await poller.remove(form["url"])
    return visit.see("/feeds")


@router.get("/deliveries")
async def list_deliveries(visit: TheVisit, state: Text = "", q: Text = "") -> Response:
    """Show deliveries."""
    conditions = [deliveries.c.state == state] if state else []
    rows = await visit.read(
        lambda db: queries.deliveries_of(db, visit.owner, *conditions, words=q.strip())
    )
    return visit.show("deliveries.html", rows=rows, state=state, q=q)


@router.post("/deliveries/{number}/retry")
async def retry(number: Number, visit: TheVisit, _form: TheForm) -> Response:
    """Send a delivery again."""
    visit.check("subscribe")
    own = deliveries.c.id == number
    rows = await visit.read(lambda db: queries.deliveries_of(db, visit.owner, own))
    if not rows:
        raise not_there("delivery", number)
    await visit.page.api.retry(number)
    return visit.see("/deliveries")
