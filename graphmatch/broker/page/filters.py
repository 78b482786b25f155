"""Template filters for times, addresses, numbers and names. All output is escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from graphmatch.broker.models.times import time_of

_LINK_CHARACTERS = 2_000


def environment() -> Environment:
    """Return the templates."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "when": when,
        "link": web_link,
        "short": short,
        "count": count,
        "heading": heading,
        "sentence": lambda text: text if ":" in text.split(" ")[0] else text[:1].upper() + text[1:],
        "fact_name": fact_name,
        "plain": plain,
    }
    return templates


def when(value: int | datetime | None) -> Markup:
    """Write a time in UTC; the browser converts it to its own zone.

    Examples
    --------
    >>> when(0)
    Markup('<time datetime="1970-01-01T00:00:00+00:00">1970-01-01 00:00 UTC</time>')
    """
    if value is None:
        return Markup("never")
    time = time_of(value) if isinstance(value, int) else value.astimezone(UTC)
    iso, text = time.isoformat(timespec="seconds"), f"{time:%Y-%m-%d %H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(iso, text)


def count(number: int, name: str) -> str:
    """Write a number with a noun.

    Examples
    --------
    >>> count(1, "match"), count(2_000, "match"), count(0, "item")
    ('1 match', '2,000 matches', '0 items')
    """
    if number == 1:
        return f"1 {name}"
    ending = "es" if name.endswith(("ch", "s", "x")) else "s"
    name = f"{name[:-1]}ies" if name.endswith("ry") else name + ending
    return f"{number:,} {name}"


def short(text: object, limit: int = 300) -> str:
    """Shorten a long text."""
    whole = str(text)
    return whole if len(whole) <= limit else f"{whole[: limit - 1]}…"


def web_link(address: object) -> str:
    """Return an address of the web, or an empty string for other addresses.

    Examples
    --------
    >>> web_link("https://e.org/a"), web_link("javascript:alert(1)"), web_link(None)
    ('https://e.org/a', '', '')
    """
    text = str(address or "")
    if len(text) > _LINK_CHARACTERS or not text.isprintable() or " " in text:
        return ""
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    return text if parts.scheme in ("http", "https") and parts.hostname else ""


def heading(row: Mapping[str, Any]) -> str:
    """Return the title of an item, or its id if it has none."""
    title = " ".join(str(row["title"] or "").split())
    return short(title or row["id"])


def fact_name(sort: str, properties: str) -> str:
    """Return the name of a fact in words.

    Parameters
    ----------
    sort
        The fact's sort, such as ``publisher``.
    properties
        The properties from the item to the value, separated by `` / ``.

    Examples
    --------
    >>> fact_name("publisher", "dcterms:isPartOf / dcterms:title")
    'publisher title'
    >>> fact_name("value", "enc:enclosure / enc:mimeType")
    'enclosure mime type'
    """
    first, *others = [
        re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.split("[:/#]", name)[-1]).lower()
        for name in properties.split(" / ")
    ]
    return " ".join([first if sort == "value" else sort, *others[-1:]])


def plain(label: str) -> str:
    """Return a label without the brackets and the scheme of an IRI.

    Examples
    --------
    >>> plain("<https://e.example/>"), plain("Climate")
    ('e.example', 'Climate')
    """
    text = label.strip("<>")
    return text.partition("://")[2].rstrip("/") or text if web_link(text) else text
