"""WebSub over HTTP: our hub, and the callbacks that others' hubs call.

What is refused is said as plain text, as hubs and subscribers of the recommendation do.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, FastAPI, Path, Request
from starlette.responses import Response

from graphmatch.broker.api.dependencies import TheApi
from graphmatch.broker.feeds.websub_service import WebSub
from graphmatch.broker.outbox.websub_protocol import Response as Answer

_FIELDS = 50
_FORM = "application/x-www-form-urlencoded"
_TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}}

router = APIRouter(prefix="/websub", default_response_class=Response)


def install(app: FastAPI, websub: WebSub) -> None:
    """Have an application answer hubs and their subscribers."""
    app.state.websub = websub
    app.include_router(router)


async def websub_of(request: Request) -> WebSub:
    """Return what the endpoints work with."""
    websub: WebSub = request.app.state.websub
    return websub


TheWebSub = Annotated[WebSub, Depends(websub_of)]
Id = Annotated[str, Path(max_length=100, description="What the hub was told.")]


def _said(answer: Answer) -> Response:
    return Response(answer.body, answer.status, media_type=answer.content_type)


@router.post(
    "",
    status_code=202,
    summary="Have a match feed sent when it changes (WebSub)",
    responses={202: {"description": "It will be verified."}, 404: {"description": "No topic."}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                _FORM: {
                    "schema": {
                        "type": "object",
                        "required": ["hub.mode", "hub.topic", "hub.callback"],
                        "properties": {
                            "hub.mode": {"type": "string", "enum": ["subscribe", "unsubscribe"]},
                            "hub.topic": {"type": "string", "format": "uri"},
                            "hub.callback": {"type": "string", "format": "uri"},
                            "hub.lease_seconds": {"type": "integer"},
                            "hub.secret": {"type": "string"},
                        },
                    }
                }
            },
        }
    },
)
async def ask_hub(request: Request, api: TheApi, websub: TheWebSub) -> Response:
    """Subscribe an address to a match feed, or end that: what the feed's `rel=hub` is for.

    The topic is the feed's address with its key, which is what one needs to know. The address is
    asked first whether it wants that; what it gets is signed with the secret, if there is one.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        return _said(Answer(415, f"send {_FORM}".encode()))
    try:
        text = (await request.body()).decode()
        form = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS))
    except ValueError:
        return _said(Answer(400, b"this is not a form"))
    is_ours = form.get("hub.topic", "").startswith(f"{api.root(request)}/")
    if form.get("hub.mode") == "subscribe" and not is_ours:
        return _said(Answer(404, b"hub.topic is no topic of this hub"))
    return _said(await websub.request(form))


@router.get(
    "/callback/{id}",
    summary="Ask whether a feed was asked for (for hubs)",
    responses={200: {"description": "The challenge.", **_TEXT}, 404: {"description": "No."}},
)
async def verify(id: Id, request: Request, websub: TheWebSub) -> Response:
    """Return the challenge, where the broker has asked the hub for this."""
    return _said(await websub.subscriber.verify(id, request.query_params))


@router.post(
    "/callback/{id}",
    status_code=202,
    summary="Send what is new in a feed (for hubs)",
    responses={
        202: {"description": "Its items are in the log."},
        403: {"description": "The signature is not right."},
        410: {"description": "Nobody has asked for it."},
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/atom+xml": {"schema": {"type": "string"}}},
        }
    },
)
async def receive(id: Id, request: Request, websub: TheWebSub) -> Response:
    """Take a feed that a hub sends; the answer comes after the commit."""
    if not websub.subscriber.awaits(id):
        return _said(Answer(410, b"nobody has asked for this"))
    return _said(await websub.subscriber.receive(id, request.headers, await request.body()))
