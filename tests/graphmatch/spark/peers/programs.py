"""Start of programs with their own Spark session, because a process has only one session."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tests.graphmatch.spark.peers.jvm import spark_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[4]
_SECONDS = 300
"""Time limit of a program, in seconds."""
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "1g",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def run(program: str, *arguments: str, module: str) -> str:
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
    master: str = "local[2]", *, jars: str = "", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark with local jars, because ``spark.jars.packages`` takes seconds."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("peers")
    chosen = {**SETTINGS, **(settings or {})}
    if jars:
        chosen["spark.jars"] = jars
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
