"""One batch of a stream after the other: matched by the engine on record, and written by number."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING

from pyspark import StorageLevel
from pyspark.errors import PySparkException

from graphmatch.spark.arriving import MatchArrived
from graphmatch.spark.batch import Matched, explained
from graphmatch.spark.engines import Engines
from graphmatch.spark.java import SparkError
from graphmatch.spark.output import MATCHES, REFUSED, Output
from graphmatch.spark.rows import COUNTS, DROPPED, PROBLEM, SQL, counted
from graphmatch.spark.units import How
from semantic.errors import GraphMatchError, OnProblem, Problem, Severity

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ERROR = re.compile(r"^(?!pyspark|org\.|java\.)[\w.]+(?:Error|Exception): .+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one batch did.

    Parameters
    ----------
    number
        Its place in the stream, which its folders are called by.
    publications, matches, refused
        How many were matched, how often, and how much was passed over.
    duplicates, late
        How many publications were dropped: they came before, or too late to tell.
    """

    number: int
    publications: int = 0
    matches: int = 0
    refused: int = 0
    duplicates: int = 0
    late: int = 0


class StoppedError(Exception):
    """A batch was not begun, for the stream is to stop."""


class Batches:
    """Does one batch after the other."""

    def __init__(self, how: How, engines: Engines, output: Output, on_problem: OnProblem) -> None:
        self._how, self._engines, self._output = how, engines, output
        self._on_problem = on_problem
        self.done: deque[Batch] = deque()
        self.error: GraphMatchError | None = None
        self.closed = Event()

    def __call__(self, arrived: DataFrame, number: int) -> None:
        """Do a batch, or do it again."""
        if self.closed.is_set():
            raise StoppedError
        try:
            with worded(), explained():
                self.done.append(self._run(arrived, number))
        except GraphMatchError as error:
            self.error = error
            raise

    def close(self) -> None:
        """Leave the folders to others."""
        self._output.close()

    def _run(self, arrived: DataFrame, number: int) -> Batch:
        record = self._engines.of_batch(number)
        engine = self._engines.shipped(arrived.sparkSession, record)
        rows = arrived.mapInArrow(MatchArrived(self._how, engine), SQL)
        matched = Matched([rows.persist(StorageLevel.MEMORY_AND_DISK)])
        try:
            return self._written(matched, number, record.problems() if record.fresh else [])
        finally:
            matched.close()

    def _written(self, matched: Matched, number: int, problems: list[Problem]) -> Batch:
        said = matched.said
        told = said.where(said["kind"].isin(COUNTS, DROPPED)).select("kind", "part", "detail")
        rows = told.collect()
        counts = counted(row["detail"] for row in rows if row["kind"] == COUNTS)
        dropped = sum(row["part"] for row in rows if row["kind"] == DROPPED)
        self._output.write(number, MATCHES, matched.matches)
        refused = [problem for problem in problems if problem.severity is Severity.REFUSED]
        if refused or counts.refused:
            own = matched.refused.sparkSession.createDataFrame(list(map(_row, refused)), PROBLEM)
            self._output.write(number, REFUSED, matched.refused.unionByName(own))
        else:
            self._output.forget(number, REFUSED)
        if counts.refused or counts.warnings:
            for problem in matched.told():
                self._on_problem(problem)
        return Batch(
            number, counts.publications, counts.matches, counts.refused + len(refused), dropped
        )


def _row(problem: Problem) -> tuple[str | int | None, ...]:
    where = problem.where
    return (where.source, where.line, where.column, where.item, problem.what, problem.remedy)


@contextmanager
def worded() -> Iterator[None]:
    """Say in our words why a batch failed."""
    try:
        yield
    except PySparkException as error:
        raise stopped(reason(error)) from error
    except OSError as error:
        raise stopped(f"{error.filename}: {error.strerror or error}") from error


def stopped(why: str) -> SparkError:
    """Return the error of a stream that cannot go on."""
    remedy = "Mend that, and start it again: it goes on where it was."
    return SparkError(f"the stream stopped: {why}", "spark", remedy)


def reason(error: PySparkException) -> str:
    """Return what a task said last, or what Spark says first."""
    text = str(error)
    said = _ERROR.findall(text)
    return said[-1] if said else next(filter(str.strip, text.splitlines()), "no reason was given")
