"""Taking subscriptions in, and forgetting them: what is measured, and that all of it is done."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner

from graphmatch.bench import matching, subscribing
from graphmatch.bench.matching import Asked
from graphmatch.bench.process import Row
from graphmatch.bench.subscribing import SOURCES, measure
from graphmatch.bench.takers import TAKERS, taker_class
from graphmatch.bench.takers.graphmatch import GraphMatchTaker
from graphmatch.bench.workloads.workload import Size
from graphmatch.cli import app
from semantic.errors import SubscriptionError

FEEDS = str(Path(__file__).parents[3] / "data/feeds")
KEYS = {
    "workload",
    "engine",
    "source",
    "way",
    "subscriptions",
    "held",
    "build_seconds",
    "bytes_per_subscription",
    "subscriptions_per_second",
    "matches_per_event",
    "parameters",
    "agrees",
}


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribing, "REHEARSAL", 5)


def of(source: str, **parameters: Any) -> dict[str, Any]:
    if source in ("lines", "arrow"):
        return {"source": source, "attributes": 2, **parameters}
    return {"source": source, "shapes": 5, "feeds": FEEDS, **parameters}


def engines_of(source: str) -> list[str]:
    return [name for name in TAKERS if taker_class(name).takes({"source": source})]


@pytest.mark.parametrize("source", SOURCES)
def test_all_is_taken_in_and_forgotten(source: str) -> None:
    engines = engines_of(source)
    assert "graphmatch" in engines
    rows = measure(engines, Size(130, 1), of(source))
    assert [name for name in engines if any(row["engine"] == name for row in rows)] == engines
    for row in rows:
        assert set(row) == KEYS
        assert (row["workload"], row["source"]) == ("subscribe", source)
        assert row["subscriptions"] == 130
        assert row["held"] == (0 if row["way"] == "drop" else 130)
        assert row["subscriptions_per_second"] > 0
        assert row["build_seconds"] > 0
        assert row["agrees"], row
    ways = [(row["way"], row["matches_per_event"]) for row in rows if row["engine"] == "graphmatch"]
    assert [way for way, _ in ways] == ["one", "many", "drop"]
    assert ways[0][1] == ways[1][1] > 0
    assert ways[2][1] is None


def test_rows_without_some_attributes() -> None:
    lines, arrow = (measure(["graphmatch"], Size(60, 1), of(s, absent=0.5)) for s in SOURCES[2:])
    assert [row["matches_per_event"] for row in lines] == [
        row["matches_per_event"] for row in arrow
    ]
    assert all(row["agrees"] for row in lines + arrow)


class Forgetful(GraphMatchTaker):
    """Leaves out the last subscription, or puts another one in its place."""

    name: ClassVar = "forgetful"
    swapped: ClassVar = False

    def take(self, chunk: Any, way: str) -> None:
        if way == "many" and chunk[-1][0] == str(self.workload.size.subscriptions - 1):
            kept = chunk[:-1]
            if self.swapped:
                kept.append((chunk[-1][0], "ASK { ?s ?p ?o }"))
            super().take(kept, way)
        else:
            super().take(chunk, way)


@pytest.mark.parametrize("swapped", [False, True])
def test_what_is_lost_is_noticed(monkeypatch: pytest.MonkeyPatch, swapped: bool) -> None:
    monkeypatch.setattr(subscribing, "taker_class", lambda _: Forgetful)
    monkeypatch.setattr(Forgetful, "swapped", swapped)
    rows = measure(["forgetful"], Size(50, 1), of("graph"))
    assert not any(row["agrees"] for row in rows)
    said = "(one) matches ((1, " if swapped else "forgetful (many) has 49 subscriptions, not 50"
    assert said in rows[0]["disagreement"]


def test_an_engine_that_has_used_up_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribing, "MOST_SECONDS", 0)
    rows = measure(["naive"], Size(100, 1), of("graph"))
    assert [(row["way"], row["held"]) for row in rows] == [("one", 5), ("drop", 0)]
    assert all(row["agrees"] for row in rows)


def test_what_cannot_be_subscribed_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    taker = taker_class("graphmatch")
    made = subscribing.SubscribeParameters(shapes=5).workload(Size(20, 1))
    for way in taker.ways:
        peer = taker("graph", made)
        with pytest.raises(SubscriptionError):
            peer.take([("0", "ASK { ?s ?p ?o }"), ("1", "ASK {")], way)
        peer.close()


# --- The command ---------------------------------------------------------------------------------


def asked_of(
    monkeypatch: pytest.MonkeyPatch, there: bool, engines: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Return what child processes would be asked for, with pyarrow or without."""
    asked: list[dict[str, Any]] = []

    def noted(_: str, text: str) -> Row:
        asked.append(json.loads(text))
        return {"failed": "not run"}

    monkeypatch.setattr(matching, "in_own_process", noted)
    monkeypatch.setattr(matching, "find_spec", lambda _: object() if there else None)
    assert matching.run(Asked("subscribe", [20_000], 1, 1, engines)) == 2
    return asked


def test_each_source_is_a_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {one["parameters"]["source"]: one["engines"] for one in asked_of(monkeypatch, True)}
    assert asked == {
        "graph": ["graphmatch", "naive", "pyoxigraph"],
        "keywords": ["graphmatch", "naive", "pyoxigraph"],
        "lines": ["graphmatch"],
        "arrow": ["graphmatch"],
    }
    said = capsys.readouterr().err
    assert said.count("left out unless named: clips (at most 10,000)") == 2
    assert "subscribe (lines), 20,000 subscriptions failed" in said


def test_without_arrow(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [one["parameters"]["source"] for one in asked_of(monkeypatch, False)]
    assert asked == ["graph", "keywords", "lines"]
    assert "not installed: pyarrow (pip install 'graphmatch[spark]')" in capsys.readouterr().err


def test_engines_that_cannot(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = asked_of(monkeypatch, True, ["clips", "pyoxigraph"])
    assert [one["engines"] for one in asked] == [["clips", "pyoxigraph"], ["pyoxigraph"], ["clips"]]
    said = capsys.readouterr().err
    assert "subscribe (lines): left out, for they cannot: pyoxigraph" in said
    assert "subscribe (arrow): left out, for they cannot: clips, pyoxigraph" in said


def test_rows_and_a_table_of_the_command() -> None:
    arguments = ["bench", "subscribe", "--subscriptions", "60", "--source", "graph"]
    engines = ["--engines", "pyoxigraph,naive", "--shapes", "4"]
    ran = CliRunner().invoke(app, [*arguments, *engines, "--json"])
    assert ran.exit_code == 0, ran.stderr
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(row["engine"], row["way"]) for row in rows] == [
        ("pyoxigraph", "one"),
        ("naive", "one"),
        ("naive", "drop"),
    ]
    assert rows[0]["parameters"] == {"seed": 1, "source": "graph", "shapes": 4}
    ran = CliRunner().invoke(app, [*arguments, *engines])
    assert ran.exit_code == 0, ran.stderr
    assert "subscribe, 60 subscriptions (seed 1, source graph, shapes 4)" in ran.stdout
    assert "a second" in ran.stdout
