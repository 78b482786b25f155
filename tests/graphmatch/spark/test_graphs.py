"""GraphFrames: motifs as baselines, and connected components. Skipped without its Java side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING

import pytest

from graphmatch import SubscriptionParser
from graphmatch.spark import connected_parts, graphs, match_motif, motif
from graphmatch.spark.graphs import require_frames
from graphmatch.spark.java import SparkError
from semantic import Ontology
from semantic.errors import SubscriptionError
from semantic.pattern import Branch
from semantic.reading import by_component
from semantic.terms import Node, Triple
from semantic.vocabulary import TYPE
from tests.graphmatch.spark import generated_graphs as generated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EX = generated.EX
PARSER = SubscriptionParser()


def graph(spark: SparkSession, triples: Iterable[Triple]) -> DataFrame:
    rows = [(str(s), str(p), str(o)) for s, p, o in triples]
    return spark.createDataFrame(rows, "subject string, predicate string, object string")


def answers(rows: DataFrame) -> dict[str, generated.Solutions]:
    found: dict[str, generated.Solutions] = {}
    for row in rows.collect():
        found.setdefault(row["subscription"], Counter())[frozenset(row["solution"].items())] += 1
    return found


@pytest.fixture
def frames(spark: SparkSession) -> SparkSession:
    try:
        require_frames(spark)
    except SparkError as error:
        pytest.skip(str(error))
    return spark


def test_a_missing_java_side_is_named(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "_CLASS", "org.graphframes.Missing")
    with pytest.raises(SparkError, match="GRAPHFRAMES_JAR") as caught:
        require_frames(spark)
    assert graphs.coordinate() in str(caught.value)


def test_a_motif_is_a_picture_of_a_subscription() -> None:
    patterns = PARSER.parse("s", f"ASK {{ ?x {EX['p']} ?y . ?y ?q ?x . ?x a {EX['A']} }}").branches
    parts = motif(patterns[0]).split("; ")
    vertices = [part.split(f"-[e{n}]->") for n, part in enumerate(parts)]
    named = [
        (f"({_vertex(patterns[0], p.subject)})", f"({_vertex(patterns[0], p.object)})")
        for p in patterns[0].patterns
    ]
    assert [tuple(pair) for pair in vertices] == named


def _vertex(branch: Branch, node: Node) -> str:
    nodes = [n for p in branch.patterns for n in (p.subject, p.object)]
    return f"n{list(dict.fromkeys(nodes)).index(node)}"


def test_motifs_have_the_stores_answers(frames: SparkSession) -> None:
    random = Random(5)
    triples = generated.graph(300, generated.CLASSES, random)
    writer = generated.Writer(triples, generated.CLASSES, random)
    patterns = [writer.pattern() for _ in range(3)]
    rows = graph(frames, triples).persist()
    plain, hierarchy = generated.Reference((), triples), Ontology(generated.TREE)
    closed = generated.Reference(generated.TREE, triples)
    for number, pattern in enumerate(patterns):
        subscription = PARSER.parse(str(number), pattern.text)
        for reference, ontology in ((plain, None), (closed, hierarchy)):
            wanted = reference.answer(pattern)
            found = answers(match_motif(rows, subscription, ontology))
            assert found == ({str(number): wanted} if wanted else {})
    rows.unpersist()


def test_a_motif_says_patterns_only(spark: SparkSession) -> None:
    subscription = PARSER.parse("s", f"SELECT * {{ ?x a {EX['A']} OPTIONAL {{ ?x ?y ?z }} }}")
    with pytest.raises(SubscriptionError, match="a motif cannot say OPTIONAL"):
        match_motif(graph(spark, []), subscription)


def test_connected_parts_are_those_of_one_machine(frames: SparkSession) -> None:
    random = Random(7)
    nodes = [EX[f"n{n}"] for n in range(60)]
    triples: list[Triple] = [
        (a, random.choice((EX["p"], TYPE)), b)
        for a, b in (random.sample(nodes, 2) for _ in range(40))
    ]
    triples += [(random.choice(nodes), EX["name"], text) for text in generated.TEXTS]
    expected = {frozenset(part.triples) for part in by_component(triples, "g")}
    found: dict[str, set[Triple]] = {}
    for row in connected_parts(graph(frames, triples)).collect():
        triple = tuple(row[place] for place in ("subject", "predicate", "object"))
        found.setdefault(row["publication"], set()).add(triple)
    assert Counter(map(frozenset, found.values())) == Counter(
        frozenset(tuple(map(str, t)) for t in part) for part in expected
    )
    assert all(name == min(s for s, _, _ in part) for name, part in found.items())
