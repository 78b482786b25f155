"""A Spark session with the settings that matching needs, started here or the caller's.

A session that is started here runs in this process, listens on loopback only, has no web page, and
says errors only. Workers run this process's Python; they are reused, for the first use of compiled
loops in a worker costs a second.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from graphmatch.spark.java import SparkError, java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INSTALL = 'pip install "graphmatch[spark]"'
_LOOPBACK = "127.0.0.1"
_NEEDED = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.session.timeZone": "UTC",
}
"""What can be set while a session runs."""
_STARTED = {
    "spark.driver.bindAddress": _LOOPBACK,
    "spark.driver.host": _LOOPBACK,
    "spark.buffer.pageSize": "1m",  # each small table that is joined takes a page
    "spark.python.worker.reuse": "true",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    **_NEEDED,
}
_ENDS = "-XX:+ExitOnOutOfMemoryError"
"""Otherwise a thread of Spark's own ends, and whoever waits for it waits for ever."""


def session(
    spark: SparkSession | None = None,
    *,
    master: str | None = None,
    name: str = "graphmatch",
    packages: Sequence[str] = (),
    jars: Sequence[str | Path] = (),
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a session that is ready for matching.

    Parameters
    ----------
    spark
        One that runs already (``spark-submit``, a notebook): it is returned with the settings that
        can still be made, and all else is ignored.
    master
        Where Spark runs; where ``spark-submit`` says, or else in this process, on all of its cores,
        by default.
    name
        What the application is called.
    packages
        Maven coordinates of what Spark is to load: ``spark.jars.packages``.
    jars
        Files of the same: ``spark.jars``.
    settings
        More settings, which go before ours.

    Raises
    ------
    SparkError
        When pyspark or Java is missing, or Spark does not start.
    """
    if find_spec("pyspark") is None:
        raise SparkError("Spark's Python package is not installed", "pyspark", _INSTALL)
    if spark is not None:
        for key, value in _NEEDED.items():
            spark.conf.set(key, value)
        return spark
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    log = Path(__file__).with_name("log4j2.properties")
    chosen = {
        **_STARTED,
        "spark.driver.extraJavaOptions": f"{_ENDS} -Dlog4j2.configurationFile={log.as_uri()}",
        **({"spark.jars.packages": ",".join(packages)} if packages else {}),
        **({"spark.jars": ",".join(map(str, jars))} if jars else {}),
        **(settings or {}),
    }
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if master is None and not submitted:
        master = "local[*]"
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    with _environment():
        try:
            return builder.getOrCreate()
        except PySparkException as error:
            what = f"Spark does not start: {str(error).splitlines()[0]}"
            remedy = "Look at what Java said above, and at the settings."
            raise SparkError(what, "spark", remedy) from error


def connector() -> str:
    """Return the Maven coordinate of Kafka's connector for the version of Spark that is installed.

    Raises
    ------
    SparkError
        When none is.
    """
    try:
        own = version("pyspark")
    except PackageNotFoundError as error:
        what = "Spark's Python package is not installed"
        raise SparkError(what, "pyspark", _INSTALL) from error
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{own}"


@contextmanager
def _environment() -> Iterator[None]:
    """Have Spark find a Java, and this Python for its workers: it looks in the environment only."""
    wanted = {"JAVA_HOME": str(java_home(os.environ))}
    wanted["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", sys.executable)
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
