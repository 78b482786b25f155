"""``keywords``: feed items, filtered by words of their titles.

Events are the items of a folder of feeds, as `semantic.feeds` reads them, in a seeded order. A
subscription is 1 to 3 different words, each number as often, drawn uniformly from all words of
3 letters and more in the items' and channels' titles, in lower case; it matches an item when the
item's or its channel's title has all of them in it, anywhere, as CONTAINS says. If only so many
subscriptions are to match an item, the others have a word that is in no title: one of the words
backwards.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from pyoxigraph import Literal

from graphmatch.bench.workloads.workload import Size, Workload
from semantic.errors import InputError, Place, Problem
from semantic.publication import Publication
from semantic.reading import read_publications
from semantic.vocabulary import RSS

FEEDS = Path("data/feeds")
MOST = 3
SAMPLED, SAMPLED_ITEMS = 5000, 100
"""In how many subscriptions and items it is counted which share matches."""
_WORD = re.compile(r"[^\W\d_]{3,}")
_TITLE = RSS["title"]


@dataclass(frozen=True, slots=True)
class KeywordParameters:
    """What can be chosen.

    Parameters
    ----------
    feeds
        A folder of feeds, or one feed.
    matches
        About how many subscriptions match an item, at the most; by default those that do.
    """

    feeds: Path = FEEDS
    matches: int | None = None


class KeywordWorkload(Workload):
    """Words in the titles of real feed items.

    Parameters
    ----------
    size
        How much is generated.
    parameters
        See `KeywordParameters`.

    Attributes
    ----------
    subscriptions
        The words of each.

    Raises
    ------
    InputError
        When the feeds have no words in their titles, or cannot be read.
    """

    name: ClassVar = "keywords"
    parameters_class: ClassVar = KeywordParameters
    parameters: KeywordParameters

    def __init__(self, size: Size, parameters: KeywordParameters) -> None:
        super().__init__(size, parameters)
        random = np.random.default_rng(size.seed)
        feeds = Path(parameters.feeds)
        problems: list[Problem] = []
        items = list(read_publications(feeds, on_problem=problems.append))
        words = sorted({word for item in items for title in titles(item) for word in _words(title)})
        if len(words) < MOST:
            what, remedy = "the feeds' titles have no words", "Give a folder of feeds with --feeds."
            raise InputError(next(iter(problems), Problem(what, Place(str(feeds)), remedy)))
        self._items: list[Publication] = [items[place] for place in random.permutation(len(items))]
        count = size.subscriptions
        lengths = random.integers(1, MOST, count, endpoint=True).tolist()
        drawn = _different(random, count, len(words))
        self.subscriptions = [
            tuple(words[place] for place in row[:length])
            for row, length in zip(drawn, lengths, strict=True)
        ]
        if parameters.matches is not None:
            self._thin_out(random, parameters.matches, words)

    def _thin_out(self, random: np.random.Generator, matches: int, words: list[str]) -> None:
        """Put a word that is in no title into all subscriptions but so many as are to match."""
        every = [titles(item) for item in self._items]
        share = _share(self.subscriptions[:SAMPLED], every[:SAMPLED_ITEMS])
        kept = round(matches / share) if share else len(self.subscriptions)
        text = "\n".join(title for several in every for title in several)
        unheard = {word: _unheard(word, text) for word in words}
        for place in random.permutation(len(self.subscriptions))[kept:].tolist():
            first, *others = self.subscriptions[place]
            self.subscriptions[place] = (unheard[first], *others)

    def texts(self) -> list[str]:
        """Return the subscriptions: a filter for each word."""
        forms = [
            f"SELECT ?item WHERE {{ ?item <{_TITLE.value}> ?title "
            + " ".join(['FILTER(CONTAINS(LCASE(STR(?title)), "%s"))'] * length)
            + " }"
            for length in range(MOST + 1)
        ]
        return [forms[len(words)] % words for words in self.subscriptions]

    def publication(self, number: int) -> Publication:
        """Return an item."""
        return self._items[number % len(self._items)]

    def described(self) -> dict[str, object]:
        """Return the parameters, and how many items there are."""
        known = {"feeds": str(self.parameters.feeds), "items": len(self._items)}
        return super().described() | known


def titles(item: Publication) -> list[str]:
    """Return the titles in a publication, in lower case."""
    return [
        object_.value.lower()
        for _, property_, object_ in item.triples
        if property_ == _TITLE and isinstance(object_, Literal)
    ]


def _share(subscriptions: list[tuple[str, ...]], items: list[list[str]]) -> float:
    """Return which share of the subscriptions an item matches, on average."""
    found = sum(
        any(all(word in title for word in words) for title in several)
        for words in subscriptions
        for several in items
    )
    return found / (len(subscriptions) * len(items))


def _unheard(word: str, text: str) -> str:
    """Return a word that a text does not have in it.

    Examples
    --------
    >>> _unheard("war", "war and peace"), _unheard("level", "a level")
    ('raw', 'levelq')
    """
    other = word[::-1]
    while other in text:
        other += "q"
    return other


def _words(title: str) -> list[str]:
    return _WORD.findall(title)


def _different(random: np.random.Generator, count: int, below: int) -> list[list[int]]:
    """Draw `MOST` different numbers for each row."""
    first = random.integers(0, below, count)
    second = (first + random.integers(1, below, count)) % below
    low, high = np.minimum(first, second), np.maximum(first, second)
    third = random.integers(0, below - 2, count)
    third += third >= low
    third += third >= high
    found: list[list[int]] = np.stack([first, second, third], axis=1).tolist()
    return found
