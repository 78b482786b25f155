"""Children of an XML element by name, their text, and code that RSS and Atom share.

Names are in lower case with the usual prefix (``dc:date``), whatever prefix the document uses.
Names of the format itself have no prefix.
"""

from __future__ import annotations

import html
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from copy import deepcopy
from itertools import chain
from urllib.parse import urljoin
from xml.etree.ElementTree import Element, tostring

from semantic.feeds.model import Enclosure
from semantic.vocabulary import CONTENT, DC, DCTERMS, RDF, RSS

RSS_090 = frozenset(f"http://{host}.netscape.com/rdf/simple/0.9/" for host in ("my", "channel"))
NAMESPACES = {
    "rss": RSS.iri,
    "atom": "http://www.w3.org/2005/Atom",
    "content": CONTENT.iri,
    "dc": DC.iri,
    "dcterms": DCTERMS.iri,
    "itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "media": "http://search.yahoo.com/mrss/",
    "rdf": RDF.iri,
    "sy": "http://purl.org/rss/1.0/modules/syndication/",
    "xhtml": "http://www.w3.org/1999/xhtml",
}
"""Namespaces of common prefixes, also for documents that do not declare these."""
_ALSO = {
    "http://backend.userland.com/rss2": "rss",
    "http://my.netscape.com/publish/formats/rss-0.91.dtd": "rss",
    "https://www.w3.org/2005/atom": "atom",
    "http://purl.org/atom/ns#": "atom",
    "http://search.yahoo.com/mrss": "media",
}
_PREFIXES = {iri.lower(): prefix for prefix, iri in NAMESPACES.items()}
_PREFIXES |= _ALSO | dict.fromkeys(RSS_090, "rss")

_XML = "{http://www.w3.org/XML/1998/namespace}"
_XLINK = "{http://www.w3.org/1999/xlink}"
_KEYWORDS = frozenset(f"media:{name}" for name in ("group", "content", "keywords", "category"))
_KEYWORDS |= {"itunes:category", "itunes:keywords"}
_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


def short_name(tag: str) -> str:
    """Return an element's name in lower case with its usual prefix.

    A tag in an unknown namespace is returned unchanged.

    Examples
    --------
    >>> short_name("{http://search.yahoo.com/mrss}title"), short_name("{urn:a}b"), short_name("B")
    ('media:title', '{urn:a}b', 'b')
    """
    if not tag.startswith("{"):
        return tag.lower()
    namespace, _, local = tag[1:].rpartition("}")
    prefix = _PREFIXES.get(namespace.lower())
    return tag if prefix is None else f"{prefix}:{local.lower()}"


class Fields:
    """The children of an element by name; its methods return their texts, links and enclosures.

    Parameters
    ----------
    elements
        The parent element, whose children are used, or any elements.
    own
        The format's own prefix, ``rss`` or ``atom``.

    Examples
    --------
    >>> from xml.etree.ElementTree import fromstring
    >>> fields = Fields(fromstring("<item><title/><Title> a </Title></item>"), "rss")
    >>> fields.first("dc:title", "title")
    'a'
    """

    def __init__(self, elements: Iterable[Element], own: str) -> None:
        self._own = own
        self._children: dict[str, list[Element]] = {}
        prefix = f"{own}:"
        for child in elements:
            name = short_name(child.tag).removeprefix(prefix)
            self._children.setdefault(name, []).append(child)

    def __iter__(self) -> Iterator[Element]:
        return chain(*self._children.values())

    def all(self, *names: str) -> Iterator[Element]:
        """Yield the children with the first of these names, then those with the second, etc."""
        return chain.from_iterable(filter(None, map(self._children.get, names)))

    def within(self, *names: str) -> Fields:
        """Return the children of all children with these names, as `Fields`."""
        return Fields([inner for child in self.all(*names) for inner in child], self._own)

    def element(self, *names: str) -> Element | None:
        """Return the first child that has text, trying the names in order; ``None`` if none has."""
        return next(filter(text_of, self.all(*names)), None)

    def first(self, *names: str) -> str:
        """Return the first nonempty text of a child, trying the names in order, or ``""``."""
        return next(filter(None, map(text_of, self.all(*names))), "")

    def markup(self, *names: str) -> str:
        """Return the first nonempty markup of a child, trying the names in order, or ``""``.

        An element such as a picture has markup, but no text.
        """
        return next(filter(None, map(markup_of, self.all(*names))), "")

    def texts(self, *names: str) -> tuple[str, ...]:
        """Return the distinct nonempty texts of all children with these names."""
        return distinct(map(text_of, self.all(*names)))

    def href(self, name: str, rel: str = "alternate") -> str:
        """Return the address of the first Atom link with this relation; ``""`` if there is none.

        `name` is the name of the link elements.
        """
        return next(iter(self.hrefs(name, rel=rel)), "")

    def hrefs(self, *names: str, rel: str) -> tuple[str, ...]:
        """Return the distinct addresses of Atom links with a relation.

        `names` are the names of the link elements.
        """
        links = (link for link in self.all(*names) if link.get("rel", "alternate") == rel)
        return distinct(link.get("href", "").strip() for link in links)

    def people(self, name: str) -> tuple[str, ...]:
        """Return the names of Atom's persons; without a name, the email address or URI.

        `name` is the name of the person elements, such as ``author``.
        """
        persons = (Fields(person, "atom") for person in self.all(name))
        return distinct(person.first("name", "email", "uri", "url") for person in persons)

    def media(self) -> Fields:
        """Return the children of ``media:group`` and ``media:content``, also inside groups."""
        both = self.within("media:group", "media:content")
        inner = both.within("media:content")
        return Fields([*both, *inner], self._own) if inner._children else both

    def keywords(self) -> tuple[str, ...]:
        """Return the distinct categories and keywords in elements of iTunes and Media RSS."""
        if _KEYWORDS.isdisjoint(self._children):
            return ()  # Most items have none.
        media = self.media()
        lists = (fields.texts("itunes:keywords", "media:keywords") for fields in (self, media))
        words = (word.strip() for text in chain(*lists) for word in text.split(","))
        shows = (each.get("text", "") for one in self.all("itunes:category") for each in one.iter())
        kinds = (
            text
            for fields in (self, media)
            for category in fields.all("media:category")
            for text in (text_of(category), category.get("label", ""))
        )
        return distinct((*words, *map(str.strip, shows), *map(str.strip, kinds)))

    def enclosures(self) -> tuple[Enclosure, ...]:
        """Return the enclosures of RSS, Atom (links) and Media RSS, one for each address."""
        files = [*self.all("enclosure")]
        files += [e for e in self.all("link", "atom:link") if e.get("rel") == "enclosure"]
        files += self.all("media:content")
        if "media:group" in self._children:
            files += self.within("media:group").all("media:content")
        found: dict[str, Enclosure] = {}
        for file in files:
            url = (file.get("url") or file.get("href") or "").strip()
            length = file.get("length") or file.get("fileSize") or ""
            if url:
                found.setdefault(url, Enclosure(url, file.get("type", "").strip(), length.strip()))
        return tuple(found.values())


def attribute(element: Element, name: str) -> str:
    """Return an attribute's value without white space at its ends; ``""`` if it is missing.

    `name` is in lower case, but the case of the element's attributes is ignored.
    """
    found = (value for key, value in element.items() if key.lower() == name)
    return next(found, "").strip()


def text_of(element: Element | None) -> str:
    """Return the text of an element without markup, decoded if it is base64; ``""`` for ``None``.

    Examples
    --------
    >>> from xml.etree.ElementTree import fromstring
    >>> text_of(fromstring("<a> b <i>c</i></a>")), text_of(fromstring("<a mode='base64'>YQ==</a>"))
    ('b c', 'a')
    """
    if element is None:
        return ""
    whole = ("".join(element.itertext()) if len(element) else element.text or "").strip()
    return _from_base64(whole) if _is_base64(element) else whole


def _is_base64(element: Element) -> bool:
    """Return whether the text is base64: Atom 0.3 has a mode, Atom 1.0 a non-text media type."""
    if element.get("mode") == "base64":
        return True
    type = element.get("type")
    if type is None:
        return False
    media, _, kind = type.lower().partition("/")
    return media not in ("", "text", "message") and kind != "" and not kind.endswith("xml")


def _from_base64(text: str) -> str:
    """Decode base64; return other text unchanged."""
    try:
        return b64decode("".join(text.split()), validate=True).decode().strip()
    except ValueError:
        return text


def markup_of(element: Element) -> str:
    """Return an element's HTML: its text as delivered, or its child elements, serialized."""
    if len(element) == 0:
        return text_of(element)
    if len(element) == 1 and short_name(element[0].tag) == "xhtml:div":
        element = element[0]  # Atom's wrapper is not part of the text.
    element = deepcopy(element)
    # HTML knows the names of its own, SVG and MathML elements without namespaces.
    for inner in element.iter():
        inner.tag = inner.tag.rpartition("}")[2]
        for name in [name for name in inner.attrib if name.startswith(_XLINK)]:
            inner.set(f"xlink:{name.removeprefix(_XLINK)}", inner.attrib.pop(name))
    parts = [html.escape(element.text or "", quote=False)]
    parts += (tostring(child, encoding="unicode") for child in element)
    return "".join(parts).strip()


def unescaped(text: str) -> str:
    """Resolve HTML character references, but only those that end with a semicolon.

    Examples
    --------
    >>> unescaped("Caf&eacute; &copy 2003")
    'Café &copy 2003'
    """
    return _REFERENCE.sub(lambda found: html.unescape(found[0]), text) if "&" in text else text


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct nonempty texts, in order.

    Examples
    --------
    >>> distinct(["a", "", "b", "a"])
    ('a', 'b')
    """
    return tuple(dict.fromkeys(filter(None, texts)))


def language_of(*elements: Element) -> str:
    """Return the ``xml:lang`` of the first element that has one; otherwise ``""``."""
    return next(filter(None, (element.get(_XML + "lang", "") for element in elements)), "")


def base_of(base: str, *elements: Element) -> str:
    """Return the base IRI of links in the last of nested elements: `base`, then each ``xml:base``.

    Each is resolved against the one before. An invalid base is ignored.
    """
    for element in elements:
        try:
            base = urljoin(base, element.get(_XML + "base", "").strip())
        except ValueError:  # A base with an invalid host is ignored.
            continue
    return base
