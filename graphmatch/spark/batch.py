"""Publications in bulk: files, or a table of triples, to matches.

Files are read by the tasks that match them (`graphmatch.spark.units`). Which publications are in
several units is found out first, by reading ids only; the others are matched where they are read,
and only parts of those go through Spark, to be put together and matched. A table of triples that
Spark has goes there whole: its rows are made lines of N-Triples, and lines of one publication one
text, before they come to Python, since rows one by one are what costs most on that way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import functions as sql

from graphmatch.engine import Engine
from graphmatch.spark.java import SparkError
from graphmatch.spark.listing import shared_out, units
from graphmatch.spark.rows import (
    COUNTS,
    FRAGMENT,
    PROBLEM,
    REFUSED,
    SQL,
    Counts,
    counted,
    matches_of,
    problem_of,
    problem_row,
    refused_of,
)
from graphmatch.spark.shipping import Shipped, ship
from graphmatch.spark.start import session
from graphmatch.spark.tasks import CENSUS_SQL, Census, MatchFragments, MatchUnits, Work
from graphmatch.spark.units import How, Kind, Unit, ids
from semantic.clock import utc_now
from semantic.errors import InputError, OnProblem, Problem, Severity, warn_problem
from semantic.tables import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KNOWN = 200_000
"""So many ids of publications in parts are told to every task; of more, all are taken for such."""
_HERE = 256 << 20
"""Ids of tables of so many bytes are read by the driver: a job of Spark's takes a second."""
_LINES = 20_000
"""So many lines of one publication are one text, at most."""
_MISSING = re.compile(r"No module named '([\w.]+)'")


@dataclass(frozen=True)
class Matched:
    """What was matched; nothing is computed twice.

    Parameters
    ----------
    rows
        What tasks said (`graphmatch.spark.rows`).
    """

    rows: Sequence[DataFrame]

    @cached_property
    def said(self) -> DataFrame:
        """All rows."""
        first, *others = self.rows
        for other in others:
            first = first.unionByName(other)
        return first

    @property
    def matches(self) -> DataFrame:
        """Rows of publication, subscription, solution, and graph (of CONSTRUCT)."""
        return matches_of(self.said)

    @property
    def refused(self) -> DataFrame:
        """Rows of source, line, column, item, what and remedy: what was passed over."""
        return refused_of(self.said)

    @cached_property
    def counts(self) -> Counts:
        """What was done."""
        with explained():
            rows = self.said.where(self.said["kind"] == COUNTS).select("detail").collect()
        return counted(row["detail"] for row in rows)

    def told(self) -> Iterator[Problem]:
        """Yield what was refused or warned of, by tasks."""
        with explained():
            rows = self.said.where(self.said["kind"] == REFUSED).select("detail")
            for row in rows.toLocalIterator():
                yield problem_of(row["detail"])

    def write(self, output: Path, unread: Iterable[Problem] = ()) -> None:
        """Write ``matches`` and ``refused`` to a folder, as Parquet.

        Parameters
        ----------
        unread
            What was refused before any task ran.

        Raises
        ------
        SparkError
            When the folder cannot be written.
        """
        refused = self.refused
        if before := [problem_row(one) for one in unread if one.severity is Severity.REFUSED]:
            refused = refused.unionByName(refused.sparkSession.createDataFrame(before, PROBLEM))
        address = output.absolute().as_uri()
        with explained():
            self.matches.write.parquet(f"{address}/matches")
            refused.coalesce(1).write.parquet(f"{address}/refused")

    def close(self) -> None:
        """Forget the rows."""
        for rows in self.rows:
            rows.unpersist()


def match_files(
    paths: Iterable[str],
    engine: Engine | Shipped,
    *,
    spark: SparkSession | None = None,
    how: How | None = None,
    on_problem: OnProblem = warn_problem,
) -> Matched:
    """Match the publications of files and folders.

    Parameters
    ----------
    paths
        Names, or addresses that workers reach (``hdfs:``, ``s3:``): Parquet, any syntax of RDF, or
        feeds.
    engine
        The subscriptions, with the ontology; or where they were shipped to.
    spark
        A session that runs; one is started by default.
    how
        How files are read.
    on_problem
        Called with what cannot be read at all; the rest goes on.
    """
    spark, how = session(spark), how or How()
    shipped = _shipped(spark, engine)
    cores = spark.sparkContext.defaultParallelism
    found = units(paths, how, on_problem, cores)
    return match_units(spark, found, how, shipped)


def match_units(spark: SparkSession, found: Sequence[Unit], how: How, engine: Shipped) -> Matched:
    """Match the publications of units."""
    cores = spark.sparkContext.defaultParallelism
    shared = shared_out(found, cores)
    numbers = iter(range(len(found)))
    tasks = [[(next(numbers), unit) for unit in task] for task in shared]
    with explained():
        parted = _in_parts(spark, tasks, how)
        rows = _run(spark, len(tasks), MatchUnits(tasks, how, engine, parted), SQL)
        rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
        if parted is not None and not parted:
            return Matched([rows])
        fragments = rows.where(rows["kind"] == FRAGMENT).select("publication", "part", "lines")
        together = fragments.repartition(2 * cores, "publication")
        return Matched([rows, _matched(together, MatchFragments(how, engine))])


def match_table(
    triples: DataFrame,
    engine: Engine | Shipped,
    *,
    columns: Mapping[str, str] | None = None,
    how: How | None = None,
) -> Matched:
    """Match the publications of a table of triples; rows of one may be anywhere in it.

    Parameters
    ----------
    triples
        Columns publication, subject, predicate, object: an id, and terms as N-Triples has them.
    columns
        What the columns are called, where it is otherwise.
    how
        What limits hold.
    """
    spark, how = session(triples.sparkSession), how or How()
    shipped = _shipped(spark, engine)
    names = [(columns or {}).get(name, name) for name in COLUMNS]
    id, *terms = (sql.col(name).cast("string") for name in names)
    none = sql.lit("")
    line = sql.concat_ws(" ", *(sql.coalesce(term, none) for term in terms), sql.lit(".\n"))
    rows = triples.select(
        sql.coalesce(id, none).alias("publication"),
        line.alias("line"),
        (sql.monotonically_increasing_id() / _LINES).cast("bigint").alias("part"),
    )
    cores = 2 * spark.sparkContext.defaultParallelism
    texts = (
        rows.repartition(cores, "publication")
        .groupBy("publication", "part")
        .agg(sql.concat_ws("", sql.collect_list("line")).cast("binary").alias("lines"))
    )
    with explained():
        return Matched([_matched(texts, MatchFragments(how, shipped))])


def match_publications(
    triples: DataFrame, engine: Engine | Shipped, *, columns: Mapping[str, str] | None = None
) -> DataFrame:
    """Return the matches of a table of triples: publication, subscription, solution, graph.

    What is refused is in `match_table`'s answer.
    """
    return match_table(triples, engine, columns=columns).matches


def _shipped(spark: SparkSession, engine: Engine | Shipped) -> Shipped:
    return ship(spark, engine, utc_now()) if isinstance(engine, Engine) else engine


def _matched(fragments: DataFrame, work: Work) -> DataFrame:
    """Match publications whose parts are in one partition each, one part after the other."""
    in_order = fragments.sortWithinPartitions("publication", "part")
    said = in_order.select("publication", "lines").mapInArrow(work, SQL)
    return said.persist(StorageLevel.MEMORY_AND_DISK)


def _run(spark: SparkSession, tasks: int, work: Work, schema: str) -> DataFrame:
    """Run some tasks, each of which gets its number."""
    return spark.range(0, tasks, 1, max(tasks, 1)).mapInArrow(work, schema)


def _in_parts(
    spark: SparkSession, tasks: Sequence[Sequence[tuple[int, Unit]]], how: How
) -> frozenset[str] | None:
    """Return the ids of publications that are in several units; ``None`` for very many."""
    parted = [unit for task in tasks for _, unit in task if unit.parted]
    if len(parted) < 2:
        return frozenset()
    if all(unit.kind is Kind.TABLE for unit in parted) and _size(parted) <= _HERE:
        return _several(parted, how)
    seen = _run(spark, len(tasks), Census(tasks, how), CENSUS_SQL)
    several = seen.groupBy("publication").count().where("count > 1").select("publication")
    found = several.coalesce(1).limit(_KNOWN + 1).collect()
    return None if len(found) > _KNOWN else frozenset(row["publication"] for row in found)


def _size(units: Iterable[Unit]) -> int:
    return sum(unit.size for unit in units)


def _several(units: Iterable[Unit], how: How) -> frozenset[str] | None:
    """Return the same, by reading ids here: of tables they are a small part, and quickly read."""
    seen, several = set[str](), set[str]()
    for unit in units:
        try:
            own = ids(unit, how)
        except InputError:
            continue  # matching says so
        several |= own & seen
        seen |= own
    return None if len(several) > _KNOWN else frozenset(several)


@contextmanager
def explained() -> Iterator[None]:
    """Say what is to be done about errors of workers.

    Raises
    ------
    SparkError
        For those of which that is known.
    """
    try:
        yield
    except PySparkException as error:
        if missing := _MISSING.search(str(error)):
            what = f"a worker's Python cannot import {missing[1]}"
            remedy = (
                "Install graphmatch[spark] in the workers' Python, or name a Python that has it "
                "in PYSPARK_PYTHON."
            )
            raise SparkError(what, "worker", remedy) from error
        raise
