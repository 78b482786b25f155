"""Login, logout, and the page of keys."""

from __future__ import annotations

from starlette.responses import Response

from graphmatch.broker.api.dependencies import address_of
from graphmatch.broker.app.errors import NotFoundError
from graphmatch.broker.page.session import COOKIE, SESSION_SECONDS, TheForm, own_path
from graphmatch.broker.page.site import Text, TheGuest, TheVisit, page_router, redirect
from semantic.errors import Place, Problem

router = page_router()


@router.get("/help")
async def help_page(visit: TheVisit) -> Response:
    """Show the keys and the words of the page."""
    return visit.show("help.html")


@router.get("/login")
async def login_form(visit: TheGuest, back: Text = "/") -> Response:
    """Show the form for a token."""
    why = visit.api.token_reason(visit.request)
    return visit.show("login.html", back=own_path(back), problem=None, why=why)


@router.post("/login")
async def login(visit: TheGuest, form: TheForm) -> Response:
    """Begin a session with a token."""
    token, back, accounts = form["token"].strip(), own_path(form["back"]), visit.api.broker.accounts
    limiter, address = visit.api.limiter, address_of(visit.request)
    limiter.check_failures(address)
    problem = Problem("the token lacks the scope subscribe", Place("token"), "Use another one.")
    try:
        if (await accounts.principal(token or "-")).may("subscribe"):
            answer, session = redirect(back), await accounts.begin_session(token)
            is_secure = visit.api.root(visit.request).lower().startswith("https:")
            answer.set_cookie(
                COOKIE, session, SESSION_SECONDS, secure=is_secure, httponly=True, samesite="strict"
            )
            return answer
    except NotFoundError as error:
        limiter.failed(address)
        problem = error.problem
    return visit.show("login.html", 403, back=back, problem=problem)


@router.post("/logout")
async def logout(visit: TheGuest, _form: TheForm) -> Response:
    """End the session."""
    if session := visit.request.cookies.get(COOKIE):
        await visit.api.broker.accounts.end_session(session)
    answer = redirect("/login")
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer
