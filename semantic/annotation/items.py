"""The texts of feed items, read and cut into words once for all who look for something."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode

from semantic.annotation.languages import primary_subtag
from semantic.annotation.markup import READERS, plain_text
from semantic.annotation.tokens import tokenize
from semantic.terms import Term, Triple
from semantic.vocabulary import CONTENT, DC, RSS, TYPE

_ITEM, _CHANNEL, _LANGUAGE = RSS["item"], RSS["channel"], DC["language"]
_CONTENT = CONTENT["encoded"]
_READ = READERS.keys() | {DC["subject"], TYPE, _LANGUAGE}


@dataclass(slots=True)
class ItemText:
    """A literal of an item.

    Parameters
    ----------
    text, words
        Without markup, and as `semantic.annotation.tokens.tokenize` cuts it.
    languages
        What is stated: its tag's primary subtag; without one the item's ``dc:language``, without
        that the channel's. Empty where nothing is.
    again
        Whether it is content that another text of the item has already.
    """

    item: Term
    property: NamedNode
    text: str
    words: list[str]
    languages: frozenset[str]
    again: bool


def texts_of_items(triples: Iterable[Triple]) -> list[ItemText]:
    """Return the texts of the subjects of type ``rss:item``, item by item.

    They are the literals of ``rss:title``, ``rss:description``, ``content:encoded`` and
    ``dc:subject``.

    Examples
    --------
    >>> item = NamedNode("http://example.org/1")
    >>> told = [(item, TYPE, RSS["item"]), (item, RSS["title"], Literal("<b>S</b>oup!"))]
    >>> [(text.text, text.words) for text in texts_of_items(told)]
    [('Soup!', ['Soup'])]
    """
    said = [triple for triple in triples if triple[1] in _READ]
    items: dict[Term, list[ItemText]] = {s: [] for s, p, o in said if p == TYPE and o == _ITEM}
    of: dict[Term, set[str]] = {}
    for subject, predicate, value in said:
        if not isinstance(value, Literal):
            continue
        if predicate == _LANGUAGE:
            of.setdefault(subject, set()).update(_languages(value.value))
        elif subject in items and isinstance(predicate, NamedNode) and predicate != TYPE:
            read = READERS.get(predicate, plain_text)
            plain, own, known = read(value.value), _languages(value.language), items[subject]
            same = [other.words for other in known if predicate == _CONTENT and other.text == plain]
            words = same[0] if same else tokenize(plain)
            known.append(ItemText(subject, predicate, plain, words, own, bool(same)))
    channels = {s for s, p, o in said if p == TYPE and o == _CHANNEL}
    channel = frozenset[str]().union(*(of.get(subject, ()) for subject in channels))
    for item, texts in items.items():
        stated = frozenset(of.get(item, ())) or channel
        for text in texts:
            text.languages = text.languages or stated
    return [text for texts in items.values() for text in texts]


def _languages(tag: str | None) -> frozenset[str]:
    """Return the primary subtag of a language tag, if it has one."""
    language = primary_subtag(tag)
    return frozenset() if language is None else frozenset({language})
