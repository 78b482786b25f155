"""The words of feed items, in one spelling: what subscriptions by words are asked of.

An item has one ``gm:words`` for each of its texts: the words that annotation sees there
(`semantic.annotation.tokens`), folded, with a space before and after each. So a word or a phrase
is found by ``CONTAINS``, whatever the case, the Unicode form, the markup and the punctuation, and
independent of soft hyphens.

Cost: one pass over the words that annotation reads, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyoxigraph import Literal

from semantic.annotation.items import ItemText
from semantic.annotation.markup import READERS
from semantic.annotation.tokens import fold_all, tokenize
from semantic.terms import Term, Triple
from semantic.vocabulary import GM

WORDS = GM["words"]


def folded(text: str) -> str:
    """Return the words of a plain text in one spelling, a space before and after each.

    Examples
    --------
    >>> folded("The Ré\N{SOFT HYPHEN}sumé, in C++"), folded(";")
    (' the résumé in c ++ ', '  ')
    """
    return _joined(tokenize(text))


def words_of(texts: Iterable[ItemText]) -> dict[Triple, Term]:
    """Return ``gm:words`` of feed items by their texts, with the properties of these.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from semantic.annotation.items import texts_of_items
    >>> from semantic.vocabulary import RSS, TYPE
    >>> item = NamedNode("http://example.org/1")
    >>> told = [(item, TYPE, RSS["item"]), (item, RSS["title"], Literal("<b>S</b>oup!"))]
    >>> read = words_of(texts_of_items(told))
    >>> [(words[2].value, property_.value[-5:]) for words, property_ in read.items()]
    [(' soup ', 'title')]
    """
    found: dict[Triple, Term] = {}
    for text in texts:
        if text.property in READERS:
            found.setdefault((text.item, WORDS, Literal(_joined(text.words))), text.property)
    return found


def _joined(words: Iterable[str]) -> str:
    return f" {fold_all(list(words))} "
