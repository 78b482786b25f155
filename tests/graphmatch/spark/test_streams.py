"""Streams of publications: matched like tables, by the engine of each micro-batch."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as sql
from pyspark.sql.streaming.listener import StreamingQueryListener

from graphmatch.spark import matches, publications, register
from graphmatch.spark.spark_session import explained
from tests.graphmatch.spark.comparing import (
    Row,
    asked,
    locally,
    nquads,
    on_spark,
    parquet,
    rows_of,
    shuffled,
    small,
)
from tests.waiting import wait

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TRIPLE = ("<urn:a>", "<urn:p>", "<urn:b>")
SCHEMA = "publication string, subject string, predicate string, object string"
EVERY = "SELECT * { ?s <urn:p> ?o }"


class Heard(StreamingQueryListener):
    """A listener that records the work of each micro-batch."""

    def __init__(self) -> None:
        self.did: list[dict[str, Any]] = []

    def onQueryStarted(self, event: Any) -> None: ...  # noqa: N802
    def onQueryIdle(self, event: Any) -> None: ...  # noqa: N802
    def onQueryTerminated(self, event: Any) -> None: ...  # noqa: N802
    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        if "mine" in event.progress.observedMetrics:
            self.did.append(event.progress.observedMetrics["mine"].asDict())


class Folder:
    """A folder that a stream reads, and its output."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.incoming, self.output = spark, folder / "in", folder / "out"
        self.checkpoint = folder / "checkpoint"
        self.incoming.mkdir()
        self.files = 0

    def drop(self, rows: list[Row]) -> None:
        self.files += 1
        made = self.incoming / f".{self.files}.parquet"
        parquet(made, rows)
        made.rename(self.incoming / f"{self.files}.parquet")

    def triples(self) -> DataFrame:
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", "1")
        return reader.parquet(str(self.incoming))

    def started(self, frame: DataFrame) -> StreamingQuery:
        """Start a stream to Parquet."""
        writer = frame.writeStream.format("parquet").option("path", str(self.output))
        return writer.option("checkpointLocation", str(self.checkpoint)).start()

    def written(self) -> DataFrame:
        return self.spark.read.parquet(str(self.output))


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Folder:
    return Folder(spark, tmp_path)


def metrics(query: StreamingQuery, name: str = "graphmatch") -> list[Any]:
    return [p.observedMetrics[name] for p in query.recentProgress if p.numInputRows]


def test_a_replaced_engine_applies_from_the_next_micro_batch(
    spark: SparkSession, folder: Folder
) -> None:
    """A replacement applies from the next micro-batch on; listeners get metrics."""
    heard = Heard()
    spark.streams.addListener(heard)
    how = matches(asked(first=EVERY, now="SELECT (NOW() AS ?n) { ?s ?p ?o }"), metrics="mine")
    times = [datetime.now(UTC)]
    folder.drop([(f"g{n}", *TRIPLE) for n in range(9)])
    query = folder.started(folder.triples().transform(how))
    try:
        for number in range(2):
            query.processAllAvailable()
            times.append(datetime.now(UTC))
            how.replace(asked(**{f"s{number}": EVERY}))
            folder.drop([(f"h{number}", *TRIPLE), ("bad", "no", *TRIPLE[1:])])
        query.processAllAvailable()
        did = metrics(query, "mine")
        wait(lambda: len(heard.did) >= 3)
    finally:
        query.stop()
        spark.streams.removeListener(heard)
    rows = folder.written().collect()
    said = {(row["publication"], row["subscription"]) for row in rows if row["solution"]}
    first = {(f"g{n}", name) for n in range(9) for name in ("first", "now")}
    assert said == first | {("h0", "s0"), ("h1", "s1")}
    assert sum(row["_corrupt"] is not None for row in rows) == 2
    (now,) = {row["solution"]["n"].split('"')[1] for row in rows if row["subscription"] == "now"}
    assert times[0] < datetime.fromisoformat(now) < times[1]
    assert [(one["publications"], one["matches"], one["refused"]) for one in did] == [
        (9, 18, 0),
        (1, 1, 1),
        (1, 1, 1),
    ]
    assert [one.asDict() for one in did] == heard.did
    versions = [datetime.fromisoformat(one["engine"]) for one in did]
    assert versions[0] < times[1] < versions[1] < times[2] < versions[2]


def _later(id: str) -> str:
    Event().wait(0.15)
    return id


@pytest.mark.long
def test_an_engine_replaced_during_a_micro_batch_applies_to_the_next(folder: Folder) -> None:
    """All tasks of one micro-batch use the engine from its start."""
    how = matches(asked(before=EVERY))
    ids = [f"g{n}" for n in range(30)]
    folder.drop([(id, *TRIPLE) for id in ids])
    folder.drop([(f"{id}!", *TRIPLE) for id in ids])
    slow = sql.udf(_later, "string", useArrow=False)
    given = folder.triples().withColumn("publication", slow("publication"))
    query = folder.started(given.transform(how))
    try:
        offsets = folder.checkpoint / "offsets/0"
        wait(lambda: query.status["isTriggerActive"] and offsets.exists())
        how.replace(asked(after=EVERY))
        assert not list(folder.checkpoint.glob("commits/0")), "the first one runs still"
        query.processAllAvailable()
    finally:
        query.stop()
    said = {(row["publication"], row["subscription"]) for row in folder.written().collect()}
    assert said == {*((id, "before") for id in ids), *((f"{id}!", "after") for id in ids)}


@pytest.mark.long
def test_a_repeated_micro_batch_has_the_same_engine(folder: Folder) -> None:
    """A killed stream can resume in the same application."""
    how = matches(asked(before="SELECT (NOW() AS ?n) { ?s ?p ?o }"))
    folder.drop([("g", *TRIPLE)])
    query = folder.started(folder.triples().transform(how))
    query.processAllAvailable()
    query.stop()
    (before,) = folder.written().collect()
    for name in ("commits/0", "commits/.0.crc"):
        (folder.checkpoint / name).unlink()
    for path in sorted(folder.output.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    how.replace(asked(after=EVERY))
    query = folder.started(folder.triples().transform(how))
    query.processAllAvailable()
    query.stop()
    (again,) = folder.written().collect()
    assert again == before


# -- Forms ----------------------------------------------------------------------------------------


def of_triples(folder: Folder, engine: Any) -> DataFrame:
    return folder.triples().transform(matches(engine, keep=["predicate"])).drop("predicate")


def of_texts(folder: Folder, engine: Any) -> DataFrame:
    text = sql.concat_ws(" ", "subject", "predicate", "object", sql.lit("."))
    rows = folder.triples().select("publication", text.alias("lines"))
    return rows.transform(matches(engine, triples="lines", grouped=False))


def of_source(folder: Folder, engine: Any) -> DataFrame:
    for file in folder.incoming.glob("*.parquet"):
        rows = folder.spark.read.parquet(str(file)).collect()
        nquads(file.with_suffix(".nq"), sorted(tuple(row) for row in rows))
        file.unlink()
    register(folder.spark)
    given: DataFrame = folder.spark.readStream.format("rdf").load(str(folder.incoming))
    return given.transform(matches(engine))


def of_documents(folder: Folder, engine: Any) -> DataFrame:
    of_source(folder, engine)
    schema = "path string, modificationTime timestamp, length bigint, content binary"
    files = folder.spark.readStream.format("binaryFile").schema(schema)
    rows = files.load(str(folder.incoming))
    return rows.transform(matches(engine, document="content", source="path", keep=["length"])).drop(
        "length"
    )


def of_publications(folder: Folder, engine: Any) -> DataFrame:
    of_source(folder, engine)
    schema = "path string, modificationTime timestamp, length bigint, content binary"
    files = folder.spark.readStream.format("binaryFile").schema(schema)
    rows = files.load(str(folder.incoming)).transform(publications(keep=["length"]))
    return rows.transform(matches(engine, triples="triples"))


@pytest.mark.long
@pytest.mark.parametrize("form", [of_triples, of_texts, of_source, of_documents, of_publications])
def test_streams_of_each_form_are_matched(
    folder: Folder, form: Callable[[Folder, Any], DataFrame]
) -> None:
    engine, made = small()
    for first in (0, 1):
        folder.drop(shuffled(rows_of(made[first::2])))
    query = folder.started(form(folder, engine))
    try:
        query.processAllAvailable()
        assert sum(one["publications"] for one in metrics(query)) == len(made)
    finally:
        query.stop()
    assert on_spark(folder.written()) == locally(engine, made)


@pytest.mark.long
def test_foreach_batch_matches_and_refuses_null_ids(folder: Folder) -> None:
    how = matches(asked(s=EVERY))
    found: list[tuple[int, Any]] = []

    def take(batch: DataFrame, number: int) -> None:
        rows = batch.transform(how).collect()
        found.extend((number, row["publication"] or row["_corrupt"]) for row in rows)

    folder.drop([("g", *TRIPLE)])
    null: Any = None
    folder.drop([(null, *TRIPLE), ("h", *TRIPLE)])
    writer = folder.triples().writeStream.foreachBatch(take)
    query = writer.option("checkpointLocation", str(folder.checkpoint)).start()
    query.processAllAvailable()
    query.stop()
    assert sorted(found) == [
        (0, "g"),
        (1, "<table>: no publication. Give the publication an id."),
        (1, "h"),
    ]


@pytest.mark.long
def test_a_malformed_row_ends_a_stream_in_failfast_mode(folder: Folder) -> None:
    folder.drop([("g", "no", *TRIPLE[1:])])
    query = folder.started(folder.triples().transform(matches(asked(s=EVERY), mode="FAILFAST")))
    with pytest.raises(StreamingQueryException) as caught:
        query.processAllAvailable()
    assert "the subject 'no' is not a term" in str(explained(caught.value))
