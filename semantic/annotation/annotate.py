"""Concepts in the text of feed items: the labels of an ontology, found word by word.

A plain RSS item states no concepts. `Annotator` finds the labels of an ontology in its
title, description, content and categories, so that each concept found can be added to it as
``dcterms:subject``. All labels are looked for at once: they are a trie of folded words, and what
a word of a text may stand for in it (itself, the word of which it is another form, parts of a
compound) is cached per word. Most words of a text stand for nothing, so that a text costs one
look-up a word, however many labels there are. The trie is made of the labels of the languages
that texts are in, for the first text of each.
"""

from __future__ import annotations

import builtins
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from itertools import chain, compress, count, groupby, islice
from operator import attrgetter, itemgetter
from typing import NamedTuple, TypeAlias

from pyoxigraph import NamedNode

from semantic.annotation.items import ItemText, texts_of_items
from semantic.annotation.languages import STOP_WORDS, Stems, guess_language, primary_subtag
from semantic.annotation.tokens import BREAK, fold, letter_count, spans, tokenize, unspaced
from semantic.publication import Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import DCTERMS, RSS

_ITEM, _SUBJECT = RSS["item"], DCTERMS["subject"]
_EVERY_LANGUAGE: frozenset[str] = frozenset()
_TRIES, _WORDS, _LONGEST_WORD = 16, 32_768, 64
"""How many sets of languages have a trie, how many words each caches, and how long ones."""
_SHORTEST, _ACRONYM, _GUESSED = 3, 5, 500
_SIGNS = frozenset("+#＋＃")  # noqa: RUF001
_ATTACHED = frozenset({"Mn", "Mc", "Me", "Cf"})
_JOINTS = frozenset(".-\u2010\u2011_&/\\*^$=<>|@#+")


class Label(NamedTuple):
    """A name of a concept, as the ontology writes it.

    ``None`` as its language is that of a name that holds in every language.
    """

    text: str
    language: str | None
    concept: NamedNode


class Form(IntEnum):
    """How a text has a label; of two labels in one place the earlier form is found."""

    SAME = 0  # but for case, Unicode form and punctuation
    INFLECTED = 1  # with a word in another form: "soups" for "soup"
    COMPOUND = 2  # as a part of a word: "Klimapolitik" for "Klima"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A label found in a text.

    `start` and `end` say where, in code points (of a compound: the whole word), and `text` is that
    part of the text.
    """

    label: Label
    start: int
    end: int
    text: str
    form: Form = Form.SAME


@dataclass(frozen=True, slots=True)
class Annotation:
    """A concept that an item names.

    `property` is where it was found (``rss:title``, ``rss:description``, ``content:encoded`` or
    ``dc:subject``); `occurrence` is where in the `semantic.annotation.markup.plain_text` of the
    literal (of a description or content: in its `readable_text`).
    """

    item: Term
    property: NamedNode
    occurrence: Occurrence

    @builtins.property  # the name is a field's here
    def triple(self) -> Triple:
        """The triple that the annotation adds to the publication."""
        return (self.item, _SUBJECT, self.occurrence.label.concept)


class _Place(NamedTuple):
    """Words of a text that are labels."""

    first: int
    last: int
    form: Form
    patterns: list[_Pattern]
    """The labels, one a concept."""


class Annotator:
    """Finds the labels of an ontology in text.

    A label is found where its words stand one after the other, whatever the case, the Unicode
    form and the punctuation (`semantic.annotation.tokens.tokenize` says what a word is), inside
    one paragraph. Of labels that overlap the longest is found (by letters, folded; the first of
    several as long); all concepts of that label are.

    A label without a *telling* word (three letters or digits, a Han character counting for
    two, and no stop word), such as "US", "C++", "AT&T" or "The Who", is found only where the
    text has it letter by letter, case and punctuation included, and not as a part of something
    that goes on ("C" in "C++", 国 in 中国). A label without a letter or digit is never found.

    Other labels are found in other forms, too (`semantic.annotation.languages.Stems`): each word
    may be a plural or another case. Words with capitals inside (*iPhone*, *NATO*) have no other
    forms; where a label's word has a capital that is not its beginning's, another form has one,
    too. A label of one word is also found as a part of a German compound. The forms are those of
    the label's language; of one without a language, the text's, or English where that is unknown.

    Labels are looked for in the language of the text, as it is stated or else guessed; where
    neither is known, all are. Languages are compared by their primary subtag (``en`` is
    ``en-GB``'s); labels without a language are always looked for.

    Parameters
    ----------
    labels
        The labels. Where several labels of one concept are found in one place, the first
        is named in the result.
    stem
        Whether other forms of labels are found.

    Examples
    --------
    >>> climate = NamedNode("http://example.org/ClimateChange")
    >>> annotator = Annotator([Label("climate change", "en", climate)])
    >>> [(found.start, found.end) for found in annotator.find("On Climate-change policy")]
    [(3, 17)]
    >>> annotator.find("Climate changes", "en")[0].form
    <Form.INFLECTED: 1>
    """

    __slots__ = ("_tries", "labels", "stem")

    def __init__(self, labels: Iterable[Label], *, stem: bool = True) -> None:
        self.labels = tuple(labels)
        self.stem = stem
        self._tries: dict[frozenset[str], _Trie] = {}

    def concerns(self, term: Term) -> bool:
        """Whether there may be something to find in a publication that has a term."""
        return term == _ITEM and bool(self.labels)

    def annotate(self, publication: Publication) -> list[Annotation]:
        """Return the concepts that a publication's items name, in the order of its literals.

        Its subjects of type ``rss:item`` are looked at: the literals of their ``rss:title``,
        ``rss:description``, ``content:encoded`` and ``dc:subject``. A literal's language is its
        tag; without one the item's ``dc:language``, without that the channel's; without that it is
        guessed from all the texts of the item. A concept that is named twice is there twice.
        """
        return self.annotations(texts_of_items(publication.triples))

    def annotations(self, texts: Iterable[ItemText]) -> list[Annotation]:
        """Return what `annotate` does of texts that were read already."""
        return [
            Annotation(text.item, text.property, found)
            for text, languages in self._in_languages(texts)
            for found in self._occurrences(text.text, text.words, languages)
        ]

    def concepts(self, texts: Iterable[ItemText]) -> list[Triple]:
        """Return the triples of `annotations`, each once, without where their labels are."""
        found = {
            (text.item, pattern.label.concept): None
            for text, languages in self._in_languages(texts)
            for place in self._trie(languages).places(text.text, text.words)
            for pattern in place.patterns
        }
        return [(item, _SUBJECT, concept) for item, concept in found]

    def find(self, text: str, language: str | None = None) -> list[Occurrence]:
        """Return the labels in a plain text, by position; markup in it is taken for text.

        Its language is guessed where no tag is given.
        """
        words = tokenize(text)
        known = primary_subtag(language)
        languages = _guess(words) if known is None else frozenset({known})
        return self._occurrences(text, words, languages)

    def _in_languages(self, texts: Iterable[ItemText]) -> Iterator[tuple[ItemText, frozenset[str]]]:
        """Yield texts with the languages that each is in; none where there are no labels."""
        for _, several in groupby(texts if self.labels else (), attrgetter("item")):
            of_one = [text for text in several if not text.again]
            guess = None
            for text in of_one:
                if not text.languages and guess is None:
                    guess = _guess(chain.from_iterable(text.words for text in of_one))
                yield text, text.languages or guess or _EVERY_LANGUAGE

    def _occurrences(
        self, text: str, words: list[str], languages: frozenset[str]
    ) -> list[Occurrence]:
        """Return the labels in a text that is in some languages, by position."""
        found = []
        places = self._trie(languages).places(text, words)
        ends = spans(text) if places else []
        for place in places:
            first, last = ends[place.first][0], ends[place.last - 1][1]
            for pattern in place.patterns:
                span = pattern.span(text, first, last)
                if span is not None:
                    start, end = span
                    found.append(Occurrence(pattern.label, start, end, text[start:end], place.form))
        return sorted(found, key=lambda occurrence: occurrence.start)

    def _trie(self, languages: frozenset[str]) -> _Trie:
        """Return the labels of some languages, ready to be found; of all for none."""
        found = self._tries.get(languages)
        if found is None:
            if len(self._tries) >= _TRIES:
                self._tries.clear()
            default = next(iter(languages)) if len(languages) == 1 else "en"
            found = self._tries[languages] = _Trie(self._in(languages), default, stem=self.stem)
        return found

    def _in(self, languages: frozenset[str]) -> Iterator[Label]:
        is_wanted: dict[str | None, bool] = {}
        for label in self.labels:
            wanted = is_wanted.get(label.language)
            if wanted is None:
                language = primary_subtag(label.language)
                wanted = not languages or language is None or language in languages
                is_wanted[label.language] = wanted
            if wanted:
                yield label


class _Node:
    """A place in the trie: the labels that end here, and the words that go on."""

    __slots__ = ("labels", "next", "patterns", "same")

    def __init__(self) -> None:
        self.labels: list[Label] = []
        self.next: dict[str, _Node] = {}
        self.patterns: list[_Pattern] = []
        self.same: list[_Pattern] = []
        """Those that folded words are enough for, one a concept; none if one needs more."""


class _Reading(NamedTuple):
    """A label word that a word of a text may stand for."""

    word: str
    size: int
    """How many letters of the text it is."""
    form: Form
    language: str | None
    """Whose form it is; none of the same word."""
    node: _Node | None
    """Where labels begin that begin with it."""


_Hit: TypeAlias = tuple[int, Form, int, int, str | None, _Node]
"""Labels found: letters (negative), form, first word, end, and language of the form."""


class _Trie(dict[str, tuple[_Reading, ...]]):
    """Labels by their folded words; as a dictionary, what each word of a text may stand for.

    `default` is the language of labels that have none.
    """

    def __init__(self, labels: Iterable[Label], default: str, *, stem: bool) -> None:
        super().__init__()
        self._default = default
        self._root = _Node()
        self._words: set[str] = set()
        inflected: dict[str, list[str]] = {}
        for label in labels:
            words = _words(map(fold, tokenize(label.text)))
            language = primary_subtag(label.language)
            if not words:
                continue
            node = self._root
            for word in words:
                node = node.next.get(word) or node.next.setdefault(word, _Node())
            node.labels.append(label)
            self._words.update(words)
            if stem:
                inflected.setdefault(language or default, []).extend(words)
        self._stems = {language: Stems(language, words) for language, words in inflected.items()}

    def __missing__(self, word: str) -> tuple[_Reading, ...]:
        found = tuple(self._readings(word))
        if len(word) <= _LONGEST_WORD:
            if len(self) >= _WORDS:
                self.clear()
            self[word] = found
        return found

    def _readings(self, written: str) -> Iterator[_Reading]:
        word, begin = fold(written), self._root.next.get
        if word in self._words:
            yield _Reading(word, len(word), Form.SAME, None, begin(word))
        for language, stems in self._stems.items():
            for other in stems.forms(word):
                yield _Reading(other, len(word), Form.INFLECTED, language, begin(other))
            for part in stems.parts(word) if written.istitle() else ():
                node = begin(part)
                if node is not None and node.labels:
                    yield _Reading(
                        part, min(len(part), len(word) - 1), Form.COMPOUND, language, node
                    )

    def places(self, text: str, words: list[str]) -> list[_Place]:
        """Return where labels are in a text, whose words `tokenize` gave; the longest first."""
        readings = [*map(self.__getitem__, words), ()]
        hits: list[_Hit] = []
        for first in compress(count(), readings):  # most words have none
            for _, size, form, language, node in readings[first]:
                if node is not None:
                    hit = -size, form, first, first + 1, language, node
                    if node.labels:
                        hits.append(hit)
                    if node.next and readings[first + 1] and form is not Form.COMPOUND:
                        _go_on(hit, readings, hits)
        hits.sort(key=itemgetter(0, 1, 2))
        taken = bytearray(len(words))  # 1 + the form
        ends: list[tuple[int, int]] = []
        places = []
        for _, form, first, last, language, node in hits:
            # What is taken is at least as long as this, so it would cover one of its ends.
            by = taken[first] or taken[last - 1]
            if by and not (by - 1 == form == Form.COMPOUND):
                continue
            if not node.patterns:
                self._compile(node)
            patterns = node.same
            if form is not Form.SAME:
                given = words[first:last]
                patterns = _one_a_concept([p for p in node.patterns if p.may_be(given, language)])
            elif not patterns:
                ends = ends or spans(text)
                here = ends[first][0], ends[last - 1][1]
                patterns = _one_a_concept([p for p in node.patterns if p.span(text, *here)])
            if patterns:
                taken[first:last] = bytes([1 + form]) * (last - first)
                places.append(_Place(first, last, form, patterns))
        return places

    def _compile(self, node: _Node) -> None:
        """Find out what a place in a text has to look like, at the first hit of a label."""
        for label in node.labels:
            text, language = label.text.strip(), primary_subtag(label.language)
            written = _words(tokenize(text))
            telling = _is_telling(list(map(fold, written)), _stop_words(language))
            surface = None if telling else _Surface.of(text)
            node.patterns.append(_Pattern(label, language or self._default, written, surface))
        if all(pattern.surface is None for pattern in node.patterns):
            node.same = _one_a_concept(node.patterns)


def _go_on(hit: _Hit, readings: list[tuple[_Reading, ...]], hits: list[_Hit]) -> None:
    """Find the labels that begin with words of a text and go on behind them."""
    ways = [hit]
    while ways:
        minus, form, first, last, language, node = ways.pop()
        for word, size, own, of, _ in readings[last]:
            below = node.next.get(word)
            if below is None or own is Form.COMPOUND or (of and language and of != language):
                continue
            longer = (minus - size - 1, max(form, own), first, last + 1, of or language, below)
            if below.labels:
                hits.append(longer)
            if below.next:
                ways.append(longer)


@dataclass(frozen=True, slots=True)
class _Surface:
    """What a label looks like, where it has to be found letter by letter: in Unicode's NFC.

    `before` and `after` say how many code points stand before its first and after its last word.
    """

    text: str
    before: int
    after: int

    @classmethod
    def of(cls, text: str) -> _Surface:
        """Return the surface of a label that has a word."""
        ends = spans(text)
        return cls(unicodedata.normalize("NFC", text), ends[0][0], len(text) - ends[-1][1])

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
class _Pattern:
    """A label made ready to be found.

    `language` is that of its words' forms, `words` are as it writes them, and `surface` is what it
    has to look like; ``None`` where its folded words are enough.
    """

    label: Label
    language: str
    words: list[str]
    surface: _Surface | None

    def span(self, text: str, first: int, last: int) -> tuple[int, int] | None:
        """Return where in a text the label is, whose words are there from first to last."""
        return (first, last) if self.surface is None else self.surface.span(text, first, last)

    def may_be(self, words: list[str], language: str | None) -> bool:
        """Whether words of a text, with forms of a language, may be the label in another form."""
        if self.surface is not None or language != self.language:
            return False
        has_first = language == "de" and len(words) == 1
        for at, (own, word) in enumerate(zip(self.words, words, strict=True)):
            if fold(own) == fold(word):
                continue
            if own[1:] != own[1:].lower() and not (own.isupper() and len(own) > _ACRONYM):
                return False
            if own[0].isupper() and (at or has_first) and not word[0].isupper():
                return False
        return True


@cache
def _stop_words(language: str | None) -> frozenset[str]:
    """Return a language's stop words, folded; those of all languages for ``None``."""
    several = STOP_WORDS.values() if language is None else [STOP_WORDS.get(language, frozenset())]
    return frozenset(map(fold, chain.from_iterable(several)))


def _words(words: Iterable[str]) -> list[str]:
    """Return words without empty lines."""
    return [word for word in words if fold(word) != BREAK]


def _is_telling(words: list[str], stop_words: Collection[str]) -> bool:
    """Whether folded words of a label say enough to be found in any case and punctuation."""
    if any(unspaced(word[0]) for word in words):
        return sum(map(letter_count, words)) >= _SHORTEST
    return any(letter_count(word) >= _SHORTEST and word not in stop_words for word in words)


def _goes_on(text: str, place: int) -> bool:
    """Whether letters of scripts without spaces stand on both sides of a place."""
    if not unspaced(text[place : place + 1]):
        return False
    while place > 0 and unicodedata.category(text[place - 1]) in _ATTACHED:
        place -= 1
    return unspaced(text[place - 1 : place])


def _guess(words: Iterable[str]) -> frozenset[str]:
    guess = guess_language(map(str.casefold, islice(words, _GUESSED)))
    return _EVERY_LANGUAGE if guess is None else frozenset({guess})


def _one_a_concept(patterns: Iterable[_Pattern]) -> list[_Pattern]:
    found: dict[NamedNode, _Pattern] = {}
    for pattern in patterns:
        found.setdefault(pattern.label.concept, pattern)
    return list(found.values())
