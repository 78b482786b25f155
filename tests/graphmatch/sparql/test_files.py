from __future__ import annotations

import json
from pathlib import Path

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


def test_that_lines_keep_their_constants(tmp_path: Path) -> None:
    queries = [f'ASK {{ ?s <urn:p{n % 7}> <urn:{n}> , "{n}", {n} }}' for n in range(200)]
    lines = [json.dumps({"id": str(n), "query": query}) for n, query in enumerate(queries)]
    (tmp_path / "many.jsonl").write_text("\n".join(lines))
    found = list(read_subscriptions(tmp_path, on_problem=unexpected))
    reference = SubscriptionParser()
    assert [s.query.text for s in found] == [reference.query("s", q).text for q in queries]
    assert len({s.query.skeleton for s in found}) == 1
