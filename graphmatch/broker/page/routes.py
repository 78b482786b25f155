"""The page's addresses.

Each page works without JavaScript: links and forms. With it, htmx asks the same addresses for a
part of the page (the header ``HX-Request``), and matches come as server-sent events (``/live``).
What computes runs in threads (`graphmatch.broker.insight.insight_service`).

`install` gives an application the page.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from graphmatch.broker.app.errors import BusyError, InvalidRequestError, NotFoundError
from graphmatch.broker.db import queries
from graphmatch.broker.db.store import StoreError
from graphmatch.broker.db.tables import subscriptions
from graphmatch.broker.feeds.opml import ListedFeed, feed_address, follow, parse_feed_list
from graphmatch.broker.insight.views import Why
from graphmatch.broker.models.subscription_settings import SubscriptionSettings, checked_digest
from graphmatch.broker.models.times import millis
from graphmatch.broker.outbox.match_feed import feed_url
from graphmatch.broker.page.session import (
    Form,
    Viewer,
    check_origin,
    form_of,
    log_in,
    log_out,
    own_path,
    see,
)
from graphmatch.broker.page.site import (
    MAX_INT64,
    Before,
    Page,
    PageRoute,
    Text,
    ThePage,
    TheViewer,
    not_there,
)
from graphmatch.broker.service.subscriptions import Created
from semantic.errors import GraphMatchError, InputError, Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

STREAMS = 100
"""So many pages may follow matches at once."""
LIVE_SECONDS = 0.5
"""How often new matches are looked for while a page follows them."""
ALIVE_SECONDS = 15.0
_STREAM_SECONDS = 3600.0
_INBOX = '</v1/publications>; rel="http://www.w3.org/ns/ldp#inbox"'
"""Linked Data Notifications find where to publish by this."""
_VALID = {"day": 1, "week": 7, "month": 30, "year": 365}
_DIGESTS: Mapping[str, dict[str, Any]] = {
    "hourly": {"every": 3600},
    "daily": {"at": ["08:00"], "zone": "UTC"},
}
_WAYS = ("topics", "example", "sparql")
_TEXTS = ("topics", "words", "not-words")
_LABELS = {"url": ("webhook", "inbox", "ntfy"), "address": ("email",)}

log = logging.getLogger("graphmatch.broker")

__all__ = ["Page", "install", "router"]

front = APIRouter(route_class=PageRoute, include_in_schema=False)
router = APIRouter(route_class=PageRoute, include_in_schema=False)


def install(app: FastAPI, page: Page) -> None:
    """Give an application the page: ``/`` before the routes that are there, the rest after them."""
    app.state.page = page
    streams, stopped = page.api.streams, page.stopped
    # The API's streams end before the server waits for answers: so do ours.
    page.stopped = lambda: stopped() or streams.stopped
    there = list(app.router.routes)
    app.include_router(front)
    app.router.routes[:] = [*app.router.routes[len(there) :], *there]
    app.include_router(router)


# -- what is new --------------------------------------------------------------------------------


@front.get("/")
async def home(request: Request, page: ThePage, by: TheViewer) -> Response:
    """Show the latest matches and items."""
    store = page.broker.store
    last, found, items, mine = await store.read(
        lambda db: (
            queries.last_match(db),
            queries.newest_matches(db, by.owner),
            queries.items(db)[:10],
            len(queries.mine(db, by.owner)),
        )
    )
    answer = page.show(
        request, "home.html", by, last=last, matches=found[:20], items=items, mine=mine
    )
    answer.headers["Link"], answer.headers["Vary"] = _INBOX, "Accept"
    return answer


@router.get("/live")
async def live(
    request: Request,
    page: ThePage,
    by: TheViewer,
    since: Before = None,
    subscription: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """Stream matches as they come, each as a row of the list."""
    number = None
    if subscription is not None:
        row = await page.broker.subscriptions.subscription(subscription, by.principal, None)
        number = int(row["number"])
    if page.streams >= STREAMS:
        what, remedy = "too many pages follow matches", "Close a page."
        raise BusyError(Problem(what, Place("live"), remedy))
    known = request.headers.get("last-event-id", "")
    last = int(known) if known.isdecimal() and len(known) < 19 else since
    events = _events(page, by, last, number)
    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


async def _events(
    page: Page, by: Viewer, last: int | None, number: int | None
) -> AsyncIterator[bytes]:
    store, template = page.broker.store, page.templates.get_template("part-match.html")
    loop = asyncio.get_running_loop()
    until, alive = loop.time() + _STREAM_SECONDS, loop.time() + ALIVE_SECONDS
    newest = await store.read(queries.last_match)
    last = newest if last is None else min(last, newest)
    page.streams += 1
    try:
        yield b"retry: 2000\n\n"
        while loop.time() < until and not page.stopped():
            rows = await store.read(
                lambda db, last=last: queries.matches_since(db, by.owner, last, number)  # type: ignore[misc]
            )
            for row in rows:
                last = row["seq"]
                html = template.render(match=row, fresh=True, one=number is not None)
                data = "".join(f"data: {line}\n" for line in html.splitlines() if line.strip())
                yield f"id: {last}\nevent: match\n{data}\n".encode()
            if rows:
                continue
            if loop.time() > alive:
                alive = loop.time() + ALIVE_SECONDS
                yield b": alive\n\n"
            await asyncio.sleep(LIVE_SECONDS)
    except StoreError as error:  # the browser comes again
        log.warning("%s", error)
    finally:
        page.streams -= 1


# -- subscriptions ------------------------------------------------------------------------------


@router.get("/subscriptions")
async def list_subscriptions(
    request: Request, page: ThePage, by: TheViewer, ended: bool = False
) -> Response:
    """Show somebody's subscriptions."""
    rows = await page.broker.store.read(lambda db: queries.mine(db, by.owner, ended=ended))
    return page.show(request, "subscriptions.html", by, rows=rows, ended=ended)


@router.get("/subscriptions/new")
async def new_subscription(
    request: Request,
    page: ThePage,
    by: TheViewer,
    way: Text = "topics",
    item: Before = None,
    topics: Text = "",
    query: Annotated[str, Query(max_length=20_000)] = "",
    fact: Text = "",
) -> Response:
    """Show the editor, in one of three ways."""
    fields = [("topics", topics), ("query", query)]
    fields += [("item", str(item))] if item is not None else []
    fields += [("fact-0", fact)] if fact else []
    form = Form((("way", way), *fields), {})
    has_some = bool(topics or query or fact)
    return await _editor(request, page, by, form, preview=has_some)


async def _editor(
    request: Request,
    page: Page,
    by: Viewer,
    form: Form,
    *,
    preview: bool,
    problem: Problem | None = None,
    changed: Mapping[Any, Any] | None = None,
) -> Response:
    """Show the editor, for a new subscription or for the row of one that is changed."""
    way = form.get("way") if form.get("way") in _WAYS else _WAYS[0]
    values: dict[str, Any] = {"way": way, "form": form, "preview": None, "problem": problem}
    values["changed"] = changed
    if way == "example":
        store = page.broker.store
        seq = form.get("item")
        row = None
        if seq.isdecimal() and len(seq) < 19:
            row = await store.read(lambda db: queries.item(db, int(seq)))
        values["item"] = row
        if row is None:
            values["items"] = await store.read(queries.items)
        else:
            ladders = await page.insight.ask(page.insight.ladders, queries.stored(row))
            common = sum(not ladder.is_common for ladder in ladders.all)
            values |= {"ladders": ladders.all, "counted": ladders.counted, "common": common}
            values["chosen"] = _chosen(form)
    if preview:
        values["preview"] = await _previewed(page, form)
    return page.show(request, "editor.html", by, 422 if problem else 200, **values)


def _chosen(form: Form) -> set[str]:
    return {value for name, value in form.fields if name.startswith("fact-") and value}


async def _given(page: Page, form: Form) -> dict[str, Any]:
    """Return what a form asks for, as `Broker.subscribe` has it; empty where it is nothing."""
    if form.get("way") == "sparql":
        return {"query": form.get("query")} if form.get("query").strip() else {}
    if form.get("way") == "example":
        chosen, seq = _chosen(form), form.get("item")
        if not chosen or not seq.isdecimal() or len(seq) > 18:
            return {}
        row = await page.broker.store.read(lambda db: queries.item(db, int(seq)))
        if row is None:
            raise not_there("item", seq)
        query = await page.insight.ask(page.insight.query_of, queries.stored(row), chosen)
        return {"query": query} if query else {}
    given: dict[str, Any] = {}
    for name in _TEXTS:
        texts = [text.strip() for text in form.get(name).split(",") if text.strip()]
        if texts:
            given[name] = texts
    if not given.keys() & {"topics", "words"}:
        return {}
    return {**given, "match": "any"} if form.get("match") == "any" else given


async def _previewed(page: Page, form: Form) -> Any:
    given = await _given(page, form)
    return await page.insight.ask(page.insight.preview, given or {"query": ""})


@router.post("/subscriptions/preview")
async def preview(request: Request, page: ThePage, by: TheViewer) -> Response:
    """Show what a subscription would have matched: as a part, or as the whole editor."""
    form = await form_of(request)
    if request.headers.get("hx-request") == "true":
        found = await _previewed(page, form)
        return page.show(request, "part-preview.html", by, preview=found, form=form)
    id = form.get("id")
    row = await page.broker.subscriptions.subscription(id, by.principal, None) if id else None
    return await _editor(request, page, by, form, preview=True, changed=row)


@router.post("/subscriptions")
async def subscribe(request: Request, page: ThePage, by: TheViewer) -> Response:
    """Take a subscription in."""
    return await _save(request, page, by, await form_of(request))


async def _save(
    request: Request, page: Page, by: Viewer, form: Form, row: Mapping[Any, Any] | None = None
) -> Response:
    """Subscribe, or change the subscription that has a row, as a form says."""
    by.check("subscribe")
    given = await _given(page, form)
    try:
        if not given:
            what, remedy = "nothing is asked for yet", "Fill in at least one field."
            raise InvalidRequestError(Problem(what, Place("subscription"), remedy))
        if row is None:
            made = await page.broker.subscriptions.subscribe(given, _settings(form), by.principal)
        else:
            made = await _change(page, by, form, row, given)
    except (NotFoundError, StoreError):
        raise
    except GraphMatchError as error:
        problem = error.problem
        return await _editor(request, page, by, form, preview=True, problem=problem, changed=row)
    if made.secret is None:
        return see(request, f"/subscriptions/{made.id}{'?new=1' if made.ticket else ''}")
    return page.show(request, "created.html", by, 201, made=made)


async def _change(
    page: Page, by: Viewer, form: Form, row: Mapping[Any, Any], given: Mapping[str, Any]
) -> Created:
    """Change what differs: the same webhook keeps its secret, the same query its matches."""
    fields, settings = _fields(row), _settings(form)

    def differs(*keys: str) -> bool:
        return any(form.get(key).strip() != fields.get(key, "").strip() for key in keys)

    kind, sink = row["sink"]["kind"], dict(settings.sink or {})
    if sink["kind"] == kind and "include_reasons" in row["sink"]:
        sink["include_reasons"] = row["sink"]["include_reasons"]
    settings = replace(
        settings,
        sink=sink if differs("sink", "target") else None,
        expires_in=None,
        digest=settings.digest or {} if differs("digest") else None,
    )
    asked = given if differs("query", "match", *_TEXTS) else None
    id = row["id"]
    secret = await page.broker.subscriptions.change(
        id, by.principal, None, definition=asked, settings=settings
    )
    return Created(id, "", secret, None)


def _fields(row: Mapping[Any, Any]) -> dict[str, str]:
    """Return the form fields of a subscription."""
    given, sink, digest = row["definition"], row["sink"], row["digest"]
    known = {str(checked_digest(value)): key for key, value in _DIGESTS.items()}
    fields = {
        "name": row["name"],
        "sink": sink["kind"],
        "target": sink.get("url") or sink.get("address") or "",
        "digest": known.get(str(digest), "other") if digest else "",
    }
    if given.keys() & {"query", "where"}:
        return {**fields, "way": "sparql", "query": row["query"]}
    texts = {name: given.get(name) or [] for name in _TEXTS}
    joined = {name: x if isinstance(x, str) else ", ".join(x) for name, x in texts.items()}
    return {**fields, **joined, "way": "topics", "match": given.get("match", "all")}


def _settings(form: Form) -> SubscriptionSettings:
    """Return what a form says beside what the subscription is for."""
    kind = form.get("sink") or "sse"
    sink: dict[str, Any] = {"kind": kind}
    for key, kinds in _LABELS.items():
        if kind in kinds:
            sink[key] = form.get("target").strip()
    days = _VALID.get(form.get("valid"), 30)
    digest = _DIGESTS.get(form.get("digest"))
    name = form.get("name").strip() or None
    return SubscriptionSettings(name, sink, timedelta(days=days), digest)


@router.get("/subscriptions/{id}")
async def subscription(
    id: str,
    request: Request,
    page: ThePage,
    by: TheViewer,
    new: bool = False,
    before: Before = None,
) -> Response:
    """Show a subscription, its matches and deliveries."""
    row = await page.broker.subscriptions.subscription(id, by.principal, None)
    number = row["number"]
    last, found, sent = await page.broker.store.read(
        lambda db: (
            queries.last_match(db),
            queries.newest_matches(db, row["owner"], number=number, before=before),
            queries.sent(db, row["owner"], number=number)[:10],
        )
    )
    values: dict[str, Any] = {"row": row, "last": last, "matches": found, "sent": sent, "new": new}
    values["feed"] = feed_url(row, page.api.root(request))
    return page.show(request, "subscription.html", by, before=before, **values)


@router.get("/subscriptions/{id}/edit")
async def edit(id: str, request: Request, page: ThePage, by: TheViewer) -> Response:
    """Show the editor with a subscription in it."""
    row = await page.broker.subscriptions.subscription(id, by.principal, None)
    form = Form(tuple(_fields(row).items()), {})
    return await _editor(request, page, by, form, preview=True, changed=row)


@router.post("/subscriptions/{id}/{what}")
async def change(id: str, what: str, request: Request, page: ThePage, by: TheViewer) -> Response:
    """Pause, resume, renew, edit or end a subscription."""
    form = await form_of(request)
    by.check("subscribe")
    broker, who = page.broker, by.principal
    if what == "pause":
        await broker.subscriptions.change(id, who, None, state="paused")
    elif what == "resume":
        await broker.subscriptions.change(id, who, None, state="active")
    elif what == "renew":
        length = timedelta(days=_VALID.get(form.get("valid"), 30))
        await broker.subscriptions.change(
            id, who, None, settings=SubscriptionSettings(expires_in=length)
        )
    elif what == "edit":
        row = await broker.subscriptions.subscription(id, who, None)
        return await _save(request, page, by, form, row)
    elif what == "end":
        await broker.subscriptions.unsubscribe(id, who, None)
        return see(request, "/subscriptions")
    else:
        raise not_there("action", what)
    return see(request, f"/subscriptions/{id}")


@router.get("/matches/{seq}/why")
async def match_why(seq: int, request: Request, page: ThePage, by: TheViewer) -> Response:
    """Show why a match is one."""
    row = await page.broker.store.read(lambda db: queries.match(db, by.owner, seq))
    if row is None:
        raise not_there("match", seq)
    said = await page.insight.ask(page.insight.why, row["query"], queries.stored(row))
    return _why(request, page, by, row, said)


def _why(
    request: Request,
    page: Page,
    by: Viewer,
    row: Mapping[Any, Any],
    said: Why,
    *,
    is_before: bool = False,
) -> Response:
    """Show reasons; `is_before` says that the item came before the subscription."""
    return page.show(request, "why.html", by, row=row, why=said, is_before=is_before)


# -- items --------------------------------------------------------------------------------------


@router.get("/items")
async def items(
    request: Request, page: ThePage, by: TheViewer, q: Text = "", before: Before = None
) -> Response:
    """Show what was published."""
    words = q.strip()
    rows = await page.broker.store.read(lambda db: queries.items(db, before=before, words=words))
    return page.show(request, "items.html", by, rows=rows, q=q, full=len(rows) == queries.LISTED)


async def _item(page: Page, seq: int) -> RowMapping:
    if not 0 <= seq <= MAX_INT64:
        raise not_there("item", seq)
    row = await page.broker.store.read(lambda db: queries.item(db, seq))
    if row is None:
        raise not_there("item", seq)
    return row


@router.get("/items/{seq}")
async def item(seq: int, request: Request, page: ThePage, by: TheViewer) -> Response:
    """Show an item: its facts, who matched it, its graph."""
    row = await _item(page, seq)
    one, insight = queries.stored(row), page.insight
    ladders = await insight.ask(lambda: insight.ladders(one, count=False))
    graph = await insight.ask(insight.graph, one)
    found, mine = await page.broker.store.read(
        lambda db: (
            queries.matches_of(db, by.owner, seq),
            [each for each in queries.mine(db, by.owner) if each["state"] != "ended"],
        )
    )
    values: dict[str, Any] = {
        "matches": found,
        "mine": mine,
        "ladders": ladders.all,
        "graph": graph,
    }
    return page.show(request, "item.html", by, row=row, **values)


@router.get("/items/{seq}/graph.json")
async def graph(seq: int, page: ThePage, _by: TheViewer) -> Response:
    """Return an item's graph for Cytoscape."""
    row = await _item(page, seq)
    found = await page.insight.ask(page.insight.graph, queries.stored(row))
    return JSONResponse(found.elements())


@router.get("/items/{seq}/why")
async def item_why(
    seq: int, request: Request, page: ThePage, by: TheViewer, subscription: Text = ""
) -> Response:
    """Show why a subscription matches an item, or what of it failed first."""
    row = await _item(page, seq)
    mine = await page.broker.subscriptions.subscription(subscription, by.principal, None)
    said = await page.insight.ask(page.insight.why, mine["query"], queries.stored(row))
    values = {**row, "publication": seq, "name": mine["name"], "subscription": mine["id"]}
    return _why(request, page, by, values, said, is_before=mine["after_publication"] >= seq)


# -- feeds and deliveries -----------------------------------------------------------------------


@router.get("/feeds")
async def feeds(request: Request, page: ThePage, by: TheViewer, added: Before = None) -> Response:
    """Show the feeds that are followed."""
    return await _feeds(request, page, by, added=added)


async def _feeds(request: Request, page: Page, by: Viewer, **values: Any) -> Response:
    rows: Sequence[Any]
    if page.api.feeds is not None:
        rows = [page.api.feeds.feeds[url] for url in sorted(page.api.feeds.feeds)]
    else:
        from graphmatch.broker.feeds.feed_store import Feed

        kept = await page.broker.store.read(queries.kept_feeds)
        rows = [Feed.from_json(state) for state in kept]
    status = 422 if values.get("problem") else 200
    return page.show(request, "feeds.html", by, status, rows=rows, **values)


@router.post("/feeds")
async def add_feeds(request: Request, page: ThePage, by: TheViewer) -> Response:
    """Follow a feed, or all of a list."""
    form = await form_of(request)
    by.check("feeds")
    if page.api.feeds is None:
        raise not_there("poller", "feeds")
    problems: list[Problem] = []
    upload = form.files.get("list")
    if upload is not None and upload.data:
        try:
            name = upload.name[:200]
            listed = await asyncio.to_thread(parse_feed_list, upload.data, name, problems.append)
            await follow(page.api.feeds, listed)
        except InputError as error:
            return await _feeds(request, page, by, problem=error.problem)
        if problems:
            return await _feeds(request, page, by, added=len(listed), warnings=problems[:20])
        return see(request, f"/feeds?added={len(listed)}")
    address = feed_address(form.get("url"))
    if address is None:
        what, remedy = "not a feed's address", "Write https://example.org/feed, or choose a file."
        problem = Problem(what, Place("address"), remedy)
        return await _feeds(request, page, by, problem=problem, url=form.get("url"))
    await follow(page.api.feeds, [ListedFeed(address)])
    return see(request, "/feeds?added=1")


@router.post("/feeds/remove")
async def remove_feed(request: Request, page: ThePage, by: TheViewer) -> Response:
    """Follow a feed no more; its items stay."""
    form = await form_of(request)
    by.check("feeds")
    if page.api.feeds is None or form.get("url") not in page.api.feeds.feeds:
        raise not_there("feed", form.get("url")[:200])
    await page.api.feeds.remove(form.get("url"))
    return see(request, "/feeds")


@router.get("/deliveries")
async def list_deliveries(
    request: Request, page: ThePage, by: TheViewer, state: Text = ""
) -> Response:
    """Show what was sent, and what waits."""
    rows = await page.broker.store.read(lambda db: queries.sent(db, by.owner, state=state))
    return page.show(request, "deliveries.html", by, rows=rows, state=state)


@router.post("/deliveries/{number}/retry")
async def retry(number: int, request: Request, page: ThePage, by: TheViewer) -> Response:
    """Send a delivery again."""
    form = await form_of(request)
    by.check("subscribe")
    is_mine = await page.broker.store.read(lambda db: queries.is_mine(db, by.owner, number))
    if page.api.retry is None or not is_mine:
        raise not_there("delivery", number)
    await page.api.retry(number)
    return see(request, own_path(form.get("back") or "/deliveries"))


# -- the ontology -------------------------------------------------------------------------------


@router.get("/ontology")
async def ontology(request: Request, page: ThePage, by: TheViewer, q: Text = "") -> Response:
    """Show the ontology as a tree, or the terms that a search finds."""
    insight = page.insight
    roots = [] if q.strip() else await insight.ask(insight.roots)
    found = await insight.ask(insight.search, q) if q.strip() else None
    return page.show(request, "ontology.html", by, roots=roots, found=found, q=q)


@router.get("/ontology/below")
async def below(request: Request, page: ThePage, by: TheViewer, iri: Text) -> Response:
    """Show what is directly below a term."""
    children = await page.insight.ask(page.insight.children, iri)
    return page.show(request, "part-tree.html", by, terms=children)


@router.get("/ontology/suggest")
async def suggest(request: Request, page: ThePage, by: TheViewer, topics: Text = "") -> Response:
    """Show topics that go on with the last one in a field."""
    last = topics.rpartition(",")[2].strip()
    found = await page.insight.ask(page.insight.search, last, 8) if len(last) > 1 else []
    return page.show(request, "part-suggest.html", by, terms=found, last=last)


@router.get("/ontology/term")
async def term(request: Request, page: ThePage, by: TheViewer, iri: Text) -> Response:
    """Show a term: what is above and below, and how much is published about it."""
    found = await page.insight.ask(page.insight.term_page, iri)
    if found is None:
        raise not_there("term", iri[:200])
    return page.show(request, "term.html", by, found=found)


@router.get("/what-if")
async def what_if_form(request: Request, page: ThePage, by: TheViewer) -> Response:
    """Ask for an ontology."""
    by.check("admin")
    return page.show(request, "what-if.html", by, difference=None)


@router.post("/what-if")
async def what_if(request: Request, page: ThePage, by: TheViewer) -> Response:
    """Show who would gain and who would lose with another ontology."""
    form = await form_of(request)
    by.check("admin")  # before the engine is copied
    files = [file for file in form.files.values() if file.data]
    try:
        if not files:
            problem = Problem("no file was chosen", Place("file"), "Choose an ontology.")
            raise InvalidRequestError(problem)
        found = await page.insight.ask(page.insight.what_if, files)
    except BusyError:
        raise
    except GraphMatchError as error:
        return page.show(request, "what-if.html", by, 422, difference=None, problem=error.problem)
    numbers = [int(id) for id in found.changed if id.isdecimal()]
    ids = [id for one in found.changed.values() for id in (*one.newest_gained, *one.newest_lost)]
    named, seqs = await page.broker.store.read(
        lambda db: (
            queries.names(db, by.owner, None if len(numbers) > 500 else numbers),
            queries.seqs_of(db, ids[:500]),
        )
    )
    changed = [(named[int(id)], one) for id, one in found.changed.items() if int(id) in named]
    values: dict[str, Any] = {"difference": found, "changed": changed, "seqs": seqs, "files": files}
    return page.show(
        request, "what-if.html", by, others=len(found.changed) - len(changed), **values
    )


# -- health, and who one is ---------------------------------------------------------------------


@router.get("/health")
async def health(request: Request, page: ThePage, by: TheViewer) -> Response:
    """Show what is wrong with subscriptions and their sinks."""
    whose = subscriptions.c.owner == by.owner
    findings, named, _ = await page.insight.ask(page.insight.health, whose)
    now = millis(page.broker.clock())
    counts, spared = await page.broker.store.read(
        lambda db: (
            queries.counts(db),
            queries.open_breakers(db, now) if by.is_admin else [],
        )
    )
    values: dict[str, Any] = {
        "findings": findings,
        "counts": counts,
        "named": named,
        "spared": spared,
    }
    return page.show(request, "health.html", by, **values)


@router.get("/help")
async def help_page(request: Request, page: ThePage, by: TheViewer) -> Response:
    """Show what keys do."""
    return page.show(request, "help.html", by)


@router.get("/login")
async def login_form(request: Request, page: ThePage, back: Text = "/") -> Response:
    """Ask for a token."""
    why = page.api.token_reason(request)
    return page.show(request, "login.html", None, back=own_path(back), problem=None, why=why)


@router.post("/login")
async def login(request: Request, page: ThePage) -> Response:
    """Begin a session with a token."""
    form = await form_of(request)
    token, back = form.get("token").strip(), own_path(form.get("back") or "/")
    try:
        who = await page.broker.accounts.principal(token or "-")
    except NotFoundError as error:
        return page.show(request, "login.html", None, 403, back=back, problem=error.problem)
    if not who.may("subscribe"):
        problem = Problem("the token is not for subscribing", Place("token"), "Ask for another.")
        return page.show(request, "login.html", None, 403, back=back, problem=problem)
    answer = see(request, back)
    log_in(request, answer, token)
    return answer


@router.post("/logout")
async def logout(request: Request) -> Response:
    """End the session."""
    check_origin(request)
    answer = see(request, "/login")
    log_out(answer)
    return answer


@router.get("/static/{name}")
async def static(name: str, request: Request, page: ThePage) -> Response:
    """Return a file of the page's own."""
    if name not in page.static:
        raise not_there("file", name[:100])
    data, kind = page.static[name]
    tag = f'"{sha256(data).hexdigest()[:16]}"'
    cached = "public, max-age=31536000, immutable" if request.url.query else "no-cache"
    headers = {"ETag": tag, "Cache-Control": cached}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(data, media_type=kind, headers=headers)
