"""Tests of one kind of text in one folding, kept by their operators and constants.

What is contained is found by `semantic.text.substrings`; everything else by looking
up parts of the text in dictionaries: its beginnings and ends of the lengths that tests have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from semantic.text.folding import ascii_lower
from semantic.text.substrings import Substrings
from semantic.text.tests import TextOperator, TextTest, View

Own: TypeAlias = tuple[str, str | None] | None
"""The text and the language of a string literal; ``None`` for other terms."""

_Condition: TypeAlias = str | None
_ANY, _PLAIN, _NEVER = "*", None, ""
"""What a text has to belong to: anything; a string literal, or (for equality) one without a
language; nothing at all. Other conditions are language tags."""

_Entry: TypeAlias = tuple[_Condition, int]


class _Table:
    """Constants, each with the tests that have it."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[str, _Entry | dict[_Entry, None]] = {}

    def __contains__(self, text: str) -> bool:
        return text in self._entries

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, text: str, entry: _Entry) -> None:
        known = self._entries.get(text)
        if known is None:
            self._entries[text] = entry
            return
        several = {known: None} if isinstance(known, tuple) else known
        if entry in several:
            raise ValueError(f"a test of {text!r} was added before with the number {entry[1]}")
        several[entry] = None
        self._entries[text] = several

    def remove(self, text: str, entry: _Entry) -> None:
        known = self._entries[text]
        if isinstance(known, dict):
            del known[entry]
            if known:
                return
        elif known != entry:
            raise KeyError(entry)
        del self._entries[text]

    def passed(self, texts: Iterable[str], allowed: tuple[_Condition, ...]) -> Iterator[int]:
        """Yield the numbers of the tests of some constants whose condition is allowed."""
        entries = self._entries
        for text in texts:
            known = entries.get(text)
            if isinstance(known, tuple):
                if known[0] in allowed:
                    yield known[1]
            elif known is not None:
                yield from [number for condition, number in known if condition in allowed]


class _Lengths:
    """The lengths of constants, the shortest first."""

    __slots__ = ("_counts", "_sorted")

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._sorted: list[int] = []

    def add(self, length: int) -> None:
        self._counts[length] += 1
        if self._counts[length] == 1:
            self._sorted = sorted(self._counts)

    def remove(self, length: int) -> None:
        self._counts[length] -= 1
        if not self._counts[length]:
            del self._counts[length]
            self._sorted = sorted(self._counts)

    def __bool__(self) -> bool:
        return bool(self._sorted)

    def up_to(self, length: int) -> Iterator[int]:
        for one in self._sorted:
            if one > length:
                return
            yield one


class KeptTests:
    """Tests of one kind of text in one folding; see `semantic.text.index.TextIndex`."""

    __slots__ = ("_lengths", "_size", "_substrings", "_tables")

    def __init__(self) -> None:
        self._tables = {operator: _Table() for operator in TextOperator}
        self._lengths = {operator: _Lengths() for operator in TextOperator}
        self._substrings = Substrings()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, test: TextTest, number: int) -> None:
        """Add a test."""
        operator, text = test.operator, _constant(test)
        table = self._tables[operator]
        new = text not in table
        table.add(text, (_condition(test), number))
        self._size += 1
        if new and operator is TextOperator.CONTAINS and text:
            self._substrings.add(text)
        elif new:
            self._lengths[operator].add(len(text))

    def remove(self, test: TextTest, number: int) -> None:
        """Remove a test."""
        operator, text = test.operator, _constant(test)
        table = self._tables[operator]
        table.remove(text, (_condition(test), number))
        self._size -= 1
        if text in table:
            return
        if operator is TextOperator.CONTAINS and text:
            self._substrings.remove(text)
        else:
            self._lengths[operator].remove(len(text))

    def satisfied(self, text: str, own: Own) -> Iterator[int]:
        """Yield the numbers of the tests that a text passes.

        Parameters
        ----------
        text
            The text, folded.
        own
            The string literal whose text it is.
        """
        loose, strict = _allowed(own)
        for operator, table in self._tables.items():
            if table:
                equal = operator in (TextOperator.EQUALS, TextOperator.MATCHES)
                yield from table.passed(self._found(operator, text), strict if equal else loose)

    def _found(self, operator: TextOperator, text: str) -> Iterable[str]:
        """Return constants that stand where the operator looks; perhaps nobody's."""
        lengths = self._lengths[operator]
        match operator:
            case TextOperator.CONTAINS:
                found = self._substrings.found_in(text)
                return (*found, "") if lengths else found
            case TextOperator.STARTS:
                return (text[:length] for length in lengths.up_to(len(text)))
            case TextOperator.ENDS:
                return (text[len(text) - length :] for length in lengths.up_to(len(text)))
            case TextOperator.EQUALS:
                return (text,)
            case TextOperator.MATCHES:
                return _ranges(ascii_lower(text), lengths)


def _ranges(tag: str, lengths: _Lengths) -> Iterator[str]:
    """Yield the language ranges that a tag is in."""
    if tag:
        yield "*"
    for length in lengths.up_to(len(tag)):
        if (length == len(tag) or tag[length] == "-") and tag[:length] != "*":
            yield tag[:length]


def _constant(test: TextTest) -> str:
    constant = test.argument.value
    return ascii_lower(constant) if test.operator is TextOperator.MATCHES else constant


def _condition(test: TextTest) -> _Condition:
    """Return what a test wants of the term that it is asked of."""
    wanted = test.argument.language
    if test.view is not View.TERM:
        return _ANY if wanted is None else _NEVER
    if wanted is not None and test.operator is TextOperator.MATCHES:
        return _NEVER
    return wanted


def _allowed(own: Own) -> tuple[tuple[_Condition, ...], tuple[_Condition, ...]]:
    """Return the conditions that a term meets: for parts of its text, and for equality."""
    if own is None:
        return (_ANY,), (_ANY,)
    return (_PLAIN, _ANY, own[1]), (own[1], _ANY)
