"""Engines on their way to Spark's workers: saved once, shipped as files, opened once a worker.

What is shipped is a snapshot as `Engine.save` writes it; Spark brings it to each machine once
(``addFile``, or ``addArtifacts`` of Spark Connect), and workers map it into memory. An engine that
changes is shipped again, with a small file whose name has the time of the change. A task takes the
newest snapshot that is not newer than its query, or its micro-batch: Spark records the time of a
micro-batch before it runs, so all tasks of one take the same engine, and a later one the next.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from graphmatch.engine import Engine
from graphmatch.spark.java import SparkError
from semantic.clock import utc_now
from semantic.errors import Problem
from semantic.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OPENED = 2
"""So many engines stay open in a worker: while one is replaced there are two."""


class Worker:
    """What a worker keeps from one task to the next: an engine, and what it reported.

    Parameters
    ----------
    path
        The snapshot.
    stamp
        Since when it is in force, in microseconds.
    limits
        Those of the engine.

    Attributes
    ----------
    now
        What ``NOW()`` is; each task says.
    version
        Since when it is in force, as ISO 8601 writes it.
    problems
        What was reported and not yet taken.
    """

    def __init__(self, path: Path, stamp: int, limits: Limits) -> None:
        self.now = utc_now()
        self.version = datetime.fromtimestamp(stamp / 1e6, UTC).isoformat()
        self.problems: list[Problem] = []
        self.engine = Engine.open(
            path, clock=lambda: self.now, on_problem=self.problems.append, limits=limits
        )


@dataclass(frozen=True, slots=True)
class Snapshots:
    """How a worker finds an engine: this, and no engine, goes to the workers with each task.

    Parameters
    ----------
    name
        What the names of its snapshots begin with.
    package
        The version of this package that saved it.
    limits
        What one document and one evaluation may cost.
    """

    name: str
    package: str
    limits: Limits = DEFAULT_LIMITS

    def opened(self, now: datetime) -> Worker:
        """Return the engine that was in force at a time.

        Raises
        ------
        SparkError
            When the worker has another version of this package, or there is no snapshot.
        SavedError
            When the snapshot is damaged.
        """
        from pyspark import SparkFiles

        if (own := version("graphmatch")) != self.package:
            what = f"the worker has graphmatch {own}, and the driver {self.package}"
            raise SparkError(what, "worker", "Install one version everywhere.")
        root = Path(SparkFiles.getRootDirectory())
        # A stream of Spark Connect has its files in a folder of this one.
        markers = {
            int(path.name.rpartition("@")[2]): path
            for pattern in (f"*/{self.name}@*", f"{self.name}@*")
            for path in root.glob(pattern)
        }
        if not markers:
            raise SparkError(f"there is no snapshot in {root}", "worker", "Start Spark again.")
        at = _micros(now)
        stamp = max((stamp for stamp in markers if stamp <= at), default=min(markers))
        marker = markers[stamp]
        file = marker.parent / marker.read_text(encoding="utf-8")
        worker = _opened(str(file), stamp, self.limits)
        worker.now = now
        return worker


@lru_cache(maxsize=_OPENED)
def _opened(path: str, stamp: int, limits: Limits) -> Worker:
    """Return what a worker keeps: here and nowhere else something outlives a task.

    Spark's workers collect garbage after each task: what an engine consists of is none, and need
    not be looked at then.
    """
    worker = Worker(Path(path), stamp, limits)
    gc.freeze()
    return worker


def ship(spark: SparkSession, engine: Engine | Path, before: Snapshots | None = None) -> Snapshots:
    """Have Spark bring an engine to its workers.

    Parameters
    ----------
    engine
        An engine, or the snapshot of one.
    before
        What it takes the place of, from the next query or micro-batch on.

    Raises
    ------
    SparkError
        When it has operators, which are functions of this process.
    SavedError
        When it cannot be saved, or the snapshot is damaged or not there.
    """
    if isinstance(engine, Path):
        engine = Engine.open(engine)
    if engine.operators:
        what = f"operators do not run on Spark: {', '.join(one.iri for one in engine.operators)}"
        remedy = "Match without Spark, or leave out the operators and what calls them."
        raise SparkError(what, "engine", remedy)
    name = f"graphmatch-{uuid4().hex}" if before is None else before.name
    if is_connect(spark):
        with TemporaryDirectory(prefix="graphmatch-") as folder:
            _add(partial(spark.addArtifacts, file=True), engine, name, Path(folder))
    else:
        from pyspark import SparkFiles

        folder_ = Path(SparkFiles.getRootDirectory(), "saved")  # goes when Spark stops
        folder_.mkdir(exist_ok=True)
        _add(spark.sparkContext.addFile, engine, name, folder_)
    return Snapshots(name, version("graphmatch"), engine.limits)


def _add(add: Callable[[str], object], engine: Engine, name: str, folder: Path) -> None:
    """Add a snapshot; then, since that takes a while, a small file that says from when it holds."""
    path = folder / f"{name}-{uuid4().hex}"
    engine.save(path)
    add(str(path))
    marker = folder / _marker(name, _micros(utc_now()))
    marker.write_text(path.name, encoding="utf-8")
    add(str(marker))


def is_connect(session: Any) -> bool:
    """Whether a session is one of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def _marker(name: str, stamp: int) -> str:
    return f"{name}@{stamp:017d}"


def _micros(time: datetime) -> int:
    return int(time.timestamp() * 1e6)
