"""Errors as problems in the format of RFC 9457.

Each error is ``application/problem+json``. Besides the members of the standard, it has ``what``,
``where`` and ``remedy``, as on the command line and in Python, a stable ``code``, and the id of the
request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Scope

from graphmatch.broker.app.errors import (
    BusyError,
    ConflictError,
    NotFoundError,
    TooManyRequestsError,
)
from graphmatch.broker.db.store import StoreError
from graphmatch.broker.models.problem import ProblemAnswer, ProblemItem
from semantic.errors import GraphMatchError, InputError, Place, Problem, SubscriptionError

MEDIA_TYPE = "application/problem+json"
TYPE = "urn:graphmatch:problem:"
"""Beginning of the types of problems. The code follows."""
CONSTRAINTS = '</docs#publications>; rel="http://www.w3.org/ns/ldp#constrainedBy"'
"""Link to the requirements for publications, as Linked Data Notifications require it."""
_KINDS: Mapping[type, tuple[int, str]] = {
    NotFoundError: (404, "not-found"),
    ConflictError: (409, "conflict"),
    TooManyRequestsError: (429, "too-many-requests"),
    BusyError: (503, "busy"),
    StoreError: (503, "store-unavailable"),
    SubscriptionError: (422, "invalid-subscription"),
    InputError: (422, "invalid-document"),
    GraphMatchError: (422, "invalid-request"),
}
"""Status and code by the class of an error."""
_TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}
"""Names of RFC 9110. Those in Python depend on its version."""


class HttpError(HTTPException):
    """A refusal with a status of HTTP."""

    def __init__(
        self, status: int, problem: Problem, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, str(problem), headers)
        self.problem = problem


def kind_of(error: GraphMatchError) -> tuple[int, str]:
    """Return the status and the code of an error."""
    return next(_KINDS[one] for one in type(error).__mro__ if one in _KINDS)


def status_of(error: GraphMatchError) -> int:
    """Return the status of an error."""
    return kind_of(error)[0]


def problem_of(
    scope: Scope, status: int, problem: Problem, code: str = "", problems: Sequence[Problem] = ()
) -> ProblemAnswer:
    """Return a problem as RFC 9457 defines it.

    Examples
    --------
    >>> scope = {"state": {"request_id": "r1"}}
    >>> answer = problem_of(scope, 404, Problem("no such thing", Place("a"), "Look elsewhere."))
    >>> answer.type, answer.title, answer.where.source
    ('urn:graphmatch:problem:not-found', 'Not Found', 'a')
    """
    title = _TITLES.get(status) or HTTPStatus(status).phrase
    code = code or title.lower().replace(" ", "-").replace("'", "")
    return ProblemAnswer(
        **ProblemItem.model_validate(problem).model_dump(),
        type=TYPE + code,
        title=title,
        status=status,
        code=code,
        detail=str(problem),
        request_id=scope.get("state", {}).get("request_id", ""),
        problems=[ProblemItem.model_validate(one) for one in problems] or None,
    )


def problem_answer(
    scope: Scope,
    status: int,
    problem: Problem,
    headers: Mapping[str, str] | None = None,
    **details: Any,
) -> Response:
    """Return the response for a problem; see `problem_of`."""
    content = problem_of(scope, status, problem, **details).model_dump_json(exclude_none=True)
    links = {"Link": CONSTRAINTS} if scope["path"] == "/v1/publications" else {}
    return Response(content, status, {**(headers or {}), **links}, MEDIA_TYPE)


def request_error(error: ValidationError, part: str) -> RequestValidationError:
    """Return the error of FastAPI for a part of a request that does not fit its model."""
    return RequestValidationError([{**one, "loc": (part, *one["loc"])} for one in error.errors()])


def first_problem(error: ValidationError) -> Problem:
    """Return the first problem of an invalid body."""
    return _invalid(request_error(error, "body").errors()[0])


def handle(app: FastAPI) -> None:
    """Make an application answer all errors with problems."""

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, GraphMatchError)
        status, code = kind_of(error)
        headers = {"Retry-After": "5"} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
        if isinstance(error, TooManyRequestsError):
            headers = {"Retry-After": str(int(error.retry_after) + 1)}
        return problem_answer(request.scope, status, error.problem, headers, code=code)

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        status, headers = error.status_code, dict(error.headers or {})
        place = Place(request.url.path[:200])
        if isinstance(error, HttpError):
            problem = error.problem
        elif status == HTTPStatus.NOT_FOUND:
            problem = Problem("there is nothing at this address", place, "See /docs.")
        elif status == HTTPStatus.METHOD_NOT_ALLOWED:
            what = f"the method {request.method} is not allowed"
            problem = Problem(what, place, "The header Allow lists methods.")
            headers["Allow"] = ", ".join(_allowed(app, request.url.path))
        else:
            problem = Problem(str(error.detail), place, "See /docs.")
        return problem_answer(request.scope, status, problem, headers)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        errors = error.errors()
        problems = [_invalid(one) for one in errors]
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if any(one["loc"] == ("body",) and one["type"] != "missing" for one in errors) and (
            re.fullmatch(r"application/(.+\+)?json", media_type) is None
        ):
            what = f"the media type {media_type[:100]!r} is not supported"
            problem = Problem(what, Place("Content-Type"), "Send application/json.")
            return problem_answer(request.scope, 415, problem)
        malformed = any(one["type"] == "json_invalid" for one in errors)
        status, code = (400, "invalid-json") if malformed else (422, "invalid-request")
        return problem_answer(request.scope, status, problems[0], code=code, problems=problems)

    def fault(status: int, what: str, remedy: str) -> Any:
        async def answer(request: Request, _: Exception) -> Response:
            # The server catches unknown errors outside of the guard, which adds this header.
            headers = {"X-Request-Id": request.scope.get("state", {}).get("request_id", "")}
            problem = Problem(what, Place(request.url.path[:200]), remedy)
            return problem_answer(request.scope, status, problem, headers)

        return answer

    what, remedy = "the database cannot store a value of the request", "Remove invalid characters."
    app.add_exception_handler(GraphMatchError, refused)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(DBAPIError, fault(422, what, remedy))
    app.add_exception_handler(ClientDisconnect, fault(400, "the body is incomplete", "Repeat it."))
    app.add_exception_handler(Exception, fault(500, "an error in the broker", "Report its id."))


def _allowed(app: FastAPI, path: str) -> list[str]:
    """Return the methods of a path. The router only knows those of the first matching route."""
    methods = {
        method.upper()
        for template, operations in app.openapi()["paths"].items()
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path)
        for method in operations
    }
    return sorted(methods | ({"HEAD"} if "GET" in methods else set()))


def _invalid(error: Mapping[str, Any]) -> Problem:
    """Return the problem of an invalid part of a request, from an error of pydantic."""
    source, *rest = map(str, error["loc"] or ("request",))
    if error["type"] == "json_invalid":
        what = f"the body is not JSON: {error.get('ctx', {}).get('error', '')}"
        item = f"character {rest[0]}" if rest else None
        return Problem(what, Place(source, item=item), "Correct it.")
    what = f"not valid: {error['msg']}"
    return Problem(what, Place(source, item=".".join(rest)[:200] or None), "See /docs.")
