"""The words of feed items, in one spelling: what subscriptions by words are asked of.

An item has one ``gm:words`` for each of its texts: the words that annotation sees there
(`semantic.annotation.tokens`), folded, with a space before and after each. So a word or a phrase
is found by ``CONTAINS``, whatever the case, the Unicode form, the markup and the punctuation, and
independent of soft hyphens.

Cost: one pass over the texts, 0.1 ms for those of an item of 3,000 characters.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyoxigraph import Literal

from semantic.annotation.markup import READERS
from semantic.annotation.tokens import fold_all, tokenize
from semantic.terms import Term, Triple
from semantic.vocabulary import GM, RSS, TYPE

WORDS = GM["words"]


def folded(text: str) -> str:
    """Return the words of a plain text in one spelling, a space before and after each.

    Examples
    --------
    >>> folded("The Ré\N{SOFT HYPHEN}sumé, in C++"), folded(";")
    (' the résumé in c ++ ', '  ')
    """
    return f" {fold_all(tokenize(text))} "


def words_of_items(triples: Iterable[Triple]) -> dict[Triple, Term]:
    """Return ``gm:words`` of the feed items among triples, with the properties of their texts.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> item = NamedNode("http://example.org/1")
    >>> told = [(item, TYPE, RSS["item"]), (item, RSS["title"], Literal("<b>S</b>oup!"))]
    >>> [(words[2].value, read.value[-5:]) for words, read in words_of_items(told).items()]
    [(' soup ', 'title')]
    """
    told = tuple(triples)
    items = {s for s, p, o in told if p == TYPE and o == RSS["item"]}
    found: dict[Triple, Term] = {}
    for subject, property_, text in told:
        if property_ in READERS and subject in items and isinstance(text, Literal):
            words = Literal(folded(READERS[property_](text.value)))
            found.setdefault((subject, WORDS, words), property_)
    return found
