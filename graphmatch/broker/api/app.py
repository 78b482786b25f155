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

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

import graphmatch
from graphmatch.broker.api import (
    accounts,
    deliveries,
    feeds,
    insight,
    matches,
    publications,
    subscriptions,
    system,
)
from graphmatch.broker.api.dependencies import Api
from graphmatch.broker.api.guard import Guard
from graphmatch.broker.api.problems import HANDLERS, MEDIA_TYPE
from graphmatch.broker.models.delivery import Notification
from graphmatch.broker.models.publication import PublicationView
from graphmatch.broker.models.subscription import SubscriptionRequest

ROUTES = (subscriptions, matches, deliveries, publications, insight, feeds, accounts, system)
_PROBLEM = {"content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemAnswer"}}}}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "The request was refused.", **_PROBLEM},
    "5XX": {"description": "The broker cannot answer now.", **_PROBLEM},
}
_SECURITY = {
    "token": {"type": "http", "scheme": "bearer", "description": "An API token, gmk_…"},
    "ticket": {"type": "http", "scheme": "Ticket", "description": "A ticket, gmt_…"},
    "key": {"type": "apiKey", "in": "query", "name": "key", "description": "A key for reading."},
}
_SECTIONS = re.compile(r"\n+(?:Parameters|Examples)\n-")
"""Sections of docstrings that descriptions leave out."""
webhooks = APIRouter(responses={"4XX": {"description": "The message was refused."}})


@webhooks.post("message", summary="Receive a message")
async def message(body: Notification) -> None:
    """Confirm a message of the broker, which is signed as in Standard Webhooks.

    A status of 2xx confirms the message. Without it, the broker tries again. 410 disables the
    subscription. A message may arrive twice with the same `webhook-id`.
    """


class Application(FastAPI):
    """The application. Its description also has the schemas that no signature names."""

    def openapi(self) -> dict[str, Any]:
        """Return the description of the API."""
        described = super().openapi()
        if "security" not in described:
            parts = described["components"]
            for model in (PublicationView, SubscriptionRequest):
                schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
                parts["schemas"] |= schema.pop("$defs", {}) | {model.__name__: schema}
            for schema in parts["schemas"].values():
                schema["description"] = _SECTIONS.split(schema.get("description", ""))[0]
            parts["securitySchemes"] = _SECURITY
            described["security"] = [{}, *({name: []} for name in _SECURITY)]
        return described


def make_app(api: Api) -> Application:
    """Return the application of a broker, whose match worker it connects with the streams."""
    if api.matcher is not None:
        api.broker.on_commit = api.matcher.wake
        api.matcher.on_matched, api.matcher.on_timed = api.on_matched, api.metrics.matched

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        api.streams.start()
        yield
        api.streams.stop()

    app = Application(
        title="graphmatch broker",
        version=graphmatch.__version__,
        description=__doc__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=_PROBLEMS,
        webhooks=webhooks,
        exception_handlers=HANDLERS,
        # The broker has metrics of its own. Looking for others takes 2 % of a request.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.api = api
    api.metrics.streams.set_function(lambda: len(api.streams))
    app.router.routes.append(Route("/v1/publications", publications.publish, methods=["POST"]))
    for module in ROUTES:
        app.include_router(module.router)
    app.mount(system.DOCS_FILES, StaticFiles(packages=[("fastapi_offline", "static")]))
    if api.options.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=api.options.cors_origins,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["Location", "Retry-After", "X-Request-Id"],
        )
    app.add_middleware(Guard, api)
    return app
