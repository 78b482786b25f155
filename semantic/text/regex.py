"""What every match of a regular expression contains: some of its letters, as they stand.

``(^| )(two|three)s? +years`` cannot match without ``two`` or ``three``, and not without
``years``. One such set of alternatives is a *necessary* test, which an index can look for
in the same pass as all other texts; the expression itself is then asked of few texts.

The dialect is the evaluator's. Only what is certain is taken: letters, groups,
alternatives, classes and repetitions. Anything else (flags inside, look-around, character
names, nested classes) makes the whole expression one that nothing is known of.

Source: the syntax of the regex crate, https://docs.rs/regex/1/regex/#syntax; the idea of
required literals is that of R. Cox, Regular expression matching with a trigram index, 2012.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

Parts: TypeAlias = tuple[str, ...]
"""Texts of which at least one is in every match."""

MOST_PARTS = 16
"""More alternatives than these are no good test."""

_ESCAPED = frozenset("\\.+*?()|[]{}^$#&-~/'\",:;=!@%_ ")
_NO_TEXT = frozenset("dDwWsSbB")
_COUNT = re.compile(r"\{([0-9]+)(?:,[0-9]*)?\}", re.ASCII)
_REPEATS = frozenset("*+?{")


def required_parts(pattern: str, flags: str = "") -> Parts | None:
    """Return texts of which every match contains one, or ``None`` where nothing is known.

    Parameters
    ----------
    pattern
        The expression.
    flags
        Those of SPARQL's ``REGEX``. With ``i`` the parts are of small ASCII letters, and are
        in every match whose case is folded (`semantic.text.tests.Folding.CASELESS`).

    Examples
    --------
    >>> required_parts("(^| )(two|three)s? +[yY]ears?$")
    ('two', 'three')
    >>> required_parts("Straße", "i")
    ('stra',)
    >>> required_parts("(?i)sea") is None
    True
    """
    if flags not in ("", "i"):
        return None
    reader = _Reader(pattern, caseless=flags == "i")
    try:
        parts = reader.alternatives()
    except _NotUnderstoodError:
        return None
    return parts if reader.at_end and parts is not None and worth(parts) > 0 else None


def worth(parts: Parts) -> int:
    """Return how telling parts are: the length of the shortest; 0 where they tell nothing."""
    if not parts or len(parts) > MOST_PARTS:
        return 0
    return min(len(part.encode()) - 1 for part in parts)


class _NotUnderstoodError(Exception):
    """The expression has something that is not understood."""


class _Reader:
    """Reads an expression from left to right."""

    def __init__(self, pattern: str, *, caseless: bool) -> None:
        self._pattern = pattern
        self._caseless = caseless
        self._at = 0

    @property
    def at_end(self) -> bool:
        """Whether all of it was read."""
        return self._at == len(self._pattern)

    def _next(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self) -> str:
        if self.at_end:
            raise _NotUnderstoodError
        self._at += 1
        return self._pattern[self._at - 1]

    def alternatives(self) -> Parts | None:
        """Read alternatives up to a closing bracket or the end."""
        found = [self._sequence()]
        while self._next() == "|":
            self._take()
            found.append(self._sequence())
        if any(parts is None for parts in found):
            return None
        return tuple(dict.fromkeys(part for parts in found for part in parts or ()))

    def _sequence(self) -> Parts | None:
        candidates: list[Parts] = []
        run = ""
        while (char := self._next()) and char not in "|)":
            letter, parts = self._atom()
            least, repeated = self._repetition()
            if letter and least:
                run += letter
                if not repeated:
                    continue
            candidates.append((run,))
            run = ""
            if parts is not None and least:
                candidates.append(parts)
        return _best([*candidates, (run,)])

    def _atom(self) -> tuple[str, Parts | None]:
        """Read a letter, or something of which only parts are known."""
        char = self._take()
        match char:
            case "(":
                return "", self._group()
            case "[":
                self._class()
                return "", None
            case "." | "^" | "$":
                return "", None
            case "\\":
                return self._escape(), None
            case "*" | "+" | "?" | "{" | "}" | "]":
                raise _NotUnderstoodError
        return self._letter(char), None

    def _letter(self, char: str) -> str:
        if not self._caseless:
            return char
        return char.lower() if char.isascii() else ""

    def _escape(self) -> str:
        char = self._take()
        if char in _NO_TEXT:
            return ""
        if char not in _ESCAPED:
            raise _NotUnderstoodError
        return char

    def _group(self) -> Parts | None:
        if self._next() == "?":
            if self._pattern[self._at : self._at + 2] != "?:":
                raise _NotUnderstoodError
            self._at += 2
        parts = self.alternatives()
        if self._take() != ")":
            raise _NotUnderstoodError
        return parts

    def _class(self) -> None:
        """Read a class: it has no text of its own."""
        if self._next() == "^":
            self._take()
        if self._next() == "]":
            raise _NotUnderstoodError
        while (char := self._take()) != "]":
            if char == "[":
                raise _NotUnderstoodError
            if char == "\\":
                self._take()

    def _repetition(self) -> tuple[int, bool]:
        """Read how often what stands before is repeated: at least how often, and whether."""
        char = self._next()
        if not char or char not in _REPEATS:
            return 1, False
        if char == "{":
            count = _COUNT.match(self._pattern, self._at)
            if count is None:
                raise _NotUnderstoodError
            self._at = count.end()
            least = 1 if count[1].strip("0") else 0
        else:
            self._take()
            least = 1 if char == "+" else 0
        if self._next() == "?":
            self._take()
        if self._next() and self._next() in _REPEATS:
            raise _NotUnderstoodError
        return least, True


def _best(candidates: Iterable[Parts]) -> Parts | None:
    """Return the most telling of several sets of parts; ``None`` where none tells anything."""
    best = max(candidates, key=worth)
    return best if worth(best) > 0 else None
