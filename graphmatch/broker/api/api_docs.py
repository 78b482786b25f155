"""The page that describes the API: of its OpenAPI description, and of nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = "body{max-width:50rem;margin:2rem auto;padding:0 1rem;font-family:sans-serif}"
_METHODS = ("get", "post", "patch", "put", "delete", "options")


def manual(openapi: Mapping[str, Any]) -> str:
    """Return the page of an API.

    Examples
    --------
    >>> page = manual({"info": {"title": "A"}, "paths": {"/a": {"get": {"summary": "Look"}}}})
    >>> "<code>GET /a</code>" in page
    True
    """
    title = escape(openapi["info"]["title"])
    parts = [
        f"<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>{title}</title>"
        f"<style>{_STYLE}</style><h1>{title}</h1>",
        f"<p>{_text(openapi['info'].get('description', ''))}</p>",
        "<p>For machines: <a href='/openapi.json'>openapi.json</a></p>",
    ]
    for path, methods in openapi["paths"].items():
        anchor = " id='publications'" if path == "/v1/publications" else ""
        parts.append(f"<section{anchor}>")
        for method in _METHODS:
            if method in methods:
                parts += _operation(method, path, methods[method])
        parts.append("</section>")
    return "\n".join(parts)


def _operation(method: str, path: str, said: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2>{escape(said.get('summary', ''))}</h2>"
    yield f"<p><code>{method.upper()} {escape(path)}</code></p>"
    yield f"<p>{_text(said.get('description', ''))}</p>"
    if parameters := said.get("parameters"):
        rows = (
            f"<li><code>{escape(one['name'])}</code> ({one['in']}): "
            f"{_text(one.get('description', ''))}</li>"
            for one in parameters
        )
        yield f"<ul>{''.join(rows)}</ul>"
    for media_type, content in said.get("requestBody", {}).get("content", {}).items():
        if (example := content.get("example")) is not None:
            text = example if isinstance(example, str) else json.dumps(example, indent=1)
            yield f"<p>{escape(media_type)}</p><pre>{escape(text)}</pre>"


def _text(text: str) -> str:
    return escape(text).replace("\n\n", "</p><p>")
