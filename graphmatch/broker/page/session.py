"""Sessions and forms of the page, and the headers of its answers.

A session is a cookie with a random id (``HttpOnly``, ``SameSite=Strict``, ``Secure`` behind TLS).
It ends with its token, when the user logs out, and after 12 hours.

The API's guard refuses forms that another page sent (``Origin``), and a foreign ``Host`` (DNS
rebinding). The content policy allows only the scripts in ``static/``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import UploadFile

from graphmatch.broker.api.problems import HttpError
from graphmatch.broker.app.errors import InvalidRequestError
from graphmatch.broker.insight.insight_service import Upload
from semantic.errors import Place, Problem

COOKIE = "graphmatch"
SESSION_SECONDS = 12 * 3600
"""Lifetime of the cookie."""
FILE_BYTES = 4_000_000
"""Maximum size of an uploaded file, in bytes."""
_MAX_FIELDS, _MAX_FILES = 200, 5
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",  # With no-referrer, browsers send Origin: null.
}


class Form(defaultdict[str, str]):
    """The text fields of a form by name, empty if missing; `files` are its uploaded files."""

    def __init__(
        self, fields: Mapping[str, str] | None = None, files: Mapping[str, Upload] | None = None
    ) -> None:
        super().__init__(str, fields or {})
        self.files = files or {}


async def form_of(request: Request) -> Form:
    """Return the form of a request.

    Raises
    ------
    HttpError
        If another page sent the form.
    InvalidRequestError
        If a file is too large.
    """
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        what, remedy = "the form was sent by another page", "Open this page and send it again."
        raise HttpError(403, Problem(what, Place("Sec-Fetch-Site"), remedy))
    fields, files = dict[str, str](), dict[str, Upload]()
    async with request.form(max_files=_MAX_FILES, max_fields=_MAX_FIELDS) as sent:
        for name, value in sent.items():
            if not isinstance(value, UploadFile):
                fields[name] = value.replace("\r\n", "\n")
            elif (value.size or 0) > FILE_BYTES:
                what = f"the file has more than {FILE_BYTES:,} bytes"
                raise InvalidRequestError(Problem(what, Place(name), "Choose a smaller file."))
            elif value.size:
                files[name] = Upload((value.filename or "")[:200], await value.read())
    return Form(fields, files)


TheForm = Annotated[Form, Depends(form_of)]


def own_path(path: str) -> str:
    """Return a path of this page, or ``/`` for other addresses.

    Examples
    --------
    >>> own_path("/items/3?a=b"), own_path("//evil.example/"), own_path("https://evil.example")
    ('/items/3?a=b', '/', '/')
    """
    is_own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_own else "/"
