"""Problems as HTTP has them (RFC 9457), and what is refused before an endpoint sees it.

Every answer that is an error is ``application/problem+json``: with ``what``, ``where`` and
``remedy`` beside the members of the standard, as the command and Python have them.

The guard reads bodies no further than the limit allows, also those without a length and those that
are compressed; has no patience with bodies that do not come; and refuses what a browser sends
for another page (a wrong ``Host``, a foreign ``Origin``).
"""

from __future__ import annotations

import asyncio
import json
import re
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DBAPIError
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphmatch.broker.app.errors import BusyError, ConflictError, NotFoundError
from graphmatch.broker.db.store import StoreError
from semantic.errors import GraphMatchError, Place, Problem

MEDIA_TYPE = "application/problem+json"
TYPE = "urn:graphmatch:problem:"
"""What types of problems begin with; the status's name follows: ``not-found``."""
BODY_SECONDS = 30.0
"""How long a body may keep us waiting for its next piece."""
_PUSHED = "/websub/callback/"
"""What the addresses begin with to which hubs send feeds."""
SMALL_BODY = 1_000_000
"""Bytes of a body that has no documents, at most."""
_ONTOLOGY = 4_000_000
_LARGE = {"/what-if": 2 * _ONTOLOGY, "/v1/ontology:what-if": _ONTOLOGY}
"""Where larger bodies are sent, in bytes; those of publications have a limit of their own."""
_RETRY_SECONDS = 5
_TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}
"""As RFC 9110 calls them; Python's names change with its version."""
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
Observe = Callable[[Scope, int, float], None]


class HttpError(HTTPException):
    """What is refused with a status of HTTP.

    Parameters
    ----------
    status
        The status.
    problem
        What is wrong.
    headers
        More that the answer has.
    """

    def __init__(
        self, status: int, problem: Problem, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, str(problem), headers)
        self.problem = problem


def problem_body(status: int, problem: Problem, others: Sequence[Problem] = ()) -> dict[str, Any]:
    """Return a problem as RFC 9457 has it.

    Examples
    --------
    >>> body = problem_body(404, Problem("no such thing", Place("a"), "Look elsewhere."))
    >>> body["type"], body["title"], body["where"]
    ('urn:graphmatch:problem:not-found', 'Not Found', {'source': 'a'})
    """
    title = _TITLES.get(status) or HTTPStatus(status).phrase
    body = {
        "type": TYPE + title.lower().replace(" ", "-").replace("'", ""),
        "title": title,
        "status": status,
        "detail": str(problem),
        **told(problem),
    }
    if others:
        body["problems"] = [told(one) for one in others]
    return body


def told(problem: Problem) -> dict[str, Any]:
    """Return what a problem says."""
    where = {key: value for key, value in asdict(problem.where).items() if value is not None}
    return {"what": problem.what, "where": where, "remedy": problem.remedy}


def problem_answer(
    status: int,
    problem: Problem,
    headers: Mapping[str, str] | None = None,
    others: Sequence[Problem] = (),
) -> Response:
    """Return the answer that says a problem."""
    content = json.dumps(problem_body(status, problem, others)).encode()
    return Response(content, status, dict(headers or {}), MEDIA_TYPE)


def status_of(error: GraphMatchError) -> int:
    """Return the status that an error is said with."""
    if isinstance(error, NotFoundError):
        return HTTPStatus.NOT_FOUND
    if isinstance(error, ConflictError):
        return HTTPStatus.CONFLICT
    if isinstance(error, StoreError | BusyError):
        return HTTPStatus.SERVICE_UNAVAILABLE
    return 422


def handle(app: FastAPI, constraints: str) -> None:
    """Have an application say all its errors as problems.

    Parameters
    ----------
    constraints
        The address of what publications have to be like, which LDN wants named.
    """
    link = f'<{constraints}>; rel="http://www.w3.org/ns/ldp#constrainedBy"'

    def headers_for(request: Request, more: Mapping[str, str] | None = None) -> dict[str, str]:
        headers = dict(more or {})
        if request.url.path == "/v1/publications":
            headers["Link"] = link
        return headers

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, GraphMatchError)
        status = status_of(error)
        unavailable = {"Retry-After": str(_RETRY_SECONDS)} if status == 503 else None
        return problem_answer(status, error.problem, headers_for(request, unavailable))

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        status, headers = error.status_code, headers_for(request, error.headers)
        if isinstance(error, HttpError):
            return problem_answer(status, error.problem, headers)
        place = Place(request.url.path[:200])
        if status == HTTPStatus.NOT_FOUND:
            problem = Problem("there is nothing at this address", place, "See /docs.")
        elif status == HTTPStatus.METHOD_NOT_ALLOWED:
            what = f"the method {request.method} is not allowed"
            problem = Problem(what, place, "The header Allow lists methods.")
            headers["Allow"] = ", ".join(_allowed(app, request.url.path))
        else:
            problem = Problem(str(error.detail), place, "See /docs.")
        return problem_answer(status, problem, headers)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        found = [_invalid(one) for one in error.errors()]
        malformed = any(one["type"] == "json_invalid" for one in error.errors())
        status = HTTPStatus.BAD_REQUEST if malformed else 422
        return problem_answer(status, found[0], headers_for(request), found)

    async def not_kept(request: Request, _: Exception) -> Response:
        what, remedy = "the database cannot keep a value in it", "Remove NULs and invalid numbers."
        problem = Problem(what, Place(request.url.path[:200]), remedy)
        return problem_answer(422, problem, headers_for(request))

    async def broken_off(request: Request, _: Exception) -> Response:
        what, remedy = "the body breaks off", "Send it again."
        problem = Problem(what, Place(request.url.path[:200]), remedy)
        return problem_answer(HTTPStatus.BAD_REQUEST, problem)  # as a rule nobody reads it

    async def fault(request: Request, _: Exception) -> Response:
        what, remedy = "an error in the broker", "Its log says more; please report it."
        problem = Problem(what, Place(request.url.path[:200]), remedy)
        return problem_answer(HTTPStatus.INTERNAL_SERVER_ERROR, problem)

    app.add_exception_handler(GraphMatchError, refused)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(DBAPIError, not_kept)
    app.add_exception_handler(ClientDisconnect, broken_off)
    app.add_exception_handler(Exception, fault)


def _allowed(app: FastAPI, path: str) -> list[str]:
    """Return the methods of a path: the router knows those of the first route that fits."""
    found = set()
    for template, methods in app.openapi()["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            found |= {method.upper() for method in methods}
    return sorted(found | ({"HEAD"} if "GET" in found else set()))


def _invalid(error: Mapping[str, Any]) -> Problem:
    """Return the problem of a part of a request that is not what it has to be."""
    source, *rest = map(str, error["loc"] or ("request",))
    if error["type"] == "json_invalid":
        why = error.get("ctx", {}).get("error", "")
        what, remedy = f"the body is not JSON: {why}", "Correct it."
        return Problem(what, Place(source, item=f"character {rest[0]}" if rest else None), remedy)
    item = ".".join(rest)[:200] or None
    what = f"not valid: {error['msg']}"
    return Problem(what, Place(source, item=item), "See /docs for what belongs there.")


# -- before an endpoint -------------------------------------------------------------------------


class Guard:
    """Bounds requests, and observes answers.

    Parameters
    ----------
    app
        What is guarded.
    body_bytes
        Of publications, at most.
    hosts
        What may be in the header ``Host``, without the port; ``None``: any.
    observe
        Called with the scope, the status and the seconds of each answer that has begun.
    seconds
        How long a body may keep us waiting for its next piece.
    own
        The host and the port that a proxy gives the broker to others.
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
        begun = time.perf_counter()
        status = 0
        if scope["method"] == "HEAD" and not scope["path"].endswith("/events"):
            scope = {**scope, "method": "GET"}  # the server leaves the body out

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.setdefault("X-Content-Type-Options", "nosniff")
                headers.setdefault("Referrer-Policy", "no-referrer")
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            if (refused := self._refused(scope)) is not None:
                await refused(scope, receive, sent)
            else:
                await self._app(scope, self._bounded(scope, receive), sent)
        finally:
            self._observe(scope, status or 500, time.perf_counter() - begun)

    def _refused(self, scope: Scope) -> Response | None:
        """Return the answer to what is refused for where it comes from."""
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        place = Place("Host")
        if _HOST.fullmatch(host) is None or len(headers.getlist("host")) > 1:
            what, remedy = "the header Host is missing, or names no one host", "Send one."
            return problem_answer(HTTPStatus.BAD_REQUEST, Problem(what, place, remedy))
        name = host.lower() if host.endswith("]") else host.lower().rpartition(":")[0] or host
        query = scope["query_string"].decode("latin-1")
        for field, value in (("path", scope["path"]), *parse_qsl(query, keep_blank_values=True)):
            if "\0" in value:
                problem = Problem("a NUL (U+0000)", Place("request", item=field), "Leave it out.")
                return problem_answer(HTTPStatus.BAD_REQUEST, problem)
        if self._hosts is not None and name.lower() not in self._hosts:
            what = "the broker has another host name"
            remedy = "Use 127.0.0.1 or localhost. Behind a proxy, set --url to its address."
            return problem_answer(HTTPStatus.MISDIRECTED_REQUEST, Problem(what, place, remedy))
        foreign = origin is not None and _netloc(origin) not in (host.lower(), self._own or host)
        if foreign and scope["method"] not in _SAFE and "authorization" not in headers:
            what, remedy = "another site's page sent it", "Send a token or a ticket."
            return problem_answer(HTTPStatus.FORBIDDEN, Problem(what, Place("Origin"), remedy))
        return None

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """Return what a body is read by: no more than the limit, and decompressed."""
        headers = Headers(scope=scope)
        limit = self._bytes
        documents = scope["path"] == "/v1/publications" or scope["path"].startswith(_PUSHED)
        if not documents:
            limit = min(limit, _LARGE.get(scope["path"], SMALL_BODY))
        body = _Body(limit, headers.get("content-encoding", "identity"))

        async def pieces() -> Message:
            if body.ended:
                return await receive()
            body.check(headers.get("content-length"))
            return await body.next(receive, self._seconds)

        return pieces


class _Body:
    """A body as it comes."""

    def __init__(self, limit: int, encoding: str) -> None:
        self._limit, self._encoding = limit, encoding.strip().lower()
        self._unpacking = zlib.decompressobj(31) if self._encoding in ("gzip", "x-gzip") else None
        self._size = 0
        self._packed = 0
        self.ended = False

    def check(self, length: str | None) -> None:
        """Refuse what is too long by its own account, or in an encoding that is not read."""
        if self._unpacking is None and self._encoding not in ("", "identity"):
            what = "unsupported content encoding"
            problem = Problem(what, Place("Content-Encoding"), "Send gzip, or leave it out.")
            headers = {"Accept-Encoding": "gzip, identity"}
            raise HttpError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, problem, headers)
        if length is not None and length.isdecimal() and len(length) > 18:
            raise self._too_large()
        if length is not None and length.isdecimal() and int(length) > 2 * self._limit:
            raise self._too_large()  # of what is not much larger the client reads the answer

    def _too_large(self) -> HttpError:
        what, remedy = f"a body of more than {self._limit:,} bytes", "Send several requests."
        problem = Problem(what, Place("body"), remedy)
        close = {"Connection": "close"}
        return HttpError(413, problem, close)

    async def next(self, receive: Receive, seconds: float) -> Message:
        """Return the next piece."""
        message = await self._received(receive, seconds)
        if message["type"] != "http.request":
            return message
        data, more = message.get("body", b""), message.get("more_body", False)
        self.ended = not more
        self._packed += len(data)
        if self._unpacking is not None and data:
            data = self._unpacked(data)
        self._size += len(data)
        if self._size > self._limit or self._packed > self._limit:
            await self._drain(receive, seconds, more=more)
            raise self._too_large()
        if self.ended and self._unpacking is not None and not self._unpacking.eof:
            raise self._spoilt("it ends early")
        return {"type": "http.request", "body": data, "more_body": more}

    async def _received(self, receive: Receive, seconds: float) -> Message:
        try:
            async with asyncio.timeout(seconds):
                return await receive()
        except TimeoutError as error:
            what, remedy = f"nothing came for {seconds:g} seconds", "Send it again."
            problem = Problem(what, Place("body"), remedy)
            close = {"Connection": "close"}
            raise HttpError(HTTPStatus.REQUEST_TIMEOUT, problem, close) from error

    def _unpacked(self, data: bytes) -> bytes:
        """Return what gzip has in it, as far as the limit goes; members may follow each other."""
        whole = b""
        try:
            while data:
                assert self._unpacking is not None
                if self._unpacking.eof:
                    self._unpacking = zlib.decompressobj(31)
                room = self._limit - self._size - len(whole) + 1
                whole += self._unpacking.decompress(data, room)
                if len(whole) >= room:
                    break
                data = self._unpacking.unused_data
        except zlib.error as error:
            raise self._spoilt(str(error)) from error
        return whole

    def _spoilt(self, why: str) -> HttpError:
        what = f"the body is not gzip: {why}"
        problem = Problem(what, Place("body"), "Compress it again, or send it as it is.")
        return HttpError(HTTPStatus.BAD_REQUEST, problem, {"Connection": "close"})

    async def _drain(self, receive: Receive, seconds: float, *, more: bool) -> None:
        """Read a little more, so that the client comes to read the answer."""
        left = self._limit
        while more and left > 0:
            message = await self._received(receive, seconds)
            left -= len(message.get("body", b""))
            more = message.get("more_body", False)


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
