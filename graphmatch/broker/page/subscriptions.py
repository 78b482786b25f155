"""The pages of subscriptions: the list, the editor with its preview, and one subscription."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any, Literal, TypeAlias

from pydantic import ValidationError
from sqlalchemy import RowMapping
from starlette.responses import Response

from graphmatch.broker.api.problems import first_problem, status_of
from graphmatch.broker.app.errors import InvalidRequestError
from graphmatch.broker.app.security import derived_key
from graphmatch.broker.db import queries
from graphmatch.broker.db.read_items import entries
from graphmatch.broker.db.tables import deliveries, matches
from graphmatch.broker.insight.views import mark_of
from graphmatch.broker.models.subscription import SubscriptionChange
from graphmatch.broker.models.subscription_settings import PUSHED
from graphmatch.broker.page.session import Form, TheForm
from graphmatch.broker.page.site import NEWEST, Seq, Text, TheVisit, Visit, page_router, redirect
from graphmatch.topics import TEXT_KEYS
from semantic.errors import GraphMatchError, Place, Problem

_VALID_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_DIGESTS: dict[str, dict[str, Any]] = {"hourly": {"every": 3600}, "daily": {"at": ["08:00"]}}

Action: TypeAlias = Literal["pause", "resume", "renew", "edit", "end"]

router = page_router()


@router.get("/subscriptions")
async def list_subscriptions(
    visit: TheVisit, ended: bool = False, q: Text = "", sort: Text = "new"
) -> Response:
    """Show the user's subscriptions."""
    options: dict[str, Any] = {"ended": ended, "words": q.strip(), "order": sort}
    rows = await visit.read(partial(queries.subscriptions_of, owner=visit.owner, **options))
    return visit.show("subscriptions.html", rows=rows, ended=ended, q=q, sort=sort)


# -- The editor ---------------------------------------------------------------------------------


@router.get("/subscriptions/new")
async def new_subscription(visit: TheVisit) -> Response:
    """Show the editor for topics, an example, or SPARQL; the address may fill in fields."""
    return await _editor(visit, Form(visit.request.query_params))


@router.get("/subscriptions/{id}/edit")
async def edit(id: str, visit: TheVisit) -> Response:
    """Show the editor for a subscription."""
    row = await visit.subscription(id)
    return await _editor(visit, Form(_fields(row)), row)


async def _editor(
    visit: Visit, form: Form, row: RowMapping | None = None, error: GraphMatchError | None = None
) -> Response:
    """Show the editor with a preview.

    Parameters
    ----------
    row
        The subscription that is changed; ``None`` for a new one.
    error
        The reason why the subscription was not saved.
    """
    values = {"form": form, "changed": row, "item": None, **await _preview(visit, form)}
    if form["way"] == "example" and (item := await _example(visit, form)) is not None:
        found = await visit.ask(visit.api.insight.facts, queries.stored(item))
        values |= {"item": item, "chosen": _chosen(form), "found": found}
    # The preview already shows a problem of the query.
    values["problem"] = None if values["fault"] or error is None else error.problem
    return visit.show("editor.html", 200 if error is None else status_of(error), **values)


async def _example(visit: Visit, form: Form) -> RowMapping | None:
    """Return the item that a form uses as an example."""
    seq = form["item"]
    return await visit.item(int(seq)) if seq.isdecimal() and len(seq) < 19 else None


def _chosen(form: Form) -> set[str]:
    return {value for name, value in form.items() if name.startswith("fact-") and value}


async def _definition(visit: Visit, form: Form) -> dict[str, Any]:
    """Return the definition of a subscription in a form; empty if nothing was entered."""
    query = form["query"] if form["way"] == "sparql" else ""
    if form["way"] == "example" and (item := await _example(visit, form)) is not None:
        query = await visit.ask(visit.api.insight.query_of, queries.stored(item), _chosen(form))
    if query.strip():
        return {"query": query}
    texts = {name: [text.strip() for text in form[name].split(",")] for name in TEXT_KEYS}
    definition: dict[str, Any] = {name: [*filter(None, x)] for name, x in texts.items() if any(x)}
    if not definition.keys() & {"topics", "words"}:
        return {}
    return {**definition, "match": "any"} if form["match"] == "any" else definition


async def _preview(visit: Visit, form: Form) -> dict[str, Any]:
    """Return ``result``, or ``fault``, the query's problem, with ``mark``, its place in it."""
    result = None
    try:
        if definition := await _definition(visit, form):
            result = await visit.ask(visit.api.insight.preview, definition)
    except GraphMatchError as error:
        fault = error.problem
        return {"result": None, "fault": fault, "mark": mark_of(form["query"], fault)}
    return {"result": result, "fault": None}


@router.post("/subscriptions/preview")
async def preview(visit: TheVisit, form: TheForm) -> Response:
    """Show the preview of a subscription: as a part, or in the editor."""
    if visit.is_part:
        return visit.show("part-preview.html", form=form, **await _preview(visit, form))
    row = await visit.subscription(form["id"]) if form["id"] else None
    return await _editor(visit, form, row)


@router.post("/subscriptions")
async def subscribe(visit: TheVisit, form: TheForm) -> Response:
    """Subscribe."""
    return await _save(visit, form)


async def _save(visit: Visit, form: Form, row: RowMapping | None = None) -> Response:
    """Subscribe, or change the subscription of a row."""
    visit.check("subscribe")
    service, ticket = visit.api.broker.subscriptions, None
    try:
        definition = await _definition(visit, form)
        if not definition:
            what, remedy = "nothing was entered", "Fill in at least one field."
            raise InvalidRequestError(Problem(what, Place("subscription"), remedy))
        settings = _settings(form, row)
        if row is None:
            new = await service.subscribe(definition, _checked(settings), visit.principal)
            id, ticket, secret = new.id, new.ticket, new.secret
        else:
            is_same = definition == await _definition(visit, Form(_fields(row)))
            id, change = row["id"], _checked(settings if is_same else settings | definition)
            secret = await service.change(id, visit.principal, None, change)
    except GraphMatchError as error:
        return await _editor(visit, form, row, error)
    if secret is None:
        return redirect(f"/subscriptions/{id}{'?new=1' if row is None else ''}")
    return visit.show("created.html", 201, id=id, ticket=ticket, secret=secret)


def _settings(form: Form, row: RowMapping | None) -> dict[str, Any]:
    """Return the settings in a form, without an unchanged sink and a digest that it cannot show."""
    sink = {"kind": form["sink"] or "sse"}
    if sink["kind"] in PUSHED:
        sink["address" if sink["kind"] == "email" else "url"] = form["target"].strip()
    values: dict[str, Any] = {"name": form["name"].strip() or None}
    if form["digest"] != "other":
        values["digest"] = _DIGESTS.get(form["digest"])
    if row is None:
        return {**values, "sink": sink, "expires_in": _validity(form)}
    # The form shows neither secrets nor, for example, the format of a webhook.
    kept = {key: value for key, value in row["sink"].items() if key not in ("secret", "token")}
    if sink["kind"] == kept["kind"]:
        sink = kept | sink
    return values if sink == kept else {**values, "sink": sink}


def _checked(fields: dict[str, Any]) -> SubscriptionChange:
    try:
        return SubscriptionChange.model_validate(fields)
    except ValidationError as error:
        raise InvalidRequestError(first_problem(error)) from error


def _fields(row: RowMapping) -> dict[str, str]:
    """Return the form fields of a subscription."""
    definition, sink, digest = row["definition"], row["sink"], row["digest"] or {}
    digests = (name for name, times in _DIGESTS.items() if {**times, "zone": "UTC"} == digest)
    fields = {
        "name": row["name"],
        "sink": sink["kind"],
        "target": sink.get("url") or sink.get("address", ""),
        "digest": next(digests, "other") if digest else "",
    }
    if definition.keys() & {"query", "where"}:
        return {**fields, "way": "sparql", "query": row["query"].replace("\r\n", "\n").strip()}
    texts = {name: definition.get(name) or [] for name in TEXT_KEYS}
    joined = {name: x if isinstance(x, str) else ", ".join(x) for name, x in texts.items()}
    return {**fields, **joined, "way": "topics", "match": definition.get("match", "all")}


# -- One subscription ---------------------------------------------------------------------------


def _validity(form: Form) -> timedelta:
    return timedelta(days=_VALID_DAYS.get(form["valid"], 30))


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
    feed = f"{visit.api.root(visit.request)}/v1/subscriptions/{id}/feed"
    key = derived_key(row["ticket"], id, "read")
    return visit.show("subscription.html", row=row, new=new, feed=feed, key=key, **values)


@router.post("/subscriptions/{id}/{action}")
async def change(id: str, action: Action, visit: TheVisit, form: TheForm) -> Response:
    """Pause, resume, renew, edit or end a subscription."""
    visit.check("subscribe")
    service, principal = visit.api.broker.subscriptions, visit.principal
    if action == "edit":
        return await _save(visit, form, await visit.subscription(id))
    if action == "end":
        await service.unsubscribe(id, principal, None)
        return redirect("/subscriptions")
    actions = {
        "pause": SubscriptionChange(state="paused"),
        "resume": SubscriptionChange(state="active"),
        "renew": SubscriptionChange(expires_in=_validity(form)),
    }
    await service.change(id, principal, None, actions[action])
    return redirect(f"/subscriptions/{id}")
