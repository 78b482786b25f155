"""Share one Spark session, which tests must leave unchanged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from graphmatch.spark import frames_jars, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "3",
    "spark.default.parallelism": "3",
    "spark.sql.session.timeZone": "Asia/Kathmandu",
}
"""Settings of a small session, with a time zone that differs visibly from UTC."""


@pytest.fixture(scope="session")
def started() -> Iterator[SparkSession]:
    spark = session(master="local[2]", name="tests", jars=frames_jars(os.environ), settings=QUICK)
    yield spark
    spark.stop()


@pytest.fixture
def spark(started: SparkSession) -> Iterator[SparkSession]:
    """Yield the session; afterwards check its streams, persisted data and settings."""
    before = dict(started.conf.getAll)
    yield started
    java: Any = started.sparkContext._jsc
    active = started.streams.active
    for query in active:
        query.stop()
    assert active == []
    assert java.getPersistentRDDs().size() == 0
    assert dict(started.conf.getAll) == before
