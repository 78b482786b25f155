from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphmatch import SubscriptionParser, read_subscriptions
from semantic.errors import Problem

QUERY = "SELECT * { ?s <urn:p> <urn:o> }"


def unexpected(problem: Problem) -> None:
    raise AssertionError(problem)


def test_a_folder_in_order_of_name(tmp_path: Path) -> None:
    (tmp_path / "deeper").mkdir()
    (tmp_path / "b.rq").write_text(f"# what it\n#  says\nPREFIX e: <urn:>\n# not this\n{QUERY}")
    (tmp_path / "deeper" / "c.RQ").write_text(f"\ufeff{QUERY}", encoding="utf-8")
    lines = [{"id": "x", "query": QUERY, "comment": "why"}, {"id": "y", "query": QUERY}]
    (tmp_path / "a.jsonl").write_text("\n\n".join(map(json.dumps, lines)))
    (tmp_path / "notes.txt").write_text("not a subscription")
    found = list(read_subscriptions(tmp_path, on_problem=unexpected))
    assert [(s.id, s.comment) for s in found] == [
        ("x", "why"),
        ("y", ""),
        ("b", "what it says"),
        ("c", ""),
    ]
    assert len({s.query.skeleton for s in found}) == 1


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"id": "a"}', "query"),
        ('{"query": "ASK { ?s ?p ?o }"}', "id"),
        ('{"id": 5, "query": "ASK { ?s ?p ?o }"}', "id"),
        ('{"id": "a", "query": "ASK { ?s ?p"}', "not SPARQL"),
        ('{"id": "a", "query": "ASK { ?s un:known 1 }"}', "at 1:10"),
        ('{"id": "a", "query": "ASK { ?s ?p \'\\ud800\' }"}', "surrogate"),
        ("[" * 100_000, "JSON"),
        ('{"id": "a", "query": "ASK { ?s ?p ?o FILTER(' + "(" * 9_999 + '"}', "nest"),
    ],
)
def test_that_one_bad_line_is_reported_and_the_rest_goes_on(
    line: str, what: str, tmp_path: Path
) -> None:
    file = tmp_path / "many.jsonl"
    good = json.dumps({"id": "good", "query": QUERY})
    file.write_text(f"\n{line}\n{good}\n")
    problems: list[Problem] = []
    assert [s.id for s in read_subscriptions(file, on_problem=problems.append)] == ["good"]
    (problem,) = problems
    assert what in str(problem)
    assert str(problem).startswith(f"{file}:2")


def test_that_a_bad_file_says_where(tmp_path: Path) -> None:
    (tmp_path / "a.rq").write_text("SELECT * {\n ?s un:known 1 }")
    (tmp_path / "b.rq").write_bytes(b"ASK { ?s ?p '\xff' }")
    (tmp_path / "c.rq").write_text(QUERY)
    problems: list[str] = []
    found = read_subscriptions(
        tmp_path, tmp_path / "d.rq", on_problem=lambda p: problems.append(str(p))
    )
    assert [s.id for s in found] == ["c"]
    assert problems[0].startswith(f"{tmp_path / 'a.rq'}:2:5: the prefix un: is not declared")
    assert problems[1].startswith(str(tmp_path / "b.rq"))
    assert "UTF-8" in problems[1]
    assert problems[2].startswith(str(tmp_path / "d.rq"))
    assert len(problems) == 3


def test_that_lines_keep_their_constants(tmp_path: Path) -> None:
    queries = [f'ASK {{ ?s <urn:p{n % 7}> <urn:{n}> , "{n}", {n} }}' for n in range(200)]
    lines = [json.dumps({"id": str(n), "query": query}) for n, query in enumerate(queries)]
    (tmp_path / "many.jsonl").write_text("\n".join(lines))
    found = list(read_subscriptions(tmp_path, on_problem=unexpected))
    reference = SubscriptionParser()
    assert [s.query.text for s in found] == [reference.query("s", q).text for q in queries]
    assert len({s.query.skeleton for s in found}) == 1
