"""A feed's bytes to publications, one an item."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from semantic.errors import OnProblem, warn_problem
from semantic.feeds.atom import atom_channel, atom_entry
from semantic.feeds.document import Document, read_document
from semantic.feeds.formats import FeedFormat, sniff_feed
from semantic.feeds.json_feed import read_json_feed
from semantic.feeds.names import RSS_090
from semantic.feeds.report import Report
from semantic.feeds.rss import rss_channel, rss_item
from semantic.feeds.rss1 import read_rss1
from semantic.feeds.triples import ItemWriter
from semantic.guards import check_xml, decode_xml
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.publication import Publication
from semantic.syntax import root_element


def read_feed(
    data: bytes,
    source: str,
    *,
    on_problem: OnProblem = warn_problem,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[Publication]:
    """Read a feed of any format; nothing is fetched, whatever it refers to.

    Parameters
    ----------
    data
        The document.
    source
        Its name, for messages.
    on_problem
        Called with each item that is refused, and whatever was passed over or mended.
    limits
        `Limits.document_bytes`, `Limits.xml_expansion`, `Limits.xml_depth`.

    Returns
    -------
    Iterator[Publication]
        One an item, in the feed's order; its id is the item's IRI. Items are converted as they
        are asked for; the document has been read by then.

    Raises
    ------
    InputError
        Nothing of the document can be used: it is empty, too large, no feed, not in its
        encoding, hostile, or broken before its first item ends.

    Examples
    --------
    >>> feed = b'''<rss version="2.0"><channel><title>News</title>
    ... <item><title>Hello</title><link>http://example.org/1</link></item></channel></rss>'''
    >>> [item.id for item in read_feed(feed, "news.rss")]
    ['http://example.org/1']
    """
    report = Report(source, on_problem)
    text = _text(data, report, limits)
    encoded = text.encode("utf-8")
    kind = sniff_feed(encoded)
    if kind is None:
        _fail_no_feed(text, report)
    if kind is FeedFormat.JSON_FEED:
        channel, items = read_json_feed(text, report)
        return map(ItemWriter(channel, report).publication, items)
    check_xml(encoded, source, limits)
    document = read_document(text, report, limits)
    if kind is FeedFormat.RSS1 and RSS_090 not in root_element(text)[1].values():
        return read_rss1(document, report)
    return _read_elements(document, kind is FeedFormat.ATOM, report)


def _read_elements(document: Document, is_atom: bool, report: Report) -> Iterator[Publication]:
    channel = atom_channel(document.root) if is_atom else rss_channel(document.root)
    writer = ItemWriter(channel, report)
    read_item = atom_entry if is_atom else rss_item
    return (
        writer.publication(read_item(number, line, element, channel))
        for number, (line, element) in enumerate(document.items, 1)
    )


def _text(data: bytes, report: Report, limits: Limits) -> str:
    if len(data) > limits.document_bytes:
        what = f"it has more than {limits.document_bytes:,} bytes"
        report.fail(what, "Raise the limit document_bytes, or split the feed.")
    try:
        text = decode_xml(data)
    except UnicodeDecodeError as error:
        before = data[: error.start]
        what = f"it is not in its encoding, {error.encoding} ({error.reason})"
        remedy = "Declare the encoding that it is in, or convert it."
        report.fail(what, remedy, before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
    except LookupError as error:
        report.fail(f"{error}", "Convert the document to UTF-8.", 1)
    if not text.strip():
        report.fail("it is empty", "Get the feed again.")
    return text


def _fail_no_feed(text: str, report: Report) -> NoReturn:
    name = root_element(text)[0]
    if name.lower() == "html" or "<!doctype html" in text[:2000].lower():
        what, remedy = "it is an HTML page", "Look in it for the address of its feed."
    elif name:
        what, remedy = f"its root element <{name}> is no feed's", _EXPECTED
    else:
        what, remedy = "it is neither XML nor a JSON Feed", _EXPECTED
    report.fail(what, remedy)


_EXPECTED = "RSS, Atom and JSON Feed can be read here."
