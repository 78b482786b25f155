"""Programs that use Spark with peer servers, because a process has only one Spark session.

Each is a function here, with arguments from the command line; it ends with an error unless Spark
works as expected.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from tests.graphmatch.spark.peers.jars import DELTA, ICEBERG
from tests.graphmatch.spark.peers.jvm import spark_environment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).parents[4]
RECORDS = 100_000
_SECONDS = 300
"""Time limit of a program, in seconds."""
_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "1g",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def run(program: str, *arguments: str, module: str = __name__) -> str:
    """Run a program of a module in its own process and return its output.

    Raises
    ------
    AssertionError
        If it fails.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, program, *arguments],
        cwd=ROOT,
        env=os.environ | spark_environment(),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-20000:]
    return done.stdout


def session(
    master: str = "local[2]",
    *,
    jars: str = "",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark with local jars, because ``spark.jars.packages`` takes seconds."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("peers")
    chosen = {**_SETTINGS, **(settings or {})}
    if jars:
        chosen["spark.jars"] = jars
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def kafka(servers: str, topic: str, folder: str, jars: str) -> None:
    """Write records, read them as a table and as a stream, and resume a stream."""
    from pyspark.sql import functions as sql

    spark = session(jars=jars)

    def write(start: int, end: int) -> None:
        key, value = sql.col("id").cast("string").alias("key"), sql.lit("x" * 100).alias("value")
        rows = spark.range(start, end, numPartitions=2).select(key, value)
        options = {"kafka.bootstrap.servers": servers, "topic": topic}
        rows.write.format("kafka").options(**options).save()

    def stream() -> None:
        given = {"kafka.bootstrap.servers": servers, "subscribe": topic}
        read = spark.readStream.format("kafka").options(**given, startingOffsets="earliest").load()
        started = (
            read.select(read.key.cast("string").alias("key"), "partition", "offset")
            .writeStream.format("parquet")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start(f"{folder}/rows")
        )
        assert started.awaitTermination(_SECONDS)
        assert started.exception() is None

    def rows() -> tuple[int, int, int]:
        table = spark.read.parquet(f"{folder}/rows")
        places = table.select("partition", "offset").distinct().count()
        return table.count(), table.select("key").distinct().count(), places

    write(0, RECORDS)
    given = {"kafka.bootstrap.servers": servers, "subscribe": topic}
    assert spark.read.format("kafka").options(**given).load().count() == RECORDS
    stream()
    assert rows() == (RECORDS,) * 3
    write(RECORDS, RECORDS + 1000)
    stream()
    assert rows() == (RECORDS + 1000,) * 3
    spark.stop()


def delta(folder: str, jars: str) -> None:
    """Write a stream to a Delta table, and batches that may be repeated."""
    spark = session(jars=jars, settings=DELTA)
    source = f"{folder}/source"
    spark.range(1000).write.parquet(source)

    def read() -> DataFrame:
        return spark.readStream.schema("id bigint").parquet(source)

    first = read().writeStream.format("delta").option("checkpointLocation", f"{folder}/first-done")
    first.trigger(availableNow=True).start(f"{folder}/first").awaitTermination()
    assert spark.read.format("delta").load(f"{folder}/first").count() == 1000

    def twice(batch: DataFrame, number: int) -> None:
        for _ in range(2):
            options = {"txnAppId": "peers", "txnVersion": str(number)}
            batch.write.format("delta").mode("append").options(**options).save(f"{folder}/second")

    second = read().writeStream.foreachBatch(twice)
    second = second.option("checkpointLocation", f"{folder}/second-done")
    second.trigger(availableNow=True).start().awaitTermination()
    assert spark.read.format("delta").load(f"{folder}/second").count() == 1000
    spark.stop()


def iceberg(folder: str, jars: str) -> None:
    """Write a stream to an Iceberg table."""
    warehouse = {"spark.sql.catalog.ice.warehouse": f"{folder}/warehouse"}
    spark = session(jars=jars, settings=ICEBERG | warehouse)
    spark.range(1000).write.parquet(f"{folder}/source")
    spark.sql("CREATE TABLE ice.own.ids (id bigint) USING iceberg")
    stream = spark.readStream.schema("id bigint").parquet(f"{folder}/source").writeStream
    started = stream.format("iceberg").option("checkpointLocation", f"{folder}/checkpoint")
    started.trigger(availableNow=True).toTable("ice.own.ids").awaitTermination()
    assert spark.table("ice.own.ids").distinct().count() == 1000
    spark.stop()


def hdfs(uri: str, master: str) -> None:
    """Write and read files shared by workers in several folders."""
    from pyspark.sql import functions as sql

    spark = session(master)
    spark.range(1000, numPartitions=4).write.parquet(f"{uri}/ids")
    assert spark.read.parquet(f"{uri}/ids").count() == 1000
    texts = spark.range(1000, numPartitions=4).select(sql.col("id").cast("string"))
    texts.write.text(f"{uri}/texts")
    assert spark.read.text(f"{uri}/texts").distinct().count() == 1000
    files = spark.read.format("binaryFile").load(f"{uri}/texts/part-*")
    assert files.count() == 4
    assert files.select(sql.length("content").alias("n")).agg(sql.sum("n")).collect()[0][0] == 3890

    stream = spark.readStream.format("text").load(f"{uri}/texts").writeStream
    started = stream.format("parquet").option("checkpointLocation", f"{uri}/checkpoint")
    started.trigger(availableNow=True).start(f"{uri}/streamed").awaitTermination()
    assert spark.read.parquet(f"{uri}/streamed").distinct().count() == 1000

    def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"folder": [str(Path.cwd())] * batch.num_rows})

    found = spark.read.parquet(f"{uri}/ids").repartition(8).mapInArrow(where, "folder string")
    for row in found.distinct().collect():
        sys.stdout.write(f"{row.folder}\n")
    spark.stop()


def connect(url: str, folder: str) -> None:
    """Use a Spark Connect server: batches, files, observations, streams."""
    from pyspark import SparkFiles
    from pyspark.sql import Observation, SparkSession
    from pyspark.sql import functions as sql

    spark = SparkSession.builder.remote(url).getOrCreate()
    file = Path(folder, "shipped.txt")
    file.write_text("shipped", encoding="utf-8")
    spark.addArtifacts(str(file), file=True)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Streams without a shuffle get the parent folder.
        root = Path(SparkFiles.getRootDirectory())
        text = next(root.rglob("shipped.txt")).read_text(encoding="utf-8")
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"id": batch.column(0), "text": [text] * len(batch)})

    observed = Observation("count")
    found = spark.range(1000).mapInArrow(read, "id bigint, text string")
    found = found.observe(observed, sql.count(sql.lit(1)).alias("rows"))
    assert {(row.id, row.text) for row in found.collect()} == {(n, "shipped") for n in range(1000)}
    assert observed.get == {"rows": 1000}

    spark.range(1000).write.parquet(f"{folder}/source")
    stream = spark.readStream.schema("id bigint").parquet(f"{folder}/source")
    mapped = stream.mapInArrow(read, "id bigint, text string")
    mapped = mapped.observe("count", sql.count(sql.lit(1)).alias("rows"))
    started = mapped.writeStream.format("parquet").outputMode("append")
    started = started.option("checkpointLocation", f"{folder}/checkpoint")
    query = started.trigger(availableNow=True).start(f"{folder}/rows")
    assert query.awaitTermination(_SECONDS)
    metrics = [json.loads(each.json)["observedMetrics"]["count"] for each in query.recentProgress]
    # Without Connect, it would be each["rows"].
    assert sum(each["values"][0] for each in metrics) == 1000
    assert spark.read.parquet(f"{folder}/rows").where("text = 'shipped'").count() == 1000
    spark.stop()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
