"""Convert columns of Arrow tables to numpy arrays and Python values. Needs ``pyarrow``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from semantic.errors import InputError, Place, Problem, require_frames, shown

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

ArrowArray: TypeAlias = "pa.Array[Any]"
ArrowBatch: TypeAlias = "pa.RecordBatch"
Numbers: TypeAlias = "NDArray[np.int64] | NDArray[np.float64]"
Column: TypeAlias = "Numbers | tuple[NDArray[np.int32], list[str]]"
"""Values of all rows: numbers, or indexes into a list of terms."""

_WIDE = dict.fromkeys(("halffloat", "float", "double"), "double") | {
    f"{sign}int{bits}": "int64" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
"""Arrow's numeric types, each with the type to which it is cast for the core."""

ROWS = 65_536
"""Maximum number of rows in a batch."""


class ArrowStream(Protocol):
    """Arrow data: a table or data frame of pyarrow, pandas, polars or DuckDB, for example."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the data through Arrow's PyCapsule interface."""


def to_table(source: ArrowStream) -> pa.Table:
    """Return Arrow data as a table, without an unnamed index of pandas.

    Raise `TypeError` if it is not Arrow data, and `InputError` if it has no Arrow type.
    """
    require_frames("pyarrow")
    import pyarrow as pa

    if isinstance(source, pa.Table):
        return source
    if not hasattr(source, "__arrow_c_stream__"):
        what = f"a table is a data frame or an Arrow table, not {shown(source)}"
        raise TypeError(f"{what}. Convert it: pyarrow.table({{'id': […], …}}).")
    try:
        table = pa.table(source)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        what = f"not a table of Arrow: {error}"
        remedy = "Give each column its own name, and values of one type of Arrow."
        raise InputError(Problem(what, Place("<table>"), remedy)) from error
    names = table.column_names
    kept = [n for n, name in enumerate(names) if not name.startswith("__index_level_")]
    return pa.table([to_column(table.column(n)) for n in kept], [names[n] for n in kept])


def to_column(source: ArrowStream) -> pa.ChunkedArray[Any]:
    """Return a column of Arrow data; categories of polars have a type that Arrow can convert."""
    import pyarrow as pa

    given: Any = source
    column: pa.ChunkedArray[Any] = pa.chunked_array(given)
    kind: Any = column.type
    is_category = pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type)
    if not (is_category and column.chunks):
        return column
    parts: list[Any] = list(column.chunks)
    given = [
        pa.DictionaryArray.from_arrays(part.indices, part.dictionary.cast("large_string"))
        for part in parts
    ]
    decoded: pa.ChunkedArray[Any] = pa.chunked_array(given)
    return decoded


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts in one UTF-8 buffer, with the offset of each text and of the buffer's end.

    Examples
    --------
    >>> texts = Texts.of(["a", "größe", ""])
    >>> texts.get(1), texts.offsets.tolist()
    ('größe', [0, 1, 8, 8])
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Texts:
        """Make `Texts` from Python strings; replace lone surrogates by question marks."""
        import numpy as np

        data = [text.encode("utf-8", "replace") for text in texts]
        offsets = np.zeros(len(data) + 1, np.int64)
        np.cumsum([len(text) for text in data], out=offsets[1:])
        return cls(np.frombuffer(b"".join(data), np.uint8), offsets)

    @classmethod
    def of_array(cls, array: ArrowArray) -> Texts:
        """Make `Texts` from the values of a column; null becomes an empty text."""
        import numpy as np

        if not is_text(array) or not len(array):
            return cls.of("" if value is None else str(value) for value in array.to_pylist())
        given: Any = array  # Casting and filling take about ten microseconds each.
        is_short = str(array.type) == "string"
        whole = given if is_short else given.cast("large_string")
        whole = whole.fill_null("") if whole.null_count else whole
        _, offsets, data = whole.buffers()
        every = np.frombuffer(offsets, np.int32 if is_short else np.int64)
        own = every[whole.offset : whole.offset + len(whole) + 1]
        bytes_ = np.frombuffer(data or b"", np.uint8)[own[0] : own[-1]]
        return cls(bytes_, (own - own[0]).astype(np.int64))

    def get(self, number: int) -> str:
        """Return the text with the index `number`, counted from 0."""
        begin, end = self.offsets[number : number + 2].tolist()
        return self.data[begin:end].tobytes().decode()

    def may_be_dated(self) -> bool:
        """Return whether any text may be a date: its fifth byte is a hyphen (``2026-01-31``)."""
        fifth = self.offsets[:-1] + 4
        found = self.data[fifth[fifth < self.offsets[1:]]] == ord("-")
        return bool(found.any())

    def blank(self) -> NDArray[np.bool_]:
        """Return a mask of the texts that are empty or only white space."""
        import numpy as np

        begins = self.offsets[:-1]
        found: NDArray[np.bool_] = self.offsets[1:] == begins
        first = np.append(self.data, np.uint8(0))[begins]
        for number in np.flatnonzero(~found & ((first <= ord(" ")) | (first >= 128))).tolist():
            found[number] = not self.get(number).strip()
        return found


def batches(source: ArrowStream) -> list[ArrowBatch]:
    """Return the rows of Arrow data as record batches of at most `ROWS` rows."""
    return to_table(source).to_batches(max_chunksize=ROWS)


def texts_of_table(table: pa.Table, id: str, query: str) -> Iterator[tuple[str, str]]:
    """Yield the id and the query text of each row; null becomes an empty text.

    `id` and `query` are the names of the two columns. Raise `InputError` unless exactly one column
    has each name.
    """
    places = [
        place_of(table, name, "Name one column of ids and one of SPARQL texts.")
        for name in (id, query)
    ]
    for batch in batches(table):
        ids, texts = (batch.column(place).to_pylist() for place in places)
        yield from ((str(i or ""), str(t or "")) for i, t in zip(ids, texts, strict=True))


def place_of(table: pa.Table, name: str, remedy: str) -> int:
    """Return the index of the column `name`; raise `InputError` unless exactly one has this name.

    `remedy` is the advice in the error.
    """
    names = table.schema.names
    if names.count(name) != 1:
        what = f"the table has {names.count(name) or 'no'} columns called {name!r}"
        raise InputError(Problem(what, Place(f"column {name!r}"), remedy))
    return names.index(name)


def numbers(array: ArrowArray) -> tuple[Numbers, NDArray[np.bool_] | None] | None:
    """Return a column's numbers (0 for null) and a mask of valid rows (``None`` if all are).

    Return ``None`` if the type of the column is neither integer nor floating-point, or if an
    integer does not fit 64 bits with sign.
    """
    kind = str(array.type)
    type_ = _WIDE.get(kind)
    if type_ is None:
        return None
    given: Any = array
    try:
        wide = given if kind == type_ else given.cast(type_)
    except ValueError:  # A value has more than 63 bits.
        return None
    wide = wide.fill_null(0) if wide.null_count else wide
    found = wide.to_numpy(zero_copy_only=False)
    return found if found.flags.aligned else found.copy(), valid(array)


def valid(array: ArrowArray) -> NDArray[np.bool_] | None:
    """Return a mask of the rows that have a value, or ``None`` if all do."""
    return array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None


def is_text(array: ArrowArray) -> bool:
    """Return whether the values of a column are texts."""
    return str(array.type) in {"string", "large_string", "string_view"}


def is_nested(array: ArrowArray) -> bool:
    """Return whether the values of a column are lists or structs."""
    from pyarrow import types

    kind: Any = array.type
    return types.is_nested(kind.value_type if types.is_dictionary(kind) else kind)


def encoded(array: ArrowArray) -> tuple[NDArray[np.int32], list[Any]]:
    """Return each row's index into a list of values (-1 for null), and this list.

    Null fields of structs are left out. Lists and structs are not compared, so each row has its own
    value. Raise `ValueError` or `OverflowError` if Python cannot hold a value: a date after the
    year 9999, nanoseconds. Raise `InputError` for Arrow's extension types.
    """
    import numpy as np
    import pyarrow as pa

    if isinstance(array.type, pa.BaseExtensionType):
        what = f"values of the type {array.type} are not supported"
        raise InputError(Problem(what, Place("<table>"), "Cast the column to another type."))
    if is_nested(array):
        given = [_without_nulls(value) for value in array.to_pylist()]
        places = np.arange(len(given), dtype=np.int32)
    else:
        found: Any = array.dictionary_encode()
        places = found.indices.cast("int32").fill_null(-1).to_numpy(zero_copy_only=False)
        given = found.dictionary.to_pylist()
    missing = [place for place, value in enumerate(given) if value is None]
    return np.where(np.isin(places, missing), np.int32(-1), places) if missing else places, given


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return value
