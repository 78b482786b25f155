"""Templates, with filters for times, addresses and numbers. All output is escaped."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from graphmatch.broker.models.times import time_of

_WEB_ADDRESS = re.compile(r"https?://[^\s/?#]\S{0,2000}", re.IGNORECASE)


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
    plural = "es" if name.endswith("match") else "s"
    return f"{number:,} {name}{'' if number == 1 else plural}"


def sentence(text: str) -> str:
    """Write the first letter in upper case, except for that of a prefixed name."""
    return text if ":" in text.split(" ")[0] else text[:1].upper() + text[1:]


def web_link(address: object) -> str:
    """Return an address of the web, or an empty string for other addresses.

    Examples
    --------
    >>> web_link("https://e.org/a"), web_link("javascript:alert(1)"), web_link(None)
    ('https://e.org/a', '', '')
    """
    text = str(address)
    return text if _WEB_ADDRESS.fullmatch(text) and text.isprintable() else ""


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


TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=select_autoescape(default=True, default_for_string=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= {"when": when, "link": web_link, "sentence": sentence}
TEMPLATES.filters |= {"count": count, "fact_name": fact_name}
