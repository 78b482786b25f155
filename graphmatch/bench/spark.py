"""``graphmatch bench spark``: publications a second in bulk, beside the engine on its own.

The subscriptions and publications of ``graph`` (`graphmatch.bench.workloads.graph`), as Parquet,
publication by publication. `graphmatch` reads it in this process, a row group at a time, matches
it, and makes the rows of matches that Spark's tasks make, too; `spark` matches the same files with
1 and 2 cores. All are given the same engine, and each is rehearsed once. Times are medians.

Shares are of the time of all cores: reading, matching and writing are what tasks count, and
shipping is the rest: Spark's own work, and the way of rows to Python and back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphmatch.bench.adapters import take_in
from graphmatch.bench.process import Row
from graphmatch.bench.runner import MICROS
from graphmatch.bench.workloads import Size, ids
from graphmatch.bench.workloads.graph import GraphWorkload
from graphmatch.engine import Engine
from graphmatch.spark.batch import match_files
from graphmatch.spark.rows import Counts, Rows
from graphmatch.spark.shipping import ship
from graphmatch.spark.start import session
from semantic.clock import utc_now
from semantic.tables import COLUMNS, publications_of_table

CORES = (1, 2)
RUNS = 3
MATCHES = 10
_GROUP = 500
"""Publications of a row group."""
_SHARES = ("reading", "matching", "writing")


def measure(request: str) -> Row:
    """Measure what `graphmatch.bench.runner.asked` asks for."""
    _, _, size, _ = json.loads(request)
    rows = list(_measured(*size))
    if len({row["matches_per_event"] for row in rows}) == 1:
        return {"rows": [{**row, "agrees": True} for row in rows]}
    counted = ", ".join(f"{row['engine']} {row['matches_per_event']:g}" for row in rows)
    return {"rows": [{**row, "agrees": False, "disagreement": counted} for row in rows]}


def _measured(size: int, publications: int, seed: int) -> Iterator[Row]:
    workload = GraphWorkload(Size(size, publications, seed), matches=MATCHES)
    engine = Engine()
    started = perf_counter()
    take_in(engine, list(zip(ids(size), workload.texts(), strict=True)))
    about: Row = {
        "workload": "spark",
        "subscriptions": size,
        "events": publications,
        "build_seconds": perf_counter() - started,
        "parameters": {"seed": seed, "matches": MATCHES, "triples": 90},
    }
    with TemporaryDirectory(prefix="graphmatch-bench-") as folder:
        path = Path(folder) / "publications.parquet"
        _write(workload, publications, path)
        yield {**about, **_row("graphmatch", 1, partial(_locally, engine, path))}
        for cores in CORES:
            spark = session(master=f"local[{cores}]", settings={"spark.driver.memory": "1g"})
            try:
                shipped = ship(spark, engine, utc_now())
                yield {**about, **_row("spark", cores, partial(_bulk, spark, shipped, path))}
            finally:
                spark.stop()


def _bulk(spark: Any, shipped: Any, path: Path) -> Counts:
    matched = match_files([str(path)], shipped, spark=spark)
    matched.close()
    return matched.counts


def _write(workload: GraphWorkload, publications: int, path: Path) -> None:
    schema = pa.schema([(name, pa.string()) for name in COLUMNS])
    with pq.ParquetWriter(path, schema) as writer:
        for begin in range(0, publications, _GROUP):
            rows = [
                (publication.id, *map(str, triple))
                for number in range(begin, min(begin + _GROUP, publications))
                for publication in workload.publications(number)
                for triple in publication.triples
            ]
            columns = map(list, zip(*rows, strict=True))
            writer.write_table(pa.table(list(columns), schema=schema))


def _locally(engine: Engine, path: Path) -> Counts:
    """Match as a task does, without Spark."""
    counts = Counts()
    with pq.ParquetFile(path, read_dictionary=list(COLUMNS)) as file:
        for group in range(file.metadata.num_row_groups):
            rows = Rows()
            for publication in publications_of_table(file.read_row_group(group)):
                report = engine.match(publication)
                rows.matched(publication, report)
                counts.publications += 1
                counts.matches += len(report)
                for _ in rows.full():
                    pass
            for _ in rows.rest(counts):
                pass
    return counts


def _row(engine: str, cores: int, match: Callable[[], Counts]) -> Row:
    times = []
    for _ in range(RUNS + 1):
        started = perf_counter()
        counts = match()
        times.append(perf_counter() - started)
    seconds = median(times[1:])
    row: Row = {
        "engine": engine,
        "cores": cores,
        "publications_per_second": counts.publications / seconds,
        MICROS: seconds / counts.publications * 1e6,
        "matches_per_event": counts.matches / counts.publications,
        "counters": {"publications": counts.publications, "matches": counts.matches},
    }
    if engine == "spark":
        row |= {share: getattr(counts, share) / seconds / cores for share in _SHARES}
        row["shipping"] = max(0.0, 1 - sum(row[share] for share in _SHARES))
    return row
