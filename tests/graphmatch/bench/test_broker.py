"""``graphmatch bench broker`` measures a running service."""

from __future__ import annotations

import json

import pytest

from graphmatch.bench import broker
from graphmatch.bench.workloads import Size


@pytest.mark.long
def test_all_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert broker.run([Size(200, 30)], 20, json=True) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["row"] for row in rows] == ["start", "paced", "sustained", "webhooks"]
    assert all(row["seconds"] > 0 for row in rows)
    paced = rows[1]
    assert 0 < paced["p50_ms"] <= paced["p95_ms"] <= paced["p99_ms"]
    assert rows[3]["per_second"] > 0
