"""Lists of feeds: OPML, and text with one address per line."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urldefrag
from xml.sax.saxutils import quoteattr

from graphmatch.broker.feeds.feed_store import Feed
from graphmatch.broker.outbox.websub_protocol import web_url
from semantic.errors import InputError, OnProblem, Place, Problem, Severity, warn_problem
from semantic.files import unreadable
from semantic.limits import DEFAULT_LIMITS
from semantic.safe_xml import check_xml, recode_xml

if TYPE_CHECKING:
    from graphmatch.broker.feeds.feed_poller import Poller

MAX_LIST_BYTES = 10 * 1024 * 1024
MAX_FEEDS = 10_000
"""Maximum number of feeds of a broker."""
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FEED_SCHEME = re.compile(r"(?:feed|pcast)://|feed:", re.IGNORECASE)
_OPML = """<?xml version="1.0" encoding="UTF-8"?>
<opml version="2.0"><head><title>graphmatch</title></head><body>
{}
</body></opml>"""


async def follow(poller: Poller, listed: Sequence[Feed]) -> int:
    """Add the feeds of a list to a poller; return the number of new feeds.

    Raises
    ------
    InputError
        If the poller would have more than `MAX_FEEDS` feeds.
    """
    new = [feed for feed in listed if feed.url not in poller.feeds]
    if len(poller.feeds) + len(new) > MAX_FEEDS:
        what, remedy = f"more than {MAX_FEEDS:,} feeds", "Remove others, or send fewer."
        raise InputError(Problem(what, Place("feeds"), remedy))
    # The store commits some of them in one transaction.
    await asyncio.gather(*(poller.add(feed.url, feed.title) for feed in new))
    return len(new)


def write_feed_list(feeds: Iterable[Feed]) -> str:
    """Return feeds as OPML 2.0.

    Examples
    --------
    >>> print(write_feed_list([Feed("https://e.org/a?b&c", "E")]))
    <?xml version="1.0" encoding="UTF-8"?>
    <opml version="2.0"><head><title>graphmatch</title></head><body>
    <outline type="rss" text="E" title="E" xmlUrl="https://e.org/a?b&amp;c"/>
    </body></opml>
    """
    lines = []
    for feed in feeds:
        title, url = (quoteattr(_NOT_XML.sub("", s)) for s in (feed.title or feed.url, feed.url))
        lines.append(f'<outline type="rss" text={title} title={title} xmlUrl={url}/>')
    return _OPML.format("\n".join(lines))


def read_feed_list(name: str, on_problem: OnProblem = warn_problem) -> list[Feed]:
    """Return the feeds of a file, each address once, or the feed with an address.

    Entries that cannot be used are reported.

    Raises
    ------
    InputError
        If the file cannot be read, is hostile XML, or lists no feed.
    """
    if (url := feed_address(name)) is not None:
        return [Feed(url)]
    try:
        with Path(name).open("rb") as file:
            data = file.read(MAX_LIST_BYTES + 1)
    except OSError as error:
        raise InputError(unreadable(name, error)) from error
    if len(data) > MAX_LIST_BYTES:
        what, remedy = f"it has more than {MAX_LIST_BYTES:,} bytes", "Split the list."
        raise InputError(Problem(what, Place(name), remedy))
    return parse_feed_list(data, name, on_problem)


def parse_feed_list(data: bytes, source: str, on_problem: OnProblem = warn_problem) -> list[Feed]:
    r"""Return the feeds of OPML, which begins with ``<``, or of text with one address per line.

    In text, ``#`` begins a comment.

    Examples
    --------
    >>> [feed] = parse_feed_list(b"# news\nhttps://e.org/feed\nsoup\n", "feeds.txt", print)
    feeds.txt:3: 'soup' is not a feed's address. It is left out: give an http or https address.
    >>> feed.url
    'https://e.org/feed'
    >>> opml = b"<opml><body><outline text='E' xmlUrl='feed://e.org/a'/></body></opml>"
    >>> [feed] = parse_feed_list(opml, "feeds.opml")
    >>> feed.url, feed.title
    ('http://e.org/a', 'E')
    """
    is_xml = data.lstrip(b"\xef\xbb\xbf\xfe\xff\0 \t\r\n")[:1] == b"<"
    entries = _opml(data, source, on_problem) if is_xml else _lines(data, source)
    feeds: dict[str, Feed] = {}
    for text, title, place in entries:
        url = feed_address(text)
        if url is None:
            remedy = "It is left out: give an http or https address."
            on_problem(Problem(f"{text[:200]!r} is not a feed's address", place, remedy))
        else:
            feeds.setdefault(url, Feed(url, title))
    if not feeds:
        raise InputError(Problem("it lists no feed", Place(source), "Give OPML, or addresses."))
    return list(feeds.values())


def feed_address(text: str) -> str | None:
    """Return the address of a feed in the form in which it is fetched, or ``None`` if it is wrong.

    Examples
    --------
    >>> feed_address("feed:https://e.org/a#top"), feed_address("file:///etc/passwd")
    ('https://e.org/a', None)
    """
    url = text.strip()
    if (scheme := _FEED_SCHEME.match(url)) is not None:
        url = url[scheme.end() :]
        url = url if url.lower().startswith(("http://", "https://")) else f"http://{url}"
    return urldefrag(url)[0] if web_url(url) else None


def _lines(data: bytes, source: str) -> Iterator[tuple[str, str, Place]]:
    text = data.decode("utf-8-sig", "replace")
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip(), "", Place(source, number)


def _opml(data: bytes, source: str, on_problem: OnProblem) -> Iterator[tuple[str, str, Place]]:
    """Yield the entries of OPML, up to the first error of XML."""
    import listparser

    fault = check_xml(data, source, DEFAULT_LIMITS)
    if fault is not None:
        what = f"not valid XML: {fault}"
        remedy = "It was read as far as possible. Ask the publisher to fix it."
        on_problem(Problem(what, Place(source, fault.lineno), remedy, Severity.WARNING))
    # listparser reads XML as HTML, and would guess the encoding, so give it ASCII.
    text = recode_xml(data, source).decode("utf-8-sig")
    content = listparser.parse(text.encode("ascii", "xmlcharrefreplace"))
    for number, feed in enumerate(content.feeds, 1):
        title = " ".join(feed.title.split())
        yield feed.url, title, Place(source, item=title or f"entry {number}")
    for other in content.lists:
        what, remedy = f"{other.url[:200]!r} is another list", "It is skipped. Give its file."
        on_problem(Problem(what, Place(source), remedy, Severity.WARNING))
