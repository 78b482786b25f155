"""The page ``/docs``: the endpoints, webhooks and schemas of an OpenAPI description."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

_STYLE = """body{max-width:56rem;margin:2rem auto;padding:0 1rem;font-family:sans-serif}
td{vertical-align:top;padding:.2rem 1rem .2rem 0}pre{background:#8882;padding:.5rem;overflow:auto}
@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}a{color:#8bf}}"""
_METHODS = ("get", "post", "patch", "put", "delete", "options")


def docs_page(openapi: Mapping[str, Any]) -> str:
    """Return the page of an API.

    Examples
    --------
    >>> page = docs_page({"info": {"title": "A"}, "paths": {"/a": {"get": {"summary": "Look"}}}})
    >>> "<code>GET /a</code>" in page
    True
    """
    title = escape(openapi["info"]["title"])
    head = "<meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
    parts = [
        f"<!DOCTYPE html><html lang='en'>{head}<title>{title}</title><style>{_STYLE}</style>",
        f"<h1>{title}</h1>{_text(openapi['info'])}",
        "<p>For programs: <a href='/openapi.json'>openapi.json</a></p>",
    ]
    for path, operations in openapi["paths"].items():
        anchor = " id='publications'" if path == "/v1/publications" else ""
        parts.append(f"<section{anchor}>")
        for method in (one for one in _METHODS if one in operations):
            parts += _operation(f"{method.upper()} {path}", operations[method])
        parts.append("</section>")
    for name, operations in openapi.get("webhooks", {}).items():
        parts += _operation(f"POST (webhook {name})", operations["post"])
    parts.append("<h1>Data</h1>")
    for name, schema in sorted(openapi.get("components", {}).get("schemas", {}).items()):
        parts += _schema(name, schema)
    return "\n".join(parts)


def _operation(name: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2>{escape(operation.get('summary', ''))}</h2><p><code>{escape(name)}</code></p>"
    yield _text(operation)
    rows = [
        (f"<code>{escape(one['name'])}</code> ({one['in']})", _type(one["schema"]) + _text(one))
        for one in operation.get("parameters", ())
    ]
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        rows.append((f"body: {escape(media_type)}", _type(content["schema"]) + _example(content)))
    for status, response in operation.get("responses", {}).items():
        types = "".join(
            f"<p>{escape(media_type)}: {_type(content.get('schema', {}))}</p>"
            for media_type, content in response.get("content", {}).items()
        )
        rows.append((escape(status), _text(response) + types))
    yield _table(rows)


def _schema(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2 id='{escape(name)}'>{escape(name)}</h2>{_text(schema)}"
    required = schema.get("required", ())
    yield _table(
        (
            f"<code>{escape(field)}</code>{'' if field in required else ' (optional)'}",
            _type(value) + _text(value),
        )
        for field, value in schema.get("properties", {}).items()
    )
    yield _example({"example": schema["examples"][0]} if schema.get("examples") else {})


def _type(schema: Mapping[str, Any]) -> str:
    """Return the name of a type, with links to the schemas in it."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f"<a href='#{name}'>{name}</a>"
    if several := schema.get("anyOf", schema.get("oneOf")):
        return " or ".join(map(_type, several))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    values = ", ".join(map(str, schema.get("enum", [schema.get("const", "")])))
    return escape(values or schema.get("format", schema.get("type", "any")))


def _table(rows: Iterable[tuple[str, str]]) -> str:
    return f"<table>{''.join(f'<tr><td>{a}<td>{b}' for a, b in rows)}</table>"


def _example(content: Mapping[str, Any]) -> str:
    value = content.get("example")
    text = value if value is None or isinstance(value, str) else json.dumps(value, indent=1)
    return "" if text is None else f"<pre>{escape(text)}</pre>"


def _text(described: Mapping[str, Any]) -> str:
    """Return a description in Markdown as HTML: its paragraphs and code."""
    text = escape(described.get("description", "")).replace("\n\n", "</p><p>")
    return re.sub("`([^`]*)`", r"<code>\1</code>", f"<p>{text}</p>") if text else ""
