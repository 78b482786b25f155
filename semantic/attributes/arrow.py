"""As much of Arrow's arrays as is read here, as arrays of numpy, without ``pyarrow`` itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from pyoxigraph import Literal

from semantic.errors import InputError, Place, Problem
from semantic.vocabulary import XSD

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TEXTS = ("string", "large_string", "string_view")
_INTEGERS = tuple(f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64))
_FLOATS = ("halffloat", "float", "double")
_ENCODED = (*_TEXTS, *_INTEGERS, *_FLOATS, "bool")
_ENCODED_BEGIN = ("decimal128", "decimal256", "date", "timestamp", "dictionary")
"""Types whose different values Arrow finds."""
ROWS = 65_536
"""So many rows of a table are looked at together."""


Column: TypeAlias = "NDArray[np.int64] | NDArray[np.float64] | tuple[NDArray[np.int32], list[str]]"
"""Values of all rows: numbers, or places among terms."""


class ArrowArray(Protocol):
    """A column of a record batch."""

    @property
    def type(self) -> object:
        """Return the type of its values, which says what it is as text."""

    @property
    def null_count(self) -> int:
        """Return how many values are null."""

    @property
    def offset(self) -> int:
        """Return where it begins in its buffers."""

    def __len__(self) -> int:
        """Return how many values it has, null included."""

    def buffers(self) -> Sequence[Any]:
        """Return the buffers that it is made of."""

    def dictionary_encode(self) -> ArrowDictionary:
        """Return the column as places among its different values."""

    def cast(self, target_type: str) -> ArrowArray:
        """Return the column with values of another type."""

    def fill_null(self, fill_value: int | str) -> ArrowArray:
        """Return the column with a value instead of null."""

    def is_valid(self) -> ArrowArray:
        """Return for each value whether it is not null."""

    def to_numpy(self, *, zero_copy_only: bool) -> NDArray[Any]:
        """Return the values as an array of numpy."""

    def to_pylist(self) -> list[Any]:
        """Return the values as Python has them."""

    def flatten(self) -> Sequence[ArrowArray]:
        """Return the columns of a struct's fields, null where that is."""

    def slice(self, offset: int, length: int) -> ArrowArray:
        """Return some of the values."""


class ArrowDictionary(Protocol):
    """A column as places among its different values."""

    @property
    def indices(self) -> ArrowArray:
        """Return the places."""

    @property
    def dictionary(self) -> ArrowArray:
        """Return the values."""


class ArrowSchema(Protocol):
    """The columns' names."""

    @property
    def names(self) -> list[str]:
        """Return them in order."""


class ArrowBatch(Protocol):
    """A record batch."""

    @property
    def schema(self) -> ArrowSchema:
        """Return the columns' names."""

    @property
    def num_rows(self) -> int:
        """Return the number of rows."""

    def column(self, i: int, /) -> ArrowArray:
        """Return a column by its place."""

    def slice(self, offset: int, length: int) -> ArrowBatch:
        """Return some rows."""


@runtime_checkable
class ArrowTable(Protocol):
    """A table: record batches, one behind the other."""

    @property
    def schema(self) -> ArrowSchema:
        """Return the columns' names."""

    def to_batches(self) -> Sequence[ArrowBatch]:
        """Return the batches."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts one behind the other.

    Parameters
    ----------
    data
        Their bytes, in UTF-8.
    offsets
        Where each begins, and the end of the last.

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
        """Return texts of Python; of half characters a question mark is left."""
        import numpy as np

        data = [text.encode("utf-8", "replace") for text in texts]
        offsets = np.zeros(len(data) + 1, np.int64)
        np.cumsum([len(text) for text in data], out=offsets[1:])
        return cls(np.frombuffer(b"".join(data), np.uint8), offsets)

    @classmethod
    def of_array(cls, array: ArrowArray) -> Texts:
        """Return the values of a column as texts, an empty one for null."""
        import numpy as np

        kind = str(array.type)
        if kind not in _TEXTS or not len(array):
            return cls.of("" if value is None else str(value) for value in array.to_pylist())
        whole = array.cast("large_string") if kind == "string_view" else array
        whole = whole.fill_null("") if whole.null_count else whole
        _, offsets, data = whole.buffers()
        width: Any = np.int32 if kind == "string" else np.int64
        every = np.frombuffer(offsets, width)[whole.offset : whole.offset + len(whole) + 1]
        return cls(np.frombuffer(data or b"", np.uint8), every.astype(np.int64))

    def get(self, number: int) -> str:
        """Return a text by its number."""
        begin, end = self.offsets[number : number + 2].tolist()
        return self.data[begin:end].tobytes().decode()

    def having(self, bytes: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the texts that have some of the bytes, of all of `data`.

        Examples
        --------
        >>> texts = Texts.of(["a b", "c", " "])
        >>> texts.having(texts.data == ord(" ")).tolist()
        [0, 2]
        """
        import numpy as np

        places = np.searchsorted(self.offsets, np.flatnonzero(bytes), side="right") - 1
        every = np.unique(places)
        return every[(every >= 0) & (every < len(self.offsets) - 1)]

    def may_be_dated(self) -> bool:
        """Whether some text may be a date: its fifth byte is a hyphen."""
        fifth = self.offsets[:-1] + 4
        found = self.data[fifth[fifth < self.offsets[1:]]] == ord("-")
        return bool(found.any())

    def blank(self) -> NDArray[np.bool_]:
        """Say for each text whether it is empty, or of white space alone."""
        import numpy as np

        begins = self.offsets[:-1]
        found: NDArray[np.bool_] = self.offsets[1:] == begins
        first = np.append(self.data, np.uint8(0))[begins]
        for number in np.flatnonzero(~found & ((first <= ord(" ")) | (first >= 128))).tolist():
            found[number] = not self.get(number).strip()
        return found


def batches(table: ArrowTable | ArrowBatch) -> Iterator[ArrowBatch]:
    """Yield the rows of a table, or of the batch that it is, `ROWS` at a time at most."""
    for batch in table.to_batches() if isinstance(table, ArrowTable) else [table]:
        if batch.num_rows <= ROWS:
            yield batch
            continue
        for begin in range(0, batch.num_rows, ROWS):
            yield batch.slice(begin, ROWS)


def texts_of_table(
    table: ArrowTable | ArrowBatch, id: str, query: str
) -> Iterator[tuple[str, str]]:
    """Yield the ids and texts of a table; a null is an empty text.

    Raises
    ------
    InputError
        When there are not one column of ids and one of texts.
    """
    names = table.schema.names
    for name in (id, query):
        if names.count(name) != 1:
            what = f"the table has {names.count(name) or 'no'} columns called {name!r}"
            remedy = "Name one column of ids and one of SPARQL texts."
            raise InputError(Problem(what, Place(f"column {name!r}"), remedy))
    for batch in batches(table):
        ids, texts = (batch.column(names.index(name)).to_pylist() for name in (id, query))
        yield from ((str(i or ""), str(t or "")) for i, t in zip(ids, texts, strict=True))


def numbers(
    array: ArrowArray,
) -> tuple[NDArray[np.int64] | NDArray[np.float64], NDArray[np.bool_] | None] | None:
    """Return the numbers of a column, anything for null, and which rows have one if not all do.

    ``None`` where it has no integers of 64 bits and no floating-point numbers.
    """
    import numpy as np

    kind = str(array.type)
    if kind not in (*_INTEGERS, *_FLOATS):
        return None
    wanted = "int64" if kind in _INTEGERS else "double"
    try:
        wide = array if kind == wanted else array.cast(wanted)
    except ValueError:  # more than 63 bits
        return None
    if not array.null_count:
        whole = wide.to_numpy(zero_copy_only=False)
        return np.require(whole, requirements=["ALIGNED", "C_CONTIGUOUS"]), None
    return wide.fill_null(0).to_numpy(zero_copy_only=False), valid(array)


def valid(array: ArrowArray) -> NDArray[np.bool_] | None:
    """Say which rows of a column have a value; ``None`` if all do."""
    return array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None


def is_text(array: ArrowArray) -> bool:
    """Whether the values of a column are texts."""
    return str(array.type) in _TEXTS


def encoded(array: ArrowArray) -> tuple[NDArray[np.int32], list[Any]]:
    """Return for each row the place of its value, -1 for null, and the values.

    Numbers are literals, so that decimals keep their digits; of structs, null fields are left out.
    Lists and structs are not compared: each row has a value of its own.

    Raises
    ------
    ValueError, OverflowError
        When Python has no such value: a date beyond the year 9999, nanoseconds.
    """
    import numpy as np

    kind = str(array.type)
    if kind in _ENCODED or kind.startswith(_ENCODED_BEGIN):
        found = array.dictionary_encode()
        places = found.indices.cast("int32").fill_null(-1).to_numpy(zero_copy_only=False)
        given = values(found.dictionary)
        if found.dictionary.null_count:  # of a column that is a dictionary already
            missing = [place for place, value in enumerate(given) if value is None]
            places = np.where(np.isin(places, missing), np.int32(-1), places)
        return places, given
    given = [_without_nulls(value) for value in array.to_pylist()]
    every = np.arange(len(given), dtype=np.int32)
    every[np.array([value is None for value in given], np.bool_)] = -1
    return every, given


def values(array: ArrowArray) -> list[Any]:
    """Return the values of a column as `semantic.attributes.values.term_of` takes them.

    Raises
    ------
    ValueError, OverflowError
        As `encoded`.
    """
    kind = str(array.type)
    if array.null_count or kind not in (*_TEXTS, *_INTEGERS, *_FLOATS):
        return [_plain(value) for value in array.to_pylist()]
    found: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
    if kind in _INTEGERS:
        integer = XSD["integer"]
        return [Literal(text, datatype=integer) for text in map(str, found)]
    return list(_floats(found)) if kind in _FLOATS else found


def _floats(given: list[float]) -> Iterator[object]:
    """Yield literals; what is infinite or no number stays as it is."""
    decimal, double = XSD["decimal"], XSD["double"]
    for value, text in zip(given, map(str, given), strict=True):
        if "e" in text:
            yield Literal(text, datatype=double)
        else:
            yield value if "n" in text else Literal(text, datatype=decimal)


def _plain(value: object) -> object:
    """Return a decimal as it is written without an exponent."""
    if isinstance(value, Decimal):
        return Literal(f"{value:f}", datatype=XSD["decimal"])
    return value


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_plain(each) for each in value] if isinstance(value, list) else _plain(value)
