"""Text cut into words and folded, so that the spellings of one label become one.

Words are cut first, in the text as it stands, and folded one by one, so that each keeps
its offsets: ``ﬁ`` and ``ß`` become longer when folded, a letter with a combining accent
shorter. One pass over the text.

Source: The Unicode Standard, section 3.13 (compatibility caseless matching); UAX 29
(what breaks words); UAX 14, class SA (scripts whose words nothing separates).
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import chain, starmap

BREAK = "\n"
"""The word that stands for an empty line, which no label goes across."""

_HAN = "\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_HAN += "\U00020000-\U0003ffff"
_KANA = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d"
_KANA += "\U0001aff0-\U0001b16f"
_SOUTH_EAST_ASIAN = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"
_UNSPACED = f"{_HAN}{_KANA}{_SOUTH_EAST_ASIAN}"

# Not marks, and yet part of the word before them: soft hyphen, zero-width (non-)joiner,
# word joiner, zero-width no-break space, half-width voicing marks of kana.
_ATTACHED = "\u00ad\u200c\u200d\u2060\ufeff\uff9e\uff9f"
# What is left out of a folded word: the first five of these and the variation selectors.
_IGNORED = re.compile("[\u00ad\u034f\u200c\u200d\u2060\ufeff\ufe00-\ufe0f\U000e0100-\U000e01ef ]")

# Where combining marks are: not among ideographs, Hangul, private use and ancient scripts.
_WITH_MARKS = (
    (0x300, 0x3400), (0xA000, 0xAC00), (0xFB00, 0x12000), (0x13400, 0x13500), (0x16A00, 0x17000),
    (0x1BC00, 0x20000),
)  # fmt: skip

# An address is one word: what is found inside is part of a name.
_ADDRESS = r"""(?i:https?://|www\.)[^\s"<>\x7f-\U0010ffff]+"""
_WORD = re.compile(rf"{_ADDRESS}|[^\W_]+|(?<=\w)[+#]+|(?<![\w.])\.(?=[^\W_])|\n\s*\n")
_EMPTY_LINE = re.compile(r"\n\s*\n")
# Signs that are no words, in texts whose letters are Latin-1's.
_TYPOGRAPHY = re.compile(
    "[\u2000-\u200b\u2010-\u2027\u202f-\u205e\u20ac\u2122\u2190-\u245f\u25a0-\u2775\U0001f300-\U0001faff]"
)
_LATIN = bytes(range(256)).decode("latin-1")
_KINDS = "".join(
    "a"
    if letter.isalnum()
    else {"#": "+", "\xad": "-"}.get(letter, letter if letter in "._+" else " ")
    for letter in _LATIN
).encode()
_SPACED = "".join(x if x.isalnum() or x == "\0" else " " for x in _LATIN).encode("latin-1")
_HAN_LETTER = re.compile(f"[{_HAN}]")
_FIRST_UNSPACED = "\u0e00"
_UNSPACED_LETTER = re.compile(rf"(?=[^\W_])[{_UNSPACED}\uff9e\uff9f]")


def tokenize(text: str) -> list[str]:
    r"""Cut a text into words, as they are written.

    A word is a run of letters, digits and their marks; in scripts that are written without
    spaces (Han, kana, Thai, Lao, Khmer, Burmese) a letter with its marks. ``+`` and ``#``
    right after a word, and a full stop right before one, are words too, since they are part
    of names (C++, F#, .NET). A web address is one word, and so is an empty line.
    Everything else separates words.

    Examples
    --------
    >>> tokenize("COVID-19, na\u00efve, C++")
    ['COVID', '19', 'naïve', 'C', '++']
    >>> tokenize("全球 Web")
    ['全', '球', 'Web']
    """
    words = _quick(text)
    if words is not None:
        return words
    paragraphs = _EMPTY_LINE.split(text)
    if len(paragraphs) == 1:
        return _pattern(text).findall(text)
    return list(chain.from_iterable((BREAK, *tokenize(each)) for each in paragraphs))[1:]


def spans(text: str) -> list[tuple[int, int]]:
    """Return where each word of `tokenize` stands in the text."""
    return [word.span() for word in _pattern(text).finditer(text)]


def fold(word: str) -> str:
    """Return what all spellings of a word have in common; `BREAK` for an empty line.

    Folding is NFKC and case folding; it also drops soft hyphens, joiners and variation
    selectors, and the dot that case folding leaves over an i (of Turkish ``İ``). Accents
    stay: ``pâte`` is not ``pate``.

    Examples
    --------
    >>> fold("Straße"), fold("ﬁnance")
    ('strasse', 'finance')
    """
    if word[0] in "\0\n\u2029":
        return BREAK
    if word.isascii():
        return word.lower()
    folded = unicodedata.normalize("NFKC", word).casefold().replace("i\u0307", "i")
    return _IGNORED.sub("", unicodedata.normalize("NFKC", folded))


def fold_all(words: list[str]) -> str:
    """Return words, each as `fold` has it, with spaces in between.

    Examples
    --------
    >>> fold_all(["Straße", "C"])
    'strasse c'
    """
    text = " ".join(words)
    if text.isascii():  # as most are: as fast as one word
        return text.lower().replace("\0", BREAK)
    return " ".join(map(fold, words))


def unspaced(letter: str) -> bool:
    """Whether a letter belongs to a script that puts no spaces between words."""
    return letter >= _FIRST_UNSPACED and _UNSPACED_LETTER.match(letter) is not None


def letter_count(word: str) -> int:
    """Count letters and digits; a Han character, which stands for a syllable or more, is two."""
    return sum(map(str.isalnum, word)) + len(_HAN_LETTER.findall(word))


def _quick(text: str) -> list[str] | None:
    """Cut a text as `_WORD` does, ten times as fast; ``None`` where it needs an expression."""
    if text.isalnum() and text.isascii():
        return [text]
    whole = text
    if "\n" in text:
        text = _EMPTY_LINE.sub(" \0 ", text)
    try:
        data = (text if text.isascii() else _TYPOGRAPHY.sub(" ", text)).encode("latin-1")
    except UnicodeEncodeError:
        return None
    kinds = b" " + data.translate(_KINDS)
    if b"+" in kinds and (b"a+" in kinds or b"_+" in kinds or b"+.a" in kinds):
        return None
    if (
        b" .a" in kinds
        or b"-" in kinds
        or b"://" in data
        or b"www." in data.lower()
        or "\0" in whole
    ):
        return None
    return data.translate(_SPACED).decode("latin-1").split()


def _pattern(text: str) -> re.Pattern[str]:
    return _WORD if text.isascii() else _unicode_word()


@cache
def _unicode_word() -> re.Pattern[str]:
    """Return what `_WORD` is for ASCII, for all of Unicode (30 ms, so only when needed)."""
    attached = _ATTACHED + _marks()
    letter = rf"[^\W_{_UNSPACED}{_ATTACHED}]"
    return re.compile(
        rf"{_ADDRESS}"
        r"|[A-Za-z0-9]++(?![^\x00-\x7F])"  # most words of most texts, three times as fast
        rf"|{letter}+(?:[{attached}]+{letter}*)*"
        rf"|(?=[^\W_])[{_UNSPACED}][{attached}]*"
        rf"|(?<=[\w{attached}])[+#＋＃]+|(?<![\w.．{attached}])[.．](?=[^\W_])"  # noqa: RUF001
        r"|\n\s*\n|\u2029"
    )


def _marks() -> str:
    """Return Unicode's combining marks, which `re` has no class for, as ranges of a class."""
    ends: list[list[int]] = []
    for code in chain.from_iterable(starmap(range, _WITH_MARKS)):
        if unicodedata.category(chr(code)).startswith("M"):
            if ends and ends[-1][1] == code - 1:
                ends[-1][1] = code
            else:
                ends.append([code, code])
    ends.append([0xE0100, 0xE01EF])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ends)
