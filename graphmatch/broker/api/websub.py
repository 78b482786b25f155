"""WebSub over HTTP: the broker's hub, and the callbacks for the hubs of feeds.

Errors are plain text, as the recommendation requires.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Protocol
from urllib.parse import parse_qsl

from fastapi import APIRouter, FastAPI, Path, Request
from starlette.responses import Response

from graphmatch.broker.api.dependencies import TheApi
from graphmatch.broker.feeds.websub_subscriber import Subscriber
from graphmatch.broker.outbox.websub_hub import Response as HubResponse

_MAX_FIELDS = 50
_FORM = "application/x-www-form-urlencoded"
_REQUIRED = ["hub.mode", "hub.topic", "hub.callback"]
_FIELDS = {name: {"type": "string"} for name in (*_REQUIRED, "hub.lease_seconds", "hub.secret")}
_SCHEMA = {"type": "object", "required": _REQUIRED, "properties": _FIELDS}
_FEED = {"schema": {"type": "string"}}
_TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}}

router = APIRouter(prefix="/websub", default_response_class=Response)


class HubRequests(Protocol):
    """The hub, which answers requests for match feeds."""

    async def request(self, form: Mapping[str, str]) -> HubResponse:
        """Return the response to a request."""


def install(app: FastAPI, hub: HubRequests, subscriber: Subscriber) -> None:
    """Add the endpoints to an application."""
    app.state.hub, app.state.subscriber = hub, subscriber
    app.include_router(router)


Id = Annotated[str, Path(max_length=100, description="The id in the callback's address.")]


def _response(answer: HubResponse) -> Response:
    return Response(answer.body, answer.status, media_type="text/plain")


def _body(media_type: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {media_type: content}}}


@router.post(
    "",
    status_code=202,
    summary="Subscribe a callback to a match feed (WebSub)",
    responses={202: {"description": "It will be verified."}, 404: {"description": "No topic."}},
    openapi_extra=_body(_FORM, {"schema": _SCHEMA}),
)
async def ask_hub(request: Request, api: TheApi) -> Response:
    """Subscribe a callback to a match feed, or unsubscribe it; feeds name this hub (`rel=hub`).

    The topic is the address of the feed with its key. The hub asks the callback first, and signs
    the content if there is a secret.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        return _response(HubResponse(415, f"send {_FORM}".encode()))
    try:
        text = (await request.body()).decode()
        form = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except ValueError:
        return _response(HubResponse(400, b"the body is not a form"))
    is_ours = form.get("hub.topic", "").startswith(f"{api.root(request)}/")
    if form.get("hub.mode") == "subscribe" and not is_ours:
        return _response(HubResponse(404, b"hub.topic does not belong to this hub"))
    return _response(await request.app.state.hub.request(form))


@router.get(
    "/callback/{id}",
    summary="Verify a subscription of the broker (for hubs)",
    responses={200: {"description": "The challenge.", **_TEXT}, 404: {"description": "Unknown."}},
)
async def verify(id: Id, request: Request) -> Response:
    """Return the challenge, if the broker has asked the hub for this."""
    return _response(await request.app.state.subscriber.verify(id, request.query_params))


@router.post(
    "/callback/{id}",
    status_code=202,
    summary="Push new items of a feed (for hubs)",
    responses={
        202: {"description": "The items are in the log."},
        403: {"description": "The signature is not valid."},
        410: {"description": "There is no such subscription."},
    },
    openapi_extra=_body("application/atom+xml", _FEED),
)
async def receive(id: Id, request: Request) -> Response:
    """Accept the content of a feed; the response comes after the commit."""
    subscriber: Subscriber = request.app.state.subscriber
    if (refusal := subscriber.refusal(id)) is not None:  # Do not read its body.
        return _response(refusal)
    return _response(await subscriber.receive(id, request.headers, await request.body()))
