"""Subscriptions without SPARQL: topics and words of feed items, translated to a query.

A topic is a class or concept of the ontology, found by its label, prefixed name or IRI. Without an
ontology it is a category as written in the feed (``dc:subject``). Words are searched in the visible
text of title, description and content. They match whole words, regardless of case, Unicode form,
soft hyphens and markup. The words of a phrase must be consecutive in one paragraph
(`semantic.annotation.words`). In scripts without spaces a word matches anywhere.

A text may have alternatives, joined by ``or``: ``climate policy or energy policy``. A text that is
as a whole the name of a term of the ontology is one topic.

Limits: only feed items (``rss:item``) match; a web address in a text is one word; a phrase cannot
contain the word ``or``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count

from pyoxigraph import Literal

from semantic.annotation.words import folded
from semantic.attributes.concepts import Concepts
from semantic.errors import Place, Problem, SubscriptionError, UnknownNameError
from semantic.ontology.ontology import Ontology
from semantic.terms import SURROGATE, SURROGATE_REMEDY

TEXT_KEYS = ("topics", "words", "not-topics", "not-words")
"""The keys of a subscription's texts in a file."""
TOPIC_KEYS = ("id", *TEXT_KEYS, "match", "comment")
"""All keys of a subscription by topics and words in a file."""
_OR = re.compile(r"\s+or(?=\s|$)|^or\s+", re.IGNORECASE)
_TESTS = {
    "topic": ("dcterms:subject", "{} = {}"),
    "category": ("dc:subject", "LCASE(STR({})) = {}"),
    "words": ("gm:words", "CONTAINS({}, {})"),
}
"""For each kind of text, the property of the item, and the test of its value."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics and words that a reader is interested in.

    Each text may have alternatives, joined by ``or``.

    Parameters
    ----------
    topics
        Labels, prefixed names or IRIs of the ontology's terms, or categories.
    words
        Words or phrases.
    not_topics, not_words
        Topics that the item must not have, and words or phrases that no text of it may have.
    any_of
        Whether one of the topics and words is enough; otherwise an item must have all.

    Examples
    --------
    >>> print(Topics(topics=("Food or Drink",), words=("soup",), not_words=("meat",)).query())
    SELECT DISTINCT ?item WHERE {
      ?item a rss:item .
      { ?item dc:subject ?category1 . FILTER (LCASE(STR(?category1)) = "food" || \
LCASE(STR(?category1)) = "drink") }
      { ?item gm:words ?words2 . FILTER (CONTAINS(?words2, " soup ")) }
      FILTER NOT EXISTS { ?item gm:words ?words3 . FILTER (CONTAINS(?words3, " meat ")) }
    }
    """

    topics: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    not_topics: tuple[str, ...] = ()
    not_words: tuple[str, ...] = ()
    any_of: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        """Raise `TypeError` for a string instead of a tuple: its characters would become topics."""
        for text in (self.topics, self.words, self.not_topics, self.not_words):
            if isinstance(text, str):
                raise TypeError(
                    f"Topics takes a tuple of strings, not {text!r}. Write ({text!r},)."
                )

    @classmethod
    def of_row(cls, row: Mapping[str, object], place: Place) -> Topics:
        """Create topics from a row of a file; `place` is its place, for errors.

        Parameters
        ----------
        row
            Lists of texts, or one text, under ``topics``, ``words``, ``not-topics`` and
            ``not-words``; ``match`` is ``all`` or ``any``.

        Raises
        ------
        SubscriptionError
            If a key or a value is invalid.

        Examples
        --------
        >>> Topics.of_row({"topics": "Food", "match": "any"}, Place("a.jsonl")).name
        'Food'
        """
        for key in row:
            if key not in TOPIC_KEYS:
                remedy = f"There are {', '.join(TOPIC_KEYS)}."
                what = f"a subscription by topics and words has no field `{key}`"
                raise SubscriptionError(Problem(what, place, remedy))
        match = row.get("match", "all")
        if match not in ("all", "any"):
            what = "the field `match` is neither `all` nor `any`"
            raise SubscriptionError(Problem(what, place, "Write `all` or `any`."))
        return cls(*(_texts(row, key, place) for key in TEXT_KEYS), any_of=match == "any")

    @property
    def name(self) -> str:
        """A descriptive name: the default id.

        Examples
        --------
        >>> Topics(("Food",), ("soup", "stew"), not_words=("meat",), any_of=True).name
        'Food or soup or stew, not meat'
        >>> Topics(("Food or drink", "Asia"), not_topics=("sport or play",)).name
        '(Food or drink) and Asia, not (sport or play)'
        """
        joint = " or " if self.any_of else " and "
        wanted = joint.join(map(_bracketed, (*self.topics, *self.words)))
        return ", not ".join((wanted, *map(_bracketed, (*self.not_topics, *self.not_words))))

    def query(self, concepts: Concepts | None = None, keys: Sequence[str] = TEXT_KEYS) -> str:
        """Return the subscription as SPARQL.

        Each text is a group of its own, which the index decides. All alternatives are tests of one
        variable, so that they add no branches to the index.

        Parameters
        ----------
        concepts
            The ontology's terms by name; without it, topics are categories.
        keys
            The names of the four texts in messages.

        Raises
        ------
        SubscriptionError
            If there is neither a topic nor a word, if one is empty, if a word has no letter and no
            digit, or if the ontology has no such topic or several.
        """
        if not (self.topics or self.words):
            what, remedy = "no topic and no word is given", "Give at least one."
            raise SubscriptionError(Problem(what, Place(keys[0]), remedy))
        texts = (self.topics, self.words, self.not_topics, self.not_words)
        kinds = ("category" if concepts is None else "topic", "words") * 2
        numbers, groups = count(1), list[list[str]]()
        for key, kind, listed in zip(keys, kinds, texts, strict=True):
            found = [_constants(text, kind, concepts, Place(key)) for text in listed]
            if self.any_of and found:
                found = [[*chain(*found)]]
            groups.append([_group(kind, constants, next(numbers)) for constants in found])
        topics, words, not_topics, not_words = groups
        wanted = ("\n  UNION " if self.any_of else "\n  ").join(topics + words)
        unwanted = [f"FILTER NOT EXISTS {group}" for group in not_topics + not_words]
        lines = ["?item a rss:item .", wanted, *unwanted]
        return "SELECT DISTINCT ?item WHERE {\n  " + "\n  ".join(lines) + "\n}"


def known_concepts(ontology: Ontology) -> Concepts | None:
    """Return an ontology's terms by name; ``None`` for an empty ontology."""
    return Concepts(ontology) if ontology.stated or ontology.pairs.labels else None


def _texts(row: Mapping[str, object], key: str, place: Place) -> tuple[str, ...]:
    value = row.get(key, ())
    listed = value if isinstance(value, list | tuple) else (value,)
    texts = tuple(text for text in listed if isinstance(text, str))
    if len(texts) < len(listed):
        what, remedy = f"the field `{key}` is not a list of strings", 'Write ["…", "…"].'
        raise SubscriptionError(Problem(what, place, remedy))
    return texts


def _bracketed(text: str) -> str:
    return f"({text})" if _OR.search(text) else text


def _constants(text: str, kind: str, concepts: Concepts | None, place: Place) -> list[str]:
    """Return the terms, categories, or folded words that a text names, in SPARQL."""
    if SURROGATE.search(text):
        what, remedy = "a topic or word has a lone surrogate", SURROGATE_REMEDY
        raise SubscriptionError(Problem(what, place, remedy))
    found = [" ".join(one.split()) for one in _OR.split(text)]
    if not all(found):
        what = f"a text is missing in {text!r}"
        remedy = "`or` needs a topic or word on both sides."
        raise SubscriptionError(Problem(what, place, remedy))
    if kind == "words":
        for one in found:
            if not folded(one).strip():
                what = f"“{one}” has no letter or digit, so it is not a word"
                raise SubscriptionError(Problem(what, place, "Give a word."))
        return [str(Literal(folded(one))) for one in found]
    if concepts is None:
        return [str(Literal(one.lower())) for one in found]
    if concepts.called(text.strip()):
        found = [text.strip()]
    try:
        return [str(concepts.find(one)) for one in found]
    except UnknownNameError as error:
        raise SubscriptionError(replace(error.problem, where=place)) from error


def _group(kind: str, constants: Sequence[str], number: int) -> str:
    """Return the group pattern of items with one of the topics, categories or words."""
    (property_, test), variable = _TESTS[kind], f"?{kind}{number}"
    if kind == "topic" and len(constants) == 1:
        return f"{{ ?item {property_} {constants[0]} . }}"
    tests = " || ".join(test.format(variable, constant) for constant in constants)
    return f"{{ ?item {property_} {variable} . FILTER ({tests}) }}"
