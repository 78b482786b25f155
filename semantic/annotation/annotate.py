"""Concepts in the text of feed items: the labels of an ontology, found word by word.

A plain RSS item states no concepts. `Annotator` finds the labels of an ontology in its title,
description, content and categories. The engine adds each concept to the item as
``dcterms:subject``.

The compiled core searches (`graphmatch/native/src/annotation.rs`). Its rules of languages and
markup are configured here: `semantic.annotation.languages` and `semantic.annotation.markup`.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from pyoxigraph import Literal, NamedNode

from graphmatch import _native
from semantic.annotation.languages import ENDINGS, STEMMERS, STOP_WORDS
from semantic.annotation.markup import BLOCKS, LINKS
from semantic.annotation.words import WORDS
from semantic.publication import Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import DCTERMS, RSS

_ITEM, _SUBJECT = RSS["item"], DCTERMS["subject"]


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
    ``dc:subject``). `occurrence` is where in the `Annotator.plain_text` of the literal; of a
    description or content, in its `Annotator.readable_text`.
    """

    item: Term
    property: NamedNode
    occurrence: Occurrence

    @builtins.property  # the name is a field's here
    def triple(self) -> Triple:
        """The triple that the annotation adds to the publication."""
        return (self.item, _SUBJECT, self.occurrence.label.concept)


class Annotator:
    """Finds the labels of an ontology in text.

    A label is found where its words stand one after the other, whatever the case, the Unicode form
    and the punctuation (`semantic.annotation.words` says what a word is), inside one paragraph. If
    labels overlap, the one with most letters is found, and of equally long ones the first. All
    concepts of that label are found. Labels of more than 64 words are not found.

    A word *tells* something if it is not a stop word and has three letters or digits; a Han
    character counts as two. A label without such a word, for example "US", "C++", "AT&T" or "The
    Who", is found only where the text has it letter by letter, case and punctuation included, and
    not as a part of something that goes on ("C" in "C++", 国 in 中国). A label without a letter or
    digit is never found.

    Other labels are found in other forms, too (`semantic.annotation.languages`): each word may be
    a plural or another case. Words with capitals inside (*iPhone*, *NATO*) have no other forms.
    Where a label's word begins with a capital that is not its beginning's, another form has one,
    too. A label of one word is also found as a part of a German compound. The forms are those of
    the text's language, or of English if that is unknown. Only labels of that language and labels
    without a language have them.

    Labels are looked for in the language of the text, as it is stated or else guessed. If it is
    unknown, all are looked for. Languages are compared by their primary subtag (``en`` is
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

    __slots__ = ("_native", "labels", "stem")

    def __init__(self, labels: Iterable[Label], *, stem: bool = True) -> None:
        self.labels = tuple(labels)
        self.stem = stem
        self._native: _native.Annotator | None = None

    @property
    def native(self) -> _native.Annotator:
        """The compiled annotator, made when it is first needed."""
        if self._native is None:
            rules = {
                "function_words": [(code, list(words)) for code, words in STOP_WORDS.items()],
                "endings": dict(ENDINGS),
                "stemmers": dict(STEMMERS),
                "blocks": BLOCKS,
                "links": LINKS,
            }
            rows = [(text, language, concept.value) for text, language, concept in self.labels]
            self._native = _native.Annotator(rows, self.stem, rules)
        return self._native

    def concerns(self, term: Term) -> bool:
        """Whether there may be something to find in a publication that has a term."""
        return term == _ITEM and bool(self.labels)

    def annotate(self, publication: Publication) -> list[Annotation]:
        """Return the concepts that a publication's items name, in the order of its literals.

        The annotator reads the literals of ``rss:title``, ``rss:description``,
        ``content:encoded`` and ``dc:subject`` of its subjects of type ``rss:item``. A literal's
        language is its tag; without one the item's ``dc:language``, without that the channel's. If
        none or several are stated, it is guessed from all texts of the item. A concept that is
        named twice is there twice.
        """
        return self.annotations(publication.triples)

    def annotations(self, triples: Iterable[Triple]) -> list[Annotation]:
        """Return the concepts that the items in some triples name; see `annotate`."""
        texts = self.native.texts(triples) if self.labels else ()
        return [
            Annotation(item, name, self._occurrence(*row))
            for item, name, _, rows in texts
            for row in rows
        ]

    def words(self, triples: Iterable[Triple]) -> dict[Triple, NamedNode]:
        """Return ``gm:words`` of the feed items in triples, with the properties that had them.

        Examples
        --------
        >>> from semantic.vocabulary import TYPE
        >>> item = NamedNode("http://example.org/1")
        >>> told = [(item, TYPE, RSS["item"]), (item, RSS["title"], Literal("<b>S</b>oup!"))]
        >>> read = Annotator([]).words(told)
        >>> [(words[2].value, property_.value[-5:]) for words, property_ in read.items()]
        [(' soup ', 'title')]
        """
        found: dict[Triple, NamedNode] = {}
        for item, name, words, _ in self.native.texts(triples):
            if words is not None:
                found.setdefault((item, WORDS, Literal(words)), name)
        return found

    def find(self, text: str, language: str | None = None) -> list[Occurrence]:
        """Return the labels in a plain text, by position; markup in it is taken for text.

        Its language is guessed where no tag is given.
        """
        return [self._occurrence(*row) for row in self.native.find(text, language)]

    def plain_text(self, markup: str) -> str:
        r"""Return the text that a reader of markup sees: HTML, whole or cut off, or plain text.

        A block element's edges become an empty line, a line break a newline; other tags leave
        nothing, so that a word with a tag inside stays one word. A tag that is not closed ends with
        the text.

        Examples
        --------
        >>> Annotator([]).plain_text("<b>C</b>limate &amp; <a href='/x'>energy</a>, 2 < 3")
        'Climate & energy, 2 < 3'
        >>> Annotator([]).plain_text("<li>climate</li><li>change</li>")
        '\n\nclimate\n\n\n\nchange\n\n'
        """
        return self.native.text(markup, False)

    def readable_text(self, markup: str) -> str:
        """Return `plain_text` without the links and share buttons that feeds add to a text.

        A link counts at the beginning of a line or after the end of a sentence, if the rest of the
        line is short and not a sentence (`semantic.annotation.markup.LINKS`).

        Examples
        --------
        >>> page = "Solar power grows. <a href='/x'>Read more about coal</a>"
        >>> Annotator([]).readable_text(page)
        'Solar power grows. '
        >>> Annotator([]).readable_text("They should. Read more books, says the minister.")
        'They should. Read more books, says the minister.'
        """
        return self.native.text(markup, True)

    def _occurrence(self, number: int, start: int, end: int, text: str, form: int) -> Occurrence:
        return Occurrence(self.labels[number], start, end, text, Form(form))
