"""An engine on its way to the workers: saved once, shipped as a file, opened once a worker.

What is shipped is a snapshot as `Engine.save` writes it. Where Spark runs in this process it stays
where it is; on a cluster Spark brings it to each machine once.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
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
    """What a worker keeps from one task to the next: an engine.

    Parameters
    ----------
    path
        The snapshot.
    limits
        Those of the engine.
    """

    def __init__(self, path: Path, limits: Limits) -> None:
        self.now = utc_now()
        """The time of ``NOW()``: each task says which."""
        self.problems: list[Problem] = []
        """What was reported and not yet taken."""
        self.engine = Engine.open(
            path, clock=lambda: self.now, on_problem=self.problems.append, limits=limits
        )

    def taken(self) -> list[Problem]:
        """Return what was reported since it was last asked."""
        taken, self.problems[:] = self.problems[:], []
        return taken


@dataclass(frozen=True, slots=True)
class Shipped:
    """How a worker finds an engine.

    Parameters
    ----------
    path
        Where it was saved.
    name
        What it is called among Spark's files; ``None`` where it is read from its place.
    version
        Of this package, where it was saved.
    now
        The time of ``NOW()`` and of mapping functions: one for all workers.
    limits
        What one document and one evaluation may cost.
    """

    path: str
    name: str | None
    version: str
    now: datetime
    limits: Limits = DEFAULT_LIMITS

    def opened(self) -> Worker:
        """Return the worker's engine; it is opened once.

        Raises
        ------
        SparkError
            When the worker has another version of this package.
        SavedError
            When the snapshot is damaged, or not there.
        """
        if (own := version("graphmatch")) != self.version:
            what = f"the worker has graphmatch {own}, and the driver {self.version}"
            raise SparkError(what, "worker", "Install one version everywhere.")
        worker = _opened(self._found(), self.limits)
        worker.now = self.now
        return worker

    def _found(self) -> str:
        if self.name is None:
            return self.path
        from pyspark import SparkFiles

        return str(SparkFiles.get(self.name))


@lru_cache(maxsize=_OPENED)
def _opened(path: str, limits: Limits) -> Worker:
    """Return what a worker keeps: here and nowhere else something outlives a task.

    Spark's workers collect garbage after each task: what an engine consists of is none, and need
    not be looked at then.
    """
    worker = Worker(Path(path), limits)
    gc.freeze()
    return worker


def ship(spark: SparkSession, engine: Engine, now: datetime) -> Shipped:
    """Save an engine for the workers, and have Spark bring it to them.

    Parameters
    ----------
    now
        The time of ``NOW()`` and of mapping functions: one for all workers.

    Raises
    ------
    SparkError
        When it has operators, which are functions of this process.
    SavedError
        When it cannot be saved where Spark has its files, which go when it is stopped.
    """
    if engine.operators:
        what = f"operators do not run on Spark: {', '.join(one.iri for one in engine.operators)}"
        remedy = "Match without Spark, or leave out the operators and what calls them."
        raise SparkError(what, "engine", remedy)
    from pyspark import SparkFiles

    path = Path(SparkFiles.getRootDirectory()) / f"graphmatch-{uuid4().hex}"
    engine.save(path)
    return replace(bring(spark, path, now), limits=engine.limits)


def bring(spark: SparkSession, path: Path, now: datetime) -> Shipped:
    """Have Spark bring a snapshot to the workers."""
    own = version("graphmatch")
    if str(spark.sparkContext.master).partition("[")[0] == "local":
        return Shipped(str(path), None, own, now)
    spark.sparkContext.addFile(str(path))
    return Shipped(str(path), path.name, own, now)
