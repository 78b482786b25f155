"""Every peer finds what a plain search of the workload's arrays finds."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import chain, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmatch.bench.peers import PEERS, peer_class
from graphmatch.bench.peers.graphmatch import seen
from graphmatch.bench.peers.gtopss import GToPSSPeer
from graphmatch.bench.peers.kernels import BLOCK
from graphmatch.bench.peers.naive import NaivePeer
from graphmatch.bench.peers.parse import ParsePeer
from graphmatch.bench.peers.scan import ScanPeer
from graphmatch.bench.workloads import WORKLOADS, workload_class
from graphmatch.bench.workloads.attributes import AttributeParameters, AttributeWorkload
from graphmatch.bench.workloads.concepts import ConceptWorkload
from graphmatch.bench.workloads.graph import GraphWorkload
from graphmatch.bench.workloads.ingest import IngestWorkload
from graphmatch.bench.workloads.keywords import KeywordWorkload
from graphmatch.bench.workloads.workload import Size, Workload
from graphmatch.engine import Engine
from graphmatch.matcher import Match, MatchReport
from semantic.attributes.events import event
from semantic.attributes.subscription import AttributeParser
from semantic.publication import Publication
from semantic.terms import Solution

ROOT = Path(__file__).parents[3]
SIZE = Size(120, 4, seed=3)
PARAMETERS: dict[str, dict[str, Any]] = {
    "graph": {"matches": 5, "shapes": 20},
    "attributes": {"attributes": 4, "absent": 0.5, "matching": 0.1, "values": "zipf", "shapes": 5},
    "concepts": {"height": 3, "matches": 5},
    "keywords": {"feeds": ROOT / "data/feeds"},
    "ingest": {"syntax": "turtle", "matches": 5, "shapes": 20},
}
KNOWN = [
    (workload, peer)
    for workload in WORKLOADS
    for peer in PEERS
    if workload in peer_class(peer).workloads and peer_class(peer).matches
]


def make(name: str, **parameters: Any) -> Workload:
    class_ = workload_class(name)
    return class_(SIZE, class_.parameters_class(**{**PARAMETERS[name], **parameters}))


# --- The plain search ----------------------------------------------------------------------------


def meets(patterns: list[list[int]], edges: set[tuple[int, int, int]]) -> bool:
    """Try every pair of nodes for the two variables."""
    if not all((s, p, o) in edges for s, p, o in patterns if s >= 0 and o >= 0):
        return False
    nodes = sorted({node for s, _, o in edges for node in (s, o)})
    for values in product(nodes, nodes):
        put = [(values[~s] if s < 0 else s, p, values[~o] if o < 0 else o) for s, p, o in patterns]
        if edges.issuperset(put):
            return True
    return False


def within(made: AttributeWorkload | ConceptWorkload, number: int, columns: range) -> list[bool]:
    values = made.rows.values[number].tolist()
    return [
        all(low[column] <= values[column] <= high[column] for column in columns)
        for low, high in zip(made.rows.low.T.tolist(), made.rows.high.T.tolist(), strict=True)
    ]


def below(class_: int, above: int) -> bool:
    while class_ > above:
        class_ //= 2
    return class_ == above


def searched(made: Workload, number: int) -> list[int]:
    if isinstance(made, IngestWorkload):
        made = make("graph")  # that documents are its graphs is tested elsewhere
    if isinstance(made, GraphWorkload):
        edges = {(s, p, o) for s, p, o in made.graph(number).tolist()}
        found = [meets(patterns, edges) for patterns in made.patterns.tolist()]
    elif isinstance(made, AttributeWorkload):
        found = within(made, number, range(4))
    elif isinstance(made, ConceptWorkload):
        own = made.event_classes(number)
        ranges = within(made, number, range(3, 7))
        found = [
            inside and all(below(class_, above) for class_, above in zip(own, classes, strict=True))
            for classes, inside in zip(made.classes.tolist(), ranges, strict=True)
        ]
    else:
        assert isinstance(made, KeywordWorkload)
        found = titled(made, made.publication(number))
    return [place for place, matched in enumerate(found) if matched]


def titled(made: KeywordWorkload, item: Publication) -> list[bool]:
    """Say which subscriptions have all their words in one of an item's titles."""
    titles = [
        object_.value.lower()  # type: ignore[union-attr]
        for _, property_, object_ in item.triples
        if property_.value == "http://purl.org/rss/1.0/title"  # type: ignore[union-attr]
    ]
    return [
        any(all(word in title for word in words) for title in titles)
        for words in made.subscriptions
    ]


@pytest.fixture(scope="module")
def expected() -> dict[str, list[list[int]]]:
    return {
        name: [searched(make(name), number) for number in range(SIZE.events)] for name in WORKLOADS
    }


def test_that_events_match_some_and_not_all(expected: dict[str, list[list[int]]]) -> None:
    for name, found in expected.items():
        assert sum(map(len, found)) > 0, name
        assert max(map(len, found)) < SIZE.subscriptions / 2, name
    assert all(len(found) == 5 for found in expected["graph"])
    assert all(len(found) >= 5 for found in expected["concepts"])


@pytest.mark.parametrize(("workload", "name"), KNOWN)
def test_a_peer_finds_what_a_plain_search_finds(
    workload: str, name: str, expected: dict[str, list[list[int]]]
) -> None:
    assert peer_class(name).is_installed(), "pip install -e '.[dev]'"
    made, peer = make(workload), peer_class(name)()
    peer.build(peer.given(made))
    for number in (*range(SIZE.events), 0):  # the first once more: matching leaves nothing behind
        found = peer.match(peer.event(made, number))
        assert sorted(peer.numbers(found).tolist()) == expected[workload][number]
        assert all(value >= 0 for value in peer.counters(found).values())
    peer.close()


@pytest.mark.parametrize("syntax", ["nt", "turtle"])
def test_every_syntax_says_the_same(syntax: str, expected: dict[str, list[list[int]]]) -> None:
    made, peer = make("ingest", syntax=syntax), peer_class("graphmatch")()
    peer.build(peer.given(made))
    for number in range(SIZE.events):
        found = peer.match(peer.event(made, number))
        assert sorted(peer.numbers(found).tolist()) == expected["ingest"][number]


def test_that_every_item_of_a_feed_is_matched() -> None:
    made, peer = make("ingest", syntax="rss", feeds=ROOT / "data/feeds"), peer_class("graphmatch")()
    asked = make("keywords")
    assert isinstance(made, IngestWorkload)
    assert isinstance(asked, KeywordWorkload)
    peer.build(peer.given(made))
    several = 0
    for number in range(SIZE.events):
        items = made.publications(number)
        several += len(items) > 1
        found = peer.match(peer.event(made, number))
        wanted = [np.flatnonzero(titled(asked, item)).tolist() for item in items]
        assert sorted(peer.numbers(found).tolist()) == sorted(chain.from_iterable(wanted))
        assert peer.counters(found)["matched"] == sum(map(len, wanted))
    assert several


@pytest.mark.parametrize("syntax", ["nt", "turtle", "rss"])
def test_the_parser_alone(syntax: str) -> None:
    made = make("ingest", syntax=syntax, feeds=ROOT / "data/feeds")
    peer = ParsePeer()
    peer.build(peer.given(made))
    whole, data = peer.event(made, 0)
    peer.match((whole, data))
    with pytest.raises(SyntaxError):
        peer.match((whole, data[: len(data) // 2].rstrip(b" .\n")))  # it reads all of it
    assert peer.numbers(None).size == 0


def test_that_solutions_of_one_match_in_ten_are_read() -> None:
    looked_at: list[int] = []

    class Noted(Match):
        @property
        def solutions(self) -> tuple[Solution, ...]:  # type: ignore[override]
            looked_at.append(int(self.subscription))
            return ()

        @solutions.setter
        def solutions(self, _: object) -> None:
            """Take what the dataclass gives, and forget it."""

    matches = tuple(Noted(str(number), "p", ()) for number in range(25))
    found = seen(MatchReport("p", matches))
    assert found.ids == [str(number) for number in range(25)]
    assert looked_at == [0, 10, 20]


@pytest.mark.parametrize("workload", ["attributes", "concepts"])
def test_constraints_on_attributes_say_the_same(
    workload: str, expected: dict[str, list[list[int]]]
) -> None:
    made: Any = make(workload)
    engine, parser = Engine(made.ontology()), AttributeParser()
    for number, where in enumerate(made.constraints()):
        engine.subscribe(parser.subscription(str(number), where))
    for number, found in enumerate(expected[workload]):
        report = engine.match(event(f"urn:e:{number}", made.attributes(number)))
        assert sorted(int(match.subscription) for match in report) == found


def test_a_part_of_the_constraints() -> None:
    made = make("attributes")
    assert isinstance(made, AttributeWorkload)
    whole = made.constraints()
    assert made.constraints(slice(7, 30)) == whole[7:30]
    assert len(whole) == SIZE.subscriptions


def test_every_workload_has_peers() -> None:
    assert {workload for workload, _ in KNOWN} == set(WORKLOADS)
    for name in PEERS:
        assert peer_class(name).name == name
        assert peer_class(name).workloads <= set(WORKLOADS)


# --- Graphs that no workload has -----------------------------------------------------------------

names = st.integers(0, 4)
nodes = st.one_of(names, st.sampled_from([-1, -2]))
labels = st.integers(0, 2)
graphs = st.sets(st.tuples(names, labels, names), max_size=12)


def subscriptions(count: int) -> st.SearchStrategy[list[list[tuple[int, int, int]]]]:
    patterns = st.lists(st.tuples(nodes, labels, nodes), min_size=count, max_size=count)
    return st.lists(patterns, min_size=1, max_size=12)


@given(subscriptions=st.integers(1, 4).flatmap(subscriptions), graphs=st.lists(graphs, max_size=3))
def test_any_graph(
    subscriptions: list[list[tuple[int, int, int]]], graphs: list[set[tuple[int, int, int]]]
) -> None:
    """Self-loops, the same edge twice, variables only, two variables bound to one node."""
    patterns = np.array(subscriptions, np.int32)
    gtopss, naive = GToPSSPeer(), NaivePeer()
    gtopss.build(patterns)
    gated = [any(s >= 0 or o >= 0 for s, _, o in rows) for rows in subscriptions]
    kept: Any = SimpleNamespace(name="graph", patterns=patterns[gated])
    if any(gated):
        naive.build(kept)
    for graph in graphs:
        edges = sorted(graph)
        expected = [meets([list(row) for row in rows], graph) for rows in subscriptions]
        triples = np.array(edges, np.int32).reshape(-1, 3)
        found = gtopss.numbers(gtopss.match(triples)).tolist()
        assert sorted(found) == np.flatnonzero(expected).tolist()
        if any(gated):
            found = naive.match(edges)
            assert sorted(found) == np.flatnonzero(np.array(expected)[gated]).tolist()


@pytest.mark.parametrize("rows", [1, BLOCK, BLOCK + 1, 2 * BLOCK + 3])
def test_a_scan_of_several_blocks(rows: int) -> None:
    made = AttributeWorkload(Size(rows, 4), AttributeParameters(attributes=3, matching=0.1))
    peer = ScanPeer()
    peer.build(peer.given(made))
    for number, values in enumerate(made.rows.values):
        inside = (made.rows.low <= values[:, None]) & (values[:, None] <= made.rows.high)
        found = peer.match(peer.event(made, number))
        assert found.tolist() == np.flatnonzero(inside.all(axis=0)).tolist()


def test_without_compiling() -> None:
    """The same once more, the loops run as plain Python."""
    which = "(gtopss or scan) and plain_search or several_blocks"
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", which],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert "7 passed" in ran.stdout, ran.stdout
