"""Read items of RSS 0.90 to 2.0 and CDF, and the RDF in RSS 1.0.

The code follows the specification and common practice: titles contain HTML character references,
authors use four different elements, media three.

RSS 1.0 is parsed as RDF once, for the items' own triples. If that fails (an IRI with a space, a
truncated document) or two items share an IRI, each item is parsed separately, so that an error
affects only its item. An item that still is not valid RDF is read from its elements alone, and
reported.

Sources: RSS 2.0 (rssboard.org), RSS 1.0 and its modules, Media RSS 1.5, CDF (W3C note, 1997).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from xml.etree.ElementTree import Element, tostring

from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, parse

from semantic.feeds.document import FeedDocument
from semantic.feeds.elements import (
    Fields,
    attribute,
    base_of,
    distinct,
    language_of,
    text_of,
    unescaped,
)
from semantic.feeds.model import Channel, Item, ProblemReporter
from semantic.feeds.triples import OwnTriples, absolute_iri
from semantic.terms import Term, Triple
from semantic.vocabulary import DC, DCTERMS, RDF, RSS, TYPE

_ABOUT = f"{{{RDF.iri}}}about"
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_NAME_LENGTH = 300  # Longer names are not parsed, because the pattern is quadratic.
_NAMED_ADDRESS = re.compile(
    r"\S+@\S+\s+\((.+)\)|\"?([^<>\"]+?)\"?\s*<\S+@\S+>|([^()]+?)\s*\(\S+@\S+\)"
)
_DESCRIPTIONS = (
    *("description", "dc:description", "media:description", "abstract", "atom:summary", "summary"),
    *("itunes:summary", "itunes:subtitle"),
)
_PUBLISHED = ("pubdate", "dc:date", "dcterms:issued", "atom:published", "published")


def rss_channel(root: Element) -> Channel:
    """Return the channel of an RSS (including 0.90 and 1.0) or CDF document.

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
        id=channel.get(_ABOUT) or fields.href("atom:link", "self"),
        title=unescaped(fields.first("title")),
        link=fields.first("link") or attribute(channel, "href"),
        description=fields.markup("description", "abstract", "itunes:summary", "itunes:subtitle"),
        language=fields.first("language", "dc:language") or language_of(channel, root),
        base=base_of("", root, channel),
        self_link=fields.href("atom:link", "self"),
        hubs=fields.hrefs("atom:link", "link", rel="hub"),
    )


def rss_item(number: int, line: int | None, element: Element, channel: Channel) -> Item:
    """Return the item of an RSS or CDF element.

    `number` is its position in the feed, `line` its first line.

    Examples
    --------
    >>> from xml.etree.ElementTree import fromstring
    >>> item = fromstring("<item><title>Q&amp;amp;A</title><guid>http://e/1</guid></item>")
    >>> rss_item(1, None, item, Channel()).title, rss_item(1, None, item, Channel()).link
    ('Q&A', 'http://e/1')
    """
    fields = Fields(element, "rss")
    listed = fields.within("categories").texts("category")
    title = fields.first("title", "dc:title", "media:title", "itunes:title")
    return Item(
        number,
        line,
        id=fields.first("guid", "atom:id", "id") or element.get(_ABOUT, ""),
        link=_link(fields) or attribute(element, "href"),
        title=unescaped(title or fields.media().first("media:title")),
        description=fields.markup(*_DESCRIPTIONS),
        content=fields.markup("content:encoded", "xhtml:body", "body", "fullitem"),
        published=fields.first(*_PUBLISHED),
        updated=fields.first("atom:updated", "dcterms:modified", "updated")
        or attribute(element, "lastmod"),
        language=fields.first("dc:language") or language_of(element),
        creators=_creators(fields),
        subjects=distinct((*fields.texts("category", "dc:subject"), *listed, *fields.keywords())),
        enclosures=fields.enclosures(),
        base=base_of(channel.base, element),
    )


def _link(fields: Fields) -> str:
    link = fields.first("link") or fields.href("atom:link") or fields.href("link")
    if link:
        return link
    guid = fields.element("guid")
    is_link = guid is not None and guid.get("isPermaLink", "true").lower() != "false"
    text = text_of(guid)
    return text if is_link and (":" in text or text.startswith("/")) else ""


def _creators(fields: Fields) -> tuple[str, ...]:
    authors = map(_without_address, fields.texts("author", "dc:creator", "dc:author"))
    return distinct((*authors, *fields.people("atom:author"))) or fields.texts("itunes:author")


def _without_address(author: str) -> str:
    """Return the name in ``address (name)``, ``name <address>`` or ``name (address)``.

    Any other text is returned unchanged.
    """
    if "@" not in author or len(author) > _NAME_LENGTH:
        return author
    named = _NAMED_ADDRESS.fullmatch(author)
    return next(filter(None, named.groups())) if named else author


# RSS 1.0 as RDF -----------------------------------------------------------------------------


def own_triples(
    document: FeedDocument, channel: Channel, report: ProblemReporter
) -> list[OwnTriples]:
    """Return the node and triples of each RSS 1.0 item.

    An item that is not valid RDF is reported, and has ``None`` and no triples.
    """
    base = channel.base or channel.link
    whole = _whole(document, base)
    return list(_one_by_one(document, base, report)) if whole is None else whole


def _whole(document: FeedDocument, base: str) -> list[OwnTriples] | None:
    """Return the node and triples of each item, parsed all at once.

    Return ``None`` if the items must be parsed separately.
    """
    graph = _Graph.of(document.data, base) if document.sound else None
    if graph is None or len(graph.items) != len(document.items):
        return None
    return [graph.own_triples(node) for node in graph.items]


def _one_by_one(document: FeedDocument, base: str, report: ProblemReporter) -> Iterator[OwnTriples]:
    for number, (line, element) in enumerate(document.items, 1):
        if _LANGUAGE in document.root.attrib:
            element.attrib.setdefault(_LANGUAGE, document.root.attrib[_LANGUAGE])
        item = tostring(element, encoding="unicode")
        text = f'<rdf:RDF xmlns:rdf="{RDF.iri}">{item}</rdf:RDF>'
        graph = _Graph.of(text.encode(), base_of(base, element))
        if graph is not None and graph.items:
            yield graph.own_triples(graph.items[0])
            continue
        what = "the item is not valid RDF"
        report.warn(what, "It was read by its element names instead.", line, f"item {number}")
        yield None, ()


class _Graph:
    """The triples of an RDF/XML document by subject, and the nodes of its items and channels.

    All are in document order.
    """

    def __init__(self) -> None:
        self.items: list[NamedNode | BlankNode] = []
        self._by_subject: defaultdict[Term, dict[Triple, None]] = defaultdict(dict)
        self._channels: list[Term] = []

    @classmethod
    def of(cls, data: bytes, base: str) -> _Graph | None:
        """Parse RDF/XML; return ``None`` if it is invalid.

        `base` is the base of relative IRIs; it is ignored if it is not an absolute IRI itself.
        """
        graph = cls()
        usable = base if absolute_iri(base) is not None else None
        try:
            for quad in parse(data, format=RdfFormat.RDF_XML, base_iri=usable):
                graph._add((quad.subject, quad.predicate, quad.object))
        except SyntaxError:
            return None
        return graph

    def _add(self, triple: Triple) -> None:
        subject, predicate, value = triple
        repeated = triple in self._by_subject[subject]
        self._by_subject[subject][triple] = None
        if predicate != TYPE or repeated:
            return
        if value == RSS["item"] and isinstance(subject, (NamedNode, BlankNode)):
            self.items.append(subject)
        elif value == RSS["channel"]:
            self._channels.append(subject)

    def own_triples(self, item: NamedNode | BlankNode) -> OwnTriples:
        """Return an item and its triples, with those of nodes that it refers to and of the channel.

        Other items are not followed.
        """
        apart: set[Term] = {*self.items, *self._channels}
        triples: dict[Triple, None] = {}
        pending: list[Term] = [item]
        while pending:
            said = self._by_subject.get(pending.pop(), {})
            triples |= said
            for _, _, value in said:
                if not isinstance(value, Literal) and value not in apart:
                    apart.add(value)
                    pending.append(value)
        for channel in self._channels:
            triples |= dict.fromkeys(_of_channel(self._by_subject[channel]))
        return item, tuple(triples)


def _of_channel(said: Iterable[Triple]) -> Iterator[Triple]:
    """Yield a channel's triples with Dublin Core as ``dcterms:``, and without properties of RSS.

    A pattern on an item's property therefore does not match the channel.
    """
    for channel, predicate, value in said:
        name = predicate.value if isinstance(predicate, NamedNode) else ""
        if name.startswith(DC.iri):
            yield channel, DCTERMS[name.removeprefix(DC.iri)], value
        # The title and link are written elsewhere. The rest is layout.
        elif not name.startswith(RSS.iri):
            yield channel, predicate, value
