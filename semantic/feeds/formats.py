"""Which feed format a document is in, by its content alone."""

from __future__ import annotations

import re
from enum import Enum

from semantic.feeds.names import ATOM_NAMESPACES, RSS_090
from semantic.guards import decode_xml
from semantic.vocabulary import RDF, RSS


class FeedFormat(Enum):
    """The formats, told apart by how they are read."""

    RSS = "RSS 0.9x or 2.0"
    ATOM = "Atom"
    RSS1 = "RSS 0.90 or 1.0, which is RDF/XML"
    JSON_FEED = "JSON Feed"


_PROLOGUE = re.compile(r"(?:\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>)*", re.DOTALL)
_ROOT = re.compile(r"<((?:[\w.-]+:)?[\w.-]+)([^>]*)")
_NAMESPACE = re.compile(r"\sxmlns(?::([\w.-]+))?\s*=\s*[\"']([^\"']*)[\"']")
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
    text = decode_head(head).lstrip("\ufeff")
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


def root_element(text: str) -> tuple[str, dict[str, str]]:
    """Return the root element's qualified name and the namespaces that it declares.

    Examples
    --------
    >>> root_element("<?xml version='1.0'?><a:b xmlns:a='urn:a'/>")
    ('a:b', {'a': 'urn:a'})
    """
    start = _PROLOGUE.match(text)
    root = _ROOT.match(text, start.end() if start else 0)
    if root is None:
        return "", {}
    return root[1], {prefix: iri.strip() for prefix, iri in _NAMESPACE.findall(root[2])}


def decode_head(head: bytes) -> str:
    """Decode as much as can be: a head may end inside a character."""
    try:
        return decode_xml(head)
    except (UnicodeDecodeError, LookupError):
        return head.decode("utf-8", errors="replace")


def after_root_name(text: str) -> int:
    """Return the position behind the root element's name: where its attributes begin.

    Examples
    --------
    >>> after_root_name("<rss version='2.0'/>")
    4
    """
    start = _PROLOGUE.match(text)
    root = _ROOT.match(text, start.end() if start else 0)
    return root.end(1) if root else 0
