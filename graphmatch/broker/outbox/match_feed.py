"""Match feeds: the newest matches of a subscription as Atom, RSS and JSON Feed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import format_datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from pydantic_core import to_json

from graphmatch.broker.app.security import read_key
from graphmatch.broker.db.match_queries import last_matches
from graphmatch.broker.models.times import time_of
from graphmatch.broker.outbox.payloads import match_view
from semantic.clock import now_text

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping

ENTRIES = 50
"""Maximum number of matches in a feed."""
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_XML = "<?xml version='1.0' encoding='utf-8'?>\n"


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
    url, title = _attribute(feed["feed_url"]), _xml(feed["title"])
    items = [
        f"<item>\n<guid isPermaLink='false'>{one['id']}</guid>\n"
        f"<title>{_xml(one['title'])}</title>\n<link>{_xml(one['url'])}</link>\n"
        f"<pubDate>{_mail_date(one['date_published'])}</pubDate>\n"
        f"<description>{_xml(_xml(one['content_text']))}</description>\n</item>\n"
        for one in feed["items"]
    ]
    head = (
        "<rss version='2.0' xmlns:atom='http://www.w3.org/2005/Atom'>\n<channel>\n"
        f"<title>{title}</title>\n<link>{_xml(root)}</link>\n<description>{title}</description>\n"
        f"<atom:link rel='self' href={url}/>\n"
    )
    return _tagged("".join((_XML, head, *items, "</channel>\n</rss>\n")).encode())


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
    entries = [
        f"<entry>\n<id>{one['id']}</id>\n<title>{_xml(one['title'])}</title>\n"
        f"<updated>{one['date_published']}</updated>\n<link href={_attribute(one['url'])}/>\n"
        f"<content type='text'>{_xml(one['content_text'])}</content>\n</entry>\n"
        for one in feed["items"]
    ]
    times = [one["date_published"] for one in feed["items"]]
    times.append(now_text(time_of(subscription["created_at"])))
    head = (
        "<feed xmlns='http://www.w3.org/2005/Atom'>\n"
        f"<id>urn:graphmatch:{subscription['id']}</id>\n<title>{_xml(feed['title'])}</title>\n"
        f"<updated>{times[0]}</updated>\n<author><name>graphmatch</name></author>\n"
        f"<link rel='self' href={_attribute(feed['feed_url'])}/>\n"
    )
    link = "" if hub is None else f"<link rel='hub' href={_attribute(hub)}/>\n"
    return _tagged("".join((_XML, head, link, *entries, "</feed>\n")).encode())


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
                "content_text": readable(view),
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


def _mail_date(time: str) -> str:
    return format_datetime(datetime.fromisoformat(time))


def _xml(text: str) -> str:
    return escape(_NO_XML.sub("\ufffd", text))


def _attribute(text: str) -> str:
    return quoteattr(_NO_XML.sub("\ufffd", text))
