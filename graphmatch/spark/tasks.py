"""What tasks do: units, or fragments, or rows of triples, to rows of what is said of them.

Each function here takes what Spark's ``mapInArrow`` gives, and yields what it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from time import process_time

import pyarrow as pa
from pyoxigraph import RdfFormat

from graphmatch.spark.rows import Counts, Rows, problem_of
from graphmatch.spark.shipping import Shipped, Worker
from graphmatch.spark.units import How, Unit, ids, lines_of, publications
from semantic.errors import InputError, Place, Problem, Severity
from semantic.publication import Publication
from semantic.reading import read_rdf

Batches = Iterator[pa.RecordBatch]
_END = b"\n"


class Task:
    """One task at work: its engine, its rows and what it did.

    Parameters
    ----------
    worker
        Where the engine is.
    """

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.rows = Rows()
        self.counts = Counts()
        self._at = process_time()

    def report(self, problem: Problem) -> None:
        """Say what was refused."""
        refused = problem.severity is Severity.REFUSED
        self.counts.refused += refused
        self.counts.warnings += not refused
        self.rows.problem(problem)

    def told(self, detail: str) -> None:
        """Say again what another task said."""
        self.report(problem_of(detail))

    def match(self, publication: Publication) -> None:
        """Match a publication, and say which subscriptions it matches."""
        self.counts.reading += self._lap()
        report = self.worker.engine.match(publication)
        self.counts.matching += self._lap()
        self.rows.matched(publication, report)
        for problem in self.worker.taken():
            self.report(problem)
        self.counts.publications += 1
        self.counts.triples += len(publication.triples)
        self.counts.matches += len(report)
        self.counts.writing += self._lap()

    def ended(self) -> Batches:
        """Yield what is left."""
        self.counts.reading += self._lap()
        yield from self.rows.rest(self.counts)

    def _lap(self) -> float:
        before, self._at = self._at, process_time()
        return self._at - before


@dataclass(frozen=True, slots=True)
class MatchUnits:
    """Matches the publications of units; those that are in several are passed on in parts.

    Parameters
    ----------
    tasks
        By task: its units, each with its number, by which parts are put together.
    how
        How they are read.
    engine
        Where the engine is.
    parted
        The ids of publications that are in several units; ``None`` where all may be.
    """

    tasks: Sequence[Sequence[tuple[int, Unit]]]
    how: How
    engine: Shipped
    parted: frozenset[str] | None

    def __call__(self, batches: Batches) -> Batches:
        """Take numbers of tasks."""
        for number in _numbers(batches):
            task = Task(self.engine.opened())
            for part, unit in self.tasks[number]:
                yield from self._unit(task, part, unit)
            yield from task.ended()

    def _unit(self, task: Task, part: int, unit: Unit) -> Batches:
        try:
            for publication in publications(unit, self.how, task.report):
                if self._is_part(unit, publication):
                    task.rows.fragment(publication.id, part, lines_of(publication))
                else:
                    task.match(publication)
                yield from task.rows.full()
        except InputError as error:
            task.report(error.problem)

    def _is_part(self, unit: Unit, publication: Publication) -> bool:
        if not unit.parted:
            return False
        return self.parted is None or publication.id in self.parted


@dataclass(frozen=True, slots=True)
class MatchFragments:
    """Matches publications whose parts follow each other: rows of id and lines of N-Triples.

    Parameters
    ----------
    how
        What limits hold.
    engine
        Where the engine is.
    """

    how: How
    engine: Shipped

    def __call__(self, batches: Batches) -> Batches:
        """Take rows of ``publication`` and ``lines``, in an order that keeps publications whole."""
        task = Task(self.engine.opened())
        for id, several in groupby(_parts(batches), key=itemgetter(0)):
            self.match(task, id, b"".join(lines for _, lines in several))
            yield from task.rows.full()
        yield from task.ended()

    def match(self, task: Task, id: str, lines: bytes) -> None:
        """Match one publication."""
        limits = self.how.limits
        if not id:
            what = f"rows without the id of a publication: {lines.count(_END)}"
            task.report(Problem(what, Place("<table>"), "Give each publication an id."))
            return
        for publication in read_rdf(
            [lines], RdfFormat.N_TRIPLES, id, on_problem=task.report, limits=limits, names=""
        ):
            task.match(publication)


@dataclass(frozen=True, slots=True)
class Census:
    """Says which publications units have: rows of id and number of unit.

    Parameters
    ----------
    tasks, how
        As `MatchUnits` has them.
    """

    tasks: Sequence[Sequence[tuple[int, Unit]]]
    how: How

    def __call__(self, batches: Batches) -> Batches:
        """Take numbers of tasks."""
        for number in _numbers(batches):
            for part, unit in self.tasks[number]:
                if not unit.parted:
                    continue
                try:
                    found = sorted(ids(unit, self.how))
                except InputError:
                    continue  # matching says so
                yield pa.RecordBatch.from_pydict(
                    {"publication": found, "unit": [part] * len(found)}, schema=CENSUS
                )


_CENSUS: Sequence[tuple[str, pa.DataType]] = (("publication", pa.string()), ("unit", pa.int64()))
CENSUS = pa.schema(_CENSUS)
CENSUS_SQL = "publication string, unit bigint"
Work = Callable[[Batches], Batches]
"""What a task does."""


def _numbers(batches: Batches) -> Iterator[int]:
    for batch in batches:
        yield from map(int, batch.column(0).to_numpy())


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, bytes]]:
    for batch in batches:
        yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
