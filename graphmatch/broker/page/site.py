"""The parts that all routes of the page share: the user, rendering, and errors as pages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request
from fastapi.routing import APIRoute
from sqlalchemy import Connection, RowMapping
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match
from starlette.types import Scope

from graphmatch.broker.api.dependencies import Api
from graphmatch.broker.api.problems import HttpError, status_of
from graphmatch.broker.app.errors import NotFoundError
from graphmatch.broker.app.security import ANYBODY, Principal
from graphmatch.broker.db import queries
from graphmatch.broker.page.filters import TEMPLATES
from graphmatch.broker.page.session import COOKIE, HEADERS
from semantic.errors import GraphMatchError, Place, Problem

NEWEST = 2**63 - 1
"""Number after all matches and publications: lists begin with the newest."""
_FOLLOW = "Follow a link of the page."
T = TypeVar("T")


@dataclass(slots=True)
class Page:
    """The page of an application.

    Parameters
    ----------
    api
        The broker and its services.
    streams
        Number of pages that receive matches live.
    """

    api: Api
    streams: int = 0


@dataclass(frozen=True, slots=True)
class Visit:
    """A request for a page.

    Parameters
    ----------
    principal
        The owner with the scopes; without an owner before the login.
    is_local
        Whether the user needs no token.
    """

    request: Request
    page: Page
    principal: Principal = ANYBODY
    is_local: bool = False

    @property
    def api(self) -> Api:
        """The broker and its services."""
        return self.page.api

    @property
    def is_part(self) -> bool:
        """Whether htmx requested a part of a page."""
        return self.request.headers.get("hx-request") == "true"

    @property
    def owner(self) -> int:
        """Number of the owner of the user's subscriptions."""
        assert self.principal.owner is not None
        return self.principal.owner

    @property
    def is_admin(self) -> bool:
        """Whether the user may see the subscriptions of all owners."""
        return self.is_local or self.principal.is_admin

    def check(self, scope: str) -> None:
        """Refuse a user who lacks a scope."""
        if not (self.is_admin if scope == "admin" else self.principal.may(scope)):
            what, remedy = f"this needs a token for {scope!r}", "Log in with such a token."
            raise HttpError(403, Problem(what, Place("session"), remedy))

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Read from the store."""
        return await self.api.broker.store.read(work)

    async def ask(self, question: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Run a method of the `InsightService` in a thread."""
        return await self.api.insight.ask(question, *arguments, **options)

    async def subscription(self, id: str) -> RowMapping:
        """Return the row of a subscription of the user."""
        return await self.api.broker.subscriptions.subscription(id, self.principal, None)

    async def item(self, seq: int) -> RowMapping:
        """Return the row of a publication."""
        row = await self.read(lambda db: queries.item(db, seq))
        if row is None:
            raise not_there("item", seq)
        return row

    def show(self, name: str, code: int = 200, /, **values: Any) -> Response:
        """Return a page, or the part of it that htmx requested."""
        text = TEMPLATES.get_template(name).render(visit=self, **values)
        return Response(text, code, HEADERS, "text/html; charset=utf-8")


def redirect(path: str) -> Response:
    """Return a redirect to another page of the broker."""
    return RedirectResponse(path, 303)


async def the_guest(request: Request) -> Visit:
    """Return a visit without a user."""
    return Visit(request, request.app.state.page)


async def the_visit(request: Request) -> Visit:
    """Return the visit of the user who has a session, or who is on this machine.

    Raises
    ------
    HTTPException
        If the request needs a token, and its session has ended or is missing.
    """
    page: Page = request.app.state.page
    session, accounts = request.cookies.get(COOKIE), page.api.broker.accounts
    principal = await accounts.session_principal(session) if session else None
    if principal is not None:
        return Visit(request, page, principal)
    if page.api.token_reason(request) is not None:
        raise HTTPException(HTTPStatus.UNAUTHORIZED)
    return Visit(request, page, await page.api.local_principal(), is_local=True)


TheGuest = Annotated[Visit, Depends(the_guest)]
TheVisit = Annotated[Visit, Depends(the_visit)]
Seq = Annotated[int, Query(ge=0, le=NEWEST)]
Text = Annotated[str, Query(max_length=2000)]


class PageRoute(APIRoute):
    """A route that answers errors with pages.

    ``/`` is a page for clients that accept HTML; for others, it is a route of the API.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for this route."""
        if self.path == "/" and "text/html" not in Headers(scope=scope).get("accept", ""):
            return Match.NONE, {}
        return super().matches(scope)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that answers a request."""
        handler = super().get_route_handler()
        return partial(_answered, handler)


def page_router() -> APIRouter:
    """Return an empty router for pages."""
    return APIRouter(route_class=PageRoute, include_in_schema=False)


async def _answered(
    handler: Callable[[Request], Coroutine[Any, Any, Response]], request: Request
) -> Response:
    visit = await the_guest(request)
    try:
        return await handler(request)
    except GraphMatchError as error:
        status, problem = status_of(error), error.problem
    except HTTPException as error:
        status = error.status_code
        problem = getattr(error, "problem", Problem(str(error.detail), Place("request"), _FOLLOW))
    if status == HTTPStatus.UNAUTHORIZED:
        login = f"/login?back={quote(request.url.path if request.method == 'GET' else '/')}"
        return Response(headers={"HX-Redirect": login}) if visit.is_part else redirect(login)
    return visit.show("problem.html", status, problem=problem, status=status)


def not_there(kind: str, name: object) -> NotFoundError:
    """Return the error for a missing object of some kind."""
    return NotFoundError(Problem(f"there is no such {kind}", Place(str(name)), _FOLLOW))
