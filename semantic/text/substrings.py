"""Which of very many texts a text contains, in one pass, while they come and go.

An Aho-Corasick automaton cannot be changed, so there are a few: texts that came lately
wait in a list and are looked for one by one; when the list is long they become an
automaton, together with every automaton that is not `GROWTH` times as large as what is
merged into it. So sizes fall by that factor, a text is built into an automaton
O(`GROWTH` log n) times, and looking costs a pass for each of O(log n) automata: one, or
two, in practice. Texts that were taken out stay in the automata, and are passed over, until
they are more than the rest.

Automata are built when a text is looked through, by one thread; others look through texts
meanwhile, and find in the old ones what they would in the new.

References
----------
A. V. Aho, M. J. Corasick: Efficient string matching: an aid to bibliographic search.
Communications of the ACM 18 (6), 1975.

J. L. Bentley, J. B. Saxe: Decomposable searching problems I: static-to-dynamic
transformation. Journal of Algorithms 1 (4), 1980.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TypeAlias

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


_Parts: TypeAlias = tuple[tuple[_Segment, ...], dict[str, None]]
"""The automata, and what waits."""


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
        self._parts: _Parts = (), {}
        self._tidying = Lock()
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
        return len(self._parts[0])

    def add(self, text: str) -> None:
        """Put a text in that is not there."""
        if text not in self._texts:
            self._parts[1][text] = None
        self._texts[text] = True
        self._wanted += 1

    def remove(self, text: str) -> None:
        """Take a text out that is there."""
        self._wanted -= 1
        waiting = self._parts[1]
        if text in waiting:
            del waiting[text], self._texts[text]
        else:
            self._texts[text] = False

    def found_in(self, text: str) -> set[str]:
        """Return those that a text contains."""
        if self._is_untidy() and self._tidying.acquire(blocking=False):
            try:
                self._tidy()
            finally:
                self._tidying.release()
        segments, waiting = self._parts
        found = {part for part in waiting if part in text}
        if segments:
            data, wanted = text.encode(), self._texts
            for segment in segments:
                texts = segment.texts
                hits = segment.automaton.find_matches_as_indexes(data, overlapping=True)
                if hits:
                    parts = {texts[number] for number, _, _ in hits}
                    found.update(part for part in parts if wanted.get(part))
        return found

    def _is_untidy(self) -> bool:
        """Whether too much waits, or too much is in automata in vain."""
        return self._is_full_of_others() or len(self._parts[1]) > WAITING

    def _is_full_of_others(self) -> bool:
        return len(self._texts) > 2 * self._wanted + WAITING

    def _tidy(self) -> None:
        """Build automata, unless another thread has done so."""
        segments, waiting = self._parts
        if self._is_full_of_others():
            self._merge(0)
        elif len(waiting) > WAITING:
            size, kept = len(waiting), len(segments)
            while kept and len(segments[kept - 1].texts) < GROWTH * size:
                kept -= 1
                size += len(segments[kept].texts)
            self._merge(kept)

    def _merge(self, kept: int) -> None:
        """Put the automata from one on, and what waits, into one; forget what is not wanted.

        What other threads look through is not changed: they have the automata before or after.
        """
        segments, waiting = self._parts
        held = [text for segment in segments[kept:] for text in segment.texts]
        texts = [*(text for text in held if self._texts[text]), *waiting]
        new = (_Segment.of(texts),) if texts else ()
        self._parts = (*segments[:kept], *new), {}
        self.built += len(texts)
        for text in held:
            if not self._texts[text]:
                del self._texts[text]
