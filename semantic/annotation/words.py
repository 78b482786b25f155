"""Folded words of feed items, for subscriptions that search words.

Each text of an item gives a triple with ``gm:words``: the words of the text, folded, with a space
before and after each. A subscription finds a word or a phrase in it by ``CONTAINS``, regardless of
case, Unicode form, markup and punctuation.

A word is a run of letters, digits and their marks. In scripts without spaces (Han, kana, Thai, Lao,
Khmer, Burmese) it is one letter with its marks. ``+`` and ``#`` after a word and a full stop before
one are words, because names contain them (C++, F#, .NET). A web address is one word. An empty line
is one, too, so that a phrase does not cross paragraphs. Everything else separates words.

Folding is NFKC and case folding. It also drops soft hyphens, joiners and variation selectors, and
the dot that case folding leaves over an i (of Turkish ``İ``). Accents stay: ``pâte`` is not
``pate``.

Source: The Unicode Standard, section 3.13 (compatibility caseless matching); UAX 29 (word
boundaries); UAX 14, class SA (scripts without spaces).
"""

from __future__ import annotations

from graphmatch import _native
from semantic.vocabulary import GM

WORDS = GM["words"]


def folded(text: str) -> str:
    """Return the folded words of a plain text, with a space before and after each.

    Examples
    --------
    >>> folded("The Ré\N{SOFT HYPHEN}sumé, in C++"), folded(";")
    (' the résumé in c ++ ', '  ')
    """
    return _native.folded_words(text)
