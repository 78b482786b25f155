"""What tables find for one publication: which rows, and their solutions when somebody asks.

Rows of one shape that one root meets have the same solution, unless the root has several values
that a variable may be: then those are left that the row's own constraints meet.

Cost: arrays as long as there are rows; a solution is made when it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.gathering import Gathered
from graphmatch.index.shape_table import Shape
from graphmatch.index.shapes import SELF
from graphmatch.index.table_rows import Rows
from graphmatch.index.terms import Ids

Solutions: TypeAlias = tuple[tuple[int, ...], ...]
"""By solution and variable, the id of its term in the publication."""

_NONE = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class Met:
    """Rows of one table that one root meets for certain.

    Parameters
    ----------
    rows
        Their numbers.
    shapes
        The shape of each.
    known
        All shapes by number.
    gathered
        The root's values.
    constraints
        What the rows ask for, where a root's values do not all meet the row.
    """

    rows: Ids
    shapes: NDArray[np.uint16]
    known: Sequence[Shape | None]
    gathered: Gathered
    constraints: Rows | None
    _same: dict[int, Solutions] = field(default_factory=dict)

    def solutions(self, place: int) -> Solutions:
        """Return the solutions of a row."""
        number = int(self.shapes[place])
        if self.constraints is not None:
            return self._solutions(number, place)
        if number not in self._same:
            self._same[number] = self._solutions(number, place)
        return self._same[number]

    def _solutions(self, number: int, place: int) -> Solutions:
        shape = self.known[number]
        assert shape is not None
        choices = [[self.gathered.root]] * shape.star.variables
        for leaf, column in zip(shape.star.leaves, shape.columns, strict=True):
            if leaf.variable >= 0 and leaf.direction != SELF:
                choices[leaf.variable] = self._choices(column, place)
        if shape.any_will_do:
            return (tuple(some[0] for some in choices),)
        return tuple(product(*choices))

    def _choices(self, column: int, place: int) -> list[int]:
        """Return the terms of a column that meet a row."""
        values = self.gathered.values
        if column >= 0:
            part = slice(*values.interval_starts[column : column + 2].tolist())
            terms = self.gathered.interval_terms[part]
            if len(terms) > 1 and self.constraints is not None:
                low = self.constraints.lows[place, column]
                high = self.constraints.highs[place, column]
                terms = terms[(values.interval_values[part] >= low) & (values.highs[part] <= high)]
        else:
            column = -1 - column
            part = slice(*values.id_starts[column : column + 2].tolist())
            terms = self.gathered.id_terms[part]
            if len(terms) > 1 and self.constraints is not None:
                terms = terms[values.id_values[part] == self.constraints.ids[place, column]]
        chosen: list[int] = terms.tolist()
        return chosen


@dataclass(frozen=True, slots=True)
class Tabled:
    """The rows of tables that a publication meets.

    Parameters
    ----------
    rows
        The numbers of those that are met for certain, each once.
    uncertain
        The numbers of those that may be met, each once, and none of them in `rows`: an equality
        or a bound is nearer to a value than floats can tell.
    tables
        How many tables' gates were met.
    filed
        How many rows these have.
    candidates
        How many rows were looked at.
    """

    rows: Ids = field(default_factory=_NONE.copy)
    uncertain: Ids = field(default_factory=_NONE.copy)
    tables: int = 0
    filed: int = 0
    candidates: int = 0
    _met: tuple[Met, ...] = ()
    _starts: Ids = field(default_factory=_NONE.copy)
    _which: Ids = field(default_factory=_NONE.copy)
    _places: Ids = field(default_factory=_NONE.copy)

    @property
    def counts(self) -> tuple[int, ...]:
        """What this took, as `graphmatch.index.kernels` counts it."""
        joined = len(self.rows) + len(self.uncertain)
        return 0, self.tables, self.filed, self.candidates, joined

    @classmethod
    def of(
        cls, met: Sequence[Met], uncertain: Sequence[Ids], tables: int, filed: int, candidates: int
    ) -> Tabled:
        """Return what was found, by table and root."""
        counters = tables, filed, candidates
        unsure = np.concatenate([_NONE, *uncertain])
        if len(met) == 1 and not unsure.size:
            return cls(met[0].rows, unsure, *counters, tuple(met))
        unsure = np.unique(unsure)
        which = np.repeat(np.arange(len(met), dtype=np.int32), [len(one.rows) for one in met])
        places = np.concatenate([_NONE, *(np.arange(len(one.rows), dtype=np.int32) for one in met)])
        rows = np.concatenate([_NONE, *(one.rows for one in met)])
        order = np.argsort(rows, kind="stable")
        order = order[~np.isin(rows[order], unsure)]
        distinct, starts = np.unique(rows[order], return_index=True)
        ends = np.append(starts, len(order)).astype(np.int32)
        return cls(distinct, unsure, *counters, tuple(met), ends, which[order], places[order])

    def solutions(self, place: int) -> Solutions:
        """Return the solutions of ``rows[place]``."""
        if not self._starts.size:
            return self._met[0].solutions(place)
        return tuple(
            solution
            for n in range(int(self._starts[place]), int(self._starts[place + 1]))
            for solution in self._met[int(self._which[n])].solutions(int(self._places[n]))
        )
