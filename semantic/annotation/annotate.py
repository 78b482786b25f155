"""Concepts in the text of feed items: the labels of an ontology, found by one automaton.

A plain RSS item states no concepts. `Annotator` finds the labels of an ontology in its
title, description and categories, so that each concept found can be added to it as
``dcterms:subject``. All labels are looked for at once: text and labels are folded into
lines of words (`semantic.annotation.folding`), and an Aho-Corasick automaton over the labels' lines
reports every label in one pass over the text's, however many labels there are.
Construction is linear in the labels of the languages that texts are in, and done for the first
text of each.

References
----------
A. V. Aho, M. J. Corasick: Efficient string matching: an aid to bibliographic search.
Communications of the ACM 18 (6), 1975.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation, MatchKind
from pyoxigraph import Literal, NamedNode

from semantic.annotation.folding import FoldedText, folded_words
from semantic.annotation.labels import Label, Pattern, StopWords, compile_label
from semantic.annotation.language import guess_language, primary_subtag
from semantic.annotation.markup import plain_text
from semantic.publication import Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import DC, DCTERMS, RSS, TYPE

__all__ = ["Annotation", "Annotator", "Label", "Languages", "Mention", "ShortLabels"]

_ITEM, _SUBJECT = RSS["item"], DCTERMS["subject"]
_CHANNEL, _LANGUAGE = RSS["channel"], DC["language"]
_TEXTS = frozenset({RSS["title"], RSS["description"], DC["subject"]})
_READ = _TEXTS | {TYPE, _LANGUAGE}
_EVERY_LANGUAGE: frozenset[str] = frozenset()
_KEPT = 16
"""For so many sets of languages automata are kept."""


class ShortLabels(Enum):
    """How a label is found that has no word of three letters but stop words."""

    EXACT = "exact"  # where the text has it letter by letter: "US", not "us"
    NEVER = "never"


class Languages(Enum):
    """In which languages labels are looked for."""

    ITEM = "item"  # that of the text: as stated, or else as guessed; every one where neither is
    STATED = "stated"  # that of the text as stated; every one where none is
    ALL = "all"  # every one


@dataclass(frozen=True, slots=True)
class Mention:
    """A label found in a text.

    Parameters
    ----------
    label
        The label.
    start, end
        The part of the text that is it, in code points.
    """

    label: Label
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Annotation:
    """A concept that an item names.

    Parameters
    ----------
    item
        The item.
    concept
        The concept.
    label
        The label by which the concept was found.
    property
        Where it was found: ``rss:title``, ``rss:description`` or ``dc:subject``.
    start, end
        The part of that property's text that is the label, in code points of
        `semantic.annotation.markup.plain_text` of the literal: HTML tags are gone, character
        references decoded.
    """

    item: Term
    concept: NamedNode
    label: Label
    property: NamedNode
    start: int
    end: int

    @builtins.property  # the name is a field's here
    def triple(self) -> Triple:
        """The triple that the annotation adds to the publication."""
        return (self.item, _SUBJECT, self.concept)


@dataclass(slots=True)
class _Text:
    """A literal of an item."""

    item: Term
    property: NamedNode
    folded: FoldedText
    languages: frozenset[str]


class _Place(NamedTuple):
    """Words of a text that are labels."""

    first: int
    """Where they begin in the text's line."""
    last: int
    """Where they end there, with the space behind them."""
    patterns: list[Pattern]
    """The labels, one a concept."""


class Annotator:
    """Finds the labels of an ontology in text.

    A label is found where its words stand one after the other, whatever the case, the Unicode
    form and the punctuation (`semantic.annotation.folding.FoldedText` says what a word is),
    inside one paragraph. Of labels that overlap the longest is found (by letters, folded; the
    first of
    several as long); all concepts of that label are.

    A label without a *telling* word (three letters or digits, a Han character counting for
    two, and no stop word), such as "US", "C++", "AT&T" or "The Who", is found only where the
    text has it letter by letter, case and punctuation included, and not as a part of something
    that goes on ("C" in "C++", 国 in 中国). A label without a letter or digit is never found.

    Parameters
    ----------
    labels
        The labels. Where several labels of one concept are found in one place, the first
        is named in the result.
    short_labels
        What to do with labels that have no telling word.
    stop_words
        Words that tell nothing, in any case; ``None`` for
        `semantic.annotation.stopwords.STOP_WORDS` of the label's language (of all its
        languages for a label without one).
    languages
        In which languages labels are looked for. Languages are compared by their primary
        subtag (``en`` is ``en-GB``'s); labels without a language are always looked for.

    Examples
    --------
    >>> climate = NamedNode("http://example.org/ClimateChange")
    >>> annotator = Annotator([Label("climate change", "en", climate)])
    >>> [(found.start, found.end) for found in annotator.find("On Climate-change policy")]
    [(3, 17)]
    """

    __slots__ = ("_labels", "_languages", "_lines", "_short_labels", "_stops", "made_of")

    def __init__(
        self,
        labels: Iterable[Label],
        *,
        short_labels: ShortLabels = ShortLabels.EXACT,
        stop_words: Collection[str] | None = None,
        languages: Languages = Languages.ITEM,
    ) -> None:
        labels = tuple(labels)
        self.made_of = labels, short_labels, stop_words, languages
        """The arguments, for whoever saves it: an automaton has no other form."""
        self._labels = labels
        self._short_labels = short_labels
        self._stops = StopWords(stop_words)
        self._languages = languages
        self._lines: dict[frozenset[str], _Lines] = {}

    def concerns(self, term: Term) -> bool:
        """Whether there may be something to find in a publication that has a term."""
        return term == _ITEM and bool(self._labels)

    def annotate(self, publication: Publication) -> list[Annotation]:
        """Return the concepts that a publication's items name.

        Parameters
        ----------
        publication
            Its subjects of type ``rss:item`` are looked at: the literals of their
            ``rss:title``, ``rss:description`` and ``dc:subject``. A literal's language is its
            tag; without one the item's ``dc:language``, without that the channel's; without
            that it is guessed from all the texts of the item.

        Returns
        -------
        list of Annotation
            Item by item; of an item in the order of its literals, and in each by position. A
            concept that is named twice is there twice.

        Examples
        --------
        >>> item, energy = NamedNode("http://example.org/1"), NamedNode("http://example.org/E")
        >>> feed = Publication.of("http://example.org/1", [
        ...     (item, TYPE, RSS["item"]), (item, RSS["title"], Literal("Solar energy"))])
        >>> Annotator([Label("energy", "en", energy)]).annotate(feed)[0].triple[2]
        <NamedNode value=http://example.org/E>
        """
        return [
            Annotation(
                text.item, found.label.concept, found.label, text.property, found.start, found.end
            )
            for text in self._texts(publication.triples)
            for found in self._mentions(text.folded, text.languages)
        ]

    def concepts(self, triples: Iterable[Triple]) -> list[Triple]:
        """Return the triples that `annotate` finds, each once, without where their labels are.

        Parameters
        ----------
        triples
            Those of a publication.

        Examples
        --------
        >>> item, energy = NamedNode("http://example.org/1"), NamedNode("http://example.org/E")
        >>> feed = [(item, TYPE, RSS["item"]), (item, RSS["title"], Literal("Solar energy"))]
        >>> Annotator([Label("energy", "en", energy)]).concepts(feed)[0][2]
        <NamedNode value=http://example.org/E>
        """
        found = {
            (text.item, pattern.label.concept): None
            for text in self._texts(triples)
            for place in self._places(text.folded, text.languages)
            for pattern in place.patterns
        }
        return [(item, _SUBJECT, concept) for item, concept in found]

    def find(self, text: str, language: str | None = None) -> list[Mention]:
        """Return the labels in a plain text, by position.

        Parameters
        ----------
        text
            The text; markup in it is taken for text.
        language
            Its language tag; ``None`` where that is not known.

        Examples
        --------
        >>> us = NamedNode("http://example.org/US")
        >>> annotator = Annotator([Label("US", "en", us)])
        >>> len(annotator.find("US tells us")), len(annotator.find("US", "fr"))
        (1, 0)
        """
        folded = FoldedText.of(text)
        known = primary_subtag(language)
        languages = self._guess([folded]) if known is None else frozenset({known})
        return self._mentions(folded, languages)

    def _texts(self, triples: Iterable[Triple]) -> list[_Text]:
        """Return the texts of items, item by item, each with the languages that it is in."""
        if not self._labels:
            return []
        said = [triple for triple in triples if triple[1] in _READ]
        items: dict[Term, list[_Text]] = {s: [] for s, p, o in said if p == TYPE and o == _ITEM}
        of: dict[Term, set[str]] = {}
        for subject, predicate, value in said:
            if not isinstance(value, Literal):
                continue
            if predicate == _LANGUAGE:
                of.setdefault(subject, set()).update(_languages(value.value))
            elif subject in items and isinstance(predicate, NamedNode) and predicate != TYPE:
                folded = FoldedText.of(plain_text(value.value))
                own = _languages(value.language)
                items[subject].append(_Text(subject, predicate, folded, own))
        channels = {s for s, p, o in said if p == TYPE and o == _CHANNEL}
        channel = frozenset[str]().union(*(of.get(subject, ()) for subject in channels))
        for item, texts in items.items():
            stated = frozenset(of[item]) if of.get(item) else channel
            unknown = [text for text in texts if not text.languages]
            if unknown and not stated:
                stated = self._guess(text.folded for text in texts)
            for text in unknown:
                text.languages = stated
        return [text for texts in items.values() for text in texts]

    def _guess(self, texts: Iterable[FoldedText]) -> frozenset[str]:
        if self._languages is not Languages.ITEM:
            return _EVERY_LANGUAGE
        guess = guess_language(word for text in texts for word in text.words())
        return _EVERY_LANGUAGE if guess is None else frozenset({guess})

    def _mentions(self, folded: FoldedText, languages: frozenset[str]) -> list[Mention]:
        """Return the labels in a text that is in some languages, by position."""
        found = []
        for place in self._places(folded, languages):
            first, last = folded.span(place.first, place.last)
            for pattern in place.patterns:
                span = pattern.span(folded.text, first, last)
                if span is not None:
                    found.append(Mention(pattern.label, *span))
        return sorted(found, key=lambda mention: mention.start)

    def _places(self, folded: FoldedText, languages: frozenset[str]) -> list[_Place]:
        """Return where labels are in the line of a text that is in some languages."""
        if self._languages is Languages.ALL:
            languages = _EVERY_LANGUAGE
        lines = self._lines_in(languages)
        hits = lines.automaton.find_matches_as_indexes(folded.line, overlapping=True)
        if len(hits) > 1:
            hits.sort(key=_longest_first)
        taken = bytearray(len(folded.line))
        places = []
        for number, start, end in hits:
            # What is taken is at least as long as this, so it would cover one of its ends.
            if taken[start + 1] or taken[end - 2]:
                continue
            is_enough, patterns = lines.patterns(number)
            if not is_enough:
                span = folded.span(start, end)
                patterns = _one_a_concept(p for p in patterns if p.span(folded.text, *span))
            if patterns:
                taken[start + 1 : end - 1] = b"\1" * (end - start - 2)
                places.append(_Place(start, end, patterns))
        return places

    def _lines_in(self, languages: frozenset[str]) -> _Lines:
        """Return the labels of some languages, ready to be found; of all for none."""
        found = self._lines.get(languages)
        if found is None:
            if len(self._lines) >= _KEPT:
                self._lines.clear()
            found = self._lines[languages] = _Lines(self._in(languages), self._stops)
        return found

    def _in(self, languages: frozenset[str]) -> Iterator[Label]:
        is_wanted: dict[str | None, bool] = {}
        for label in self._labels:
            tag = label.language
            wanted = is_wanted.get(tag)
            if wanted is None:
                language = primary_subtag(tag)
                wanted = not languages or language is None or language in languages
                is_wanted[tag] = wanted
            if wanted and not (self._short_labels is ShortLabels.NEVER and self._is_short(label)):
                yield label

    def _is_short(self, label: Label) -> bool:
        return compile_label(label, self._stops).surface is not None


class _Lines:
    """Labels by the lines of their folded words, and the automaton that finds the lines."""

    __slots__ = ("_compiled", "_labels", "_stops", "automaton")

    def __init__(self, labels: Iterable[Label], stops: StopWords) -> None:
        lines: dict[str, list[Label]] = {}
        for label in labels:
            if line := folded_words(label.text.strip()):
                lines.setdefault(line, []).append(label)
        self._labels = list(lines.values())
        self._stops = stops
        self._compiled: dict[int, tuple[bool, list[Pattern]]] = {}
        self.automaton = AhoCorasick(
            lines,
            matchkind=MatchKind.Standard,
            store_patterns=False,
            implementation=Implementation.ContiguousNFA,
        )

    def patterns(self, number: int) -> tuple[bool, list[Pattern]]:
        """Return whether the words of a line are enough, and the labels that have these words.

        What a place has to look like is found at the first hit.
        """
        found = self._compiled.get(number)
        if found is None:
            patterns = [compile_label(label, self._stops) for label in self._labels[number]]
            is_enough = all(pattern.surface is None for pattern in patterns)
            found = is_enough, _one_a_concept(patterns) if is_enough else patterns
            self._compiled[number] = found
        return found


def _languages(tag: str | None) -> frozenset[str]:
    """Return the primary subtag of a language tag, if it has one."""
    language = primary_subtag(tag)
    return _EVERY_LANGUAGE if language is None else frozenset({language})


def _longest_first(hit: tuple[int, int, int]) -> tuple[int, int]:
    _, start, end = hit
    return start - end, start


def _one_a_concept(patterns: Iterable[Pattern]) -> list[Pattern]:
    found: dict[NamedNode, Pattern] = {}
    for pattern in patterns:
        found.setdefault(pattern.label.concept, pattern)
    return list(found.values())
