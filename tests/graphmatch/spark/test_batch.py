"""Publications in bulk on Spark: the same matches as the local engine's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyoxigraph import NamedNode

from graphmatch import Engine, read_subscriptions
from graphmatch.spark.batch import match_files, match_publications, match_table
from graphmatch.spark.units import How
from semantic import Ontology, Publication, read_publications
from semantic.errors import Problem
from semantic.reading import Cut
from semantic.tables import COLUMNS
from tests.graphmatch.spark.comparing import locally, on_spark, rows_of, shuffled
from tests.graphmatch.spark.instances import Instances
from tests.test_real_feeds import FEEDS
from tests.test_real_feeds import engine as with_dbpedia

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
FILES = [str(ROOT / "data" / name) for name in ("feeds", "publications")]
ONTOLOGY = [ROOT / "ontologies" / name for name in ("news.ttl", "synonyms.csv", "products.ttl")]
CONSTRUCT = "CONSTRUCT { ?x a <urn:Found> . [] a ?c } WHERE { ?x a ?c }"


def unheard(problem: Problem) -> None:
    """Samples have faults on purpose."""


@cache
def samples() -> Engine:
    engine = Engine(Ontology.load(*ONTOLOGY, on_problem=unheard), on_problem=unheard)
    engine.subscribe_many(read_subscriptions(ROOT / "data" / "subscriptions"))
    engine.subscribe("construct", CONSTRUCT)
    return engine


@cache
def small() -> tuple[Engine, tuple[Publication, ...]]:
    """Things of a small ontology, and subscriptions on them."""
    ontology = Ontology([*_tree("A", 40), *_properties(30)])
    made = Instances(ontology)
    engine = Engine(ontology)
    assert engine.subscribe_many(made.subscriptions(200)) == ()
    publications = [made.publication(number) for number in range(150)]
    return engine, (*publications, made.publication(150, 400))


def _tree(name: str, count: int) -> list[tuple[NamedNode, NamedNode, NamedNode]]:
    from semantic.vocabulary import SUBCLASS
    from tests.graphmatch.spark.instances import DBO

    nodes = [NamedNode(f"{DBO}{name}{number}") for number in range(count)]
    return [(nodes[number], SUBCLASS, nodes[number // 3]) for number in range(1, count)]


def _properties(count: int) -> list[tuple[NamedNode, NamedNode, NamedNode]]:
    from semantic.vocabulary import SUBPROPERTY
    from tests.graphmatch.spark.instances import DBO

    nodes = [NamedNode(f"{DBO}p{number}") for number in range(count)]
    return [(nodes[number], SUBPROPERTY, nodes[number // 2]) for number in range(1, count)]


def nquads(path: Path, rows: Sequence[tuple[str, ...]]) -> None:
    path.write_text("".join(f"{s} {p} {o} <{id}> .\n" for id, s, p, o in rows))


def parquet(path: Path, rows: Sequence[tuple[str, ...]], group: int = 700) -> None:
    table = pa.table(dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True)))
    pq.write_table(table, path, row_group_size=group)


def test_files_of_every_kind(spark: SparkSession) -> None:
    said: list[Problem] = []
    matched = match_files(FILES, samples(), spark=spark, on_problem=said.append)
    expected = locally(samples(), read_publications(*FILES, on_problem=unheard))
    assert on_spark(matched.matches) == expected
    assert matched.counts.publications == 53
    assert matched.counts.matches == sum(
        len(samples().match(p)) for p in read_publications(*FILES, on_problem=unheard)
    )
    assert said == []
    matched.close()


@pytest.mark.data
def test_real_feeds(spark: SparkSession) -> None:
    folder = str(Path(FEEDS[0]).parent.absolute())
    engine = with_dbpedia()
    matched = match_files([folder], engine, spark=spark)
    problems: list[Problem] = []
    expected = locally(engine, read_publications(folder, on_problem=problems.append))
    assert on_spark(matched.matches) == expected
    assert sorted(map(str, matched.told())) == sorted(map(str, problems))
    matched.close()


@pytest.mark.parametrize("mixed", [False, True])
def test_lines_in_parts(
    spark: SparkSession, tmp_path: Path, mixed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmatch.spark.listing._SMALLEST", 5000)
    engine, publications = small()
    rows = rows_of(publications)
    rows = shuffled(rows) if mixed else rows
    named = [row for row in rows if not any(text.startswith("_:") for text in row)]
    half = len(named) // 2 + 1  # a blank node of a file is no other file's
    nquads(tmp_path / "a.nq", [*(row for row in rows if row not in named), *named[:half]])
    nquads(tmp_path / "b.nq", named[half:])
    matched = match_files([str(tmp_path)], engine, spark=spark)
    assert on_spark(matched.matches) == locally(engine, publications)
    assert matched.counts.publications == len(publications)
    assert matched.counts.triples == len(rows)
    assert matched.refused.count() == 0
    matched.close()


@pytest.mark.parametrize("mixed", [False, True])
def test_tables_in_parts(
    spark: SparkSession, tmp_path: Path, mixed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmatch.spark.listing._SMALLEST", 5000)
    engine, publications = small()
    rows = rows_of(publications)
    rows = shuffled(rows) if mixed else rows
    half = len(rows) // 2 + 1
    parquet(tmp_path / "a.parquet", rows[:half])
    parquet(tmp_path / "b.parquet", rows[half:])
    (tmp_path / "_SUCCESS").touch()
    matched = match_files([str(tmp_path)], engine, spark=spark)
    assert on_spark(matched.matches) == locally(engine, publications)
    assert matched.counts.publications == len(publications)
    matched.close()


def test_a_table_that_spark_has(spark: SparkSession) -> None:
    engine, publications = small()
    rows = shuffled(rows_of(publications))
    triples = spark.createDataFrame(rows, ["g", "subject", "predicate", "object"])
    matched = match_table(triples.repartition(5), engine, columns={"publication": "g"})
    assert on_spark(matched.matches) == locally(engine, publications)
    assert matched.counts.publications == len(publications)
    matched.close()
    named = triples.withColumnRenamed("g", "publication")
    assert on_spark(match_publications(named, engine)) == locally(engine, publications)


def test_very_many_publications_in_parts_are_all_put_together(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmatch.spark.listing._SMALLEST", 5000)
    monkeypatch.setattr("graphmatch.spark.batch._KNOWN", 3)
    engine, publications = small()
    parquet(tmp_path / "a.parquet", shuffled(rows_of(publications)))
    matched = match_files([str(tmp_path)], engine, spark=spark)
    assert on_spark(matched.matches) == locally(engine, publications)
    matched.close()


def test_what_is_malformed_is_refused_with_its_place(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmatch.spark.listing._SMALLEST", 400)
    engine, publications = small()
    rows = [row for row in rows_of(publications[:10]) if "_:" not in row[1] + row[3]]
    lines = [f"{s} {p} {o} <{id}> .\n" for id, s, p, o in rows]
    lines[7], lines[60] = "no line\n", "<urn:a> <urn:b> .\n"
    lines[9] = "# a comment\n" + lines[9]
    (tmp_path / "a.nq").write_text("".join(lines))
    (tmp_path / "b.ttl").write_text("<urn:a> <urn:b")
    bad = [*rows[:30], ("urn:q", "<urn:a>", '"x"', "<urn:b>"), ("urn:q", "a", "b", "c")]
    parquet(tmp_path / "c.parquet", [*bad, *rows[30:]], group=20)
    (tmp_path / "d.parquet").write_bytes(b"PAR1 no table")
    said: list[Problem] = []
    matched = match_files([str(tmp_path)], engine, spark=spark, on_problem=said.append)
    refused = {
        (Path(row["source"]).name, row["line"], row["item"]) for row in matched.refused.collect()
    }
    assert refused == {
        ("a.nq", 8, None),
        ("a.nq", 62, None),
        ("b.ttl", 1, None),
        ("c.parquet", None, "row 31"),
        ("c.parquet", None, "row 32"),
    }
    assert [Path(problem.where.source).name for problem in said] == ["d.parquet"]
    assert matched.counts.refused == 5
    assert matched.counts.triples == len(set(rows))
    matched.close()


def test_rows_of_a_table_that_are_malformed_are_refused(spark: SparkSession) -> None:
    engine, publications = small()
    rows = [*rows_of(publications[:3]), ("urn:q", "<urn:a>", "b", "<urn:c>")]
    rows += [("urn:q", "<urn:a>", "<urn:b>", None), (None, "<urn:a>", "<urn:b>", "<urn:c>")]
    matched = match_table(spark.createDataFrame(rows, list(COLUMNS)), engine)
    assert on_spark(matched.matches) == locally(engine, publications[:3])
    assert {(row["source"], row["line"]) for row in matched.refused.collect()} == {
        ("urn:q", 1),
        ("urn:q", 2),
        ("<table>", None),
    }
    matched.close()


def test_cuts(spark: SparkSession, tmp_path: Path) -> None:
    engine = Engine()
    engine.subscribe("p", "SELECT * { ?s <urn:p> ?o }")
    (tmp_path / "a.nt").write_text("<urn:a> <urn:p> <urn:b> .\n<urn:c> <urn:p> <urn:d> .\n")
    for cut, ids in ((Cut.AUTO, [str(tmp_path / "a.nt")] * 2), (Cut.SUBJECT, ["urn:a", "urn:c"])):
        matched = match_files([str(tmp_path)], engine, spark=spark, how=How(cut=cut))
        assert sorted(row["publication"] for row in matched.matches.collect()) == ids
        matched.close()


def test_a_column_that_is_missing(spark: SparkSession, tmp_path: Path) -> None:
    engine, publications = small()
    parquet(tmp_path / "a.parquet", rows_of(publications[:2]))
    how = How(columns=("id", "subject", "predicate", "object"))
    matched = match_files([str(tmp_path)], engine, spark=spark, how=how)
    (row,) = matched.refused.collect()
    assert row["what"] == "no column 'id'"
    assert row["remedy"].startswith("It has publication, subject, predicate, object.")
    matched.close()


def test_the_same_run_gives_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    engine = Engine()
    engine.subscribe("all", "SELECT * { ?s ?p ?o }")
    (tmp_path / "a.ttl").write_text("[] <urn:p> [ <urn:q> 1 ], [ <urn:q> 2 ] .")
    (tmp_path / "b.nq").write_text("_:a <urn:p> _:b <urn:g> .\n_:b <urn:p> _:a <urn:g> .\n")
    runs = []
    for _ in range(2):
        matched = match_files([str(tmp_path)], engine, spark=spark)
        runs.append(sorted(map(str, matched.matches.collect())))
        matched.close()
    assert runs[0] == runs[1]
    assert len(runs[0]) == 6


@pytest.mark.long
@pytest.mark.data
def test_twenty_thousand_publications(spark: SparkSession, tmp_path: Path) -> None:
    ontology = with_dbpedia().ontology
    made = Instances(ontology)
    engine = Engine(ontology)
    assert engine.subscribe_many(made.subscriptions(10_000)) == ()
    publications = [made.publication(number) for number in range(20_000)]
    publications[500] = made.publication(500, 250, 1_000_000)
    named = (row for row in rows_of(publications) if "_:" not in row[1] + row[3])
    rows = shuffled(list(named))
    part = len(rows) // 7 + 1
    nquads(tmp_path / "sorted.nq", sorted(rows))
    for name in ("lines", "tables"):
        (tmp_path / name).mkdir()
    for number, begin in enumerate(range(0, len(rows), part)):
        nquads(tmp_path / f"lines/{number}.nq", rows[begin : begin + part])
        parquet(tmp_path / f"tables/{number}.parquet", rows[begin : begin + part], 50_000)
    read = read_publications(str(tmp_path / "sorted.nq"))
    expected = locally(engine, read)
    for name in ("lines", "tables"):
        matched = match_files([str(tmp_path / name)], engine, spark=spark)
        assert matched.counts.publications == len({row[0] for row in rows})
        assert on_spark(matched.matches) == expected
        matched.close()
