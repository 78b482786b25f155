"""The engine gives the oracle's answers on all generated scenarios."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from graphmatch import Engine, SubscriptionParser
from graphmatch.matcher import Matcher
from graphmatch.report import MatchReport
from semantic import Ontology, Publication
from tests.oracle import Answer, World, answer_in, to_sparql
from tests.strategies import FULL, Profile, Scenario, pairs_of, quantity_scenarios, scenarios

PARSER = SubscriptionParser()
GRAPHS = Profile(variable_properties=False)
"""Basic graph patterns with comparisons and taxonomy operators."""


def ontology_of(scenario: Scenario) -> Ontology:
    pairs = pairs_of(scenario.synonyms)
    return Ontology(scenario.ontology, pairs, on_problem=lambda _: None)


def answers(report: MatchReport) -> dict[str, Answer]:
    return {
        match.subscription: Counter(frozenset(s.items()) for s in match.solutions)
        for match in report
    }


def expected(scenario: Scenario, publication: Publication, entailment: str) -> dict[str, Answer]:
    world = World.of(
        scenario.ontology, publication.triples, scenario.synonyms, entailment=entailment
    )
    found = {str(n): answer_in(query, world) for n, query in enumerate(scenario.queries)}
    return {id: answer for id, answer in found.items() if answer}


def agree(matcher: Matcher, scenario: Scenario, entailment: str) -> None:
    for number, query in enumerate(scenario.queries):
        matcher.subscribe(PARSER.parse(str(number), to_sparql(query)))
    for publication in scenario.publications:
        found = answers(matcher.match(publication))
        assert found == expected(scenario, publication, entailment)


@given(scenarios(FULL, entailment="rdfs"))
def test_engine_with_entailment(scenario: Scenario) -> None:
    agree(Engine(ontology_of(scenario)), scenario, "rdfs")


@given(scenarios(GRAPHS, entailment="rdfs"))
def test_engine_on_graph_patterns(scenario: Scenario) -> None:
    agree(Engine(ontology_of(scenario)), scenario, "rdfs")


@given(quantity_scenarios())
def test_engine_on_named_units(scenario: Scenario) -> None:
    agree(Engine(ontology_of(scenario)), scenario, "rdfs")


@given(scenarios(FULL, entailment="none"))
def test_engine_without_entailment(scenario: Scenario) -> None:
    agree(Engine(ontology_of(scenario), entailment="none"), scenario, "none")


@given(scenarios(FULL, entailment="rdfs"), st.data())
def test_engine_whatever_came_before(scenario: Scenario, data: st.DataObject) -> None:
    """Subscribe in any order, singly or in bulk, and remove and add some between publications."""
    parsed = [PARSER.parse(str(n), to_sparql(query)) for n, query in enumerate(scenario.queries)]
    order = data.draw(st.permutations(parsed))
    several = data.draw(st.integers(0, len(order)))
    gone = [subscription for subscription in parsed if data.draw(st.booleans())]
    right = [expected(scenario, publication, "rdfs") for publication in scenario.publications]
    engine = Engine(ontology_of(scenario))
    assert engine.subscribe_many(order[:several]) == ()
    for subscription in order[several:]:
        engine.subscribe(subscription)
    assert answers(engine.match(scenario.publications[0])) == right[0]
    for subscription in gone:
        engine.unsubscribe(subscription.id)
    left = [
        {id: a for id, a in all_.items() if id not in {one.id for one in gone}} for all_ in right
    ]
    assert [answers(report) for report in engine.match_many(scenario.publications)] == left
    if data.draw(st.booleans()):
        assert engine.subscribe_many((one.id, one.query) for one in gone) == ()
    else:
        for subscription in reversed(gone):
            engine.subscribe(subscription)
    assert [answers(report) for report in engine.match_many(scenario.publications)] == right
