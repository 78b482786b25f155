"""A publication: an arriving RDF graph with an id.

Publications flow through the whole system. Readers make them (`semantic.reading`,
`semantic.feeds`), enrichment returns larger ones, and matchers process one at a time.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, parse
from pyoxigraph import Triple as TripleTerm

from semantic.errors import Place, shown
from semantic.terms import Term, Triple
from semantic.vocabulary import DC, DCTERMS, RSS, TYPE, XSD

if TYPE_CHECKING:
    import rdflib

_MEMORY = Place("<memory>")
_ITEM, _DATE_TIME = RSS["item"], XSD["dateTime"]
_TITLE, _LINK, _DATE = RSS["title"], RSS["link"], DC["date"]
_GUID, _CHANNEL, _CHANNEL_TITLE = DCTERMS["identifier"], DCTERMS["isPartOf"], DCTERMS["title"]

_NOT_IN_STORIES = re.compile(r"(?i)^https?://(www\.)?|[?&](utm_\w+|fbclid|gclid)=[^&#]*|#.*")
_TERMS = (NamedNode, Literal, BlankNode, TripleTerm)
_TRIPLES = (
    "Give triples of pyoxigraph's terms: (NamedNode('urn:a'), NamedNode('urn:p'), Literal('b')). "
    "For an rdflib graph use `Publication.from_rdflib`, for text `read_publications`."
)


Row: TypeAlias = "tuple[Term, Term, Term | str]"
"""A triple, or one with a string for a plain literal."""


class Publication:
    """A set of triples with an id; publications with the same content are equal.

    Parameters
    ----------
    id
        An IRI if the source has one (a named graph, a feed item's guid or link); otherwise the
        file's name, with a number if the file holds several publications.
    triples
        Distinct triples, in the order of the source.
    derived
        The triples that enrichment added; the source does not state them.
    source
        The place of the publication, for messages.
    attributes
        Number of triples at the end of `triples` that hold attributes which subscriptions request.
        Only patterns that name their property match them.

    Examples
    --------
    >>> from pyoxigraph import Literal, NamedNode
    >>> item, title = NamedNode("http://e/1"), NamedNode("http://purl.org/rss/1.0/title")
    >>> Publication.of("http://e/1", [(item, title, Literal("Hello"))]).triples[0][2].value
    'Hello'
    """

    __slots__ = ("_given", "_triples", "attributes", "derived", "id", "rows", "source")

    def __init__(
        self,
        id: str,
        triples: tuple[Triple, ...],
        derived: frozenset[Triple] = frozenset(),
        source: Place = _MEMORY,
        attributes: int = 0,
    ) -> None:
        self.id, self.derived, self.source, self.attributes = id, derived, source, attributes
        self.rows: tuple[Row, ...] = triples
        """The triples as given, with a string for a plain literal of a feed."""
        self._given: tuple[Triple, ...] | None = triples
        self._triples: tuple[Triple, ...] | None = triples

    @property
    def given(self) -> tuple[Triple, ...]:
        """The triples as given, perhaps with duplicates if `of`, `of_terms` or `of_rows` made them.

        The first access converts strings in `rows` to literals, also in `rows` itself.
        """
        if self._given is None:
            rows = self.rows
            self.rows = self._given = tuple(
                (s, p, Literal(o) if isinstance(o, str) else o) for s, p, o in rows
            )
        return self._given

    @property
    def triples(self) -> tuple[Triple, ...]:
        """Distinct triples, in the order of the source; duplicates are removed on first access."""
        if self._triples is None:
            self._triples = tuple(dict.fromkeys(self.given))
        return self._triples

    @property
    def title(self) -> str | None:
        """The title of a feed item, as plain text; ``None`` if it has none.

        Each access to `title`, `link`, `date`, `guid` or `channel` searches the triples, which
        takes about 10 µs for an item. All are ``None`` if the publication has no item, or several.

        Examples
        --------
        >>> from pyoxigraph import Literal
        >>> item = NamedNode("http://e/1")
        >>> told = [(item, TYPE, RSS["item"]), (item, RSS["title"], Literal("Hello"))]
        >>> Publication.of("http://e/1", told).title, Publication.of("http://e/1", told).link
        ('Hello', None)
        """
        return _text(self._said(_TITLE))

    @property
    def link(self) -> str | None:
        """The address of a feed item; if it cannot be an IRI, the text from the feed."""
        return _text(self._said(_LINK))

    @property
    def date(self) -> datetime | None:
        """Publication date of a feed item, otherwise its last change; ``None`` if unreadable.

        Examples
        --------
        >>> from semantic.feeds import read_feed
        >>> feed = b'''<rss><channel><title>News</title><item><guid>7</guid>
        ... <pubDate>Sat, 13 Dec 2003 18:30:02 +0200</pubDate></item></channel></rss>'''
        >>> (item,) = read_feed(feed, "news.rss")
        >>> item.guid, item.channel, item.date.isoformat()
        ('7', 'News', '2003-12-13T16:30:02+00:00')
        """
        for date in self._said(_DATE):
            if isinstance(date, Literal) and date.datatype == _DATE_TIME:
                try:
                    return datetime.fromisoformat(date.value)
                except ValueError:  # RDF allows dates that Python does not.
                    continue
        return None

    @property
    def guid(self) -> str | None:
        """The item's own identifier: RSS's guid, or the id of Atom or JSON Feed."""
        return _text(self._said(_GUID))

    @property
    def story(self) -> Sequence[str]:
        """Names of a feed item's story; copies of an item in several feeds share one of them.

        One name is made of the guid, and one of link and title, because several items of a feed may
        link to the same page. The fragment of a link (``#comments``) and parameters of trackers
        (``utm_source``) are not part of its name.

        Examples
        --------
        >>> from semantic.feeds import read_feed
        >>> feed = b"<rss><channel><item><title>A</title><link>%b</link></item></channel></rss>"
        >>> [item] = read_feed(feed % b"https://www.e.org/a/?utm_source=rss#b", "news.rss")
        >>> [copy] = read_feed(feed % b"http://e.org/a", "news.atom")
        >>> item.story, copy.story
        (['e.org/a a'], ['e.org/a a'])
        """
        link, title = self.link, self.title
        names = [self.id] if self.guid is not None and self.graph_name().value == self.id else []
        if link is not None and title is not None:
            page = _NOT_IN_STORIES.sub("", link).rstrip("/")
            names.append(" ".join(f"{page} {title}".casefold().split()))
        return names

    @property
    def channel(self) -> str | None:
        """The title of the feed that contains the item."""
        channels = self._said(_CHANNEL)
        titles = [o for s, p, o in self.given if p == _CHANNEL_TITLE and s in channels]
        return _text(titles)

    def _said(self, predicate: NamedNode) -> list[Term]:
        """Return the values of a property of the publication's only feed item."""
        items = {s for s, p, o in self.given if o == _ITEM and p == TYPE}
        if len(items) != 1:
            return []
        return [o for s, p, o in self.given if p == predicate and s in items]

    def _contents(self) -> tuple[object, ...]:
        return self.id, self.triples, self.derived, self.source, self.attributes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Publication):
            return NotImplemented
        return self._contents() == other._contents()

    def __hash__(self) -> int:
        return hash(self._contents())

    def __repr__(self) -> str:
        names = ("id", "triples", "derived", "source", "attributes")
        said = (f"{name}={own!r}" for name, own in zip(names, self._contents(), strict=True))
        return f"Publication({', '.join(said)})"

    @classmethod
    def of(cls, id: str, triples: Iterable[Triple], source: Place | None = None) -> Publication:
        """Make a publication from an iterable of triples; duplicates count once.

        Duplicates are removed on the first access to `triples`.

        Raises
        ------
        TypeError
            If a triple is not a tuple of three pyoxigraph terms.
        """
        given = tuple(triples)
        _check(id, given)
        return cls.of_terms(id, given, source)

    @classmethod
    def of_terms(cls, id: str, given: tuple[Triple, ...], source: Place | None) -> Publication:
        """Make a publication from triples without checking them; they may contain duplicates."""
        made = cls(id, given, source=source or Place(id))
        made._triples = None
        return made

    @classmethod
    def of_rows(cls, id: str, rows: tuple[Row, ...], source: Place) -> Publication:
        """Make a publication from triples in which a string stands for a plain literal.

        Literals are made on the first access to `given`: the engine needs none.
        """
        made = cls(id, (), source=source)
        made.rows, made._given, made._triples = rows, None, None
        return made

    @classmethod
    def from_rdflib(cls, graph: rdflib.Graph, id: str | None = None) -> Publication:
        """Make a publication from an `rdflib.Graph`, whose identifier is the default id.

        Raises
        ------
        TypeError
            If it is an `rdflib.Dataset`.

        Examples
        --------
        >>> import rdflib
        >>> graph = rdflib.Graph(identifier="http://example.org/g")
        >>> _ = graph.add((rdflib.URIRef("urn:a"), rdflib.RDFS.label, rdflib.Literal("a")))
        >>> Publication.from_rdflib(graph).id
        'http://example.org/g'
        """
        rdflib = sys.modules.get("rdflib")
        if rdflib is not None and isinstance(graph, rdflib.Dataset):
            what = "a dataset has several graphs, each of them a publication"
            raise TypeError(f"{what}. Use `read_publications(dataset)`.")
        text = graph.serialize(format="nt11", encoding="utf-8")
        quads = parse(text, format=RdfFormat.N_TRIPLES)
        name = id if id is not None else str(graph.identifier)
        return cls.of(name, ((q.subject, q.predicate, q.object) for q in quads), Place(name))

    @classmethod
    def of_rdflib(cls, source: rdflib.Graph) -> Iterator[Publication]:
        """Yield the publication of an `rdflib.Graph`, or of each graph with triples in a dataset.

        Raises
        ------
        TypeError
            If the source is anything else.
        """
        rdflib = sys.modules.get("rdflib")
        if rdflib is None or not isinstance(source, rdflib.Graph):
            what = f"{shown(source)} cannot be read"
            raise TypeError(
                f"{what}. Give the name of a file or folder, bytes, an open binary file, "
                "or an `rdflib.Graph`."
            )
        if isinstance(source, rdflib.Dataset):
            yield from (cls.from_rdflib(graph) for graph in source.graphs() if len(graph))
        else:
            yield cls.from_rdflib(source)

    def with_derived(self, triples: Iterable[Triple]) -> Publication:
        """Return a publication with more derived triples, except those that it already contains.

        If none are new, return this publication itself.
        """
        triples = tuple(triples)
        if not triples:
            return self
        known = frozenset(self.triples)
        new = tuple(dict.fromkeys(triple for triple in triples if triple not in known))
        if not new:
            return self
        return self.extended(new)

    def with_attributes(self, triples: Iterable[Triple]) -> Publication:
        """Return a publication with the attributes that subscriptions request, as its last triples.

        This must be the last step, because `extended` and `with_triples` reset the number of
        attributes.
        """
        found = self.with_derived(triples)
        attributes = self.attributes + len(found.triples) - len(self.triples)
        return Publication(found.id, found.triples, found.derived, found.source, attributes)

    @property
    def visible_to_all(self) -> tuple[Triple, ...]:
        """The triples that patterns with a variable property can match: all but attributes."""
        return self.triples[: len(self.triples) - self.attributes]

    def with_triples(self, triples: tuple[Triple, ...], derived: frozenset[Triple]) -> Publication:
        """Return a publication with the same id and source, but other triples.

        `derived` are those of the triples that enrichment added.
        """
        return Publication(self.id, triples, derived, self.source)

    def with_id(self, id: str | None = None, source: Place | None = None) -> Publication:
        """Return the publication with another id or source; ``None`` keeps the present one."""
        id, source = self.id if id is None else id, self.source if source is None else source
        return Publication(id, self.triples, self.derived, source, self.attributes)

    def extended(self, derived: tuple[Triple, ...]) -> Publication:
        """Return a publication with more derived triples, none of which it may contain already."""
        known = self.derived.union(derived)
        return Publication(self.id, self.triples + derived, known, self.source)

    def graph_name(self) -> NamedNode:
        """Return the name for SPARQL's GRAPH: the id if it is an IRI, otherwise a constant."""
        try:
            return NamedNode(self.id)
        except ValueError:
            return NamedNode("urn:graphmatch:publication")


def _check(id: str, triples: Iterable[Any]) -> None:
    """Raise `TypeError` for the first value that is not a tuple of three terms."""
    for number, triple in enumerate(triples, 1):
        is_triple = isinstance(triple, tuple) and len(triple) == 3
        wrong = [t for t in triple if not isinstance(t, _TERMS)] if is_triple else [triple]
        if wrong:
            kind = "an RDF term" if is_triple else "a tuple of three"
            raise TypeError(f"{id}: triple {number}: {shown(wrong[0])} is not {kind}. {_TRIPLES}")


def _text(values: list[Term]) -> str | None:
    """Return the text of the last IRI or literal in `values`; return ``None`` if there is none.

    The last, because an RSS 1.0 item's own values come first.
    """
    texts = [value.value for value in values if isinstance(value, NamedNode | Literal)]
    return texts[-1] if texts else None
