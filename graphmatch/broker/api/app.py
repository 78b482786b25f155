"""The HTTP API of a broker, below ``/v1``.

A client sends an API token with scopes as `Authorization: Bearer gmk_…`. The ticket of a
subscription gives access to it: `Authorization: Ticket gmt_…`. Its key allows reading only, for
clients that cannot send headers, such as feed readers: `?key=gmr_…`. A request that comes directly
from this machine needs no token and belongs to the owner `local`. The answer about an object of
another owner is 404.

Each answer has the header `X-Request-Id`, by default the one of the request. Each error is a
`ProblemAnswer` (`application/problem+json`) with a stable `code`. If a client sends too many
requests or wrong tokens, the answer is 429 with `Retry-After`.

`/v1/publications` is an inbox of Linked Data Notifications (https://www.w3.org/TR/ldn/).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from starlette.types import Scope

import graphmatch
from graphmatch.broker.api import (
    accounts,
    deliveries,
    insight,
    matches,
    publications,
    subscriptions,
    system,
)
from graphmatch.broker.api import (
    feeds as feed_routes,
)
from graphmatch.broker.api.dependencies import Api, ApiOptions, Retry
from graphmatch.broker.api.guard import Guard
from graphmatch.broker.api.problems import MEDIA_TYPE, handle
from graphmatch.broker.api.sse import Streams
from graphmatch.broker.feeds.feed_poller import Poller
from graphmatch.broker.insight.insight_service import InsightService
from graphmatch.broker.metrics import Metrics
from graphmatch.broker.models.delivery import Notification
from graphmatch.broker.models.problem import ProblemAnswer
from graphmatch.broker.models.publication import PublicationView
from graphmatch.broker.models.subscription import SubscriptionRequest
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import MatchWorker

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

ROUTES = (subscriptions, matches, deliveries, publications, insight, feed_routes, accounts, system)
_PROBLEM = {"content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemAnswer"}}}}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "The request was refused.", **_PROBLEM},
    "422": {"description": "The content of the request is not valid.", **_PROBLEM},
    "5XX": {"description": "The broker cannot answer now.", **_PROBLEM},
}
_SECURITY = {
    "token": {"type": "http", "scheme": "bearer", "description": "An API token, gmk_…"},
    "ticket": {"type": "http", "scheme": "Ticket", "description": "A ticket, gmt_…"},
    "key": {"type": "apiKey", "in": "query", "name": "key", "description": "A key for reading."},
}
webhooks = APIRouter()


@webhooks.post("message", summary="Receive a message")
async def message(body: Notification) -> None:
    """Confirm a message of the broker, which is signed as in Standard Webhooks.

    A status of 2xx confirms the message. Without it, the broker tries again. 410 disables the
    subscription. A message may arrive twice with the same `webhook-id`.
    """


def make_app(
    broker: Broker,
    matcher: MatchWorker | None = None,
    *,
    options: ApiOptions | None = None,
    retry: Retry | None = None,
    feeds: Poller | None = None,
    on_commit: Callable[[], None] | None = None,
    on_matched: Callable[[Sequence[int]], None] | None = None,
    log: FilteringBoundLogger | None = None,
) -> FastAPI:
    """Return the application.

    Parameters
    ----------
    broker
        The broker.
    matcher
        Its match worker. The caller starts and stops it.
    options
        Options of the API.
    retry
        Sends a delivery again; by default the store only makes it due.
    feeds
        Follows feeds.
    on_commit
        Called after each commit of publications or subscriptions; by default it wakes `matcher`.
    on_matched
        Called with the numbers of the subscriptions that matched.
    log
        Log of requests.
    """
    options = options or ApiOptions()
    metrics, streams = Metrics(broker.store, broker.clock), Streams(broker, options.alive_seconds)
    metrics.registry.register(broker.supervisor)
    metrics.streams.set_function(lambda: len(streams))

    def matched(numbers: Sequence[int]) -> None:
        streams.notify(numbers)
        if on_matched is not None:
            on_matched(numbers)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        streams.start()
        if on_commit is not None:
            broker.on_commit = on_commit
        elif matcher is not None:
            broker.on_commit = matcher.wake
        if matcher is not None:
            matcher.on_matched, matcher.on_timed = matched, metrics.matched
        yield
        streams.stop()

    def observe(scope: Scope, status: int, seconds: float) -> None:
        metrics.answered(scope, status, seconds)
        if log is not None:
            values = {
                "path": scope["path"][:200],
                "status": status,
                "id": scope["state"]["request_id"],
            }
            log.info("request", method=scope["method"], ms=round(seconds * 1000, 1), **values)

    app = FastAPI(
        title="graphmatch broker",
        version=graphmatch.__version__,
        description=__doc__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=_PROBLEMS,
        webhooks=webhooks,
    )
    insights = InsightService(broker)
    app.state.api = Api(broker, matcher, streams, metrics, options, insights, retry, feeds, matched)
    app.router.routes.append(Route("/v1/publications", publications.publish, methods=["POST"]))
    for module in ROUTES:
        app.include_router(module.router)
    handle(app)
    if options.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=options.cors_origins,
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Idempotency-Key", "Last-Event-ID", "X-Request-Id"],
            expose_headers=["Location", "Retry-After", "X-Request-Id"],
        )
    app.add_middleware(
        Guard,
        body_bytes=broker.limits.body_bytes,
        hosts=options.hosts,
        observe=observe,
        seconds=options.body_seconds,
        own=options.netloc,
    )
    vars(app)["openapi"] = lambda: _openapi(app)
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return the description of the API, with the schemas that no signature names."""
    if app.openapi_schema is None:
        described = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            webhooks=app.webhooks.routes,
        )
        parts = described["components"]
        for model in (ProblemAnswer, PublicationView, SubscriptionRequest):
            schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
            parts["schemas"] |= schema.pop("$defs", {}) | {model.__name__: schema}
        for unused in ("HTTPValidationError", "ValidationError"):
            parts["schemas"].pop(unused, None)
        parts["securitySchemes"] = _SECURITY
        described["security"] = [{}, *({name: []} for name in _SECURITY)]
        app.openapi_schema = described
    return app.openapi_schema
