"""The pages of items: search, and one item with its facts, matches and triples."""

from __future__ import annotations

from contextlib import suppress

from starlette.responses import Response

from graphmatch.broker.api.dependencies import Number
from graphmatch.broker.db import queries
from graphmatch.broker.db.read_items import entries, mark_read
from graphmatch.broker.db.store import StoreError
from graphmatch.broker.db.tables import matches, subscriptions
from graphmatch.broker.page.site import NEWEST, Seq, Text, TheVisit, page_router

router = page_router()


@router.get("/items")
async def items(visit: TheVisit, q: Text = "", before: Seq = NEWEST) -> Response:
    """Show the publications."""
    rows = await visit.read(lambda db: queries.items(db, before=before, words=q.strip()))
    return visit.show("items.html", rows=rows, q=q, full=len(rows) == queries.LISTED)


@router.get("/items/{seq}")
async def item(seq: Number, visit: TheVisit) -> Response:
    """Show the facts, matches and triples of an item, and mark it as read."""
    row, owner, api = await visit.item(seq), visit.owner, visit.api
    publication = queries.stored(row)
    facts = await visit.ask(api.insight.facts, publication, count=False)
    graph = await visit.ask(api.insight.graph, publication)
    values = await visit.read(
        lambda db: {
            "found": entries(db, owner, [matches.c.publication == seq]),
            "offered": queries.living(db, subscriptions.c.owner == owner, queries.LISTED),
        }
    )
    with suppress(StoreError):  # The page can be read even if the disk is full.
        await api.broker.store.write(lambda db: mark_read(db, owner, seq))
    return visit.show("item.html", row=row, graph=graph, facts=facts.facts, **values)


@router.get("/items/{seq}/why")
async def item_why(seq: Number, visit: TheVisit, subscription: Text = "") -> Response:
    """Show why a subscription matches an item, or which condition failed first."""
    row, insight = await visit.item(seq), visit.api.insight
    mine = await visit.subscription(subscription)
    why = await visit.ask(insight.why, mine["query"], queries.stored(row))
    is_before = mine["after_publication"] >= seq
    return visit.show("why.html", item=row, subscription=mine, why=why, is_before=is_before)
