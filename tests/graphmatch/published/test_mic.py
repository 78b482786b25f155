"""MIC: the oracle's answers, expanded edges and counts, and space reclaimed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal

from graphmatch import SubscriptionParser
from graphmatch.published import make
from graphmatch.published.base import Interval
from graphmatch.published.base_graph import GraphPattern
from graphmatch.published.reconstructed.mic import Entry, Mic, Part
from semantic import Ontology, Publication
from semantic.terms import Triple
from semantic.vocabulary import TYPE
from tests.graphmatch.published.patterns import GRAPHS, agree
from tests.graphmatch.published.small import edges, filled, node, tree
from tests.strategies import Scenario, scenarios


@given(scenarios(GRAPHS, entailment="none"), st.data())
def test_that_it_agrees_with_the_oracle(scenario: Scenario, data: st.DataObject) -> None:
    agree(lambda o: make("mic", o), scenario, data)


def mic(*queries: str, ontology: Ontology | None = None) -> Mic:
    return filled(Mic(ontology or Ontology()), *queries)


def entries(index: Mic) -> int:
    return sum(len(part.entries) for pairs in index._labels.values() for part in pairs.values())


@pytest.mark.parametrize("height", [1, 2, 3, 4, 5])
def test_that_an_edge_is_there_once_for_each_class_below(height: int) -> None:
    """CTPS, section 2: (Ts, Tp, To); the product if both ends are constrained."""
    one = "SELECT * { ?x :p ?y FILTER(gm:descendantOf(?y, :C1)) }"
    two = "SELECT * { ?x :p ?y FILTER(gm:descendantOf(?x, :C1) && gm:descendantOf(?y, :C2)) }"
    below = 2 ** (height + 1) - 1
    assert entries(mic(one, ontology=tree(height))) == below
    assert entries(mic(two, ontology=tree(height))) == below * (below // 2)


def test_that_nothing_is_below_two_classes_apart() -> None:
    query = "SELECT * { ?x :p ?y FILTER(gm:descendantOf(?y, :C2) && gm:descendantOf(?y, :C3)) }"
    index = mic(query, ontology=tree(2))
    assert entries(index) == 0
    assert not index.match(edges(("A", "p", "C2"), ("A", "p", "C4"))).matches


def test_that_no_hierarchy_is_walked_when_matching() -> None:
    """A label and four pairs are looked up for every height."""
    query = "SELECT * { ?x :p ?y FILTER(gm:descendantOf(?y, :C1)) }"
    for height in (1, 3, 5):
        report = mic(query, ontology=tree(height)).match(edges(("A", "p", f"C{2**height}")))
        assert (report.counters.probes, report.counters.matched) == (1 + 4, 1)
        assert report.counters.verified == 0


def test_an_instance_that_the_publication_states() -> None:
    index = mic("SELECT * { ?x :p ?y FILTER(gm:descendantOf(?y, :C1)) }", ontology=tree(2))
    stated: Triple = (node("i"), TYPE, node("C5"))
    publication = Publication.of("p", [*edges(("A", "p", "i")).triples, stated])
    (match,) = index.match(publication)
    assert match.solutions == ({"x": node("A"), "y": node("i")},)
    assert not index.match(edges(("A", "p", "i"))).matches


def test_that_a_constant_is_no_class_of_what_is_below() -> None:
    index = mic("SELECT * { ?x :p :C1 }", ontology=tree(2))
    stated: Triple = (node("i"), TYPE, node("C1"))
    publication = Publication.of("p", [*edges(("A", "p", "i")).triples, stated])
    assert not index.match(publication).matches


def test_that_edges_are_counted_and_not_hits() -> None:
    """One edge of the first is hit three times, the other is not; the second is complete."""
    index = mic("SELECT * { ?x :p ?y . ?y :q ?z }", "SELECT * { ?x :p ?y }")
    counters = index.match(edges(("A", "p", "B"), ("A", "p", "C"), ("B", "p", "D"))).counters
    assert (counters.candidates, counters.joins, counters.matched) == (2, 0, 1)


def test_that_candidates_are_joined() -> None:
    """Both edges are hit, with different vertices for ?y."""
    counters = mic("SELECT * { ?x :p ?y . ?y :q ?z }").match(
        edges(("A", "p", "B"), ("C", "q", "D"))
    )
    assert (counters.counters.joins, len(counters)) == (1, 0)


def test_that_ranges_that_do_not_hold_the_number_are_not_hit() -> None:
    several = (f"SELECT * {{ ?x :p ?y FILTER(?y >= {n} && ?y < {n + 10}) }}" for n in range(50))
    counters = mic(*several).match(edges(("A", "p", Literal(30)))).counters
    assert counters.matched == 10  # These are 21 to 30.
    assert 10 <= counters.candidates <= 11  # One end is rounded.


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_the_third_level(ends: list[tuple[int, int]]) -> None:
    """Each number is in all ranges around it, once."""
    root = Part()
    ranges = [Interval(min(pair), max(pair)) for pair in ends]
    pattern = GraphPattern.of(SubscriptionParser().parse("s", "ASK { <urn:a> <urn:p> ?x }"))
    entries = [Entry(pattern, number, False, False) for number in range(len(ranges))]
    for range_, entry in zip(ranges, entries, strict=True):
        root.insert(range_, entry)
    left = dict(zip(entries, ranges, strict=True))
    for number in (-1.0, *map(float, range(10)), 4.5):
        held = [entry for entry, range_ in left.items() if range_.holds(number)]
        assert sorted(e.edge for e in root.at(number)) == [entry.edge for entry in held]
