"""The guard in front of all endpoints: limits of requests, and their observation.

The guard gives each request an id. It stops reading a body at the limit, even without a length, and
when no data arrives for a while. It refuses requests that a
browser sends for another site (a wrong ``Host``, a foreign ``Origin``).
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphmatch.broker.api.problems import HttpError, problem_answer
from graphmatch.broker.models.publication import LINE_TYPES
from semantic.errors import Place, Problem

BODY_SECONDS = 30.0
"""Time limit for the next part of a body, in seconds."""
SMALL_BODY_BYTES = 1_000_000
"""Limit of bodies without documents."""
_ONTOLOGY_BYTES = 4_000_000
_LARGE = {"/what-if": 2 * _ONTOLOGY_BYTES, "/v1/ontology:what-if": _ONTOLOGY_BYTES}
"""Limits of other bodies by path, in bytes."""
_DOCUMENTS = re.compile(r"/v1/publications|/websub/callback/.*", re.DOTALL)
"""Paths of bodies that may have the largest size."""
_REQUEST_ID = re.compile(r"[\w.:-]{1,100}", re.ASCII)
_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
Observe = Callable[[Scope, int, float], None]


class Guard:
    """Limits requests, and observes responses.

    Parameters
    ----------
    app
        The guarded application.
    body_bytes
        Limit of bodies with documents.
    hosts
        Host names of the broker; ``None`` allows all.
    observe
        Called with the scope, the status and the duration in seconds of each response.
    seconds
        Time limit for the next part of a body.
    own
        Host and port of the broker for clients of its proxy.
    """

    def __init__(
        self,
        app: ASGIApp,
        body_bytes: int,
        hosts: frozenset[str] | None,
        observe: Observe,
        seconds: float = BODY_SECONDS,
        own: str | None = None,
    ) -> None:
        self._app, self._bytes, self._hosts, self._own = app, body_bytes, hosts, own
        self._observe, self._seconds = observe, seconds

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

        try:
            if (refused := self._refused(scope, headers)) is not None:
                await refused(scope, receive, sent)
            else:
                await self._app(scope, _Body(self, scope, headers, receive).next, sent)
        finally:
            self._observe(scope, status, time.perf_counter() - begun)

    def _refused(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the response to a request that must not reach an endpoint."""
        host, origin = headers.get("host", ""), headers.get("origin")
        named = _HOST.fullmatch(host)
        if named is None or len(headers.getlist("host")) > 1:
            what, remedy = "the header Host is missing or not valid", "Send one host name."
            return problem_answer(scope, 400, Problem(what, Place("Host"), remedy))
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        for field, value in (("path", scope["path"]), *query):
            if "\0" in value:
                problem = Problem("a NUL (U+0000)", Place("request", item=field), "Remove it.")
                return problem_answer(scope, 400, problem)
        if self._hosts is not None and named[1].lower() not in self._hosts:
            what = "the broker has another host name"
            remedy = "Use 127.0.0.1 or localhost. Behind a proxy, set --url to its address."
            return problem_answer(scope, 421, Problem(what, Place("Host"), remedy))
        foreign = origin is not None and _netloc(origin) not in (host.lower(), self._own or host)
        if foreign and scope["method"] not in _SAFE and "authorization" not in headers:
            what, remedy = "a page of another site sent the request", "Send a token or a ticket."
            return problem_answer(scope, 403, Problem(what, Place("Origin"), remedy))
        return None

    def limit(self, scope: Scope, headers: Headers) -> int:
        """Return the limit of a request's body, in bytes."""
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type in LINE_TYPES or _DOCUMENTS.fullmatch(scope["path"]):
            return self._bytes
        return min(self._bytes, _LARGE.get(scope["path"], SMALL_BODY_BYTES))

    async def received(self, receive: Receive) -> Message:
        """Return the next part of a body as it arrives."""
        try:
            async with asyncio.timeout(self._seconds):
                return await receive()
        except TimeoutError as error:
            what = f"no data arrived for {self._seconds:g} seconds"
            raise _refusal(408, what, "Send it again.") from error


class _Body:
    """The body of a request, which `next` reads within the limits."""

    def __init__(self, guard: Guard, scope: Scope, headers: Headers, receive: Receive) -> None:
        self._guard, self._receive, self._limit = guard, receive, guard.limit(scope, headers)
        self._encoding = headers.get("content-encoding", "identity").strip().lower()
        self._length = headers.get("content-length", "")
        self._received, self._ended = 0, False

    async def next(self) -> Message:
        """Return the next part of the body."""
        if self._ended:
            return await self._receive()
        if self._encoding not in ("", "identity"):
            what, remedy = "unsupported content encoding", "Send the body without compression."
            problem = Problem(what, Place("Content-Encoding"), remedy)
            raise HttpError(415, problem, {"Accept-Encoding": "identity"})
        too_large = f"a body of more than {self._limit:,} bytes"
        # A client with a slightly larger body reads the response only after it has sent the body.
        if self._length.isdecimal() and int(self._length[:18]) > 2 * self._limit:
            raise _refusal(413, too_large, "Send several requests.")
        while True:
            message = await self._guard.received(self._receive)
            self._received += len(message.get("body", b""))
            self._ended = not message.get("more_body", False)
            if self._received <= self._limit:
                return message
            if self._ended or self._received > 2 * self._limit:
                raise _refusal(413, too_large, "Send several requests.")


def _refusal(status: int, what: str, remedy: str) -> HttpError:
    return HttpError(status, Problem(what, Place("body"), remedy), {"Connection": "close"})


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
