"""What ``graphmatch spark watch`` refuses before Spark is started."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from graphmatch.cli import app


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "there is nothing to watch. Name a folder, or --kafka."),
        (["."], "'often' is no duration"),
        (["nowhere", "--every", "1 day"], "nowhere: there is no such folder to watch"),
        ([".", "--kafka", "h:1"], "a folder and --kafka are given together"),
        (
            ["--kafka", "h:1", "--every", "1 day"],
            "h:1: no topic is named. Name one with --kafka-topic.",
        ),
        ([".", "--format", "pdf"], "no RDF syntax is called 'pdf'"),
        ([".", "--base", "here"], "the base 'here' is not an absolute IRI"),
    ],
)
def test_what_cannot_be_watched(tmp_path: Path, arguments: list[str], said: str) -> None:
    output = tmp_path / "output"
    options = ["--output", str(output), "-s", str(tmp_path)]
    every = [] if "--every" in arguments else ["--every", "often"]
    with patch("graphmatch.command.spark_watch.spark_session", side_effect=AssertionError):
        result = CliRunner().invoke(app, ["spark", "watch", *arguments, *options, *every])
    assert result.exit_code == 2
    assert said in result.stderr
    assert not output.exists()
