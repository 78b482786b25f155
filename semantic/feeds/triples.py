"""An item as triples: one vocabulary for every format (docs/reference/feeds.md has the table).

Text is plain ``xsd:string``, without a language tag: constants in patterns match by term, so
``"Climate"`` would not find ``"Climate"@en``, and few feeds say their language rightly. What
they say is kept as ``dc:language``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.errors import Place
from semantic.feeds.dates import read_date
from semantic.feeds.item import Channel, Enclosure, Item
from semantic.feeds.links import absolute_iri, mended_iri
from semantic.feeds.report import Report
from semantic.publication import Publication
from semantic.terms import Triple
from semantic.vocabulary import CONTENT, DC, DCTERMS, ENCLOSURE, GM, RSS, TYPE, XSD


class ItemWriter:
    """Writes the publications of one feed.

    Parameters
    ----------
    channel
        The feed that the items are part of.
    report
        Where links, dates and lengths that cannot be used are reported.
    node
        The channel's IRI, where the source is RDF and names it; otherwise its link is.

    Examples
    --------
    >>> writer = ItemWriter(Channel(title="News"), Report("a.rss", print))
    >>> writer.publication(Item(1, link="http://example.org/1", title="Hello")).id
    'http://example.org/1'
    """

    def __init__(self, channel: Channel, report: Report, node: NamedNode | None = None) -> None:
        self._channel = channel
        self._report = report
        self._item = Item(0)  # the one being written, for messages
        self._place: str | None = "the channel"
        self._seen: dict[str, int] = {}
        self._site = channel.link
        link = self._link(channel.link, channel.base)
        self._site = link.value if isinstance(link, NamedNode) else ""
        node = node or (link if isinstance(link, NamedNode) else absolute_iri(channel.id))
        self.channel_node = node or _urn("feed", channel)
        self._channel_triples = tuple(self._describe_channel(self.channel_node, link))

    def publication(
        self, item: Item, node: NamedNode | None = None, native: Iterable[Triple] = ()
    ) -> Publication:
        """Write one item.

        Parameters
        ----------
        item
            What the feed says.
        node
            The item's IRI, where the source is RDF and names it.
        native
            The triples that the source itself has; they come first.
        """
        self._item, self._place = item, f"item {item.number}"
        link = self._link(item.link, item.base)
        node = node or self._node(item, link)
        self._place = node.value
        triples = [*native, *self._describe(item, node, link), *self._channel_triples]
        source = Place(self._report.source, item.line, item=node.value)
        return Publication.of(self._distinct_id(node.value), triples, source)

    def _node(self, item: Item, link: NamedNode | Literal | None) -> NamedNode:
        """Choose the item's IRI: its link, unless that is the whole site's; its id; a urn."""
        if isinstance(link, NamedNode) and link != self.channel_node:
            return link
        own = absolute_iri(item.id)
        return own if own and own != self.channel_node else _urn("item", self._channel, item)

    def _distinct_id(self, iri: str) -> str:
        first = self._seen.setdefault(iri, self._item.number)
        if first == self._item.number:
            return iri
        other = f"{iri}{'-' if '#' in iri else '#'}item-{self._item.number}"
        what = f"the item has the link of item {first}"
        self._warn(what, f"Both are delivered, this one with the id {other}.")
        return other

    def _describe(
        self, item: Item, node: NamedNode, link: NamedNode | Literal | None
    ) -> Iterator[Triple]:
        yield node, TYPE, RSS["item"]
        yield from _literals(node, RSS["title"], item.title)
        if link is not None:
            yield node, RSS["link"], link
        yield from _literals(node, RSS["description"], item.description)
        yield from _literals(node, CONTENT["encoded"], item.content)
        yield from self._date(node, DC["date"], item.published or item.updated)
        yield from self._date(node, DCTERMS["modified"], item.updated)
        yield from _literals(node, DC["creator"], *item.creators)
        yield from _literals(node, DC["subject"], *item.subjects)
        yield from _literals(node, DC["language"], item.language or self._channel.language)
        for enclosure in item.enclosures:
            yield from self._enclosure(node, enclosure)
        yield from _literals(node, DCTERMS["identifier"], item.id)
        yield node, DCTERMS["isPartOf"], self.channel_node

    def _describe_channel(
        self, node: NamedNode, link: NamedNode | Literal | None
    ) -> Iterator[Triple]:
        yield node, TYPE, RSS["channel"]
        yield from _literals(node, RSS["title"], self._channel.title)
        if link is not None:
            yield node, RSS["link"], link
        yield from _literals(node, RSS["description"], self._channel.description)
        yield from _literals(node, DC["language"], self._channel.language)

    def _date(self, node: NamedNode, predicate: NamedNode, text: str) -> Iterator[Triple]:
        if not text:
            return
        date = read_date(text)
        if date is None and (predicate == DC["date"] or self._item.published):  # each text once
            self._warn(f"the date {_shown(text)} cannot be read", "It is kept as text.")
        yield node, predicate, date or Literal(text)

    def _enclosure(self, node: NamedNode, enclosure: Enclosure) -> Iterator[Triple]:
        url = self._link(enclosure.url, self._item.base)
        file = url if isinstance(url, NamedNode) else BlankNode()
        yield node, ENCLOSURE["enclosure"], file
        yield file, ENCLOSURE["url"], url or Literal(enclosure.url)
        yield from _literals(file, ENCLOSURE["type"], enclosure.type)
        if enclosure.length.isdecimal() and enclosure.length.isascii():
            yield file, ENCLOSURE["length"], Literal(enclosure.length, datatype=XSD["integer"])
        elif enclosure.length:
            what = f"the enclosure's length {_shown(enclosure.length)} is no number"
            self._warn(what, "It is passed over.")

    def _link(self, text: str, base: str) -> NamedNode | Literal | None:
        """Return a link as an IRI, or as text where it cannot be one."""
        if not text:
            return None
        iri = absolute_iri(text)
        if iri is not None:
            return iri
        iri = mended_iri(text, base, self._site)
        if iri is None:
            self._warn(f"the link {_shown(text)} is no IRI", "It is kept as text.")
            return Literal(text)
        if not base or " " in text:
            self._warn(f"the link {_shown(text)} is no IRI", f"It is read as {iri.value}.")
        return iri

    def _warn(self, what: str, remedy: str) -> None:
        self._report.warn(what, remedy, self._item.line, self._place)


def _literals(
    subject: NamedNode | BlankNode, predicate: NamedNode, *texts: str
) -> Iterator[Triple]:
    for text in texts:
        if text:
            yield subject, predicate, Literal(text)


def _urn(kind: str, *said: Channel | Item) -> NamedNode:
    """Name a thing by what is said of it: the same content has the same name tomorrow."""
    digest = hashlib.sha256(repr(said).encode("utf-8", errors="replace")).hexdigest()
    return NamedNode(f"{GM.iri}{kind}:{digest[:32]}")


def _shown(text: str) -> str:
    return f"'{text}'" if len(text) <= 80 else f"'{text[:77]}...'"
