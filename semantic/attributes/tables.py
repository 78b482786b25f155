"""Attribute subscriptions from Arrow tables, by skeleton: a row each, columns are constraints.

The different values of a column are made terms once, and so is the shape of rows that have the
same kinds of values in the same columns. All that is done for a row is done by numpy. A row means
what the row of JSON means that says the same.

Cost: a microsecond or two a row with twenty columns, and a microsecond for each different value of
a column (docs/decisions/attributes.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyoxigraph import Literal

from semantic.attributes.arrow import ArrowArray, ArrowBatch, ArrowTable, batches, encoded, values
from semantic.attributes.constraints import NUMERIC, Constant, Shape, Test, taken_apart
from semantic.attributes.gathered import Gathered, Grouped, matrix
from semantic.attributes.headings import Heading, headings
from semantic.attributes.subscription import AttributeParser
from semantic.attributes.uncollected import uncollected
from semantic.attributes.values import TermError
from semantic.errors import InputError, Place, Problem, SubscriptionError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_KEYS = 2**62
_NO_ID = "Give each row an id of its own."


def grouped_attribute_table(
    table: ArrowTable | ArrowBatch, *, parser: AttributeParser | None = None, id: str = "id"
) -> Grouped:
    """Return the attribute subscriptions of an Arrow table by skeleton.

    A column is called as an attribute, which means equality, or as an attribute, a space and an
    operator: ``brand``, ``price.value <=``, ``target isa``, ``title ignore case contains``. Null
    constrains nothing.

    Parameters
    ----------
    table
        A ``pyarrow.Table`` or ``pyarrow.RecordBatch``.
    parser
        Remembers the shapes it has seen; a new one by default.
    id
        The column with the ids; one that comes twice is in the result twice.

    Raises
    ------
    InputError
        When there is no column of ids, or a column's name is no constraint.

    Examples
    --------
    Needs ``pyarrow``::

        table = pyarrow.table({"id": ["a", "b"], "brand": ["Acme", None], "price <=": [400, 250]})
        grouped_attribute_table(table).groups
    """
    names = table.schema.names
    if names.count(id) != 1:
        what = f"the table has {names.count(id) or 'no'} columns called {id!r}"
        raise InputError(Problem(what, Place(f"column {id!r}"), _NO_ID))
    own = names.index(id)
    heads = headings([name for place, name in enumerate(names) if place != own])
    known, gathered, before = parser or AttributeParser(), Gathered(), 0
    with uncollected():
        for batch in batches(table):
            arrays = [batch.column(place) for place in range(len(names)) if place != own]
            columns = [_Column(*pair, gathered) for pair in zip(heads, arrays, strict=True)]
            _Rows(_ids(batch.column(own)), columns, before, known).add_to(gathered)
            before += batch.num_rows
        return gathered.result()


def _ids(array: ArrowArray) -> list[str]:
    """Return ids as texts, an empty one for null."""
    found = array.to_pylist() if str(array.type) != "string" else values(array)
    return ["" if name is None else str(name) for name in found]


class _Column:
    """A column: the different values as constants and tests, the rows as places of these.

    Parameters
    ----------
    heading
        What it constrains.
    array
        Its values.
    gathered
        Gets the constants.
    """

    def __init__(self, heading: Heading, array: ArrowArray, gathered: Gathered) -> None:
        import numpy as np

        self.heading = heading
        self.tests: list[tuple[Test, ...]] = []
        """By number - 1 of a kind of value: what is tested."""
        self.examples: list[list[Constant]] = []
        """The same of constants."""
        self.errors: dict[int, TermError] = {}
        """What is wrong with a value, by its place."""
        self._kinds: dict[tuple[Test, ...], int] = {}
        try:
            self.places, given = encoded(array)
        except (OverflowError, ValueError) as error:
            what = f"Arrow has values here that Python has not: {error}"
            remedy = "Cast the column to a type whose values Python has."
            place = Place(f"column {heading.attribute!r}")
            raise InputError(Problem(what, place, remedy)) from error
        begin = len(gathered.terms)
        numeric = heading.operator in NUMERIC and not heading.ignore_case
        if numeric and all(type(value) is Literal for value in given):
            gathered.terms += given
            kinds = [self._kind(*self._apart(value)) for value in given[:1]] * len(given)
            starts: Sequence[int] = range(begin, begin + len(given))
        else:
            kinds, starts = self._each(given, gathered)
        self._of_values = np.array([*kinds, 0], np.int32)
        self._starts = np.array([*starts, 0], np.int32)

    def _each(self, given: Sequence[Any], gathered: Gathered) -> tuple[list[int], list[int]]:
        """Return the kinds of values, and where their constants begin."""
        kinds, starts = [], []
        for place, value in enumerate(given):
            starts.append(len(gathered.terms))
            if value is None:
                kinds.append(0)
                continue
            try:
                tests, constants = self._apart(value)
            except TermError as error:
                self.errors[place] = error
                kinds.append(-1)
                continue
            kinds.append(self._kind(tests, constants))
            gathered.terms += constants
        return kinds, starts

    def _apart(self, value: object) -> tuple[tuple[Test, ...], list[Constant]]:
        heading = self.heading
        (((_, tests),), constants) = taken_apart({heading.attribute: heading.constraint(value)})
        return tests, constants

    def _kind(self, tests: tuple[Test, ...], constants: list[Constant]) -> int:
        """Return the number of a kind of value, from 1."""
        found = self._kinds.get(tests)
        if found is None:
            self.tests.append(tests)
            self.examples.append(constants)
            found = self._kinds[tests] = len(self.tests)
        return found

    def kinds(self) -> NDArray[np.int32]:
        """Return the kind of each row: 0 for null, -1 for what means nothing."""
        return self._of_values[self.places]

    def kind(self, row: int) -> int:
        """Return the kind of one row."""
        return int(self._of_values[self.places[row]])

    def begins(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return where the constants of rows begin."""
        return self._starts[self.places[rows]]


class _Rows:
    """The rows of one batch.

    Parameters
    ----------
    ids
        Of each row.
    columns
        The constraints.
    before
        How many rows the batches before have.
    parser
        Remembers shapes.
    """

    def __init__(
        self, ids: list[str], columns: Sequence[_Column], before: int, parser: AttributeParser
    ) -> None:
        self._ids = ids
        self._columns = columns
        self._before = before
        self._parser = parser

    def add_to(self, gathered: Gathered) -> None:
        """Add all rows."""
        import numpy as np

        if not self._ids:
            return
        refused = np.array([not name.strip() for name in self._ids])
        empty = np.full(len(self._ids), fill_value=True)
        keys, span = np.zeros(len(self._ids), np.int64), 1
        for column in self._columns:
            kinds = column.kinds()
            refused |= kinds < 0
            size = len(column.tests) + 1
            if span * size > _KEYS:
                different, keys = np.unique(keys, return_inverse=True)
                span = len(different)
            keys, span = keys * size + np.maximum(kinds, 0), span * size
            empty &= kinds == 0
        refused |= empty
        self._refuse(np.flatnonzero(refused).tolist(), gathered)
        for rows in _alike(keys, np.flatnonzero(~refused)):
            self._add(rows, gathered)

    def _add(self, rows: NDArray[np.int64], gathered: Gathered) -> None:
        """Add rows of one shape."""
        first = int(rows[0])
        there = [column for column in self._columns if column.kind(first)]
        tests: dict[str, list[Test]] = {column.heading.attribute: [] for column in there}
        order = {attribute: place for place, attribute in enumerate(tests)}
        there.sort(key=lambda column: order[column.heading.attribute])
        constants: list[Constant] = []
        sources: list[tuple[_Column, int]] = []
        for column in there:
            kind = column.kind(first) - 1
            tests[column.heading.attribute] += column.tests[kind]
            sources += ((column, number) for number in range(len(column.examples[kind])))
            constants += column.examples[kind]
        shape: Shape = tuple((attribute, tuple(each)) for attribute, each in tests.items())
        chosen = rows.tolist()
        ids = self._ids if len(chosen) == len(self._ids) else [self._ids[row] for row in chosen]
        try:
            template = self._parser.template(ids[0], shape, constants)
        except SubscriptionError as error:
            for row in chosen:
                self._refuse_one(row, error.problem, gathered)
            return
        columns: list[int | NDArray[np.int32]] = []
        for place in template.order:
            if place < len(sources):
                column, number = sources[place]
                columns.append(column.begins(rows) + number)
            else:
                columns.append(gathered.place(template.fixed[place - len(sources)]))
        numbers = [row + self._before for row in chosen]
        gathered.add(template, ids, numbers, matrix(len(ids), columns))

    def _refuse(self, rows: Sequence[int], gathered: Gathered) -> None:
        """Say what is wrong with rows: with the id, else with the first value that is wrong."""
        for row in rows:
            if not self._ids[row].strip():
                problem = Problem("the id is null or empty", Place(""), _NO_ID)
            else:
                problem = next(self._wrong(row))
            self._refuse_one(row, problem, gathered)

    def _wrong(self, row: int) -> Iterator[Problem]:
        """Yield what is wrong with a row, attribute by attribute as JSON would have them."""
        said = [column for column in self._columns if column.kind(row)]
        first = {column.heading.attribute: n for n, column in reversed(list(enumerate(said)))}
        for column in sorted(said, key=lambda column: first[column.heading.attribute]):
            error = column.errors.get(int(column.places[row]))
            if error is not None:
                yield Problem(error.what, Place(""), error.remedy)
        yield Problem("all its constraints are null", Place(""), "Give one at least, or no row.")

    def _refuse_one(self, row: int, problem: Problem, gathered: Gathered) -> None:
        number = row + self._before
        place = Place(self._ids[row] if self._ids[row].strip() else f"row {number + 1}")
        gathered.refused.append((number, SubscriptionError(replace(problem, where=place))))


def _alike(keys: NDArray[np.int64], rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the rows that have the same key."""
    import numpy as np

    if not rows.size:
        return
    order = np.argsort(keys[rows], kind="stable")
    ordered = keys[rows][order]
    yield from np.split(rows[order], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)
