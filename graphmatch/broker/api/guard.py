"""The guard in front of all endpoints: limits of requests, and their observation.

The guard gives each request an id. It stops reading a body at the limit, even without a length, and
when no data arrives for a while. It refuses requests that a browser sends for another site (a wrong
``Host``, a foreign ``Origin``).
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphmatch.broker.api.dependencies import Api
from graphmatch.broker.api.problems import HttpError, media_type, problem_answer
from graphmatch.broker.metrics import without_secrets
from graphmatch.broker.models.publication import LINE_TYPES
from semantic.errors import Place, Problem

BODY_SECONDS = 30.0
"""Time limit for the next part of a body, in seconds."""
SMALL_BODY_BYTES = 1_000_000
"""Limit of bodies without documents."""
_LARGE = {"/what-if": 8_000_000, "/v1/ontology:what-if": 4_000_000}
"""Other limits of bodies by path, in bytes."""
SLOW_SECONDS = 1.0
"""Duration from which a successful request is logged."""
_REQUEST_ID = re.compile(r"[\w.:-]{1,100}", re.ASCII)
_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Guard:
    """Limits requests, and observes responses."""

    def __init__(self, app: ASGIApp, api: Api) -> None:
        self._app, self._metrics, self._hosts = app, api.metrics, api.options.hosts
        self._own = urlsplit(api.options.url or "").netloc.lower() or None
        self._bytes = api.broker.limits.body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        begun, status, headers = time.perf_counter(), 500, Headers(scope=scope)
        id = headers.get("x-request-id", "")
        id = id if _REQUEST_ID.fullmatch(id) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = id
        if scope["method"] == "HEAD" and not scope["path"].endswith("/events"):
            scope = {**scope, "method": "GET"}  # The server sends no body.

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                added = MutableHeaders(scope=message)
                added["X-Request-Id"] = id
                added.setdefault("X-Content-Type-Options", "nosniff")
                added.setdefault("Referrer-Policy", "no-referrer")
                added.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            refused = self._refused(scope, headers)
            if refused is None:
                await self._app(scope, self._limited(scope, headers, receive), sent)
            else:
                await refused(scope, receive, sent)
        finally:
            seconds = time.perf_counter() - begun
            self._metrics.answered(scope, status, seconds)
            if status >= 400 or seconds > SLOW_SECONDS:
                values = {"method": scope["method"], "path": without_secrets(scope["path"][:200])}
                values |= {"status": status, "ms": round(seconds * 1000, 1), "request_id": id}
                logging.getLogger("graphmatch.broker").info("request", extra=values)

    def _refused(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the response to a request that must not reach an endpoint."""

        def refusal(status: int, what: str, part: str, remedy: str) -> Response:
            return problem_answer(scope, status, Problem(what, Place(part), remedy))

        host = headers.get("host", "").lower()
        name = _HOST.fullmatch(host)
        if name is None or len(headers.getlist("host")) > 1:
            what = "the header Host is missing or not valid"
            return refusal(400, what, "Host", "Send one host name.")
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            return refusal(400, "a NUL (U+0000)", "address", "Remove it.")
        if self._hosts is not None and name[1] not in self._hosts:
            remedy = "Use 127.0.0.1 or localhost. Behind a proxy, set --url to its address."
            return refusal(421, "the broker has another host name", "Host", remedy)
        origin = headers.get("origin", f"://{host}").partition("://")[2].lower()
        is_forged = origin not in (host, self._own) and scope["method"] not in _SAFE
        if is_forged and "authorization" not in headers:
            what, remedy = "a page of another site sent the request", "Send a token or a ticket."
            return refusal(403, what, "Origin", remedy)
        if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            what, remedy = "unsupported content encoding", "Send the body without compression."
            return refusal(415, what, "Content-Encoding", remedy)
        return None

    def _limited(self, scope: Scope, headers: Headers, receive: Receive) -> Receive:
        """Return the function that receives a request's body within the limits."""
        path, received, is_complete = scope["path"], 0, False
        is_document = path == "/v1/publications" or path.startswith("/websub/callback/")
        is_large = is_document or media_type(headers) in LINE_TYPES
        limit = self._bytes if is_large else min(self._bytes, _LARGE.get(path, SMALL_BODY_BYTES))

        async def next() -> Message:
            nonlocal received, is_complete
            while not is_complete:
                try:
                    async with asyncio.timeout(BODY_SECONDS):
                        message = await receive()
                except TimeoutError as error:
                    what = f"no data arrived for {BODY_SECONDS:g} seconds"
                    raise _body_error(408, what, "Send it again.") from error
                received += len(message.get("body", b""))
                is_complete = not message.get("more_body", False)
                if received <= limit:
                    return message
                # A client with a slightly larger body reads the response after sending it.
                if is_complete or received > 2 * limit:
                    what = f"a body of more than {limit:,} bytes"
                    raise _body_error(413, what, "Send several requests.")
            return await receive()

        return next


def _body_error(status: int, what: str, remedy: str) -> HttpError:
    return HttpError(status, Problem(what, Place("body"), remedy), {"Connection": "close"})
