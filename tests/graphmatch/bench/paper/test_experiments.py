"""Every experiment, tiny: it runs, its algorithms agree, and its files have what they must."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from graphmatch.bench.paper import EXPERIMENTS, experiment
from graphmatch.bench.paper.claims import QUANTITIES
from graphmatch.bench.paper.entrants import OURS
from graphmatch.bench.paper.experiment import SCALES, Experiment
from graphmatch.bench.paper.running import write
from graphmatch.command.console import CommandConsole
from graphmatch.published import MATCHERS
from tests.graphmatch.bench.paper.small_experiments import EVENTS, results

ROOT = Path(__file__).parents[4]
KEYS = {
    "label",
    "algorithm",
    "exact",
    "events",
    "subscribe_seconds",
    "index_bytes",
    "resident_bytes",
    "bytes",
    "bytes_of",
    "median_microseconds",
    "deviation_microseconds",
    "matches_per_event",
    "steps_per_subscription",
    "counters",
    "too_many_per_event",
    "too_few_per_event",
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_that_it_runs_and_its_algorithms_agree(name: str) -> None:
    run = results(name)
    assert run.is_sound(), [(one.failed, one.disagreement) for one in run.measured]
    there = {line.algorithm for line in run.experiment.lines} & {*MATCHERS, *OURS}
    for one in run.measured:
        labels = [row["label"] for row in one.rows]
        left_out = [each["label"] for each in one.left_out]
        assert sorted(labels + left_out) == sorted(line.called for line in run.experiment.lines)
        assert there or not labels
        for row in one.rows:
            unsubscribed = {"unsubscribe_microseconds"} if run.experiment.forgets else set()
            assert set(row) == KEYS | unsubscribed
            assert 3 <= row["events"] <= EVENTS
            assert row["median_microseconds"] > 0
            if not row["exact"]:
                assert row["too_many_per_event"] is not None


ONE_OF_EACH_PAPER = {name.partition("-")[0]: name for name in reversed(list(EXPERIMENTS))}.values()


@pytest.mark.parametrize(
    "name",
    [
        name if name in ONE_OF_EACH_PAPER else pytest.param(name, marks=pytest.mark.long)
        for name in EXPERIMENTS
    ],
)
def test_that_its_files_are_written(name: str, tmp_path: Path) -> None:
    run, err = results(name), CommandConsole(stderr=True)
    write(run, tmp_path / "deep", err)
    written = {path.name: path for path in (tmp_path / "deep").iterdir()}
    assert set(written) == {f"{name}.{kind}" for kind in ("json", "md", "svg", "png")}
    found = json.loads(written[f"{name}.json"].read_text(encoding="utf-8"))
    of = run.experiment
    assert (found["experiment"], found["claim"], found["scale"]) == (name, of.claim, "small")
    assert len(found["points"]) == len(run.measured)
    assert found["agrees"]
    assert len(found["verdicts"]) == len(of.checks)
    section = written[f"{name}.md"].read_text(encoding="utf-8")
    assert section.startswith(f"### `{name}`\n")
    assert of.claim in section
    assert section.count(" MB") + section.count(" µs") + section.count(" ms") + section.count(" s")
    picture = written[f"{name}.svg"].read_bytes()
    assert b"Paper: " in picture
    assert len(picture) < 100_000
    assert written[f"{name}.png"].read_bytes().startswith(b"\x89PNG")
    write(run, tmp_path, err)
    assert (tmp_path / f"{name}.svg").read_bytes() == picture


def test_that_each_is_described() -> None:
    for name in EXPERIMENTS:
        assert experiment(name).name == name
        described(experiment(name))


def described(of: Experiment) -> None:
    assert of.claim.endswith("."), of.name
    assert set(of.points) == set(of.efforts) == set(SCALES)
    sweeps = {panel.sweep for panel in of.panels}
    labels = [line.called for line in of.lines]
    assert len(set(labels)) == len(labels)
    for scale in SCALES:
        assert {point.sweep for point in of.points[scale]} == sweeps
    bounds = {label for panel in of.panels for label in panel.bounds}
    for check in of.checks:
        assert check.where.key in QUANTITIES
        assert check.where.sweep in sweeps
        verdict = check.of({})
        assert verdict.holds is None
        named = {word for word in re.split(r"[ :]+", verdict.asks) if word in {*labels, *bounds}}
        assert named, verdict.asks


def test_that_the_page_has_every_figure() -> None:
    docs = ROOT / "docs"
    page = (docs / "benchmarks-papers.md").read_text(encoding="utf-8")
    for name in EXPERIMENTS:
        assert f"### `{name}`\n\n" in page, name
        assert experiment(name).claim in page, name
        assert f"![{name}](images/paper/{name}.svg)" in page, name
        assert (docs / f"images/paper/{name}.svg").is_file(), name


def test_that_every_algorithm_is_in_an_experiment() -> None:
    named = {line.algorithm for name in EXPERIMENTS for line in experiment(name).lines}
    assert named == {*MATCHERS, *OURS}


def test_that_every_algorithm_is_measured_somewhere() -> None:
    """That an experiment names it is not enough: it may have been left out of each."""
    measured = {
        row["algorithm"]
        for name in EXPERIMENTS
        for one in results(name).measured
        for row in one.rows
    }
    assert measured == {*MATCHERS, *OURS}


def test_that_something_matches() -> None:
    """Agreement on nothing would say little."""
    silent = [
        name
        for name in EXPERIMENTS
        if any(one.rows for one in results(name).measured)
        and not any(row["matches_per_event"] for o in results(name).measured for row in o.rows)
    ]
    assert silent == []
