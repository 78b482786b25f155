"""A transform of a DataFrame's documents into publications, for batches and for streams.

It is only necessary if publications must be known before matching: to drop duplicates, or if lines
of one graph are spread over a large file. Otherwise `graphmatch.spark.matches` reads the documents
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyoxigraph import RdfFormat

from graphmatch.spark.java import SparkError
from graphmatch.spark.tasks import (
    CORRUPT,
    DOCUMENT,
    ID,
    KEPT,
    SOURCE,
    TEXTS,
    Mode,
    TermTexts,
    schema_of,
)
from semantic.errors import InputError, OnProblem, Place, Problem, Severity
from semantic.publication import Publication
from semantic.reading import SplitBy, check_base, read_publications, read_rdf
from semantic.syntax_detection import format_of_media_type
from semantic.tables import COLUMNS, TripleTable
from semantic.terms import Triple, written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_SQL = f"publication string, triples string, {CORRUPT} string"
_ROWS = pa.schema([(name, pa.string()) for name in (ID, TEXTS, CORRUPT)])
_Row: TypeAlias = tuple[str | None, str | None, str | None]
"""Publication, triples, problem."""
_AT_ONCE = 1024
_SHOWN = 80


def publications(
    document: str = "content",
    *,
    source: str | None = "path",
    publication: str | None = None,
    lines: bool = False,
    format: str | None = None,
    split_by: SplitBy | str = SplitBy.AUTO,
    base: str | None = None,
    keep: Sequence[str] = (),
    mode: Mode | str = Mode.PERMISSIVE,
) -> Callable[[DataFrame], DataFrame]:
    """Return a transform of documents into ``publication``, ``triples``, ``_corrupt``.

    ``triples`` is N-Triples. In rows of rejected input only ``_corrupt`` is not null.

    Parameters
    ----------
    document
        The column with documents, bytes or text: any syntax of RDF, or feeds.
    source
        The column with the documents' names, such as paths.
    publication
        The column with ids. If a row has one, its document is one publication.
    lines
        Whether rows are lines of N-Quads or N-Triples, as from ``spark.read.text``. A row of the
        result may then be part of a publication (``matches(…, grouped=False)``).
    format, split_by, base
        The options for reading documents, as in `Engine.filter`.
    keep
        More columns to copy to the result; not with `lines`.
    mode
        The same as in `graphmatch.spark.matches`.

    Raises
    ------
    InputError
        If `format`, `split_by` or `mode` is unknown, or `base` is not an absolute IRI.
    SparkError
        If a column cannot be kept.
    """
    if format is not None:
        format_of_media_type(format)
    if base is not None:
        check_base(base)
    read_options = ReadOptions(SplitBy(split_by), format, base, Mode(mode))
    if lines and keep:
        what, remedy = "of lines nothing is kept", "Leave it out: lines of one graph are one row."
        raise SparkError(what, "keep", remedy)
    if same := {name for name in keep if name in _ROWS.names or keep.count(name) > 1}:
        what = f"columns are kept under names that others have: {', '.join(sorted(same))}"
        raise SparkError(what, "keep", "Rename them before.")

    def read(frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as sql

        def text(name: str | None) -> Any:
            return (sql.lit(None) if name is None else frame[name]).cast("string")

        kept = [frame[name].alias(f"{KEPT}{number}") for number, name in enumerate(keep)]
        given = frame.select(
            frame[document].alias(DOCUMENT),
            text(source).alias(SOURCE),
            text(publication).alias(ID),
            *kept,
        )
        fields = {f.name: f for f in given.schema if f.name.startswith(KEPT)}
        schema = schema_of(ROWS_SQL, fields)
        said = given.mapInArrow(
            LineReader(read_options) if lines else DocumentReader(read_options, len(kept)), schema
        )
        named = [sql.col(f"{KEPT}{number}").alias(name) for number, name in enumerate(keep)]
        return said.select(ID, TEXTS, CORRUPT, *named)

    return read


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options for reading documents.

    Parameters
    ----------
    split_by, format, base
        The same as in `semantic.read_publications`.
    mode
        The treatment of malformed input.
    """

    split_by: SplitBy = SplitBy.AUTO
    format: str | None = None
    base: str | None = None
    mode: Mode = Mode.PERMISSIVE

    def read(
        self, data: NamedBytes, id: str | None, on_problem: OnProblem
    ) -> Iterator[Publication]:
        """Yield the publications of a document; merge the parts of each.

        With an `id`, the whole document is one publication.
        """
        parts: dict[str, list[Triple]] = {}
        for publication in read_publications(
            data,
            split_by=self.split_by if id is None else SplitBy.DOCUMENT,
            format=self.format,
            base_iri=self.base,
            on_problem=on_problem,
        ):
            parts.setdefault(id or publication.id, []).extend(publication.triples)
        for name, triples in parts.items():
            yield Publication.of(name, triples)

    def refused(self, problem: Problem) -> str | None:
        """Return the text of a problem for the column of rejected input.

        Return ``None`` for a warning, and for any problem in mode DROPMALFORMED.

        Raises
        ------
        InputError
            For rejected input in mode FAILFAST.
        """
        if problem.severity is not Severity.REFUSED or self.mode is Mode.DROPMALFORMED:
            return None
        if self.mode is Mode.FAILFAST:
            raise InputError(problem)
        return str(problem)


class NamedBytes(BytesIO):
    """A document in memory, with a name for messages."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


@dataclass(frozen=True, slots=True)
class DocumentReader:
    """The work of tasks, for ``mapInArrow``: documents become publications and rejected input."""

    read_options: ReadOptions
    kept: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows of publications and problems, with the kept columns."""
        for batch in batches:
            kept = batch.select([f"{KEPT}{number}" for number in range(self.kept)])
            rows: list[_Row] = []
            taken: list[int | None] = []
            for row in range(batch.num_rows):
                for found in self._row(batch, row):
                    rows.append(found)
                    taken.append(row)
                    if len(rows) >= _AT_ONCE:
                        yield _batch(rows, kept, taken)
            yield _batch(rows, kept, taken)

    def _row(self, batch: pa.RecordBatch, row: int) -> Iterator[_Row]:
        data, source, id = (batch.column(n)[row].as_py() for n in (DOCUMENT, SOURCE, ID))
        problems: list[Problem] = []
        name = source or "<table>"
        if data is None:
            what, remedy = "there is no document", "Leave out rows without one."
            problems.append(Problem(what, Place(name), remedy))
        else:
            document = NamedBytes(data.encode() if isinstance(data, str) else data, name)
            for publication in self.read_options.read(document, id, problems.append):
                yield publication.id, n_triples(publication), None
        for problem in problems:
            if (said := self.read_options.refused(problem)) is not None:
                yield None, None, said


def _batch(
    rows: list[_Row],
    kept: pa.RecordBatch | None = None,
    taken: list[int | None] | None = None,
) -> pa.RecordBatch:
    """Return the rows as a batch with their kept columns, and clear the lists."""
    columns: dict[str, Any] = {
        name: pa.array([row[place] for row in rows], pa.string())
        for place, name in enumerate(_ROWS.names)
    }
    if kept is not None and taken is not None:
        for name in kept.schema.names:
            columns[name] = kept.column(name).take(pa.array(taken, pa.int64()))
        taken.clear()
    rows.clear()
    return pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True, slots=True)
class LineReader:
    """The work of tasks, for ``mapInArrow``: the lines of one graph in a batch become one row."""

    read_options: ReadOptions

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows of publications and problems."""
        for batch in batches:
            texts = batch.column(DOCUMENT).to_pylist()
            of: dict[str, list[str]] = {}
            for text, source in zip(texts, batch.column(SOURCE).to_pylist(), strict=True):
                of.setdefault(source or "<table>", []).append(text or "")
            rows: list[_Row] = []
            for source, lines in of.items():
                problems: list[Problem] = []
                data = "\n".join(lines).encode()
                parts = read_lines(data, source, problems.append)
                rows += ((part.id, "".join(map(_line, part.given)), None) for part in parts)
                for problem in problems:
                    if (line := problem.where.line) is not None:  # counted in the batch
                        several = data.splitlines()  # a row may have several lines
                        text = several[min(line, len(several)) - 1].decode()
                        where = Place(source, item=repr(text[:_SHOWN]))
                        problem = replace(problem, where=where)
                    if (said := self.read_options.refused(problem)) is not None:
                        rows.append((None, None, said))
            yield _batch(rows)


def _line(triple: Triple) -> str:
    return f"{' '.join(map(written, triple))} .\n"


def together(triples: DataFrame, keep: Sequence[str] = ()) -> DataFrame:
    """Return rows of ``publication``, ``triples`` and ``_corrupt`` for rows of triples.

    Rows of one publication may be anywhere in the table, or in the micro-batch of a stream.

    Parameters
    ----------
    triples
        Columns ``publication``, ``subject``, ``predicate`` and ``object``.
    keep
        More columns to copy to the result, from the publication's first row.
    """
    schema = schema_of(ROWS_SQL, {name: triples.schema[name] for name in keep})
    chosen = triples.select(*COLUMNS, *keep)
    return chosen.repartition(ID).mapInArrow(merge_rows, schema)


def merge_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join the triples of each publication in a partition; add rows of rejected input."""
    several = [batch for batch in batches if batch.num_rows]
    if not several:
        return
    table = pa.Table.from_batches(several)
    problems: list[Problem] = []
    rows: list[_Row] = []
    taken: list[int | None] = []
    for id, lines, numbers in TripleTable(table).publications(problems.append):
        rows.append((id, lines.decode(), None))
        taken.append(int(numbers[0]))
    ids: list[Any] = table.column(ID).to_pylist() if problems else []
    for problem in problems:  # row numbers mean nothing outside of the batch
        name = ids[int((problem.where.item or "").removeprefix("row ")) - 1]
        where = Place("<table>" if name is None else str(name))
        rows.append((None, None, str(replace(problem, where=where))))
    taken += [None] * len(problems)
    names = table.column_names[len(COLUMNS) :]
    kept = table.select(names).combine_chunks().to_batches()
    yield _batch(rows, kept[0] if names else None, taken)


def read_lines(data: bytes, source: str, on_problem: OnProblem) -> Iterator[Publication]:
    """Yield one publication for each graph in lines of N-Quads.

    A blank node's name is the same throughout the file.

    Parameters
    ----------
    source
        The file of the lines.
    """
    parts: dict[str, list[Triple]] = {}
    for part in read_rdf(
        [data],
        RdfFormat.N_QUADS,
        source,
        on_problem=on_problem,
        split_by=SplitBy.GRAPH,
        names=prefix_of(source),
        may_be_empty=True,
    ):
        parts.setdefault(part.id, []).extend(part.given)
    for id, triples in parts.items():
        yield Publication.of(id, triples)


def prefix_of(source: str) -> str:
    """Return the prefix of blank node names in a file; no other file has it."""
    return f"f{blake2b(source.encode(), digest_size=8).hexdigest()}"


def n_triples(publication: Publication) -> str:
    r"""Return a publication's triples as N-Triples; number the blank nodes.

    Examples
    --------
    >>> from pyoxigraph import BlankNode, NamedNode
    >>> knows = NamedNode("urn:knows")
    >>> n_triples(Publication.of("urn:p", [(BlankNode(), knows, BlankNode("x"))]))
    '_:b0 <urn:knows> _:b1 .\n'
    """
    return TermTexts(lambda: publication).lines(publication.triples)
