"""Every figure: its data is sound, its small scale runs, and its files are written."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from graphmatch.bench import experiments, runner
from graphmatch.bench.experiments import (
    BOUND,
    EXPERIMENTS,
    IMPLEMENTATION_BOUND,
    QUANTITIES,
    RESULTS,
    SCALES,
    VERDICTS,
    Experiment,
    measured,
)
from graphmatch.bench.operators import Setting
from graphmatch.bench.results import read_results
from graphmatch.bench.runner import Configuration
from graphmatch.bench.workloads import WORKLOADS, workload_class
from graphmatch.cli import app
from graphmatch.published import IMPLEMENTED_WITH, MATCHERS, ORDERS

ROOT = Path(__file__).parents[3]
FEW = ("gtopss-9h", "ctps-8c", "dexin-17", "gryphon-visits", "suborder-6")


def tiny(name: str) -> Experiment:
    """Return a figure with few points, subscriptions and events, and its first algorithms."""
    of = EXPERIMENTS[name]
    small = [40, 60, 80] if of.axis == "subscriptions" else [of.small[0], of.small[-1]]
    some = dict(list(of.algorithms.items())[:3])
    return replace(of, small=small, subscriptions=[80, 80], events=[4, 4], algorithms=some)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure in this process without garbage collection, because the process may be large."""
    monkeypatch.setattr(runner, "gc", SimpleNamespace(collect=int, freeze=int, unfreeze=int))
    monkeypatch.setattr(experiments, "SECONDS", dict.fromkeys(SCALES, 0.02))
    monkeypatch.setattr(
        runner, "in_own_process", lambda module, asked: import_module(module).measure(asked)
    )


def test_that_the_data_is_sound() -> None:
    assert len(EXPERIMENTS) >= 32
    for of in EXPERIMENTS.values():
        assert of.claim.endswith("."), of.name
        assert set(of.quantities) <= QUANTITIES.keys()
        known = {field.name for field in fields(class_of(of))}
        varied = {key for own in of.variants.values() for key in own}
        assert {*of.parameters, *varied} <= {*known, "model"}
        assert of.axis in {*known, "subscriptions"}
        assert set(of.most) <= {label for one in EXPERIMENTS.values() for label in one.algorithms}
        for name in ("small", "full"):
            assert len(list(of.points(name))) == len(getattr(of, name)) * len(of.variants)  # type: ignore[arg-type]


def class_of(of: Experiment) -> type[Any]:
    return workload_class(of.workload) if of.workload in WORKLOADS else Setting


def test_that_every_algorithm_is_in_a_figure() -> None:
    columns = {(of.workload, c) for of in EXPERIMENTS.values() for c in of.algorithms.values()}
    engines = {Configuration.of(c).engine for workload, c in columns if workload in WORKLOADS}
    assert engines == {*MATCHERS, "graphmatch", "scan"}
    orders = {column for workload, column in columns if workload not in WORKLOADS}
    assert orders == {*ORDERS, "naive", "greedy", BOUND}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", FEW)
def test_that_a_figure_is_measured(name: str) -> None:
    sound(tiny(name))


@pytest.mark.long
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_that_every_figure_is_measured_at_its_small_scale(name: str) -> None:
    sound(EXPERIMENTS[name])


def sound(of: Experiment) -> None:
    records, rows, wrong = measured(of, "small", {})
    assert not wrong
    assert any(row["matches_per_event"] for row in rows)
    quantities, variants, algorithms, *_ = map(set, zip(*records, strict=True))
    assert quantities == set(of.quantities)
    assert variants == set(of.variants)
    assert algorithms - {BOUND} == of.algorithms.keys() - {BOUND}


@pytest.mark.usefixtures("here")
def test_that_its_files_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        experiments, "EXPERIMENTS", {n: tiny(n) for n in ("gtopss-9a", "gryphon-visits")}
    )
    for name in ("gtopss-9a", "gryphon-visits"):
        ran = CliRunner().invoke(app, ["bench", "paper", name, "--output", str(tmp_path)])
        assert ran.exit_code == 0, ran.output
        assert EXPERIMENTS[name].claim in ran.stdout
    figures = read_results(tmp_path / "results.json")
    assert set(figures) == {"gtopss-9a", "gryphon-visits"}
    assert figures["gryphon-visits"]["scale"] == "small"
    assert (tmp_path / "gryphon-visits.svg").read_bytes().startswith(b"<?xml")
    ran = CliRunner().invoke(
        app, ["bench", "paper", "gtopss-9a", "--json", "--output", "/dev/null"]
    )
    assert ran.exit_code == 2
    assert "cannot be written: " in ran.stderr


def test_what_goes_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: str, asked: str) -> dict[str, Any]:
        if json.loads(asked)[2][0] > 40:
            return {"failed": "MemoryError"}
        found = runner.measure(asked)
        wrong = {"agrees": False, "disagreement": "event 0: a 1, b 2"}
        return {"rows": [{**row, **wrong} for row in found["rows"]]}

    monkeypatch.setattr(runner, "in_own_process", run)
    monkeypatch.setattr(experiments, "EXPERIMENTS", {"dexin-2": tiny("dexin-2")})
    assert experiments.run(["dexin-2"], "small", tmp_path) == 2
    told = capsys.readouterr()
    assert "subscriptions 80 : failed: MemoryError" in told.err
    assert "the engines do not agree, so their times say nothing: event 0" in told.err
    assert read_results(tmp_path / "results.json")["dexin-2"]["records"] == []


def test_the_list() -> None:
    ran = CliRunner().invoke(app, ["bench", "paper", "LIST"])
    assert ran.exit_code == 0
    ran_json = CliRunner().invoke(app, ["bench", "paper", "--json"])
    rows = [json.loads(line) for line in ran_json.stdout.splitlines()]
    assert [row["experiment"] for row in rows] == list(EXPERIMENTS)
    for row in rows:
        assert f"{row['experiment']}  {row['paper']}, {row['figure']}\n" in ran.stdout


def test_that_every_figure_has_a_verdict_with_a_measure_in_the_results() -> None:
    assert sorted(MATCHERS) == sorted(name for of in IMPLEMENTED_WITH.values() for name in of)
    kind = {name: kind for kind, names in IMPLEMENTED_WITH.items() for name in names}
    results = read_results(RESULTS)
    for of in EXPERIMENTS.values():
        assert of.verdict in VERDICTS, of.name
        assert of.finding.endswith("."), of.name
        measured = {(record[0], record[2]) for record in results[of.name]["records"]}
        judged = {(quantity, label) for quantity, all_ in of.measure.items() for label in all_}
        assert judged, of.name
        assert judged <= measured, of.name
        for quantity in of.measure.keys() & set(IMPLEMENTATION_BOUND):
            columns = (of.algorithms[label] for label in of.measure[quantity])
            kinds = {kind[Configuration.of(column).engine] for column in columns}
            assert len(kinds) == 1 or of.verdict == "not comparable", of.name


def test_that_the_page_has_every_figure() -> None:
    page = (ROOT / "docs/benchmarks-papers.md").read_text(encoding="utf-8")
    assert page.count("<!-- verdicts -->") == 1
    for paper in {name.partition("-")[0] for name in EXPERIMENTS}:
        assert page.count(f"<!-- figures {paper} -->") == 1, paper
