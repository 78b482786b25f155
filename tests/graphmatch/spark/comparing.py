"""Comparison of Spark with the local engine, and the data for both."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyoxigraph import NamedNode

from graphmatch import Engine, read_subscriptions
from semantic import Ontology, Publication
from semantic.errors import Problem
from semantic.tables import COLUMNS
from semantic.terms import Term, written
from semantic.vocabulary import SUBCLASS, SUBPROPERTY
from tests.graphmatch.spark.instances import DBO, Instances

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Said: TypeAlias = "Counter[tuple[str, str, frozenset[tuple[str, str]] | str]]"
"""Publication, subscription and solution, or the constructed graph; blank nodes have one name."""
Row: TypeAlias = tuple[str, ...]
"""Publication, subject, predicate, object."""

ROOT = Path(__file__).parents[3]
SUBSCRIPTIONS = ROOT / "data" / "subscriptions"
FILES = [str(ROOT / "data" / name) for name in ("feeds", "publications")]
ONTOLOGY = [ROOT / "ontologies" / name for name in ("news.ttl", "synonyms.csv", "products.ttl")]
CONSTRUCT = "CONSTRUCT { ?x a <urn:Found> . [] a ?c } WHERE { ?x a ?c }"

_BLANK = re.compile(r"_:\w+")


def unheard(problem: Problem) -> None:
    """Ignore a problem, because the samples contain some on purpose."""


@cache
def samples() -> Engine:
    """Return an engine with the project's samples."""
    engine = Engine(Ontology.load(*ONTOLOGY, on_problem=unheard), on_problem=unheard)
    engine.subscribe_many(read_subscriptions(SUBSCRIPTIONS))
    engine.subscribe("construct", CONSTRUCT)
    return engine


@cache
def small() -> tuple[Engine, tuple[Publication, ...]]:
    """Return an engine with a small ontology, and publications, one of which is large."""
    below = ((n, n // 3) for n in range(1, 40)), ((n, n // 2) for n in range(1, 30))
    ontology = Ontology(
        [
            (NamedNode(f"{DBO}{name}{one}"), link, NamedNode(f"{DBO}{name}{other}"))
            for name, link, pairs in zip("Ap", (SUBCLASS, SUBPROPERTY), below, strict=True)
            for one, other in pairs
        ]
    )
    made = Instances(ontology)
    engine = Engine(ontology)
    assert engine.subscribe_many(made.subscriptions(200)) == ()
    return engine, (*(made.publication(number) for number in range(40)), made.publication(40, 400))


def asked(**queries: str) -> Engine:
    """Return an engine without an ontology."""
    engine = Engine()
    for id, query in queries.items():
        engine.subscribe(id, query)
    return engine


def plain_text(text: str) -> str:
    return _BLANK.sub("_:", text)


def solution_of(solution: Mapping[str, Term | str]) -> frozenset[tuple[str, str]]:
    texts = ((n, t if isinstance(t, str) else written(t)) for n, t in solution.items())
    return frozenset((name, plain_text(text)) for name, text in texts)


def locally(engine: Engine, publications: Iterable[Publication]) -> Said:
    """Return the local engine's matches."""
    said: Said = Counter()
    for publication in publications:
        for match in engine.match(publication):
            key = publication.id, match.subscription
            if match.graph is not None:
                lines = sorted(plain_text(f"{' '.join(map(written, t))} .\n") for t in match.graph)
                said[*key, "".join(lines)] += 1
            for solution in match.solutions:
                said[*key, solution_of(solution)] += 1
    return said


def on_spark(matches: DataFrame) -> Said:
    """Return Spark's matches, and require that nothing is refused."""
    said: Said = Counter()
    for row in matches.collect():
        assert row["_corrupt"] is None
        answer = row["solution"]
        if answer is None:
            lines = sorted(plain_text(str(row["graph"])).splitlines(keepends=True))
            said[row["publication"], row["subscription"], "".join(lines)] += 1
        else:
            said[row["publication"], row["subscription"], solution_of(answer)] += 1
    return said


def rows_of(publications: Iterable[Publication]) -> list[Row]:
    """Return the triples of publications as rows of strings."""
    return [(p.id, *map(written, triple)) for p in publications for triple in p.triples]


def shuffled(rows: Sequence[Row], seed: int = 1) -> list[Row]:
    """Return rows in a random order."""
    mixed = list(rows)
    Random(seed).shuffle(mixed)
    return mixed


def table(spark: SparkSession, rows: Sequence[Any], columns: str | None = None) -> DataFrame:
    """Return a table; by default one of triples."""
    return spark.createDataFrame(rows, columns or ", ".join(f"{name} string" for name in COLUMNS))


def nquads(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as N-Quads."""
    path.write_text("".join(f"{s} {p} {o} <{id}> .\n" for id, s, p, o in rows))


def parquet(path: Path, rows: Sequence[Row], group: int = 700) -> None:
    """Write rows as Parquet."""
    columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), path, row_group_size=group)
