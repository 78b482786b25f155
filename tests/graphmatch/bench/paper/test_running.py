"""What a run says: what it leaves out, disagreement, failure, and what the command refuses."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner

from graphmatch.bench.paper import EXPERIMENTS, measuring, running
from graphmatch.bench.paper.entrants import FlatEntrant
from graphmatch.bench.paper.experiment import Line, Point
from graphmatch.bench.paper.measuring import Asked, measure_point
from graphmatch.bench.paper.running import chosen, measured_by
from graphmatch.bench.process import Row
from graphmatch.cli import app
from graphmatch.matcher import Capabilities
from graphmatch.published.base import Event, Tally
from graphmatch.published.reconstructed.rein import Rein
from tests.graphmatch.bench.paper.small_experiments import here, shrunk

REIN, SCAN = ({"algorithm": name, "label": name, "options": {}} for name in ("rein", "scan"))


class Forgetful(Rein):
    """Leaves a match out."""

    def matched(self, event: Event, tally: Tally) -> Iterable[int]:
        return list(super().matched(event, tally))[1:]


class Generous(Rein):
    """Reports everything, and says that it may report too much."""

    capabilities: ClassVar = Capabilities(exact=False)

    def matched(self, event: Event, tally: Tally) -> Iterable[int]:
        return range(len(self))


def asked(*lines: dict[str, Any], forgets: bool = False) -> Asked:
    return Asked("ranges", {"attributes": 2}, [100, 12, 1], lines, 0.05, forgets)


def test_that_wrong_matches_end_in_no_times(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = measuring.entrant

    def forgetful(name: str, *rest: Any) -> Any:
        found = made(name, *rest)
        if isinstance(found, FlatEntrant):
            found.class_ = Forgetful
        return found

    monkeypatch.setattr(measuring, "entrant", forgetful)
    monkeypatch.setattr(running, "in_own_process", lambda _, text: measuring.measure(text))
    monkeypatch.setattr(running, "experiment", shrunk)
    assert running.run(["dexin-width"], "small", tmp_path) == 2
    told = capsys.readouterr()
    assert "the algorithms do not agree, so their times say nothing: event " in told.err
    assert "rein" not in told.out.split("─┘")[0].split("┡")[1]
    found = json.loads((tmp_path / "dexin-width.json").read_text(encoding="utf-8"))
    assert not found["agrees"]
    assert "(checksum " in found["points"][0]["disagreement"]
    assert [verdict["saw"] for verdict in found["verdicts"]] == ["not measured"] * 4


def test_what_is_not_exact_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    made = measuring.entrant

    def generous(name: str, *rest: Any) -> Any:
        found = made(name, *rest)
        if isinstance(found, FlatEntrant):
            found.class_, found.exact = Generous, False
        return found

    monkeypatch.setattr(measuring, "entrant", generous)
    found = measure_point(asked(REIN, SCAN))
    assert found["agrees"]
    rein, scan = found["rows"]
    assert (rein["exact"], scan["exact"]) == (False, True)
    assert rein["matches_per_event"] == 100
    assert rein["too_few_per_event"] == 0
    assert rein["too_many_per_event"] == pytest.approx(100 - scan["matches_per_event"])
    assert scan["too_many_per_event"] is None


def test_that_unsubscribing_is_measured() -> None:
    found = measure_point(asked(REIN, SCAN, forgets=True))
    rein, scan = found["rows"]
    assert rein["unsubscribe_microseconds"] > 0
    assert scan["unsubscribe_microseconds"] is None


def test_what_is_left_out() -> None:
    lines = [Line("rein"), Line("naive", most=50)]
    able, left_out = chosen(lines, Point(1, 100))
    assert [line.algorithm for line in able] == ["rein"]
    assert [tuple(each.values()) for each in left_out] == [
        ("naive", "it is given at most 50 subscriptions"),
    ]
    option = {"algorithm": "rein", "label": "odd", "options": {"trees": 3}}
    found = measure_point(asked(option, SCAN))
    assert found["left_out"] == [{"label": "odd", "why": "it has no option trees"}]
    assert [row["label"] for row in found["rows"]] == ["scan"]


def test_that_what_cannot_be_expressed_is_left_out() -> None:
    found = measure_point(Asked("graph", {}, [60, 3, 1], [REIN], 0.05))
    assert found["left_out"] == [{"label": "rein", "why": "it knows no graphs"}]


def test_a_point_that_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(_: str, text: str) -> Row:
        if json.loads(text)["size"][0] > 40:
            return {"failed": "MemoryError"}
        return measuring.measure(text)

    monkeypatch.setattr(running, "in_own_process", failing)
    monkeypatch.setattr(running, "experiment", shrunk)
    assert running.run(["gtopss-9a"], "small", tmp_path, json=True) == 2
    told = capsys.readouterr()
    assert "gtopss-9a, 80 failed: MemoryError" in told.err
    rows = [json.loads(line) for line in told.out.splitlines()]
    assert {row["subscriptions"] for row in rows} == {40}
    assert all(row["experiment"] == "gtopss-9a" and row["agrees"] for row in rows)


def test_that_a_process_of_its_own_measures(tmp_path: Path) -> None:
    of = shrunk("dexin-width")
    point = replace(of.points["small"][0], subscriptions=30)
    (one,) = measured_by(here, replace(of, points={"small": [point]}), "small").measured
    apart = running.in_own_process(
        "graphmatch.bench.paper.measuring",
        json.dumps(
            {
                "workload": of.workload,
                "parameters": dict(point.parameters),
                "size": [30, 4, of.seed],
                "lines": [REIN],
                "seconds": 0.02,
                "forgets": False,
            }
        ),
    )
    assert apart["rows"][0]["matches_per_event"] == one.rows[0]["matches_per_event"]
    assert apart["peak_mb"] > 10


def test_the_list() -> None:
    ran = CliRunner().invoke(app, ["bench", "paper", "LIST"])
    assert ran.exit_code == 0
    for name in EXPERIMENTS:
        assert name in ran.stdout
    ran = CliRunner().invoke(app, ["bench", "paper", "--json"])
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [row["experiment"] for row in rows] == list(EXPERIMENTS)
    assert all(row["claim"] and row["figure"] and row["algorithms"] for row in rows)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["paper", "gtopss-9z"], "no experiment is called 'gtopss-9z'"),
        (["paper", "LIST", "--events", "3"], "bench paper takes no --events"),
        (["graph", "--scale", "paper"], "bench graph takes no --scale"),
        (["graph", "--output", "elsewhere"], "bench graph takes no --output"),
        (["paper", "LIST", "--scale", "huge"], "huge"),
    ],
)
def test_what_is_refused(arguments: list[str], said: str) -> None:
    ran = CliRunner().invoke(app, ["bench", *arguments])
    assert ran.exit_code == 2
    assert said in ran.stderr


def test_a_folder_that_cannot_be_written_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(running, "experiment", shrunk)
    monkeypatch.setattr(running, "in_own_process", lambda *_: {"failed": "not run"})
    there = str(tmp_path / "file")
    ran = CliRunner().invoke(app, ["bench", "paper", "gtopss-9a", "--output", there])
    assert ran.exit_code == 2
    assert "cannot be written: " in ran.stderr
