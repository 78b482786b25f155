"""What tables find for one publication: which rows, and their solutions when somebody asks.

Rows of one shape that one root meets have the same solution, unless the root has several values
that a variable may be: then those are left that the row's own constraints meet.

Cost: arrays as long as there are rows; a solution is made when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.gathering import Gathered
from graphmatch.index.paths import Paths
from graphmatch.index.shape_table import Shape
from graphmatch.index.stars import Leaf
from graphmatch.index.table_rows import Rows
from graphmatch.index.table_written import Written
from graphmatch.index.terms import Ids
from graphmatch.index.walking import walks

Solutions: TypeAlias = tuple[tuple[int, ...], ...]
"""By solution and variable, the id of its term in the publication."""

_NONE = np.empty(0, np.int32)


class Constraints:
    """What rows ask for, read when somebody wants to know.

    Parameters
    ----------
    written, slots
        What their table held, and where they were in it.
    """

    __slots__ = ("_rows", "_slots", "_written")

    def __init__(self, written: Written, slots: Ids) -> None:
        self._written, self._slots = written, slots
        self._rows: Rows | None = None

    def rows(self) -> Rows:
        """Return what the rows ask for."""
        if self._rows is None:
            self._rows = self._written.rows_at(self._slots)
        return self._rows


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
    paths
        The paths of columns that are several steps away.
    constraints
        What the rows ask for, where a root's values do not all meet the row.
    """

    rows: Ids
    shapes: NDArray[np.uint16]
    known: Sequence[Shape | None]
    gathered: Gathered
    paths: Paths
    constraints: Constraints | None
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
        variables = [shape.star.root]
        choices: list[Iterable[tuple[int, ...]]] = [[(self.gathered.root,)]]
        for leaf, column in zip(shape.star.leaves, shape.columns, strict=True):
            if leaf.between:
                variables += leaf.between
                choices.append(self._walks(leaf, column, place))
            elif leaf.steps and leaf.variable >= 0:
                choices.append((term,) for term in self._choices(column, place))
            if leaf.steps and leaf.variable >= 0:
                variables.append(leaf.variable)
        where = sorted(range(len(variables)), key=variables.__getitem__)
        if shape.any_will_do:
            choices = [[next(iter(some))] for some in choices]
        bound = (tuple(chain.from_iterable(one)) for one in product(*choices))
        return tuple(tuple(terms[n] for n in where) for terms in bound)

    def _walks(self, leaf: Leaf, column: int, place: int) -> Iterator[tuple[int, ...]]:
        """Yield what the variables of an arm may be, one after the other."""
        ends = set(self._choices(column, place))
        number, _, _ = self._column(column)
        bound = len(leaf.between) + (leaf.variable >= 0)
        for walk in walks(self.gathered.graph, self.gathered.root, self.paths.steps(number)):
            if walk[-1] in ends:
                yield walk[:bound]

    def _column(self, column: int) -> list[int]:
        """Return a column's property, direction and kind."""
        gathered = self.gathered
        own = gathered.intervals[column] if column >= 0 else gathered.ids[-1 - column]
        path: list[int] = own.tolist()
        return path

    def _choices(self, column: int, place: int) -> list[int]:
        """Return the terms of a column that meet a row."""
        values = self.gathered.values
        if column >= 0:
            part = slice(*values.interval_starts[column : column + 2].tolist())
            terms = self.gathered.interval_terms[part]
            if len(terms) > 1 and self.constraints is not None:
                rows = self.constraints.rows()
                low, high = rows.lows[place, column], rows.highs[place, column]
                terms = terms[(values.interval_values[part] >= low) & (values.highs[part] <= high)]
        else:
            column = -1 - column
            part = slice(*values.id_starts[column : column + 2].tolist())
            terms = self.gathered.id_terms[part]
            if len(terms) > 1 and self.constraints is not None:
                terms = terms[values.id_values[part] == self.constraints.rows().ids[place, column]]
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


NONE_MET = Tabled()
"""Of a publication that meets no table."""
