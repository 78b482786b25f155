"""The first page: the latest matches, live, with their reasons."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Annotated

from fastapi import Query
from starlette.responses import Response, StreamingResponse

from graphmatch.broker.api.dependencies import Number
from graphmatch.broker.app.errors import BusyError
from graphmatch.broker.db import queries
from graphmatch.broker.db.read_items import entries, mark_all_read, matched_after
from graphmatch.broker.db.store import StoreError
from graphmatch.broker.db.tables import matches, subscriptions
from graphmatch.broker.page.session import TheForm
from graphmatch.broker.page.site import NEWEST, Seq, TheVisit, Visit, page_router
from semantic.errors import Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

STREAMS = 100
"""Maximum number of pages that receive matches live."""
LIVE_SECONDS = 0.5
"""Interval at which a stream looks for new matches."""
ALIVE_SECONDS = 15.0
"""Interval of comments that keep a stream open."""
_STREAM_SECONDS = 300.0
"""Time limit of a stream, so that it ends soon after its session; the browser connects again."""
_INBOX = '</v1/publications>; rel="http://www.w3.org/ns/ldp#inbox"'
"""Header from which Linked Data Notifications learn where to publish."""

log = logging.getLogger("graphmatch.broker")

front = page_router()
router = page_router()


@front.get("/")
async def home(visit: TheVisit, before: Seq = NEWEST) -> Response:
    """Show the latest matches and items."""
    own = subscriptions.c.owner == visit.owner
    values = await visit.read(
        lambda db: {
            "last": queries.last_match(db),
            "found": entries(db, visit.owner, [matches.c.seq < before]),
            "items": queries.items(db)[:10],
            "subscribed": queries.living(db, own, 1),
        }
    )
    answer = visit.show("home.html", **values)
    answer.headers["Link"], answer.headers["Vary"] = _INBOX, "Accept"
    return answer


@router.post("/read/{last}")
async def read(last: Number, visit: TheVisit, _form: TheForm) -> Response:
    """Mark the items of all matches up to one as read."""
    store = visit.page.api.broker.store
    await store.write(lambda db: mark_all_read(db, visit.owner, last))
    return visit.see("/")


@router.get("/live")
async def live(
    visit: TheVisit,
    since: Seq = NEWEST,
    subscription: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """Stream new matches, as entries of the list."""
    conditions: list[ColumnElement[bool]] = []
    if subscription is not None:
        row = await visit.subscription(subscription)
        conditions.append(matches.c.subscription == row["number"])
    if visit.page.streams >= STREAMS:
        what, remedy = "too many pages receive matches live", "Close a page."
        raise BusyError(Problem(what, Place("live"), remedy))
    last_id = visit.request.headers.get("last-event-id", "")
    last = int(last_id) if last_id.isdecimal() and len(last_id) < 19 else since
    headers = {"X-Accel-Buffering": "no"}
    events = _events(visit, last, conditions)
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


async def _events(
    visit: Visit, last: int, conditions: list[ColumnElement[bool]]
) -> AsyncIterator[bytes]:
    page, loop = visit.page, asyncio.get_running_loop()
    template = page.templates.get_template("part-entry.html")
    until, alive = loop.time() + _STREAM_SECONDS, loop.time() + ALIVE_SECONDS
    last = min(last, await visit.read(queries.last_match))
    page.streams += 1
    try:
        yield b"retry: 2000\n\n"
        while loop.time() < until and not page.api.streams.stopped:
            newest = await visit.read(queries.last_match)
            if newest > last:
                new = [*conditions, matched_after(last)]
                found, _ = await visit.read(partial(entries, owner=visit.owner, conditions=new))
                for entry in sorted(found, key=lambda entry: entry.last):
                    html = template.render(entry=entry, fresh=True, single=bool(conditions))
                    data = "".join(f"data: {line}\n" for line in html.splitlines() if line.strip())
                    yield f"id: {entry.last}\nevent: match\n{data}\n".encode()
                last = newest
            if loop.time() > alive:
                alive = loop.time() + ALIVE_SECONDS
                yield b": alive\n\n"
            await asyncio.sleep(LIVE_SECONDS)
    except StoreError as error:  # The browser connects again.
        log.warning("%s", error)
    finally:
        page.streams -= 1
