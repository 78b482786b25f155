"""``graphmatch bench spark``, its second half: patterns that span one big graph.

The graph is publications of ``graph`` put together, all of them different; the patterns are 100 of
its subscriptions with 4 edges (of a graph below 4,500 triples, fewer), of which about half are cut
out of the graph. `joins` is `graphmatch.spark.match_graph`; `motifs` is GraphFrames, one pattern
after the other, where its Java side is there, and of the first patterns only, since each costs
seconds; `pyoxigraph` holds the graph in a store in this process, and is asked one query after the
other. Building is what is done before the first question: stage 1, edges and vertices, filling the
store. Each graph is measured in a process of its own (`graphmatch.bench.process`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import pyarrow as pa
from pyoxigraph import QueryBoolean, QuerySolutions, RdfFormat, Store

from graphmatch.bench.process import Row
from graphmatch.bench.workloads.graph import GraphParameters, GraphWorkload
from graphmatch.bench.workloads.workload import Size
from graphmatch.spark.frames.library import frames_jars
from graphmatch.spark.frames.motifs import match_motif
from graphmatch.spark.graph.plan import plan_graph
from graphmatch.spark.java import SparkError
from graphmatch.spark.start import session
from graphmatch.subscription import SubscriptionParser
from semantic.terms import Triple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PATTERNS, EDGES = 100, 4
MOTIFS = 3
"""So many patterns are looked for as motifs."""
_TRIPLES = 90
"""Of a publication."""
_PLACES = ["subject", "predicate", "object"]
_SETTINGS = {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "8"}


def measure(size: str, seed: str) -> Row:
    """Measure each engine over one graph, in this process.

    Parameters
    ----------
    size
        About how many triples the graph has.
    seed
        What is generated.

    Returns
    -------
    dict
        ``rows``, one for each engine; ``left_out``, why GraphFrames is not there, or ``None``.
    """
    triples, queries = generated(int(size), int(seed))
    about = {
        "workload": "one big graph",
        "subscriptions": len(queries),
        "triples": len(triples),
        "parameters": {"seed": int(seed), "edges": EDGES},
    }
    rows, left_out = [_in_a_store(triples, queries)], None
    spark = session(master="local[2]", jars=frames_jars(os.environ), settings=_SETTINGS)
    try:
        schema = "subject string, predicate string, object string"
        columns = [[str(term) for term in part] for part in zip(*triples, strict=True)]
        texts = pa.table([pa.array(column) for column in columns], names=_PLACES)
        frame = spark.createDataFrame(texts, schema).persist()
        frame.count()
        rows.append(_by_joins(frame, queries))
        try:
            rows.append(_as_motifs(frame, queries))
        except SparkError as error:
            left_out = str(error)
    finally:
        spark.stop()
    return {"rows": [{**about, **row} for row in rows], "left_out": left_out}


def generated(size: int, seed: int) -> tuple[list[Triple], list[str]]:
    """Return a graph's triples, each once, and patterns.

    Examples
    --------
    >>> triples, queries = generated(10_000, 1)
    >>> len(triples) > 9900, len(queries)
    (True, 100)
    """
    publications = max(size // _TRIPLES, 1)
    wanted = Size(2 * publications, publications, seed)  # one is cut out of each publication
    workload = GraphWorkload(wanted, GraphParameters(edges=EDGES, matches=1))
    graphs = (workload.publication(number).triples for number in range(publications))
    triples = dict.fromkeys(triple for graph in graphs for triple in graph)
    return list(triples), workload.texts()[:PATTERNS]


def _in_a_store(triples: Sequence[Triple], queries: Sequence[str]) -> Row:
    started = perf_counter()
    store = Store()
    lines = "".join(f"{s} {p} {o} .\n" for s, p, o in triples)
    store.bulk_load(lines.encode(), format=RdfFormat.N_TRIPLES)
    built = perf_counter()
    count = sum(map(_count, (store.query(query) for query in queries)))
    return _row("pyoxigraph", built - started, perf_counter() - built, len(queries), count)


def _count(found: object) -> int:
    if isinstance(found, QueryBoolean):
        return int(bool(found))
    assert isinstance(found, QuerySolutions)
    return sum(1 for _ in found)


def _by_joins(frame: DataFrame, queries: Sequence[str]) -> Row:
    started = perf_counter()
    rows = [(f"s{number}", query) for number, query in enumerate(queries)]
    with plan_graph(frame, rows) as plan:
        built = perf_counter()
        count = plan.answers().count()
        return _row("joins", built - started, perf_counter() - built, len(queries), count)


def _as_motifs(frame: DataFrame, queries: Sequence[str]) -> Row:
    parser = SubscriptionParser()
    started = perf_counter()
    count = 0
    for number, query in enumerate(queries[:MOTIFS]):
        count += match_motif(frame, parser.parse(f"s{number}", query)).count()
    return _row("motifs", 0.0, perf_counter() - started, MOTIFS, count)


def _row(engine: str, built: float, seconds: float, patterns: int, solutions: int) -> Row:
    return {
        "engine": engine,
        "patterns": patterns,
        "build_seconds": built,
        "seconds": seconds,
        "milliseconds_per_pattern": seconds / patterns * 1000,
        "solutions": solutions,
    }
