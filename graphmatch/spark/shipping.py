"""An engine on its way to the workers: saved once, shipped as a file, opened once a worker.

What is shipped is a folder: the subscriptions as `Engine.save` writes them, whose arrays a worker
maps into memory instead of reading them, and what the engine knows. Where Spark runs in this
process the folder is where it is; on a cluster it is one archive, which Spark unpacks once a
machine.
"""

from __future__ import annotations

import gc
import pickle
import tarfile
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from graphmatch.engine import Engine
from graphmatch.spark.java import SparkError
from semantic.errors import Problem
from semantic.ontology.ontology import Ontology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SUBSCRIPTIONS, _KNOWLEDGE = "subscriptions", "knowledge"
_OPENED = 2
"""So many engines stay open in a worker: while one is replaced there are two."""


class Worker:
    """What a worker keeps from one task to the next: an engine.

    Parameters
    ----------
    folder
        Where the engine was shipped to.
    """

    def __init__(self, folder: Path) -> None:
        with (folder / _KNOWLEDGE).open("rb") as stream:
            ontology, entailment, annotator, self.now = pickle.load(stream)  # noqa: S301 -- ours
        self.problems: list[Problem] = []
        """What was reported and not yet taken."""
        self.engine = Engine(
            ontology,
            entailment=entailment,
            annotator=annotator,
            clock=lambda: self.now,
            on_problem=self.problems.append,
        )
        self.engine.open(folder / _SUBSCRIPTIONS)

    def taken(self) -> list[Problem]:
        """Return what was reported since it was last asked."""
        taken, self.problems[:] = self.problems[:], []
        return taken


@dataclass(frozen=True, slots=True)
class Shipped:
    """How a worker finds an engine.

    Parameters
    ----------
    folder
        Where it was saved.
    archive
        What it is called among Spark's files; ``None`` where the folder itself is read.
    version
        Of this package, where it was saved.
    now
        The time of ``NOW()``, where it is not the one that was saved.
    """

    folder: str
    archive: str | None
    version: str
    now: datetime | None = None

    def opened(self) -> Worker:
        """Return the worker's engine; it is opened once.

        Raises
        ------
        SparkError
            When the worker has another version of this package.
        """
        if (own := version("graphmatch")) != self.version:
            what = f"the worker has graphmatch {own}, and the driver {self.version}"
            raise SparkError(what, "worker", "Install one version everywhere.")
        worker = _opened(self._found())
        worker.now = self.now or worker.now
        return worker

    def _found(self) -> str:
        if self.archive is None:
            return self.folder
        from pyspark import SparkFiles

        return str(SparkFiles.get(self.archive))


@lru_cache(maxsize=_OPENED)
def _opened(folder: str) -> Worker:
    """Return what a worker keeps: here and nowhere else something outlives a task.

    Spark's workers collect garbage after each task: what an engine consists of is none, and need
    not be looked at then.
    """
    worker = Worker(Path(folder))
    gc.freeze()
    return worker


def ship(spark: SparkSession, engine: Engine, now: datetime, folder: Path | None = None) -> Shipped:
    """Save an engine for the workers, and have Spark bring it to them.

    Parameters
    ----------
    now
        The time of ``NOW()`` and of mapping functions: one for all workers.
    folder
        Where it is saved; by default a folder that goes when Spark is stopped.

    Raises
    ------
    SavedError
        When the folder cannot be written.
    """
    if folder is None:
        from pyspark import SparkFiles

        folder = Path(SparkFiles.getRootDirectory()) / f"graphmatch-{uuid4().hex}"
    store(engine, now, folder)
    return bring(spark, folder)


def store(engine: Engine, now: datetime, folder: Path) -> None:
    """Save an engine to a folder, with what it knows.

    Raises
    ------
    SavedError
        When the folder cannot be written.
    """
    engine.save(folder / _SUBSCRIPTIONS)
    knowledge = (engine.ontology, engine.entailment, engine.annotator, now)
    (folder / _KNOWLEDGE).write_bytes(pickle.dumps(knowledge))


def stored_ontology(folder: Path) -> Ontology:
    """Return the ontology of an engine that was saved to a folder."""
    with (folder / _KNOWLEDGE).open("rb") as stream:
        ontology: Ontology = pickle.load(stream)[0]  # noqa: S301 -- ours
    return ontology


def bring(spark: SparkSession, folder: Path) -> Shipped:
    """Have Spark bring a folder that an engine was saved to to the workers."""
    own = version("graphmatch")
    if str(spark.sparkContext.master).partition("[")[0] == "local":
        return Shipped(str(folder), None, own)
    name = f"graphmatch-{uuid4().hex}"
    archive = folder.with_name(f"{name}.tar")
    with tarfile.open(archive, "w") as tar:
        for inside in sorted(folder.iterdir()):  # Spark unpacks no entry for the folder itself
            tar.add(inside, inside.name)
    spark.sparkContext.addArchive(f"{archive}#{name}")
    return Shipped(str(folder), name, own)
