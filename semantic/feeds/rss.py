"""The fields of RSS, from 0.90 to 2.0.

What the specification says and what is common practice: titles hold HTML's character
references, authors stand in four different elements, media in three.

Sources: RSS 2.0 (rssboard.org), RSS 1.0 and its modules, Media RSS 1.5.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element

from semantic.feeds.fields import Fields, base_of, distinct, language_of, text_of, unescaped
from semantic.feeds.item import Channel, Item
from semantic.vocabulary import RDF

_ABOUT = f"{{{RDF.iri}}}about"
_NAME_LENGTH = 300  # a longer one is not taken apart: the pattern is quadratic
_NAMED_ADDRESS = re.compile(
    r"\S+@\S+\s+\((.+)\)|\"?([^<>\"]+?)\"?\s*<\S+@\S+>|([^()]+?)\s*\(\S+@\S+\)"
)


def rss_channel(root: Element) -> Channel:
    """Read the channel of RSS, 0.90 and 1.0 included.

    Examples
    --------
    >>> from xml.etree.ElementTree import fromstring
    >>> root = fromstring("<rss><channel><title>T</title><language>de</language></channel></rss>")
    >>> rss_channel(root).language
    'de'
    """
    channel = next(Fields(root, "rss").all("channel"), root)
    fields = Fields(channel, "rss")
    return Channel(
        id=channel.get(_ABOUT, ""),
        title=unescaped(fields.first("title")),
        link=fields.first("link"),
        description=fields.markup("description"),
        language=fields.first("language", "dc:language") or language_of(channel, root),
        base=base_of("", root, channel),
    )


def rss_item(number: int, line: int | None, element: Element, channel: Channel) -> Item:
    """Read an item of RSS.

    Examples
    --------
    >>> from xml.etree.ElementTree import fromstring
    >>> item = fromstring("<item><title>Q&amp;amp;A</title><guid>http://e/1</guid></item>")
    >>> rss_item(1, None, item, Channel()).title, rss_item(1, None, item, Channel()).link
    ('Q&A', 'http://e/1')
    """
    fields = Fields(element, "rss")
    return Item(
        number,
        line,
        id=fields.first("guid", "atom:id") or element.get(_ABOUT, ""),
        link=_link(fields),
        title=unescaped(fields.first("title", "dc:title", "media:title")),
        description=fields.markup("description", "dc:description", "media:description"),
        content=fields.markup("content:encoded", "xhtml:body"),
        published=fields.first("pubDate", "pubdate", "dc:date", "dcterms:issued", "atom:published"),
        updated=fields.first("atom:updated", "dcterms:modified"),
        language=fields.first("dc:language") or language_of(element),
        creators=_creators(fields),
        subjects=fields.texts("category", "dc:subject"),
        enclosures=fields.enclosures(),
        base=base_of(channel.base, element),
    )


def _link(fields: Fields) -> str:
    link = fields.first("link") or fields.alternate("atom:link")
    if link:
        return link
    guid = fields.element("guid")
    is_link = guid is not None and guid.get("isPermaLink", "true").lower() != "false"
    return text_of(guid) if is_link else ""


def _creators(fields: Fields) -> tuple[str, ...]:
    authors = map(_without_address, fields.texts("author"))
    creators = (*authors, *fields.texts("dc:creator"), *fields.people("atom:author"))
    return distinct(creators) or fields.texts("itunes:author")


def _without_address(author: str) -> str:
    """Return the name of ``address (name)``, ``name <address>`` and ``name (address)``."""
    named = _NAMED_ADDRESS.fullmatch(author) if len(author) <= _NAME_LENGTH else None
    return next(filter(None, named.groups())) if named else author
