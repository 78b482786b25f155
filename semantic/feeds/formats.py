"""Which feed format a document is in, by its content alone."""

from __future__ import annotations

import re
from enum import Enum

from semantic.feeds.names import ATOM_NAMESPACES, RSS_090
from semantic.syntax import decode_head, root_element
from semantic.vocabulary import RDF, RSS


class FeedFormat(Enum):
    """The formats, told apart by how they are read."""

    RSS = "RSS 0.9x or 2.0"
    ATOM = "Atom"
    RSS1 = "RSS 0.90 or 1.0, which is RDF/XML"
    JSON_FEED = "JSON Feed"


_JSON_FEED = re.compile(r"\"version\"\s*:\s*\"https?:(?:\\?/){2}jsonfeed\.org\\?/version")


def sniff_feed(head: bytes) -> FeedFormat | None:
    """Tell the format of a feed by its beginning; ``None`` where it is no feed.

    Parameters
    ----------
    head
        The first few thousand bytes or more, in any encoding.

    Examples
    --------
    >>> sniff_feed(b'<!-- made by hand --><rss version="2.0"><channel/></rss>')
    <FeedFormat.RSS: 'RSS 0.9x or 2.0'>
    >>> sniff_feed(b"<!DOCTYPE html><html></html>") is None
    True
    """
    text = decode_head(head)
    if text.lstrip().startswith("{"):
        return FeedFormat.JSON_FEED if _JSON_FEED.search(text) else None
    name, namespaces = root_element(text)
    prefix, _, local = name.rpartition(":")
    namespace = namespaces.get(prefix, "")
    if namespace == RDF.iri and local == "RDF":
        return FeedFormat.RSS1 if {RSS.iri, RSS_090} & set(namespaces.values()) else None
    if namespace in ATOM_NAMESPACES:
        return FeedFormat.ATOM if local in ("feed", "entry") else None
    return FeedFormat.RSS if local.lower() == "rss" else None
