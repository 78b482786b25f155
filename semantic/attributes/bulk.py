"""Bulk loading of attribute subscriptions from a table: queries with a column per parameter.

Rows of the same shape (`semantic.attributes.constraints`) share one query. Arrow numbers stay
arrays. In other columns, each distinct value is parsed once. A row of a table means the same as the
equivalent JSON object.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from semantic.arrow import (
    ArrowArray,
    ArrowBatch,
    ArrowTable,
    Column,
    Numbers,
    Texts,
    batches,
    encoded,
    place_of,
)
from semantic.arrow import numbers as numbers_of
from semantic.attributes.constraints import (
    IGNORE,
    NUMERIC,
    OPERATORS,
    Constant,
    Test,
    sparql,
    taken_apart,
)
from semantic.attributes.names import attribute, concept_name_of
from semantic.errors import (
    InputError,
    Place,
    Problem,
    SubscriptionError,
    UnplacedError,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_KEYS = 2**62
_NO_ID = "Give each row a unique id."

TermColumn: TypeAlias = "Column | tuple[tuple[NDArray[np.uint8], NDArray[np.int64]], bool]"
"""Values of all rows, or the bytes and the offsets of N-Triples terms with a false flag."""
Refused: TypeAlias = tuple[int, SubscriptionError]
"""The number of an invalid row, and the error."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Subscriptions that share one query: the rows with the numbers `chosen`, shape ``(n,)``.

    `parameters` are variables of the query, one per column of terms. `names` are placeholders of
    class names, which `Concepts` must resolve.
    """

    query: str
    parameters: Sequence[str]
    ids: Texts
    columns: Sequence[TermColumn]
    chosen: NDArray[np.int64]
    names: frozenset[Constant] = frozenset()


# -- tables ---------------------------------------------------------------------------------


def rows_of_table(
    table: ArrowTable | ArrowBatch, id: str = "id"
) -> Iterator[tuple[Rows, int] | Refused]:
    """Yield the attribute subscriptions of an Arrow table by shape.

    A column name is an attribute, which means equality, or an attribute, a space and an operator:
    ``brand``, ``price.value <=``, ``target isa``, ``title ignore case contains``. Null adds no
    constraint. `id` is the column with the ids.

    Yields rows of one record batch with the number of rows before it, or the number of an invalid
    row with the error.

    Raises
    ------
    InputError
        If the column of ids is missing, or a column name is invalid.
    """
    own = place_of(table, id, _NO_ID)
    heads = headings([name for place, name in enumerate(table.schema.names) if place != own])
    first: dict[str, int] = {}
    for head in heads:
        first.setdefault(head.attribute, len(first))
    before = 0
    for batch in batches(table):
        arrays = [batch.column(n) for n in range(batch.num_columns) if n != own]
        columns = [_Column(*pair) for pair in zip(heads, arrays, strict=True)]
        columns.sort(key=lambda column: first[column.heading.attribute])
        yield from _Batch(Texts.of_array(batch.column(own)), columns, before).rows()
        before += batch.num_rows


@dataclass(frozen=True, slots=True)
class Heading:
    """A parsed column name: an attribute, and an operator if the name has one."""

    attribute: str
    operator: str | None
    ignore_case: bool

    def taken_apart(self, value: object) -> tuple[tuple[Test, ...], list[Constant]]:
        """Return the tests and constants of a value in the column."""
        if self.operator is not None:
            value = {self.operator: value, **({IGNORE: True} if self.ignore_case else {})}
        ((_, tests),), constants = taken_apart({self.attribute: value})
        return tests, constants


def headings(names: Sequence[str]) -> list[Heading]:
    """Parse column names.

    Raises `InputError` if a name has an unknown operator or no valid attribute, or two names have
    the same attribute and operator.

    Examples
    --------
    >>> headings(["weight (kg) >="])
    [Heading(attribute='weight (kg)', operator='>=', ignore_case=False)]
    """
    made = list(map(_heading, names))
    found: dict[tuple[str, str], str] = {}
    for number, (name, one) in enumerate(zip(names, made, strict=True), 1):
        same = found.setdefault((one.attribute, one.operator or "="), name)
        if len(found) < number:
            what = f"the columns {same!r} and {name!r} have the same test"
            remedy = "Remove one, or combine their values with 'in'."
            raise InputError(Problem(what, Place(f"column {name!r}"), remedy))
    return made


def _heading(name: str) -> Heading:
    place = Place(f"column {name!r}")
    named, space, last = name.rpartition(" ")
    if not space:
        named = name
    elif last not in OPERATORS:
        what = f"there is no operator {last!r}"
        remedy = f"Use one of {', '.join(OPERATORS)}. After a name with spaces, too: '{name} ='."
        raise InputError(Problem(what, place, remedy))
    called = named.removesuffix(f" {IGNORE}").strip()
    try:
        attribute(called)
    except UnplacedError as error:
        raise InputError(Problem(error.what, place, error.remedy)) from error
    return Heading(called, last if space else None, named.endswith(f" {IGNORE}"))


class _Column:
    """A column of constraints, and its values.

    `kinds` has one number per row: an index into `tests`, 0 for null, or -1 for an invalid value.
    """

    def __init__(self, heading: Heading, array: ArrowArray) -> None:
        import numpy as np

        self.heading = heading
        self.tests: list[tuple[Test, ...]] = [()]
        self.kinds: NDArray[np.int32]
        self._apart: dict[int, list[Constant] | UnplacedError] = {}
        self._numbers: Numbers | None = None
        numeric = heading.operator is None or heading.operator in NUMERIC
        if numeric and not heading.ignore_case and (found := numbers_of(array)) is not None:
            self._numbers, valid = found
            self.kinds = np.where(np.isfinite(self._numbers), np.int32(1), np.int32(-1))
            if valid is not None:
                self.kinds[~valid] = 0
            self.tests.append((NUMERIC[heading.operator or "="],))
            return
        try:
            self._places, values = encoded(array)
        except (OverflowError, ValueError) as error:
            what = f"Python cannot represent these values: {error}"
            remedy = "Cast the column to a type that Python supports."
            where = Place(f"column {heading.attribute!r}")
            raise InputError(Problem(what, where, remedy)) from error
        known: dict[tuple[Test, ...], int] = {(): 0}
        self._of_values = np.zeros(len(values) + 1, np.int32)  # The last element is for null.
        for place, value in enumerate(values):
            if value is None:
                continue
            try:
                tests, self._apart[place] = heading.taken_apart(value)
            except UnplacedError as error:
                self._of_values[place], self._apart[place] = -1, error
            else:
                self._of_values[place] = known.setdefault(tests, len(known))
        self.tests = list(known)
        self.kinds = self._of_values[self._places]

    def constants(self, row: int) -> list[Constant]:
        """Return the constants of a row; raise `UnplacedError` if its value is invalid."""
        if self._numbers is not None:
            return self.heading.taken_apart(self._numbers[row].item())[1]
        found = self._apart[int(self._places[row])]
        if isinstance(found, UnplacedError):
            raise found
        return found

    def columns(self, row: int) -> Iterator[Column]:
        """Yield the columns of constants for all rows with the same tests as the given row."""
        if self._numbers is not None:
            yield self._numbers
            return
        kind = self.kinds[row]
        for number in range(len(self.constants(row))):
            terms = [""] * (len(self._of_values) - 1)
            for place, apart in self._apart.items():
                if self._of_values[place] == kind and not isinstance(apart, UnplacedError):
                    terms[place] = str(apart[number])
            yield self._places, terms

    def names(self) -> Iterator[Constant]:
        """Yield the placeholders of class names."""
        for apart in self._apart.values():
            if not isinstance(apart, UnplacedError):
                yield from _named(apart)


class _Batch:
    """The rows of one batch: their ids, and the constraints grouped by attribute."""

    def __init__(self, ids: Texts, columns: Sequence[_Column], before: int) -> None:
        self._ids, self._columns, self._before = ids, columns, before

    def rows(self) -> Iterator[tuple[Rows, int] | Refused]:
        """Yield the rows by shape, and the errors of invalid rows."""
        import numpy as np

        blank = self._ids.blank()
        refused = blank.copy()
        empty = np.full(len(blank), fill_value=True)
        keys, span = np.zeros(len(blank), np.int64), 1
        for column in self._columns:
            kinds, size = column.kinds, len(column.tests)
            refused |= kinds < 0
            empty &= kinds == 0
            if size == 2 and kinds.all():  # All valid rows have the same tests.
                continue
            if span * size > _KEYS:
                different, keys = np.unique(keys, return_inverse=True)
                span = len(different)
            keys, span = keys * size + np.maximum(kinds, 0), span * size
        refused |= empty
        for row in np.flatnonzero(refused).tolist():
            yield self._refused(row, self._wrong(row, is_blank=bool(blank[row])))
        rest = np.flatnonzero(~refused)
        order = np.argsort(keys[rest], kind="stable")
        ordered = keys[rest][order]
        found = np.split(rest[order], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)
        for chosen in sorted((some for some in found if some.size), key=lambda some: int(some[0])):
            yield from self._of_shape(chosen)

    def _of_shape(self, chosen: NDArray[np.int64]) -> Iterator[tuple[Rows, int] | Refused]:
        """Yield the rows of one shape."""
        first = int(chosen[0])
        there = self._there(first)
        tests: defaultdict[str, tuple[Test, ...]] = defaultdict(tuple)
        for column in there:
            tests[column.heading.attribute] += column.tests[column.kinds[first]]
        shape = tuple(tests.items())

        columns = [each for column in there for each in column.columns(first)]
        parameters = [f"_{number}" for number in range(len(columns))]
        try:
            query = sparql(shape, [f"?{name}" for name in parameters])
        except UnplacedError as error:
            for row in chosen.tolist():
                yield self._refused(row, Problem(error.what, Place(""), error.remedy))
            return
        names = frozenset(name for column in there for name in column.names())
        yield Rows(query, parameters, self._ids, columns, chosen, names), self._before

    def _there(self, row: int) -> list[_Column]:
        """Return the columns that constrain a row."""
        return [column for column in self._columns if column.kinds[row]]

    def _wrong(self, row: int, *, is_blank: bool) -> Problem:
        """Describe the error of a row: its blank id, otherwise its first invalid value."""
        if is_blank:
            return Problem("the id is null or empty", Place(""), _NO_ID)
        try:
            for column in self._there(row):
                column.constants(row)
        except UnplacedError as error:
            return Problem(error.what, Place(""), error.remedy)
        return Problem(
            "all constraints of the row are null", Place(""), "Add one, or remove the row."
        )

    def _refused(self, row: int, problem: Problem) -> Refused:
        number, id = row + self._before, self._ids.get(row)
        place = Place(id if id.strip() else f"row {number + 1}")
        return number, SubscriptionError(replace(problem, where=place))


def _named(constants: Iterable[Constant]) -> Iterator[Constant]:
    return (constant for constant in constants if concept_name_of(constant) is not None)
