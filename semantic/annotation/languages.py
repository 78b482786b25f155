"""Languages of texts and labels: tags, function words, and noun endings.

A label may mean something else in another language (*pays*, *have*, *See*, *most*). The annotator
therefore searches for labels in the language of the text. If none is stated, the annotator guesses
the language by function words, which make up a third to a half of running text.

Words with the same Snowball stem may be forms of one word. Stems alone go too far for the names of
concepts (*market* and *marketing*, *Arbeit* and *Arbeiter*). The endings in which two words differ
must therefore be those of a plural or a case.

References
----------
G. Grefenstette: Comparing two language identification schemes. JADT 1995.
M. F. Porter: Snowball, a language for stemming algorithms. 2001.
D. Harman: How effective is suffixing? JASIS 42 (1), 1991 (stems that go no further than plurals).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_FILE = Path(__file__).with_name("stop_words.txt")
_BLOCKS = re.split(r"\n(?=\w)", _FILE.read_text(encoding="utf-8").rpartition("#")[2])[1:]
STOP_WORDS: Mapping[str, list[str]] = {
    language: words for language, *words in map(str.split, _BLOCKS)
}
"""The function words of languages (primary subtags), folded: ``ausser`` for ``außer``."""

ENDINGS: Mapping[str, list[tuple[str, str]]] = {
    language: [(one, other) for one, _, other in (pair.partition("/") for pair in pairs)]
    for language, pairs in {
        "en": ["/s", "/es", "ies/y"],
        "de": ["/", "/e", "/en", "/es", "/n", "/nen", "/s", "e/s", "n/s"],
        "fr": ["/s", "/x", "l/ux"],
        "es": ["/s", "/es", "ces/z"],
        "it": ["a/e", "a/he", "e/i", "hi/o", "i/o"],
        "nl": ["/e", "/en", "/n", "/s"],
        "pt": ["/s", "/es", "aes/ao", "ao/oes", "eis/il", "il/is", "is/l", "m/ns"],
    }.items()
}
"""The pairs of endings in which two forms of a noun or adjective differ.

In languages not listed, all words with the same stem are forms of one word.
"""

_STEMMERS = """
    ar Arabic ca Catalan cs Czech da Danish de German el Greek en English eo Esperanto es Spanish
    et Estonian eu Basque fa Persian fi Finnish fr French ga Irish hi Hindi hu Hungarian
    hy Armenian id Indonesian it Italian lt Lithuanian ne Nepali nl Dutch no Norwegian pl Polish
    pt Portuguese ro Romanian ru Russian sr Serbian st Sesotho sv Swedish ta Tamil tr Turkish
    yi Yiddish
"""
STEMMERS: Mapping[str, str] = dict(re.findall(r"(\w+) (\w+)", _STEMMERS))
"""Snowball's stemmers by language."""

_SUBTAGS = re.compile("[-_]")
_NO_LANGUAGE = frozenset({"", "mul", "und", "zxx"})


def primary_subtag(tag: str | None) -> str | None:
    """Return the language of a tag, without region and script; ``None`` if it states none.

    Examples
    --------
    >>> primary_subtag("en-GB"), primary_subtag("PT_br"), primary_subtag("und")
    ('en', 'pt', None)
    """
    primary = _SUBTAGS.split(tag.strip(), maxsplit=1)[0].lower() if tag else ""
    return None if primary in _NO_LANGUAGE else primary
