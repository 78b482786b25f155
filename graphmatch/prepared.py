"""A query with parameters: subscriptions that differ in constants only, as columns of terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from pyoxigraph import Literal, NamedNode

from graphmatch import _native
from graphmatch.subscription import refusal
from semantic.arrow import Texts, encoded, is_text, numbers, place_of, to_column, to_table
from semantic.attributes.bulk import SubscriptionBatch, TermColumn
from semantic.attributes.values import term_of
from semantic.errors import (
    GraphMatchError,
    InputError,
    Place,
    Problem,
    SubscriptionError,
    UnplacedError,
)

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from semantic.arrow import ArrowStream
    from semantic.terms import Term

Terms: TypeAlias = "ArrowStream | pa.Array[Any] | Iterable[Term | int | float]"
"""A column of terms: texts in N-Triples syntax, or numbers, dates and booleans."""


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query with parameters, for subscriptions that differ in these only (`Engine.prepare`)."""

    query: str
    parameters: tuple[str, ...]
    _add: Callable[[SubscriptionBatch], list[tuple[int, GraphMatchError]]] = field(repr=False)

    def subscribe(
        self,
        ids: ArrowStream | pa.Array[Any] | Iterable[str],
        columns: ArrowStream | Sequence[Terms],
    ) -> tuple[GraphMatchError, ...]:
        """Add one subscription for each id.

        Parameters
        ----------
        ids
            The ids of the subscriptions, shape ``(n,)``.
        columns
            A column of pyarrow, pandas or polars for each parameter, in the order of `parameters`,
            shape ``(n,)``. Texts are terms in N-Triples syntax: ``<urn:Laptop>``, ``"laptop"@en``.
            Numbers, dates and booleans are literals; numbers as in SPARQL: 1.5 is an
            ``xsd:decimal``, 1e30 an ``xsd:double``. A sequence of terms or of numbers may stand for
            a column. A table with columns that are named like the parameters may stand for all.

        Returns
        -------
        refused
            The errors of the refused subscriptions, in the order of rows. All others were added.

        Raises
        ------
        InputError
            If the number or the length of the columns is wrong, an id is not a text, or a value is
            not a term.
        """
        import numpy as np

        if not isinstance(columns, Sequence):
            table = to_table(columns)
            columns = [
                table.column(place_of(table, name, "Name it like the parameter."))
                for name in self.parameters
            ]
        if len(columns) != len(self.parameters):
            what = f"{len(columns)} columns for {len(self.parameters)} parameters"
            raise _input_error(what, "Give one column for each parameter, in their order.")
        names = _texts(ids)
        valid = ~names.blank()
        what, remedy = "the id is null or empty", "Give each row a unique id."
        refused = [(int(row), what, remedy) for row in np.flatnonzero(~valid)]
        found = []
        for parameter, terms in zip(self.parameters, columns, strict=True):
            column, has_value = _column(parameter, terms, len(valid))
            found.append(column)
            if has_value is not None:
                what = f"?{parameter} has no IRI or literal in this row"
                remedy = "Write terms in N-Triples syntax, or numbers."
                refused += ((int(row), what, remedy) for row in np.flatnonzero(valid & ~has_value))
                valid &= has_value
        chosen = np.flatnonzero(valid)
        rejected = self._add(SubscriptionBatch(self.query, self.parameters, names, found, chosen))
        errors = [(int(chosen[place]), error) for place, error in rejected]
        for row, what, remedy in refused:
            place = Place(names.get(row) or f"row {row + 1}")
            errors.append((row, SubscriptionError(Problem(what, place, remedy))))
        return tuple(error for _, error in sorted(errors, key=itemgetter(0)))


def prepared(
    core: _native.Core,
    query: str,
    parameters: Iterable[str],
    add: Callable[[SubscriptionBatch], list[tuple[int, GraphMatchError]]],
) -> PreparedQuery:
    """Return a query with parameters after the core has checked it; see `Engine.prepare`.

    The prepared query calls `add` later to subscribe a batch; `add` returns the positions and the
    errors of invalid rows.
    """
    names = tuple(name.removeprefix("?") for name in parameters)
    none = Texts.of([])  # Without rows, the core only checks the query.
    try:
        core.subscribe_batch(query, names, (none.data, none.offsets), [], none.offsets[:0])
    except _native.InvalidSubscriptionError as error:
        raise refusal("prepared", error, query) from None
    return PreparedQuery(query, names, add)


def _texts(ids: ArrowStream | pa.Array[Any] | Iterable[str]) -> Texts:
    try:
        array = _array(ids)
    except (TypeError, ValueError) as error:
        raise _input_error(f"the ids are not strings: {error}", "Give strings as ids.") from error
    if not is_text(array) and len(array):
        raise _input_error(f"the ids are not strings but {array.type}", "Give strings as ids.")
    return Texts.of_array(array)


def _column(
    parameter: str, terms: Terms, length: int
) -> tuple[TermColumn, NDArray[np.bool_] | None]:
    """Convert the terms of a parameter to a column for the core; also return the rows with a value.

    The mask of these rows is ``None`` if the core checks the terms. Raise `InputError` if the
    column does not have `length` terms, or has values that are not terms.
    """
    import numpy as np
    import pyarrow as pa

    place = f"the column of ?{parameter}"
    try:
        array = _array(terms)
        if len(array) != length:
            what = f"{place} has {len(array)} terms for {length} ids"
            raise _input_error(what, "Give one term for each id.")
        if array.null_count == length:  # All values are null, of any type.
            return np.zeros(length, np.int64), np.zeros(length, np.bool_)
        if (found := numbers(array)) is not None:
            return found
        if is_text(array):
            texts = Texts.of_array(array)
            return ((texts.data, texts.offsets), False), None
        places, values = encoded(array)
        return (places, [str(term_of(value)) for value in values]), None
    except (UnplacedError, TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        remedy = "Give strings in N-Triples syntax, numbers, dates or booleans."
        raise _input_error(f"{place} has values that are not terms: {error}", remedy) from error


def _array(terms: Any) -> pa.Array[Any]:
    import pyarrow as pa

    if hasattr(terms, "__arrow_c_stream__"):
        terms = to_column(terms)
        terms = pa.concat_arrays(terms.chunks) if terms.chunks else pa.array([], terms.type)
    elif hasattr(terms, "isna"):  # A series of pandas, whose missing values may be NaN.
        terms = [
            None if is_missing else term
            for term, is_missing in zip(terms, terms.isna(), strict=True)
        ]
    if not isinstance(terms, pa.Array):
        plain: Any = list(terms)
        if any(isinstance(term, NamedNode | Literal) for term in plain):
            plain = [t if isinstance(t, str | None) else str(term_of(t)) for t in plain]
        terms = pa.array(plain)
    return terms.dictionary_decode() if isinstance(terms, pa.DictionaryArray) else terms


def _input_error(what: str, remedy: str) -> InputError:
    return InputError(Problem(what, Place("prepared"), remedy))
