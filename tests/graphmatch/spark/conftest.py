"""One Spark session for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from graphmatch.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "3",
    "spark.default.parallelism": "3",
}
"""Settings of a session that has little to do."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    started = session(master="local[2]", name="tests", settings=QUICK)
    yield started
    started.stop()
