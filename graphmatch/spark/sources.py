"""What is watched: a folder, or topics of Kafka; and its publications, each once.

Spark lists a folder's files, and looks at their contents nowhere: tasks read them. A file counts
once, by its name, and one that is being written is read as it is then: write it elsewhere, or under
a name that begins with a point, and rename it when it is whole.

*Time.* A publication's time is that of its file, or of its record, but never later than the batch:
a clock that is wrong would make all that comes after it late.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import functions as sql

from graphmatch.spark.arriving import SQL, ReadFiles, ReadRecords, first_of_each
from graphmatch.spark.java import SparkError
from graphmatch.spark.units import How

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LISTED = "path string, modificationTime timestamp, length bigint, content binary"
_GLOB = re.compile(r"([\\*?\[\]{}])")
_AGE = "1000000000d"
"""Files of any age count, also beside one whose time is far ahead. By default Spark passes over
what is a week older than the newest, and says nothing."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Files that appear in a folder, or in one below it.

    Parameters
    ----------
    path
        Its name, or an address that Spark and Arrow both know (``hdfs:``).
    at_once
        So many files are a batch, at most; the oldest ones come first.
    """

    path: str
    at_once: int = 100

    def said(self) -> str:
        """Return what it is called."""
        return self.path if "://" in self.path else f"file://{Path(self.path).absolute()}"

    def check(self) -> None:
        """Raise `SparkError` where there is no such folder."""
        if "://" not in self.path and not Path(self.path).is_dir():
            what, remedy = "there is no such folder to watch", "Make it, or check the name."
            raise SparkError(what, self.path, remedy)

    def arriving(self, spark: SparkSession, how: How) -> DataFrame:
        """Return the rows of `graphmatch.spark.arriving`, as files appear."""
        listed = (
            spark.readStream.format("binaryFile")
            .schema(_LISTED)
            .option("recursiveFileLookup", "true")
            .option("maxFilesPerTrigger", self.at_once)
            .option("maxFileAge", _AGE)
            .load(_GLOB.sub(r"\\\1", self.said()))
        )
        time = sql.least("modificationTime", sql.current_timestamp()).alias("time")
        return listed.select("path", time, "length").mapInArrow(ReadFiles(how), SQL)


@dataclass(frozen=True, slots=True)
class Kafka:
    """Records of topics; Spark needs its connector (`graphmatch.spark.start.connector`).

    Parameters
    ----------
    servers
        Hosts and ports, with commas between them.
    topics
        Their names.
    at_once
        So many records are a batch, at most.
    options
        More of the connector's options, by their names.
    """

    servers: str
    topics: Sequence[str]
    at_once: int = 100_000
    options: Mapping[str, str] = field(default_factory=dict)

    def said(self) -> str:
        """Return what it is called."""
        return f"kafka:{','.join(sorted(self.topics))}"

    def check(self) -> None:
        """Raise `SparkError` where no topic is named."""
        if not self.topics:
            raise SparkError("no topic is named", self.servers, "Name one with --kafka-topic.")

    def arriving(self, spark: SparkSession, how: How) -> DataFrame:
        """Return the rows of `graphmatch.spark.arriving`, as records come."""
        records = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.servers)
            .option("subscribe", ",".join(self.topics))
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", self.at_once)
            .options(**self.options)
            .load()
        )
        return of_records(records, how)


Source: TypeAlias = Folder | Kafka


def of_records(records: DataFrame, how: How) -> DataFrame:
    """Return the rows of `graphmatch.spark.arriving` for records as Kafka's connector gives them.

    Parameters
    ----------
    records
        Columns key, value, topic, partition, offset, timestamp.
    """
    time = sql.least("timestamp", sql.current_timestamp()).alias("time")
    chosen = records.select("key", "value", "topic", "partition", "offset", time)
    return chosen.mapInArrow(ReadRecords(how), SQL)


def each_once(rows: DataFrame, watermark: str) -> DataFrame:
    """Drop publications that came before, and those that come too late to tell.

    Of several in one batch the first stays: by time, then by name of file, or place in a topic.

    Parameters
    ----------
    watermark
        For so long an id is remembered; and what is older than the newest by more is late.
    """
    ordered = rows.repartition("key").mapInArrow(first_of_each, SQL)
    return ordered.withWatermark("time", watermark).dropDuplicatesWithinWatermark(["key"])
