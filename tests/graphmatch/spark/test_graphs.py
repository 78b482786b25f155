"""GraphFrames: motifs as baselines, and connected components. Skipped without its Java side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING

import pytest
from pyoxigraph import Literal

from graphmatch import Engine, SubscriptionParser
from graphmatch.spark import connected_components, graphs, match_motif
from graphmatch.spark.graphs import require_frames
from graphmatch.spark.java import SparkError
from semantic.errors import SubscriptionError
from semantic.reading import by_component
from semantic.terms import Triple
from semantic.vocabulary import TYPE, Namespace
from tests.graphmatch.spark.comparing import small, solution_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EX = Namespace("http://example.org/")
PARSER = SubscriptionParser()


def graph(spark: SparkSession, triples: Iterable[Triple]) -> DataFrame:
    rows = [(str(s), str(p), str(o)) for s, p, o in triples]
    return spark.createDataFrame(rows, "subject string, predicate string, object string")


@pytest.fixture
def frames(spark: SparkSession) -> SparkSession:
    try:
        require_frames(spark)
    except SparkError as error:
        pytest.skip(str(error))
    return spark


def test_a_missing_java_side_is_named(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "JAVA_CLASS", "org.graphframes.Missing")
    with pytest.raises(SparkError, match="GRAPHFRAMES_JAR") as caught:
        require_frames(spark)
    assert graphs.coordinate() in str(caught.value)


def test_motifs_have_the_answers_of_the_engine(frames: SparkSession) -> None:
    engine, (*_, large) = small()
    rows = graph(frames, large.triples).persist()
    texts = {one.id: one.query.text for one in engine.subscriptions}
    matched = [PARSER.parse(id, texts[id]) for id in engine.match(large).subscriptions]
    chosen = [one for one in matched if one.exact][:4]
    assert len(chosen) == 4
    for one in chosen:
        for ontology in (None, engine.ontology):
            local = Engine(ontology)
            local.subscribe(one.id, one.query.text)
            wanted = Counter(solution_of(s) for m in local.match(large) for s in m.solutions)
            found = match_motif(rows, one, ontology).collect()
            assert Counter(solution_of(row["solution"]) for row in found) == wanted
    rows.unpersist()


def test_a_motif_of_more_than_patterns_is_refused(spark: SparkSession) -> None:
    subscription = PARSER.parse("s", f"SELECT * {{ ?x a {EX['A']} OPTIONAL {{ ?x ?y ?z }} }}")
    with pytest.raises(SubscriptionError, match="a motif cannot say OPTIONAL"):
        match_motif(graph(spark, []), subscription)


def test_connected_components_equal_those_of_one_machine(frames: SparkSession) -> None:
    random = Random(7)
    nodes = [EX[f"n{n}"] for n in range(60)]
    triples: list[Triple] = [
        (a, random.choice((EX["p"], TYPE)), b)
        for a, b in (random.sample(nodes, 2) for _ in range(40))
    ]
    triples += [
        (random.choice(nodes), EX["name"], text) for text in (Literal(str(n)) for n in range(4))
    ]
    expected = {frozenset(part.triples) for part in by_component(triples, "g")}
    found: dict[str, set[Triple]] = {}
    for row in connected_components(graph(frames, triples)).collect():
        triple = tuple(row[place] for place in ("subject", "predicate", "object"))
        found.setdefault(row["publication"], set()).add(triple)
    assert Counter(map(frozenset, found.values())) == Counter(
        frozenset(tuple(map(str, t)) for t in part) for part in expected
    )
    assert all(name == min(s for s, _, _ in part) for name, part in found.items())
