"""The case of text, as the SPARQL evaluator changes it.

Python and the evaluator may know different versions of Unicode. Where a text has only
characters of which both have always said the same, Python's methods are used: 100
times as fast. For other texts the evaluator itself is asked, so the answer is its own
whatever the versions. That costs 50 µs and 50 ns a character, and the last answers are
remembered.

Regular expressions with the flag ``i`` compare by simple case folding; for patterns of
ASCII letters Python's `str.casefold` finds all that they find (the long s is an ``s``, and
the Kelvin sign a ``k``).
"""

from __future__ import annotations

import re
from functools import lru_cache

from pyoxigraph import Literal, QuerySolutions, Store

from semantic.terms import Term
from semantic.text.tests import Folding

_SURE = (
    r"\u0000-\u019a\u019c-\u024f"  # Latin, without a letter that was given a capital late
    r"\u0300-\u036f"  # combining marks
    r"\u0370-\u0373\u0376\u0377\u037b-\u037e\u0384-\u038a\u038c\u038e-\u03a1\u03a4-\u03ff"
    # Greek, without Σ, whose small letter depends on what stands around it
    r"\u0400-\u052f"  # Cyrillic
    r"\u0591-\u05f4\u0600-\u06ff\u0900-\u097f"  # Hebrew, Arabic, Devanagari
    r"\u1e00-\u1eff"  # Latin: Vietnamese and others
    r"\u2000-\u2064\u20a0-\u20bf\u2100-\u217f\u2190-\u23ff\u2460-\u27bf"  # signs
    r"\u3000-\u303f\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"  # East Asia
    r"\ufe00-\ufe0f\uff01-\uff5e"
    r"\U0001f300-\U0001faff"  # pictures
)
"""Characters of which all versions of Unicode since 12 say the same."""

_UNSURE = re.compile(f"[^{_SURE}]")


def folded(text: str, folding: Folding) -> str:
    """Return a text with its case changed.

    Examples
    --------
    >>> folded("Klimaänderung", Folding.UPPER), folded("ΣΟΦΟΣ", Folding.LOWER)
    ('KLIMAÄNDERUNG', 'σοφος')
    """
    if folding is Folding.NONE:
        return text
    if folding is Folding.CASELESS:
        return text.casefold()
    if text.isascii() or not _UNSURE.search(text):
        return text.lower() if folding is Folding.LOWER else text.upper()
    return _evaluated(folding.value, text)


def ascii_lower(text: str) -> str:
    """Return a text with its ASCII letters small.

    Examples
    --------
    >>> ascii_lower("DE-Ä")
    'de-Ä'
    """
    return text.lower() if text.isascii() else text.encode().lower().decode()


@lru_cache(maxsize=1024)
def _evaluated(function: str, text: str) -> str:
    answer = _evaluator().query(f"SELECT ({function}({Literal(text)}) AS ?text) {{}}")
    assert isinstance(answer, QuerySolutions)
    result = next(iter(answer))["text"]
    assert isinstance(result, Literal)
    return result.value


@lru_cache(maxsize=4096)
def asked(left: Term, operator: str, right: Term) -> bool:
    """Ask the evaluator whether a comparison is true; for literals and IRIs.

    Examples
    --------
    >>> asked(Literal("1"), "!=", Literal("2"))
    True
    """
    return bool(_evaluator().query(f"ASK {{ FILTER({left} {operator} {right}) }}"))


@lru_cache(maxsize=1)
def _evaluator() -> Store:
    return Store()
