"""How a subscription stands in the index, in words: its access pattern and why that one.

Cost: a look-up in the compiled core.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from graphmatch import _native
from semantic.terms import compact

Pattern: TypeAlias = Sequence[str | None]
"""The terms of an access pattern as N-Triples has them; ``None`` for any."""

_SMALL = 0.00001
"""What is less probable is not told apart."""


@dataclass(frozen=True, slots=True)
class Placement:
    """How one row of a subscription is filed.

    Parameters
    ----------
    access
        The access pattern that it is filed under.
    second
        The pattern that is looked for next, before the row is joined.
    frequency
        The estimated share of publications that have the access pattern.
    met, sampled
        How many of the sampled publications had it, and how many these are.
    postings
        How many rows are filed under it.
    alike
        How many rows have the same join program: the same patterns but for constants.
    """

    access: Pattern
    second: Pattern | None
    frequency: float
    met: int
    sampled: int
    postings: int
    alike: int

    def describe(self, prefixes: Mapping[str, str]) -> Iterator[str]:
        """Yield lines for people."""
        written = _write(self.access, prefixes)
        yield f"access pattern: {written}: {self._figures()}; {_filed(self.postings)}"
        if self.second is not None:
            yield f"  then looked for: {_write(self.second, prefixes)}"
        shared = "no other row" if self.alike == 1 else f"{self.alike - 1:,} other rows"
        yield f"query template: shared with {shared}"

    def _figures(self) -> str:
        percent = f"{100 * self.frequency:.3g} %"
        if self.frequency < _SMALL:
            percent = f"less than {100 * _SMALL:.3g} %"
        if self.met:
            return f"met by {self.met:,} of {self.sampled:,} publications, estimated at {percent}"
        return f"estimated at {percent} of publications"


def _write(pattern: Pattern, prefixes: Mapping[str, str]) -> str:
    return " ".join(
        "*" if text is None else compact(_native.term(text), prefixes) for text in pattern
    )


def _filed(rows: int) -> str:
    return "1 row is filed there" if rows == 1 else f"{rows:,} rows are filed there"
