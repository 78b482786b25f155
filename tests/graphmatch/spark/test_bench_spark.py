"""``graphmatch bench spark`` with tiny data: its behaviour, not its speed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from graphmatch.cli import app


def rows(*options: str) -> list[dict[str, Any]]:
    """Return the written rows."""
    done = subprocess.run(
        [sys.executable, "-m", "graphmatch.cli", "bench", "spark", "--json", *options],
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.long
def test_each_form_has_a_row() -> None:
    found = rows("--subscriptions", "200", "--events", "40")
    forms = ["triples", "triples+solutions", "texts", "texts+solutions"]
    expected = [(f"graphmatch:{form}", 1) for form in forms[:2]]
    expected += [(f"spark:{form}", cores) for cores in (1, 2) for form in forms]
    assert [(row["engine"], row["cores"]) for row in found] == expected
    assert all(row["agrees"] for row in found)
    assert {row["matches_per_event"] for row in found} == {10.0}
    assert all(row["publications_per_second"] > 0 for row in found)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--engines", "index"], "bench spark takes no --engines"),
        (["--edges", "5"], "bench spark takes no --edges"),
    ],
)
def test_an_unknown_option_is_named(options: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["bench", "spark", *options])
    assert result.exit_code == 2
    assert said in result.stderr
