"""Very many attribute subscriptions: one text, and columns of constants.

Rows of a table, or lines of a file, that have the same shape (`semantic.attributes.constraints`)
are `Rows`: the SPARQL of one of them, and by constant the term that all have, or a column. Numbers
of Arrow stay arrays; of other columns each different value is looked at once. A row of a table
means what the object of JSON means that says the same.

Cost: some operations of numpy on a column of a table, and some microseconds for each different
value that is no number; about as much as JSON itself for a line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from semantic.attributes.arrow import (
    ArrowArray,
    ArrowBatch,
    ArrowTable,
    Column,
    Texts,
    batches,
    encoded,
)
from semantic.attributes.arrow import numbers as numbers_of
from semantic.attributes.concepts import is_concept
from semantic.attributes.constraints import (
    IGNORE,
    NUMERIC,
    OPERATORS,
    Constant,
    Shape,
    Test,
    Written,
    taken_apart,
)
from semantic.attributes.lines import RowReader
from semantic.attributes.names import NAMING, AttributeNameError, attribute
from semantic.attributes.subscription import REMEDY, attribute_rows
from semantic.attributes.values import TermError
from semantic.errors import InputError, OnProblem, Place, Problem, SubscriptionError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_KEYS = 2**62
_NO_ID = "Give each row an id of its own."
_LINES = 8192
"""So many lines are gathered."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Subscriptions that differ in constants only.

    Parameters
    ----------
    text
        The SPARQL of one of them.
    ids
        Those of all rows of a table.
    constants
        In the order of the text: the term that all have, or the column of all rows of the table.
    chosen
        Which rows these subscriptions are, shape ``(n,)``.
    said
        Gives the SPARQL of a row.
    names
        Terms that stand for names of classes, and have to be resolved (`Concepts`).
    """

    text: str
    ids: Texts
    constants: Sequence[str | Column]
    chosen: NDArray[np.int64]
    said: Callable[[int], str]
    names: frozenset[Constant]


Refused: TypeAlias = tuple[int, SubscriptionError]
"""The number of a row, and why it is no subscription."""


def rows_of_table(
    table: ArrowTable | ArrowBatch, id: str = "id"
) -> Iterator[tuple[Rows, int] | Refused]:
    """Yield the attribute subscriptions of an Arrow table by shape.

    A column is called as an attribute, which means equality, or as an attribute, a space and an
    operator: ``brand``, ``price.value <=``, ``target isa``, ``title ignore case contains``. Null
    constrains nothing.

    Parameters
    ----------
    table
        A ``pyarrow.Table`` or ``pyarrow.RecordBatch``.
    id
        The column with the ids.

    Yields
    ------
    Rows of one part of the table, with the number of rows before it; or the number of a row that is
    no subscription, and why.

    Raises
    ------
    InputError
        When there is no column of ids, or a column's name is no constraint.

    Examples
    --------
    Needs ``pyarrow``::

        table = pyarrow.table({"id": ["a", "b"], "brand": ["Acme", None], "price <=": [400, 250]})
        [rows.text for rows, _ in rows_of_table(table)]
    """
    names = table.schema.names
    if names.count(id) != 1:
        what = f"the table has {names.count(id) or 'no'} columns called {id!r}"
        raise InputError(Problem(what, Place(f"column {id!r}"), _NO_ID))
    own = names.index(id)
    heads = headings([name for place, name in enumerate(names) if place != own])
    before = 0
    for batch in batches(table):
        if batch.num_rows:
            arrays = [batch.column(place) for place in range(len(names)) if place != own]
            columns = [_Column(*pair) for pair in zip(heads, arrays, strict=True)]
            yield from _Batch(Texts.of_array(batch.column(own)), columns, before).rows()
        before += batch.num_rows


@dataclass(frozen=True, slots=True)
class Heading:
    """What a column constrains.

    Parameters
    ----------
    attribute
        By name.
    operator
        ``None`` where the column has the name of the attribute alone.
    ignore_case
        Whether upper and lower case are the same.
    """

    attribute: str
    operator: str | None
    ignore_case: bool

    def constraint(self, value: object) -> object:
        """Return what JSON would have after the attribute.

        Examples
        --------
        >>> heading("price <=").constraint(5)
        {'<=': 5}
        """
        if self.operator is None:
            return value
        made = {self.operator: value}
        return {**made, IGNORE: True} if self.ignore_case else made


def headings(names: Sequence[str]) -> list[Heading]:
    """Return what some columns constrain.

    Raises
    ------
    InputError
        When a name has no operator that is known, or no attribute, or two say the same.
    """
    found: dict[tuple[str, str], str] = {}
    made: list[Heading] = []
    for name in names:
        one = heading(name)
        same = found.setdefault((one.attribute, one.operator or "="), name)
        if len(found) == len(made):
            what = f"the columns {same!r} and {name!r} say the same"
            remedy = "Leave one of them out, or join them with 'in'."
            raise InputError(Problem(what, Place(f"column {name!r}"), remedy))
        made.append(one)
    return made


def heading(name: str) -> Heading:
    """Return what one column constrains.

    Raises
    ------
    InputError
        As `headings`.

    Examples
    --------
    >>> heading("weight (kg) >=")
    Heading(attribute='weight (kg)', operator='>=', ignore_case=False)
    """
    before, space, last = name.rpartition(" ")
    if space and last not in OPERATORS:
        what = f"there is no operator {last!r}"
        remedy = f"Use one of {', '.join(OPERATORS)}; behind a name with spaces, too: '{name} ='."
        raise InputError(Problem(what, Place(f"column {name!r}"), remedy))
    named = before if space else name
    called = named.removesuffix(f" {IGNORE}").strip()
    try:
        attribute(called)
    except AttributeNameError as error:
        raise InputError(Problem(str(error), Place(f"column {name!r}"), NAMING)) from error
    return Heading(called, last if space else None, named.endswith(f" {IGNORE}"))


class _Column:
    """A column of constraints.

    Parameters
    ----------
    heading
        What it constrains.
    array
        Its values.
    """

    def __init__(self, heading: Heading, array: ArrowArray) -> None:
        import numpy as np

        self.heading = heading
        self._tests: list[tuple[Test, ...]] = []
        self._apart: dict[int, list[Constant] | TermError] = {}
        numeric = heading.operator is None or heading.operator in NUMERIC
        self._numbers: NDArray[np.int64] | NDArray[np.float64] | None = None
        found = numbers_of(array) if numeric and not heading.ignore_case else None
        if found is not None:
            self._numbers, valid = found
            self._places = np.arange(len(array), dtype=np.int32)
            finite = np.isfinite(self._numbers)
            self.kinds = np.where(finite, np.int32(1), np.int32(-1))
            if valid is not None:
                self.kinds[~valid] = 0
            self._tests = [(NUMERIC[heading.operator or "="],)]
            return
        try:
            self._places, given = encoded(array)
        except (OverflowError, ValueError) as error:
            what = f"Arrow has values here that Python has not: {error}"
            remedy = "Cast the column to a type whose values Python has."
            where = Place(f"column {heading.attribute!r}")
            raise InputError(Problem(what, where, remedy)) from error
        kinds: dict[tuple[Test, ...], int] = {}
        of_values = np.zeros(len(given) + 1, np.int32)  # the last one is that of null
        for place, value in enumerate(given):
            if value is None:
                continue
            try:
                tests, self._apart[place] = self._taken_apart(value)
            except TermError as error:
                of_values[place], self._apart[place] = -1, error
            else:
                of_values[place] = kinds.setdefault(tests, len(kinds) + 1)
        self._tests = list(kinds)
        self.kinds = of_values[self._places]
        """By row what is tested: 0 where it has no value, -1 where that means nothing."""
        self._of_values = of_values

    def _taken_apart(self, value: object) -> tuple[tuple[Test, ...], list[Constant]]:
        heading = self.heading
        (((_, tests),), constants) = taken_apart({heading.attribute: heading.constraint(value)})
        return tests, constants

    @property
    def size(self) -> int:
        """How many kinds of values it has, with that of none."""
        return len(self._tests) + 1

    def tests(self, row: int) -> tuple[Test, ...]:
        """Return what is tested in a row."""
        return self._tests[int(self.kinds[row]) - 1]

    def constants(self, row: int) -> list[Constant]:
        """Return the constants of a row.

        Raises
        ------
        TermError
            When its value means nothing.
        """
        if self._numbers is not None:
            return self._taken_apart(self._numbers[row].item())[1]
        found = self._apart[int(self._places[row])]
        if isinstance(found, TermError):
            raise found
        return found

    def columns(self, row: int) -> Iterator[Column]:
        """Yield the columns of constants for the rows that are tested as one is."""
        if self._numbers is not None:
            yield self._numbers
            return
        kind = self.kinds[row]
        for number in range(len(self.constants(row))):
            terms = [""] * (len(self._of_values) - 1)
            for place, apart in self._apart.items():
                if self._of_values[place] == kind and not isinstance(apart, TermError):
                    terms[place] = str(apart[number])
            yield self._places, terms

    def names(self) -> Iterator[Constant]:
        """Yield the terms that stand for names of classes."""
        for apart in self._apart.values():
            if not isinstance(apart, TermError):
                yield from filter(is_concept, apart)


class _Batch:
    """The rows of one batch.

    Parameters
    ----------
    ids
        Of each row.
    columns
        The constraints.
    before
        How many rows the batches before have.
    """

    def __init__(self, ids: Texts, columns: Sequence[_Column], before: int) -> None:
        self._ids, self._columns, self._before = ids, columns, before

    def rows(self) -> Iterator[tuple[Rows, int] | Refused]:
        """Yield the rows by shape, and why some are refused."""
        import numpy as np

        blank = self._ids.blank()
        refused = blank.copy()
        empty = np.full(len(blank), fill_value=True)
        keys, span = np.zeros(len(blank), np.int64), 1
        for column in self._columns:
            kinds = column.kinds
            refused |= kinds < 0
            empty &= kinds == 0
            if column.size == 2 and kinds.all():  # the same of all rows, or refused
                continue
            if span * column.size > _KEYS:
                different, keys = np.unique(keys, return_inverse=True)
                span = len(different)
            keys, span = keys * column.size + np.maximum(kinds, 0), span * column.size
        refused |= empty
        for row in np.flatnonzero(refused).tolist():
            yield self._refused(row, self._wrong(row, is_blank=bool(blank[row])))
        for chosen in _alike(keys, np.flatnonzero(~refused)):
            yield from self._of_shape(chosen)

    def _of_shape(self, chosen: NDArray[np.int64]) -> Iterator[tuple[Rows, int] | Refused]:
        """Yield the rows of one shape."""
        there = self._said(int(chosen[0]))
        try:
            written = Written(*self._shaped(int(chosen[0]), there))
        except AttributeNameError as error:
            for row in chosen.tolist():
                yield self._refused(row, Problem(str(error), Place(""), NAMING))
            return
        columns = [each for column in there for each in column.columns(int(chosen[0]))]
        names = frozenset(name for column in there for name in column.names())
        fixed = map(str, written.fixed)
        every: list[str | Column] = [*columns, *fixed]
        constants = [every[place] for place in written.order]

        def said(row: int) -> str:
            return Written(*self._shaped(row, there)).text

        yield Rows(written.text, self._ids, constants, chosen, said, names), self._before

    def _said(self, row: int) -> list[_Column]:
        """Return the columns that constrain a row, attribute by attribute as JSON has them."""
        said = [column for column in self._columns if column.kinds[row]]
        first = {column.heading.attribute: n for n, column in reversed(list(enumerate(said)))}
        return sorted(said, key=lambda column: first[column.heading.attribute])

    def _shaped(self, row: int, columns: Iterable[_Column]) -> tuple[Shape, list[Constant]]:
        tests: defaultdict[str, tuple[Test, ...]] = defaultdict(tuple)
        constants: list[Constant] = []
        for column in columns:
            tests[column.heading.attribute] += column.tests(row)
            constants += column.constants(row)
        return tuple(tests.items()), constants

    def _wrong(self, row: int, *, is_blank: bool) -> Problem:
        """Say what is wrong with a row: with the id, else with the first value that is wrong."""
        if is_blank:
            return Problem("the id is null or empty", Place(""), _NO_ID)
        try:
            for column in self._said(row):
                column.constants(row)
        except TermError as error:
            return Problem(error.what, Place(""), error.remedy)
        return Problem("all its constraints are null", Place(""), "Give one at least, or no row.")

    def _refused(self, row: int, problem: Problem) -> Refused:
        number, id = row + self._before, self._ids.get(row)
        place = Place(id if id.strip() else f"row {number + 1}")
        return number, SubscriptionError(replace(problem, where=place))


def _alike(keys: NDArray[np.int64], rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the rows that have the same key, in the order of their first ones."""
    import numpy as np

    if not rows.size:
        return
    order = np.argsort(keys[rows], kind="stable")
    ordered = keys[rows][order]
    found = np.split(rows[order], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)
    yield from sorted(found, key=lambda some: int(some[0]))


def rows_of_lines(path: str | Path, on_problem: OnProblem) -> Iterator[tuple[Rows, Sequence[int]]]:
    """Yield the attribute subscriptions of a file of JSON Lines by shape, some lines at a time.

    Comments are passed over.

    Parameters
    ----------
    on_problem
        Called with each line that is no subscription, in their order; the rest goes on.

    Yields
    ------
    Rows, with the numbers of their lines.

    Raises
    ------
    OSError
        When the file cannot be read.
    """
    reader = RowReader(str(path), REMEDY, on_problem)
    known: set[Shape] = set()

    def read(id: str, where: object, _comment: str) -> tuple[Shape, list[Constant]]:
        try:
            shape, constants = taken_apart(where)
            if shape not in known:
                Written(shape, constants)
                known.add(shape)
        except TermError as error:
            raise SubscriptionError(Problem(error.what, Place(id), error.remedy)) from error
        except AttributeNameError as error:
            raise SubscriptionError(Problem(str(error), Place(id), NAMING)) from error
        return shape, constants

    lines = attribute_rows(path, reader, read)
    while some := list(islice(lines, _LINES)):
        by_shape: defaultdict[Shape, list[tuple[int, str, list[Constant]]]] = defaultdict(list)
        for number, id, (shape, constants) in some:
            by_shape[shape].append((number, id, constants))
        for shape, alike in by_shape.items():
            yield _of_lines(shape, alike), [number for number, _, _ in alike]


def _of_lines(shape: Shape, lines: Sequence[tuple[int, str, list[Constant]]]) -> Rows:
    import numpy as np

    written = Written(shape, lines[0][2])
    places = np.arange(len(lines), dtype=np.int32)
    every: list[str | Column] = [
        (places, list(map(str, column)))
        for column in zip(*(constants for _, _, constants in lines), strict=True)
    ]
    every += map(str, written.fixed)
    return Rows(
        written.text,
        Texts.of(id for _, id, _ in lines),
        [every[place] for place in written.order],
        places.astype(np.int64),
        lambda row: Written(shape, lines[row][2]).text,
        frozenset(c for _, _, constants in lines for c in constants if is_concept(c)),
    )
