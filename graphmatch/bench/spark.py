"""``graphmatch bench spark``: publications a second in bulk, beside the engine on its own.

The subscriptions and publications of ``graph`` (`graphmatch.bench.workloads.graph`), as Parquet,
publication by publication. `graphmatch` reads it in this process, a row group at a time, matches it
by `Engine.match_table`, and makes the rows of matches that Spark's tasks make, too; `spark` matches
the same files with 1 and 2 cores. All are given the same engine, and each is rehearsed once, so
that neither Spark's start nor the opening of the engine is in its time. Times are medians.

Shares are of the time of all cores: reading, matching and writing are what tasks count, and
shipping is the rest: Spark's own work, and the way of rows to Python and back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphmatch.bench.process import Row
from graphmatch.bench.tables import SPARK, table_of
from graphmatch.bench.workloads.graph import GraphParameters, GraphWorkload
from graphmatch.bench.workloads.workload import Size
from graphmatch.command.console import CommandConsole
from graphmatch.engine import Engine
from graphmatch.spark.batch import match_files
from graphmatch.spark.rows import Counts, Rows
from graphmatch.spark.shipping import Shipped, ship
from graphmatch.spark.start import session
from semantic.clock import utc_now
from semantic.tables import COLUMNS, publications_of_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = (1, 2)
RUNS = 3
PUBLICATIONS = 20_000
"""So many there are by default: some seconds of work."""
MATCHES = 10
_GROUP = 90 * 500
"""Rows of a row group: 500 publications."""
_SETTINGS = {"spark.driver.memory": "1g"}


def run(sizes: Sequence[int], publications: int, seed: int, *, json: bool) -> int:
    """Measure, print tables or one JSON object a line, and return the exit status.

    Parameters
    ----------
    sizes
        Numbers of subscriptions.
    publications
        How many are matched.
    """
    out = CommandConsole()
    agrees = True
    for size in sizes:
        rows = list(_measured(size, publications, seed))
        agrees &= _show(out, rows, json=json)
    return 0 if agrees else 2


def _show(out: CommandConsole, rows: Sequence[Row], *, json: bool) -> bool:
    """Show the rows of one run; return whether all found the same."""
    agrees = len({row["matches_per_event"] for row in rows}) == 1
    if json:
        for row in rows:
            out.write_json({**row, "agrees": agrees})
    else:
        out.print(table_of(rows, SPARK))
    return agrees


def _measured(size: int, publications: int, seed: int) -> Iterator[Row]:
    workload = GraphWorkload(Size(size, publications, seed), GraphParameters(matches=MATCHES))
    engine = Engine()
    started = perf_counter()
    engine.subscribe_many((f"s{number}", text) for number, text in enumerate(workload.texts()))
    built = perf_counter() - started
    about: Row = {
        "workload": "spark",
        "subscriptions": size,
        "events": publications,
        "build_seconds": built,
        "parameters": {"seed": seed, "matches": MATCHES, "triples": 90},
    }
    with TemporaryDirectory(prefix="graphmatch-bench-") as folder:
        path = Path(folder) / "publications.parquet"
        _write(workload, publications, path)
        yield {**about, **_locally(engine, path)}
        for cores in CORES:
            spark = session(master=f"local[{cores}]", settings=_SETTINGS)
            try:
                shipped = ship(spark, engine, utc_now())
                yield {**about, **_on_spark(spark, shipped, path, cores)}
            finally:
                spark.stop()


def _write(workload: GraphWorkload, publications: int, path: Path) -> None:
    schema = pa.schema([(name, pa.string()) for name in COLUMNS])
    with pq.ParquetWriter(path, schema) as writer:
        for begin in range(0, publications, _GROUP // 90):
            some = range(begin, min(begin + _GROUP // 90, publications))
            graphs = np.concatenate([workload.graph(number) for number in some])
            ids = np.repeat(np.array(some), [len(workload.graph(number)) for number in some])
            columns = [pa.array([f"urn:e:{number}" for number in ids.tolist()])]
            for place, form in enumerate(("<urn:n:%d>", "<urn:p:%d>", "<urn:n:%d>")):
                columns.append(pa.array([form % number for number in graphs[:, place].tolist()]))
            writer.write_table(pa.table(columns, schema=schema))


def _locally(engine: Engine, path: Path) -> Row:
    """Measure what one process does without Spark."""
    times = []
    counts = Counts()
    for _ in range(RUNS + 1):
        counts = Counts()
        started = perf_counter()
        with pq.ParquetFile(path, read_dictionary=list(COLUMNS)) as file:
            for group in range(file.metadata.num_row_groups):
                _match(engine, file.read_row_group(group), counts)
        times.append(perf_counter() - started)
    return _row("graphmatch", 1, times[1:], counts)


def _match(engine: Engine, table: pa.Table, counts: Counts) -> None:
    rows = Rows()
    for publication in publications_of_table(table):
        report = engine.match(publication)
        rows.matched(publication, report)
        counts.publications += 1
        counts.matches += len(report)
        for _ in rows.full():
            pass
    for _ in rows.rest(counts):
        pass


def _on_spark(spark: SparkSession, shipped: Shipped, path: Path, cores: int) -> Row:
    times: list[float] = []
    counts = Counts()
    for _ in range(RUNS + 1):
        started = perf_counter()
        matched = match_files([str(path)], shipped, spark=spark)
        counts = matched.counts
        times.append(perf_counter() - started)
        matched.close()
    spent = median(times[1:]) * cores
    shares = {name: getattr(counts, name) / spent for name in ("reading", "matching", "writing")}
    shares["shipping"] = max(0.0, 1 - sum(shares.values()))
    return {**_row("spark", cores, times[1:], counts), **shares}


def _row(engine: str, cores: int, times: Sequence[float], counts: Counts) -> Row:
    seconds = median(times)
    return {
        "engine": engine,
        "cores": cores,
        "publications_per_second": counts.publications / seconds,
        "median_microseconds_per_event": seconds / counts.publications * 1e6,
        "matches_per_event": counts.matches / counts.publications,
        "counters": {"publications": counts.publications, "matches": counts.matches},
    }
