"""Fields of Atom 0.3 and 1.0.

Sources: RFC 4287 (Atom), Media RSS 1.5.
"""

from __future__ import annotations

import re
from itertools import chain
from xml.etree.ElementTree import Element

from semantic.feeds.elements import (
    Fields,
    base_of,
    distinct,
    language_of,
    markup_of,
    short_name,
    text_of,
    unescaped,
)
from semantic.feeds.model import Channel, Item

_TAG = re.compile(
    r"<(script|style)\b.*?(?:</\1\b[^<>]*>|\Z)|</?[a-z][^<>]*>", re.IGNORECASE | re.DOTALL
)
_ROOTS = frozenset({"feed", "atom:feed", "atom:entry"})


def atom_channel(root: Element) -> Channel:
    """Return the channel of an Atom document, whose feed element may be inside an XHTML page.

    If the document is a single entry, the channel has only a base and a language.

    Examples
    --------
    >>> from xml.etree.ElementTree import fromstring
    >>> feed = fromstring('<feed xmlns="http://www.w3.org/2005/Atom"><link href="http://e/"/></feed>')
    >>> atom_channel(feed).link
    'http://e/'
    """
    root = next((element for element in root.iter() if short_name(element.tag) in _ROOTS), root)
    if short_name(root.tag) == "atom:entry":
        return Channel(base=base_of("", root), language=language_of(root))
    fields = Fields(root, "atom")
    return Channel(
        id=fields.first("id"),
        title=_title(fields),
        link=fields.href("link"),
        description=fields.markup("subtitle", "tagline"),
        language=language_of(root) or fields.first("dc:language"),
        creators=fields.people("author"),
        base=base_of("", root),
        self_link=fields.href("link", "self"),
        hubs=fields.hrefs("link", rel="hub"),
    )


def atom_entry(number: int, line: int | None, element: Element, channel: Channel) -> Item:
    """Return the item of an Atom entry; without authors, it has those of its source or its feed.

    `number` is its position in the feed, `line` its first line.

    Examples
    --------
    >>> from xml.etree.ElementTree import fromstring
    >>> entry = fromstring(
    ...     '<entry xmlns="http://www.w3.org/2005/Atom"><title type="html">&lt;b&gt;A&lt;/b&gt;'
    ...     '</title><category term="x"/></entry>')
    >>> atom_entry(1, None, entry, Channel()).title, atom_entry(1, None, entry, Channel()).subjects
    ('A', ('x',))
    """
    fields = Fields(element, "atom")
    id = fields.first("id")
    return Item(
        number,
        line,
        id=id,
        link=fields.href("link") or (id if id.startswith(("http://", "https://")) else ""),
        title=_title(fields) or unescaped(fields.media().first("media:title")),
        description=fields.markup("summary", "media:description", "dc:description")
        or fields.media().markup("media:description"),
        content=fields.markup("content"),
        published=fields.first("published", "issued", "dc:date", "created"),
        updated=fields.first("updated", "modified"),
        language=language_of(element) or fields.first("dc:language"),
        creators=fields.people("author")
        or fields.texts("dc:creator")
        or fields.within("source").people("author")
        or channel.creators,
        subjects=distinct((*_subjects(fields), *fields.keywords())),
        enclosures=fields.enclosures(),
        base=base_of(channel.base, element),
    )


def _title(fields: Fields) -> str:
    """Return the title without markup and scripts."""
    title = fields.element("title", "dc:title", "media:title")
    if title is None or title.get("type") not in ("html", "text/html", "xhtml"):
        return text_of(title)
    return unescaped(_TAG.sub("", markup_of(title)))


def _subjects(fields: Fields) -> tuple[str, ...]:
    categories = (
        (c.get("term", ""), c.get("label", ""), text_of(c)) for c in fields.all("category")
    )
    terms = map(str.strip, chain.from_iterable(categories))
    return (*terms, *fields.texts("dc:subject"))
