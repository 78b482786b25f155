"""Lists of feeds: OPML, and plain text with an address a line; what is followed of them.

Nothing is fetched here.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urldefrag, urlsplit
from xml.sax.saxutils import quoteattr

from graphmatch.broker.feeds.feed_store import Feed
from semantic.errors import InputError, OnProblem, Place, Problem, Severity, warn_problem
from semantic.files import unreadable
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.safe_xml import check_xml, recode_xml

LIST_BYTES = 10 * 1024 * 1024
MOST_FEEDS = 10_000
"""So many feeds are followed on request, at most."""
_AT_ONCE = 100
_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FEED_SCHEME = ("feed://", "feed:", "pcast://")
_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class ListedFeed:
    """A feed of a list, and what the list calls it."""

    url: str
    title: str = ""


class Feeds(Protocol):
    """What polls feeds: a `graphmatch.broker.feeds.feed_poller.Poller`."""

    @property
    def feeds(self) -> Mapping[str, Feed]:
        """All feeds by their addresses."""

    async def add(self, url: str, title: str = "") -> Feed:
        """Take a feed in."""

    async def remove(self, url: str) -> None:
        """Forget a feed."""


async def follow(feeds: Feeds, listed: Sequence[ListedFeed]) -> int:
    """Follow the feeds of a list; return how many are new.

    Raises
    ------
    InputError
        When these would be more than `MOST_FEEDS`.
    """
    new = [one for one in listed if one.url not in feeds.feeds]
    if len(feeds.feeds) + len(new) > MOST_FEEDS:
        what, remedy = f"more than {MOST_FEEDS:,} feeds", "Remove others, or send fewer."
        raise InputError(Problem(what, Place("feeds"), remedy))
    for begin in range(0, len(new), _AT_ONCE):  # several are committed together
        some = new[begin : begin + _AT_ONCE]
        await asyncio.gather(*(feeds.add(one.url, one.title) for one in some))
    return len(new)


def write_feed_list(feeds: Iterable[Feed]) -> str:
    """Write feeds as OPML 2.0, as readers import it.

    Examples
    --------
    >>> print(write_feed_list([Feed("https://e.org/a?b&c", title="E")]))
    <?xml version="1.0" encoding="UTF-8"?>
    <opml version="2.0">
    <head><title>graphmatch</title></head>
    <body>
    <outline type="rss" text="E" title="E" xmlUrl="https://e.org/a?b&amp;c"/>
    </body>
    </opml>
    """
    lines = []
    for feed in feeds:
        title = quoteattr(_NO_XML.sub("", feed.title or feed.url))
        url = quoteattr(_NO_XML.sub("", feed.url))
        lines.append(f'<outline type="rss" text={title} title={title} xmlUrl={url}/>')
    return "\n".join(
        (
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<opml version="2.0">',
            "<head><title>graphmatch</title></head>",
            "<body>",
            *lines,
            "</body>",
            "</opml>",
        )
    )


def read_feed_list(
    path: Path, on_problem: OnProblem = warn_problem, limits: Limits = DEFAULT_LIMITS
) -> list[ListedFeed]:
    """Read a file that lists feeds, each address once; entries that cannot be used are reported.

    Raises
    ------
    InputError
        The file cannot be read, is hostile XML, or lists no feed.
    """
    try:
        if path.stat().st_size > LIST_BYTES:
            what, remedy = f"it has more than {LIST_BYTES:,} bytes", "Split the list."
            raise InputError(Problem(what, Place(str(path)), remedy))
        data = path.read_bytes()
    except OSError as error:
        raise InputError(unreadable(str(path), error)) from error
    return parse_feed_list(data, str(path), on_problem, limits)


def parse_feed_list(
    data: bytes,
    source: str,
    on_problem: OnProblem = warn_problem,
    limits: Limits = DEFAULT_LIMITS,
) -> list[ListedFeed]:
    r"""Read a list of feeds: OPML where it begins with ``<``, or else an address a line.

    In lines, ``#`` begins a comment.

    Examples
    --------
    >>> parse_feed_list(b"# news\nhttps://e.org/feed\nsoup\n", "feeds.txt", print)
    feeds.txt:3: 'soup' is not a feed's address. It is left out: give an http or https address.
    [ListedFeed(url='https://e.org/feed', title='')]
    >>> opml = b"<opml><body><outline text='E' xmlUrl='feed://e.org/a'/></body></opml>"
    >>> parse_feed_list(opml, "feeds.opml")
    [ListedFeed(url='http://e.org/a', title='E')]
    """
    is_xml = data.lstrip(b"\xef\xbb\xbf\xfe\xff\0 \t\r\n")[:1] == b"<"
    entries = _opml(data, source, on_problem, limits) if is_xml else _lines(data, source)
    found: dict[str, ListedFeed] = {}
    for text, title, place in entries:
        url = feed_address(text)
        if url is None:
            remedy = "It is left out: give an http or https address."
            on_problem(Problem(f"{text[:200]!r} is not a feed's address", place, remedy))
        else:
            found.setdefault(url, ListedFeed(url, title))
    if not found:
        raise InputError(Problem("it lists no feed", Place(source), "Give OPML, or addresses."))
    return list(found.values())


def feed_address(text: str) -> str | None:
    """Return the address of a feed as it is fetched; ``None`` for what is none.

    Examples
    --------
    >>> feed_address("feed:https://e.org/a#top"), feed_address("file:///etc/passwd")
    ('https://e.org/a', None)
    """
    url = text.strip()
    for scheme in _FEED_SCHEME:
        if url.lower().startswith(scheme):
            url = url[len(scheme) :]
            url = url if url.lower().startswith(("http://", "https://")) else f"http://{url}"
            break
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return None
    if not is_one or not url.isprintable() or " " in url or len(url) > 2000:
        return None
    return urldefrag(url)[0]


def _lines(data: bytes, source: str) -> Iterator[tuple[str, str, Place]]:
    text = data.decode("utf-8", "replace").removeprefix(_MARK)
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip(), "", Place(source, number)


def _opml(
    data: bytes, source: str, on_problem: OnProblem, limits: Limits
) -> Iterator[tuple[str, str, Place]]:
    """Yield what OPML lists; what is not well-formed is read as far as it goes."""
    import listparser

    fault = check_xml(data, source, limits)
    if fault is not None:
        what = f"not valid XML: {fault}"
        remedy = "It was read as far as possible. Ask the publisher to fix it."
        on_problem(Problem(what, Place(source, fault.lineno), remedy, Severity.WARNING))
    # As ASCII, for listparser reads XML as HTML, whose encoding has to be guessed.
    text = recode_xml(data, source).decode().removeprefix(_MARK)
    found = listparser.parse(text.encode("ascii", "xmlcharrefreplace"))
    for number, feed in enumerate(found.feeds, 1):
        title = " ".join(feed.title.split())
        yield feed.url, title, Place(source, item=title or f"entry {number}")
    for other in found.lists:
        what, remedy = f"{other.url[:200]!r} is another list", "It is skipped. Give its file."
        on_problem(Problem(what, Place(source), remedy, Severity.WARNING))
