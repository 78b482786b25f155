"""The addresses of the page.

Each page works without JavaScript: links and forms. With JavaScript, htmx requests parts of a page
at the same addresses (header ``HX-Request``), and matches arrive as server-sent events (``/live``).
`install` adds the page to an application.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from graphmatch.broker.page import feeds, health, items, login, matches, ontology, subscriptions
from graphmatch.broker.page.site import Page

__all__ = ["Page", "install"]


class _Files(StaticFiles):
    """Static files that browsers cache but check for changes."""

    def file_response(self, *args: object, **options: object) -> Response:
        response = super().file_response(*args, **options)  # type: ignore[arg-type]
        response.headers["Cache-Control"] = "no-cache"
        return response


def install(app: FastAPI, page: Page) -> None:
    """Add the page to an application: ``/`` before the existing routes, the others after them."""
    app.state.page = page
    app.include_router(matches.front)
    app.router.routes.insert(0, app.router.routes.pop())
    for module in (matches, subscriptions, items, feeds, ontology, health, login):
        app.include_router(module.router)
    app.mount("/static", _Files(directory=Path(__file__).with_name("static")))
