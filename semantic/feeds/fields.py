"""The fields of an XML element by name, and the text in them.

Names have the usual prefixes (``dc:date``), and those of the format itself have none.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from itertools import chain
from urllib.parse import urljoin
from xml.etree.ElementTree import Element, tostring

from semantic.feeds.item import Enclosure
from semantic.feeds.names import short_name

_XML = "{http://www.w3.org/XML/1998/namespace}"
_XLINK = "{http://www.w3.org/1999/xlink}"
_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


class Fields:
    """The children of an element.

    Parameters
    ----------
    element
        Where they are looked for; nothing has no fields.
    own
        The prefix of the format itself, ``rss`` or ``atom``.

    Examples
    --------
    >>> from xml.etree.ElementTree import fromstring
    >>> fields = Fields(fromstring("<item><title/><title> a </title></item>"), "rss")
    >>> fields.first("dc:title", "title")
    'a'
    """

    def __init__(self, element: Element | None, own: str) -> None:
        self._own = own
        self._children: dict[str, list[Element]] = {}
        for child in () if element is None else element:
            name = short_name(child.tag).removeprefix(f"{own}:")
            self._children.setdefault(name, []).append(child)

    def all(self, *names: str) -> Iterator[Element]:
        """Yield the children of the first name, then those of the second."""
        for name in names:
            yield from self._children.get(name, ())

    def within(self, name: str) -> Fields:
        """Return the fields of the first child of a name."""
        return Fields(next(self.all(name), None), self._own)

    def element(self, *names: str) -> Element | None:
        """Return the first child with text, of the first name that has one."""
        return next(filter(text_of, self.all(*names)), None)

    def first(self, *names: str) -> str:
        """Return the first text that is not empty."""
        return text_of(self.element(*names))

    def markup(self, *names: str) -> str:
        """Return the first text or markup that is not empty: a picture has no text."""
        return next(filter(None, map(_markup_of, self.all(*names))), "")

    def texts(self, *names: str) -> tuple[str, ...]:
        """Return every different text that is not empty."""
        return distinct(map(text_of, self.all(*names)))

    def alternate(self, name: str) -> str:
        """Return Atom's first link to the thing itself; a link without ``rel`` is one."""
        links = (link for link in self.all(name) if link.get("rel", "alternate") == "alternate")
        return next(filter(None, (link.get("href", "").strip() for link in links)), "")

    def people(self, name: str) -> tuple[str, ...]:
        """Return the names of Atom's persons, or what else they are known by."""
        persons = (Fields(person, "atom") for person in self.all(name))
        return distinct(person.first("name", "email", "uri") for person in persons)

    def enclosures(self) -> tuple[Enclosure, ...]:
        """Collect RSS enclosures, Atom's enclosure links and Media RSS contents, once each."""
        links = (e for e in self.all("link", "atom:link") if e.get("rel") == "enclosure")
        groups = (Fields(group, self._own) for group in self.all("media:group"))
        contents = (
            content for fields in (self, *groups) for content in fields.all("media:content")
        )
        found: dict[str, Enclosure] = {}
        for file in chain(self.all("enclosure"), links, contents):
            url = (file.get("url") or file.get("href") or "").strip()
            length = file.get("length") or file.get("fileSize") or ""
            if url:
                found.setdefault(url, Enclosure(url, file.get("type", "").strip(), length.strip()))
        return tuple(found.values())


def text_of(element: Element | None) -> str:
    """Return the text inside, without the markup.

    Examples
    --------
    >>> from xml.etree.ElementTree import fromstring
    >>> text_of(fromstring("<a> b <i>c</i></a>"))
    'b c'
    """
    return "" if element is None else "".join(element.itertext()).strip()


def _markup_of(element: Element) -> str:
    """Return HTML as it was delivered, or written out again where it stood as elements."""
    if len(element) == 0:
        return text_of(element)
    if len(element) == 1 and short_name(element[0].tag) == "xhtml:div":
        element = element[0]  # Atom's wrapper, which is not part of the text
    element = deepcopy(element)
    for inner in element.iter():  # HTML knows its own elements, SVG's and MathML's by their names
        inner.tag = inner.tag.rpartition("}")[2]
        for name in [name for name in inner.attrib if name.startswith(_XLINK)]:
            inner.set(f"xlink:{name.removeprefix(_XLINK)}", inner.attrib.pop(name))
    parts = [html.escape(element.text or "", quote=False)]
    parts += (tostring(child, encoding="unicode") for child in element)
    return "".join(parts).strip()


def unescaped(text: str) -> str:
    """Resolve HTML's character references, and only those that end with a semicolon.

    Examples
    --------
    >>> unescaped("Caf&eacute; &copy 2003")
    'Café &copy 2003'
    """
    return _REFERENCE.sub(lambda found: html.unescape(found[0]), text) if "&" in text else text


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts that are not empty, each once.

    Examples
    --------
    >>> distinct(["a", "", "b", "a"])
    ('a', 'b')
    """
    return tuple(dict.fromkeys(filter(None, texts)))


def language_of(*elements: Element) -> str:
    """Return the ``xml:lang`` of the first element that has one."""
    return next(filter(None, (element.get(_XML + "lang", "") for element in elements)), "")


def base_of(base: str, *elements: Element) -> str:
    """Return what links are relative to inside the last of nested elements (``xml:base``)."""
    for element in elements:
        try:
            base = urljoin(base, element.get(_XML + "base", "").strip())
        except ValueError:  # an impossible host: as if it were not there
            continue
    return base
