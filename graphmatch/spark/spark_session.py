"""A Spark session for a laptop, for tests, and for the command.

By default it runs in this process, listens on loopback only, has no web page, and logs errors only.
Its workers run this process's Python. Matching works with any existing session.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from graphmatch.spark.java import SparkError, java_home
from semantic.errors import pip_install

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = "127.0.0.1"
_STARTED = {
    "spark.buffer.pageSize": "1m",  # each small joined table takes a page
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",  # a row may be a whole publication
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_ERROR = re.compile(r"^(?!pyspark|org\.|java\.)[\w.]+(?:Error|Exception): (.+)$", re.MULTILINE)
_CLASS = re.compile(r"^(?:[a-z]\w*\.)+\w+: ")
_MISSING = re.compile(r"No module named '([\w.]+)'")
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""Settings of a session that reads and writes Delta tables; it needs Delta's jars."""
_SETTINGS = "Check Java's messages above, and the settings."
_PACKAGES = (
    "If Java says above that this package was not found, set another version of it with --conf "
    "spark.jars.packages=GROUP:NAME:VERSION, in Python session(packages=[…]). If Maven cannot be "
    "reached, give files: --conf spark.jars.packages= --conf spark.jars=FILE,…, in Python "
    "session(jars=[…])."
)
_ALONE = {"spark.driver.bindAddress": _LOOPBACK, "spark.driver.host": _LOOPBACK}
"""Settings of a session whose workers are in this process or on this machine."""
_ENDS = "-XX:+ExitOnOutOfMemoryError"
"""Without it, a thread of Spark ends, and callers wait for it forever."""


def session(
    *,
    master: str | None = None,
    name: str = "graphmatch",
    packages: Sequence[str] = (),
    jars: Sequence[str | Path] = (),
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark, or use the session that ``spark-submit`` or a platform has started.

    Parameters
    ----------
    master
        The place where Spark runs. By default that of ``spark-submit``, or else this process, on
        all of its cores.
    name
        The name of the application.
    packages
        Maven coordinates of packages that Spark must load: ``spark.jars.packages``.
    jars
        Files to load: ``spark.jars``.
    settings
        More settings, which override the defaults.

    Raises
    ------
    SparkError
        If pyspark or Java is missing, or Spark does not start.
    """
    if find_spec("pyspark") is None:
        raise SparkError("Spark's Python package is not installed", "pyspark", pip_install("spark"))
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    if master is None and "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit sets it
        master = "local[*]"
    log = Path(__file__).with_name("log4j2.properties")
    chosen = {
        **_STARTED,
        **(_ALONE if master is not None and master.startswith("local") else {}),
        "spark.driver.extraJavaOptions": f"{_ENDS} -Dlog4j2.configurationFile={log.as_uri()}",
        **({"spark.jars.packages": ",".join(packages)} if packages else {}),
        **({"spark.jars": ",".join(map(str, jars))} if jars else {}),
        **(settings or {}),
    }
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    with _environment():
        try:
            return builder.getOrCreate()
        except PySparkException as error:
            said = str(error).splitlines()[0].rstrip(".")
            what, remedy = f"Spark does not start: {said}", _SETTINGS
            if wanted := chosen.get("spark.jars.packages"):
                what, remedy = f"Spark does not start with {wanted}: {said}", _PACKAGES
            raise SparkError(what, "spark", remedy) from error


def connector() -> str:
    """Return the Maven coordinate of Kafka's connector for the installed version of Spark.

    Raises
    ------
    SparkError
        If Spark is not installed.
    """
    try:
        own = version("pyspark")
    except PackageNotFoundError as error:
        what = "Spark's Python package is not installed"
        raise SparkError(what, "pyspark", pip_install("spark")) from error
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{own}"


def explained(error: Exception) -> SparkError:
    """Return Spark's failure in a sentence: the last error of a worker, or Spark's first line."""
    text = str(error)
    if missing := _MISSING.search(text):
        what = f"a worker's Python cannot import {missing[1]}"
        remedy = (
            "Install graphmatch with its extra spark in the workers' Python, or name a Python that "
            "has it in PYSPARK_PYTHON."
        )
        return SparkError(what, "worker", remedy)
    said = _ERROR.findall(text)
    lines = filter(str.strip, text.partition("\n: ")[2].splitlines() or text.splitlines())
    first = _CLASS.sub("", next(lines, "no reason was given"))
    what = (said[-1] if said else first).rstrip(".")
    return SparkError(what, "spark", "Fix that, and start Spark again.")


@contextmanager
def _environment() -> Iterator[None]:
    """Set JAVA_HOME and PYSPARK_PYTHON for the start of Spark; restore them after the block."""
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
