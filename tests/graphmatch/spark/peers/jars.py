"""Jars for tests, downloaded once from Maven Central with Spark's Ivy.

They are stored in Spark's package folder.
"""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import pyspark

from graphmatch.spark.java import java_home

SPARK_HOME = Path(pyspark.__file__).parent
SPARK_JARS = SPARK_HOME / "jars"
BROKER = "org.apache.kafka:kafka_2.13:4.1.0"
_CONNECTORS = ("4.2.0", "4.1.1", "4.0.0")
"""Fallback versions if the registry does not serve that of the installed Spark."""
_IVY = Path.home() / ".ivy2.5.2"
"""Spark's package folder; the tests' own cache is new each time."""


class PeerError(Exception):
    """A server for tests does not start."""


def resolved(*coordinates: str, transitive: bool = True) -> list[Path]:
    """Return the jars of Maven coordinates with their dependencies; download them once.

    Parameters
    ----------
    coordinates
        Such as ``org.apache.kafka:kafka_2.13:4.1.0``.
    transitive
        Whether to include dependencies.

    Raises
    ------
    PeerError
        If one of them is not served.
    """
    key = sha256(" ".join((*sorted(coordinates), str(transitive))).encode()).hexdigest()[:16]
    known = _IVY / "resolved" / f"{key}.txt"
    if known.is_file():
        jars = [Path(line) for line in known.read_text(encoding="utf-8").splitlines()]
        if all(jar.is_file() for jar in jars):
            return jars
    found: dict[str, Path] = {}
    for coordinate in coordinates:
        for jar in _brought(coordinate, transitive=transitive):
            found.setdefault(jar.name, jar)
    known.parent.mkdir(parents=True, exist_ok=True)
    written = known.with_suffix(f".{os.getpid()}")
    written.write_text("".join(f"{jar}\n" for jar in found.values()), encoding="utf-8")
    written.replace(known)
    return list(found.values())


def _brought(coordinate: str, *, transitive: bool) -> list[Path]:
    """Download the jars of one coordinate with Ivy."""
    (ivy,) = SPARK_JARS.glob("ivy-*.jar")
    with TemporaryDirectory(prefix="peers-") as folder:
        paths = Path(folder, "paths")
        command = [
            *(str(java()), "-cp", str(ivy), "org.apache.ivy.Main", "-cache", str(_IVY / "cache")),
            *("-dependency", *coordinate.split(":"), "-confs", "default"),
            *(() if transitive else ("-notransitive",)),
            *("-cachepath", str(paths)),
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode or not paths.is_file():
            raise PeerError(f"{coordinate} is not served:\n{(done.stdout + done.stderr)[-2000:]}")
        return list(map(Path, paths.read_text(encoding="utf-8").strip().split(os.pathsep)))


def resolved_for_spark(*coordinates: str) -> list[Path]:
    """Return the jars of Maven coordinates without those that Spark includes."""
    own = {_artifact(jar) for jar in SPARK_JARS.glob("*.jar")}
    return [jar for jar in resolved(*coordinates) if _artifact(jar) not in own]


def _artifact(jar: Path) -> str:
    """Return a jar's name without its version."""
    return re.sub(r"-\d.*", "", jar.name)


def connector() -> list[Path]:
    """Return the jars of Spark's connector: of the installed version, or the newest one served.

    Raises
    ------
    PeerError
        If none is served.
    """
    own = version("pyspark")
    for wanted in dict.fromkeys((own, f"{own.rpartition('.')[0]}.0", *_CONNECTORS)):
        with suppress(PeerError):
            return resolved_for_spark(f"org.apache.spark:spark-sql-kafka-0-10_2.13:{wanted}")
    raise PeerError("no version of Kafka's connector for Spark is served")


def minicluster() -> list[Path]:
    """Return the jar of HDFS for the Hadoop version of Spark's client."""
    (api,) = SPARK_JARS.glob("hadoop-client-api-*.jar")
    own = api.stem.removeprefix("hadoop-client-api-")
    return resolved(f"org.apache.hadoop:hadoop-client-minicluster:{own}", transitive=False)


def java() -> Path:
    """Return the path of Spark's Java."""
    return java_home(os.environ) / "bin" / "java"
