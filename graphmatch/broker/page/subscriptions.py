"""The pages of subscriptions: the list, the editor with its preview, and one subscription."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from starlette.responses import Response

from graphmatch.broker.api.problems import first_problem
from graphmatch.broker.app.errors import BusyError, InvalidRequestError, NotFoundError
from graphmatch.broker.app.security import derived_key
from graphmatch.broker.db import queries
from graphmatch.broker.db.read_items import entries
from graphmatch.broker.db.store import StoreError
from graphmatch.broker.db.tables import deliveries, matches
from graphmatch.broker.insight.views import mark_of
from graphmatch.broker.models.subscription import SubscriptionChange
from graphmatch.broker.page.session import Form, TheForm
from graphmatch.broker.page.site import NEWEST, Seq, Text, TheVisit, Visit, not_there, page_router
from semantic.errors import GraphMatchError, Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

_VALID_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_DIGESTS: Mapping[str, dict[str, Any]] = {
    "hourly": {"every": 3600, "zone": "UTC"},
    "daily": {"at": ["08:00"], "zone": "UTC"},
}
_WAYS = ("topics", "example", "sparql")
_TEXTS = ("topics", "words", "not-words")
_TARGETS = {"webhook": "url", "inbox": "url", "ntfy": "url", "email": "address"}
_FEEDS = {"Atom": "atom", "RSS": "rss", "JSON Feed": "json"}

router = page_router()


@router.get("/subscriptions")
async def list_subscriptions(
    visit: TheVisit, ended: bool = False, q: Text = "", sort: Text = "new"
) -> Response:
    """Show the user's subscriptions."""
    options: dict[str, Any] = {"ended": ended, "words": q.strip(), "order": sort}
    rows = await visit.read(lambda db: queries.subscriptions_of(db, visit.owner, **options))
    return visit.show("subscriptions.html", rows=rows, ended=ended, q=q, sort=sort)


@router.get("/subscriptions/new")
async def new_subscription(visit: TheVisit) -> Response:
    """Show the editor for topics, an example, or SPARQL; the address may fill in fields."""
    form = Form(visit.request.query_params)
    is_filled = any(form[name] for name in ("topics", "query", "fact-0"))
    return await _editor(visit, form, preview=is_filled)


async def _editor(
    visit: Visit,
    form: Form,
    *,
    preview: bool,
    problem: Problem | None = None,
    changed: Mapping[Any, Any] | None = None,
) -> Response:
    """Show the editor.

    Parameters
    ----------
    problem
        The reason why the form was refused.
    changed
        The row of the subscription that is changed; ``None`` for a new one.
    """
    way = form["way"] if form["way"] in _WAYS else _WAYS[0]
    values: dict[str, Any] = {"way": way, "form": form, "changed": changed, "item": None}
    values |= await _previewed(visit, form) if preview else {"result": None, "fault": None}
    if way == "example":
        if (row := await _example(visit, form)) is None:
            values["items"] = await visit.read(queries.items)
        else:
            found = await visit.ask(visit.page.api.insight.facts, queries.stored(row))
            values |= {"item": row, "chosen": _chosen(form), "found": found}
    # A problem of the query is shown at its place in the query.
    values |= {"problem": None if values["fault"] else problem, "preview": preview}
    return visit.show("editor.html", 422 if problem else 200, **values)


async def _example(visit: Visit, form: Form) -> RowMapping | None:
    """Return the item that a form uses as an example."""
    seq = form["item"]
    if not seq.isdecimal() or len(seq) > 18:
        return None
    return await visit.read(lambda db: queries.item(db, int(seq)))


def _chosen(form: Form) -> set[str]:
    return {value for name, value in form.items() if name.startswith("fact-") and value}


async def _definition(visit: Visit, form: Form) -> dict[str, Any]:
    """Return the definition of a subscription in a form; empty if nothing was entered."""
    if form["way"] == "sparql":
        return {"query": form["query"]} if form["query"].strip() else {}
    if form["way"] == "example":
        chosen, row = _chosen(form), await _example(visit, form)
        if not chosen or row is None:
            return {}
        query = await visit.ask(visit.page.api.insight.query_of, queries.stored(row), chosen)
        return {"query": query} if query else {}
    texts = {name: [text.strip() for text in form[name].split(",")] for name in _TEXTS}
    definition: dict[str, Any] = {name: [*filter(None, x)] for name, x in texts.items() if any(x)}
    if not definition.keys() & {"topics", "words"}:
        return {}
    return {**definition, "match": "any"} if form["match"] == "any" else definition


async def _previewed(visit: Visit, form: Form) -> dict[str, Any]:
    """Return the preview: ``result``, or ``fault`` and its ``mark`` in the query, or neither."""
    result, insight = None, visit.page.api.insight
    try:
        if definition := await _definition(visit, form):
            result = await visit.ask(insight.preview, definition)
    except BusyError:
        raise
    except GraphMatchError as error:
        mark = mark_of(form["query"], error.problem)
        return {"result": None, "fault": error.problem, "mark": mark}
    return {"result": result, "fault": None}


@router.post("/subscriptions/preview")
async def preview(visit: TheVisit, form: TheForm) -> Response:
    """Show the preview of a subscription: as a part, or in the editor."""
    if visit.request.headers.get("hx-request") == "true":
        return visit.show("part-preview.html", form=form, **await _previewed(visit, form))
    row = await visit.subscription(form["id"]) if form["id"] else None
    return await _editor(visit, form, preview=True, changed=row)


@router.post("/subscriptions")
async def subscribe(visit: TheVisit, form: TheForm) -> Response:
    """Subscribe."""
    return await _save(visit, form)


async def _save(visit: Visit, form: Form, row: Mapping[Any, Any] | None = None) -> Response:
    """Subscribe, or change the subscription of a row."""
    visit.check("subscribe")
    service, id, ticket = visit.page.api.broker.subscriptions, "", None
    try:
        definition = await _definition(visit, form)
        if not definition:
            what, remedy = "nothing was entered", "Fill in at least one field."
            raise InvalidRequestError(Problem(what, Place("subscription"), remedy))
        if row is None:
            new = await service.subscribe(definition, _checked(_settings(form)), visit.principal)
            id, ticket, secret = new.id, new.ticket, new.secret
        else:
            id, changes = row["id"], _changes(form, row, definition)
            secret = await service.change(id, visit.principal, None, changes)
    except (NotFoundError, StoreError, BusyError):
        raise
    except GraphMatchError as error:
        return await _editor(visit, form, preview=True, problem=error.problem, changed=row)
    if secret is None:
        return visit.see(f"/subscriptions/{id}{'?new=1' if row is None else ''}")
    return visit.show("created.html", 201, id=id, ticket=ticket, secret=secret)


def _changes(
    form: Form, row: Mapping[Any, Any], definition: Mapping[str, Any]
) -> SubscriptionChange:
    """Return the changed fields; an unchanged webhook keeps its secret."""
    fields, settings = _fields(row), _settings(form)

    def differs(*keys: str) -> bool:
        return any(form[key].strip() != fields.get(key, "").strip() for key in keys)

    if settings["sink"]["kind"] == row["sink"]["kind"]:
        same = row["sink"].keys() & {"format", "include_reasons"}
        settings["sink"] |= {key: row["sink"][key] for key in same}
    unchanged = {"expires_in"}
    unchanged |= set() if differs("sink", "target") else {"sink"}
    unchanged |= set() if differs("digest") else {"digest"}
    changed = {key: value for key, value in settings.items() if key not in unchanged}
    if differs("query", "match", *_TEXTS):
        changed |= definition
    return _checked(changed)


def _fields(row: Mapping[Any, Any]) -> dict[str, str]:
    """Return the form fields of a subscription."""
    definition, sink, digest = row["definition"], row["sink"], row["digest"]
    digests = (key for key, value in _DIGESTS.items() if value == digest)
    fields = {
        "name": row["name"],
        "sink": sink["kind"],
        "target": sink.get(_TARGETS.get(sink["kind"], ""), ""),
        "digest": next(digests, "other") if digest else "",
    }
    if definition.keys() & {"query", "where"}:
        return {**fields, "way": "sparql", "query": row["query"]}
    texts = {name: definition.get(name) or [] for name in _TEXTS}
    joined = {name: x if isinstance(x, str) else ", ".join(x) for name, x in texts.items()}
    return {**fields, **joined, "way": "topics", "match": definition.get("match", "all")}


def _settings(form: Form) -> dict[str, Any]:
    """Return the settings in a form, without checks."""
    kind = form["sink"] or "sse"
    sink = {"kind": kind}
    if kind in _TARGETS:
        sink[_TARGETS[kind]] = form["target"].strip()
    days = timedelta(days=_VALID_DAYS.get(form["valid"], 30))
    digest = _DIGESTS.get(form["digest"])
    return {"name": form["name"], "sink": sink, "expires_in": days, "digest": digest}


def _checked(fields: Mapping[str, Any]) -> SubscriptionChange:
    try:
        return SubscriptionChange.model_validate(fields)
    except ValidationError as error:
        raise InvalidRequestError(first_problem(error)) from error


@router.get("/subscriptions/{id}")
async def subscription(
    id: str, visit: TheVisit, new: bool = False, before: Seq = NEWEST
) -> Response:
    """Show a subscription with its matches and deliveries."""
    row = await visit.subscription(id)
    owner, number = row["owner"], row["number"]
    values = await visit.read(
        lambda db: {
            "last": queries.last_match(db),
            "found": entries(db, owner, [matches.c.subscription == number, matches.c.seq < before]),
            "sent": queries.deliveries_of(db, owner, deliveries.c.subscription == number)[:10],
        }
    )
    base = f"{visit.page.api.root(visit.request)}/v1/subscriptions/{id}/feed."
    key = derived_key(row["ticket"], id, "read")
    feeds = {name: f"{base}{format}?key={key}" for name, format in _FEEDS.items()}
    return visit.show("subscription.html", row=row, new=new, feeds=feeds, **values)


@router.get("/subscriptions/{id}/edit")
async def edit(id: str, visit: TheVisit) -> Response:
    """Show the editor for a subscription."""
    row = await visit.subscription(id)
    return await _editor(visit, Form(_fields(row)), preview=True, changed=row)


@router.post("/subscriptions/{id}/{action}")
async def change(id: str, action: str, visit: TheVisit, form: TheForm) -> Response:
    """Pause, resume, renew, edit or end a subscription."""
    visit.check("subscribe")
    service, principal = visit.page.api.broker.subscriptions, visit.principal
    if action == "edit":
        return await _save(visit, form, await visit.subscription(id))
    if action == "end":
        await service.unsubscribe(id, principal, None)
        return visit.see("/subscriptions")
    length = timedelta(days=_VALID_DAYS.get(form["valid"], 30))
    actions = {
        "pause": SubscriptionChange(state="paused"),
        "resume": SubscriptionChange(state="active"),
        "renew": SubscriptionChange(expires_in=length),
    }
    if action not in actions:
        raise not_there("action", action)
    await service.change(id, principal, None, actions[action])
    return visit.see(f"/subscriptions/{id}")
