"""How values look on the page: times, addresses, numbers. Everything is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from graphmatch.broker.models.times import time_of

_STEPS = (
    (timedelta(days=1), "day"),
    (timedelta(hours=1), "hour"),
    (timedelta(minutes=1), "minute"),
)
_TITLE = 300
_LINK = 2_000


def environment(versions: Mapping[str, str]) -> Environment:
    """Return the templates.

    Parameters
    ----------
    versions
        Of static files: their addresses change with their contents.
    """
    from pathlib import Path

    made = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "when": when,
        "ago": ago,
        "link": web_link,
        "short": short,
        "query": lambda text: quote(str(text), safe=""),
        "count": count,
        "heading": heading,
        "sentence": lambda text: text[:1].upper() + text[1:],
    }
    made.globals["asset"] = lambda name: f"/static/{name}?v={versions[name]}"
    return made


def _time(value: int | datetime) -> datetime:
    return time_of(value) if isinstance(value, int) else value.astimezone(UTC)


def when(value: int | datetime | None) -> Markup:
    """Write a time, in UTC; the browser puts it into its own zone.

    Examples
    --------
    >>> when(0)
    Markup('<time datetime="1970-01-01T00:00:00+00:00">1970-01-01 00:00 UTC</time>')
    """
    if value is None:
        return Markup("–")  # noqa: RUF001 -- a dash, for people
    time = _time(value)
    iso, text = time.isoformat(timespec="seconds"), f"{time:%Y-%m-%d %H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(iso, text)


def ago(value: int | datetime | None, now: datetime) -> str:
    """Write how long ago or ahead a time is.

    Examples
    --------
    >>> now = datetime(2026, 1, 2, tzinfo=UTC)
    >>> ago(now - timedelta(hours=3), now), ago(now + timedelta(days=1), now), ago(None, now)
    ('3 hours ago', 'in 1 day', 'never')
    """
    if value is None:
        return "never"
    length = _time(value) - now
    is_past, length = length < timedelta(0), abs(length)
    for step, name in _STEPS:
        if length >= step:
            text = count(round(length / step), name)
            return f"{text} ago" if is_past else f"in {text}"
    return "just now" if is_past else "in a moment"


def count(number: int, name: str) -> str:
    """Write a number of things.

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


def short(text: object, most: int = _TITLE) -> str:
    """Cut a text that is too long to show."""
    whole = str(text)
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


def web_link(address: object) -> str:
    """Return an address that may be linked to: of the web; empty for others.

    Examples
    --------
    >>> web_link("https://e.org/a"), web_link("javascript:alert(1)"), web_link(None)
    ('https://e.org/a', '', '')
    """
    text = str(address or "")
    if len(text) > _LINK or not text.isprintable() or " " in text:
        return ""
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    return text if parts.scheme in ("http", "https") and parts.hostname else ""


def heading(row: Mapping[str, Any]) -> str:
    """Return what an item is called: its title, or its id."""
    title = " ".join(str(row["title"] or "").split())
    return short(title or row["id"])
