"""One Spark session for all tests; and none of them is skipped where that is forbidden.

With GRAPHMATCH_NO_SKIPS set, a test that is skipped fails, unless its reason is that real data or
GraphFrames' Java side are not there.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from graphmatch.spark import frames_jars, session

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
    started = session(master="local[2]", name="tests", jars=frames_jars(os.environ), settings=QUICK)
    yield started
    started.stop()


MAY_BE_MISSING = ("the real ", "GraphFrames")
"""What reasons say for which a test may be skipped everywhere."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and "GRAPHMATCH_NO_SKIPS" in os.environ:
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        if not any(missing in reason for missing in MAY_BE_MISSING):
            report.outcome, report.longrepr = "failed", f"skipped: {reason}"
    return report
