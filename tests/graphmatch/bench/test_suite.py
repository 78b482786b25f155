"""The suite of user scenarios: every run names existing parts and passes its claims."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from graphmatch.bench import suite
from graphmatch.bench.adapters import adapter
from graphmatch.bench.measures import MEASURES
from graphmatch.bench.results import read_results
from graphmatch.bench.runner import MICROS, Configuration
from graphmatch.bench.summary import RUNS, comparisons, draw, sentences, table
from graphmatch.bench.workloads import WORKLOADS, parameters_of, workload_class
from semantic.errors import InputError


def test_runs_name_what_there_is() -> None:
    for run in RUNS.values():
        assert set(run.sizes) == {"small", "full"}
        if run.measured in MEASURES:
            continue
        assert run.measured in WORKLOADS
        known = set(parameters_of(workload_class(run.measured)))
        assert known >= set(run.parameters)
        for text in run.columns():
            column = Configuration.of(text)
            assert known >= set(column.parameters)
            assert column.form in adapter(column.engine).forms[run.measured], text


RESULTS: dict[str, dict[str, Any]] = {
    "few-values": {
        "size": 7,
        "machine": "a machine",
        "columns": {"graphmatch:arrow": {MICROS: 6.0}, "gryphon:values": {MICROS: 2.0}},
    },
    "subscribing-own": {
        "size": 9,
        "machine": "a machine",
        "columns": {"many": {"per_second": 30.0}, "parse": {"per_second": 20.0}},
    },
    "graph-own-million": {
        "size": 9,
        "machine": "a machine",
        "columns": {c: {MICROS: 1500.0} for c in ("graphmatch:nt", "graphmatch:nt@/10")},
    },
}


def test_winners() -> None:
    found = [(one.factor, one.winner) for one in comparisons(RESULTS)]
    assert found == [(1, ""), (1 / 3, "Gryphon"), (1.5, "graphmatch")]
    lost = "**Gryphon** is 3 times as fast as graphmatch."
    assert sentences(RESULTS, "strongest") == [lost]
    won = "**graphmatch** is 1.5 times as fast as parsing alone."
    assert sentences(RESULTS, "subscribing") == [won]
    columns = {"graphmatch:turtle+new": {MICROS: 5.0}, "parse:turtle+new": {MICROS: 3.0}}
    columns |= {"graphmatch:nt+new": {MICROS: 2.0}, "parse:nt+new": {MICROS: 3.0}}
    mixed = {"syntaxes": {"size": 9, "machine": "a machine", "columns": columns}}
    assert sentences(mixed, "syntaxes") == [
        "**graphmatch** is 1.5 times as fast as parsing alone"
        " (100 shapes, 9 subscriptions: N-Triples, new terms).",
        "**Parsing alone** is 1.7 times as fast as graphmatch"
        " (100 shapes, 9 subscriptions: Turtle, new terms).",
    ]
    lines = table(RESULTS).splitlines()
    row = "few values | 7 | graphmatch, Arrow | 6 µs | Gryphon | 2 µs | 0.333 | Gryphon |"
    assert f"| `few-values`: {row}" in lines
    assert draw(RESULTS, "strongest") == draw(RESULTS, "strongest")


def test_the_page_shows_committed_results() -> None:
    results = read_results(suite.RESULTS)
    assert list(results) == list(RUNS)
    for name, found in results.items():
        assert found["size"] == RUNS[name].sizes["full"]
        assert list(found["columns"]) == RUNS[name].columns(), name
    page = (Path(__file__).parents[3] / "docs/benchmarks.md").read_text(encoding="utf-8")
    shown = [run.section for run in RUNS.values() if run.section != "more"]
    assert set(re.findall("<!-- benchmarks (.*) -->", page)) == {*shown, "table"}


def test_the_winners_on_the_page_are_those_of_the_results() -> None:
    results = read_results(suite.RESULTS)
    for one in (one for run in RUNS.values() for one in comparisons(results, run.section)):
        if not one.winner:
            continue
        columns = results[one.run.name]["columns"]
        values = {
            engine: columns[column][one.run.key]
            for engine, column in (("graphmatch", one.of), (one.opponent, one.beside))
        }
        best = (max if one.run.key == "per_second" else min)(values, key=values.__getitem__)
        said = sentences(results, one.run.section)
        loser = next(engine for engine in values if engine != best)
        assert any(
            f"**{best}** is".lower() in line.lower() and f"as fast as {loser}" in line
            for line in said
        ), (one, said)


@pytest.mark.parametrize(
    ("name", "columns", "more"),
    [
        ("subscribing", ["many", "one", "unsubscribe", "parse"], {"shapes": 0}),
        ("rows", ["many", "prepared"], {}),
        ("threads", ["one thread", "two threads"], {"documents": 6}),
        ("opening", ["opened"], {}),
        ("solutions", ["product", "single"], {}),
        ("churn", ["first", "last"], {"rounds": 3}),
    ],
)
def test_measures(name: str, columns: list[str], more: dict[str, int]) -> None:
    rows = list(MEASURES[name](40, 1, **more))
    assert [row["column"] for row in rows] == columns
    assert all(value > 0 for row in rows for key, value in row.items() if key != "column")


def test_results_are_printed_and_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = [
        {"column": f"{c} thread{'s' * (c == 'two')}", "microseconds": 5.0} for c in ("two", "one")
    ]
    found = {"threads": {"rows": rows, "missing": {"clips": "pip install it"}}}
    monkeypatch.setattr(
        suite, "measured", lambda run, *_: found.get(run.name, {"wrong": "failed: no"})
    )
    assert suite.run(["threads"], "small", 1, None, tmp_path / "new") == 0
    captured = capsys.readouterr()
    line = "| `threads`: two threads | 10,000 | two threads | 5 µs | one thread | 5 µs | 1 |  |"
    assert line in captured.out.splitlines()
    assert "threads: clips is left out. Install it: pip install it" in captured.err
    assert read_results(tmp_path / "new/suite.json")["threads"]["size"] == 10_000
    assert suite.run(["threads", "churn"], "full", 1, None, None, json=True) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["columns"]["two threads"] == {"microseconds": 5.0}
    assert "churn: failed: no" in captured.err
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        suite.run(["threads"], "small", 1, None, tmp_path / "file")
    (tmp_path / "new/suite.json").write_text("{")
    monkeypatch.setattr(suite, "measured", lambda *_: pytest.fail("measured"))
    with pytest.raises(InputError, match="not a file of results"):
        suite.run(["threads"], "small", 1, None, tmp_path / "new")
