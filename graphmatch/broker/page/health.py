"""The health page: everything that is wrong."""

from __future__ import annotations

from starlette.responses import Response

from graphmatch.broker.db import queries
from graphmatch.broker.db.dead_letters import newest_dead_letters
from graphmatch.broker.db.tables import subscriptions
from graphmatch.broker.metrics import without_secrets
from graphmatch.broker.models.times import millis
from graphmatch.broker.page.site import TheVisit, page_router

router = page_router()


@router.get("/health")
async def health(visit: TheVisit) -> Response:
    """Show the problems of the user's subscriptions, and of the broker to administrators."""
    api, whose = visit.api, subscriptions.c.owner == visit.owner
    report = await visit.ask(api.insight.health, whose, includes_broker=True)
    values = await visit.read(
        lambda db: {
            "counts": queries.counts(db),
            "breakers": queries.open_breakers(db, millis(api.broker.clock())),
            "letters": newest_dead_letters(db, 10),
        }
    )
    tasks = [without_secrets(text) for text in api.broker.supervisor.failing()]
    if api.matcher is not None and not api.matcher.is_running:
        tasks.append("matching has stopped")
    return visit.show("health.html", report=report, tasks=tasks, **values)
