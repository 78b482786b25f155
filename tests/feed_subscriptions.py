"""Random subscriptions over an ontology and feeds, mostly drawn from the triples of an item.

Each contains a pattern for an item that no ontology triple can match. So every solution uses
the publication, and an evaluator need not check that.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count

from pyoxigraph import Literal, NamedNode

from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.terms import Term
from semantic.vocabulary import DC, DCTERMS, RSS, SUBCLASS, XSD

_WORD = re.compile(r"[A-Za-z]{4,12}")


class FeedSubscriptions:
    """Generator of subscriptions.

    Parameters
    ----------
    ontology
        Source of classes and properties.
    items
        Enriched publications, from which subscriptions are drawn.
    seed
        The same seed gives the same subscriptions.
    """

    def __init__(self, ontology: Ontology, items: Sequence[Publication], seed: int) -> None:
        self._draw = random.Random(seed)
        self._ontology = ontology
        self._classes = [term for term in ontology.classes if isinstance(term, NamedNode)]
        self._properties = [term for term in ontology.properties if isinstance(term, NamedNode)]
        self._items = [_values(publication) for publication in items]
        self._told = [item for item in self._items if item[DCTERMS["subject"]]]
        self._item = self._items[0]
        self._names = count()
        self._asked_schema = False

    def texts(self, number: int) -> list[str]:
        """Return a number of subscriptions as SPARQL."""
        return [self._text() for _ in range(number)]

    def _text(self) -> str:
        draw, self._names, self._asked_schema = self._draw, count(), False
        told = draw.random() < 0.6
        self._item = draw.choice(self._told if told else self._items)
        kinds = [self._title, self._date, self._language, self._category, self._channel, self._size]
        kinds += [self._topic, self._is_a, self._path, self._schema] * (3 if told else 1)
        parts = [self._part(kinds) for _ in range(draw.choice((1, 1, 2, 2, 3)))]
        where = " ".join(["?item a rss:item .", *parts])
        form = draw.choice(("SELECT *", "SELECT *", "SELECT ?item", "SELECT DISTINCT ?item", "ASK"))
        return f"{form} {{ {where} }}"

    def _part(self, kinds: Sequence[Callable[[], str]]) -> str:
        draw = self._draw
        way = draw.random()
        one = draw.choice(kinds)()
        if way < 0.55:
            return one
        if way < 0.7:
            return f"{{ {one} }} UNION {{ {draw.choice(kinds)()} }}"
        if way < 0.8:
            return f"OPTIONAL {{ {one} }}"
        if way < 0.9:
            return f"FILTER NOT EXISTS {{ {one} }}"
        if way < 0.95:
            return f"MINUS {{ ?item a rss:item . {one} }}"
        gone = self._new("gone")
        return f"OPTIONAL {{ ?item enc:enclosure {gone} }} FILTER(!BOUND({gone})) {one}"

    def _new(self, name: str) -> str:
        return f"?{name}{next(self._names)}"

    # -- Triples of an item ----------------------------------------------------------------------

    def _value(self, property_: NamedNode) -> Term | None:
        values = self._item[property_]
        return self._draw.choice(values) if values else None

    def _word(self, property_: NamedNode) -> str:
        """Return a word of the item, or sometimes of another item."""
        item = self._draw.choice(self._items) if self._draw.random() < 0.2 else self._item
        words = [w for value in item[property_] for w in _WORD.findall(getattr(value, "value", ""))]
        return self._draw.choice(words) if words else "politics"

    def _title(self) -> str:
        draw, text = self._draw, self._new("text")
        property_ = draw.choice((RSS["title"], RSS["description"]))
        word = self._word(property_)
        part = word[: draw.randrange(3, len(word) + 1)]
        value = self._value(RSS["title"])
        start = " ".join(value.value.split(" ")[:1]) if isinstance(value, Literal) else "The"
        if not start.isascii() or '"' in start or "\\" in start:
            start = "The"
        test = draw.choice(
            (
                f'CONTAINS({text}, "{part}")',
                f'CONTAINS(LCASE({text}), "{part.lower()}")',
                f'CONTAINS(UCASE(STR({text})), "{part.upper()}")',
                f'REGEX({text}, "{part}")',
                f'REGEX({text}, "{part[:-1]}.", "i")',
                f'REGEX(STR({text}), "({part}|zebra)")',
                f'STRSTARTS({text}, "{start}")',
                f'STRENDS({text}, "{word[-2:]}")',
                f'CONTAINS({text}, "{part}") || CONTAINS({text}, "{self._word(property_)}")',
                f'CONTAINS({text}, "{part}") && !CONTAINS({text}, "{self._word(property_)}")',
            )
        )
        return f"?item {property_} {text} FILTER({test})"

    def _language(self) -> str:
        value = self._value(DC["language"])
        said = value.value if isinstance(value, Literal) else "en"
        language = self._new("language")
        tests = (
            f'{language} = "{said}"',
            f'LANG({language}) = ""',
            f'LANGMATCHES({language}, "{said[:2]}")',
            f'{language} IN ("{said}", "la")',
            f'STRSTARTS(STR({language}), "{said[:1]}")',
        )
        return f"?item dc:language {language} FILTER({self._draw.choice(tests)})"

    def _date(self) -> str:
        value, date = self._value(DC["date"]), self._new("date")
        if not isinstance(value, Literal) or value.datatype != XSD["dateTime"]:
            value = Literal("2026-01-01T00:00:00Z", datatype=XSD["dateTime"])
        operator = self._draw.choice(("<", "<=", ">", ">=", "=", "!="))
        return f"?item dc:date {date} FILTER({date} {operator} {value})"

    def _size(self) -> str:
        size, least = self._new("size"), self._draw.choice(("0", "1024.0", "5e5", "453327238"))
        operator = self._draw.choice(("<", ">", ">=", "!="))
        return f"?item enc:enclosure/enc:length {size} FILTER({size} {operator} {least})"

    def _category(self) -> str:
        value = self._value(DC["subject"])
        if isinstance(value, Literal) and self._draw.random() < 0.7:
            return f"?item dc:subject {value} ."
        return f"?item dc:subject {self._new('category')} ."

    def _channel(self) -> str:
        feed, text = self._new("feed"), self._new("text")
        channel = self._value(DCTERMS["isPartOf"])
        return self._draw.choice(
            (
                f"?item dcterms:isPartOf {channel or feed} .",
                f"?item dcterms:isPartOf {feed} . {feed} dcterms:title {text} .",
                f"?item (dcterms:isPartOf/dcterms:title)|rss:title {text} .",
                f"{feed} ^dcterms:isPartOf ?item ; a rss:channel .",
            )
        )

    # -- Ontology ----------------------------------------------------------------------------

    def _class(self) -> Term:
        """Return a topic of the item, an ancestor of it, or any class."""
        topic = self._value(DCTERMS["subject"])
        if topic is None or self._draw.random() < 0.15:
            return self._draw.choice(self._classes)
        above = [topic, *self._ontology.classes.ancestors(topic)]
        return self._draw.choice(above)

    def _topic(self) -> str:
        topic = self._value(DCTERMS["subject"])
        if topic is None or self._draw.random() < 0.3:
            topic = self._class()
        return f"?item dcterms:subject {topic} ."

    def _is_a(self) -> str:
        topic, class_ = self._new("topic"), self._class()
        operator = self._draw.choice(("descendantOf", "descendantOf", "childOf", "ancestorOf"))
        test = f"gm:{operator}({topic}, {class_})"
        if self._draw.random() < 0.2:
            test = f"{test} || gm:descendantOf({topic}, {self._class()})"
        elif self._draw.random() < 0.2:
            test = f"!{test}"
        return f"?item dcterms:subject {topic} FILTER({test})"

    def _path(self) -> str:
        topic, class_ = self._new("topic"), self._class()
        return self._draw.choice(
            (
                f"?item dcterms:subject/<{SUBCLASS.value}>* {class_} .",
                f"?item dcterms:subject {topic} . {topic} <{SUBCLASS.value}>+ {class_} .",
                f"?item dcterms:subject/<{SUBCLASS.value}> {topic} .",
                f"?item dcterms:subject/<{SUBCLASS.value}>? {topic} .",
            )
        )

    def _schema(self) -> str:
        if self._asked_schema:  # Two such patterns would have thousands of solutions.
            return self._topic()
        self._asked_schema = True
        topic, other = self._new("topic"), self._new("property")
        property_ = self._draw.choice(self._properties)
        return self._draw.choice(
            (
                f"?item dcterms:subject {topic} . {other} rdfs:domain {topic} .",
                f"?item dcterms:subject {topic} . {other} rdfs:range {topic} .",
                f"?item dcterms:subject {topic} . {property_} rdfs:domain {topic} .",
                f"?item {property_} {other} .",
                f"?item dcterms:subject {topic} . {topic} rdfs:label {other} "
                f'FILTER(LANG({other}) = "de")',
            )
        )


def _values(publication: Publication) -> defaultdict[Term, list[Term]]:
    found: defaultdict[Term, list[Term]] = defaultdict(list)
    for _, property_, value in _of_items(publication):
        found[property_].append(value)
    return found


def _of_items(publication: Publication) -> Iterator[tuple[Term, Term, Term]]:
    items = {s for s, _, o in publication.triples if o == RSS["item"]}
    yield from (triple for triple in publication.triples if triple[0] in items)


def rooted(text: str, root: Callable[[Term], Term]) -> str:
    """Return a subscription with each IRI replaced by its root."""
    return re.sub(r"<([^<>\s]+)>", lambda found: str(root(NamedNode(found[1]))), text)


def one_of_each(publications: Iterable[Publication], most: int) -> list[Publication]:
    """Return at most the first `most` publications of each source."""
    by_source: defaultdict[str, list[Publication]] = defaultdict(list)
    for publication in publications:
        by_source[publication.source.source].append(publication)
    return [publication for several in by_source.values() for publication in several[:most]]
