"""A program for a cluster: it matches the samples there and here, and says how many are equal."""

from __future__ import annotations

import sys

from graphmatch.spark import match_files, session
from semantic import read_publications
from tests.graphmatch.spark.comparing import locally, on_spark
from tests.graphmatch.spark.test_batch import FILES, samples, unheard

SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "1g",
    "spark.sql.shuffle.partitions": "3",
}


def main() -> None:
    spark = session(master="local-cluster[2,1,1024]", name="cluster", settings=SETTINGS)
    engine = samples()
    matched = match_files(list(map(str, FILES)), engine, spark=spark)
    found = on_spark(matched.matches)
    assert found == locally(engine, read_publications(*FILES, on_problem=unheard))
    sys.stdout.write(f"equal: {len(found)}\n")
    matched.close()
    spark.stop()


if __name__ == "__main__":
    main()
