"""Attribute subscriptions from an Arrow table: each row is a query.

A row means the same as the equivalent JSON object. Consecutive rows that differ in constants only
share one query, with a column of terms for each constant. Arrow numbers stay arrays. In other
columns, a distinct value is parsed once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from semantic.arrow import Texts, encoded, numbers, place_of
from semantic.attributes.constraints import IGNORE, NUMERIC, OPERATORS, parameterize, sparql
from semantic.attributes.names import attribute
from semantic.errors import InputError, Place, Problem, SubscriptionError, UnplacedError
from semantic.units.quantities import CDT
from semantic.vocabulary import GM

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from semantic.arrow import ArrowArray, Column
    from semantic.attributes.constraints import Shape, Test

TermColumn: TypeAlias = "Column | tuple[tuple[NDArray[np.uint8], NDArray[np.int64]], bool]"
"""Values of all rows, or the bytes and the offsets of N-Triples terms with a false flag."""
_Parsed: TypeAlias = "tuple[tuple[Test, ...], list[str]]"
"""The tests of a value, and its constants in N-Triples syntax."""
_Value: TypeAlias = "_Parsed | UnplacedError | None"
"""A parsed value, or why it is invalid; ``None`` for null."""
_NO_ID = "Give each row a unique id."
_CONCEPT = GM["concept:"].value
_LONG = 4096
"""Maximum length of the constants of a value whose row shares a query with others."""


@dataclass(frozen=True, slots=True)
class SubscriptionBatch:
    """Subscriptions that share one query, as columns: ids, and terms for each parameter.

    `parameters` are the variables of the query that the columns replace. Only the rows with the
    numbers `chosen`, shape ``(n,)``, are to be added.
    """

    query: str
    parameters: Sequence[str]
    ids: Texts
    columns: Sequence[TermColumn]
    chosen: NDArray[np.int64]


TableRow: TypeAlias = "tuple[str, str, str] | SubscriptionBatch | SubscriptionError"
"""The id, the SPARQL query and the (empty) comment of a row, or consecutive rows, or an error."""


def rows_of_table(table: pa.Table, id: str, size: int) -> Iterator[tuple[int, list[TableRow]]]:
    """Yield the subscriptions of at most `size` rows of an Arrow table, and the number of rows.

    A column name is an attribute, which means equality, or an attribute, a space and an operator:
    ``brand``, ``price.value <=``, ``target isa``, ``title ignore case contains``. Null adds no
    constraint. `id` is the name of the column with the ids.

    Raises
    ------
    InputError
        If the column of ids is missing, or a column name is invalid.
    """
    own = place_of(table, id, _NO_ID)
    heads = headings([name for place, name in enumerate(table.schema.names) if place != own])
    first = {head.attribute: -place for place, head in reversed([*enumerate(heads)])}
    before = 0
    for batch in table.to_batches(max_chunksize=size):
        arrays = [batch.column(n) for n in range(batch.num_columns) if n != own]
        columns = list(map(_Column, heads, arrays))
        columns.sort(key=lambda column: -first[column.heading.attribute])
        ids = Texts.of_array(batch.column(own))
        yield batch.num_rows, list(_rows(ids, columns, before))
        before += batch.num_rows


def _rows(ids: Texts, columns: Sequence[_Column], before: int) -> Iterator[TableRow]:
    import numpy as np

    kinds = np.stack([-ids.blank().astype(np.int64), *(column.kinds for column in columns)])
    changes = np.flatnonzero((kinds[:, 1:] != kinds[:, :-1]).any(axis=0)) + 1
    for begin, end in pairwise([0, *changes.tolist(), kinds.shape[1]]):
        kind = kinds[:, begin]
        if end - begin > 1 and kind.any() and kind.min() == 0:
            shape, constants = _shape(ids.get(begin), columns, begin)
            parameters = [f"_{n}" for n in range(len(constants))]
            query = sparql(shape, [f"?{name}" for name in parameters])
            terms = [term for column in columns for term in column.terms(begin, end)]
            yield SubscriptionBatch(query, parameters, ids, terms, np.arange(begin, end))
            continue
        for row in range(begin, end):
            given = ids.get(row)
            try:
                yield given, sparql(*_shape(given, columns, row)), ""
            except UnplacedError as error:
                place = Place(given if given.strip() else f"row {before + row + 1}")
                yield SubscriptionError(Problem(error.what, place, error.remedy))


def _shape(id: str, columns: Sequence[_Column], row: int) -> tuple[Shape, list[str]]:
    """Return the shape and the constants of a row; raise `UnplacedError` if it is invalid."""
    if not id.strip():
        raise UnplacedError("the id is null or empty", _NO_ID)
    shape: defaultdict[str, tuple[Test, ...]] = defaultdict(tuple)
    constants: list[str] = []
    for column in columns:
        value = column.value(row)
        if isinstance(value, UnplacedError):
            raise value
        if value is not None:
            shape[column.heading.attribute] += value[0]
            constants += value[1]
    if not shape:
        raise UnplacedError("all constraints of the row are null", "Add one, or remove the row.")
    return tuple(shape.items()), constants


class _Column:
    """A column of constraints.

    Its `kinds` have a number for each row: 0 for null, and -1 for a row that shares no query with
    others. Other rows with the same number have the same tests.
    """

    def __init__(self, heading: Heading, array: ArrowArray) -> None:
        import numpy as np

        self.heading = heading
        self.value: Callable[[int], _Value] = lambda row: heading.of_scalar(array[row])
        """Returns the parsed value of a row."""
        is_plain = (heading.operator or "=") in NUMERIC and not heading.ignore_case
        self._numbers = numbers(array) if is_plain else None
        if self._numbers is not None:
            size, valid = np.abs(self._numbers[0]), self._numbers[1]
            # Some decimals below 0.01 have too many digits.
            is_alone = ~np.isfinite(size) | ((size >= 0.0001) & (size < 0.01))
            self.kinds = np.where(is_alone, -1, 1) * (1 if valid is None else valid)
        else:
            places, values = heading.values(array)
            known: dict[object, int] = {None: 0, (): -1}
            kinds = [known.setdefault(_shared(value), len(known)) for value in values]
            self.kinds = np.array([*kinds, 0])[places]
            self.value = list(map([*values, None].__getitem__, places)).__getitem__

    def terms(self, begin: int, end: int) -> list[Column]:
        """Return a column for each constant of the rows from `begin` to `end` of one kind."""
        import numpy as np

        if self._numbers is not None:
            return [self._numbers[0]] if self.kinds[begin] else []
        values = map(self.value, range(begin, end))
        constants = [value[1] for value in values if isinstance(value, tuple)]
        places = np.arange(-begin, len(self.kinds) - begin, dtype=np.int32)
        return [(places, list(terms)) for terms in zip(*constants, strict=True)]


def _shared(value: _Value) -> object:
    """Return the tests of a value, or ``()`` if its row shares no query with others.

    Its constants are long, or Python may have to replace them: quantities and class names.
    """
    if not isinstance(value, tuple):
        return value and ()
    text = "".join(value[1])
    is_alone = len(text) > _LONG or CDT.iri in text or _CONCEPT in text
    return () if is_alone else value[0]


@dataclass(frozen=True, slots=True)
class Heading:
    """A parsed column name: an attribute, an operator if the name has one, and `ignore_case`."""

    attribute: str
    operator: str | None
    ignore_case: bool

    def parameterize(self, value: object) -> _Parsed:
        """Return a value's tests and constants; raise `UnplacedError` if it is invalid."""
        if self.operator is not None:
            value = {self.operator: value, **({IGNORE: True} if self.ignore_case else {})}
        ((_, tests),), constants = parameterize({self.attribute: value})
        return tests, list(map(str, constants))

    def values(self, array: ArrowArray) -> tuple[list[int], list[_Value]]:
        """Return each row's index into a list (-1 for null), and this list of parsed values."""
        try:
            places, values = encoded(array)
        except (OverflowError, ValueError):
            return [*range(len(array))], list(map(self.of_scalar, array))
        return places.tolist(), [None if value is None else self._parsed(value) for value in values]

    def of_scalar(self, scalar: pa.Scalar[Any]) -> _Value:
        """Return the parsed value of one row."""
        try:
            value = scalar.as_py()
        except (OverflowError, ValueError) as error:
            what = f"attribute {self.attribute!r}: Python cannot represent this value: {error}"
            return UnplacedError(what, "Cast the column to a type that Python supports.")
        return None if value is None else self._parsed(value)

    def _parsed(self, value: object) -> _Value:
        try:
            return self.parameterize(value)
        except UnplacedError as error:
            return error


def headings(names: Sequence[str]) -> list[Heading]:
    """Parse the names of columns with constraints.

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
