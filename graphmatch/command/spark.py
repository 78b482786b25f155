"""The commands ``graphmatch spark filter`` and ``graphmatch spark watch``.

Both read with Spark's own sources and write with its own sinks, so names may be of any file system
that Spark supports.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import typer

from graphmatch.command.options import (
    DocumentOptions,
    EngineOptions,
    Json,
    SubscriptionOptions,
    Verbosity,
    argument,
    grouped,
    option,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from graphmatch.command.session import Session
    from graphmatch.engine import Engine
    from graphmatch.spark.matching import matches

app = typer.Typer(
    name="spark",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Match on Spark: publications in bulk, or as they arrive.",
)

_SHOWN = 20
"""The number of rejected inputs that are shown; all are written."""
_LISTED = "path string, modificationTime timestamp, length bigint, content binary"
_PARTITIONS, _MANY = "spark.sql.shuffle.partitions", "200"
"""A setting of Spark, and its default."""
_DURATION = re.compile(r"\d+ (?:second|minute|hour|day|week)s?")


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """The options for Spark."""

    panel: ClassVar = "Spark"
    master: str | None = option(
        None, "Spark master, such as local[4]; default that of spark-submit, or this process."
    )
    conf: list[str] | None = option(None, "Setting of Spark; repeatable.", metavar="KEY=VALUE")

    def settings(self) -> Mapping[str, str]:
        """Return the settings by key; raise `InputError` if one is not a key and value."""
        from semantic.errors import InputError, Place, Problem

        found = {}
        for pair in self.conf or ():
            key, equals, value = pair.partition("=")
            if not equals:
                what, remedy = f"{pair!r} is not a setting", "Write KEY=VALUE."
                raise InputError(Problem(what, Place("--conf"), remedy))
            found[key] = value
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions(DocumentOptions):
    """The options for reading publications and writing matches."""

    output: str = option(MISSING, "Name or address to write matches to.")
    form: Literal["parquet", "json", "orc", "delta"] = option(
        "parquet", "Output format of matches.", "--as"
    )

    @property
    def input_options(self) -> dict[str, Any]:
        """The options for reading documents, as arguments of `matches` and `publications`."""
        syntax = None if self.format == "parquet" else self.format
        return {"format": syntax, "split_by": self.split_by, "base": self.base}


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkOptions(TableOptions):
    """The options for bulk input, and for an existing output."""

    publications: list[str] = argument(
        MISSING, "Parquet, RDF files, feeds, or folders of them: names or addresses."
    )
    mode: Literal["errorifexists", "overwrite", "append"] = option(
        "errorifexists", "What to do if the output exists."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions(TableOptions):
    """The options for the watched source, and its timing."""

    folder: str | None = argument(None, "Folder to watch: a name or an address.")
    checkpoint: str | None = option(
        None, "Folder for the stream's progress; default OUTPUT-checkpoint.", metavar="FOLDER"
    )
    once: bool = option(False, "Process the existing input, then stop.")
    every: str = option("10 seconds", "Interval between batches.", metavar="DURATION")
    watermark: str = option(
        "1 day", "How long ids are kept to drop duplicates.", metavar="DURATION"
    )
    max_per_trigger: int | None = option(
        None, "Maximum per batch; default 100 files, 100,000 records.", min=1
    )
    kafka: str | None = option(
        None, "Kafka servers; watch topics instead of a folder.", metavar="SERVERS"
    )
    kafka_topic: list[str] | None = option(None, "Kafka topic; repeatable.", metavar="TOPIC")

    def check_source(self) -> None:
        """Raise `InputError` unless there is exactly one source, and both durations are valid."""
        from semantic.errors import InputError, Place, Problem

        where = Place("graphmatch spark watch")
        what, remedy = "", "Leave one of them out."
        if self.kafka is not None and self.folder is not None:
            what = "a folder and --kafka are given together"
        elif self.kafka is not None and not self.kafka_topic:
            what, remedy = "no topic is named", "Name one with --kafka-topic."
        elif self.kafka is None and self.kafka_topic:
            what, remedy = "--kafka-topic is given without --kafka", "Name the servers, too."
        elif self.kafka is None and self.folder is None:
            what, remedy = "there is nothing to watch", "Name a folder, or --kafka."
        problems = [Problem(what, where, remedy)] if what else []
        remedy = "Write a number and seconds, minutes, hours, days or weeks."
        for name, given in (("--every", self.every), ("--watermark", self.watermark)):
            if _DURATION.fullmatch(given) is None:
                problems.append(Problem(f"{given!r} is not a duration", Place(name), remedy))
        if problems:
            first, *others = problems
            raise InputError(replace(first, remedy=" ".join((first.remedy, *map(str, others)))))


@app.command()
@partial(grouped, without={"operators"})
def filter(
    bulk: BulkOptions,
    subscription_options: SubscriptionOptions,
    engine_options: EngineOptions,
    spark_options: SparkOptions,
    verbosity: Verbosity,
    json: Json = False,
) -> int:
    """Match publications in bulk, and write the matches as a table.

    Example: `graphmatch spark filter data/feeds -o ontologies/news.ttl -s data/subscriptions
    --output matches`
    """
    from graphmatch.command.session import DONE, REFUSED, Session
    from semantic.errors import plural

    with Session(verbosity) as session:
        bulk.check("parquet")
        settings = spark_options.settings()
        engine = session.subscribed_engine(engine_options, subscription_options)
        with _started(session, spark_options.master, settings, bulk.form) as spark:
            from graphmatch.spark.matching import matches

            started = time.perf_counter()
            matching = partial(matches, engine, now=engine_options.now)
            with session.waiting("Matching"):
                parts = list(_parts(session, bulk, matching, spark))
                if not parts:
                    return session.status
                did = _written(session, bulk, parts, spark)
            seconds = time.perf_counter() - started
        did["refused"] += session.refused
        if json:
            summary = {**did, "subscriptions": len(engine), "output": bulk.output}
            session.out.write_json({**summary, "seconds": round(seconds, 3)})
        session.note(
            f"{plural(did['publications'], 'publication')}, "
            f"{plural(len(engine), 'subscription')}: "
            f"{plural(did['matches'], 'match', 'matches')}, {did['refused']} refused, "
            f"{plural(did['warnings'], 'warning')}, {seconds:.2f} s, in {bulk.output}"
        )
        return REFUSED if did["refused"] else DONE


@app.command()
@partial(grouped, without={"saved", "operators"})
def watch(
    stream: StreamOptions,
    subscription_options: SubscriptionOptions,
    engine_options: EngineOptions,
    spark_options: SparkOptions,
    verbosity: Verbosity,
) -> int:
    """Match publications as they arrive in a folder or from Kafka, and write the matches.

    Example: `graphmatch spark watch incoming --output matches -o ontologies/news.ttl
    -s data/subscriptions`
    """
    from graphmatch.command.session import Session
    from graphmatch.spark.spark_session import connector

    with Session(verbosity) as session:
        stream.check("parquet")
        stream.check_source()
        settings = spark_options.settings()
        changes = EngineFiles(session, engine_options, subscription_options)
        engine = changes.engine()
        packages = () if stream.kafka is None else (connector(),)
        with _started(session, spark_options.master, settings, stream.form, packages) as spark:
            from graphmatch.spark.matching import matches

            matching = matches(engine, triples="triples", now=engine_options.now)
            query = _query(stream, matching, spark)
            return _followed(session, query, matching, changes)


@contextmanager
def _started(
    session: Session,
    master: str | None,
    settings: Mapping[str, str],
    form: str,
    packages: Sequence[str] = (),
) -> Iterator[SparkSession]:
    """Start Spark (with Delta settings if `form` is ``delta``), and stop it at the end.

    Raise errors of Spark in the block as `SparkError`.
    """
    from importlib import import_module

    from graphmatch.spark.spark_session import DELTA, explained
    from graphmatch.spark.spark_session import session as started

    if form == "delta":
        settings = {**DELTA, **settings}
    with session.waiting("Starting Spark"):
        spark = started(master=master, packages=packages, settings=settings)
    from pyspark.errors import PySparkException  # `started` reports a missing pyspark

    try:
        yield spark
    except (PySparkException, import_module("py4j.protocol").Py4JJavaError) as error:
        raise explained(error) from error
    finally:
        spark.stop()


# -- filter ---------------------------------------------------------------------------------------

_TABLE = re.compile(r"\.(?:parquet|pq)$", re.IGNORECASE)
_LINES = re.compile(r"\.(?:nq|nquads)$", re.IGNORECASE)
_GLOB = re.compile(r"([\\*?\[\]{}])")


def _written(
    session: Session, bulk: BulkOptions, parts: Sequence[DataFrame], spark: SparkSession
) -> dict[str, int]:
    """Write matches, and print the first refused inputs; return the counters."""
    from functools import reduce

    from pyspark.errors import AnalysisException
    from pyspark.sql import DataFrame, Observation

    from graphmatch.spark.java import SparkError
    from graphmatch.spark.matching import observed

    observation = Observation("graphmatch")
    found = observed(reduce(DataFrame.unionByName, parts), observation)
    try:
        found.write.format(bulk.form).mode(bulk.mode).save(bulk.output)
    except AnalysisException as error:
        if error.getCondition() != "PATH_ALREADY_EXISTS":
            raise
        what, remedy = "is there already", "Pass --mode overwrite or --mode append."
        raise SparkError(what, bulk.output, remedy) from error
    did = {name: value or 0 for name, value in observation.get.items()}
    del did["engine"], did["milliseconds"]
    if did["refused"] and bulk.mode != "append":
        written = spark.read.format(bulk.form).load(bulk.output)
        refused = written.where("_corrupt IS NOT NULL").select("_corrupt").limit(_SHOWN)
        for row in refused.collect():
            session.err.print(f"refused  {row[0]}", markup=False)
    return did


def _parts(
    session: Session, bulk: BulkOptions, matching: Callable[..., matches], spark: SparkSession
) -> Iterator[DataFrame]:
    """Yield DataFrames of matches and counters: one each for tables, lines and documents."""
    from pyspark.sql import functions as sql

    from graphmatch.spark.documents import publications

    tables, lines, documents = _listed(session, bulk, spark)
    if tables:
        yield matching().rows(spark.read.parquet(*tables))
    if lines:
        texts = spark.read.text(lines).select("value", _named("_metadata.file_path"))
        read = publications("value", lines=True)(texts)
        yield matching(triples="triples", grouped=False).rows(read)
    if documents:
        files = spark.read.format("binaryFile").load(documents)
        named = files.select("content", _named("path"))
        spread = named.repartition(4 * spark.sparkContext.defaultParallelism, sql.rand(seed=1))
        yield matching(document="content", source="path", **bulk.input_options).rows(spread)


def _named(column: str) -> Any:
    """Return a column ``path`` with the paths of files as a local engine names them."""
    from pyspark.sql import functions as sql

    address: Any = sql.col(column)
    if column != "path":  # Spark's metadata are encoded like IRIs
        address = sql.url_decode(sql.replace(address, sql.lit("+"), sql.lit("%2B")))
    return sql.regexp_replace(address, "^file:/+", "/").alias("path")


def _listed(
    session: Session, bulk: BulkOptions, spark: SparkSession
) -> tuple[list[str], list[str], list[str]]:
    """Sort the files into three lists: tables, lines that may be split anywhere, and documents.

    Report missing files and empty folders.
    """
    from pyspark.errors import AnalysisException

    from semantic.errors import Place, Problem

    tables, lines, documents = list[str](), list[str](), list[str]()
    for path in bulk.publications:
        there = _GLOB.sub(r"\\\1", path) if Path(path).exists() else path
        try:
            listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
            rows = listed.load(there).select("path").orderBy("path").collect()
        except AnalysisException:
            what, remedy = "there is no such file or folder", "Check the name or the address."
            session.report(Problem(what, Place(path), remedy))
            continue
        if not rows:
            what, remedy = "the folder has no files", "Give a folder that has some."
            session.report(Problem(what, Place(path), remedy))
        for row in rows:
            name = row["path"]
            escaped = _GLOB.sub(r"\\\1", name)
            if bulk.format == "parquet" or (bulk.format is None and _TABLE.search(name)):
                tables.append(escaped)
            elif _is_lines(bulk, name):
                lines.append(escaped)
            else:
                documents.append(escaped)
    return tables, lines, documents


def _is_lines(bulk: BulkOptions, name: str) -> bool:
    from pyoxigraph import RdfFormat

    from semantic.syntax_detection import format_of_media_type

    if bulk.split_by not in ("auto", "graph"):
        return False
    if bulk.format is None:
        return _LINES.search(name) is not None
    return format_of_media_type(bulk.format) == RdfFormat.N_QUADS


# -- watch ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class EngineFiles:
    """Makes an engine of the files on the command line, and a new one when they change."""

    session: Session
    engine_options: EngineOptions
    subscription_options: SubscriptionOptions
    _before: object = None

    def engine(self) -> Engine:
        """Return a new engine of the current files."""
        self._before = self._signature()
        return self.session.subscribed_engine(self.engine_options, self.subscription_options)

    def look(self, matching: matches) -> None:
        """Replace the engine of `matching` if the files have changed since the last call.

        If they are not usable, report that, and keep the engine.
        """
        from semantic.errors import GraphMatchError

        if self._signature() == self._before:
            return
        try:
            matching.replace(self.engine())
        except GraphMatchError as error:
            self.session.report(error.problem)
            self.session.note("the previous subscriptions and ontology stay in use")
        else:
            self.session.note("reloaded the subscriptions and the ontology")

    def _signature(self) -> list[tuple[str, int, int]]:
        """Return names, times and sizes of the files; a change of a file changes them."""
        from semantic.files import files_in

        found = []
        named = list(self.subscription_options.subscriptions or ())
        if (imports := self.engine_options.ontology_options.imports) is not None:
            named.append(imports)
        files = [file for path in named for file in files_in(path, lambda _: None)]
        for file in (*files, *(self.engine_options.files or ())):
            with suppress(OSError):  # The file is missing.
                about = file.stat()
                found.append((str(file), about.st_mtime_ns, about.st_size))
        return found


def _query(stream: StreamOptions, matching: matches, spark: SparkSession) -> StreamingQuery:
    """Start matching what arrives, and writing the matches."""
    if spark.conf.get(_PARTITIONS) == _MANY:  # each partition keeps state, even for small batches
        spark.conf.set(_PARTITIONS, str(2 * spark.sparkContext.defaultParallelism))
    found = _arriving(stream, spark).transform(matching)
    checkpoint = stream.checkpoint or f"{stream.output.rstrip('/')}-checkpoint"
    _check_output(stream.output, checkpoint, spark)
    writer = found.writeStream.format(stream.form).option("checkpointLocation", checkpoint)
    trigger: Any = {"availableNow": True} if stream.once else {"processingTime": stream.every}
    return writer.option("path", stream.output).trigger(**trigger).start()


def _check_output(output: str, checkpoint: str, spark: SparkSession) -> None:
    """Raise `SparkError` if another stream made the output: Spark would skip the first batches."""
    from graphmatch.spark.java import SparkError

    def is_there(address: str) -> bool:
        context: Any = spark.sparkContext
        path = context._jvm.org.apache.hadoop.fs.Path(address)
        return bool(path.getFileSystem(context._jsc.hadoopConfiguration()).exists(path))

    if is_there(f"{output}/_spark_metadata") and not is_there(f"{checkpoint}/metadata"):
        what = f"has the matches of a stream whose checkpoint is not {checkpoint}"
        remedy = "Name its checkpoint with --checkpoint, or another output."
        raise SparkError(what, output, remedy)


def _arriving(stream: StreamOptions, spark: SparkSession) -> DataFrame:
    """Return a stream of the publications in the folder or from Kafka, without duplicates."""
    from pyspark.sql import functions as sql

    from graphmatch.spark.documents import publications, together
    from semantic.tables import COLUMNS

    reader = spark.readStream
    if stream.kafka is not None:
        records = (
            reader.format("kafka")
            .option("kafka.bootstrap.servers", stream.kafka)
            .option("subscribe", ",".join(stream.kafka_topic or ()))
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", stream.max_per_trigger or 100_000)
            .load()
        )
        place = sql.concat_ws("/", "topic", "partition", "offset").alias("path")
        key = sql.col("key").cast("string").alias("key")
        given = records.select("value", key, place, sql.col("timestamp").alias("time"))
        read = publications("value", publication="key", keep=["time"], **stream.input_options)(
            given
        )
    else:
        reader = reader.option("recursiveFileLookup", "true").option("maxFileAge", "1000000000d")
        reader = reader.option("maxFilesPerTrigger", stream.max_per_trigger or 100)
        folder = _GLOB.sub(r"\\\1", stream.folder or "")
        if stream.format == "parquet":
            rows = reader.schema(", ".join(f"{name} string" for name in COLUMNS))
            time_ = sql.col("_metadata.file_modification_time").alias("time")
            read = together(rows.parquet(folder).select(*COLUMNS, time_), keep=["time"])
        else:
            files = reader.format("binaryFile").schema(_LISTED).load(folder)
            time_ = sql.col("modificationTime").alias("time")
            given = files.select("content", _named("path"), time_)
            read = publications("content", keep=["time"], **stream.input_options)(given)
    # Rejected input has no time, so it is never late, and never a duplicate of a publication.
    on_time = sql.least("time", sql.current_timestamp())
    keyed = read.withColumn(
        "time", sql.when(sql.col("publication").isNotNull(), on_time)
    ).withColumn("key", sql.coalesce("publication", "_corrupt"))
    once = keyed.withWatermark("time", stream.watermark).dropDuplicatesWithinWatermark(["key"])
    return once.select("publication", "triples", "_corrupt")


def _followed(
    session: Session, query: StreamingQuery, matching: matches, changes: EngineFiles
) -> int:
    """Print the counters of each batch until the stream ends; return the exit status.

    A signal stops the stream. Each second, look for changes of the engine's files.
    """
    from graphmatch.command.serve import stopping
    from graphmatch.command.session import REFUSED

    total: Counter[str] = Counter()
    told = -1
    with stopping() as stops:  # A handler must not call Spark, whose connection may be in use.
        is_active = True
        while is_active:
            is_active = not query.awaitTermination(1)
            if is_active and stops:
                query.stop()
                is_active = False
            for progress in query.recentProgress:
                if progress.batchId > told and progress.numInputRows:
                    told = progress.batchId
                    did = _did(progress)
                    session.note(f"batch {told}: {_counts(did)}")
                    total.update(did)
            if is_active:
                changes.look(matching)
    session.note(f"total: {_counts(total)}" if total else "no input arrived")
    return REFUSED if total["refused"] else session.status


def _did(progress: Any) -> dict[str, int]:
    """Return the counters of a micro-batch from Spark's progress report."""
    observed = progress.observedMetrics.get("graphmatch")
    did = {
        name: int((observed and observed[name]) or 0)
        for name in ("publications", "matches", "refused", "warnings")
    }
    state = progress.stateOperators[0] if progress.stateOperators else None
    custom = {} if state is None else state.customMetrics
    did["duplicates"] = int(custom.get("numDroppedDuplicateRows", 0))
    did["late"] = 0 if state is None else int(state.numRowsDroppedByWatermark)
    return did


def _counts(did: Mapping[str, int]) -> str:
    from semantic.errors import plural

    return (
        f"{plural(did['publications'], 'publication')}, "
        f"{plural(did['duplicates'], 'duplicate')}, {did['late']:,} late, "
        f"{plural(did['matches'], 'match', 'matches')}, {did['refused']:,} refused"
    )
