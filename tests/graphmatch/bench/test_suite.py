"""The suite of user scenarios: every run names existing parts and passes its claims."""

from __future__ import annotations

import json

import pytest

from graphmatch.bench import suite
from graphmatch.bench.adapters import adapter
from graphmatch.bench.measures import MEASURES
from graphmatch.bench.runner import Configuration
from graphmatch.bench.suite import RUNS, Claim, Run, claims_of
from graphmatch.bench.workloads import WORKLOADS, parameters_of, workload_class

ROWS = [{"column": "a", "seconds": 2.0}, {"column": "b", "seconds": 4.0}]


def test_runs_name_what_there_is() -> None:
    assert len({run.name for run in RUNS}) == len(RUNS)
    for run in RUNS:
        assert set(run.sizes) == {"small", "full"}
        if run.measured in MEASURES:
            continue
        assert run.measured in WORKLOADS
        known = set(parameters_of(workload_class(run.measured)))
        assert known >= set(run.parameters)
        for text in run.all_columns():
            column = Configuration.of(text)
            assert known >= set(column.parameters)
            assert column.form in adapter(column.engine).forms[run.measured], text


def test_claims_are_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    claims = (
        Claim("ratio", "a", "b", "seconds", most=0.5),
        Claim("ratio", "b", "a", "seconds", most=0.5),
        Claim("value", "a", key="seconds", least=3),
        Claim("shown", "a", key="seconds"),
    )
    found = list(claims_of(Run("r", "starting", {}, claims), ROWS))
    assert [row["holds"] for row in found] == [True, False, False, None]
    assert [row["ratio"] for row in found] == [0.5, 2.0, None, None]
    one = Run("r", "starting", {"small": 1}, claims)
    monkeypatch.setattr(suite, "RUNS", (one,))
    monkeypatch.setattr(suite, "measured", lambda *_: {"rows": ROWS})
    suite.run(["r"], "small", 1, None)
    printed = " ".join(capsys.readouterr().out.replace("|", " ").split())
    assert "r: ratio 4 s 2 s 2 at most 0.5 no" in printed


@pytest.mark.parametrize(
    ("name", "columns", "more"),
    [
        ("subscribing", ["many", "one", "unsubscribe", "parse"], {"shapes": 0}),
        ("rows", ["many", "prepared"], {}),
        ("threads", ["one", "two"], {"documents": 6}),
        ("opening", ["subscribed", "saved", "opened"], {}),
        ("solutions", ["product", "single"], {}),
        ("churn", ["first", "last"], {"rounds": 3}),
    ],
)
def test_measures(name: str, columns: list[str], more: dict[str, int]) -> None:
    rows = list(MEASURES[name](40, 1, **more))
    assert [row["column"] for row in rows] == columns
    assert all(value > 0 for row in rows for key, value in row.items() if key != "column")


def test_results_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"threads": {"rows": [{"column": c, "microseconds": 5.0} for c in ("one", "two")]}}
    monkeypatch.setattr(
        suite, "measured", lambda run, *_: found.get(run.name, {"wrong": "failed: no"})
    )
    assert suite.run(["threads"], "small", 1, None) == 0
    out = capsys.readouterr().out
    line = "| threads: two threads beside one | 5 µs | 5 µs | 1 | at most 0.556 | no |"
    assert line in out.splitlines()
    assert suite.run(["threads", "churn"], "full", 1, None, json=True) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["claims"][0]["holds"] is False
    assert "churn: failed: no" in captured.err
