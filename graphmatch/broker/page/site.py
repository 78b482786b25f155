"""What the page's routes share: the page itself, who looks, and how problems are answered."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from graphmatch.broker.api.dependencies import Api
from graphmatch.broker.api.problems import status_of
from graphmatch.broker.app.errors import NotFoundError
from graphmatch.broker.insight.insight_service import InsightService
from graphmatch.broker.page.filters import environment
from graphmatch.broker.page.session import (
    HEADERS,
    ForbiddenError,
    LoginNeededError,
    Viewer,
    login_page,
    viewer_of,
)
from graphmatch.broker.service.broker import Broker
from semantic.errors import GraphMatchError, Place, Problem

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_INT64 = 2**63 - 1
_STATIC = Path(__file__).with_name("static")
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FOLLOW = "Follow a link of the page."


@dataclass(slots=True)
class Page:
    """What the page works with.

    Parameters
    ----------
    api
        The API's: its broker, and what is asked and polled beside it.
    stopped
        Whether the broker is stopping: streams end then.
    """

    api: Api
    stopped: Callable[[], bool] = lambda: False
    broker: Broker = field(init=False)
    insight: InsightService = field(init=False)
    static: Mapping[str, tuple[bytes, str]] = field(init=False)
    templates: Environment = field(init=False)
    streams: int = 0

    def __post_init__(self) -> None:
        """Read the static files."""
        self.broker, self.insight = self.api.broker, self.api.insight
        found = sorted(path for path in _STATIC.iterdir() if path.suffix in _TYPES)
        self.static = {path.name: (path.read_bytes(), _TYPES[path.suffix]) for path in found}
        versions = {name: sha256(data).hexdigest()[:12] for name, (data, _) in self.static.items()}
        self.templates = environment(versions)

    def show(
        self, request: Request, name: str, viewer: Viewer | None, code: int = 200, /, **values: Any
    ) -> Response:
        """Return a page, or the part of it that htmx asked for."""
        part = request.headers.get("hx-request") == "true"
        text = self.templates.get_template(name).render(
            part=part,
            page=self,
            viewer=viewer,
            path=request.url.path,
            now=self.broker.clock(),
            **values,
        )
        return Response(text, code, media_type="text/html; charset=utf-8")

    def problem(self, request: Request, status: int, problem: Problem) -> Response:
        """Return a problem as a page, or as a part of one."""
        return self.show(request, "problem.html", None, status, problem=problem, status=status)


def the_page(request: Request) -> Page:
    """Return the page that an application has."""
    page = request.app.state.page
    assert isinstance(page, Page)
    return page


async def _the_page(request: Request) -> Page:
    return the_page(request)  # a plain function would be called in a thread


ThePage = Annotated[Page, Depends(_the_page)]


async def the_viewer(request: Request, page: ThePage) -> Viewer:
    """Return who looks; those who have not logged in are sent to do so."""
    return await viewer_of(request, page.api)


TheViewer = Annotated[Viewer, Depends(the_viewer)]
Before = Annotated[int | None, Query(ge=0, le=MAX_INT64)]
Text = Annotated[str, Query(max_length=2000)]


class PageRoute(APIRoute):
    """Answers problems with pages, and puts the headers on every answer.

    ``/`` is a page for those who want HTML; others get what the API has there.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for this route."""
        if self.path == "/" and "text/html" not in Headers(scope=scope).get("accept", ""):
            return Match.NONE, {}
        return super().matches(scope)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handler = super().get_route_handler()

        async def answered(request: Request) -> Response:
            answer = await _answered(handler, request)
            for name, value in HEADERS.items():
                answer.headers.setdefault(name, value)
            return answer

        return answered


async def _answered(
    handler: Callable[[Request], Coroutine[Any, Any, Response]], request: Request
) -> Response:
    page = the_page(request)
    try:
        return await handler(request)
    except LoginNeededError:
        return login_page(request)
    except GraphMatchError as error:
        return page.problem(request, _status(error), error.problem)
    except HTTPException as error:  # of what is before the endpoints
        problem = getattr(error, "problem", Problem(str(error.detail), Place("request"), _FOLLOW))
        return page.problem(request, error.status_code, problem)
    except RequestValidationError:
        problem = Problem("the address has odd values", Place("address"), _FOLLOW)
        return page.problem(request, 422, problem)


def _status(error: GraphMatchError) -> int:
    return HTTPStatus.FORBIDDEN if isinstance(error, ForbiddenError) else status_of(error)


def not_there(what: str, where: object) -> NotFoundError:
    """Return the error for what an address names and is not there."""
    return NotFoundError(Problem(f"there is no such {what}", Place(str(where)), _FOLLOW))
