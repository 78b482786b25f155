"""Subscriptions without SPARQL: topics and words of feed items, translated to a query.

A topic is a class or concept of the ontology, found by its label, prefixed name or IRI. Without an
ontology it is a category as written in the feed (``dc:subject``). Words are searched in the visible
text of title, description and content. They match whole words, regardless of case, Unicode form,
soft hyphens and markup. The words of a phrase must be consecutive in one paragraph
(`semantic.annotation.words`). In scripts without spaces a word matches anywhere.

Limits: only feed items (``rss:item``) match; a web address in a text is one word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from pyoxigraph import Literal

from semantic.annotation.words import folded
from semantic.attributes.concepts import Concepts
from semantic.errors import Place, Problem, SubscriptionError, UnknownNameError
from semantic.ontology.ontology import Ontology
from semantic.terms import SURROGATE, SURROGATE_REMEDY, Term

KEYS = ("id", "topics", "words", "not-words", "match", "comment")
"""The keys of a subscription by topics or words in a file."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics and words that a reader is interested in.

    Parameters
    ----------
    topics
        Labels, prefixed names or IRIs of the ontology's terms, or categories.
    words
        Words or phrases.
    without
        Words or phrases that no text of the item may have.
    any_of
        Whether one of the topics and words is enough; otherwise an item must have all.

    Examples
    --------
    >>> print(Topics(topics=("Food",), words=("soup",), without=("meat",)).query())
    SELECT DISTINCT ?item WHERE {
      ?item a rss:item .
      ?item dc:subject ?category1 . FILTER (LCASE(STR(?category1)) = "food")
      FILTER EXISTS { ?item gm:words ?words1 . FILTER CONTAINS(?words1, " soup ") }
      FILTER NOT EXISTS { ?item gm:words ?words2 . FILTER CONTAINS(?words2, " meat ") }
    }
    """

    topics: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    any_of: bool = False

    def __post_init__(self) -> None:
        """Raise `TypeError` for a string instead of a tuple: its characters would become topics."""
        for text in (self.topics, self.words, self.without):
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
            Lists of texts, or one text, under ``topics``, ``words`` and ``not-words``; ``match``
            is ``all`` or ``any``.

        Raises
        ------
        SubscriptionError
            If a key or a value is invalid.

        Examples
        --------
        >>> Topics.of_row({"topics": "Food", "match": "any"}, Place("a.jsonl"))
        Topics(topics=('Food',), words=(), without=(), any_of=True)
        """
        for key in row:
            if key not in KEYS:
                near = get_close_matches(key, KEYS, 1)
                remedy = f"Is `{near[0]}` meant?" if near else f"There are {', '.join(KEYS)}."
                what = f"a subscription by topics and words has no field `{key}`"
                raise SubscriptionError(Problem(what, place, remedy))
        match = row.get("match", "all")
        if match not in ("all", "any"):
            what = "the field `match` is neither `all` nor `any`"
            raise SubscriptionError(Problem(what, place, "Write `all` or `any`."))
        topics, words, without = (
            _texts(row, key, place) for key in ("topics", "words", "not-words")
        )
        return cls(topics, words, without, match == "any")

    @property
    def name(self) -> str:
        """A descriptive name: the default id.

        Examples
        --------
        >>> Topics(("Food",), ("soup", "stew"), ("meat",), any_of=True).name
        'Food or soup or stew, not meat'
        """
        wanted = (" or " if self.any_of else " and ").join((*self.topics, *self.words))
        return ", not ".join((wanted, *self.without))

    def query(self, concepts: Concepts | None = None) -> str:
        """Return the subscription as SPARQL.

        Parameters
        ----------
        concepts
            The ontology's terms by name; without it, topics are categories.

        Raises
        ------
        SubscriptionError
            If there is neither a topic nor a word, if one is empty, if a word has no letter and no
            digit, or if the ontology has no such topic or several.
        """
        place = Place(self.name or "topics")
        if not (self.topics or self.words):
            what, remedy = "no topic and no word is given", "Give at least one."
            raise SubscriptionError(Problem(what, place, remedy))
        for text in (*self.topics, *self.words, *self.without):
            if not text.strip():
                what, remedy = "a topic or word is empty", "Give a text, or leave it out."
                raise SubscriptionError(Problem(what, place, remedy))
            if SURROGATE.search(text):
                what, remedy = "a topic or word has a lone surrogate", SURROGATE_REMEDY
                raise SubscriptionError(Problem(what, place, remedy))
        for word in (*self.words, *self.without):
            if not folded(word).strip():
                what = f"“{word}” has no letter or digit, so it is not a word"
                raise SubscriptionError(Problem(what, place, "Give a word."))
        about = [_topic(topic, n, concepts, place) for n, topic in enumerate(self.topics, 1)]
        texts = [_word(word, n) for n, word in enumerate(self.words, 1)]
        if self.any_of:
            wanted = ["\n  UNION ".join(f"{{ {one} }}" for one in (*about, *texts))]
        else:
            # The index finds items by their topics, or by the first word.
            first = about or texts[:1]
            wanted = [*first, *map(_exists, texts if about else texts[1:])]
        unwanted = (_word(word, n) for n, word in enumerate(self.without, len(self.words) + 1))
        lines = ("?item a rss:item .", *wanted, *(_exists(one, "NOT ") for one in unwanted))
        return "SELECT DISTINCT ?item WHERE {\n  " + "\n  ".join(lines) + "\n}"


def known_concepts(ontology: Ontology) -> Concepts | None:
    """Return an ontology's terms by name; ``None`` for an empty ontology."""
    return Concepts(ontology) if ontology.stated or ontology.pairs.labels else None


def _texts(row: Mapping[str, object], key: str, place: Place) -> tuple[str, ...]:
    value = row.get(key, ())
    listed = value if isinstance(value, list | tuple) else (value,)
    texts = tuple(text for text in listed if isinstance(text, str))
    if len(texts) < len(listed):
        what, remedy = f"the field `{key}` is not a list of strings", f'Write "{key}": ["…", "…"].'
        raise SubscriptionError(Problem(what, place, remedy))
    return texts


def _topic(name: str, number: int, concepts: Concepts | None, place: Place) -> str:
    if concepts is None:
        category = str(Literal(name.strip().lower()))
        variable = f"?category{number}"
        return f"?item dc:subject {variable} . FILTER (LCASE(STR({variable})) = {category})"
    return f"?item dcterms:subject {_resolved(name, concepts, place)} ."


def _resolved(name: str, concepts: Concepts, place: Place) -> Term:
    try:
        return concepts.find(name.strip())
    except UnknownNameError as error:
        raise SubscriptionError(replace(error.problem, where=place)) from error


def _word(words: str, number: int) -> str:
    wanted, variable = Literal(folded(" ".join(words.split()))), f"?words{number}"
    return f"?item gm:words {variable} . FILTER CONTAINS({variable}, {wanted})"


def _exists(pattern: str, negated: str = "") -> str:
    return f"FILTER {negated}EXISTS {{ {pattern} }}"
