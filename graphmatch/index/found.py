"""What the index finds for a publication: rows, and the solutions of each.

Both stay arrays of integers; terms are put in for what somebody looks at. They are the
publication's own, so a solution may be looked at when the index has changed long since.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from graphmatch.index.comparing import LEFT, MAYBE
from graphmatch.index.encoding import Encoded
from graphmatch.index.kernels import MATCH
from graphmatch.index.tabled import Tabled
from graphmatch.index.terms import Ids
from semantic.terms import Term

_ROW, _START, _FOUND, _UNDECIDED, _VARIABLES = range(MATCH)


@dataclass(frozen=True, slots=True)
class RowMatch:
    """A row that a publication meets.

    Parameters
    ----------
    row
        Its number.
    solutions
        Those that are certain: a term for each of the program's variables.
    left
        Those that filters have to decide which are no comparisons; these are true of them.
    undecided
        Those that any filter has to decide.
    """

    row: int
    solutions: tuple[tuple[Term, ...], ...]
    left: tuple[tuple[Term, ...], ...] = ()
    undecided: tuple[tuple[Term, ...], ...] = ()


class Found(Sequence[RowMatch]):
    """The rows that a publication meets.

    Parameters
    ----------
    encoded
        The publication.
    matches
        As `graphmatch.index.kernels` writes them: shape (rows, `MATCH`).
    solutions
        Where the matches' solutions are.
    tabled
        The rows of tables that are met; they come after the matches.

    Attributes
    ----------
    rows
        Their numbers.
    undecided
        By row, how many of its solutions some filter has to decide.
    uncertain
        The numbers of other rows, which may be met: that is to be evaluated.
    """

    def __init__(self, encoded: Encoded, matches: Ids, solutions: Ids, tabled: Tabled) -> None:
        self._encoded, self._matches, self._solutions = encoded, matches, solutions
        self._tabled = tabled
        self.rows: Ids = 2 * matches[:, _ROW]
        self.undecided: Ids = matches[:, _UNDECIDED]
        if len(tabled.rows):
            self.rows = np.concatenate((self.rows, tabled.rows))
            none = np.zeros(len(tabled.rows), np.int32)
            self.undecided = np.concatenate((self.undecided, none))
        self.uncertain: Ids = tabled.uncertain

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> RowMatch: ...
    @overload
    def __getitem__(self, place: slice) -> list[RowMatch]: ...
    def __getitem__(self, place: int | slice) -> RowMatch | list[RowMatch]:
        if isinstance(place, slice):
            return [self[n] for n in range(len(self))[place]]
        place = range(len(self))[place]
        row = int(self.rows[place])
        if place >= len(self._matches):
            term = self._encoded.terms.__getitem__
            tabled = self._tabled.solutions(place - len(self._matches))
            return RowMatch(row, tuple(tuple(map(term, solution)) for solution in tabled))
        bound = list(self._bound(place))
        if not self.undecided[place]:
            return RowMatch(row, tuple(solution for _, solution in bound))
        return RowMatch(
            row,
            tuple(solution for open_, solution in bound if not open_),
            tuple(solution for open_, solution in bound if open_ == LEFT),
            tuple(solution for open_, solution in bound if open_ & MAYBE),
        )

    def _bound(self, place: int) -> Iterator[tuple[int, tuple[Term, ...]]]:
        """Yield a row's solutions, and how far each is undecided."""
        _, start, found, _, variables = self._matches[place].tolist()
        term, width = self._encoded.terms.__getitem__, variables + 1
        written = self._solutions[start : start + found * width].tolist()
        for begin in range(0, len(written), width):
            yield written[begin], tuple(map(term, written[begin + 1 : begin + width]))
