"""Errors as problems in the format of RFC 9457.

Each error is ``application/problem+json``. Besides the members of the standard, it has ``what``,
``where`` and ``remedy``, as on the command line and in Python, a stable ``code``, and the id of the
request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Scope

import graphmatch.broker.app.errors as errors
from graphmatch.broker.db.store import StoreError
from graphmatch.broker.metrics import route_of
from graphmatch.broker.models.problem import ProblemAnswer
from semantic.errors import GraphMatchError, InputError, Place, Problem, SubscriptionError

MEDIA_TYPE = "application/problem+json"
TYPE = "urn:graphmatch:problem:"
"""Beginning of the types of problems. The code follows."""
CONSTRAINTS = '</docs>; rel="http://www.w3.org/ns/ldp#constrainedBy"'
"""Link to the requirements for publications, as Linked Data Notifications require it."""
_KINDS: Mapping[type, tuple[int, str]] = {
    errors.NotFoundError: (404, "not-found"),
    errors.ConflictError: (409, "conflict"),
    errors.TooManyRequestsError: (429, "too-many-requests"),
    errors.BusyError: (503, "busy"),
    StoreError: (503, "store-unavailable"),
    SubscriptionError: (422, "invalid-subscription"),
    InputError: (422, "invalid-document"),
    GraphMatchError: (422, "invalid-request"),
}
"""Status and code by the class of an error."""
_TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}
"""Names of RFC 9110. Those in Python depend on its version."""
_MESSAGES = {404: "there is nothing at this address", 405: "this address has no such method"}


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


def media_type(headers: Headers) -> str:
    """Return the media type of a body without its parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


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
    code = code or title.lower().replace(" ", "-")
    return ProblemAnswer(
        what=problem.what,
        where=problem.where,
        remedy=problem.remedy,
        type=TYPE + code,
        title=title,
        status=status,
        code=code,
        detail=str(problem),
        request_id=scope.get("state", {}).get("request_id", ""),
        problems=list(problems) or None,
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
    return _invalid_part(request_error(error, "body").errors()[0])


async def _refused(request: Request, error: GraphMatchError) -> Response:
    status, code = kind_of(error)
    headers = {"Retry-After": "5"} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    if isinstance(error, errors.TooManyRequestsError):
        headers = {"Retry-After": str(int(error.retry_after) + 1)}
    return problem_answer(request.scope, status, error.problem, headers, code=code)


async def _http_error(request: Request, error: HTTPException) -> Response:
    status, headers = error.status_code, dict(error.headers or {})
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        # The router only knows the methods of the first route at this address.
        paths = request.app.openapi()["paths"]
        operations = paths.get(request.url.path) or paths.get(route_of(request.scope), {})
        methods = {*operations} | ({"head"} if "get" in operations else set())
        headers["Allow"] = ", ".join(sorted(methods)).upper()
    what = _MESSAGES.get(status, error.detail)
    problem = Problem(what, Place(request.url.path[:200]), "See /docs.")
    problem = getattr(error, "problem", problem)
    return problem_answer(request.scope, status, problem, headers)


async def _invalid(request: Request, error: RequestValidationError) -> Response:
    parts, name = error.errors(), media_type(request.headers)
    is_json = name == "application/json" or name.endswith("+json")
    if not is_json and any(one["loc"] == ("body",) and one["type"] != "missing" for one in parts):
        what = f"the media type {name[:100]!r} is not supported"
        problem = Problem(what, Place("Content-Type"), "Send application/json.")
        return problem_answer(request.scope, 415, problem)
    problems = [_invalid_part(one) for one in parts]
    malformed = any(one["type"] == "json_invalid" for one in parts)
    status, code = (400, "invalid-json") if malformed else (422, "invalid-request")
    return problem_answer(request.scope, status, problems[0], code=code, problems=problems)


def _invalid_part(error: Mapping[str, Any]) -> Problem:
    """Return the problem of an invalid part of a request, from an error of pydantic."""
    source, *rest = map(str, error["loc"] or ("request",))
    what = f"not valid: {error['msg']}"
    if error["type"] == "json_invalid":
        what = f"the body is not JSON: {error['ctx']['error']}"
        rest = [f"character {position}" for position in rest]
    return Problem(what, Place(source, item=".".join(rest)[:200] or None), "See /docs.")


async def _fault(request: Request, error: Exception) -> Response:
    status, what, remedy = next(_FAULTS[one] for one in type(error).__mro__ if one in _FAULTS)
    # The server catches unknown errors outside of the guard, which adds this header.
    headers = {"X-Request-Id": request.scope.get("state", {}).get("request_id", "")}
    problem = Problem(what, Place(request.url.path[:200]), remedy)
    return problem_answer(request.scope, status, problem, headers)


_FAULTS: Mapping[type, tuple[int, str, str]] = {
    DBAPIError: (422, "the database cannot store a value of it", "Remove invalid characters."),
    ClientDisconnect: (400, "the body is incomplete", "Repeat it."),
    Exception: (500, "an error in the broker", "Report its id."),
}
HANDLERS: dict[int | type[Exception], Any] = {
    GraphMatchError: _refused,
    HTTPException: _http_error,
    RequestValidationError: _invalid,
    **dict.fromkeys(_FAULTS, _fault),
}
"""Functions that answer errors with problems."""
