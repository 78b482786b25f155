"""A program for a cluster: it matches the samples there and here, and says how many are equal."""

from __future__ import annotations

import sys

from pyspark.sql import functions as sql

from graphmatch.spark import matches, session
from semantic import read_publications
from tests.graphmatch.spark.comparing import FILES, asked, locally, on_spark, samples, unheard

SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "1g",
    "spark.sql.shuffle.partitions": "3",
}


def main() -> None:
    spark = session(master="local-cluster[2,1,1024]", name="cluster", settings=SETTINGS)
    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(FILES)
    named = files.withColumn("path", sql.regexp_replace("path", "^file:", "")).repartition(4)
    how = matches(samples(), document="content", source="path")
    found = on_spark(named.transform(how))
    assert found == locally(samples(), read_publications(*FILES, on_problem=unheard))
    how.replace(asked(all="ASK { ?s ?p ?o }"))
    assert {name for _, name, _ in on_spark(named.transform(how))} == {"all"}
    sys.stdout.write(f"equal: {len(found)}\n")
    spark.stop()


if __name__ == "__main__":
    main()
