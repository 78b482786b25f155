"""All rows of an index: those in the arena, and those in the tables of crowded gates.

A row is taken to the gate that publications have least often. Where many rows are filed there
already, one that is a star goes to the gate's table (`graphmatch.index.tables`), the others into
the arena (`graphmatch.index.rows`). Numbers of the former are odd, those of the latter even.

Whoever adds a row has taken its constants for that, once a use. A row in a table does not need the
numbers that it compares with; these are given back here.

Cost: that of the arena and of the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphmatch.index.comparing import Values
from graphmatch.index.doors import Door
from graphmatch.index.encoding import Encoded
from graphmatch.index.plans import PlanTable, Program
from graphmatch.index.row_kernels import FATE, NUMBER, TABLED
from graphmatch.index.rows import Rows
from graphmatch.index.runs import Array, part
from graphmatch.index.shapes import Asked, asked_of
from graphmatch.index.stars import Star, star_of
from graphmatch.index.tabled import Tabled
from graphmatch.index.tables import Ask, Tables
from graphmatch.index.terms import Ids, Terms

FULL = 128
"""With so many rows at a gate, others go to its table: to join as many takes as long as to ask a
small table."""
PAIRED = 8
"""So many times as many, where rows have a second rare pattern: most are passed over by that."""
_AT_ONCE = 2**18
"""So many rows at the most are made columns of at once: they take memory."""


class AllRows:
    """The rows of an index, by number.

    Parameters
    ----------
    terms
        The terms whose ids constants are.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> terms = Terms()
    >>> rows = AllRows(terms)
    >>> program = Program(((0, -1, -1),), (), 1)
    >>> ids = terms.take([NamedNode("urn:p"), NamedNode("urn:o")])
    >>> rows.add_many(program, ids.reshape(1, -1)).tolist(), len(rows)
    ([0], 1)
    >>> rows.held(0).tolist() == ids.tolist(), rows.remove(0)
    (True, True)
    """

    def __init__(self, terms: Terms) -> None:
        self.arena = Rows()
        """The rows with even numbers, by half of them."""
        self._tables = Tables()
        self._terms = terms
        self._stars: dict[Program, Star | None] = {}

    def __len__(self) -> int:
        return len(self.arena) + len(self._tables)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, in use or not."""
        return self.arena.nbytes + self._tables.nbytes

    @property
    def tabled(self) -> int:
        """How many rows are in tables."""
        return len(self._tables)

    @property
    def kinds(self) -> int:
        """The kinds of look-up that a publication is to be ready for, a bit each."""
        return self.arena.plans.kinds | self._tables.kinds

    @property
    def compare(self) -> bool:
        """Whether terms are compared with constants."""
        return self.arena.plans.compare

    def program(self, row: int) -> Program:
        """Return a row's program."""
        return self._tables.shape(row >> 1).program if row & 1 else self.arena.program(row >> 1)

    def held(self, row: int) -> Ids:
        """Return the ids that a use of a row holds: to be given back when it is removed."""
        if row & 1:
            return np.array(self._tables.held(row >> 1), np.int32)
        return self.arena.constants(row >> 1)

    def of(self, program: Program) -> Ids:
        """Return the rows of a program, in no order: all rows are looked at."""
        return np.concatenate([2 * self.arena.of(program), 2 * self._tables.of(program) + 1])

    def gate(self, row: int) -> Ids:
        """Return the constants of a row's gate."""
        if row & 1:
            return np.array(self._tables.gate(row >> 1), np.int32)
        return self.arena.gate(row >> 1)

    def tabled_under(self, gate: tuple[int, int, int]) -> int:
        """Return how many rows are in the tables of a gate."""
        return self._tables.filed_under(gate)

    # -- saving -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of all that is to be saved."""
        parts = {"arena": self.arena.arrays(), "tables": self._tables.arrays()}
        return {f"{key}.{name}": a for key, own in parts.items() for name, a in own.items()}

    def document(self) -> dict[str, Any]:
        """Return the rest of it, as JSON can hold it."""
        return {"plans": self.arena.plans.document(), "shapes": self._tables.document()}

    @classmethod
    def of_saved(
        cls, terms: Terms, document: Mapping[str, Any], arrays: Mapping[str, Array]
    ) -> AllRows:
        """Return the rows that gave these arrays, which are written on, and this document."""
        rows = cls(terms)
        plans = PlanTable.of_document(document["plans"])
        rows.arena = Rows.of_arrays(plans, part(arrays, "arena"))
        rows._tables = Tables.of_saved(document["shapes"], part(arrays, "tables"))
        return rows

    # -- coming and going -------------------------------------------------------------------

    def add_many(self, program: Program, constants: Ids, *, any_will_do: bool = False) -> Ids:
        """Take rows of one program in, and return their numbers.

        Parameters
        ----------
        constants
            Shape (rows, constants): the patterns', then the others; each has been taken for this.
        any_will_do
            Whether one solution of a row is as good as all.
        """
        star = self._star(program)
        numbers = np.empty(len(constants), np.int32)
        for start in range(0, len(constants), _AT_ONCE):
            some = constants[start : start + _AT_ONCE]
            own = numbers[start : start + _AT_ONCE]
            said = self._filed(program, some, any_will_do=any_will_do, full=FULL if star else 0)
            own[:] = 2 * said[:, NUMBER]
            tabled = np.flatnonzero(said[:, FATE] >= TABLED)
            if star is not None and tabled.size:
                ask = Ask(program, star, any_will_do)
                own[tabled] = self._to_tables(ask, some[tabled], said[tabled])
        return numbers

    def _filed(self, program: Program, constants: Ids, *, any_will_do: bool, full: int = 0) -> Ids:
        """Take rows to the arena; return what became of each."""
        return self.arena.file_many(
            program,
            constants,
            any_will_do=any_will_do,
            full=(full, PAIRED * full),
            mentions=self._terms.mentioned(),
        )

    def _star(self, program: Program) -> Star | None:
        if program not in self._stars:
            self._stars[program] = star_of(program)
        return self._stars[program]

    def _to_tables(self, ask: Ask, constants: Ids, said: Ids) -> Ids:
        """Take rows to the tables of their gates; return their numbers."""
        paths = self._tables.paths
        asked = asked_of(ask.star, constants, self._terms.numbers, paths)
        steps = said[:, FATE] - TABLED
        gates = np.full((len(constants), len(Door._fields)), -1, np.int32)
        gates[:, :3] = self.arena.gates.records[said[:, NUMBER], :3]
        for n in np.unique(steps).tolist():
            way = ask.star.ways[n]
            own = np.flatnonzero(steps == n)
            gates[own, 3] = way.direction
            if way.steps:
                back = constants[own][:, [column for column, _ in way.steps]]
                gates[own, 4] = paths.numbers((d for _, d in way.steps), back)
        numbers = np.full(len(constants), -1, np.int32)
        chosen = np.flatnonzero(asked.tabled)
        if chosen.size:
            rows = self._tables.add_many(ask, asked[chosen], gates[chosen])
            numbers[chosen] = 2 * rows + 1
            chosen = chosen[rows >= 0]
            self._give_back(ask.star, asked[chosen], constants[chosen])
        rest = np.flatnonzero(numbers < 0)
        if rest.size:
            left = self._filed(ask.program, constants[rest], any_will_do=ask.any_will_do)
            numbers[rest] = 2 * left[:, NUMBER]
        return numbers

    def _give_back(self, star: Star, asked: Asked, constants: Ids) -> None:
        """Give back what rows of tables do not need: the numbers that they compare with."""
        for n, leaf in enumerate(star.leaves):
            compares = ~np.isnan(asked.lows[:, n])
            for _, constant in leaf.checks:
                self._terms.release(constants[compares, constant])

    def remove(self, row: int) -> bool:
        """Take a row away that was taken in; return whether nobody has it any more."""
        return (self._tables if row & 1 else self.arena).remove(row >> 1)

    # -- matching ---------------------------------------------------------------------------

    def match_tables(self, encoded: Encoded) -> Tabled:
        """Return the rows of tables that a publication meets."""
        return self._tables.match(encoded.graph, Values(self._terms.numbers, encoded.local))
