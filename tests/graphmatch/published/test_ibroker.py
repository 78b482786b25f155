"""iBroker: the oracle's answers, shared and traversed nodes, and space reclaimed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal

from graphmatch.published import make
from graphmatch.published.reconstructed.ibroker import IBroker
from semantic import Ontology, Publication
from semantic.terms import Triple
from semantic.vocabulary import TYPE
from tests.graphmatch.published.patterns import GRAPHS, agree
from tests.graphmatch.published.small import edges, filled, node, tree
from tests.strategies import Scenario, scenarios


@given(scenarios(GRAPHS, entailment="none"), st.data())
def test_that_it_agrees_with_the_oracle(scenario: Scenario, data: st.DataObject) -> None:
    agree(lambda o: make("ibroker", o), scenario, data)


def ibroker(*queries: str, ontology: Ontology | None = None) -> IBroker:
    return filled(IBroker(ontology or Ontology()), *queries)


def nodes(index: IBroker) -> int:
    return sum(len(of) for second in index._levels.values() for of in second.values())


def test_that_identical_steps_are_one_node() -> None:
    """Variables and numbers differ, but the first edge of both is the same two steps."""
    shared = "?{0} :p ?{1} . FILTER(gm:descendantOf(?{1}, :C) && ?{2} > 5) ?{1} :q ?{2}"
    one = ibroker(f"SELECT * {{ {shared.format('x', 'y', 'z')} }}")
    two = ibroker(
        f"SELECT * {{ {shared.format('x', 'y', 'z')} }}",
        f"SELECT * {{ {shared.format('b', 'c', 'a')} . ?c :r ?d }}",
    )
    assert nodes(one) == 4
    assert nodes(two) == 6


@pytest.mark.parametrize("height", [1, 2, 4, 6])
def test_that_the_hierarchy_is_walked_when_matching(height: int) -> None:
    """A leaf has itself, anything, and height + 1 classes; a node outside the tree has three."""
    index = ibroker("SELECT * { ?x :p ?y FILTER(gm:descendantOf(?y, :C1)) }", ontology=tree(height))
    report = index.match(edges(("A", "p", f"C{2**height}")))
    assert report.counters.matched == 1
    assert report.counters.probes == 3 + 2 + height + 1
    assert nodes(index) == 2


def test_that_a_list_is_traversed_when_its_first_node_is_true() -> None:
    index = ibroker(
        "SELECT * { :A :p ?x . ?x :q :B }",
        "SELECT * { :A :p ?x . ?x :r ?y }",
        "SELECT * { :C :p ?x . ?x :p ?y }",
    )
    counters = index.match(edges(("A", "p", "D"), ("D", "q", "B"))).counters
    assert (counters.candidates, counters.joins, counters.matched) == (2, 1, 1)


def test_that_both_steps_of_an_edge_are_one_edges() -> None:
    """All nodes are true, but no edge goes from A to B."""
    index = ibroker("SELECT * { :A :p :B }")
    report = index.match(edges(("A", "p", "C"), ("D", "p", "B")))
    assert (report.counters.gates, report.counters.joins, len(report)) == (2, 0, 0)
    assert len(index.match(edges(("A", "p", "B")))) == 1


def test_that_a_constraint_is_tested_by_its_node() -> None:
    index = ibroker("SELECT * { ?x :p ?y FILTER(?y > 5 && ?y < 9) }")
    assert index.match(edges(("A", "p", Literal(9)))).counters.gates == 1  # Any value of p matches.
    (match,) = index.match(edges(("A", "p", Literal(8))))
    assert match.solutions == ({"x": node("A"), "y": Literal(8)},)


def test_an_instance_that_the_publication_states() -> None:
    index = ibroker("SELECT * { ?x :p ?y FILTER(gm:descendantOf(?y, :C1)) }", ontology=tree(2))
    stated: Triple = (node("i"), TYPE, node("C5"))
    publication = Publication.of("p", [*edges(("A", "p", "i")).triples, stated])
    (match,) = index.match(publication)
    assert match.solutions == ({"x": node("A"), "y": node("i")},)
