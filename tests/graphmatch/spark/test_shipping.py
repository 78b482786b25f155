"""An engine on its way to the workers."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyoxigraph import NamedNode

from graphmatch import Engine
from graphmatch.operators import Operator
from graphmatch.spark.java import SparkError
from graphmatch.spark.shipping import Shipped, ship
from semantic import Ontology, Publication, read_publications
from semantic.annotation.annotate import Annotator
from semantic.vocabulary import SUBCLASS, TYPE
from tests.graphmatch.spark.test_batch import FILES, samples, unheard

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def test_what_is_opened_matches_the_same(spark: SparkSession) -> None:
    engine = samples()
    shipped = pickle.loads(pickle.dumps(ship(spark, engine, NOW)))
    worker = shipped.opened()
    assert worker is shipped.opened()
    for publication in read_publications(*FILES, on_problem=unheard):
        own, there = engine.match(publication), worker.engine.match(publication)
        assert there.subscriptions == own.subscriptions
        assert [match.solutions for match in there] == [match.solutions for match in own]


def test_options_go_along(spark: SparkSession) -> None:
    laptop, computer = NamedNode("urn:laptop"), NamedNode("urn:computer")
    ontology = Ontology([(laptop, SUBCLASS, computer)])
    plain = Engine(ontology, entailment="none", annotator=Annotator([]))
    plain.subscribe("computer", "ASK { ?x a <urn:computer> }")
    plain.subscribe("now", "SELECT ?n { ?x a ?c BIND(YEAR(NOW()) AS ?n) }")
    worker = ship(spark, plain, NOW).opened()
    (match,) = worker.engine.match(Publication.of("p", [(NamedNode("urn:x"), TYPE, laptop)]))
    assert match.subscription == "now"
    assert match.solutions[0]["n"].value == "2026"


def test_problems_are_taken_once(spark: SparkSession) -> None:
    worker = ship(spark, Engine(), NOW).opened()
    list(worker.engine.match_table(_table()))
    assert len(worker.taken()) == 1
    assert worker.taken() == []


def _table() -> object:
    import pyarrow as pa

    row = {"publication": "p", "subject": "x", "predicate": "<urn:p>", "object": "<urn:o>"}
    return pa.Table.from_pylist([row])


def test_another_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SparkError, match=r"worker: the worker has graphmatch .*, and the driver 0"):
        Shipped(str(tmp_path), None, "0", NOW).opened()


def test_that_operators_are_refused_at_once() -> None:
    longer = Operator("urn:op:longer", lambda text, n: len(text.value) > int(n.value))
    nothing: SparkSession = None  # type: ignore[assignment]  # it is refused before Spark is asked
    with pytest.raises(SparkError, match=r"urn:op:longer.*Match without Spark"):
        ship(nothing, Engine(operators=[longer]), NOW)
