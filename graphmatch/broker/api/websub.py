"""WebSub over HTTP: the broker's hub, and the callbacks for the hubs of feeds.

Errors are plain text, as the recommendation requires.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, FastAPI, Form, Path, Request
from pydantic import BaseModel, Field
from starlette.responses import PlainTextResponse, Response

from graphmatch.broker.api.dependencies import TheApi, document_body
from graphmatch.broker.feeds.websub_subscriber import Subscriber
from graphmatch.broker.outbox.websub_hub import Hub
from graphmatch.broker.outbox.websub_protocol import Response as HubResponse

router = APIRouter(
    prefix="/websub",
    default_response_class=PlainTextResponse,
    responses={"4XX": {"description": "The request was refused."}},
)


class HubForm(BaseModel):
    """A request to the hub."""

    mode: str = Field("", alias="hub.mode")
    topic: str = Field("", alias="hub.topic")
    callback: str = Field("", alias="hub.callback")
    lease_seconds: str = Field("", alias="hub.lease_seconds")
    secret: str = Field("", alias="hub.secret")


def install(app: FastAPI, hub: Hub, subscriber: Subscriber) -> None:
    """Add the endpoints to an application."""
    app.state.hub, app.state.subscriber = hub, subscriber
    app.include_router(router)


Id = Annotated[str, Path(max_length=100, description="The id in the callback's address.")]


def _response(answer: HubResponse) -> Response:
    return Response(answer.body, answer.status, media_type="text/plain")


@router.post("", status_code=202, summary="Subscribe a callback to a match feed (WebSub)")
async def ask_hub(form: Annotated[HubForm, Form()], request: Request, api: TheApi) -> Response:
    """Subscribe a callback to a match feed, or unsubscribe it; feeds name this hub (`rel=hub`).

    The topic is the address of the feed with its key. The hub asks the callback first, and signs
    the content if there is a secret.
    """
    if form.mode == "subscribe" and not form.topic.startswith(f"{api.root(request)}/"):
        return _response(HubResponse(404, b"hub.topic does not belong to this hub"))
    return _response(await request.app.state.hub.request(form.model_dump(by_alias=True)))


@router.get("/callback/{id}", summary="Verify a subscription of the broker (for hubs)")
async def verify(id: Id, request: Request) -> Response:
    """Return the challenge, if the broker has asked the hub for this."""
    return _response(await request.app.state.subscriber.verify(id, request.query_params))


@router.post(
    "/callback/{id}",
    status_code=202,
    summary="Push new items of a feed (for hubs)",
    openapi_extra=document_body({"application/atom+xml": None}),
)
async def receive(id: Id, request: Request) -> Response:
    """Accept the content of a feed; the response comes after the commit.

    The status is 403 if the signature is not valid, and 410 if there is no such subscription.
    """
    subscriber: Subscriber = request.app.state.subscriber
    return _response(await subscriber.receive(id, request.headers, request.body))
