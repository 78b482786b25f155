"""One big graph has the answers of a store that holds it whole, with all that follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from pyoxigraph import NamedNode

from graphmatch.spark import GraphPlan, explain_graph, match_graph, plan_graph
from graphmatch.spark.graph import joining_here
from graphmatch.spark.graph.probing import Probe
from graphmatch.spark.graph.schema import with_schema
from graphmatch.spark.java import SparkError
from semantic import Ontology, Problem
from semantic.mentions import Mentions
from semantic.terms import Triple
from semantic.vocabulary import SUBCLASS, SUBPROPERTY, TYPE
from tests.graphmatch.spark import generated_graphs as generated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DBPEDIA = Path(__file__).parents[4] / "shared" / "data" / "ontologies" / "dbpedia.owl"
SCHEMA = "subject string, predicate string, object string"
EX = generated.EX
Row = tuple[str, str, str]


def graph(spark: SparkSession, triples: Iterable[Triple]) -> DataFrame:
    rows: list[Row] = [(str(s), str(p), str(o)) for s, p, o in triples]
    return spark.createDataFrame(rows, SCHEMA)


def answers(rows: DataFrame) -> dict[str, generated.Solutions]:
    found: dict[str, generated.Solutions] = {}
    for row in rows.collect():
        found.setdefault(row["subscription"], Counter())[frozenset(row["solution"].items())] += 1
    return found


def agree(
    spark: SparkSession, ontology: Ontology, classes: Sequence[NamedNode], size: int, many: int
) -> GraphPlan:
    random = Random(size)
    triples = generated.graph(size, classes, random)
    writer = generated.Writer(triples, classes, random)
    patterns = [writer.pattern() for _ in range(many)]
    rows = [(str(number), pattern.text) for number, pattern in enumerate(patterns)]
    reference = generated.Reference(ontology.triples, triples)
    wanted = {str(n): a for n, p in enumerate(patterns) if (a := reference.answer(p))}
    assert len(wanted) > many / 2
    with plan_graph(graph(spark, triples), rows, ontology) as plan:
        assert not plan.refused
        assert answers(plan.answers()) == wanted
    return plan


@pytest.mark.parametrize("few", [0, joining_here.FEW])
def test_patterns_over_a_graph(
    spark: SparkSession, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining_here, "FEW", few)
    plan = agree(spark, Ontology(generated.SMALL), generated.CLASSES, 1_500, 40)
    joined = [node for node in plan.steps if node.depth > 1]
    branches = sum(len(node.ends) * (node.depth - 1) for node in plan.steps)
    assert len(joined) < branches  # what shapes have in common is joined once


@pytest.mark.skipif(not DBPEDIA.is_file(), reason="the real ontologies are not here")
@pytest.mark.long
def test_patterns_over_a_large_graph(spark: SparkSession) -> None:
    ontology = Ontology.load(DBPEDIA, on_problem=lambda _: None)
    ontology = ontology.update(added=generated.PROPERTIES)
    classes = [c for c in ontology.classes if isinstance(c, NamedNode) and "dbpedia" in c.value]
    agree(spark, ontology, classes, 100_000, 200)


def test_what_is_too_large_to_be_joined_here_is_joined_by_spark(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining_here, "MOST", 20)
    triples = [(EX[f"{n}"], EX["p"], EX["o"]) for n in range(5)]
    for text in ("?x {p} ?o . ?y {p} ?o", "?x {p} ?a . ?y {p} ?b"):
        rows = [("pairs", f"SELECT * {{ {text.format(p=EX['p'])} }}")]
        with plan_graph(graph(spark, triples), rows) as plan:
            assert joining_here.joined_here(plan._tables, plan.steps, plan._questions) is None
            assert answers(plan.answers())["pairs"].total() == 25


X, A, B = EX["x"], EX["A"], EX["B"]
ONTOLOGY = Ontology([(A, SUBCLASS, B)])


def test_what_joins_cannot_decide_is_refused_and_the_rest_goes_on(spark: SparkSession) -> None:
    told: list[Problem] = []
    rows = [
        ("optional", f"SELECT * {{ ?x a {B} OPTIONAL {{ ?x {A} ?y }} }}"),
        ("text", "ASK {"),
        ("good", f"SELECT ?x {{ ?x a {B} }}"),
        ("good", f"SELECT ?x {{ ?x a {A} }}"),
        ("attribute", "ASK { ?x <urn:graphmatch:attribute:price> 5 }"),
        ("order", f"SELECT ?x {{ ?x a {B} }} ORDER BY ?x"),
    ]
    odd = spark.createDataFrame(
        [
            ("p", str(X), str(TYPE), str(A)),
            ("q", '"5"', str(TYPE), str(A)),
            ("q", None, str(TYPE), str(A)),
            ("q", str(X), "<http://www.w3.org/1999/02/22-rdf-syntax-ns#typ\\u0065>", str(A)),
        ],
        "publication string, " + SCHEMA,
    )
    found = match_graph(odd, rows, ONTOLOGY, on_problem=told.append)
    assert answers(found) == {"good": Counter([frozenset({("x", str(X))})])}
    assert [str(problem.where) for problem in told if "graph" not in problem.where.source] == [
        "optional",
        "text:1:6",
        "good",
        "attribute",
        "order",
    ]
    assert {problem.what for problem in told if problem.where.source == "<graph>"} == {
        '"5" cannot be a triple\'s subject',
        "nothing cannot be a triple's subject",
    }
    assert "OPTIONAL" in told[2].what


def test_the_plan_is_explained(spark: SparkSession) -> None:
    triples = [(EX[f"{n}"], TYPE, A) for n in range(5)] + [(EX["0"], EX["p"], EX["1"])]
    rows = [
        ("one", f"SELECT * {{ ?x {EX['p']} ?y . ?y a {B} }}"),
        ("two", f"SELECT * {{ ?a {EX['p']} ?b . ?b a {A} }}"),
        ("three", f"SELECT * {{ ?x {EX['p']} ?y . ?y a {B} . ?x a {A} }}"),
        ("none", f"SELECT * {{ ?x {EX['q']} ?y }}"),
    ]
    told = explain_graph(graph(spark, triples), rows, ONTOLOGY).splitlines()
    assert told[:8] == [
        "subscriptions: 4 answered by joins, 0 refused",
        "  not joined, for a table is empty: 1 branch",
        "stage 1: 4 keys, 11 rows",
        "  5 rows: ?x rdf:type <http://example.org/B>",
        "  5 rows: ?x rdf:type <http://example.org/A>",
        "  1 row: ?x <http://example.org/p> ?y",
        "  0 rows: ?x <http://example.org/q> ?y",
        "stage 2: 3 branches of 2 shapes; joins: 2, one by one 4",
    ]
    assert told[8:] == [
        "  in this process, by Arrow: there are few rows",
        "  (?0 ?1): 3 branches",
        "  (?0 ?1) ⋈ (?1): 3 branches, kept",
        "  (?0 ?1) ⋈ (?1) ⋈ (?0): 1 branch",
    ]


def test_what_cannot_be_done_at_all_is_said(spark: SparkSession) -> None:
    number = (X, NamedNode("http://qudt.org/schema/qudt/numericValue"), A)
    rows = [("s", "SELECT * { ?x ?y ?z }")]
    with pytest.raises(SparkError, match="qudt:numericValue beside its unit"):
        plan_graph(graph(spark, [number]), rows)
    with pytest.raises(SparkError, match="no column 'object'"):
        plan_graph(graph(spark, [number]).drop("object"), rows)


def test_the_graphs_own_schema_is_heard(spark: SparkSession) -> None:
    stated = [(EX["y"], SUBPROPERTY, TYPE), (B, SUBCLASS, EX["C"]), (X, EX["y"], A)]
    rows = [("s", f"SELECT ?x {{ ?x a {EX['C']} }}")]
    triples = graph(spark, stated)
    with plan_graph(triples, rows, ONTOLOGY) as plan:
        assert answers(plan.answers()) == {"s": Counter([frozenset({("x", str(X))})])}
    probe = Probe(ONTOLOGY, (), Mentions(), entailment=True)
    with pytest.raises(SparkError, match="a schema of more than 1 triples"):
        with_schema(triples, probe, most=1)
