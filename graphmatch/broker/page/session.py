"""Who looks at the page, what their forms say, and what every answer carries.

A session is a cookie that holds an API token (``HttpOnly``, ``SameSite=Strict``): who revokes the
token ends the session. A browser on this machine, without a proxy between, is the owner `LOCAL`.

A form counts only if the browser says that it comes from this page: by ``Origin``, or by
``Sec-Fetch-Site`` where there is none. The guard of the API refuses a foreign ``Host``, or another
page could be given an address here (DNS rebinding). The policy for content allows no script but
those in ``static/``, and no style in attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from email.parser import BytesParser
from email.policy import HTTP
from urllib.parse import parse_qsl, quote, urlsplit

from fastapi import Request
from sqlalchemy import select
from starlette.responses import RedirectResponse, Response

from graphmatch.broker.api.dependencies import LOCAL, Api
from graphmatch.broker.app.errors import InvalidRequestError, NotFoundError
from graphmatch.broker.app.security import Principal
from graphmatch.broker.db.tables import owners
from graphmatch.broker.insight.insight_service import Upload
from semantic.errors import GraphMatchError, Place, Problem

COOKIE = "graphmatch"
FORM_BYTES = 4_000_000
"""Of a form with a file, at most."""
_FIELDS = 1_000
_MONTH_SECONDS = 30 * 86_400
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send Origin: null
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class ForbiddenError(GraphMatchError):
    """A request that another page sent, or that a token is not for."""


class LoginNeededError(Exception):
    """Nobody has logged in."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks.

    Parameters
    ----------
    principal
        What they may do.
    name
        What they are called.
    is_local
        Whether they are so without a token.
    """

    principal: Principal
    name: str
    is_local: bool

    @property
    def owner(self) -> int:
        """The number that their subscriptions are kept under."""
        assert self.principal.owner is not None
        return self.principal.owner

    @property
    def is_admin(self) -> bool:
        """Whether they may ask about all subscriptions: on this machine, or with such a token."""
        return self.is_local or self.principal.is_admin

    def check(self, scope: str) -> None:
        """Refuse what the token is not for."""
        if not (self.is_admin if scope == "admin" else self.principal.may(scope)):
            what, remedy = f"this needs a token for {scope!r}", "Log in with another one."
            raise ForbiddenError(Problem(what, Place("session"), remedy))


@dataclass(frozen=True, slots=True)
class Form:
    """What a form says."""

    fields: tuple[tuple[str, str], ...]
    files: Mapping[str, Upload]

    def get(self, key: str, otherwise: str = "") -> str:
        """Return the first value of a field."""
        return next((value for name, value in self.fields if name == key), otherwise)

    def all(self, key: str) -> list[str]:
        """Return all values of a field."""
        return [value for name, value in self.fields if name == key]


async def viewer_of(request: Request, api: Api) -> Viewer:
    """Return who looks.

    Raises
    ------
    LoginNeededError
        If a token is needed, and the browser sends none or a revoked one.
    """
    token, broker = request.cookies.get(COOKIE), api.broker
    if token:
        try:
            principal = await broker.accounts.principal(token)
        except NotFoundError:
            principal = Principal()
        if principal.owner is not None:
            named = select(owners.c.name).where(owners.c.id == principal.owner)
            name = await broker.store.read(lambda db: db.scalar(named))
            return Viewer(principal, str(name), is_local=False)
    if api.token_reason(request) is not None:
        raise LoginNeededError
    return Viewer(await api.local_principal(), LOCAL, is_local=True)


def check_origin(request: Request) -> None:
    """Refuse a form that another page sent."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    host = request.headers.get("host", "").lower()
    own = (host, request.app.state.api.options.netloc or host)
    try:
        known = urlsplit(origin).netloc.lower() if origin else None
    except ValueError:
        known = ""
    is_own = known in own if origin is not None else site == "same-origin"
    if not is_own or site in ("cross-site", "same-site"):
        what, remedy = "the form was sent by another page", "Open this page and send it again."
        raise ForbiddenError(Problem(what, Place("Origin"), remedy))


async def form_of(request: Request) -> Form:
    """Read a form, with files or without, after a look at where it comes from.

    Raises
    ------
    ForbiddenError
        When another page sent it.
    RefusedError
        When it is too large, or no form.
    """
    check_origin(request)
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > FORM_BYTES:
            what = f"more than {FORM_BYTES:,} bytes"
            raise InvalidRequestError(Problem(what, Place("form"), "Send a smaller file."))
    kind = request.headers.get("content-type", "")
    if kind.startswith("multipart/form-data"):
        return _multipart(bytes(data), kind)
    try:
        text = data.decode()
        fields = parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS, errors="strict")
    except ValueError as error:  # UnicodeDecodeError is one
        raise _no_form() from error
    return Form(tuple((name, _text(value)) for name, value in fields), {})


def _multipart(data: bytes, kind: str) -> Form:
    """Read a form with files: MIME, as in e-mail (RFC 7578)."""
    try:
        head = f"Content-Type: {kind}\r\n\r\n".encode("latin-1")
        message = BytesParser(policy=HTTP).parsebytes(head + data)
    except (ValueError, LookupError) as error:
        raise _no_form() from error
    if not message.is_multipart():
        raise _no_form()
    fields: list[tuple[str, str]] = []
    files: dict[str, Upload] = {}
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if not isinstance(name, str) or not isinstance(content, bytes):
            raise _no_form()
        if (file := part.get_filename()) is not None:
            files.setdefault(name, Upload(file, content))
        else:
            fields.append((name, _text(content.decode("utf-8", "replace"))))
    return Form(tuple(fields[:_FIELDS]), files)


def _text(value: str) -> str:
    return value.replace("\r\n", "\n").replace("\0", "")


def _no_form() -> InvalidRequestError:
    return InvalidRequestError(
        Problem("this is not a form", Place("form"), "Send the form of the page.")
    )


# -- cookies ------------------------------------------------------------------------------------


def log_in(request: Request, answer: Response, token: str) -> None:
    """Have the browser keep a token."""
    secure = request.app.state.api.root(request).lower().startswith("https:")
    answer.set_cookie(
        COOKIE, token, _MONTH_SECONDS, secure=secure, httponly=True, samesite="strict"
    )


def log_out(answer: Response) -> None:
    """Have the browser forget its token."""
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")


def see(request: Request, path: str) -> Response:
    """Return what sends a browser to another page of ours."""
    if request.headers.get("hx-request"):
        return Response(status_code=200, headers={"HX-Redirect": path})
    return RedirectResponse(path, 303)


def login_page(request: Request) -> Response:
    """Return what sends somebody to log in, and back afterwards."""
    back = request.url.path if request.method == "GET" else "/"
    return see(request, f"/login?back={quote(back)}")


def own_path(path: str) -> str:
    """Return a path of this page; the first page for an address elsewhere.

    Examples
    --------
    >>> own_path("/items/3?a=b"), own_path("//evil.example/"), own_path("https://evil.example")
    ('/items/3?a=b', '/', '/')
    """
    is_own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_own else "/"
