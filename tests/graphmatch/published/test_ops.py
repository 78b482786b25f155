"""OPS: the oracle's answers, its search, and space reclaimed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graphmatch import SubscriptionParser
from graphmatch.published import make
from graphmatch.published.reconstructed.ops import Ops
from semantic import Ontology, Publication
from semantic.terms import Triple
from tests.graphmatch.published.patterns import GRAPHS, agree
from tests.graphmatch.published.small import node
from tests.strategies import Scenario, scenarios


@given(scenarios(GRAPHS, entailment="none"), st.data())
def test_that_it_agrees_with_the_oracle(scenario: Scenario, data: st.DataObject) -> None:
    agree(lambda o: make("ops", o), scenario, data)


def edges(*written: str) -> Publication:
    """Make a publication of edges written ``ApB``."""
    triples: list[Triple] = [(node(s), node(p), node(o)) for s, p, o in written]
    return Publication.of("urn:publication", triples)


def ops(*queries: str, ontology: Ontology | None = None) -> Ops:
    index = Ops(ontology or Ontology())
    for number, query in enumerate(queries):
        index.subscribe(SubscriptionParser().parse(str(number), f"PREFIX : <urn:> {query}"))
    return index


def test_that_edges_are_found_by_their_label_alone() -> None:
    """Each of two edges labelled q is combined with all three edges labelled p, joined or not.

    G-ToPSS, section 5: any node of a publication can match any node of a subscription.
    """
    index = ops("SELECT * { ?x :q :B . :A :p ?x }")
    counters = index.match(edges("CpD", "EpF", "ApG", "GqB", "HqB", "GrB")).counters
    assert (counters.probes, counters.gates) == (2 + 2 * 3, 2 + 1)
    assert counters.matched == 1


def test_that_subscriptions_are_matched_one_by_one() -> None:
    one, many = ops("SELECT * { ?x :p :B }"), ops(*["SELECT * { ?x :p :B }"] * 20)
    publication = edges("ApB", "ApC")
    assert many.match(publication).counters.candidates == 20
    assert many.match(publication).counters.probes == 20 * one.match(publication).counters.probes


def test_that_the_search_goes_back() -> None:
    """The first two edges can be mapped in four ways; the third holds for one of them."""
    index = ops("SELECT * { ?x :p ?y . ?y :p ?z . ?z :q ?x }")
    (match,) = index.match(edges("ApB", "ApC", "BpD", "CpD", "CpE", "EqA"))
    assert match.solutions == ({"x": node("A"), "y": node("C"), "z": node("E")},)


def test_that_two_variables_may_be_one_vertex() -> None:
    (match,) = ops("SELECT * { ?x :p ?y . ?y :p ?x }").match(edges("ApA"))
    assert match.solutions == ({"x": node("A"), "y": node("A")},)


def test_more_solutions_than_there_is_room_for() -> None:
    index = ops("SELECT * { :A :p ?x . :A :p ?y }", "ASK { :A :p ?x }")
    first, second = index.match(edges(*(f"Ap{letter}" for letter in "abcdefghijklmnop")))
    assert len(first.solutions) == len({tuple(s.items()) for s in first.solutions}) == 16 * 16
    assert second.solutions == ({},)
