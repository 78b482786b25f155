"""Endpoints of the broker itself: discovery, state, dead letters, metrics and documentation."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import JSONResponse, PlainTextResponse

from graphmatch.broker.api.dependencies import LISTED, Limit, TheApi, TheCaller
from graphmatch.broker.api.publications import LDP
from graphmatch.broker.db.dead_letters import count_dead_letters, newest_dead_letters
from graphmatch.broker.db.store import StoreError
from graphmatch.broker.metrics import without_secrets
from graphmatch.broker.models.problem import DeadLetter, DeadLetters, Readiness

FREE_BYTES = 50_000_000
"""Free space on the disk of a SQLite store below which the broker is not ready."""
DOCS_FILES = "/docs/files"
"""Path of the files of Swagger UI, which are in the package fastapi-offline."""
router = APIRouter()


class JsonLdResponse(JSONResponse):
    """A response in JSON-LD."""

    media_type = "application/ld+json"


@router.get("/", summary="Find the inbox", response_class=JsonLdResponse)
async def discovery(request: Request, response: Response, api: TheApi) -> dict[str, str]:
    """Return the addresses of the LDN inbox and of the API's description."""
    root = api.root(request)
    inbox = f"{root}/v1/publications"
    links = f'<{inbox}>; rel="{LDP}#inbox", <{root}/openapi.json>; rel="service-desc"'
    response.headers["Link"] = links
    return {"@context": LDP, "@id": f"{root}/", "inbox": inbox}


@router.get("/healthz", summary="Check that the broker responds")
async def healthz() -> Readiness:
    """Return `ok`."""
    return Readiness()


@router.get(
    "/readyz",
    summary="Check that the broker works",
    responses={503: {"description": "The broker does not work.", "model": Readiness}},
)
async def readyz(response: Response, api: TheApi) -> Readiness:
    """Return the faults of the store, its disk and background tasks; with faults the status is 503.

    Dead letters are records that a task could not process. They do not change the status.
    """
    supervisor, store = api.broker.supervisor, api.broker.store
    reasons, letters = [without_secrets(one) for one in supervisor.failing()], 0
    try:
        letters = await store.read(count_dead_letters)
        free = await asyncio.to_thread(lambda: store.free_bytes)
        if free is not None and free < FREE_BYTES:
            reasons.append(f"the disk of the store has only {free / 1e6:,.0f} MB left")
    except (StoreError, OSError):
        reasons.append("the store cannot be read")
    if api.matcher is not None and not api.matcher.is_running:
        reasons.append("publications are not being matched")
    if api.streams.stopped:
        reasons.append("the broker is stopping")
    response.status_code = 503 if reasons else 200
    return Readiness(
        status="not ready" if reasons else "ok",
        reasons=tuple(reasons),
        set_aside=tuple(supervisor.set_aside()),
        dead_letters=letters,
    )


@router.get("/v1/dead-letters", summary="List dead letters (admin)")
async def list_dead_letters(by: TheCaller, limit: Limit = LISTED) -> DeadLetters:
    """Return the newest records that background tasks could not process, with their errors."""
    by.check("admin")
    rows = await by.read(lambda db: newest_dead_letters(db, limit))
    letters = [DeadLetter(**{**row, "error": without_secrets(row["error"])}) for row in rows]
    return DeadLetters(dead_letters=letters, total=await by.read(count_dead_letters))


@router.get("/metrics", summary="Read metrics (admin)", response_class=PlainTextResponse)
async def metrics(by: TheCaller) -> Response:
    """Return metrics in the text format of Prometheus."""
    by.check("admin")
    content = await asyncio.to_thread(by.api.metrics.text)
    return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/docs", include_in_schema=False)
async def docs() -> Response:
    """Return a page about the endpoints and their data. The browser needs no other server."""
    page = get_swagger_ui_html(
        openapi_url="/openapi.json",
        title="graphmatch broker",
        swagger_js_url=f"{DOCS_FILES}/swagger-ui-bundle.js",
        swagger_css_url=f"{DOCS_FILES}/swagger-ui.css",
        swagger_favicon_url=f"{DOCS_FILES}/favicon.png",
    )
    policy = "default-src 'self' 'unsafe-inline'; img-src 'self' data:"
    page.headers["Content-Security-Policy"] = policy
    return page
