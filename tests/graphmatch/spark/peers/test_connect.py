"""Matching by a Spark Connect client in its own process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.graphmatch.spark.peers import matching
from tests.graphmatch.spark.peers.programs import run

pytestmark = pytest.mark.long


def test_a_connect_client_matches(connect_server: str, tmp_path: Path) -> None:
    """A replaced engine affects only restarted streams, not running ones."""
    said = run("connect", connect_server, str(tmp_path), module=matching.__name__)
    about = {line.pop("what"): line for line in map(json.loads, said.splitlines())}
    assert about["documents"]["refused"] == 0
    assert about["documents"]["solutions"] > 100
    assert about["triples"]["solutions"] > 1000
    for way in ("streamed triples", "streamed documents"):
        assert about[way]["said"] == [["urn:0", "before"], ["urn:1", "before"], ["urn:2", "after"]]
        assert [did["values"][:5] for did in about[way]["did"]] == [[1, 1, 1, 0, 0]] * 2
        assert {did["values"][5] for did in about[way]["did"]} == {
            about[way]["did"][0]["values"][5]
        }
