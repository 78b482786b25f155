"""Match feeds: the newest matches of a subscription as Atom, RSS and JSON Feed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import format_datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement, tostring
from xml.sax.saxutils import escape

from pydantic_core import to_json

from graphmatch.broker.app.security import read_key
from graphmatch.broker.db.match_queries import last_matches
from graphmatch.broker.models.times import time_of
from graphmatch.broker.outbox.payloads import in_sources, match_view
from semantic.clock import now_text

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping

ENTRIES = 50
"""Maximum number of matches in a feed."""
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ATOM = "http://www.w3.org/2005/Atom"


def readable(view: Mapping[str, Any]) -> str:
    r"""Return a text of a match for people: the summary, or else the solutions, one value a line.

    Examples
    --------
    >>> readable({"publication": {"summary": None}, "solutions": [{"a": '"b"@en', "c": "<urn:d>"}]})
    'a: b\nc: urn:d'
    """
    summary, solutions = view["publication"]["summary"], view["solutions"]
    if summary:
        return str(summary)
    if isinstance(solutions, dict):
        return "\n".join(solutions["graph"])
    return "\n".join(f"{name}: {_plain(one[name])}" for one in solutions for name in one)


def _plain(term: str) -> str:
    """Return the text of a term in N-Triples: an IRI without brackets, or a literal's value."""
    if term.startswith('"'):  # oxigraph's escapes are those of JSON.
        return str(json.loads(term[: term.rindex('"') + 1], strict=False))
    return term[1:-1] if term.startswith("<") and not term.startswith("<<") else term


def feed_url(subscription: Mapping[Any, Any], root: str, format: str = "atom") -> str:
    """Return the URL of a subscription's feed, with the key that only allows reading.

    Parameters
    ----------
    format
        ``atom``, ``rss`` or ``json``.
    """
    id = subscription["id"]
    key = read_key(subscription["ticket"], id)
    return f"{root}/v1/subscriptions/{id}/feed.{format}?key={key}"


def json_feed(db: Connection, subscription: RowMapping, root: str, limit: int) -> tuple[bytes, str]:
    """Return the newest matches of a subscription as a JSON Feed; see `atom`."""
    return _tagged(to_json(_feed(db, subscription, root, limit, "json")))


def rss(db: Connection, subscription: RowMapping, root: str, limit: int) -> tuple[bytes, str]:
    """Return the newest matches of a subscription as RSS 2.0; see `atom`."""
    feed = _feed(db, subscription, root, limit, "rss")
    document = Element("rss", {"version": "2.0", "xmlns:atom": _ATOM})
    channel = SubElement(document, "channel")
    _fill(channel, title=feed["title"], link=root, description=feed["title"])
    SubElement(channel, "atom:link", rel="self", href=feed["feed_url"])
    for item in feed["items"]:
        entry = SubElement(channel, "item")
        SubElement(entry, "guid", isPermaLink="false").text = item["id"]
        date = format_datetime(datetime.fromisoformat(item["date_published"]))
        html = escape(item["content_text"])
        _fill(entry, title=item["title"], link=item["url"], pubDate=date, description=html)
    return _tagged(tostring(document, "utf-8", xml_declaration=True))


def atom(
    db: Connection, subscription: RowMapping, root: str, limit: int, hub: str | None = None
) -> tuple[bytes, str]:
    """Return the newest matches of a subscription as an Atom feed, and the entity tag.

    Parameters
    ----------
    limit
        Maximum size of the solutions of one entry, in bytes.
    hub
        URL of the WebSub hub.
    """
    feed = _feed(db, subscription, root, limit, "atom")
    document = Element("feed", xmlns=_ATOM)
    times = [item["date_published"] for item in feed["items"]]
    times.append(now_text(time_of(subscription["created_at"])))
    _fill(
        document, id=f"urn:graphmatch:{subscription['id']}", title=feed["title"], updated=times[0]
    )
    _fill(SubElement(document, "author"), name="graphmatch")
    SubElement(document, "link", rel="self", href=feed["feed_url"])
    if hub is not None:
        SubElement(document, "link", rel="hub", href=hub)
    for item in feed["items"]:
        entry = SubElement(document, "entry")
        _fill(entry, id=item["id"], title=item["title"], updated=item["date_published"])
        SubElement(entry, "link", href=_valid(item["url"]))
        SubElement(entry, "content", type="text").text = _valid(item["content_text"])
    return _tagged(tostring(document, "utf-8", xml_declaration=True))


def _feed(
    db: Connection, subscription: RowMapping, root: str, limit: int, format: str
) -> dict[str, Any]:
    """Return the newest matches as the object of a JSON Feed."""
    items = []
    for row in last_matches(db, subscription["number"], ENTRIES):
        view = match_view(row, root, limit)
        publication = view["publication"]
        is_web = str(publication["link"]).startswith(("http://", "https://"))
        items.append(
            {
                "id": f"urn:graphmatch:{subscription['id']}:{row['seq']}",
                "url": publication["link"] if is_web else view["url"],
                "title": publication["title"] or publication["id"],
                "content_text": "\n".join(filter(None, [readable(view), in_sources(view)])),
                "date_published": view["matched_at"],
            }
        )
    return {
        "version": "https://jsonfeed.org/version/1.1",
        "title": subscription["name"],
        "feed_url": feed_url(subscription, root, format),
        "items": items,
    }


def _tagged(content: bytes) -> tuple[bytes, str]:
    """Return a feed with its entity tag."""
    return content, f'"{sha256(content).hexdigest()[:32]}"'


def _fill(parent: Element, **texts: str) -> None:
    """Add elements with texts."""
    for name, text in texts.items():
        SubElement(parent, name).text = _valid(text)


def _valid(text: str) -> str:
    """Return a text without the characters that XML cannot contain."""
    return _NO_XML.sub("\ufffd", text)
