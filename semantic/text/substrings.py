"""Which of very many texts a text contains, in one pass, while they come and go.

An Aho-Corasick automaton cannot be changed, so there are a few: texts that came lately
wait in a list and are looked for one by one; when the list is long they become an
automaton, together with every automaton that is not `GROWTH` times as large as what is
merged into it. So sizes fall by that factor, a text is built into an automaton
O(`GROWTH` log n) times, and looking costs a pass for each of O(log n) automata: one, or
two, in practice. Texts that were taken out stay in the automata, and are passed over, until
they are more than the rest.

References
----------
A. V. Aho, M. J. Corasick: Efficient string matching: an aid to bibliographic search.
Communications of the ACM 18 (6), 1975.

J. L. Bentley, J. B. Saxe: Decomposable searching problems I: static-to-dynamic
transformation. Journal of Algorithms 1 (4), 1980.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

WAITING = 32
"""How many texts wait in a list."""
GROWTH = 8
"""An automaton is at least so many times as large as the next."""


@dataclass(frozen=True, slots=True)
class _Segment:
    """Texts, and the automaton that finds them."""

    texts: list[str]
    automaton: BytesAhoCorasick

    @classmethod
    def of(cls, texts: list[str]) -> _Segment:
        """Build the automaton of some texts, which differ."""
        automaton = BytesAhoCorasick(
            [text.encode() for text in texts],
            matchkind=MatchKind.Standard,
            implementation=Implementation.ContiguousNFA,
        )
        return cls(texts, automaton)


class Substrings:
    """A set of texts, each not empty, that other texts may contain.

    Examples
    --------
    >>> substrings = Substrings()
    >>> for text in ("sea", "the s", "lake"):
    ...     substrings.add(text)
    >>> sorted(substrings.found_in("by the sea"))
    ['sea', 'the s']
    >>> substrings.remove("sea")
    >>> substrings.found_in("by the sea"), len(substrings)
    ({'the s'}, 2)
    """

    def __init__(self) -> None:
        self._texts: dict[str, bool] = {}
        """Whether each text is wanted: others are in an automaton still."""
        self._wanted = 0
        self._waiting: dict[str, None] = {}
        self._segments: list[_Segment] = []
        self.built = 0
        """How many texts were put into automata, each as often as it was."""

    def __len__(self) -> int:
        return self._wanted

    @property
    def kept(self) -> int:
        """How many texts are held, those among them that were taken out."""
        return len(self._texts)

    @property
    def automata(self) -> int:
        """How many passes over a text it takes."""
        return len(self._segments)

    def add(self, text: str) -> None:
        """Put a text in that is not there."""
        if text not in self._texts:
            self._waiting[text] = None
        self._texts[text] = True
        self._wanted += 1

    def remove(self, text: str) -> None:
        """Take a text out that is there."""
        self._wanted -= 1
        if text in self._waiting:
            del self._waiting[text], self._texts[text]
        else:
            self._texts[text] = False

    def found_in(self, text: str) -> set[str]:
        """Return those that a text contains."""
        self._tidy()
        found = {part for part in self._waiting if part in text} if self._waiting else set()
        if self._segments:
            data = text.encode()
            for segment in self._segments:
                texts, wanted = segment.texts, self._texts
                hits = segment.automaton.find_matches_as_indexes(data, overlapping=True)
                if hits:
                    parts = {texts[number] for number, _, _ in hits}
                    found.update(part for part in parts if wanted[part])
        return found

    def _tidy(self) -> None:
        """Build automata where too much waits, or too much is in them in vain."""
        if len(self._texts) > 2 * self._wanted + WAITING:
            self._merge(len(self._segments))
        elif len(self._waiting) > WAITING:
            size, merged = len(self._waiting), 0
            for segment in reversed(self._segments):
                if len(segment.texts) >= GROWTH * size:
                    break
                size += len(segment.texts)
                merged += 1
            self._merge(merged)

    def _merge(self, last: int) -> None:
        """Put what waits and the last automata into one."""
        kept = len(self._segments) - last
        texts = [*self._in_segments(kept), *self._waiting]
        del self._segments[kept:]
        self._waiting = {}
        if texts:
            self._segments.append(_Segment.of(texts))
            self.built += len(texts)

    def _in_segments(self, kept: int) -> Iterator[str]:
        """Yield the wanted texts of the automata from one on; forget the others."""
        for segment in self._segments[kept:]:
            for text in segment.texts:
                if self._texts[text]:
                    yield text
                else:
                    del self._texts[text]
