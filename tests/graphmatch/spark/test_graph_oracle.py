"""One big graph has the oracle's answers, whatever Hypothesis generates."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import Phase, given, settings

from graphmatch.spark import plan_graph
from semantic import Ontology
from tests.oracle import World, answer_in, to_sparql
from tests.strategies import FULL, Scenario, pairs_of, scenarios

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from graphmatch.spark import GraphPlan
    from semantic.terms import Triple

GRAPH = "subject string, predicate string, object string"
Solutions = Counter[frozenset[tuple[str, str]]]
SCENARIOS = {
    entailment: scenarios(FULL, publications=1, queries=20, entailment=entailment)
    for entailment in ("rdfs", "none")
}
few = settings(max_examples=2, derandomize=True, phases=(Phase.generate,))


def graph(spark: SparkSession, triples: tuple[Triple, ...]) -> DataFrame:
    return spark.createDataFrame([tuple(map(str, triple)) for triple in triples], GRAPH)


def answers(plan: GraphPlan) -> dict[str, Solutions]:
    found: dict[str, Solutions] = {}
    for row in plan.answers().collect():
        found.setdefault(row["subscription"], Counter())[frozenset(row["solution"].items())] += 1
    return found


def agree(spark: SparkSession, scenario: Scenario, entailment: Literal["rdfs", "none"]) -> None:
    (publication,) = scenario.publications
    ontology = Ontology(scenario.ontology, pairs_of(scenario.synonyms), on_problem=lambda _: None)
    rows = [(str(number), to_sparql(query)) for number, query in enumerate(scenario.queries)]
    triples = graph(spark, publication.triples)
    with plan_graph(triples, rows, ontology, entailment=entailment) as plan:
        found = answers(plan)
        refused = {error.problem.where.source for error in plan.refused}
    world = World.of(
        scenario.ontology, publication.triples, scenario.synonyms, entailment=entailment
    )
    wanted = {}
    for (id, _), query in zip(rows, scenario.queries, strict=True):
        answer = answer_in(query, world)
        if answer and id not in refused:
            wanted[id] = Counter(
                {frozenset((n, str(t)) for n, t in row): times for row, times in answer.items()}
            )
    assert found == wanted


@few
@given(scenario=SCENARIOS["rdfs"])
def test_with_entailment(spark: SparkSession, scenario: Scenario) -> None:
    agree(spark, scenario, "rdfs")


@few
@given(scenario=SCENARIOS["none"])
def test_without_entailment(spark: SparkSession, scenario: Scenario) -> None:
    agree(spark, scenario, "none")


@pytest.mark.long
@settings(max_examples=60, derandomize=True, phases=(Phase.generate,))
@given(scenario=SCENARIOS["rdfs"])
def test_with_entailment_at_length(spark: SparkSession, scenario: Scenario) -> None:
    agree(spark, scenario, "rdfs")
