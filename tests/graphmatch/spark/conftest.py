"""One Spark session for all tests; and none of them is skipped where that is forbidden.

Two tests with a session are run by default, one of a batch and one of a stream; the others are
``long``. With GRAPHMATCH_NO_SKIPS set, a test that is skipped fails, unless its reason is that
GraphFrames' Java side is not there.
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


MAY_BE_MISSING = "GraphFrames"
"""What the reason says for which a test may be skipped everywhere."""

QUICK_TESTS = frozenset(
    {"test_files_of_every_kind", "test_a_publication_is_put_together_from_one_file"}
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and item.name not in QUICK_TESTS:
            item.add_marker(pytest.mark.long)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and "GRAPHMATCH_NO_SKIPS" in os.environ:
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        if MAY_BE_MISSING not in reason:
            report.outcome, report.longrepr = "failed", f"skipped: {reason}"
    return report
