"""A transform of a DataFrame's publications into matches, for batches and for streams.

Rows that are whole publications or documents need no shuffle. Otherwise Spark joins the triples of
each publication into one string before they reach Python (in a stream the task does so, per
micro-batch), because single rows are the most expensive to transfer. Tasks get Arrow batches
(``mapInArrow``) and pass them to the compiled core (`graphmatch.spark.tasks`). Nothing is cached,
and no setting is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType

from graphmatch.engine import Engine
from graphmatch.spark.java import SparkError
from graphmatch.spark.snapshots import SnapshotHandle, ship
from graphmatch.spark.tasks import (
    CORRUPT,
    DOCUMENT,
    FIXED,
    ID,
    KEPT,
    MATCHES_SQL,
    METRICS,
    METRICS_SQL,
    NOW,
    ROWS,
    SOURCE,
    TEXTS,
    MatchTask,
    Mode,
    schema_of,
)
from semantic.reading import SplitBy, check_base
from semantic.syntax_detection import format_of_media_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation, SparkSession

    Metrics: TypeAlias = str | Observation | None

RESULT = ("publication", "subscription", "solution", "graph", CORRUPT)
"""The columns of matches, before the kept ones."""


class matches:  # noqa: N801 -- it is used as a function: df.transform(matches(engine))
    """A transform of the publications of a DataFrame into their matches.

    A row of the result is a solution of a match (or a match, without ``solutions``), or rejected
    input:

    ================ ==============================================================================
    ``publication``  its id
    ``subscription`` the id of the subscription
    ``solution``     a map of variables to terms as N-Triples; empty for ASK
    ``graph``        the result of CONSTRUCT or DESCRIBE, as N-Triples
    ``_corrupt``     the problem, its place, and the remedy; then the others are null
    ================ ==============================================================================

    and the columns in ``keep``, from the publication's first row. Rows of the DataFrame with a
    ``_corrupt`` are passed on: those of `graphmatch.spark.publications` and of the source
    ``rdf``.

    Parameters
    ----------
    engine
        The subscriptions with their ontology, or a file of `Engine.save`. The first use of the
        transform ships it. Later subscriptions take effect with `replace`.
    publication
        The column of publications' ids.
    subject, predicate, object
        The columns of terms as N-Triples. A row is a triple, and rows of a publication may be
        anywhere in the table (of a stream: in the micro-batch).
    triples
        The column with a publication's triples instead: N-Triples as text, or an array of structs
        with ``subject``, ``predicate`` and ``object``.
    document
        The column with documents instead, of any syntax of RDF, or feeds: bytes or text. The
        documents determine the ids of their publications.
    source
        The column with the documents' names, such as paths; relative IRIs need `base`.
    grouped
        Whether a row of ``triples`` has all triples of its publication. Otherwise rows of one
        publication may also be anywhere.
    format, split_by, base
        The options for reading documents, as in `Engine.filter`.
    keep
        More columns to copy to the result.
    solutions
        Whether to return solutions. Without them, ids are found faster.
    mode
        The treatment of malformed input. ``"PERMISSIVE"`` gives it a row, ``"DROPMALFORMED"`` drops
        it, and ``"FAILFAST"`` ends the query. In upper or lower case.
    metrics
        The name of `DataFrame.observe` for the counters, or a ``pyspark.sql.Observation``:
        publications, triples, matches, refused, warnings, engine (the start of its use),
        milliseconds (in the engine, of all tasks). A query that uses the transform twice needs two
        names.
    now
        The time of ``NOW()`` and of mapping functions: by default that of the query, or of the
        micro-batch.

    Raises
    ------
    InputError
        If `format`, `split_by` or `mode` is unknown, or `base` is not an absolute IRI.
    SparkError
        If a column cannot be kept.

    Examples
    --------
    Needs Spark::

        triples.transform(matches(engine, publication="graph", keep=["day"])).write.parquet("out")
        stream = spark.readStream.format("kafka")…load()
        stream.transform(matches(engine, document="value")).writeStream…start()
    """

    def __init__(
        self,
        engine: Engine | str | Path,
        publication: str = "publication",
        *,
        subject: str = "subject",
        predicate: str = "predicate",
        object: str = "object",
        triples: str | None = None,
        document: str | None = None,
        source: str | None = None,
        grouped: bool = True,
        format: str | None = None,
        split_by: SplitBy | str = SplitBy.AUTO,
        base: str | None = None,
        keep: Sequence[str] = (),
        solutions: bool = True,
        mode: Mode | str = Mode.PERMISSIVE,
        metrics: Metrics = "graphmatch",
        now: datetime | None = None,
    ) -> None:
        if format is not None:
            format_of_media_type(format)
        if base is not None:
            check_base(base)
        self._engine = engine if isinstance(engine, Engine) else Path(engine)
        self._id, self._terms = publication, (subject, predicate, object)
        self._triples, self._document, self._source = triples, document, source
        self._grouped = (grouped and triples is not None) or document is not None
        self._reading = format, SplitBy(split_by).value, base
        self._keep = tuple(keep)
        self._solutions, self._metrics = solutions, metrics
        self._mode = Mode(mode)
        self._now = now
        self._shipped: tuple[SparkSession, SnapshotHandle] | None = None
        if same := {name for name in keep if name in (*RESULT, METRICS) or keep.count(name) > 1}:
            what = f"columns are kept under names that others have: {', '.join(sorted(same))}"
            raise SparkError(what, "keep", "Rename them before.")

    def __call__(self, frame: DataFrame) -> DataFrame:
        """Return the matches of a DataFrame's publications."""
        return observed(self.rows(frame), self._metrics)

    def replace(self, engine: Engine | str | Path) -> None:
        """Use another engine: from the next query on, and in streams from the next micro-batch on.

        On Spark Connect, earlier DataFrames and running streams keep the previous engine, because
        later shipments do not reach them. Stop the stream, transform again, and start it from its
        checkpoint.

        Raises
        ------
        SparkError
            If it has operators.
        SavedError
            If it cannot be saved.
        """
        self._engine = engine if isinstance(engine, Engine) else Path(engine)
        if self._shipped is not None:
            spark, before = self._shipped
            self._shipped = spark, ship(spark, self._engine, before)

    def rows(self, frame: DataFrame) -> DataFrame:
        """Return the rows of tasks: matches, and their counters in ``_metrics``.

        The first call for a session ships the engine.
        """
        if self._shipped is None or self._shipped[0] is not frame.sparkSession:
            self._shipped = frame.sparkSession, ship(frame.sparkSession, self._engine)
        kept = [frame[name].alias(f"{KEPT}{number}") for number, name in enumerate(self._keep)]
        if CORRUPT in frame.columns:
            kept.append(frame[CORRUPT])
        given = self._given(frame, kept).withColumn(NOW, sql.current_timestamp())
        if self._now is not None:
            given = given.withColumn(FIXED, sql.lit(self._now))
        work = MatchTask(
            self._shipped[1],
            self._reading if self._document is not None else None,
            self._grouped or not frame.isStreaming,
            len(self._keep),
            self._solutions,
            self._mode,
        )
        columns = f"{MATCHES_SQL}, {METRICS} struct<{_STRUCT}>"
        fields = {field.name: field for field in given.schema if field.name.startswith(KEPT)}
        said = given.mapInArrow(work, schema_of(columns, fields))
        named = [sql.col(f"{KEPT}{number}").alias(name) for number, name in enumerate(self._keep)]
        return said.select(*RESULT, *named, METRICS)

    def _given(self, frame: DataFrame, kept: list[Column]) -> DataFrame:
        """Return the input of tasks: documents, or ids and N-Triples, with the columns to keep."""
        if self._document is not None:
            source = sql.lit(None) if self._source is None else frame[self._source]
            data = frame[self._document].alias(DOCUMENT)
            return frame.select(data, source.cast("string").alias(SOURCE), *kept)
        id = frame[self._id].cast("string").alias(ID)
        if self._triples is None:
            rows = _row([frame[name].cast("string") for name in self._terms]).alias(ROWS)
        elif isinstance(frame.select(self._triples).schema[0].dataType, ArrayType):
            rows = sql.array_join(sql.transform(frame[self._triples], self._row_of), "").alias(ROWS)
        else:
            rows = frame[self._triples].alias(TEXTS)
        given = frame.select(id, rows, *kept)
        if self._grouped:
            return given
        if frame.isStreaming:
            return given.repartition(ID)
        name = given.columns[1]
        keys = [ID, *([CORRUPT] if CORRUPT in given.columns else [])]
        return given.groupBy(*keys).agg(
            sql.array_join(sql.collect_list(name), "" if name == ROWS else "\n").alias(name),
            *(sql.first(kept).alias(kept) for kept in given.columns if kept not in (*keys, name)),
        )

    def _row_of(self, triple: Column) -> Column:
        return _row([triple[name].cast("string") for name in self._terms])


def _row(terms: Sequence[Column]) -> Column:
    """Return a triple as a row of `semantic.tables.lines_of_rows`: one line, with three terms."""
    subject, predicate, object_ = (sql.coalesce(term, sql.lit("")) for term in terms)
    between, end = sql.lit("\r"), sql.lit("\n")
    row = sql.concat(subject, between, predicate, between, object_)
    return sql.concat(sql.replace(row, end, between), end)


_STRUCT = (
    METRICS_SQL.replace(" bigint", ": bigint")
    .replace("engine ", "engine: ")
    .replace("milliseconds ", "milliseconds: ")
)


def observed(rows: DataFrame, metrics: Metrics) -> DataFrame:
    """Return the matches in rows; sum the counters of tasks under `metrics`, unless ``None``."""
    if metrics is not None:
        names = [part.split()[0] for part in METRICS_SQL.split(", ")]
        sums = [
            (sql.max if name == "engine" else sql.sum)(f"{METRICS}.{name}").alias(name)
            for name in names
        ]
        first, *others = sums
        rows = rows.observe(metrics, first, *others)
    return rows.where(sql.col(METRICS).isNull()).drop(METRICS)
