"""The guard in front of all endpoints: limits of requests, and their observation.

The guard gives each request an id. It stops reading a body at the limit, even without a length, and
when no data arrives for a while. It refuses requests that a browser sends for another site (a wrong
``Host``, a foreign ``Origin``).
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphmatch.broker.api.dependencies import ApiOptions
from graphmatch.broker.api.problems import HttpError, media_type, problem_answer
from semantic.errors import Place, Problem

BODY_SECONDS = 30.0
"""Time limit for the next part of a body, in seconds."""
SMALL_BODY_BYTES = 1_000_000
"""Limit of bodies without documents."""
LINE_TYPES = ("application/x-ndjson", "application/jsonl", "application/ndjson")
_LARGE = {"/what-if": 8_000_000, "/v1/ontology:what-if": 4_000_000}
"""Limits of bodies with ontologies by path, in bytes."""
_REQUEST_ID = re.compile(r"[\w.:-]{1,100}", re.ASCII)
_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_CLOSE = {"Connection": "close"}


class Guard:
    """Limits requests, and observes responses.

    Parameters
    ----------
    app
        The guarded application.
    body_bytes
        Limit of bodies with documents.
    options
        Options of the API.
    observe
        Called with the scope, the status and the duration in seconds of each response.
    """

    def __init__(
        self,
        app: ASGIApp,
        body_bytes: int,
        options: ApiOptions,
        observe: Callable[[Scope, int, float], None],
    ) -> None:
        self._app, self._bytes, self._observe = app, body_bytes, observe
        self._hosts, self._own = options.hosts, urlsplit(options.url or "").netloc.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
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

        limit = self._limit(scope["path"], headers)
        try:
            refused = self._refused(scope, headers, limit)
            if refused is None:
                await self._app(scope, self._limited(receive, limit), sent)
            else:
                await refused(scope, receive, sent)
        finally:
            self._observe(scope, status, time.perf_counter() - begun)

    def _limit(self, path: str, headers: Headers) -> int:
        """Return the limit of a request's body, in bytes."""
        is_document = path == "/v1/publications" or path.startswith("/websub/callback/")
        if is_document or media_type(headers) in LINE_TYPES:
            return self._bytes
        return min(self._bytes, _LARGE.get(path, SMALL_BODY_BYTES))

    def _refused(self, scope: Scope, headers: Headers, limit: int) -> Response | None:
        """Return the response to a request that must not reach an endpoint."""

        def refusal(status: int, what: str, part: str, remedy: str) -> Response:
            return problem_answer(scope, status, Problem(what, Place(part), remedy))

        host, origin = headers.get("host", ""), headers.get("origin")
        named, length = _HOST.fullmatch(host), headers.get("content-length", "")
        if named is None or len(headers.getlist("host")) > 1:
            what = "the header Host is missing or not valid"
            return refusal(400, what, "Host", "Send one host name.")
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            return refusal(400, "a NUL (U+0000)", "address", "Remove it.")
        if self._hosts is not None and named[1].lower() not in self._hosts:
            remedy = "Use 127.0.0.1 or localhost. Behind a proxy, set --url to its address."
            return refusal(421, "the broker has another host name", "Host", remedy)
        is_own = origin is None or (
            origin.partition("://")[2].lower() in (host.lower(), self._own or host)
        )
        if not is_own and scope["method"] not in _SAFE and "authorization" not in headers:
            what, remedy = "a page of another site sent the request", "Send a token or a ticket."
            return refusal(403, what, "Origin", remedy)
        if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            what, remedy = "unsupported content encoding", "Send the body without compression."
            return refusal(415, what, "Content-Encoding", remedy)
        # A client with a slightly larger body reads the response only after it has sent the body.
        if length.isdecimal() and int(length[:18]) > 2 * limit:
            return problem_answer(scope, 413, _too_large(limit), _CLOSE)
        return None

    def _limited(self, receive: Receive, limit: int) -> Receive:
        """Return the function that receives a body of a limited number of bytes."""
        received, is_complete = 0, False

        async def next() -> Message:
            nonlocal received, is_complete
            while not is_complete:
                try:
                    async with asyncio.timeout(BODY_SECONDS):
                        message = await receive()
                except TimeoutError as error:
                    what = f"no data arrived for {BODY_SECONDS:g} seconds"
                    problem = Problem(what, Place("body"), "Send it again.")
                    raise HttpError(408, problem, _CLOSE) from error
                received += len(message.get("body", b""))
                is_complete = not message.get("more_body", False)
                if received <= limit:
                    return message
                if is_complete or received > 2 * limit:
                    raise HttpError(413, _too_large(limit), _CLOSE)
            return await receive()

        return next


def _too_large(limit: int) -> Problem:
    what = f"a body of more than {limit:,} bytes"
    return Problem(what, Place("body"), "Send several requests.")
