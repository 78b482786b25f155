"""Annotation of feed items: a word-by-word search for the labels of an ontology.

A plain RSS item states no concepts. `Annotator` finds the labels of an ontology in its title,
description, content and categories. The engine adds each concept to the item as
``dcterms:subject``.

The compiled core implements the search (`graphmatch/native/src/annotation.rs`). Its language and
markup rules are in `semantic.annotation.languages` and `semantic.annotation.markup`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from pyoxigraph import Literal, NamedNode

from graphmatch import _native
from semantic.annotation.languages import ENDINGS, STEMMERS, STOP_WORDS
from semantic.annotation.markup import BLOCKS, LINKS
from semantic.annotation.words import WORDS
from semantic.publication import Publication
from semantic.terms import Term, Triple


class Label(NamedTuple):
    """A name of a concept, as written in the ontology.

    A label whose language is ``None`` holds in every language. A proper name matches only with its
    initial capitals.
    """

    text: str
    language: str | None
    concept: NamedNode
    is_proper: bool = False


class LabelForm(IntEnum):
    """The form in which a label occurs in a text.

    If two labels match the same words, the form with the smaller number wins.
    """

    SAME = 0  # Equal except for case, Unicode form and punctuation.
    INFLECTED = 1  # A word has another form: "soups" for "soup".
    COMPOUND = 2  # The label is part of a word: "Klimapolitik" for "Klima".


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A label found in a text.

    `start` and `end` are its offsets in code points, and `text` is the text between them. For a
    compound, they cover the whole word.
    """

    label: Label
    start: int
    end: int
    text: str
    form: LabelForm = LabelForm.SAME


@dataclass(frozen=True, slots=True)
class Annotation:
    """A concept that an item names.

    `property` is the property of the literal (``rss:title``, ``rss:description``,
    ``content:encoded`` or ``dc:subject``). `occurrence` has offsets in the `Annotator.plain_text`
    of the literal; for a description or content, in that without links.
    """

    item: Term
    property: NamedNode
    occurrence: Occurrence


class Annotator:
    """Finds the labels of an ontology in texts and feed items.

    A label matches consecutive words (`semantic.annotation.words` defines a word) in one paragraph,
    regardless of case, Unicode form and punctuation. If labels overlap, the one with the most
    letters wins; if several are equally long, the first wins. All concepts of that label are found.
    Labels of more than 64 words never match.

    Between the words of a hyphenated label, and between letters and digits, a text may have a
    space, a hyphen or nothing: *COP30*, *COP-30* and *COP 30* match each other.

    A word *tells* something if it is not a stop word and has three letters or digits; a Han
    character counts as two. A label without such a word, for example "US", "C++", "AT&T" or "The
    Who", must match exactly, including case and punctuation, and must not be part of a longer
    expression ("C" in "C++", 国 in 中国). A label without a letter or digit never matches.

    Capitals matter in a word of up to three capitals that is a label (*EAU*, not *eau*) or stands
    in a label with digits (*COP 30*), and in the initials of proper names (*Turkey*).

    Other labels also match in other forms (`semantic.annotation.languages`): each word may be a
    plural or in another grammatical case. Words with capitals inside (*iPhone*, *NATO*) have no
    other forms. Another form of a capitalized word must be capitalized in the text, too, if the
    word is not the first of its label, or if it is a German label of one word (a noun). A label of
    one word also matches part of a German compound. The forms follow the language of the text, or
    English if that is unknown. Only labels of that language and labels without a language have
    other forms.

    The annotator searches for labels in the stated or guessed language of the text. If the language
    is unknown, it searches for all labels. Languages are compared by primary subtag (``en-GB``
    equals ``en``). Labels without a language are always included.

    Parameters
    ----------
    labels
        The labels. If several labels of one concept match in one place, the result names the first.
    stem
        Whether to match other forms of labels.

    Examples
    --------
    >>> climate = NamedNode("http://example.org/ClimateChange")
    >>> annotator = Annotator([Label("climate change", "en", climate)])
    >>> [(found.start, found.end) for found in annotator.find("On Climate-change policy")]
    [(3, 17)]
    >>> annotator.find("Climate changes", "en")[0].form
    <LabelForm.INFLECTED: 1>
    """

    def __init__(self, labels: Iterable[Label], *, stem: bool = True) -> None:
        self.labels = tuple(labels)
        self.stem = stem

    @cached_property
    def native(self) -> _native.Annotator:
        """The compiled annotator, built on first use."""
        rules = {
            "function_words": list(STOP_WORDS.items()),
            "endings": ENDINGS,
            "stemmers": STEMMERS,
            "blocks": BLOCKS,
            "links": LINKS,
        }
        rows = [(text, tag, concept.value, proper) for text, tag, concept, proper in self.labels]
        return _native.Annotator(rows, self.stem, rules)

    def annotate(self, publication: Publication) -> list[Annotation]:
        """Return the annotations of a publication's feed items, in the order of its literals.

        The annotator reads the literals of ``rss:title``, ``rss:description``,
        ``content:encoded`` and ``dc:subject`` of its subjects of type ``rss:item``. A literal's
        language is its tag, otherwise the item's ``dc:language``, otherwise the channel's. If none
        or several are stated, it is guessed from all texts of the item. A concept named twice is
        returned twice.
        """
        texts = self.native.texts(publication.triples) if self.labels else ()
        return [
            Annotation(item, name, self._occurrence(*row))
            for item, name, _, rows in texts
            for row in rows
        ]

    def words(self, triples: Iterable[Triple]) -> dict[Triple, NamedNode]:
        """Return a ``gm:words`` triple of each text of feed items, mapped to the text's property.

        If two texts of an item have the same words, the first text's property is used.

        Examples
        --------
        >>> from semantic.vocabulary import RSS, TYPE
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
        """Return the occurrences of labels in a plain text, by position; markup is treated as text.

        The language is guessed if no tag is given.
        """
        return [self._occurrence(*row) for row in self.native.find(text, language)]

    def plain_text(self, markup: str, *, links: bool = True) -> str:
        r"""Return the visible text of markup: complete or truncated HTML, or plain text.

        A block element's edges become an empty line, and a line break becomes a newline. Other tags
        are removed, so that a word with a tag inside stays one word. An unclosed tag extends to the
        end of the text.

        Without `links`, the links and share buttons that feeds add to a text are removed. A link is
        removed only at the beginning of a line or after the end of a sentence, if the rest of the
        line is short and not a sentence (`semantic.annotation.markup.LINKS`).

        Examples
        --------
        >>> Annotator([]).plain_text("<b>C</b>limate &amp; <a href='/x'>energy</a>, 2 < 3")
        'Climate & energy, 2 < 3'
        >>> Annotator([]).plain_text("<li>climate</li><li>change</li>")
        '\n\nclimate\n\n\n\nchange\n\n'
        >>> page = "Solar power grows. <a href='/x'>Read more about coal</a>"
        >>> Annotator([]).plain_text(page, links=False)
        'Solar power grows. '
        >>> page = "They should. Read more books, says the minister."
        >>> Annotator([]).plain_text(page, links=False) == page
        True
        """
        return self.native.text(markup, not links)

    def _occurrence(self, number: int, start: int, end: int, text: str, form: int) -> Occurrence:
        return Occurrence(self.labels[number], start, end, text, LabelForm(form))
