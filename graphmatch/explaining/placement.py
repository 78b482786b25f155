"""How a subscription stands in the index, in words: its gate and why that one, and who shares.

Subscriptions that differ in the names of variables only share a row; those that differ in
constants only share a shape, which is joined in the same way.

Cost: who shares a shape is found by going over all rows: it is made for a person who wonders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from graphmatch.filing import Filed
from graphmatch.index.index import Index
from graphmatch.index.placing import GateFigures, Placed, is_row_of, placed
from graphmatch.index.plans import compiled
from graphmatch.index.store import SubscriptionStore
from semantic.pattern import Branch, TriplePattern

_SMALL = 0.00001
"""What is less probable is not told apart."""
_LESS = 0.99
"""Of two patterns that are as probable as this neither is the rarer one."""


@dataclass(frozen=True, slots=True)
class Placement:
    """How one entry of a subscription stands in the index.

    Parameters
    ----------
    entry
        Its patterns and filters.
    placed
        Its gate, and the patterns that it might have been filed under.
    variables
        How many variables its shape has.
    same
        How many subscriptions have the very same row, this one among them.
    alike
        How many have a row of the same shape, likewise.
    subscriptions
        How many there are.
    """

    entry: Branch
    placed: Placed
    variables: int
    same: int
    alike: int
    subscriptions: int

    def describe(self, prefixes: Mapping[str, str]) -> Iterator[str]:
        """Yield lines for people."""
        gate, counted = self.placed.gate, self.placed.counted
        figures = _figures(gate, counted)
        yield f"gate: {_write(gate, prefixes)}: {figures}; {_filed(self.placed)}"
        for other in self.placed.others:
            yield f"  rather than {_write(other, prefixes)}: {_figures(other, counted)}"
        if any(other.probability < _LESS * gate.probability for other in self.placed.others):
            yield "  which was so when it was filed; by now another one is rarer"
        yield f"shape: {', '.join(self._parts())}: {self._sharing()}"

    def _parts(self) -> Iterator[str]:
        yield _several(len(self.entry.patterns), "pattern")
        if self.entry.filters:
            yield _several(len(self.entry.filters), "filter")
        if self.variables:
            yield _several(self.variables, "variable")

    def _sharing(self) -> str:
        if self.alike == 1:
            return "that of no other subscription"
        same = f"{self.same:,}" if self.same > 1 else "no other"
        shared = f"that of {self.alike:,} of {self.subscriptions:,} subscriptions"
        return f"{shared}, {same} with these constants"


def placements(
    filed: Filed, number: int, index: Index, store: SubscriptionStore
) -> tuple[Placement, ...]:
    """Say how a subscription stands in the index, entry by entry.

    Parameters
    ----------
    filed
        How it is filed.
    number
        Its number in the store.
    """
    rows, found = store.rows(number).tolist(), []
    for entry in dict.fromkeys(filed.entries):
        asked = compiled(entry)
        row = next((row for row in rows if is_row_of(index, row, asked)), None)
        if row is not None:  # two entries may be one row
            rows.remove(row)
            same, _ = store.owners(np.array([row], np.int32))
            alike, _ = store.owners(index.rows.of(asked.program))
            found.append(
                Placement(
                    entry,
                    placed(index, row, asked),
                    asked.program.variables,
                    len(same),
                    len(np.unique(alike)),
                    len(store),
                )
            )
    return tuple(found)


def _write(gate: GateFigures, prefixes: Mapping[str, str]) -> str:
    written = gate.pattern.write(prefixes)
    return written if isinstance(gate.pattern, TriplePattern) else f"FILTER({written})"


def _filed(placed: Placed) -> str:
    rows, tabled = placed.gate.rows, placed.gate.tabled
    filed = "1 row is" if rows == 1 else f"{rows:,} rows are"
    if not tabled:
        return f"{filed} filed there"
    which = "this one among these" if placed.tabled else "this one not among these"
    return f"{filed} filed there, and {tabled:,} in its table, {which}"


def _figures(gate: GateFigures, counted: int) -> str:
    percent = f"{100 * gate.probability:.3g} %"
    if gate.probability < _SMALL:
        percent = f"less than {100 * _SMALL:.3g} %"
    if gate.rows and counted:
        return f"met by {gate.seen:,} of {_several(counted, 'publication')}, reckoned at {percent}"
    return f"{'' if gate.rows or gate.tabled else 'no gate, '}guessed by its kind at {percent}"


def _several(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
