"""Convert a feed's bytes to publications, one per item."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

from semantic.errors import OnProblem, warn_problem
from semantic.feeds.atom import atom_channel, atom_entry
from semantic.feeds.document import read_document
from semantic.feeds.elements import NAMESPACES, RSS_090, short_name
from semantic.feeds.encodings import in_utf8
from semantic.feeds.model import Channel, ProblemReporter
from semantic.feeds.rss import own_triples, rss_channel, rss_item
from semantic.feeds.triples import ItemWriter, absolute_iri
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.publication import Publication
from semantic.syntax_detection import after_root_name, decode_head, refuse_foreign, root_element
from semantic.vocabulary import RDF, RSS


class FeedFormat(Enum):
    """Feed formats, grouped by parser."""

    RSS = "RSS 0.9x or 2.0, or CDF"
    ATOM = "Atom"
    RSS1 = "RSS 1.0, which is RDF/XML"
    JSON_FEED = "JSON Feed"


_JSON_VERSION = re.compile(
    r"\"version\"\s*:\s*(?:\"https?:(?:\\?/){2}(?:www\.)?jsonfeed\.org\\?/version|\"?1(?:\.\d+)?\"?[\s,}])"
)
_JSON_FIELD = re.compile(r"jsonfeed\.org|\"(?:items|feed_url|home_page_url)\"\s*:")
_INNER_ATOM = re.compile(r"<(?:[\w.-]+:)?(?:feed|entry)\s[^<>]*" + re.escape(NAMESPACES["atom"]))
_INNER_RSS = re.compile(r"<(?:[\w.-]+:)?channel\s[^<>]*" + re.escape(RSS.iri))
_DEFAULT_NAMESPACE = re.compile(rb"[^<>]*?\sxmlns\s*=\s*(\"[^\"]*\"|'[^']*')")
_HEAD = 65536
"""Number of bytes in which the format is detected."""


def sniff_feed(head: bytes) -> FeedFormat | None:
    """Detect a feed's format from its beginning; return ``None`` for other documents.

    Parameters
    ----------
    head
        The first bytes, at least a few thousand, in any encoding.

    Examples
    --------
    >>> sniff_feed(b'<!-- made by hand --><rss version="2.0"><channel/></rss>')
    <FeedFormat.RSS: 'RSS 0.9x or 2.0, or CDF'>
    >>> sniff_feed(b"<!DOCTYPE html><html></html>") is None
    True
    """
    text = decode_head(head)
    if text.lstrip().startswith("{"):
        is_feed = _JSON_VERSION.search(text) and _JSON_FIELD.search(text)
        return FeedFormat.JSON_FEED if is_feed else None
    root, namespaces = root_element(text)
    prefix, _, local = root.rpartition(":")
    spoken = set(namespaces.values())
    if namespaces.get(prefix) == RDF.iri and local == "RDF":
        if RSS_090 & spoken or ("" not in namespaces and "<channel>" in text):
            return FeedFormat.RSS
        is_rss = RSS.iri in spoken or _INNER_RSS.search(text)
        return FeedFormat.RSS1 if is_rss else None
    name = short_name(f"{{{namespaces[prefix]}}}{local}" if namespaces.get(prefix) else local)
    in_a_page = name in ("html", "xhtml:html") and _INNER_ATOM.search(text)
    if name in ("feed", "atom:feed", "atom:entry") or in_a_page:
        return FeedFormat.ATOM
    return FeedFormat.RSS if local.lower() == "rss" or name == "channel" else None


def read_feed(
    data: bytes,
    source: str,
    *,
    on_problem: OnProblem = warn_problem,
    limits: Limits = DEFAULT_LIMITS,
    kind: FeedFormat | None = None,
) -> Iterator[Publication]:
    """Return the publications of a feed of any format; never fetch documents that it refers to.

    Parameters
    ----------
    data
        The document.
    source
        The document's name, for messages.
    on_problem
        Called for each refused item, each repair and each skipped part.
    limits
        `Limits.document_bytes`, `Limits.xml_expansion`, `Limits.xml_depth`.
    kind
        The format, if `sniff_feed` was called already.

    Returns
    -------
    Iterator[Publication]
        One per item, in the feed's order, with the item's IRI as id. The document is read at once,
        and its items are converted lazily.

    Raises
    ------
    InputError
        The document is unusable: it is empty, too large, not a feed, hostile, or broken before its
        first item ends.

    Examples
    --------
    >>> feed = b'''<rss version="2.0"><channel><title>News</title>
    ... <item><title>Hello</title><link>http://example.org/1</link></item></channel></rss>'''
    >>> [item.id for item in read_feed(feed, "news.rss")]
    ['http://example.org/1']
    """
    return open_feed(data, source, on_problem=on_problem, limits=limits, kind=kind)[1]


def open_feed(
    data: bytes,
    source: str,
    *,
    on_problem: OnProblem = warn_problem,
    limits: Limits = DEFAULT_LIMITS,
    kind: FeedFormat | None = None,
) -> tuple[Channel, Iterator[Publication]]:
    """Return the channel and the publications of a feed; see `read_feed`.

    Examples
    --------
    >>> feed = b"<rss><channel><title>News</title><item><title>Hello</title></item></channel></rss>"
    >>> channel, items = open_feed(feed, "news.rss")
    >>> channel.title, [item.title for item in items]
    ('News', ['Hello'])
    """
    report = ProblemReporter(source, on_problem)
    if len(data) > limits.document_bytes:
        what = f"the feed is larger than {limits.document_bytes:,} bytes"
        report.fail(what, "Raise the limit document_bytes, or split the feed.")
    data = in_utf8(data, report)
    if not data.strip():
        report.fail("the feed is empty", "Get the feed again.")
    kind = kind or sniff_feed(data[:_HEAD])
    if kind is None:
        refuse_foreign(data[:_HEAD], source)
        report.fail("the document is not a feed", "Give RSS, Atom or JSON Feed.")
    if kind is FeedFormat.JSON_FEED:
        from semantic.feeds.json_feed import read_json_feed

        channel, items = read_json_feed(data.decode(), report)
        return channel, ItemWriter(channel, report).publications(items)
    if kind is FeedFormat.RSS:
        data = _without_namespace(data)
    document = read_document(data, report, limits)
    is_atom = kind is FeedFormat.ATOM
    channel = atom_channel(document.root) if is_atom else rss_channel(document.root)
    read_item = atom_entry if is_atom else rss_item
    items = [
        read_item(number, line, element, channel)
        for number, (line, element) in enumerate(document.items, 1)
    ]
    if kind is not FeedFormat.RSS1:
        return channel, ItemWriter(channel, report).publications(items)
    writer = ItemWriter(channel, report, absolute_iri(channel.id))
    return channel, writer.publications(items, own_triples(document, channel, report))


def _without_namespace(data: bytes) -> bytes:
    """Return a document without its root's default namespace, because RSS has none."""
    start = after_root_name(data[:_HEAD].decode("latin-1"))
    found = _DEFAULT_NAMESPACE.match(data, start)
    return data if found is None else data[: found.start(1)] + b'""' + data[found.end() :]
