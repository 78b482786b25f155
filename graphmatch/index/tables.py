"""The tables of crowded gates: rows that differ in numbers and ids only.

A gate that has many rows sends those to a table that are stars (`graphmatch.index.stars`). Gates
whose rows have the same columns share a table, as long as it is not large: to ask a table takes
longer than to look at some thousand rows more. All rows of a table are asked at once for the values
that hang on one root (`graphmatch.index.gathering`), for each root that one of its gates leads to
(`graphmatch.index.doors`).

A row is known by a number, found again by a hash of its content, and written nowhere but in its
table: what it asks for is read back from there. Its shape says which columns it has
(`graphmatch.index.shape_table`).

Cost: 19 bytes a row beside the table's, and some microseconds to take one in among many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.alike import alike, equal, hashes_of, short
from graphmatch.index.arrays import distinct, grown
from graphmatch.index.comparing import Values as Compared
from graphmatch.index.contents import Contents, Hashes
from graphmatch.index.doors import Door, Doors
from graphmatch.index.gate_table import GateTable
from graphmatch.index.gathering import Gathered, gathered
from graphmatch.index.paths import Paths
from graphmatch.index.plans import Program
from graphmatch.index.runs import Array, part
from graphmatch.index.shape_table import Shape, ShapeTable
from graphmatch.index.shapes import Asked
from graphmatch.index.stars import Star
from graphmatch.index.tabled import NONE_MET, Constraints, Met, Tabled
from graphmatch.index.terms import Ids
from graphmatch.index.walking import LOOKUPS, ways_of

SHARED = 2**17
"""A table that has so many rows takes no more gates."""
_MORE = 0.25
REFUSED = -1
"""What a row gets for a number that would need one shape too many."""


class Ask(NamedTuple):
    """What rows of one program ask."""

    program: Program
    star: Star
    any_will_do: bool


class Tables:
    """All tables, and the numbers of their rows.

    Several threads may match at once while nobody changes them. Rows come from
    `graphmatch.index.all_rows`.
    """

    def __init__(self) -> None:
        self.paths = Paths()
        """The paths of columns that are several steps away."""
        self._doors = Doors()
        self._tables: list[GateTable | None] = []
        self._shared: dict[tuple[int, ...], int] = {}
        self._shapes = ShapeTable()
        self._slot, self._shape = np.zeros(16, np.int32), np.zeros(16, np.uint16)
        self._door = np.zeros(16, np.int32)
        self._made = 0
        self._holes: list[int] = []
        self._more_uses: dict[int, int] = {}
        self._contents = Contents()

    def __len__(self) -> int:
        return len(self._contents)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, in use or not."""
        own = self._slot.nbytes + self._shape.nbytes + self._door.nbytes + self._contents.nbytes
        return own + sum(table.rows.nbytes for table in self._tables if table is not None)

    @property
    def kinds(self) -> int:
        """The kinds of look-up that matching needs, a bit each."""
        return LOOKUPS if len(self) else 0

    def shape(self, row: int) -> Shape:
        """Return a row's shape."""
        return self._shapes[int(self._shape[row])]

    def held(self, row: int) -> list[int]:
        """Return the ids that a row mentions."""
        shape = self.shape(row)
        return self._table(shape.table).held(int(self._slot[row]), shape.columns, self.paths)

    def of(self, program: Program) -> Ids:
        """Return the rows of a program, in no order: all rows are looked at."""
        known = enumerate(self._shapes.known)
        alike = [n for n, shape in known if shape is not None and shape.program == program]
        found = np.flatnonzero(np.isin(self._shape[: self._made], alike))
        return np.setdiff1d(found, self._holes).astype(np.int32)

    def gate(self, row: int) -> tuple[int, int, int]:
        """Return the constants of the gate whose table a row is in."""
        return self._doors[int(self._door[row])][:3]

    def filed_under(self, gate: tuple[int, int, int]) -> int:
        """Return how many rows a gate has in tables."""
        return self._doors.of(gate)

    def _table(self, place: int) -> GateTable:
        table = self._tables[place]
        assert table is not None
        return table

    # -- saving -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of all that is to be saved."""
        uses = [*self._more_uses.items()]
        parts = {
            "contents": self._contents.arrays(),
            "paths": self.paths.arrays(),
            "doors": self._doors.arrays(),
        }
        places = [place for place, table in enumerate(self._tables) if table is not None]
        parts |= {str(place): self._table(place).arrays() for place in places}
        return {
            "slot": self._slot[: self._made],
            "shape": self._shape[: self._made],
            "door": self._door[: self._made],
            "holes": np.array(self._holes, np.int32),
            "uses": np.array(uses, np.int64).reshape(-1, 2),
            "places": np.array(places, np.int32),
            **{f"{key}.{name}": a for key, own in parts.items() for name, a in own.items()},
        }

    def document(self) -> list[Any]:
        """Return the rest of it, as JSON can hold it."""
        return self._shapes.document()

    @classmethod
    def of_saved(cls, document: Sequence[Any], arrays: Mapping[str, Array]) -> Tables:
        """Return the tables that gave these arrays, which are written on, and this document."""
        tables = cls()
        tables._slot, tables._shape = arrays["slot"], arrays["shape"]
        tables._door = arrays["door"]
        tables._made, tables._holes = len(tables._slot), arrays["holes"].tolist()
        tables._more_uses = dict(arrays["uses"].tolist())
        tables._contents = Contents.of_arrays(part(arrays, "contents"))
        tables._shapes = ShapeTable.of_document(document)
        tables.paths = Paths.of_arrays(part(arrays, "paths"))
        tables._doors = Doors.of_arrays(part(arrays, "doors"))
        places = arrays["places"].tolist()
        tables._tables = [None] * (max(places, default=-1) + 1)
        for place in places:
            tables._tables[place] = GateTable.of_arrays(part(arrays, str(place)))
        for shape in tables._shapes.all():
            tables._shared[tables._table(shape.table).kind(shape.columns)] = shape.table
        return tables

    # -- coming and going -------------------------------------------------------------------

    def add_many(self, ask: Ask, asked: Asked, gates: Ids) -> Ids:
        """Take rows in; return the number of each, or `REFUSED`.

        Parameters
        ----------
        gates
            By row, through which door it goes if it is new: see `graphmatch.index.doors.Door`.
        """
        hashes = hashes_of((ask.program, ask.any_will_do), asked)
        first_of = alike(hashes, asked)
        first = np.flatnonzero(first_of == np.arange(len(first_of)))
        by_row = np.full(len(first_of), REFUSED, np.int32)
        by_row[first] = self._known(ask, asked[first], short(hashes[first]))
        new = first[by_row[first] == REFUSED]
        if new.size:
            by_row[new] = self._add(ask, asked[new], short(hashes[new]), gates[new])
        again = np.ones(len(first_of), np.bool_)
        again[new] = False
        by_row = by_row[first_of]
        for number in by_row[again & (by_row >= 0)].tolist():
            self._more_uses[number] = self._more_uses.get(number, 0) + 1
        return by_row

    def _add(self, ask: Ask, asked: Asked, hashes: Hashes, gates: Ids) -> Ids:
        """Take new rows to tables."""
        doors = self._opened(asked, gates)
        numbers = np.full(len(doors), REFUSED, np.int32)
        places = np.array([self._doors.table(door) for door in range(doors.max() + 1)])[doors]
        for place in np.unique(places).tolist():
            own = np.flatnonzero(places == place)
            table = self._table(place)
            columns = table.columns(asked[own], [leaf.variable for leaf in ask.star.leaves])
            shapes = self._shapes_of(place, ask, asked[own], columns)
            taken = shapes >= 0
            own = own[taken]
            if own.size:
                numbers[own] = self._given(len(own))
                self._enter(table, numbers[own], asked[own], columns[taken], shapes[taken])
                self._contents.put(numbers[own], hashes[own])
                self._door[numbers[own]] = doors[own]
                self._doors.take(doors[own])
        for door in np.unique(doors[numbers == REFUSED]).tolist():
            self._doors.close(door)
        for place in np.unique(places).tolist():
            if not len(self._table(place)):
                self._drop_table(place)
        return numbers

    def _opened(self, asked: Asked, gates: Ids) -> Ids:
        """Return by row the door that it goes through; new ones lead to tables with its columns."""
        some, inverse = distinct(gates.astype(np.int64))
        counts = np.bincount(inverse)
        coming: dict[int, int] = {}
        doors = []
        for n, first in enumerate(np.unique(inverse, return_index=True)[1].tolist()):
            door = Door(*some[n].tolist())
            number = self._doors.number(door)
            kind = tuple(np.sort(asked.keys[first]).tolist())
            if number < 0:
                place = self._shared.get(kind)
                if place is None or len(self._table(place)) + coming.get(place, 0) >= SHARED:
                    place = self._new_table()
                number = self._doors.open(door, place)
            place = self._shared[kind] = self._doors.table(number)
            coming[place] = coming.get(place, 0) + int(counts[n])
            doors.append(number)
        return np.array(doors, np.int32)[inverse]

    def _enter(
        self,
        table: GateTable,
        numbers: Ids,
        asked: Asked,
        columns: NDArray[np.int64],
        shapes: NDArray[np.int64],
    ) -> None:
        """Write new rows."""
        rows = table.dense(asked, columns)
        slots = table.rows.extend(numbers, rows.lows, rows.highs, rows.ids)
        end = int(numbers.max()) + 1
        self._slot = grown(self._slot, end, _MORE)
        self._shape = grown(self._shape, end, _MORE)
        self._door = grown(self._door, end, _MORE)
        self._slot[numbers], self._shape[numbers] = slots, shapes
        self._shapes.take(shapes)

    def _given(self, count: int) -> Ids:
        """Return numbers for so many new rows."""
        kept = max(0, len(self._holes) - count)
        reused = self._holes[kept:]
        del self._holes[kept:]
        start = self._made
        self._made += count - len(reused)
        fresh = np.arange(start, self._made, dtype=np.int32)
        return np.concatenate([np.array(reused, np.int32), fresh])

    def remove(self, row: int) -> bool:
        """Take a row away that was taken in; return whether nobody has it any more."""
        uses = self._more_uses.pop(row, 0)
        if uses:
            if uses > 1:
                self._more_uses[row] = uses - 1
            return False
        place = self.shape(row).table
        table = self._table(place)
        generation = table.rows.generation
        table.rows.remove(self._slot[row : row + 1])
        if table.rows.generation != generation:
            owners = table.rows.owners()
            live = np.flatnonzero(owners >= 0)
            self._slot[owners[live]] = live
        self._contents.remove(row)
        self._holes.append(row)
        self._shapes.release(int(self._shape[row]))
        self._doors.release(int(self._door[row]))
        if not len(table):
            self._drop_table(place)
        return True

    def _new_table(self) -> int:
        """Make a table; return its place."""
        place = self._tables.index(None) if None in self._tables else len(self._tables)
        self._tables[place : place + 1] = [GateTable()]
        return place

    def _drop_table(self, place: int) -> None:
        """Take a table away that has no rows any more, and so no doors."""
        self._tables[place] = None
        self._shared = {kind: other for kind, other in self._shared.items() if other != place}

    # -- what is there already ----------------------------------------------------------------

    def _known(self, ask: Ask, asked: Asked, hashes: Hashes) -> Ids:
        """Return the numbers of rows that ask the same, or `REFUSED`."""
        numbers = self._contents.found(hashes)
        known = np.full(len(numbers), REFUSED, np.int32)
        some = np.flatnonzero(numbers >= 0)
        for number in np.unique(self._shape[numbers[some]]).tolist():
            shape = self._shapes[number]
            if (shape.program, shape.any_will_do) != (ask.program, ask.any_will_do):
                continue
            table = self._table(shape.table)
            own = some[self._shape[numbers[some]] == number]
            own = own[(asked.keys[own] == table.keys(shape.columns)).all(axis=1)]
            there = table.rows.rows_at(self._slot[numbers[own]])
            here = table.dense(asked[own], np.tile(shape.columns, (len(own), 1)))
            same = equal(there.lows, here.lows) & equal(there.highs, here.highs)
            same &= (there.ids == here.ids).all(axis=1)
            known[own[same]] = numbers[own[same]]
        return known

    def _shapes_of(
        self, table: int, ask: Ask, asked: Asked, columns: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the number of each row's shape, or -1 where there are too many."""
        kinds, inverse = distinct(np.column_stack([columns, asked.inexact]))
        shapes = [
            self._shapes.number(Shape(table, *ask, bool(inexact), tuple(own)))
            for *own, inexact in kinds.tolist()
        ]
        return np.array(shapes, np.int64)[inverse]

    # -- matching ---------------------------------------------------------------------------

    def match(self, graph: Ids, compared: Compared) -> Tabled:
        """Return the rows that a publication meets.

        Parameters
        ----------
        graph
            The publication (`graphmatch.index.encoding`), with the look-ups of `kinds`.
        compared
            What terms are compared by.
        """
        if not len(self):
            return NONE_MET
        met: list[Met] = []
        uncertain: list[Ids] = []
        candidates = 0
        ways = ways_of(graph, self.paths)
        came = self._doors.met(graph, ways)
        for place, roots in came.roots.items():
            table = self._table(place)
            for root in roots:
                there = gathered(graph, root, table.intervals, table.ids, compared, ways)
                found = table.match(there)
                candidates += found.checked + found.scanned
                if found.owners.size:
                    certain, unsure = self._certain(table, found.owners, there)
                    met.append(certain)
                    uncertain.append(2 * unsure + 1)
        return Tabled.of(met, uncertain, came.doors, came.rows, candidates)

    def _certain(self, table: GateTable, rows: Ids, root: Gathered) -> tuple[Met, Ids]:
        """Tell rows that a root meets for certain from the others."""
        shapes = self._shape[rows]
        unsure = rows[:0]
        inexact = self._shapes.inexact[shapes]
        if root.ranged or inexact.any():
            asked_again = np.arange(len(rows)) if root.ranged else np.flatnonzero(inexact)
            slots = self._slot[rows[asked_again]]
            doubtful = asked_again[table.doubtful(slots, inexact[asked_again], root)]
            unsure = rows[doubtful]
            rows, shapes = np.delete(rows, doubtful), np.delete(shapes, doubtful)
        asked = None
        if table.has_choice(root):
            asked = Constraints(table.rows.written(), self._slot[rows])
        return Met(2 * rows + 1, shapes, self._shapes.known, root, self.paths, asked), unsure
