"""What is measured, what is printed, and what is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from graphmatch.bench import matching, ontology, runner
from graphmatch.bench.matching import Asked
from graphmatch.bench.peers import peer_class
from graphmatch.bench.peers.naive import NaivePeer
from graphmatch.bench.process import Row
from graphmatch.bench.workloads.workload import Size
from graphmatch.cli import app
from semantic.errors import InputError

FEEDS = str(Path(__file__).parents[3] / "data/feeds")

KEYS = {
    "workload",
    "engine",
    "subscriptions",
    "events",
    "build_seconds",
    "bytes_per_subscription",
    "reported_bytes_per_subscription",
    "median_microseconds_per_event",
    "matches_per_event",
    "counters",
    "parameters",
    "agrees",
}


class Forgetful(NaivePeer):
    """Leaves a match out, from the second event on."""

    name: ClassVar = "forgetful"

    def build(self, given: Any) -> None:
        super().build(given)
        self.left = 1

    def numbers(self, found: list[int]) -> NDArray[np.int64]:
        self.left -= 1
        return super().numbers(found)[0 if self.left >= 0 else 1 :]


def with_forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        runner, "peer_class", lambda name: Forgetful if name == "forgetful" else peer_class(name)
    )


def test_rows_are_of_the_engines_in_their_order() -> None:
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    rows = runner.measure("graph", ["gtopss", "naive"], Size(2000, 25, 7), {"edges": 4})
    assert [row["engine"] for row in rows] == ["gtopss", "naive"]
    for row in rows:
        assert set(row) == KEYS
        assert (row["subscriptions"], row["events"]) == (2000, 25)
        assert row["matches_per_event"] == pytest.approx(2, abs=0.2)
        assert row["build_seconds"] > 0
        assert row["median_microseconds_per_event"] > 0
        chosen = {"edges": 4, "matching": 0.001, "shapes": 100, "overlap": 0.5}
        assert row["parameters"] == {"seed": 7, **chosen}
        assert row["agrees"]
    assert rows[0]["counters"]["candidates"] > 2
    assert rows[0]["reported_bytes_per_subscription"] > 50
    if cores is not None:
        assert os.sched_getaffinity(0) == cores


def test_memory_is_what_an_engine_keeps() -> None:
    (row,) = runner.measure("attributes", ["scan"], Size(200_000, 3), {})
    if row["bytes_per_subscription"] is not None:
        assert 60 < row["bytes_per_subscription"] < 130  # 84 are the arrays
    assert row["reported_bytes_per_subscription"] == 84


def test_an_engine_that_has_used_up_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MOST_SECONDS", 0)
    rows = runner.measure("keywords", ["naive", "pyoxigraph"], Size(50, 15), {"feeds": FEEDS})
    assert [row["events"] for row in rows] == [runner.LEAST_EVENTS] * 2
    assert all(row["agrees"] for row in rows)


def test_engines_that_do_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    with_forgetful(monkeypatch)
    rows = runner.measure("graph", ["naive", "forgetful"], Size(2000, 5), {})
    assert not any(row["agrees"] for row in rows)
    assert rows[0]["disagreement"].startswith("event 1: naive 2 (checksum ")
    assert "forgetful 1 (" in rows[0]["disagreement"]


def test_that_a_disagreement_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row: Row = dict.fromkeys(KEYS, 1) | {"agrees": False, "disagreement": "event 3: a 1, b 2"}
    row["parameters"] = {}
    monkeypatch.setattr(matching, "in_own_process", lambda *_: {"rows": [row]})
    assert matching.run(Asked("graph", [10], 5, 1, ["naive"])) == 2
    told = capsys.readouterr()
    assert "do not agree" in told.err
    assert "event 3: a 1, b 2" in told.err


def test_a_run_that_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(matching, "in_own_process", lambda *_: {"failed": "MemoryError"})
    assert matching.run(Asked("graph", [10], 5, 1, ["naive"]), json=True) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "graph, 10 subscriptions failed" in told.err
    assert "MemoryError" in told.err


def test_a_floor_says_nothing_of_matches() -> None:
    size = Size(500, 6)
    ours, floor = runner.measure("ingest", ["graphmatch", "parse"], size, {"matches": 2})
    assert (
        set(ours)
        == set(floor)
        == KEYS
        | {
            "syntax",
            "bytes_per_event",
            "publications_per_event",
        }
    )
    assert ours["matches_per_event"] == 2
    assert floor["matches_per_event"] is None
    assert floor["counters"] == {}
    assert ours["counters"]["matched"] == 2
    assert ours["agrees"]
    assert floor["agrees"]
    assert ours["bytes_per_event"] == floor["bytes_per_event"] > 90 * 20
    assert floor["median_microseconds_per_event"] > 0


def test_each_variant_is_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    every = asked_of(monkeypatch, [10, 20], None, "ingest")
    assert [(a["size"][0], a["parameters"]["syntax"]) for a in every] == [
        (size, syntax) for size in (10, 20) for syntax in ("nt", "turtle", "rss")
    ]
    assert all(asked["engines"] == ["graphmatch", "parse"] for asked in every)
    (one,) = asked_of(monkeypatch, [10], None, "ingest", {"syntax": "rss"})
    assert one["parameters"] == {"syntax": "rss"}


def asked_of(
    monkeypatch: pytest.MonkeyPatch,
    sizes: list[int],
    engines: list[str] | None,
    workload: str = "graph",
    parameters: Mapping[str, Any] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Return what child processes would be asked for."""
    asked: list[dict[str, Any]] = []

    def noted(_: str, text: str) -> Row:
        asked.append(json.loads(text))
        return {"failed": "not run"}

    monkeypatch.setattr(matching, "in_own_process", noted)
    matching.run(Asked(workload, sizes, 5, 1, engines, parameters))
    return asked


def test_engines_that_cannot_hold_so_many(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few, many = asked_of(monkeypatch, [10_000, 1_000_000], None)
    assert {"naive", "gtopss", "clips", "pyoxigraph"} <= set(few["engines"])
    assert {"naive", "gtopss"} <= set(many["engines"])
    assert not {"clips", "pyoxigraph"} & set(many["engines"])
    said = capsys.readouterr().err
    assert "1,000,000 subscriptions: left out unless named:" in said
    assert "clips (at most 10,000)" in said
    (named,) = asked_of(monkeypatch, [1_000_000], ["clips"])
    assert named["engines"] == ["clips"]


def test_engines_that_are_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peer_class("clips"), "requires", "no_such_module")
    (asked,) = asked_of(monkeypatch, [10], None)
    assert "clips" not in asked["engines"]
    assert "naive" in asked["engines"]
    assert "not installed: clips (pip install 'graphmatch[bench]')" in capsys.readouterr().err
    with pytest.raises(InputError, match="no engine is left"):
        asked_of(monkeypatch, [10], ["clips"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["graph", "--engines", "lucene"], "no engine is called 'lucene'"),
        (["graph", "--engines", "scan"], "the engine scan does not know the workload graph"),
        (["graph", "--subscriptions", "many"], "'many' is no number of subscriptions"),
        (["graph", "--subscriptions", "10,,0"], "'10,,0' is no number of subscriptions"),
        (["graph", "--subscriptions", "0"], "'0' is no number of subscriptions"),
        (["graph", "--height", "3"], "bench graph takes no --height"),
        (["graph", "--classes", "300"], "bench graph takes no --classes"),
        (["keywords", "a.ttl"], "bench keywords takes no FILES"),
        (["ontology", "--events", "3"], "bench ontology takes no --events"),
        (["ontology", "--edges", "5"], "bench ontology takes no --edges"),
        (["graph", "--syntax", "nt"], "bench graph takes no --syntax"),
        (["ingest", "--source", "graph"], "bench ingest takes no --source"),
        (["ingest", "--engines", "scan"], "the engine scan does not know the workload ingest"),
        (["graph", "--engines", "parse"], "the engine parse does not know the workload graph"),
        (["subscribe", "--events", "3"], "bench subscribe takes no --events"),
        (["subscribe", "--matches", "3"], "bench subscribe takes no --matches"),
        (["subscribe", "--engines", "scan"], "no engine is called 'scan'"),
        (["everything"], "everything"),
    ],
)
def test_what_is_refused(arguments: list[str], said: str) -> None:
    ran = CliRunner().invoke(app, ["bench", *arguments])
    assert ran.exit_code == 2
    assert said in ran.stderr


def test_that_ontologies_are_measured_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def noted(files: list[Path], classes: int, *, json: bool) -> int:
        asked.append((files, classes, json))
        return 0

    monkeypatch.setattr(ontology, "run", noted)
    for arguments in (["a.ttl", "--classes", "300"], ["--json"]):
        assert CliRunner().invoke(app, ["bench", "ontology", *arguments]).exit_code == 0
    assert asked == [([Path("a.ttl")], 300, False), ([], 1_000_000, True)]


def test_rows_of_the_command() -> None:
    arguments = ["concepts", "--subscriptions", "100,200", "--events", "5", "--height", "2"]
    engines = ["scan", "graphmatch", "naive"]
    ran = CliRunner().invoke(app, ["bench", *arguments, "--engines", ",".join(engines), "--json"])
    assert ran.exit_code == 0, ran.stderr
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(row["subscriptions"], row["engine"]) for row in rows] == [
        (size, engine) for size in (100, 200) for engine in engines
    ]
    assert all(set(row) == KEYS and row["agrees"] and row["events"] == 5 for row in rows)


def test_a_table_of_the_command() -> None:
    arguments = ["keywords", "--subscriptions", "100", "--events", "5", "--engines", "naive"]
    ran = CliRunner().invoke(app, ["bench", *arguments, "--feeds", FEEDS])
    assert ran.exit_code == 0, ran.stderr
    assert "keywords, 100 subscriptions (seed 1, feeds " in ran.stdout
    assert "naive" in ran.stdout


def test_a_table_with_the_floor() -> None:
    arguments = ["ingest", "--subscriptions", "100", "--events", "5", "--syntax", "turtle"]
    ran = CliRunner().invoke(app, ["bench", *arguments])
    assert ran.exit_code == 0, ran.stderr
    assert "ingest, 100 subscriptions (seed 1, syntax turtle, " in ran.stdout
    (floor,) = [line for line in ran.stdout.splitlines() if "parse " in line]
    assert floor.split("│")[-2].strip() == "1"


def test_feeds_that_are_not_there() -> None:
    arguments = ["keywords", "--subscriptions", "10", "--engines", "naive", "--feeds", "none"]
    ran = CliRunner().invoke(app, ["bench", *arguments])
    assert ran.exit_code == 2
    assert "none: cannot be read: " in ran.stderr
