"""Engines for Spark's workers: saved once, shipped as files, opened once per worker.

An engine is shipped as a snapshot of `Engine.save`. Spark copies it to each machine once
(``addFile``, or ``addArtifacts`` of Spark Connect), and workers map it into memory. A changed
engine is shipped again, with a small file whose name has the time of the change. A task uses the
newest snapshot that is not newer than its query or micro-batch. Spark records the time of a
micro-batch before it runs, so all its tasks use the same engine, and a later micro-batch the next.
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
"""The number of open engines in a worker: two while one is being replaced."""


class Worker:
    """The state of a worker between tasks: an engine, its time, and its problems.

    Parameters
    ----------
    path
        The snapshot.
    stamp
        The time from which it is used, in microseconds.
    limits
        The engine's limits.

    Attributes
    ----------
    now
        The value of ``NOW()``, set by each task.
    version
        The time from which it is used, as ISO 8601.
    problems
        The reported problems that no task has taken yet.
    """

    def __init__(self, path: Path, stamp: int, limits: Limits) -> None:
        self.now = utc_now()
        self.version = datetime.fromtimestamp(stamp / 1e6, UTC).isoformat()
        self.problems: list[Problem] = []
        self.engine = Engine.open(
            path, clock=lambda: self.now, on_problem=self.problems.append, limits=limits
        )


@dataclass(frozen=True, slots=True)
class SnapshotHandle:
    """The data by which a worker finds an engine. Tasks carry this instead of an engine.

    Parameters
    ----------
    name
        The prefix of the names of its snapshots.
    package
        The version of this package that saved it.
    limits
        The resource limits of one document and one evaluation.
    """

    name: str
    package: str
    limits: Limits = DEFAULT_LIMITS

    def opened(self, now: datetime) -> Worker:
        """Return the worker's state with the engine that was in use at `now`; set its time to it.

        Raises
        ------
        SparkError
            If the worker has another version of this package, or there is no snapshot.
        SavedError
            If the snapshot is damaged.
        """
        from pyspark import SparkFiles

        if (own := version("graphmatch")) != self.package:
            what = f"the worker has graphmatch {own}, and the driver {self.package}"
            raise SparkError(what, "worker", "Install one version everywhere.")
        root = Path(SparkFiles.getRootDirectory())
        # A stream of Spark Connect without a shuffle gets the parent of its session's folder.
        found = list(root.glob(f"{self.name}@*")) or root.glob(f"*/{self.name}@*")
        markers = {int(path.name.rpartition("@")[2]): path for path in found}
        if not markers:
            raise SparkError(f"there is no snapshot in {root}", "worker", "Start Spark again.")
        at = _micros(now)
        stamp = max((stamp for stamp in markers if stamp <= at), default=min(markers))
        marker = markers[stamp]
        file = marker.with_name(marker.read_text(encoding="utf-8"))
        worker = open_worker(str(file), stamp, self.limits)
        worker.now = now
        return worker


@lru_cache(maxsize=_OPENED)
def open_worker(path: str, stamp: int, limits: Limits) -> Worker:
    """Open a snapshot and cache the worker's state, the only state that outlives a task.

    Spark's workers collect garbage after each task. An engine's objects are never garbage, so they
    are excluded.
    """
    worker = Worker(Path(path), stamp, limits)
    gc.freeze()
    return worker


def ship(
    spark: SparkSession, engine: Engine | Path, before: SnapshotHandle | None = None
) -> SnapshotHandle:
    """Save an engine as a snapshot, and make Spark ship it to its workers.

    Parameters
    ----------
    engine
        An engine, or the snapshot of one.
    before
        The snapshots that it replaces, from the next query or micro-batch on; on Spark Connect, in
        later transforms.

    Raises
    ------
    SparkError
        If it has operators, which are functions of this process.
    SavedError
        If it cannot be saved, or the snapshot is damaged or missing.
    """
    if isinstance(engine, Path):
        engine = Engine.open(engine)
    if engine.operators:
        what = f"operators do not run on Spark: {', '.join(one.iri for one in engine.operators)}"
        remedy = "Match without Spark, or leave out the operators and what calls them."
        raise SparkError(what, "engine", remedy)
    of_connect = is_connect(spark)  # streams keep the files that the session had at their start
    known = None if of_connect or before is None else before.name
    name = known or f"graphmatch-{uuid4().hex}"
    if of_connect:
        with TemporaryDirectory(prefix="graphmatch-") as folder:
            _add(partial(spark.addArtifacts, file=True), engine, name, Path(folder))
    else:
        from pyspark import SparkFiles

        folder_ = Path(SparkFiles.getRootDirectory(), "saved")  # removed when Spark stops
        folder_.mkdir(exist_ok=True)
        _add(spark.sparkContext.addFile, engine, name, folder_)
    return SnapshotHandle(name, version("graphmatch"), engine.limits)


def _add(add: Callable[[str], object], engine: Engine, name: str, folder: Path) -> None:
    """Ship a snapshot; then, because that takes a while, a small file with its start time."""
    path = folder / f"{name}-{uuid4().hex}"
    engine.save(path)
    add(str(path))
    marker = folder / _marker(name, _micros(utc_now()))
    marker.write_text(path.name, encoding="utf-8")
    add(str(marker))


def is_connect(session: Any) -> bool:
    """Return whether a session is one of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def _marker(name: str, stamp: int) -> str:
    return f"{name}@{stamp:017d}"


def _micros(time: datetime) -> int:
    return int(time.timestamp() * 1e6)
