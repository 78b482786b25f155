"""Matches as JSON objects, and as an Atom feed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from graphmatch.broker.app.security import read_key
from graphmatch.broker.db.match_queries import last_matches
from graphmatch.broker.models.times import time_of

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping

ENTRIES = 50
"""So many matches an Atom feed has."""


_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def match_view(row: RowMapping, root: str, most: int | None = None) -> dict[str, Any]:
    """Return what is told of a match.

    Parameters
    ----------
    root
        What addresses begin with.
    most
        So many bytes of solutions, and no more; ``None``: all that is kept.
    """
    text: str = row["solutions"]
    solutions, truncated = json.loads(text), bool(row["truncated"])
    if most is not None and len(text) > most:
        solutions, truncated = _fitting(solutions, most), True
    return {
        "seq": row["seq"],
        "subscription": row["subscription_id"],
        "generation": row["generation"],
        "publication": {
            "seq": row["publication"],
            "id": row["publication_id"],
            "url": f"{root}/v1/publications/{row['publication']}",
            "title": _short(row["title"]),
            "link": _short(row["link"]),
        },
        "matched_at": time_of(row["matched_at"]).isoformat().replace("+00:00", "Z"),
        "solutions": solutions,
        "truncated": truncated,
        "url": f"{root}/v1/matches/{row['seq']}",
    }


def _short(text: str | None) -> str | None:
    return text if text is None or len(text) <= 2000 else text[:1999] + "…"


def _fitting(solutions: Any, most: int) -> Any:
    """Return as many solutions, or triples of a graph, as there is room for."""
    several = solutions["graph"] if isinstance(solutions, dict) else solutions
    kept: list[Any] = []
    for one in several:
        most -= len(json.dumps(one, ensure_ascii=False)) + 1
        if most < 0:
            break
        kept.append(one)
    return {"graph": kept} if isinstance(solutions, dict) else kept


def feed_url(subscription: Mapping[Any, Any], root: str) -> str:
    """Return the address of a subscription's Atom feed, with the key that is for reading it."""
    id = subscription["id"]
    return f"{root}/v1/subscriptions/{id}/feed.atom?key={read_key(subscription['ticket'], id)}"


def atom(
    db: Connection, subscription: RowMapping, root: str, most: int, hub: str | None = None
) -> tuple[bytes, str]:
    """Return the Atom feed of a subscription's newest matches, and its entity tag.

    Parameters
    ----------
    root
        What addresses begin with.
    most
        So many bytes of solutions an entry has, at most.
    hub
        The address of its WebSub hub.
    """
    rows = last_matches(db, subscription["number"], ENTRIES)
    id, name = subscription["id"], _xml(subscription["name"])
    newest = rows[0]["matched_at"] if rows else subscription["created_at"]
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n',
        f"<id>urn:graphmatch:{id}</id>\n<title>{name}</title>\n",
        f"<updated>{_time(newest)}</updated>\n<author><name>graphmatch</name></author>\n",
        f"<link rel='self' href={_attribute(feed_url(subscription, root))}/>\n",
    ]
    if hub is not None:
        parts.append(f"<link rel='hub' href={_attribute(hub)}/>\n")
    for row in rows:
        view = match_view(row, root, most)
        title = view["publication"]["title"] or view["publication"]["id"]
        link = str(view["publication"]["link"] or "")
        href = link if link.startswith(("http://", "https://")) else view["url"]
        text = json.dumps(view["solutions"], ensure_ascii=False, indent=1)
        parts.append(
            f"<entry>\n<id>urn:graphmatch:{id}:{row['seq']}</id>\n<title>{_xml(title)}</title>\n"
            f"<updated>{_time(row['matched_at'])}</updated>\n<link href={_attribute(href)}/>\n"
            f"<content type='text'>{_xml(text)}</content>\n</entry>\n"
        )
    content = "".join((*parts, "</feed>\n")).encode("utf-8", "replace")
    return content, f'"{sha256(content).hexdigest()[:32]}"'


def _xml(text: str) -> str:
    return escape(_NO_XML.sub("\ufffd", text))


def _attribute(text: str) -> str:
    return quoteattr(_NO_XML.sub("\ufffd", text))


def _time(at: int) -> str:
    return time_of(at).isoformat(timespec="milliseconds").replace("+00:00", "Z")
