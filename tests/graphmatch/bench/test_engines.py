"""Every engine, in every form, agrees with a plain search of the workload's arrays."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from graphmatch.bench import adapters, matching, peers, process, runner
from graphmatch.bench.adapters import ENGINES, Adapter, NumberedEvent, adapter
from graphmatch.bench.peers import PEERS
from graphmatch.bench.runner import measured
from graphmatch.bench.workloads import Size, TabularWorkload, Workload, workload_class
from graphmatch.bench.workloads.graph import GraphWorkload
from graphmatch.bench.workloads.keywords import KeywordWorkload
from graphmatch.cli import app
from graphmatch.command import options
from semantic.errors import pip_install

FEEDS = str(Path(__file__).parents[3] / "data/feeds")
SIZE = Size(60, 3, seed=3)
PARAMETERS: dict[str, dict[str, Any]] = {
    "graph": {"matches": 5, "shapes": 0},
    "attributes": {"attributes": 4, "matching": 0.1, "values": "zipf"},
    "concepts": {"height": 3, "matches": 5},
    "keywords": {"feeds": FEEDS, "heard": 40},
    "whole": {"feeds": FEEDS, "heard": 40, "whole": True},
    "ranges": {"attributes": 3, "width": 0.5},
    "trees": {"height": 2, "matches": 5},
    "equalities": {"attributes": 3},
}


def make(name: str, size: Size = SIZE) -> Workload:
    class_ = workload_class(name.replace("whole", "keywords"))
    return class_(size, **PARAMETERS[name])


def engines(name: str) -> list[str]:
    """The engines of a workload, and those peers that are installed."""
    every = [*ENGINES, *(peer for peer, made in PEERS.items() if not made.missing())]
    return [engine for engine in every if name in adapter(engine).forms]


# --- The plain search ----------------------------------------------------------------------------


def meets(patterns: list[list[int]], edges: set[tuple[int, int, int]]) -> bool:
    """Try every known node for each variable, edge by edge."""
    bound: list[dict[int, int]] = [{}]
    for s, p, o in patterns:
        extended = []
        for known, (start, property_, end) in product(bound, edges):
            new = dict(known)
            pairs = ((s, start), (o, end))
            if property_ == p and all(
                (new.setdefault(part, node) if part < 0 else part) == node for part, node in pairs
            ):
                extended.append(new)
        bound = extended
    return bool(bound)


def searched(made: Workload, number: int, serial: int | None) -> list[int]:
    if isinstance(made, GraphWorkload):
        edges = {(s, p, o) for s, p, o in made.graph(number, serial).tolist()}
        return [n for n, rows in enumerate(made.patterns.tolist()) if meets(rows, edges)]
    if isinstance(made, KeywordWorkload):
        items = [made.titles(item) for item in made.publications(number)]
        return sorted(
            n
            for n, words in enumerate(made.subscriptions)
            for several in items
            if any(all(word in title for word in words) for title in several)
        )
    assert isinstance(made, TabularWorkload)
    values = made.rows.values[number][:, None]
    inside = ((made.rows.low <= values) & (values <= made.rows.high)).all(axis=0)
    return [int(n) for n in np.flatnonzero(inside)]


def answers(peer: Adapter, made: Workload, form: str, serial: int | None) -> list[list[int]]:
    asked: list[NumberedEvent] = [(number, serial) for number in range(made.size.events)]
    events = peer.prepare(made, asked, form)
    found = [found for event in events for found in peer.match(event, form)]
    return [sorted(peer.numbers(answer).tolist()) for answer in found]


@pytest.mark.parametrize("name", ["graph", "attributes", "concepts", "keywords", "whole"])
def test_every_engine_finds_what_a_search_finds(name: str) -> None:
    made = make(name)
    whole, name = name == "whole", name.replace("whole", "keywords")
    for serial in (None, 7) if made.renews else (None,):
        expected = [searched(made, number, serial) for number in range(made.size.events)]
        assert any(expected)
        for engine in engines(name):
            peer = adapter(engine)
            if not peer.matches or (peer.whole and name == "keywords" and not whole):
                continue
            peer.build(peer.given(made))
            for form in peer.forms[name]:
                if whole and form == "feed":  # a feed has more than titles
                    continue
                assert answers(peer, made, form, serial) == expected, (engine, form)
            peer.close()


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("graph", ["graphmatch:nt", "graphmatch:nt+new", "dictionary:integers+new", "parse:nt"]),
        ("ranges", ["graphmatch:arrow", "htree:values", "betree:values", "scan:integers"]),
        ("trees", ["graphmatch:dicts", "ctps:values"]),
        ("equalities", ["graphmatch:arrow", "graphmatch:core", "gryphon:values"]),
    ],
)
def test_columns_agree_in_one_run(name: str, columns: list[str]) -> None:
    rows = measured(name, columns, Size(40, 4), PARAMETERS[name])
    assert [row["column"] for row in rows] == columns
    assert all(row["agrees"] for row in rows), rows[0].get("disagreement")
    assert {row["events"] for row in rows} == {4}
    assert all((row["matches_per_event"] is None) == (row["engine"] == "parse") for row in rows)


# --- The runner ----------------------------------------------------------------------------------


class Changed(Adapter):
    """An adapter that omits a match, or that claims to be inexact and reports everything."""

    forms = adapter("scan").forms

    def __init__(self, *, exact: bool) -> None:
        self.exact = exact
        self.scan = adapter("scan")

    def given(self, workload: Any) -> Any:
        self.count = workload.size.subscriptions
        return self.scan.given(workload)

    def build(self, given: Any) -> None:
        self.scan.build(given)

    def event(self, workload: Any, number: int, serial: int | None, form: str) -> Any:
        return self.scan.event(workload, number, serial, form)

    def match(self, event: Any, form: str) -> list[Any]:
        (found,) = self.scan.match(event, form)
        return [found[1:] if self.exact else np.arange(self.count)]


def run_with(monkeypatch: pytest.MonkeyPatch, *, exact: bool) -> list[dict[str, Any]]:
    monkeypatch.setattr(
        runner, "adapter", lambda n, o: Changed(exact=exact) if n == "changed" else adapter(n, o)
    )
    columns = ["changed:integers", "scan:integers"]
    found = measured("ranges", columns, Size(200, 5), {"attributes": 2, "width": 0.5})
    assert [row["column"] for row in found] == columns
    rows: list[dict[str, Any]] = found
    return rows


def test_engines_that_do_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = run_with(monkeypatch, exact=True)
    assert not any(row["agrees"] for row in rows)
    assert "event 0: changed:integers " in rows[0]["disagreement"]
    assert "(checksum " in rows[0]["disagreement"]


def test_inexact_engines_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    generous, right = run_with(monkeypatch, exact=False)
    assert generous["agrees"]
    assert generous["matches_per_event"] == 200 > right["matches_per_event"]
    assert (generous["exact"], right["exact"]) == (False, True)


def test_peers_that_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "in_own_process", lambda _, asked: runner.measure(asked))
    monkeypatch.setattr(adapters, "find_spec", lambda _: None)
    monkeypatch.setattr(peers, "which", lambda _: None)
    columns = ["clips:facts", "dictionary:integers", "lucene:titles"]
    found = runner.asked("graph", columns, Size(40, 2), parameters={})
    assert [row["column"] for row in found["rows"]] == ["dictionary:integers"]
    assert found["missing"]["clips"] == pip_install("peers")
    assert f"mvn dependency:get -Dartifact={peers.LUCENE}" in found["missing"]["lucene"]


def test_passes_and_options() -> None:
    columns = ["gryphon", "gryphon#collapse=false&successors=false", "graphmatch:core", "scan"]
    rows = measured("equalities", columns, Size(200, 6), {}, passes=3)
    assert [row["column"] for row in rows] == columns
    assert {row["events"] for row in rows} == {6}
    assert rows[0]["counters"]["probes"] < rows[1]["counters"]["probes"]
    assert rows[0]["bytes"] > 0


def test_a_column_may_have_fewer_subscriptions() -> None:
    columns = ["scan:integers", "scan:integers@50", "duckdb:statement"]
    rows = measured("attributes", columns, Size(500, 5), {"attributes": 2})
    assert [row["subscriptions"] for row in rows] == [500, 50, 500]
    assert rows[0]["agrees"]
    assert rows[0]["matches_per_event"] == rows[2]["matches_per_event"]


def test_a_column_that_has_used_up_its_time() -> None:
    rows = measured("graph", ["dictionary:integers"], Size(100, 60), {}, seconds=0.0)
    assert rows[0]["events"] == runner.LEAST_EVENTS


# --- The command ---------------------------------------------------------------------------------


def invoked(*arguments: str) -> tuple[int, str, str]:
    ran = CliRunner().invoke(app, ["bench", *arguments])
    return ran.exit_code, ran.stdout, ran.stderr


@pytest.mark.parametrize(
    ("workload", "parameters", "engines", "forms", "columns"),
    [
        (
            "graph",
            {},
            ["graphmatch", "dictionary", "parse"],
            ["turtle", "core"],
            [
                *("graphmatch:turtle", "graphmatch:turtle+new", "graphmatch:core"),
                *("dictionary:integers", "dictionary:integers+new"),
                *("parse:turtle", "parse:turtle+new"),
            ],
        ),
        (
            "concepts",
            {},
            ["graphmatch", "scan"],
            [],
            ["graphmatch:arrow", "graphmatch:dicts", "scan:integers"],
        ),
        ("attributes", {}, ["mokaccino", "scan"], [], ["mokaccino:document", "scan:integers"]),
        ("keywords", {}, ["lucene"], [], []),
        ("keywords", {"whole": True}, ["lucene"], [], ["lucene:titles"]),
        ("keywords", {"topics": 0.5}, [], ["objects"], ["graphmatch:objects"]),
    ],
)
def test_columns_that_are_chosen(
    workload: str,
    parameters: dict[str, object],
    engines: list[str],
    forms: list[str],
    columns: list[str],
) -> None:
    assert list(matching.columns_of(workload, parameters, engines, forms)) == columns


def test_rows_and_a_table_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "in_own_process", lambda _, asked: runner.measure(asked))
    arguments = ["graph", "--subscriptions", "60", "--events", "4", "--engines", "dictionary,parse"]
    status, out, err = invoked(*arguments, "--json")
    assert status == 0, err
    rows = [json.loads(line) for line in out.splitlines()]
    engines = "dictionary:integers", "parse:nt"
    assert [row["column"] for row in rows] == [e + new for e in engines for new in ("", "+new")]
    assert rows[0]["ratio"] == 1
    status, out, err = invoked(*arguments, "--forms", "turtle")
    assert status == 0, err
    assert "graph, 60 subscriptions (seed 1, edges 8" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["graph", "--height", "3"], "bench graph takes no --height"),
        (["graph", "a.ttl"], "bench graph takes no FILES"),
        (["all", "--subscriptions", "5"], "bench all takes no --subscriptions"),
        (["all", "nothing"], "bench all: 'nothing' is unknown"),
        (["graph", "--subscriptions", "many"], "'many' is not a number of subscriptions"),
        (["graph", "--engines", "oracle"], "--engines: 'oracle' is unknown"),
        (["graph", "--engines", "scan"], "--engines: 'scan' is unknown"),
        (["graph", "--forms", "arrow"], "--forms: 'arrow' is unknown"),
        (["graph", "--scale", "full"], "bench graph takes no --scale"),
        (["graph", "--output", "elsewhere"], "bench graph takes no --output"),
        (["paper", "gtopss-9z"], "figure: 'gtopss-9z' is unknown"),
        (["paper", "LIST", "--events", "3"], "bench paper takes no --events"),
    ],
)
def test_wrong_arguments_are_refused(arguments: list[str], said: str) -> None:
    status, _, err = invoked(*arguments)
    assert status == 2
    assert said in err


def test_that_the_extra_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "find_spec", lambda name: None)
    status, _, err = invoked("paper", "LIST")
    assert status == 2
    assert "it needs ahocorasick_rs, bitarray, duckdb, matplotlib, numba, pandas" in err
    assert pip_install("bench") in err


def test_a_process_that_fails() -> None:
    row = process.in_own_process("graphmatch.bench.measures", "no request")
    assert set(row) == {"failed"}
    assert "JSONDecodeError" in row["failed"]
