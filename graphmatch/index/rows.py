"""Rows: what the index is asked for, one after the other in one array.

A row is a plan and constants. A constant that is the subject or object of several patterns stands
there once, so that a row of eight patterns fits a line of memory. One that is asked for twice is
stored once: rows are found again by their content. A row's number stays as long as somebody has it.

Cost: about 1 µs a row when many come at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.arrays import grown
from graphmatch.index.gates import OBJ, SUBJ, Gates, new_gates, with_room
from graphmatch.index.joins import GATE, HEADER, PLAN, SLOT
from graphmatch.index.plans import Layout, PlanTable, Program
from graphmatch.index.row_kernels import NUMBER, Stored, insert, refill, repeated, take_out
from graphmatch.index.runs import Array, Longs
from graphmatch.index.terms import Ids

_SMALLEST = 16
_MORE = 0.25
"""Arrays of rows, which take most of the memory, grow by so much."""
Full: TypeAlias = tuple[int, int]
NEVER = 0, 0
_FEW = 4096
"""So many rows find room at once of which most may be tabled."""
_FOLDED = 16
"""So many subjects and objects, at the most, are looked at for repetition."""


class Rows:
    """The rows of an index, filed under gates.

    Examples
    --------
    >>> rows = Rows()
    >>> program = Program(((0, -1, -1),), (), 1)
    >>> rows.add_many(program, np.array([[4, 5], [4, 6], [4, 5]], np.int32)).tolist()
    [0, 1, 0]
    >>> rows.remove(0), rows.remove(0), len(rows)
    (False, True, 1)
    """

    def __init__(self) -> None:
        self.plans = PlanTable()
        self.gates = new_gates()
        self._rows = Stored(
            np.zeros(SLOT * _SMALLEST, np.int32),
            np.zeros(_SMALLEST, np.int32),
            np.full(2 * _SMALLEST, -1, np.int32),
            self.plans.code,
            np.zeros(0, np.int64),
        )
        self._end = 0
        self._live = 0
        self._holes: defaultdict[int, list[int]] = defaultdict(list)
        self._shapes: dict[Program, _Shape] = {}

    def __len__(self) -> int:
        return self._live

    @property
    def arena(self) -> Ids:
        """All rows, one after the other."""
        return self._rows.arena

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, in use or not."""
        return sum(array.nbytes for array in (*self._rows, *self.gates))

    def program(self, row: int) -> Program:
        """Return a row's program."""
        return self.plans.program(self._plan(row))

    def constants(self, row: int) -> Ids:
        """Return a row's constants: its patterns', then the others."""
        begin = row * SLOT + HEADER
        return self.arena[begin + self.plans.layout(self._plan(row))]

    def of(self, program: Program) -> Ids:
        """Return the rows of a program, in no order: all rows are looked at."""
        live = self._rows.same[self._rows.same >= 0]
        plans = self.arena[live * SLOT + PLAN] >> 1
        alike = [plan for plan in np.unique(plans).tolist() if self.plans.program(plan) == program]
        return live[np.isin(plans, alike)]

    def gate(self, row: int) -> Ids:
        """Return the constants of a row's gate."""
        found: Ids = self.gates.records[self.arena[row * SLOT + GATE], SUBJ : OBJ + 1]
        return found

    def _plan(self, row: int) -> int:
        return int(self.arena[row * SLOT + PLAN]) >> 1

    # -- coming and going -------------------------------------------------------------------

    def add_many(self, program: Program, constants: Ids, *, any_will_do: bool = False) -> Ids:
        """Take rows of one program in, and return their numbers.

        Parameters
        ----------
        constants
            Shape (rows, constants): the patterns', then the others.
        any_will_do
            Whether one solution of a row is as good as all.
        """
        said = self.file_many(program, constants, any_will_do=any_will_do)
        return np.ascontiguousarray(said[:, NUMBER])

    def file_many(
        self,
        program: Program,
        constants: Ids,
        *,
        any_will_do: bool = False,
        full: Full = NEVER,
        mentions: Longs | None = None,
    ) -> Ids:
        """Do what `add_many` does, and say what became of each row.

        Parameters
        ----------
        full
            With so many rows a gate takes no more of these; 0: it always does. The second number
            is for rows that have a second rare pattern.
        mentions
            By id, how often rows mention it.

        Returns
        -------
        said
            Shape (rows, 2): see `row_kernels.NUMBER` and `row_kernels.FATE`.
        """
        if mentions is not None:
            self._rows = self._rows._replace(mentions=mentions)
        shape = self._shapes.get(program)
        if shape is None:
            shape = self._shapes[program] = _Shape(_foldable(program), {})
        codes = np.empty(len(constants), np.int64)
        if repeated(constants, shape.foldable, codes):
            folding = self._folding(program, shape, int(codes[0]), constants.shape[1])
            kept = constants[:, folding.columns]
            return self._insert(folding.plan << 1 | any_will_do, kept, full)
        said = np.empty((len(constants), 2), np.int32)
        for code in np.unique(codes).tolist():
            folding = self._folding(program, shape, code, constants.shape[1])
            chosen = codes == code
            kept = constants[chosen][:, folding.columns]
            said[chosen] = self._insert(folding.plan << 1 | any_will_do, kept, full)
        return said

    def _insert(self, plan: int, constants: Ids, full: Full) -> Ids:
        """Take rows of one plan in, and say what became of them."""
        constants = np.ascontiguousarray(constants)
        count, width = constants.shape
        slots = -(-(HEADER + width) // SLOT)
        said = np.empty((count, 2), np.int32)
        step = _FEW if full[0] else max(1, count)  # those that are tabled need no room
        for start in range(0, count, step):
            part = slice(start, start + step)
            self._insert_part(plan, constants[part], full, said[part], slots)
        return said

    def _insert_part(self, plan: int, constants: Ids, full: Full, said: Ids, slots: int) -> None:
        self._make_room(len(constants))
        free = self._numbers(len(constants), slots)
        progress = np.zeros(2, np.int32)
        while not insert(self._rows, self.gates, plan, constants, free, full, said, progress):
            self.gates = with_room(self.gates)
        new = int(progress[1])
        self._live += new
        self._holes[slots].extend(free[new:].tolist())

    def remove(self, row: int) -> bool:
        """Take a row away that was taken in; return whether nobody has it any more."""
        self._rows.uses[row] -= 1
        if self._rows.uses[row]:
            return False
        slots = take_out(self._rows, self.gates, row)
        self._holes[slots].append(row)
        self._live -= 1
        return True

    def _folding(self, program: Program, shape: _Shape, code: int, width: int) -> _Folding:
        folding = shape.foldings.get(code)
        if folding is None:
            layout, columns = _layout(code, shape.foldable.tolist(), width)
            plan = self.plans.plan(program, layout)
            folding = shape.foldings[code] = _Folding(plan, columns)
        return folding

    # -- saving -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, Array]:
        """Return all that is to be saved but the plans; `of_arrays` makes the same rows of it."""
        holes = [(slots, hole) for slots, some in self._holes.items() for hole in some]
        return {
            "arena": self._rows.arena[: SLOT * self._end],
            "uses": self._rows.uses[: self._end],
            "same": self._rows.same,
            "holes": np.array(holes, np.int32).reshape(-1, 2),
            "sizes": np.array([self._end, self._live]),
            **{f"gates.{name}": array for name, array in self.gates._asdict().items()},
        }

    @classmethod
    def of_arrays(cls, plans: PlanTable, arrays: Mapping[str, Array]) -> Rows:
        """Return the rows that gave these arrays, which are written on, and had these plans."""
        rows = cls()
        rows.plans = plans
        rows.gates = Gates(*(arrays[f"gates.{name}"] for name in Gates._fields))
        rows._rows = Stored(
            arrays["arena"], arrays["uses"], arrays["same"], plans.code, rows._rows.mentions
        )
        for slots, hole in arrays["holes"].tolist():
            rows._holes[slots].append(hole)
        rows._end, rows._live = arrays["sizes"].tolist()
        return rows

    # -- room -------------------------------------------------------------------------------

    def _numbers(self, count: int, slots: int) -> Ids:
        """Return numbers for so many new rows."""
        holes = self._holes[slots]
        kept = max(0, len(holes) - count)
        reused = holes[kept:]
        del holes[kept:]
        if slots > 1 and self._end & 1:
            self._holes[1].append(self._end)
            self._end += 1
        end = self._end + slots * (count - len(reused))
        new = np.arange(self._end, end, slots, dtype=np.int32)
        self._end = end
        rows = self._rows
        if SLOT * end > len(rows.arena) or end > len(rows.uses) or rows.code is not self.plans.code:
            self._rows = rows._replace(
                arena=grown(rows.arena, SLOT * end, _MORE),
                uses=grown(rows.uses, end, _MORE),
                code=self.plans.code,
            )
        free = np.empty(count, np.int32)
        free[: len(reused)] = reused[::-1]
        free[len(reused) :] = new
        return free

    def _make_room(self, count: int) -> None:
        """Make room for so many more rows."""
        rows = self._rows
        if 2 * (self._live + count) > len(rows.same):
            size = len(rows.same)
            while size < 2 * (self._live + count):
                size *= 2
            self._rows = rows._replace(same=np.full(size, -1, np.int32), code=self.plans.code)
            refill(self._rows, rows.same[rows.same >= 0])


class _Folding(NamedTuple):
    """A plan, and which columns of constants its rows keep."""

    plan: int
    columns: NDArray[np.intp]


class _Shape(NamedTuple):
    """Which constants of a program may be kept once; by code of `repeated`, how they are."""

    foldable: Ids
    foldings: dict[int, _Folding]


def _foldable(program: Program) -> Ids:
    """Return which constants are subjects or objects: those that may be kept once."""
    places = [n for places in program.patterns for n, v in enumerate(places) if v < 0]
    return np.array([c for c, place in enumerate(places) if place != 1][:_FOLDED], np.int32)


def _layout(code: int, foldable: list[int], width: int) -> tuple[Layout, NDArray[np.intp]]:
    """Return where each constant is, and which columns are kept, for a code of `repeated`."""
    same_as = list(range(width))
    for n, column in enumerate(foldable[1:]):
        same_as[column] = foldable[code >> 4 * n & 15]
    columns = [column for column in range(width) if same_as[column] == column]
    place = {column: n for n, column in enumerate(columns)}
    return tuple(place[column] for column in same_as), np.array(columns, np.intp)
