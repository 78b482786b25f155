"""The pages of feeds and deliveries."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response

from graphmatch.broker.api.dependencies import Number
from graphmatch.broker.db import queries
from graphmatch.broker.db.tables import deliveries
from graphmatch.broker.feeds.opml import follow, parse_feed_list
from graphmatch.broker.insight.insight_service import Upload
from graphmatch.broker.page.session import TheForm
from graphmatch.broker.page.site import Seq, Text, TheVisit, Visit, not_there, page_router, redirect
from semantic.errors import InputError, Problem

router = page_router()


@router.get("/feeds")
async def feeds(visit: TheVisit, added: Seq = 0, q: Text = "") -> Response:
    """Show the feeds, those that fail first."""
    return await _feeds(visit, added=added, q=q)


async def _feeds(visit: Visit, q: str = "", **values: Any) -> Response:
    feeds, words = visit.api.feeds.feeds.values(), q.strip().casefold()
    rows = [feed for feed in feeds if words in f"{feed.title} {feed.url}".casefold()]
    rows.sort(key=lambda feed: (not feed.errors, (feed.title or feed.url).casefold()))
    code = 422 if "problem" in values else 200
    return visit.show("feeds.html", code, rows=rows, q=q, **values)


@router.post("/feeds")
async def add_feeds(visit: TheVisit, form: TheForm) -> Response:
    """Add a feed, or the feeds of a list."""
    visit.check("feeds")
    poller = visit.api.feeds
    upload = form.files.get("list") or Upload("address", form["url"].encode())
    problems: list[Problem] = []
    try:
        listed = await asyncio.to_thread(parse_feed_list, upload.data, upload.name, problems.append)
        await follow(poller, listed)
    except InputError as error:
        return await _feeds(visit, problem=(problems or [error.problem])[0], url=form["url"])
    if problems:
        return await _feeds(visit, added=len(listed), warnings=problems[:20])
    return redirect(f"/feeds?added={len(listed)}")


@router.post("/feeds/remove")
async def remove_feed(visit: TheVisit, form: TheForm) -> Response:
    """Remove a feed; its items stay."""
    visit.check("feeds")
    poller = visit.api.feeds
    if form["url"] not in poller.feeds:
        raise not_there("feed", form["url"][:200])
    await poller.remove(form["url"])
    return redirect("/feeds")


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
    await visit.api.retry(number)
    return redirect("/deliveries")
