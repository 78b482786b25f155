"""The work of Spark's workers: from Arrow batches of publications to Arrow batches of matches.

A row of the result is a solution of a match, rejected input, or the counters of the task. Rejected
input has `CORRUPT` and the columns that the caller keeps; its other columns are null.
`graphmatch.spark.matching` adds up the counters (`METRICS`) and removes their rows. So each is
counted once, however often Spark repeats a task.

Blank nodes in solutions have the names that the triples have. Those of documents are numbered in
the publication. So the same data always gives the same rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain, count
from time import perf_counter
from typing import Any

import pyarrow as pa
from pyoxigraph import BlankNode, Triple
from pyspark.sql.types import StructField, StructType

from graphmatch import _native
from graphmatch.report import CoreMatches, MatchReport
from graphmatch.spark.java import SparkError
from graphmatch.spark.snapshots import SnapshotHandle, Worker
from semantic.errors import Choice, InputError, Place, Problem, Severity
from semantic.publication import Publication
from semantic.tables import lines_of_rows, problem_of_row
from semantic.terms import Term

ID, TEXTS, ROWS, DOCUMENT, SOURCE = "publication", "triples", "rows", "document", "source"
"""The columns of tasks' input, besides the kept ones.

``triples`` is N-Triples, ``rows`` the input of `semantic.tables.lines_of_rows`.
"""
NOW, FIXED = "_now", "_fixed_now"
"""The time of the query or the micro-batch, and the one that the caller set."""
CORRUPT, METRICS = "_corrupt", "_metrics"
KEPT = "_kept_"
"""The prefix of kept columns in tasks."""
MATCHES_SQL = (
    "publication string, subscription string, solution map<string,string>, graph string, "
    f"{CORRUPT} string"
)
METRICS_SQL = (
    "publications bigint, triples bigint, matches bigint, refused bigint, warnings bigint, "
    "engine string, milliseconds double"
)
_METRICS = pa.struct(
    [
        *((name, pa.int64()) for name in METRICS_SQL.split(" bigint, ")[:5]),
        ("engine", pa.string()),
        ("milliseconds", pa.float64()),
    ]
)
_COLUMNS: Mapping[str, Any] = {
    ID: pa.string(),
    "subscription": pa.string(),
    "solution": pa.map_(pa.string(), pa.string()),
    "graph": pa.string(),
    CORRUPT: pa.string(),
    METRICS: _METRICS,
}
_CALLED = ("_:", "<<")
"""The prefixes of blank nodes, and of triples, which may have some: `TermTexts` names them."""
_TABLE = "<table>"
_ROWS = 8192
"""The approximate number of rows in a batch to Spark."""

log = logging.getLogger("graphmatch.spark")


class Mode(Choice):
    """The treatment of malformed input, as in Spark's own readers."""

    PERMISSIVE = "PERMISSIVE"
    """Return a row with the problem, its place, and the remedy."""
    DROPMALFORMED = "DROPMALFORMED"
    """Count the input, and drop it."""
    FAILFAST = "FAILFAST"
    """End the query."""


@dataclass(frozen=True, slots=True)
class MatchTask:
    """The work of a task, as a function for ``mapInArrow``.

    Parameters
    ----------
    snapshots
        The snapshots of the engine.
    reading
        The options for reading documents: format, split_by and base, as in `Engine.filter`;
        ``None`` if rows are triples of publications as N-Triples.
    whole
        Whether a row has all of its publication. Otherwise a task reads all of its rows before it
        matches any.
    kept
        The number of kept columns.
    solutions
        Whether to return a row for each solution, or one for each match.
    mode
        The treatment of malformed input.
    """

    snapshots: SnapshotHandle
    reading: tuple[str | None, str, str | None] | None
    whole: bool
    kept: int
    solutions: bool
    mode: Mode

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the publications of a partition; yield matches, rejected input, and counters."""
        task: _TaskRun | None = None
        for table in self._tables(batches):
            if task is None:
                worker = self.snapshots.opened(_time(table, NOW))
                if FIXED in table.column_names:
                    worker.now = _time(table, FIXED)
                task = _TaskRun(self, worker)
            yield from task.match(table)
        if task is not None:
            yield task.ended()

    def _tables(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield the rows in tables, each with all rows of its publications."""
        tables = (pa.Table.from_batches([batch]) for batch in batches if batch.num_rows)
        if self.whole:
            yield from tables
        elif several := list(tables):
            yield pa.concat_tables(several)


def _time(table: pa.Table, column: str) -> datetime:
    now: datetime = table.column(column)[0].as_py()
    return now.replace(tzinfo=now.tzinfo or UTC)


class _TaskRun:
    """A running task: its engine, its rows and its counters."""

    def __init__(self, work: MatchTask, worker: Worker) -> None:
        self._work, self._worker = work, worker
        self._rows: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        self._from: list[int | None] = []
        """The row of the table for each row of the result."""
        self._kept: pa.Table | None = None
        self._did = dict.fromkeys(
            ("publications", "triples", "matches", "refused", "warnings", "milliseconds"), 0.0
        )

    def match(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Match the publications of a table; yield batches of matches and rejected input."""
        kept = [f"{KEPT}{number}" for number in range(self._work.kept)]
        if CORRUPT in table.column_names:
            refused = table.filter(table.column(CORRUPT).is_valid())
            self._kept = refused.select(kept)
            for row, text in enumerate(refused.column(CORRUPT).to_pylist()):
                self._refused(str(text), row)
            if self._from:
                yield self._taken()
            table = table.filter(table.column(CORRUPT).is_null())
        self._kept = table.select(kept)
        reports = iter(self._reports(table))
        while True:
            started = perf_counter()
            found = next(reports, None)
            self._did["milliseconds"] += (perf_counter() - started) * 1e3
            if found is None:
                break
            row, report = found
            self._matched(row, report)
            if len(self._from) >= _ROWS:
                yield self._taken()
        if self._from:
            yield self._taken()

    def ended(self) -> pa.RecordBatch:
        """Return the counters of the task as a batch of one row."""
        did: dict[str, Any] = {name: int(value) for name, value in self._did.items()}
        did |= {"engine": self._worker.version, "milliseconds": self._did["milliseconds"]}
        self._add(None, **{METRICS: [did]})
        return self._taken()

    # -- publications -----------------------------------------------------------------------

    def _reports(self, table: pa.Table) -> Iterator[tuple[int, MatchReport]]:
        """Yield the report of each publication, and its first row; add rows of rejected input."""
        engine, reading = self._worker.engine, self._work.reading
        if reading is not None:
            for row, (data, source) in enumerate(_documents(table)):
                if data is None:
                    what, remedy = "there is no document", "Leave out rows without one."
                    self._problem(Problem(what, Place(source), remedy), row)
                    continue
                for report in engine.filter(data, *reading, name=source):
                    yield row, report
                    self._told(row)
                self._told(row)
            return
        for row, id, text in _texts(table, whole=self._work.whole):
            if not id:
                what, remedy = "no publication", "Give the publication an id."
                self._problem(Problem(what, Place(_TABLE), remedy), row)
                continue
            lines, bad = text, dict[int, Problem]()
            if ROWS in table.column_names:
                lines, bad = lines_of_rows(text, partial(_problem_of, Place(id)))
            for problem in bad.values():
                self._problem(problem, row)
            if lines:
                for report in engine.filter(lines, "nt", "document", name=id):
                    yield row, report
                self._told(row)
            elif not bad:
                what, remedy = "a publication without triples", "Leave out rows without any."
                self._problem(Problem(what, Place(id), remedy), row)

    def _told(self, row: int) -> None:
        """Count, log, or add as rows the problems that the engine has reported; clear them."""
        problems = self._worker.problems
        for problem in problems:
            self._problem(problem, row)
        problems.clear()

    def _problem(self, problem: Problem, row: int) -> None:
        if problem.severity is not Severity.REFUSED:
            self._did["warnings"] += 1
            log.warning("%s", problem)
            return
        if self._work.mode is Mode.FAILFAST:
            raise InputError(problem)
        self._refused(str(problem), row)

    def _refused(self, said: str, row: int) -> None:
        self._did["refused"] += 1
        if self._work.mode is Mode.FAILFAST:
            raise SparkError(said, "mode FAILFAST", "Correct the input, or choose another mode.")
        if self._work.mode is Mode.PERMISSIVE:
            self._add(row, **{CORRUPT: [said]})

    # -- rows -------------------------------------------------------------------------------

    def _matched(self, row: int, report: MatchReport) -> None:
        self._did["publications"] += 1
        self._did["triples"] += report.counters.triples
        self._did["matches"] += len(report)
        if not report:
            return
        id = report.publication
        if not self._work.solutions:
            found = report.subscriptions
            self._add(row, publication=[id] * len(found), subscription=found)
            return
        assert isinstance(report.matches, CoreMatches)
        names = TermTexts(report.read, written=self._work.reading is None)
        asked: list[str] = []
        said: list[dict[str, str]] = []
        for subscription, solutions, graph, _ in report.matches.texts():
            if graph is not None:
                lines = names.lines(graph)
                self._add(row, publication=[id], subscription=[subscription], graph=[lines])
                continue
            asked += [subscription] * len(solutions)
            said += solutions
        for solution in said:
            for name, term in solution.items():
                if term.__class__ is not str or term.startswith(_CALLED):
                    solution[name] = names.said(term)
        self._add(row, publication=[id] * len(said), subscription=asked, solution=said)

    def _add(self, row: int | None, **columns: Sequence[Any]) -> None:
        """Add rows to the result with these columns; other columns are null.

        `row` is the row of the table that they come from; ``None`` for counters.
        """
        before, count = len(self._from), 0
        for name, values in columns.items():
            column = self._rows[name]
            column += [None] * (before - len(column))
            column += values
            count = len(values)
        self._from += [row] * count

    def _taken(self) -> pa.RecordBatch:
        count = len(self._from)
        arrays: dict[str, Any] = {}
        for name, column in self._rows.items():
            if column:
                column += [None] * (count - len(column))
                arrays[name] = (_maps if name == "solution" else pa.array)(column, _COLUMNS[name])
                column.clear()
            else:
                arrays[name] = pa.nulls(count, _COLUMNS[name])
        if self._kept is not None:
            places = pa.array(self._from, pa.int64())
            for name in self._kept.column_names:
                arrays[name] = _one(self._kept.column(name)).take(places)
        self._from.clear()
        return pa.RecordBatch.from_pydict(arrays)


def _maps(dicts: Sequence[Mapping[str, str] | None], type: Any) -> Any:
    """Return dicts as an array of maps: several times faster than Arrow's own conversion."""
    ends: list[int | None] = []
    keys: list[str] = []
    values: list[str] = []
    text = pa.string()
    for one in dicts:
        ends.append(None if one is None else len(keys))
        if one is not None:
            keys += one
            values += one.values()
    ends.append(len(keys))
    made: Any = pa.MapArray
    return made.from_arrays(
        pa.array(ends, pa.int32()), pa.array(keys, text), pa.array(values, text), type
    )


def schema_of(columns: str, kept: Mapping[str, StructField]) -> StructType:
    """Return the schema of tasks' results.

    Parameters
    ----------
    columns
        The tasks' own columns, as Spark's DDL.
    kept
        The kept columns, by name.
    """
    schema = StructType.fromDDL(columns)
    assert isinstance(schema, StructType)
    for name, field in kept.items():
        schema.add(StructField(name, field.dataType))
    return schema


def _documents(table: pa.Table) -> Iterator[tuple[bytes | None, str]]:
    """Yield each document of a table as bytes, or ``None`` if it is null, with its name."""
    for batch in table.to_batches():
        column = batch.column(DOCUMENT)
        for row, source in enumerate(batch.column(SOURCE).to_pylist()):
            data = column[row].as_py()
            yield data.encode() if isinstance(data, str) else data, source or _TABLE


def _texts(table: pa.Table, *, whole: bool) -> Iterator[tuple[int, str | None, bytes]]:
    """Yield the publications of a table: their first rows, ids, and triples as text."""
    ids = table.column(ID).to_pylist()
    texts = table.column(ROWS if ROWS in table.column_names else TEXTS).cast(pa.binary())
    if whole:
        for row, (id, text) in enumerate(zip(ids, texts.to_pylist(), strict=True)):
            yield row, id, text or b""
        return
    rows: dict[object, list[int]] = {}
    for row, id in enumerate(ids):
        rows.setdefault(row if id is None else id, []).append(row)
    between = b"" if ROWS in table.column_names else b"\n"
    one = _one(texts)
    for several in rows.values():
        yield several[0], ids[several[0]], between.join(one[n].as_py() or b"" for n in several)


def _problem_of(where: Place, _: int, row: str) -> Problem | None:
    return problem_of_row(row, where)


def _one(column: Any) -> Any:
    """Return a column with its chunks joined to one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])


class TermTexts:
    """Writes terms of one publication as N-Triples; blank nodes get reproducible names.

    Parameters
    ----------
    read
        Returns the publication; it is called if there is a blank node.
    written
        Whether its own blank nodes keep their names, or are numbered.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> node = BlankNode()
    >>> publication = Publication.of("urn:p", [(node, NamedNode("urn:p"), node)])
    >>> TermTexts(lambda: publication).said(node)
    '_:b0'
    """

    def __init__(self, read: Callable[[], Publication], *, written: bool = False) -> None:
        self._read, self._written = read, written
        self._blank: dict[Term, str] | None = None
        self._fresh: Iterator[str] = iter(())

    def said(self, term: Term | str) -> str:
        """Return a term, or its text in N-Triples, as N-Triples."""
        if isinstance(term, str) and not term.startswith(_CALLED):
            return term
        if isinstance(term, str):
            term = _native.term(term)
        if isinstance(term, BlankNode):
            return self._called(term)
        if isinstance(term, Triple):
            parts = (term.subject, term.predicate, term.object)
            return f"<<( {' '.join(map(self.said, parts))} )>>"
        return str(term)

    def lines(self, triples: Iterable[tuple[Term, ...]]) -> str:
        """Return triples as N-Triples."""
        return "".join(f"{' '.join(map(self.said, triple))} .\n" for triple in triples)

    def _called(self, node: BlankNode) -> str:
        if self._blank is None:
            terms = dict.fromkeys(chain.from_iterable(self._read().triples))
            own = (term for term in terms if isinstance(term, BlankNode))
            self._blank = {
                term: str(term) if self._written else f"_:b{number}"
                for number, term in enumerate(own)
            }
            known = frozenset(self._blank.values())
            self._fresh = (name for n in count() if (name := f"_:d{n}") not in known)
        if node not in self._blank:
            self._blank[node] = next(self._fresh)
        return self._blank[node]
