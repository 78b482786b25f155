"""What arrives in a stream: files, or records of Kafka, to one row a publication.

A row has a publication's triples as N-Triples, so that it is small while it is held against those
that came before. What could not be read is a row, too, and how many publications a task read. Rows
that are no publications have a key of their own and no time: they are never a duplicate and never
late, so none of them is dropped.

A file is read by one task, so a publication is put together from all of its rows in that file; one
that is in several files is a publication and its duplicates. Blank nodes are called by their
places, so that a file gives the same rows each time it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from io import BytesIO
from itertools import chain
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from graphmatch.spark.listing import whole
from graphmatch.spark.rows import ARRIVED, FRAGMENT, REFUSED, Names, detail_of
from graphmatch.spark.shipping import Shipped
from graphmatch.spark.tasks import Batches, MatchFragments, Task
from graphmatch.spark.units import How, lines_of, publications
from semantic.errors import InputError, OnProblem, Place, Problem
from semantic.publication import Publication
from semantic.reading import Cut, read_publications

_COLUMNS: Sequence[tuple[str, pa.DataType]] = (
    ("key", pa.string()),
    ("time", pa.timestamp("us", tz="UTC")),
    ("kind", pa.string()),
    ("publication", pa.string()),
    ("source", pa.string()),
    ("number", pa.int64()),
    ("lines", pa.binary()),
    ("detail", pa.string()),
)
ROW = pa.schema(_COLUMNS)
SQL = (
    "key string, time timestamp, kind string, publication string, source string, number bigint, "
    "lines binary, detail string"
)
"""The same, as Spark writes it."""

_ROWS = 1024
"""So many rows go to Spark at once: a row is a publication."""


_Found: TypeAlias = Callable[[OnProblem], Iterator[Publication]]


class _Row(NamedTuple):
    key: str
    time: datetime | None
    kind: str
    publication: str | None
    source: str
    number: int
    lines: bytes | None = None
    detail: str | None = None


class _Arriving:
    """The rows of one task."""

    def __init__(self) -> None:
        self._rows: list[_Row] = []
        self._first = ""
        self._read = 0

    def read(self, source: str, time: datetime | None, found: _Found) -> Batches:
        """Yield the rows of one file or record; `found` reads it, and reports."""
        self._first = self._first or source
        told: list[Problem] = []
        number = -1
        try:
            for number, publication in enumerate(_together(found(told.append))):
                id, lines = publication.id, packed(publication)
                self._rows.append(_Row(f"p{id}", time, FRAGMENT, id, source, number, lines))
                yield from self._full()
        except InputError as error:
            told.append(error.problem)
        self._read += number + 1
        for number, problem in enumerate(told):
            key, detail = f"t{number} {source}", detail_of(problem)
            self._rows.append(_Row(key, None, REFUSED, None, source, number, None, detail))

    def ended(self) -> Batches:
        """Yield what is left, and how many publications there were."""
        if self._first:
            first = self._first
            self._rows.append(_Row(f"a{first}", None, ARRIVED, None, first, self._read))
            yield self._taken()

    def _full(self) -> Batches:
        if len(self._rows) >= _ROWS:
            yield self._taken()

    def _taken(self) -> pa.RecordBatch:
        columns = [list(column) for column in zip(*self._rows, strict=True)]
        self._rows.clear()
        return pa.RecordBatch.from_pydict(dict(zip(ROW.names, columns, strict=True)), schema=ROW)


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """Reads files: rows of ``path``, ``time`` and ``length``.

    Parameters
    ----------
    how
        How they are read.
    """

    how: How

    def __call__(self, batches: Batches) -> Batches:
        """Take what Spark lists."""
        arriving = _Arriving()
        for batch in batches:
            for row in batch.to_pylist():
                path = row["path"].removeprefix("file:")
                path = "/" + path.lstrip("/") if path != row["path"] else path
                found = partial(self._found, path, row["length"])
                yield from arriving.read(path, row["time"], found)
        yield from arriving.ended()

    def _found(self, path: str, size: int, on_problem: OnProblem) -> Iterator[Publication]:
        for unit in whole(path, size, self.how):
            yield from publications(unit, self.how, on_problem)


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """Reads records of Kafka: key, value, topic, partition, offset, time.

    A record with a key is one publication, and the key is its id. One without is cut as a file is,
    whose name is topic, partition and offset.

    Parameters
    ----------
    how
        How they are read.
    """

    how: How

    def __call__(self, batches: Batches) -> Batches:
        """Take what Spark reads of topics."""
        arriving = _Arriving()
        for batch in batches:
            for row in batch.to_pylist():
                source = f"{row['topic']}/{row['partition']}/{row['offset']:020}"
                found = partial(self._found, row["key"], row["value"], source)
                yield from arriving.read(source, row["time"], found)
        yield from arriving.ended()

    def _found(
        self,
        key: bytes | None,
        value: bytes | None,
        source: str,
        on_problem: OnProblem,
    ) -> Iterator[Publication]:
        try:
            id = None if key is None else key.decode()
        except UnicodeDecodeError as error:
            what, remedy = "the record's key is not UTF-8", "Make it the publication's id, or none."
            raise InputError(Problem(what, Place(source), remedy)) from error
        if value is None:
            what, remedy = "the record has no value", "Send a document in it."
            raise InputError(Problem(what, Place(source), remedy))
        for publication in read_publications(
            _Value(value, source),
            cut=self.how.cut if id is None else Cut.DOCUMENT,
            format=self.how.format,
            base_iri=self.how.base,
            on_problem=on_problem,
            limits=self.how.limits,
        ):
            yield publication.called(id)


class _Value(BytesIO):
    """A record's value, which messages call by a name."""

    def __init__(self, value: bytes, name: str) -> None:
        super().__init__(value)
        self.name = name


def _together(found: Iterable[Publication]) -> Iterator[Publication]:
    """Put publications of one file together that have one id."""
    parts: dict[str, list[Publication]] = {}
    for publication in found:
        parts.setdefault(publication.id, []).append(publication)
    for id, several in parts.items():
        if len(several) == 1:
            yield several[0]
        else:
            triples = chain.from_iterable(part.triples for part in several)
            yield Publication.of(id, triples, several[0].source)


def packed(publication: Publication) -> bytes:
    r"""Return a publication's triples as N-Triples, blank nodes called by their places.

    Examples
    --------
    >>> from pyoxigraph import BlankNode, NamedNode
    >>> knows = NamedNode("urn:knows")
    >>> packed(Publication.of("urn:p", [(BlankNode(), knows, BlankNode("x"))]))
    b'_:b0 <urn:knows> _:b1 .\n'
    """
    return lines_of(publication, Names(publication).said)


def first_of_each(batches: Batches) -> Batches:
    """Keep of rows with one key the one that arrived first.

    Spark keeps any of those that one batch has; a batch that is run again has to give the same.
    """
    several = list(batches)
    if not several:
        return
    table = pa.Table.from_batches(several)
    columns = (table.column(name).to_pylist() for name in ("key", "time", "source", "number"))
    first: dict[str, tuple[tuple[datetime, str, int], int]] = {}
    for row, (key, *place) in enumerate(zip(*columns, strict=True)):
        known = first.setdefault(key, (place, row))
        if place < known[0]:
            first[key] = place, row
    kept = table.take(pa.array(sorted(row for _, row in first.values()), pa.int64()))
    yield from kept.to_batches(max_chunksize=_ROWS)


@dataclass(frozen=True, slots=True)
class MatchArrived:
    """Matches the publications among rows; what else rows say is said again.

    How many were dropped is how many were read but for those that are there: of all tasks together,
    since one that was read in a task may be matched in another.

    Parameters
    ----------
    how
        What limits hold.
    engine
        Where the engine is.
    """

    how: How
    engine: Shipped

    def __call__(self, batches: Batches) -> Batches:
        """Take rows of this module."""
        task = Task(self.engine.opened())
        match = MatchFragments(self.how, self.engine).match
        dropped = 0
        for batch in batches:
            columns = (
                batch.column(name).to_pylist()
                for name in ("kind", "publication", "number", "lines", "detail")
            )
            for kind, id, number, lines, detail in zip(*columns, strict=True):
                if kind == FRAGMENT:
                    match(task, id, lines)
                    dropped -= 1
                elif kind == ARRIVED:
                    dropped += number
                else:
                    task.told(detail)
                yield from task.rows.full()
        task.rows.dropped(dropped)
        yield from task.ended()
