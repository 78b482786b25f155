"""The first page: the latest matches, live, with their reasons."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated

from fastapi import Header
from sqlalchemy import ColumnElement
from starlette.responses import Response, StreamingResponse

from graphmatch.broker.api.dependencies import Number
from graphmatch.broker.app.errors import BusyError
from graphmatch.broker.db import queries
from graphmatch.broker.db.read_items import entries, mark_all_read, matched_after
from graphmatch.broker.db.store import StoreError
from graphmatch.broker.db.tables import matches, subscriptions
from graphmatch.broker.page.filters import TEMPLATES
from graphmatch.broker.page.session import TheForm
from graphmatch.broker.page.site import NEWEST, Seq, Text, TheVisit, Visit, page_router, redirect
from semantic.errors import Place, Problem

STREAMS = 100
"""Maximum number of pages that receive matches live."""
LIVE_SECONDS = 0.5
"""Interval at which a stream looks for new matches."""
ALIVE_SECONDS = 15.0
"""Interval of comments that keep an idle stream open."""
_STREAM_SECONDS = 300.0
"""Time limit of a stream, so that it ends soon after its session; the browser connects again."""
_INBOX = '</v1/publications>; rel="http://www.w3.org/ns/ldp#inbox"'
"""Header from which Linked Data Notifications learn where to publish."""

front = page_router()
router = page_router()


@front.get("/")
async def home(visit: TheVisit, before: Seq = NEWEST) -> Response:
    """Show the latest matches and items."""
    values = await visit.read(
        lambda db: {
            "last": queries.last_match(db),
            "found": entries(db, visit.owner, [matches.c.seq < before]),
            "items": queries.items(db)[:10],
            "subscribed": queries.living(db, subscriptions.c.owner == visit.owner, 1),
        }
    )
    answer = visit.show("home.html", **values)
    answer.headers["Link"], answer.headers["Vary"] = _INBOX, "Accept"
    return answer


@router.post("/read/{last}")
async def read(last: Number, visit: TheVisit, _form: TheForm) -> Response:
    """Mark the items of all matches up to one as read."""
    store = visit.api.broker.store
    await store.write(lambda db: mark_all_read(db, visit.owner, last))
    return redirect("/")


@router.get("/live")
async def live(
    visit: TheVisit,
    since: Seq = NEWEST,
    subscription: Text = "",
    last_event_id: Annotated[int, Header(ge=0, le=NEWEST)] = 0,
) -> Response:
    """Stream new matches, as entries of the list."""
    shown: list[ColumnElement[bool]] = []
    if subscription:
        shown = [matches.c.subscription == (await visit.subscription(subscription))["number"]]
    if visit.page.streams >= STREAMS:
        what, remedy = "too many pages receive matches live", "Close a page."
        raise BusyError(Problem(what, Place("live"), remedy))
    events, headers = _events(visit, last_event_id or since, shown), {"X-Accel-Buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


async def _events(visit: Visit, last: int, shown: list[ColumnElement[bool]]) -> AsyncIterator[str]:
    """Yield the matches after one, as far as they meet the conditions."""
    page, now = visit.page, asyncio.get_running_loop().time
    until, alive = now() + _STREAM_SECONDS, now() + ALIVE_SECONDS
    template = TEMPLATES.get_template("part-entry.html")
    page.streams += 1
    try:
        yield "retry: 2000\n\n"
        last = min(last, await visit.read(queries.last_match))
        while now() < until and not page.api.streams.stopped:
            newest = await visit.read(queries.last_match)
            if newest > last:
                new = [*shown, matched_after(last)]
                found, _ = await visit.read(partial(entries, owner=visit.owner, conditions=new))
                for entry in sorted(found, key=lambda entry: entry.last):
                    html = template.render(entry=entry, fresh=True, single=bool(shown))
                    # A carriage return in a title ends a line of a stream, too.
                    data = "".join(f"data: {line}\n" for line in html.splitlines())
                    yield f"id: {entry.last}\nevent: match\n{data}\n"
                last = newest
            elif now() > alive:
                alive = now() + ALIVE_SECONDS
                yield ": alive\n\n"
            await asyncio.sleep(LIVE_SECONDS)
    except StoreError:
        return  # The browser connects again.
    finally:
        page.streams -= 1
