"""Labels, and what makes a place in a text one of theirs.

A label with a *telling* word is found whatever its case and punctuation; the others, such
as "US", "C++" or "The Who", only where the text has them letter by letter.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from pyoxigraph import NamedNode

from semantic.annotation.folding import FoldedText, letter_count, unspaced
from semantic.annotation.language import primary_subtag
from semantic.annotation.stopwords import STOP_WORDS

_SHORTEST = 3
_SIGNS = frozenset("+#＋＃")  # noqa: RUF001
_ATTACHED = frozenset({"Mn", "Mc", "Me", "Cf"})
_JOINTS = frozenset(".-\u2010\u2011_&/\\*^$=<>|@#+")


class Label(NamedTuple):
    """A name of a concept.

    Parameters
    ----------
    text
        The name, as the ontology writes it.
    language
        Its language tag; ``None`` for a name that holds in every language.
    concept
        What it names.
    """

    text: str
    language: str | None
    concept: NamedNode


class StopWords:
    """Which words tell nothing.

    Parameters
    ----------
    words
        The same words for every language; ``None`` for `semantic.annotation.stopwords.STOP_WORDS`.

    Examples
    --------
    >>> stop_words = StopWords()
    >>> [language for language in ("en", "de", None) if "war" in stop_words.of(language)]
    ['de', None]
    """

    __slots__ = ("_folded", "_words")

    def __init__(self, words: Collection[str] | None = None) -> None:
        self._words = words
        self._folded: dict[str | None, frozenset[str]] = {}

    def of(self, language: str | None) -> frozenset[str]:
        """Return a language's stop words, folded; those of all languages for ``None``."""
        found = self._folded.get(language)
        if found is None:
            found = self._folded[language] = _folded(self._given(language))
        return found

    def _given(self, language: str | None) -> Iterable[str]:
        if self._words is not None:
            return self._words
        if language is None:
            return chain.from_iterable(STOP_WORDS.values())
        return STOP_WORDS.get(language, ())


@dataclass(frozen=True, slots=True)
class Surface:
    """What a label looks like, where it has to be found letter by letter.

    Parameters
    ----------
    text
        The label in Unicode's NFC.
    before, after
        How many code points of the label stand before its first and after its last word.
    """

    text: str
    before: int
    after: int

    @classmethod
    def of(cls, folded: FoldedText) -> Surface:
        """Return the surface of a label that has a word."""
        spans = folded.spans()
        text = folded.text
        return cls(unicodedata.normalize("NFC", text), spans[0][0], len(text) - spans[-1][1])

    def span(self, text: str, first: int, last: int) -> tuple[int, int] | None:
        """Return where the label is, whose words are in a text from first to last.

        ``None`` where the text differs, or goes on: with ``+`` or ``#``, with a letter of a
        script without spaces, or, round a single character, with what initials and formulas
        have there (*J.R.*, *T-shirt*).
        """
        start, end = first - self.before, last + self.after
        if start < 0 or unicodedata.normalize("NFC", text[start:end]) != self.text:
            return None
        before, after = text[start - 1 : start], text[end : end + 1]
        if after in _SIGNS or (end - start == 1 and {before, after} & _JOINTS):
            return None
        if _goes_on(text, start) or _goes_on(text, end):
            return None
        return start, end


@dataclass(frozen=True, slots=True)
class Pattern:
    """A label made ready to be found.

    Parameters
    ----------
    label
        The label.
    surface
        What it has to look like; ``None`` where its folded words are enough.
    """

    label: Label
    surface: Surface | None

    def span(self, text: str, first: int, last: int) -> tuple[int, int] | None:
        """Return where in a text the label is, given where its folded words are.

        Parameters
        ----------
        text
            The text.
        first, last
            The start of the first word in the text, and the end of the last.

        Returns
        -------
        tuple of int
            Start and end; ``None`` where this is not the label.
        """
        if self.surface is None:
            return first, last
        return self.surface.span(text, first, last)


def compile_label(label: Label, stop_words: StopWords) -> Pattern:
    """Return the pattern of a label that has a word.

    A label needs no surface where it has a *telling* word: one of three letters or digits
    that is no stop word. Where a label is in a script without spaces, all its letters count
    together.

    Examples
    --------
    >>> concept = NamedNode("http://example.org/c")
    >>> for text in ("Climate change", "C++", "AT&T", "The Who", "气候", "国"):
    ...     print(text, compile_label(Label(text, "en", concept), StopWords()).surface is None)
    Climate change True
    C++ False
    AT&T False
    The Who False
    气候 True
    国 False
    """
    folded = FoldedText.of(label.text.strip())
    stops = stop_words.of(primary_subtag(label.language))
    return Pattern(label, None if _is_telling(folded.words(), stops) else Surface.of(folded))


def _goes_on(text: str, place: int) -> bool:
    """Whether letters of scripts without spaces stand on both sides of a place."""
    if not unspaced(text[place : place + 1]):
        return False
    while place > 0 and unicodedata.category(text[place - 1]) in _ATTACHED:
        place -= 1
    return unspaced(text[place - 1 : place])


def _is_telling(words: list[str], stop_words: Collection[str]) -> bool:
    if any(unspaced(word[0]) for word in words):
        return sum(map(letter_count, words)) >= _SHORTEST
    return any(letter_count(word) >= _SHORTEST and word not in stop_words for word in words)


def _folded(words: Iterable[str]) -> frozenset[str]:
    return frozenset(folded for word in words for folded in FoldedText.of(word).words())
