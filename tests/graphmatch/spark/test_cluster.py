"""On workers that share nothing with the driver: the engine comes to them as an archive."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from graphmatch.spark.java import java_home

ROOT = Path(__file__).parents[3]


@pytest.mark.long
def test_an_engine_is_brought_to_a_cluster() -> None:
    """Two workers of a process each, as Spark starts them for tests; it wants to know its home."""
    home = {"SPARK_HOME": str(Path(pyspark.__file__).parent)}
    java = {"JAVA_HOME": str(java_home(os.environ)), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-m", "tests.graphmatch.spark.on_cluster"],
        cwd=ROOT,
        env=os.environ | home | java | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("equal: ")
    assert int(done.stdout.removeprefix("equal: ")) > 50
