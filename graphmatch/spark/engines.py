"""Which engine a stream's batches are matched by.

Subscriptions and ontology may change while a stream runs: before each batch their files are looked
at, and what has changed is read again. A batch that is run again, because something was killed,
has to be matched as it was before; so engines are saved under digests of all that they were made
of, and before a batch is matched a record says by which of them. Old ones are removed.

A broken ontology leaves the one before in force, and broken subscriptions are left out; if none is
left, those before stay. What is wrong is in the record, too, so that a batch that is run again says
it again.

Cost: a look at the files' sizes and times a batch. What is read again is read whole.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from graphmatch.engine import Engine
from graphmatch.spark.engine_files import EngineFiles
from graphmatch.spark.rows import detail_of, problem_of
from graphmatch.spark.shipping import Shipped, bring
from graphmatch.subscribing import subscribe_files
from semantic.clock import Clock, utc_now
from semantic.errors import InputError, OnProblem, OntologyError, Place, Problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SNAPSHOT = ".snapshot"
_STAYS = "The one before stays in force."


@dataclass(frozen=True, slots=True)
class Record:
    """By what a batch is matched.

    Parameters
    ----------
    engine
        The digest that it is saved under.
    wanted
        The same, had nothing been broken.
    known
        The digest of the ontology that is in force.
    now
        The time of ``NOW()``, as ISO 8601 writes it.
    refused
        What is wrong with the files, as `graphmatch.spark.rows.detail_of` says it.
    fresh
        Whether this is the first batch since it is wrong.
    """

    engine: str
    wanted: str
    known: str
    now: str = ""
    refused: list[str] = field(default_factory=list)
    fresh: bool = False

    def problems(self) -> list[Problem]:
        """Return what is wrong with the files."""
        return [problem_of(detail) for detail in self.refused]


class Engines:
    """The engines of one stream.

    Parameters
    ----------
    folder
        Where they are saved: it belongs to the stream.
    files
        What they are made of.
    on_problem
        Called with what is wrong with the files, when they were read.
    clock
        Says what ``NOW()`` is, once a batch.

    Raises
    ------
    GraphMatchError
        When there was no engine before, and none can be made.
    """

    def __init__(
        self, folder: Path, files: EngineFiles, on_problem: OnProblem, clock: Clock = utc_now
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._files, self._clock = folder, files, clock
        self._on_problem = on_problem
        self._signature: list[tuple[str, int, int]] = []
        self._brought: Shipped | None = None
        records = self._records()
        self._held = self._read(records[-1]) if records else None
        if self._held is not None:
            self._held = replace(self._held, fresh=False)
        for left in folder.glob(".*"):  # by one that was killed
            left.unlink()
        if not self._look():
            self._tell()

    def of_batch(self, batch: int) -> Record:
        """Return what a batch is matched by; it is on record when this returns."""
        if self._name(batch).exists():
            return self._read(batch)
        self._look()
        held = self._holding()
        record = replace(held, now=self._clock().isoformat())
        made = self._folder / f".{uuid4().hex}"
        made.write_text(json.dumps(asdict(record)), encoding="utf-8")
        made.rename(self._name(batch))
        self._held = replace(held, fresh=False)
        self._clean()
        return record

    def shipped(self, spark: SparkSession, record: Record) -> Shipped:
        """Have Spark bring a record's engine to the workers."""
        path, now = self._path(record.engine), datetime.fromisoformat(record.now)
        if self._brought is None or self._brought.path != str(path):
            self._brought = bring(spark, path, now)
        return replace(self._brought, now=now)

    # -- what has changed -------------------------------------------------------------------

    def _holding(self) -> Record:
        assert self._held is not None, "there is one from the start"
        return self._held

    def _look(self) -> bool:
        """Make another engine, if the files are others than they were; return whether it did."""
        signature = self._files.signature()
        if signature == self._signature and self._held is not None:
            return False
        try:
            known, asked = self._files.known(), self._files.asked()
        except OSError:
            known, asked = uuid4().hex, uuid4().hex  # reading them says what is wrong
        self._signature = signature
        if self._held is not None and self._held.wanted == _named(known, asked):
            return False
        self._held = self._made(known, asked)
        self._tell()
        return True

    def _tell(self) -> None:
        for problem in self._holding().problems():
            self._on_problem(problem)

    def _made(self, known: str, asked: str) -> Record:
        """Make an engine of the files, as far as they can be read."""
        before, told = self._held, list[Problem]()
        wanted = _named(known, asked)
        try:
            ontology = self._files.load(self._files.ontology, told.append)
        except OntologyError as error:
            if before is None:
                raise
            told.append(replace(error.problem, remedy=f"{error.problem.remedy} {_STAYS}"))
            known, ontology = before.known, Engine.open(self._path(before.engine)).ontology
        engine = Engine(
            ontology,
            entailment=self._files.entailment,
            annotator=self._files.annotator,
            on_problem=told.append,
        )
        subscribe_files(engine, self._files.subscriptions, told.append)
        if len(engine):
            name = self._saved(engine, known, asked)
        else:
            none = _no_subscription(self._files.subscriptions)
            if before is None:
                for problem in told:
                    self._on_problem(problem)
                raise none
            told.append(replace(none.problem, remedy="Those before stay in force."))
            name, known = before.engine, before.known
        return Record(name, wanted, known, refused=list(map(detail_of, told)), fresh=True)

    def _saved(self, engine: Engine, known: str, asked: str) -> str:
        """Save an engine under its digest; under another one if its files changed meanwhile."""
        name = _named(known, asked)
        if self._files.signature() != self._signature:
            self._signature, name = [], uuid4().hex
        if not self._path(name).exists():
            engine.save(self._path(name))
        return name

    def _path(self, engine: str) -> Path:
        return self._folder / f"{engine}{_SNAPSHOT}"

    # -- records ----------------------------------------------------------------------------

    def _name(self, batch: int) -> Path:
        return self._folder / f"batch-{batch}.json"

    def _records(self) -> list[int]:
        return sorted(
            int(file.stem.removeprefix("batch-")) for file in self._folder.glob("batch-*.json")
        )

    def _read(self, batch: int) -> Record:
        return Record(**json.loads(self._name(batch).read_text(encoding="utf-8")))

    def _clean(self) -> None:
        """Remove what no batch needs: only the last one is ever run again."""
        records = self._records()
        for old in records[:-2]:
            self._name(old).unlink()
        kept = {self._read(one).engine for one in records[-2:]} | {self._holding().engine}
        for path in self._folder.glob(f"*{_SNAPSHOT}"):
            if path.stem not in kept:
                path.unlink()


def _no_subscription(paths: Sequence[Path]) -> InputError:
    what = "there is no subscription to match"
    where = Place(", ".join(map(str, paths)) or "--subscriptions")
    return InputError(Problem(what, where, "Give some with --subscriptions."))


def _named(known: str, asked: str) -> str:
    return blake2b(f"{known} {asked}".encode(), digest_size=16).hexdigest()
