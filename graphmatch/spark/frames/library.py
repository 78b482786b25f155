"""Whether GraphFrames is there: its Python side, and the side that runs in Java.

`pip` brings the first only. The other one is a Maven package, given to Spark when it starts:
``session(packages=[coordinate()])``, a jar of one's own (``GRAPHFRAMES_JAR``,
``session(jars=frames_jars(os.environ))``), or what a cluster has on its class path.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sql

from graphmatch.spark.java import SparkError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JAR = "GRAPHFRAMES_JAR"
_CLASS = "org.graphframes.GraphFrame"
_PLACES = ("subject", "predicate", "object")


def coordinate() -> str:
    """Return the Maven coordinate of the side that runs in Java.

    Examples
    --------
    >>> coordinate().rpartition(":")[0]
    'io.graphframes:graphframes-spark4_2.13'
    """
    return f"io.graphframes:graphframes-spark4_2.13:{version('graphframes-py')}"


def frames_jars(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the jars that an environment names, for `session`.

    Examples
    --------
    >>> frames_jars({"GRAPHFRAMES_JAR": "/opt/frames.jar"})[0].name, frames_jars({})
    ('frames.jar', ())
    """
    return (Path(environment[JAR]),) if environment.get(JAR) else ()


def require_frames(spark: SparkSession) -> None:
    """Make sure that a session has both sides of GraphFrames.

    Raises
    ------
    SparkError
        When the side that runs in Java is not there.
    """
    jvm: Any = spark.sparkContext._jvm
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(_CLASS)
    except import_module("py4j.protocol").Py4JJavaError as error:
        remedy = (
            f"Start Spark with session(packages=[{coordinate()!r}]), or name a jar of it in {JAR} "
            "and start it with session(jars=frames_jars(os.environ))."
        )
        raise SparkError("GraphFrames is not in this session", _CLASS, remedy) from error


def graph_frame(triples: DataFrame) -> Any:
    """Return triples as a graph: terms are vertices (``id``), properties are ``relationship``.

    Parameters
    ----------
    triples
        Columns ``subject``, ``predicate`` and ``object``.

    Raises
    ------
    SparkError
        When GraphFrames is not there.
    """
    distinct = triples.select(*_PLACES).distinct()
    edges = distinct.select(
        sql.col("subject").alias("src"),
        sql.col("object").alias("dst"),
        sql.col("predicate").alias("relationship"),
    )
    ends = edges.select(sql.col("src").alias("id"))
    vertices = ends.unionAll(edges.select(sql.col("dst").alias("id"))).distinct()
    return frame_of(vertices, edges)


def frame_of(vertices: DataFrame, edges: DataFrame) -> Any:
    """Return a graph of GraphFrames, which has no types.

    Raises
    ------
    SparkError
        When GraphFrames is not there.
    """
    require_frames(vertices.sparkSession)
    return import_module("graphframes").GraphFrame(vertices, edges)
