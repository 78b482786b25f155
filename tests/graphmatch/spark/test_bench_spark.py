"""``graphmatch bench spark`` on next to nothing: what it does, not how fast it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from graphmatch.cli import app


def rows(*options: str) -> tuple[list[dict[str, Any]], str]:
    """Return what is written: rows, and what is said beside them."""
    done = subprocess.run(
        [sys.executable, "-m", "graphmatch.cli", "bench", "spark", "--json", *options],
        capture_output=True,
        text=True,
        check=True,
        env={name: value for name, value in os.environ.items() if name != "GRAPHFRAMES_JAR"},
    )
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_rows() -> None:
    found, said = rows("--subscriptions", "200", "--events", "40", "--triples", "900")
    assert "left out: motifs (" in said
    assert "GraphFrames is not in this session" in said
    assert [(row["engine"], row.get("cores")) for row in found] == [
        ("graphmatch", 1),
        ("spark", 1),
        ("spark", 2),
        ("pyoxigraph", None),
        ("joins", None),
    ]
    assert all(row["agrees"] for row in found)
    assert {row["matches_per_event"] for row in found[:3]} == {10.0}
    for row in found[1:3]:
        shares = [row[name] for name in ("reading", "matching", "writing", "shipping")]
        assert all(0 <= share <= 1 for share in shares)
    assert found[3]["solutions"] == found[4]["solutions"] > 0
    assert all(850 < row["triples"] <= 900 for row in found[3:])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--engines", "index"], "bench spark takes no --engines"),
        (["--edges", "5"], "bench spark takes no --edges"),
        (["--triples", "many"], "--triples: 'many' is no number of triples"),
    ],
)
def test_options_that_say_nothing(options: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["bench", "spark", *options])
    assert result.exit_code == 2
    assert said in result.stderr
