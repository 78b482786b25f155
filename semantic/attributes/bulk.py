"""Attribute subscriptions from an Arrow table: each row is a query.

A row means the same as the equivalent JSON object. In each column, a distinct value is parsed once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from semantic.arrow import ArrowArray, ArrowStream, batches, encoded, place_of, to_table
from semantic.attributes.constraints import IGNORE, OPERATORS, Constant, Test, parameterize, sparql
from semantic.attributes.names import attribute
from semantic.errors import InputError, Place, Problem, SubscriptionError, UnplacedError

if TYPE_CHECKING:
    import pyarrow as pa

_Value: TypeAlias = "tuple[tuple[Test, ...], list[Constant]] | UnplacedError | None"
"""The tests and constants of a value, or why it is invalid; ``None`` for null."""
_NO_ID = "Give each row a unique id."


def queries_of_table(
    source: ArrowStream, id: str = "id"
) -> Iterator[tuple[str, str] | SubscriptionError]:
    """Yield the id and SPARQL query of each row of an Arrow table, or the error of an invalid row.

    A column name is an attribute, which means equality, or an attribute, a space and an operator:
    ``brand``, ``price.value <=``, ``target isa``, ``title ignore case contains``. Null adds no
    constraint. `id` is the name of the column with the ids.

    Raises
    ------
    InputError
        If the column of ids is missing, or a column name is invalid.
    """
    table = to_table(source)
    own = place_of(table, id, _NO_ID)
    heads = headings([name for place, name in enumerate(table.schema.names) if place != own])
    first = {head.attribute: -place for place, head in reversed([*enumerate(heads)])}
    number = 0
    for batch in batches(table):
        arrays = [batch.column(n) for n in range(batch.num_columns) if n != own]
        columns = [(head.attribute, head.values(a)) for head, a in zip(heads, arrays, strict=True)]
        columns.sort(key=lambda column: -first[column[0]])
        for row, name in enumerate(batch.column(own).to_pylist()):
            number += 1
            given = "" if name is None else str(name)
            try:
                yield given, _query(given, [(name, values[row]) for name, values in columns])
            except UnplacedError as error:
                place = Place(given if given.strip() else f"row {number}")
                yield SubscriptionError(Problem(error.what, place, error.remedy))


def _query(id: str, values: Sequence[tuple[str, _Value]]) -> str:
    """Return the SPARQL query of a row; raise `UnplacedError` if it is invalid.

    `values` are pairs of an attribute and the parsed value of a column.
    """
    if not id.strip():
        raise UnplacedError("the id is null or empty", _NO_ID)
    shape: defaultdict[str, tuple[Test, ...]] = defaultdict(tuple)
    constants: list[Constant] = []
    for name, value in values:
        if isinstance(value, UnplacedError):
            raise value
        if value is not None:
            shape[name] += value[0]
            constants += value[1]
    if not shape:
        raise UnplacedError("all constraints of the row are null", "Add one, or remove the row.")
    return sparql(tuple(shape.items()), constants)


@dataclass(frozen=True, slots=True)
class Heading:
    """A parsed column name: an attribute, an operator if the name has one, and `ignore_case`."""

    attribute: str
    operator: str | None
    ignore_case: bool

    def parameterize(self, value: object) -> tuple[tuple[Test, ...], list[Constant]]:
        """Return a value's tests and constants; raise `UnplacedError` if it is invalid."""
        if self.operator is not None:
            value = {self.operator: value, **({IGNORE: True} if self.ignore_case else {})}
        ((_, tests),), constants = parameterize({self.attribute: value})
        return tests, constants

    def values(self, array: ArrowArray) -> list[_Value]:
        """Return each row's tests and constants, or its error (not raised); ``None`` for null."""
        try:
            places, values = encoded(array)
        except (OverflowError, ValueError):
            return list(map(self._of_scalar, array))
        found: list[_Value] = [None if value is None else self._parsed(value) for value in values]
        return [found[place] if place >= 0 else None for place in places.tolist()]

    def _of_scalar(self, scalar: pa.Scalar[Any]) -> _Value:
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
