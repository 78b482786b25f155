"""G-ToPSS: the oracle's answers, its paper's examples, its data structure, and its work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphmatch import SubscriptionParser
from graphmatch.published import make
from graphmatch.published.gtopss import GToPSS
from semantic import Ontology, Publication
from semantic.terms import Triple
from tests.graphmatch.published.patterns import GRAPHS, agree
from tests.strategies import Scenario, scenarios

EX = "http://example.org/"


@given(scenarios(GRAPHS, entailment="none"), st.data())
def test_that_it_agrees_with_the_oracle(scenario: Scenario, data: st.DataObject) -> None:
    agree(lambda o: make("gtopss", o), scenario, data)


def node(name: str) -> NamedNode:
    return NamedNode(EX + name)


def edges(*pairs: str, label: str = "p") -> Publication:
    """Make a publication of edges written ``AB`` for A → B."""
    triples: list[Triple] = [(node(pair[0]), node(label), node(pair[1])) for pair in pairs]
    return Publication.of("urn:publication", triples)


def gtopss(**queries: str) -> GToPSS:
    index = GToPSS(Ontology())
    parser = SubscriptionParser()
    for id, query in queries.items():
        index.subscribe(parser.parse(id, f"PREFIX : <{EX}> {query}"))
    return index


def test_the_join_of_figure_8() -> None:
    """A *1 holds AB, AC, AE; *1 B holds AB, DB, CB, EB, GB: *1 is C or E."""
    index = gtopss(s="SELECT ?x { :A :p ?x . ?x :p :B }")
    (match,) = index.match(edges("AB", "AC", "AE", "DB", "CB", "EB", "GB"))
    assert {solution["x"] for solution in match.solutions} == {node("C"), node("E")}


def test_that_variables_of_different_subscriptions_share_a_star() -> None:
    """Section 4.1: ?x and ?z are both *1, so one edge of G_M serves both subscriptions."""
    index = gtopss(s="SELECT ?x { :A :p ?x }", t="SELECT ?z { :A :p ?z }")
    report = index.match(edges("AB"))
    assert [match.subscription for match in report] == ["s", "t"]
    assert report.counters.probes == probes_of_an_edge(stars=1)
    assert report.counters.candidates == 2


def probes_of_an_edge(stars: int) -> int:
    """Section 4.2: the matcher tries v1 v2, v1 *i, *i v2 and *i *j."""
    return 1 + 2 * stars + stars * (stars - 1)


@pytest.mark.parametrize("stars", [0, 1, 2, 3, 5])
def test_that_probes_grow_with_the_square_of_the_stars(stars: int) -> None:
    chain = " . ".join(f"?v{i} :p ?v{i + 1}" for i in range(stars - 1)) or ":Z :p :Z"
    if stars == 1:
        chain = ":A :p ?v0"
    index = gtopss(s=f"ASK {{ {chain} }}")
    assert index.match(edges("AB", "BC")).counters.probes == 2 * probes_of_an_edge(stars)


def test_that_probes_do_not_grow_with_the_subscriptions() -> None:
    few = gtopss(**{f"s{n}": f"SELECT ?x {{ :A{n} :p ?x }}" for n in range(3)})
    many = gtopss(**{f"s{n}": f"SELECT ?x {{ :A{n} :p ?x }}" for n in range(300)})
    publication = edges("AB", "BC", "CD")
    assert few.match(publication).counters == many.match(publication).counters
    assert many.match(publication).counters.candidates == 0


def test_that_candidates_are_what_shares_an_edge() -> None:
    index = gtopss(
        hit="SELECT ?x { :A :p ?x }",
        half="SELECT ?x { :A :p ?x . ?x :q :C }",
        other="SELECT ?x { :B :q ?x }",
    )
    counters = index.match(edges("AB")).counters
    assert (counters.candidates, counters.matched, counters.joins) == (2, 1, 0)


def test_self_loops_and_several_edges_between_two_nodes() -> None:
    index = gtopss(
        loop="SELECT ?x { ?x :p ?x }",
        both="SELECT ?x ?y { ?x :p ?y . ?x :q ?y }",
        back="SELECT ?x ?y { ?x :p ?y . ?y :p ?x }",
    )
    loop = index.match(edges("AA"))
    assert {m.subscription: len(m.solutions) for m in loop} == {"loop": 1, "back": 1}
    two = Publication.of("urn:two", [*edges("AB").triples, *edges("AB", label="q").triples])
    assert [match.subscription for match in index.match(two)] == ["both"]
    assert [match.subscription for match in index.match(edges("AB", "BA"))] == ["back"]


def test_that_a_disconnected_pattern_is_a_product() -> None:
    index = gtopss(s="SELECT * { ?a :p :X . ?b :p :Y }")
    (match,) = index.match(edges("AX", "BX", "CY"))
    assert len(match.solutions) == 2


def test_that_stars_that_nobody_has_are_not_tried() -> None:
    index = gtopss(s="ASK { ?a :p ?b . ?b :p ?c }", t="ASK { :A :p ?x }")
    assert index.match(edges("AB")).counters.probes == probes_of_an_edge(stars=3)
    index.unsubscribe("s")
    assert index.match(edges("AB")).counters.probes == probes_of_an_edge(stars=1)


def test_more_hits_than_fit_into_a_count() -> None:
    """12,000 edges hit 6 of a subscription's 7 edges: 72,000 hits in all."""
    pairs = " . ".join(f"?v{i} :p ?v{j}" for i in range(3) for j in range(3) if i != j)
    index = gtopss(s=f"ASK {{ {pairs} . ?v0 :q ?v1 }}")
    triples: list[Triple] = [(node(f"s{n}"), node("p"), node(f"o{n}")) for n in range(12_000)]
    counters = index.match(Publication.of("urn:large", triples)).counters
    assert (counters.gates, counters.candidates, counters.matched) == (6, 1, 0)
