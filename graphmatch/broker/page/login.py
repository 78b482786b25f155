"""Login, logout, and the page of keys."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from graphmatch.broker.api.dependencies import address_of
from graphmatch.broker.app.errors import NotFoundError
from graphmatch.broker.page.session import COOKIE, SESSION_SECONDS, TheForm, own_path, see
from graphmatch.broker.page.site import Text, ThePage, TheVisit, page_router
from semantic.errors import Place, Problem

router = page_router()


@router.get("/help")
async def help_page(visit: TheVisit) -> Response:
    """Show the keys and the words of the page."""
    return visit.show("help.html")


@router.get("/login")
async def login_form(request: Request, page: ThePage, back: Text = "/") -> Response:
    """Show the form for a token."""
    why = page.api.token_reason(request)
    return page.show(request, "login.html", back=own_path(back), problem=None, why=why)


@router.post("/login")
async def login(request: Request, page: ThePage, form: TheForm) -> Response:
    """Begin a session with a token."""
    token, back, accounts = form["token"].strip(), own_path(form["back"]), page.api.broker.accounts
    limiter, address = page.api.limiter, address_of(request)
    limiter.check_failures(address)
    problem = Problem("the token lacks the scope subscribe", Place("token"), "Use another one.")
    try:
        if (await accounts.principal(token or "-")).may("subscribe"):
            answer, session = see(request, back), await accounts.begin_session(token)
            is_secure = page.api.root(request).lower().startswith("https:")
            answer.set_cookie(
                COOKIE, session, SESSION_SECONDS, secure=is_secure, httponly=True, samesite="strict"
            )
            return answer
    except NotFoundError as error:
        limiter.failed(address)
        problem = error.problem
    return page.show(request, "login.html", 403, back=back, problem=problem)


@router.post("/logout")
async def logout(request: Request, page: ThePage, _form: TheForm) -> Response:
    """End the session."""
    if session := request.cookies.get(COOKIE):
        await page.api.broker.accounts.end_session(session)
    answer = see(request, "/login")
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer
