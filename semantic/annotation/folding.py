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
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, chain, starmap

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
_ASCII_WORD = re.compile(rf"{_ADDRESS}|[^\W_]+|(?<=\w)[+#]+|(?<![\w.])\.(?=[^\W_])|\n\s*\n")
_HAN_LETTER = re.compile(f"[{_HAN}]")
_FIRST_UNSPACED = "\u0e00"
_UNSPACED_LETTER = re.compile(rf"(?=[^\W_])[{_UNSPACED}\uff9e\uff9f]")


@dataclass(slots=True)
class FoldedText:
    r"""A text as a line of folded words.

    A word is a run of letters, digits and their marks; in scripts that are written without
    spaces (Han, kana, Thai, Lao, Khmer, Burmese) a letter with its marks. ``+`` and ``#``
    right after a word, and a full stop right before one, are words too, since they are part
    of names (C++, F#, .NET). A web address is one word, an empty line the word `BREAK`.
    Everything else separates words.

    Folding is NFKC and case folding; it also drops soft hyphens, joiners and variation
    selectors, and the dot that case folding leaves over an i (of Turkish ``İ``). Accents
    stay: ``pâte`` is not ``pate``.

    Parameters
    ----------
    text
        The text.
    line
        Its folded words, with one space before, between and after them.

    Examples
    --------
    >>> FoldedText.of("COVID-19, na\u00efve, C++").line
    ' covid 19 naïve c ++ '
    >>> FoldedText.of("全球 Web").line
    ' 全 球 web '
    """

    text: str
    line: str
    _begins: list[int] = field(default_factory=list, init=False, repr=False, compare=False)
    """Where each word begins in the line: found when it is asked for first."""
    _spans: list[tuple[int, int]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    @classmethod
    def of(cls, text: str) -> FoldedText:
        """Fold a text."""
        if text.isascii():
            words = _ASCII_WORD.findall(text.lower())
            if "\n" in text:
                words = [BREAK if word[0] == "\n" else word for word in words]
        else:
            words = [_fold(word) for word in _unicode_word().findall(text)]
        return cls(text, f" {' '.join(words)} ")

    def words(self) -> list[str]:
        """Return the folded words, breaks left out.

        Examples
        --------
        >>> FoldedText.of("Straße").words()
        ['strasse']
        """
        return self.line.split()

    def spans(self) -> list[tuple[int, int]]:
        """Return where each word of the line, breaks included, stands in the text.

        Examples
        --------
        >>> FoldedText.of("the Straße").spans()
        [(0, 3), (4, 10)]
        """
        if not self._spans:
            self._spans = [word.span() for word in _pattern(self.text).finditer(self.text)]
        return self._spans

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where words stand in the text.

        Parameters
        ----------
        start, end
            Where they are in the line, with the spaces round them.

        Examples
        --------
        >>> FoldedText.of("the Straße").span(4, 12)
        (4, 10)
        """
        if not self._begins:
            lengths = map(len, self.line[1:-1].split(" "))
            self._begins = [*accumulate(lengths, lambda at, length: at + length + 1, initial=1)]
        spans = self.spans()
        first, last = bisect_left(self._begins, start + 1), bisect_left(self._begins, end) - 1
        return spans[first][0], spans[last][1]


def folded_words(text: str) -> str:
    """Return a text's folded words as they stand in a `FoldedText.line`; empty without a word.

    Examples
    --------
    >>> folded_words("Climate  change"), folded_words("AT&T"), folded_words("?!")
    (' climate change ', ' at t ', '')
    """
    if text.isascii() and text.replace(" ", "").isalnum():  # so are most labels
        words = text.lower().split()
    else:
        words = FoldedText.of(text).words()
    return f" {' '.join(words)} " if words else ""


def unspaced(letter: str) -> bool:
    """Whether a letter belongs to a script that puts no spaces between words.

    Examples
    --------
    >>> unspaced("気"), unspaced("ไ"), unspaced("k"), unspaced("")
    (True, True, False, False)
    """
    return letter >= _FIRST_UNSPACED and _UNSPACED_LETTER.match(letter) is not None


def letter_count(word: str) -> int:
    """Count letters and digits; a Han character, which stands for a syllable or more, is two.

    Examples
    --------
    >>> letter_count("naïve"), letter_count("気候"), letter_count("++")
    (5, 4, 0)
    """
    return sum(map(str.isalnum, word)) + len(_HAN_LETTER.findall(word))


def _pattern(text: str) -> re.Pattern[str]:
    return _ASCII_WORD if text.isascii() else _unicode_word()


def _fold(word: str) -> str:
    if word[0] in "\n\u2029":
        return BREAK
    if word.isascii():
        return word.lower()
    folded = unicodedata.normalize("NFKC", word).casefold().replace("i\u0307", "i")
    return _IGNORED.sub("", unicodedata.normalize("NFKC", folded))


@cache
def _unicode_word() -> re.Pattern[str]:
    """Return what `_ASCII_WORD` is for ASCII, for all of Unicode (30 ms, so only when needed)."""
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
