"""Events: from JSON Lines, dictionaries or Arrow tables to publications of one subject.

``{"id": "e1", "price.value": 399, "tags": ["a", "b"], "target": {"weight": 2}}`` is the event
``e1`` with the attributes ``price.value``, ``tags`` (two values) and ``target.weight``. Nested
objects are paths; of a list, each element is a value, so which values stood together in one of
several nested objects is not kept. Texts are texts here: that one names a class is seen when the
event is enriched.

The subject is the id where that is an IRI, and a blank node otherwise.

Cost: that of JSON, and a triple a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Protocol

from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.attributes.names import AttributeNameError, attribute
from semantic.attributes.rows import RowReader, opened
from semantic.attributes.values import Decoder, TermError, dated, term_of
from semantic.errors import InputError, OnProblem, Place, Problem, warn_problem
from semantic.publication import Publication
from semantic.terms import Term, Triple

_REMEDY = 'Write {"id": "…", "attribute": value} on one line.'
_NAMING = "Write steps with points between them: target.hardDisk.size.value."
_VALUES = frozenset({"value", "datatype", "language", "unit"})


def event(id: str, attributes: Mapping[str, object], source: Place | None = None) -> Publication:
    """Return an event as a publication.

    Parameters
    ----------
    id
        An IRI, or any name.
    attributes
        Name to value, list of values, or nested attributes; ``None`` is no value.
    source
        Where it was read, for messages.

    Raises
    ------
    InputError
        When a name or a value cannot be written as RDF.

    Examples
    --------
    >>> for s, p, o in event("e1", {"price": {"value": 399}, "tags": ["a", "b"]}).triples:
    ...     print(s, p, o)
    _:event <urn:graphmatch:attribute:price.value> \
"399"^^<http://www.w3.org/2001/XMLSchema#integer>
    _:event <urn:graphmatch:attribute:tags> "a"
    _:event <urn:graphmatch:attribute:tags> "b"
    """
    place = source or Place(id)
    try:
        triples = tuple(_triples(_subject(id), "", attributes))
    except TermError as error:
        raise InputError(Problem(error.what, place, error.remedy)) from error
    except AttributeNameError as error:
        raise InputError(Problem(str(error), place, _NAMING)) from error
    if not triples:
        raise InputError(Problem("the event has no attributes", place, _REMEDY))
    return Publication.of(id, triples, place)


def _subject(id: str) -> NamedNode | BlankNode:
    try:
        return NamedNode(id)
    except ValueError:
        return BlankNode("event")


def _triples(subject: Term, path: str, value: object) -> Iterator[Triple]:
    """Yield the triples of what stands at a path."""
    if isinstance(value, Mapping) and not _is_value(value):
        for name, inner in value.items():
            if not isinstance(name, str):
                raise TermError(f"{name!r} is no name of an attribute", "Write it in quotes.")
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
    """Whether an object is a value with its datatype, language or unit, or an IRI.

    ``{"value": 399}`` alone is the attribute ``value``.
    """
    return value.keys() == {"iri"} or (
        "value" in value and len(value) > 1 and _VALUES.issuperset(value)
    )


def _value(value: object) -> Term:
    term = term_of(value)
    return dated(term) if isinstance(value, str) and isinstance(term, Literal) else term


def read_events(
    path: str,
    *,
    decoder: Decoder | None = None,
    on_problem: OnProblem = warn_problem,
) -> Iterator[Publication]:
    """Yield the events of a file of JSON Lines; ``-`` is standard input.

    An event without ``id`` is named after its file and line.

    Parameters
    ----------
    path
        The file.
    decoder
        Remembers texts and numbers; a new one by default.
    on_problem
        Called with each line that is no event, and with a file that cannot be read.
    """
    reader = RowReader(path, decoder or Decoder(), _REMEDY, on_problem)
    try:
        for number, row in reader.rows(_lines(path)):
            try:
                yield _of_row(row, f"{path}:{number}", reader.place(number))
            except InputError as error:
                on_problem(error.problem)
    except OSError as error:
        reason = error.strerror or str(error)
        remedy = "Check the name and permissions."
        on_problem(Problem(f"cannot be read: {reason}", Place(path), remedy))


def _lines(path: str) -> Iterable[bytes]:
    if path != "-":
        return opened(path)
    import sys

    return sys.stdin.buffer


def _of_row(row: dict[str, Any], name: str, place: Place) -> Publication:
    given = row.pop("id", None)
    id = given.value if isinstance(given, Literal) else given
    if id is None:
        return event(name, row, place)
    if not isinstance(id, str) or not id.strip():
        raise InputError(Problem("the field `id` is not a text", place, _REMEDY))
    return event(id, row, Place(place.source, place.line, item=id))


class ArrowRows(Protocol):
    """What a record batch of Arrow can do; ``pyarrow`` itself is not needed here."""

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries."""


class ArrowTable(Protocol):
    """What a table of Arrow can do."""

    def to_batches(self) -> Sequence[ArrowRows]:
        """Return the table in parts."""


def events_of_table(table: ArrowTable, id: str = "id") -> Iterator[Publication]:
    """Yield the events of an Arrow table: a row each, columns are attributes.

    Structs are paths, lists several values, nulls no value.

    Parameters
    ----------
    table
        A ``pyarrow.Table``.
    id
        The column with the events' ids; where there is none, events are named by their numbers.

    Raises
    ------
    InputError
        When a name or a value cannot be written as RDF.
    """
    number = 0
    for batch in table.to_batches():
        for row in batch.to_pylist():
            number += 1
            given = row.pop(id, None)
            name = f"row {number}" if given is None else str(given)
            yield event(name, {column: _plain(value) for column, value in row.items()})


def _plain(value: object) -> object:
    """Return what Arrow gives as JSON would: a decimal without an exponent."""
    return Decimal(f"{value:f}") if isinstance(value, Decimal) else value
