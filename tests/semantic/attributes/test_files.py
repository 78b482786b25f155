"""Attribute subscriptions from files, singly and in bulk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphmatch import AttributeSubscription, Engine, read_subscriptions
from semantic import Ontology, Problem, ProblemWarning
from semantic.errors import SubscriptionError
from semantic.vocabulary import RDFS, TYPE, Namespace

ROWS = [
    {"id": f"s{n}", "where": {"target": {"isa": "Computer"}, "price": {"<": n}, "brand": f"b{n}"}}
    for n in range(100)
]


def written(path: Path, rows: list[object]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_both_ways_of_reading_say_the_same(tmp_path: Path) -> None:
    path = written(tmp_path / "s.jsonl", [*ROWS])
    engine = Engine(Ontology([(Namespace("urn:")["Computer"], TYPE, RDFS["Class"])]))
    assert engine.subscribe_many(read_subscriptions(path)) == ()
    queries = {s.id: s.query for s in engine.subscriptions}
    assert queries == {s.id: s.query for s in read_subscriptions(path)}
    assert list(queries) == [row["id"] for row in ROWS]


def test_rows_with_faults_are_passed_over(tmp_path: Path) -> None:
    rows: list[object] = [ROWS[0], ROWS[0], {"id": "x", "where": {"a": []}}, {"where": {"a": 1}}]
    path = written(tmp_path / "s.jsonl", [*rows, {"id": "y", "where": {"a": 1}, "to": "me"}, 5])
    told: list[Problem] = []
    engine = Engine()
    (unknown,) = engine.subscribe_many(read_subscriptions(path, on_problem=told.append))
    assert "no term called 'Computer'" in str(unknown)
    assert [(problem.where.line, problem.where.item) for problem in told] == [
        (2, "s0"),
        (3, "x"),
        (4, None),
        (5, "y"),
        (6, None),
    ]
    assert [problem.what for problem in told] == [
        f"a subscription with the id 's0' already exists, at {path}:1",
        "attribute 'a': a list is not a valid value",
        "the field `id` is missing",
        "there is no field 'to'",
        "not a JSON object",
    ]


@pytest.mark.parametrize("field", ["where", "words", "not-topics", "match"])
def test_a_query_excludes_topics_and_constraints(tmp_path: Path, field: str) -> None:
    told: list[Problem] = []
    path = written(tmp_path / "s.jsonl", [{"id": "q", "query": "ASK { ?x a ?y }", field: "all"}])
    assert list(read_subscriptions(path, on_problem=told.append)) == []
    assert told[0].what == f"there is no field {field!r}"
    assert "id, query and comment" in told[0].remedy


def test_nothing_is_lost_silently(tmp_path: Path) -> None:
    path = written(tmp_path / "s.jsonl", [5])
    with pytest.warns(ProblemWarning, match="not a JSON object"):
        assert list(read_subscriptions(path)) == []


def test_kinds_may_be_mixed_in_a_file(tmp_path: Path) -> None:
    query = {"id": "q", "query": "ASK { ?x a ?y }", "comment": "SPARQL"}
    path = written(tmp_path / "s.jsonl", [query, {**ROWS[1], "comment": "Constraints"}])
    assert [(s.id, s.comment) for s in read_subscriptions(path)] == [
        ("q", "SPARQL"),
        ("s1", "Constraints"),
    ]


def test_comments_are_optional(tmp_path: Path) -> None:
    path = written(tmp_path / "s.jsonl", [{**ROWS[1], "comment": ""}, ROWS[2]])
    assert [s.comment for s in read_subscriptions(path)] == ["", ""]


def test_an_error_names_the_subscription() -> None:
    with pytest.raises(
        SubscriptionError, match=r"alice: attribute 'a': null is not a valid value\. "
    ):
        AttributeSubscription.of("alice", {"a": None})
    nameless: Any = {5: 1}
    with pytest.raises(SubscriptionError, match="alice: 5 is not a valid attribute name"):
        AttributeSubscription.of("alice", nameless)


def test_where_a_line_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes('\ufeff  {"é": "'.encode() + b"\xff")
    told: list[Problem] = []
    assert list(read_subscriptions(path, on_problem=told.append)) == []
    assert [(p.what, p.where.line, p.where.column) for p in told] == [("not UTF-8", 1, 10)]
