"""RSS 1.0 as the RDF that it is: an item's own triples, beside the common vocabulary.

The document is parsed once. Where that fails (an IRI with a space, a cut document) or two
items share their IRI, each item is parsed by itself, so that a fault stays in its item; an
item that is no RDF even so is read by its elements alone, and reported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element, tostring

from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, parse

from semantic.feeds.document import Document
from semantic.feeds.links import absolute_iri
from semantic.feeds.report import Report
from semantic.feeds.rss import rss_channel, rss_item
from semantic.feeds.triples import ItemWriter
from semantic.publication import Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import RDF, RSS, TYPE

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


@dataclass(frozen=True, slots=True)
class _Native:
    """An item's own triples."""

    node: NamedNode | None
    triples: tuple[Triple, ...]


def read_rss1(document: Document, report: Report) -> Iterator[Publication]:
    """Yield the items of an RSS 1.0 document, native triples first."""
    channel = rss_channel(document.root)
    writer = ItemWriter(channel, report, absolute_iri(channel.id))
    base = channel.base or channel.link
    natives = _whole(document, base)
    for number, (line, element) in enumerate(document.items, 1):
        item = rss_item(number, line, element, channel)
        alone = _alone(element, document.root, item.base or base) if natives is None else None
        native = natives[number - 1] if natives is not None else alone
        if native is None:
            what = "the item is not valid RDF"
            report.warn(what, "It is read by its elements alone.", line, f"item {number}")
            native = _Native(None, ())
        yield writer.publication(item, native.node, native.triples)


def _whole(document: Document, base: str) -> list[_Native] | None:
    """Parse the document at once; ``None`` where items have to be told apart by hand."""
    if not document.sound:
        return None
    graph = _Graph.of(document.text, base)
    if graph is None or len(graph.items) != len(document.items):
        return None
    return [graph.native(node) for node in graph.items]


def _alone(element: Element, root: Element, base: str) -> _Native | None:
    """Parse one item by itself."""
    if _LANGUAGE in root.attrib:
        element.attrib.setdefault(_LANGUAGE, root.attrib[_LANGUAGE])
    item = tostring(element, encoding="unicode")
    graph = _Graph.of(f'<rdf:RDF xmlns:rdf="{RDF.iri}">{item}</rdf:RDF>', base)
    return graph.native(graph.items[0]) if graph is not None and graph.items else None


class _Graph:
    """The triples of a document by subject, in its order."""

    def __init__(self) -> None:
        self.items: list[NamedNode | BlankNode] = []
        self._by_subject: defaultdict[Term, dict[Triple, None]] = defaultdict(dict)
        self._channels: list[Term] = []

    @classmethod
    def of(cls, text: str, base: str) -> _Graph | None:
        """Parse RDF/XML; ``None`` where it is not valid."""
        graph = cls()
        try:
            for quad in parse(text, format=RdfFormat.RDF_XML, base_iri=_usable(base)):
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

    def native(self, item: NamedNode | BlankNode) -> _Native:
        """Collect what is said of an item, of what it refers to, and of the channel."""
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
            said = self._by_subject[channel]
            triples.update((triple, None) for triple in said if triple[1] != RSS["items"])
        return _Native(item if isinstance(item, NamedNode) else None, tuple(triples))


def _usable(base: str) -> str | None:
    return base if absolute_iri(base) is not None else None
