"""Deliveries over HTTP: list and repeat them, send test messages, and replay matches."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from sqlalchemy import Connection, RowMapping, Select, select, update

from graphmatch.broker.api import dependencies as deps
from graphmatch.broker.api.sse import PAGE
from graphmatch.broker.app.errors import ConflictError, InvalidRequestError
from graphmatch.broker.db.delivery_queries import add_delivery
from graphmatch.broker.db.tables import WAITING, deliveries, matches, subscriptions
from graphmatch.broker.metrics import without_secrets
from graphmatch.broker.models.delivery import DeliveriesPage, DeliveryView
from graphmatch.broker.models.subscription import Replay
from graphmatch.broker.models.subscription_settings import PUSHED
from graphmatch.broker.models.times import millis
from graphmatch.broker.service.match_worker import host_of
from semantic.errors import Place, Problem

router = APIRouter(prefix="/v1")
_DELIVERIES = select(deliveries, subscriptions.c.id.label("public_id")).join(
    subscriptions, subscriptions.c.number == deliveries.c.subscription
)


def _views(db: Connection, chosen: Select[Any]) -> list[DeliveryView]:
    views = []
    for row in db.execute(chosen).mappings():
        sent = select(matches.c.seq).where(matches.c.delivery == row["id"])
        seqs = db.scalars(sent.order_by(matches.c.seq).limit(deps.LISTED)).all()
        error = None if row["error"] is None else without_secrets(row["error"])
        values = {**row, "subscription": row["public_id"], "error": error, "matches": seqs}
        views.append(DeliveryView(**values))
    return views


@router.get("/subscriptions/{id}/deliveries", summary="List deliveries")
async def list_deliveries(
    id: deps.Id, by: deps.TheCaller, before: deps.Before = None, limit: deps.Limit = PAGE
) -> DeliveriesPage:
    """Return the deliveries of a subscription, newest first."""
    row = await by.subscription(id)
    older = deliveries.c.id < (before or deps.MAX_NUMBER)
    chosen = _DELIVERIES.where(deliveries.c.subscription == row["number"], older)
    newest = chosen.order_by(deliveries.c.id.desc()).limit(limit)
    views = await by.read(lambda db: _views(db, newest))
    next = by.next(views, limit, before=views[-1].id if views else before)
    return DeliveriesPage(deliveries=views, next=next)


@router.get("/deliveries/{number}", summary="Read a delivery")
async def get_delivery(number: deps.Number, by: deps.TheCaller) -> DeliveryView:
    """Return the state of a delivery."""
    await by.owned("delivery", number)
    chosen = _DELIVERIES.where(deliveries.c.id == number)
    (view,) = await by.read(lambda db: _views(db, chosen))
    return view


@router.post("/deliveries/{number}/retry", status_code=202, summary="Retry a delivery")
async def retry(number: deps.Number, by: deps.TheCaller) -> DeliveryView:
    """Send a delivery now that failed or waits for its next attempt."""
    if (await get_delivery(number, by)).state == "delivered":
        what, remedy = "the delivery succeeded already", "Use POST /v1/subscriptions/{id}/replay."
        raise ConflictError(Problem(what, Place(str(number)), remedy))
    await by.api.retry(number)
    return await get_delivery(number, by)


@router.post("/subscriptions/{id}/test", status_code=202, summary="Send a test message")
async def test(id: deps.Id, by: deps.TheCaller) -> DeliveryView:
    """Send a message of the type `subscription.test` to the sink. It has no matches."""
    return await _send(by, await by.subscription(id))


@router.post("/subscriptions/{id}/replay", status_code=202, summary="Send matches again")
async def replay(id: deps.Id, body: Replay, by: deps.TheCaller) -> DeliveryView:
    """Send the matches after `since` again, in one message of the type `digest`.

    One replay has at most 100 matches, which the answer lists. It leaves out matches whose
    delivery still waits.
    """
    row = await by.subscription(id)
    waiting = select(deliveries.c.id).where(deliveries.c.id == matches.c.delivery, WAITING).exists()
    mine = (matches.c.subscription == row["number"]) & (matches.c.seq > body.since)
    chosen = select(matches.c.seq).where(mine, ~waiting).order_by(matches.c.seq).limit(deps.LISTED)
    return await _send(by, row, chosen)


async def _send(
    by: deps.Caller, row: RowMapping, chosen: Select[tuple[int]] | None = None
) -> DeliveryView:
    """Add a delivery of chosen matches, or a test message, which is due now."""
    if row["sink"]["kind"] not in PUSHED or row["state"] not in ("active", "paused"):
        what = f"the broker sends nothing to this subscription (state: {row['state']})"
        remedy = "Use an active subscription with a sink that receives messages."
        raise InvalidRequestError(Problem(what, Place(row["id"]), remedy))
    host, now = host_of(row["sink"]), millis(by.api.broker.clock())

    def work(db: Connection) -> int:
        if chosen is None:
            return add_delivery(db, row["number"], "test", host, now)
        seqs = db.scalars(chosen).all()
        if not seqs:
            what, remedy = "there are no matches to send", "Choose a lower number."
            raise InvalidRequestError(Problem(what, Place("body", item="since"), remedy))
        number = add_delivery(db, row["number"], "digest", host, now)
        db.execute(update(matches).where(matches.c.seq.in_(seqs)).values(delivery=number))
        return number

    number = await by.api.broker.store.write(work)
    by.api.on_matched([row["number"]])
    return await get_delivery(number, by)
