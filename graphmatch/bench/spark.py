"""``graphmatch bench spark``: publications per second in bulk, compared with the engine alone.

The subscriptions and publications are those of ``graph`` (`graphmatch.bench.workloads.graph`), each
subscription with its own shape. They are Parquet files: one with a row per triple, publication by
publication, and one with a row per publication and its triples as text. `graphmatch` matches the
Arrow table of triples with `match_table`. `spark` reads the files and matches them with 1 and 2
cores. All use the same engine and return ids, or ids and solutions. Each is rehearsed once. Times
are medians.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphmatch.bench.adapters import take_in
from graphmatch.bench.process import Row
from graphmatch.bench.runner import MICROS
from graphmatch.bench.workloads import Size, ids
from graphmatch.bench.workloads.graph import GraphWorkload
from graphmatch.engine import Engine
from graphmatch.spark import matches, session
from semantic.tables import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = (1, 2)
RUNS = 3
MATCHES = 10
_GROUP = 500
"""The number of publications in a row group."""
_TEXTS = ("publication", "triples")


def measure(request: str) -> Row:
    """Measure a request of `graphmatch.bench.runner.asked`."""
    _, _, size, _ = json.loads(request)
    rows = list(_measured(*size))
    if len({row["matches_per_event"] for row in rows}) == 1:
        return {"rows": [{**row, "agrees": True} for row in rows]}
    counted = ", ".join(f"{row['engine']} {row['matches_per_event']:g}" for row in rows)
    return {"rows": [{**row, "agrees": False, "disagreement": counted} for row in rows]}


def _measured(size: int, publications: int, seed: int) -> Iterator[Row]:
    workload = GraphWorkload(Size(size, publications, seed), matches=MATCHES, shapes=0)
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
        rows, texts = Path(folder) / "triples.parquet", Path(folder) / "texts.parquet"
        _write(workload, publications, rows, texts)
        for solutions in (False, True):
            local = partial(_locally, engine, pq.read_table(rows), solutions=solutions)
            name = f"graphmatch:{_form('triples', solutions)}"
            yield {**about, **_row(name, 1, publications, local)}
        for cores in CORES:
            spark = session(master=f"local[{cores}]", settings={"spark.driver.memory": "2g"})
            try:
                for path in (rows, texts):
                    for solutions in (False, True):
                        bulk = partial(_bulk, spark, engine, path, solutions=solutions)
                        name = f"spark:{_form(path.stem, solutions)}"
                        yield {**about, **_row(name, cores, publications, bulk)}
            finally:
                spark.stop()


def _form(form: str, solutions: bool) -> str:
    return f"{form}+solutions" if solutions else form


def _bulk(spark: SparkSession, engine: Engine, path: Path, *, solutions: bool) -> int:
    from pyspark.sql import Observation

    did = Observation("bench")
    triples = "triples" if path.stem == "texts" else None
    matching = matches(engine, triples=triples, solutions=solutions, metrics=did)
    found = spark.read.parquet(str(path)).transform(matching)
    found.write.format("noop").mode("overwrite").save()
    return int(did.get["matches"])


def _locally(engine: Engine, table: pa.Table, *, solutions: bool) -> int:
    count = 0
    for report in engine.match_table(table):
        count += len(report.subscriptions)
        if solutions:
            for match in report:
                len(match.solutions)
    return count


def _write(workload: GraphWorkload, publications: int, rows: Path, texts: Path) -> None:
    schemas = [pa.schema([(name, pa.string()) for name in names]) for names in (COLUMNS, _TEXTS)]
    with pq.ParquetWriter(rows, schemas[0]) as of_rows, pq.ParquetWriter(texts, schemas[1]) as of:
        for begin in range(0, publications, _GROUP):
            triples: list[tuple[str, ...]] = []
            whole: list[tuple[str, str]] = []
            for number in range(begin, min(begin + _GROUP, publications)):
                for publication in workload.publications(number):
                    said = [tuple(map(str, triple)) for triple in publication.triples]
                    triples += ((publication.id, *terms) for terms in said)
                    lines = "".join(f"{' '.join(terms)} .\n" for terms in said)
                    whole.append((publication.id, lines))
            for writer, schema, made in (
                (of_rows, schemas[0], triples),
                (of, schemas[1], whole),
            ):
                columns: list[Any] = [list(column) for column in zip(*made, strict=True)]
                writer.write_table(pa.table(columns, schema=schema))


def _row(engine: str, cores: int, publications: int, match: Callable[[], int]) -> Row:
    times = []
    for _ in range(RUNS + 1):
        started = perf_counter()
        count = match()
        times.append(perf_counter() - started)
    seconds = median(times[1:])
    return {
        "engine": engine,
        "cores": cores,
        "publications_per_second": publications / seconds,
        MICROS: seconds / publications * 1e6,
        "matches_per_event": count / publications,
        "counters": {"publications": publications, "matches": count},
    }
