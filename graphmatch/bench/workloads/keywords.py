"""``keywords``: feeds, filtered by words of their items' titles, and by topics.

docs/benchmarks.md describes it. Documents come in a seeded order. Words have 3 letters or more, in
lower case, and are drawn uniformly; a title may contain them anywhere, as with CONTAINS, or as
whole words. Words that no title has are reversed words. The thesaurus has the first 2,000 words as
labels, each concept below one of the first 250. Feeds that have no items or are not XML are left
out.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError, fromstring

import numpy as np
from pyoxigraph import Literal, NamedNode

from graphmatch.bench.workloads import Workload, distinct_rows
from semantic.annotation.annotate import Annotator
from semantic.errors import InputError, Place, Problem
from semantic.feeds import FeedFormat, read_feed, sniff_feed
from semantic.files import files_in, unreadable
from semantic.publication import Publication
from semantic.vocabulary import DCTERMS, GM, RSS, SKOS, TYPE

if TYPE_CHECKING:
    from semantic.ontology.ontology import Ontology

FEEDS = Path("data/feeds")
MOST = 3
CONCEPTS, TOPS = 2000, 250
_WORD, _WHOLE = re.compile(r"[^\W\d_]{3,}"), re.compile(r"(?<= )[^\W\d_]{3,}(?= )")
_ANNOTATOR = Annotator([])
_TITLE = RSS["title"]
_XML = frozenset({FeedFormat.RSS, FeedFormat.RSS1, FeedFormat.ATOM})


@dataclass(eq=False)
class KeywordWorkload(Workload):
    """Feeds as events; subscriptions to words in the titles of their items, or to topics.

    `subscriptions` has the words of each, none for a topic. `heard` is the number of subscriptions
    whose words are all in titles (``None``: all), `topics` the share of topics. If words are
    `whole`, they have spaces around them, and items have only a title.

    Raises
    ------
    InputError
        If the feeds have no words in their titles, or cannot be read.
    """

    feeds: Path = FEEDS
    heard: int | None = None
    topics: float = 0.0
    whole: bool = False

    def __post_init__(self) -> None:
        size = self.size
        random = np.random.default_rng(size.seed)
        problems: list[Problem] = []
        feeds = _feeds(Path(self.feeds), problems)
        items = [item for _, several in feeds for item in several]
        text = "\n".join(title for item in items for title in self.titles(item))
        form, edge = (_WHOLE, " ") if self.whole else (_WORD, "")
        words = sorted({f"{edge}{word}{edge}" for word in form.findall(text)})
        if len(words) < MOST:
            what, remedy = "the feeds' titles have no words", "Give a folder of feeds with --feeds."
            none = Problem(what, Place(str(self.feeds)), remedy)
            raise InputError(next(iter(problems), none))
        self._documents = [feeds[int(place)] for place in random.permutation(len(feeds))]
        self._labels = [words[place] for place in random.permutation(len(words))[:CONCEPTS]]
        count = size.subscriptions
        lengths = random.integers(1, MOST, count, endpoint=True)
        drawn = distinct_rows(random, count, MOST, len(words)).tolist()
        lengths[random.random(count) < self.topics] = 0
        self._topics = random.integers(0, len(self._labels), count).tolist()
        self.subscriptions: list[tuple[str, ...]] = [
            tuple(words[place] for place in row[:length])
            for row, length in zip(drawn, lengths.tolist(), strict=True)
        ]
        heard = count if self.heard is None else self.heard
        for number, several in enumerate(self.subscriptions[heard:], heard):
            if several:
                self.subscriptions[number] = (_unheard(several[0], text), *several[1:])

    def texts(self) -> list[str]:
        """Return the subscriptions: a filter for each word, or one pattern for a topic."""
        topic = f"SELECT ?item WHERE {{ ?item <{DCTERMS['subject'].value}> <urn:topic:%d> }}"
        head = f"SELECT ?item WHERE {{ ?item {GM['words'] if self.whole else _TITLE} ?title "
        test = f'FILTER(CONTAINS({"?title" if self.whole else "LCASE(STR(?title))"}, "%s"))'
        forms = [f"{head}{' '.join([test] * length)} }}" for length in range(MOST + 1)]
        return [
            forms[len(words)] % words if words else topic % number
            for words, number in zip(self.subscriptions, self._topics, strict=True)
        ]

    def ontology(self) -> Ontology:
        """Return the thesaurus of topics; without topics an empty ontology."""
        from semantic.ontology.ontology import Ontology

        if not self.topics:
            return super().ontology()
        concepts = [NamedNode(f"urn:topic:{number}") for number in range(len(self._labels))]
        named = zip(concepts, self._labels, strict=True)
        labels = [(one, SKOS["prefLabel"], Literal(label)) for one, label in named]
        below = [(one, SKOS["broader"], concepts[n % TOPS]) for n, one in enumerate(concepts)]
        return Ontology([*labels, *below[TOPS:]])

    def publications(self, number: int, serial: int | None = None) -> list[Publication]:  # noqa: ARG002
        """Return the items of a feed as new objects; `serial` has no effect."""
        _, items = self._documents[number % len(self._documents)]
        kept = (TYPE, _TITLE)
        return [
            Publication.of(item.id, [t for t in item.triples if not self.whole or t[1] in kept])
            for item in items
        ]

    def titles(self, item: Publication) -> list[str]:
        """Return an item's titles in lower case, or the words of each, as ``gm:words``."""
        told = [triple for triple in item.triples if triple[1] in (TYPE, _TITLE)]
        if self.whole:
            told = list(_ANNOTATOR.words(told))
        return [o.value.lower() for _, p, o in told if p != TYPE and isinstance(o, Literal)]

    def document(self, number: int, syntax: str, serial: int | None = None) -> bytes:  # noqa: ARG002
        """Return the bytes of a feed; `syntax` and `serial` have no effect."""
        data, _ = self._documents[number % len(self._documents)]
        return data

    def described(self) -> dict[str, object]:
        """Return the parameters, and the numbers of feeds and items."""
        items = sum(len(several) for _, several in self._documents)
        counts = {"documents": len(self._documents), "items": items}
        return {**super().described(), "feeds": str(self.feeds), **counts}


def _feeds(folder: Path, problems: list[Problem]) -> list[tuple[bytes, list[Publication]]]:
    """Return the feeds that any XML reader accepts, with their items; add to `problems`."""
    found = []
    for path in files_in(str(folder), problems.append):
        try:
            data = path.read_bytes()
        except OSError as error:
            problems.append(unreadable(str(path), error))
            continue
        with suppress(ParseError):
            if sniff_feed(data) in _XML:
                fromstring(data)  # noqa: S314 - local files
                items = list(read_feed(data, str(path), on_problem=problems.append))
                found += [(data, items)] if items else []
    return found


@cache
def _unheard(word: str, text: str) -> str:
    """Return a word reversed, with letters added until the text does not contain it."""
    letters = word.strip()
    other = letters[::-1]
    while other in text:
        other += "q"
    return word.replace(letters, other)
