"""Programs that match with peer servers: functions with arguments from the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from graphmatch.spark import connected_components, matches, publications
from graphmatch.spark.java import SparkError
from semantic import read_publications
from tests.graphmatch.spark.comparing import (
    FILES,
    asked,
    locally,
    nquads,
    on_spark,
    parquet,
    rows_of,
    samples,
    shuffled,
    small,
    table,
    unheard,
)
from tests.graphmatch.spark.peers.programs import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_SECONDS = 600
"""Time limit of a stream, in seconds."""


def produce(servers: str, topic: str, table: str, jars: str) -> None:
    """Write a table of keys and values to a topic."""
    spark = session(jars=jars)
    rows = spark.read.parquet(table).selectExpr("cast(key as binary)", "cast(value as binary)")
    options = {"kafka.bootstrap.servers": servers, "topic": topic}
    rows.repartition(2).write.format("kafka").options(**options).save()
    spark.stop()


def stream(servers: str, topic: str, folder: str, engine: str, at_once: str, jars: str) -> None:
    """Match the records of a topic, and print the origin of each match."""
    spark = session(jars=jars)
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic}
    records = (
        spark.readStream.format("kafka")
        .options(**options, startingOffsets="earliest", maxOffsetsPerTrigger=at_once)
        .load()
        .selectExpr("value", "concat_ws('/', topic, partition, offset) as path")
    )
    matching = matches(engine, document="value", source="path", format="nq", keep=["path"])
    writer = records.transform(matching).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", f"{folder}/output-checkpoint")
    query = writer.trigger(availableNow=True).start(f"{folder}/output")
    assert query.awaitTermination(_SECONDS)
    assert query.exception() is None
    spark.stop()


def hdfs(uri: str, master: str, folder: str) -> None:
    """Match tables, lines and documents of a file system, and write the matches there."""
    from pyspark.sql import functions as sql

    spark = session(master)
    engine, given = small()
    rows = shuffled(rows_of(given))
    parquet(Path(folder, "rows.parquet"), rows)
    nquads(Path(folder, "rows.nq"), rows)
    for name in ("rows.parquet", "rows.nq"):
        _put(spark, Path(folder, name), f"{uri}/in/{name}")
    for path in FILES:
        _put(spark, Path(path), f"{uri}/docs{path}")
    expected = locally(engine, given)

    triples = spark.read.parquet(f"{uri}/in/rows.parquet").repartition(4)
    triples.transform(matches(engine)).write.parquet(f"{uri}/out/table")
    found = on_spark(spark.read.parquet(f"{uri}/out/table"))
    assert found == expected
    _tell("parquet", solutions=found.total())

    texts = spark.read.text(f"{uri}/in/rows.nq").repartition(4)
    texts = texts.withColumn("path", sql.lit("rows.nq"))  # The lines belong to one file.
    parts = texts.transform(publications("value", lines=True))
    matching = matches(engine, triples="triples", grouped=False)
    parts.transform(matching).write.parquet(f"{uri}/out/lines")
    found = on_spark(spark.read.parquet(f"{uri}/out/lines"))
    assert found == expected
    _tell("text", solutions=found.total())

    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    named = files.load(f"{uri}/docs").repartition(4)
    named = named.withColumn("path", sql.replace("path", sql.lit(f"{uri}/docs")))
    of_documents = matches(samples(), document="content", source="path")
    named.transform(of_documents).write.parquet(f"{uri}/out/docs")
    found = on_spark(spark.read.parquet(f"{uri}/out/docs").where("_corrupt IS NULL"))
    assert found == locally(samples(), read_publications(*FILES, on_problem=unheard))
    _tell("binaryFile", solutions=found.total())
    spark.stop()


def written(uri: str, output: str) -> None:
    """Compare the output of the command."""
    from pyspark.sql import functions as sql

    spark = session()
    read = spark.read.parquet(output).where("_corrupt IS NULL")
    read = read.withColumn("publication", sql.replace("publication", sql.lit(f"{uri}/docs")))
    found = on_spark(read)
    expected = locally(samples(), read_publications(*FILES, on_problem=unheard))
    for key in [key for key in expected if key[1] == "construct"]:
        del expected[key]  # The folder of subscriptions lacks it.
    assert found == expected
    _tell("command", solutions=found.total())
    spark.stop()


def _put(spark: SparkSession, path: Path, address: str) -> None:
    """Copy a file or a folder to Spark's file system."""
    java: Any = spark.sparkContext._jvm
    to = java.org.apache.hadoop.fs.Path(address)
    system = to.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())  # type: ignore[union-attr]
    system.mkdirs(to.getParent())
    system.copyFromLocalFile(java.org.apache.hadoop.fs.Path(str(path)), to)


def connect(url: str, folder: str) -> None:
    """Match with a Spark Connect server: tables, documents, and streams of both."""
    from pyspark.sql import Observation, SparkSession
    from pyspark.sql import functions as sql

    spark = SparkSession.builder.remote(url).getOrCreate()
    did = Observation("files")
    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(FILES)
    named = files.withColumn("path", sql.regexp_replace("path", "^file:", ""))
    matching = matches(samples(), document="content", source="path", metrics=did)
    refused = sql.col("_corrupt").isNotNull()
    found = named.transform(matching)
    expected = locally(samples(), read_publications(*FILES, on_problem=unheard))
    assert on_spark(found.where(~refused)) == expected
    said = did.get
    known = {publication for publication, _, _ in expected}
    assert said["publications"] >= len(known) > 20
    _tell("documents", solutions=expected.total(), **said)

    engine, publications = small()
    rows = shuffled(rows_of(publications))
    of_triples = matches(engine)
    found_there = on_spark(table(spark, rows).transform(of_triples))
    assert found_there == locally(engine, publications)
    _tell("triples", solutions=found_there.total())
    of_triples.replace(asked(all="ASK { ?s ?p ?o }"))
    after = on_spark(table(spark, rows).transform(of_triples))
    assert {key[1] for key in after} == {"all"}
    assert after.total() == len(publications)

    with pytest.raises(SparkError, match="need a session in this process"):
        connected_components(table(spark, rows))
    for way in ("triples", "documents"):
        _replaced(spark, Path(folder, way), way)
    spark.stop()


def _replaced(spark: SparkSession, folder: Path, way: str) -> None:
    """Replace the engine of a running stream."""
    incoming = folder / "in"
    incoming.mkdir(parents=True)

    def drop(id: str) -> None:
        made = incoming / f".{id}"
        if way == "triples":
            parquet(made, [(id, "<urn:a>", "<urn:p>", "<urn:b>")])
        else:
            made.write_text(f"<urn:a> <urn:p> <urn:b> <{id}> .\n")
        made.rename(incoming / f"{id.rpartition(':')[2]}.{'parquet' if way == 'triples' else 'nq'}")

    if way == "triples":
        schema = "publication string, subject string, predicate string, object string"
        given = spark.readStream.schema(schema).parquet(str(incoming))
        matching = matches(asked(before="ASK { ?s ?p ?o }"), metrics="mine")
    else:
        columns = "path string, modificationTime timestamp, length bigint, content binary"
        given = spark.readStream.format("binaryFile").schema(columns).load(str(incoming))
        matching = matches(
            asked(before="ASK { ?s ?p ?o }"),
            document="content",
            source="path",
            format="nq",
            metrics="mine",
        )
    drop("urn:0")

    def started() -> StreamingQuery:
        writer = given.transform(matching).writeStream.format("parquet")
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        return writer.option("path", str(folder / "out")).start()

    query = started()
    query.processAllAvailable()
    matching.replace(asked(after="ASK { ?s ?p ?o }"))
    drop("urn:1")
    query.processAllAvailable()
    done = [p.observedMetrics["mine"] for p in query.recentProgress if p.numInputRows]
    query.stop()
    drop("urn:2")
    query = started()
    query.processAllAvailable()
    query.stop()
    written = spark.read.parquet(str(folder / "out")).collect()
    said = sorted((row.publication, row.subscription) for row in written)
    _tell(f"streamed {way}", said=said, did=[did.asDict() for did in done])


def _tell(what: str, **about: object) -> None:
    sys.stdout.write(f"{json.dumps({'what': what, **about}, default=str)}\n")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
