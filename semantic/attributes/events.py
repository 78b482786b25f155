"""Events: from JSON Lines, dictionaries or Arrow tables to publications of one subject.

``{"id": "e1", "price.value": 399, "tags": ["a", "b"], "target": {"weight": 2}}`` is the event
``e1`` with the attributes ``price.value``, ``tags`` (two values) and ``target.weight``. Nested
objects become paths. Each element of a list is a value, so a list of nested objects loses the
grouping of their values. Texts stay texts here; enrichment finds those that name a class.

The subject is the id if that is an IRI, and a blank node otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.arrow import ArrowArray, ArrowBatch, Column, Texts, encoded, is_nested, is_text, valid
from semantic.arrow import numbers as numbers_of
from semantic.attributes.names import attribute
from semantic.attributes.values import LineReader, TermError, dated, term_of
from semantic.errors import InputError, OnProblem, Place, Problem, UnplacedError, warn_problem
from semantic.files import unreadable
from semantic.publication import Publication
from semantic.terms import Term, Triple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Values: TypeAlias = "Column | tuple[tuple[NDArray[np.uint8], NDArray[np.int64]], bool]"
"""Values of all rows: numbers, indices into terms, or texts with a flag that is true for IRIs."""
EventColumn: TypeAlias = "tuple[str, Values, NDArray[np.bool_] | None]"
"""A property, its values, and a mask of the rows with a value (``None`` if all have one)."""
_REMEDY = 'Write {"id": "…", "attribute": value} on one line.'
_VALUES = frozenset({"value", "datatype", "language", "unit"})


@dataclass(frozen=True, slots=True)
class Event:
    """An event: its attributes and their values, before conversion to RDF terms.

    Parameters
    ----------
    id
        An IRI, or any name.
    attributes
        Name to value, list of values, or nested attributes; ``None`` is ignored.
    source
        The event's place in its file, for messages.

    Examples
    --------
    >>> len(Event("e1", {"price": {"value": 399}, "tags": ["a", "b"]}).publication().triples)
    3
    """

    id: str
    attributes: dict[str, Any]
    source: Place | None = None

    def publication(self) -> Publication:
        """Return the event as a publication; see `event`."""
        return event(self.id, self.attributes, self.source)


def event(id: str, attributes: Mapping[str, object], source: Place | None = None) -> Publication:
    """Convert an event (see `Event`) to a publication.

    Raises `InputError` if a name or a value cannot be written as RDF, or if the event is empty.
    """
    place = source or Place(id)
    try:
        triples = tuple(_triples(_subject(id), "", attributes))
    except UnplacedError as error:
        raise InputError(Problem(error.what, place, error.remedy)) from error
    if not triples:
        raise InputError(Problem("the event has no attributes", place, _REMEDY))
    return Publication.of(id, triples, place)


def _subject(id: str) -> NamedNode | BlankNode:
    try:
        return NamedNode(id)
    except ValueError:
        return BlankNode("event")


def _triples(subject: Term, path: str, value: object) -> Iterator[Triple]:
    """Yield the triples of a JSON value at an attribute path; nested objects extend the path.

    Raise `UnplacedError` if a name or a value cannot be written as RDF.
    """
    if isinstance(value, Mapping) and not (path and _is_value(value)):
        for name, inner in value.items():
            if not isinstance(name, str):
                raise TermError(f"{name!r} is not a valid attribute name", "Write it in quotes.")
            yield from _triples(subject, f"{path}.{name}" if path else name, inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from _triples(subject, path, each)
    elif value is not None:
        try:
            yield subject, attribute(path), _value(value)
        except TermError as error:
            raise TermError(f"attribute {path!r}: {error.what}", error.remedy) from error


def _is_value(value: Mapping[Any, object]) -> bool:
    """Return whether a JSON object is a value with datatype, language or unit, or an IRI.

    ``{"value": 399}`` alone is the attribute ``value``.
    """
    return value.keys() == {"iri"} or (
        "value" in value and len(value) > 1 and _VALUES.issuperset(value)
    )


def _value(value: object) -> Term:
    term = term_of(value)
    return dated(term) if isinstance(value, str) and isinstance(term, Literal) else term


def read_events(path: str, *, on_problem: OnProblem = warn_problem) -> Iterator[Publication]:
    """Yield the events of a JSON Lines file; ``-`` is standard input.

    The id of an event without ``id`` is its file and line.

    Parameters
    ----------
    path
        The file.
    on_problem
        Called for each invalid line, and for an unreadable file.
    """
    reader = LineReader(path, _REMEDY, on_problem)
    try:
        for number, row in reader.rows(sys.stdin.buffer) if path == "-" else reader.file():
            try:
                yield _of_row(row, f"{path}:{number}", reader.place(number))
            except InputError as error:
                on_problem(error.problem)
    except OSError as error:
        on_problem(unreadable(path, error))


def _of_row(row: dict[str, Any], name: str, place: Place) -> Publication:
    given = row.pop("id", None)
    if given is None:
        return event(name, row, place)
    id = given.value if isinstance(given, Literal) else given
    if not isinstance(id, str) or not id.strip():
        raise InputError(Problem("the field `id` is not a string", place, _REMEDY))
    return event(id, row, Place(place.source, place.line, item=id))


class EventColumns:
    """The events of an Arrow record batch (one per row), with access by row and by column.

    `id` names the column with the ids; `before` is the number of rows in earlier batches. An event
    without an id gets its row number, such as ``row 5``.
    """

    def __init__(self, batch: ArrowBatch, id: str, before: int) -> None:
        columns = list(zip(batch.schema.names, batch.columns, strict=True))
        self._arrays = {name: array for name, array in columns if name != id}
        own = [array for name, array in columns if name == id]
        if own and not own[0].null_count:
            self.ids = Texts.of_array(own[0])
        else:
            given: list[Any] = own[0].to_pylist() if own else [None] * batch.num_rows
            named = enumerate(given, before + 1)
            self.ids = Texts.of(f"row {n}" if name is None else str(name) for n, name in named)

    def event(self, row: int) -> Event:
        """Return the event of a row, counted from 0 in this batch."""
        values = {name: array[row].as_py() for name, array in self._arrays.items()}
        return Event(self.ids.get(row), values)

    def columns(self) -> list[EventColumn] | None:
        """Return each attribute's property, values and mask; ``None`` if paths may differ by row.

        Raises `InputError` if a name or a value cannot be written as RDF.
        """
        found: list[EventColumn] = []
        for name, array, are_names in self._flat():
            if array is None:
                return None
            try:
                found.append((str(attribute(name)), *_values(array, are_names)))
            except (OverflowError, ValueError) as error:
                remedy = "Cast the column to a type that Python supports."
                remedy = error.remedy if isinstance(error, UnplacedError) else remedy
                raise InputError(Problem(str(error), Place(f"column {name!r}"), remedy)) from error
        return found

    def _flat(self) -> Iterator[tuple[str, ArrowArray | None, bool]]:
        """Yield each attribute's path, its values, and whether they are IRIs; flatten structs.

        If rows may differ in their paths, the values are ``None``.
        """
        from pyarrow import types

        waiting = list(self._arrays.items())[::-1]
        while waiting:
            name, array = waiting.pop()
            if not is_nested(array):
                yield name, array, False
                continue
            fields = [f.name for f in array.type] if types.is_struct(array.type) else []
            if not fields or ({"iri", "value"} & {*fields} and fields != ["iri"]):
                yield name, None, False
                return
            struct: Any = array
            parts: list[ArrowArray] = struct.flatten()
            if fields == ["iri"]:
                is_plain = is_text(parts[0]) and parts[0].null_count == array.null_count
                yield name, parts[0] if is_plain else None, True
            else:
                paths = (f"{name}.{field}" if name else field for field in fields)
                waiting += list(zip(paths, parts, strict=True))[::-1]


def _values(array: ArrowArray, are_names: bool) -> tuple[Values, NDArray[np.bool_] | None]:
    """Return a column's values and mask: numbers, texts or IRIs for the core, otherwise terms."""
    if is_text(array) and len(array):
        texts = Texts.of_array(array)
        first = texts.get(0)
        is_whole = first.startswith("urn:") or "://" in first
        if is_whole if are_names else not texts.may_be_dated():
            return ((texts.data, texts.offsets), are_names), valid(array)
    if not are_names and (numbers := numbers_of(array)) is not None:
        return numbers
    places, given = encoded(array)
    values = ({"iri": one} if are_names else one for one in given)
    terms = [
        "" if one is None else str(_value(value)) for one, value in zip(given, values, strict=True)
    ]
    return (places, terms), places >= 0
