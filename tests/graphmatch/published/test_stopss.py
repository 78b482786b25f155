"""S-ToPSS: the oracle's answers, the paper's example, and the events derived from one."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, Store, Variable

from graphmatch import SubscriptionParser
from graphmatch.published import make
from graphmatch.published.base import (
    Below,
    Conjunction,
    Constraint,
    Equal,
    Event,
    Interval,
    Present,
    Tally,
)
from graphmatch.published.naive import Naive
from graphmatch.published.reconstructed.stopss import SToPSS
from semantic import Ontology, Publication
from semantic.mapping import MappingFunction
from semantic.terms import Term, Triple
from semantic.vocabulary import EQUIVALENT_CLASS, EQUIVALENT_PROPERTY, SUBCLASS, SUBPROPERTY, TYPE
from tests.graphmatch.published.conjunctions import (
    ATTRIBUTES,
    CLASSES,
    TREE,
    agree,
    answers,
    conjunctions,
)
from tests.oracle import Answer, to_sparql
from tests.strategies import EX, Scenario

ROOT = Path(__file__).parents[3]
PARSER = SubscriptionParser()
P, Q, R, S, T = ATTRIBUTES
A, B, C, D, *_ = CLASSES
X = Literal("x")
NOW = datetime(2003, 9, 9, tzinfo=UTC)
HIERARCHY: tuple[Triple, ...] = (
    *TREE,
    (Q, SUBPROPERTY, P),
    (S, SUBPROPERTY, R),
    (S, SUBPROPERTY, Q),
    (D, SUBCLASS, C),
    (CLASSES[6], EQUIVALENT_CLASS, CLASSES[4]),
    (T, EQUIVALENT_PROPERTY, EX["tee"]),
)
KINDS = [Interval, Equal, Below, Present]


@pytest.mark.parametrize("ontology", [TREE, HIERARCHY])
@given(st.data())
def test_that_it_agrees_with_the_oracle(ontology: tuple[Triple, ...], data: st.DataObject) -> None:
    scenario = data.draw(conjunctions(KINDS, ontology))
    agree(lambda o: make("stopss", o), scenario, data, "rdfs")


FUNCTIONS = {
    "class": f"CONSTRUCT {{ ?x {S} {D} }} {{ ?x {R} ?n FILTER(?n < 5) }}",
    "more": f"CONSTRUCT {{ ?x {R} ?more }} {{ ?x {T} ?n BIND(?n + 1 AS ?more) }}",
}


@given(conjunctions(KINDS, HIERARCHY))
def test_that_it_agrees_where_functions_feed_each_other(scenario: Scenario) -> None:
    """The oracle lacks mapping functions, but `Naive` has them, and evaluates all as SPARQL."""
    functions = [MappingFunction(name, text) for name, text in FUNCTIONS.items()]
    ontology = Ontology(scenario.ontology, mapping=functions)
    stopss, naive = make("stopss", ontology), Naive(ontology)
    for number, query in enumerate(scenario.queries):
        for matcher in (stopss, naive):
            matcher.subscribe(PARSER.parse(str(number), to_sparql(query)))
    for publication in scenario.publications:
        found = answers(stopss.match(publication))
        assert {id: by_value(answer) for id, answer in found.items()} == answers(
            naive.match(publication)
        )


def by_value(answer: Answer) -> Answer:
    """Return an answer with literals as the naive matcher's store returns them."""
    return Counter(
        frozenset((name, stored(term)) for name, term in solution) for solution in answer.elements()
    )


def stored(term: Term) -> Term:
    store = Store()
    store.add(Quad(NamedNode("urn:s"), NamedNode("urn:p"), term))
    return next(iter(store)).object


def test_the_papers_example() -> None:
    """School is a name of university, and experience is the present minus the graduation year."""
    ontology = Ontology.load(
        *(ROOT / "ontologies" / name for name in ("jobs.ttl", "experience.rq"))
    )
    stopss = make("stopss", ontology, now=NOW)
    path = ROOT / "data" / "subscriptions" / "stopss-example.rq"
    stopss.subscribe(PARSER.parse("recruiter", path.read_text(encoding="utf-8")))

    def candidate(year: int) -> Publication:
        jobs = "https://graphmatch.example/jobs#"
        pairs = {
            "school": Literal("University of Toronto"),
            "degree": NamedNode(jobs + "PhD"),
            "graduationYear": Literal(year),
        }
        me = EX["me"]
        return Publication.of("cv", [(me, NamedNode(jobs + p), v) for p, v in pairs.items()])

    report = stopss.match(candidate(1990))
    assert report.matches[0].solutions == ({"person": EX["me"]},)
    assert report.counters.mapped == 1
    assert len(stopss.match(candidate(2000))) == 0


def test_that_a_function_that_fails_is_told() -> None:
    text = f"CONSTRUCT {{ ?x {P} ?more }} {{ ?x {P} ?n BIND(?n + 1 AS ?more) }}"
    ontology = Ontology(mapping=[MappingFunction("endless", text)])
    stopss = make("stopss", ontology)
    stopss.subscribe(PARSER.parse("s", f"SELECT * {{ ?x {P} ?n FILTER(?n < 2) }}"))
    report = stopss.match(Publication.of("p", [(EX["ann"], P, Literal(1))]))
    assert len(report) == 1
    assert "`endless` is left out" in str(report.problems[0])


def stopss(*rows: dict[NamedNode, Constraint], ontology: tuple[Triple, ...] = TREE) -> SToPSS:
    made = make("stopss", Ontology(ontology))
    assert isinstance(made, SToPSS)
    for number, row in enumerate(rows):
        made.add(Conjunction(str(number), Variable("x"), (row,)))
    return made


def test_that_an_event_becomes_one_for_each_choice_of_what_is_above() -> None:
    """D is below B and A, and C below A. Unused attributes create no events."""
    made = stopss({P: Below(A), Q: Below(B)})
    events = list(made.general(Event.of({P: D, Q: C, R: D})))
    assert {(event.terms[P], event.terms[Q]) for event in events} == {
        (p, q) for p in (D, B, A) for q in (C, A)
    }
    assert len(events) == 6


def test_that_attributes_are_replaced_by_those_above() -> None:
    made = stopss({P: Equal(X), Q: Present()}, ontology=((Q, SUBPROPERTY, P),))
    (event,) = made.general(Event.of({Q: X}))
    assert event.terms == {Q: X, P: X}
    assert list(made.matched(event, Tally())) == [0]


def test_that_equality_is_not_met_by_what_is_below() -> None:
    made = stopss({P: Equal(B)}, {P: Below(B)})
    matches = made.match(Publication.of("p", [(EX["ann"], P, D)]))
    assert list(matches.subscriptions) == ["1"]


@pytest.mark.parametrize("values", [[B, D], [D, B]])
def test_that_what_is_said_takes_nobodys_place(values: list[NamedNode]) -> None:
    """The event states B, and also D below it."""
    made = stopss({P: Equal(B)})
    matches = made.match(Publication.of("p", [(EX["ann"], P, value) for value in values]))
    assert len(matches) == 1


def test_that_types_are_classes() -> None:
    made = make("stopss", Ontology(TREE))
    made.subscribe(PARSER.parse("s", f"ASK {{ ?x a {B} }}"))
    assert len(made.match(Publication.of("p", [(EX["ann"], TYPE, D)]))) == 1
    assert len(made.match(Publication.of("p", [(EX["ann"], TYPE, A)]))) == 0


def test_that_predicates_are_counted() -> None:
    """All ranges are tested."""
    made = stopss(
        {P: Interval(2), Q: Equal(X)},
        {P: Interval(0, 1)},
        {P: Interval(3)},
        {Q: Equal(X)},
        {Q: Present()},
    )
    tally = Tally()
    assert sorted(made.matched(Event.of({P: Literal(2), Q: X}), tally)) == [0, 3, 4]
    assert (tally.probes, tally.gates, tally.candidates) == (3 + 3 + 3, 2, 3)


def test_that_two_values_of_one_attribute_serve_two_names_of_it() -> None:
    """The subscription constrains a class by one name, and a number by a broader name."""
    below, above, thing = EX["below"], EX["above"], EX["thing"]
    made = make("stopss", Ontology([(below, SUBPROPERTY, above)]))
    text = f"SELECT * {{ ?e {below} {thing} ; {above} ?n FILTER(?n > 5) }}"
    made.subscribe(PARSER.parse("s", text))
    triples = [(EX["ann"], below, thing), (EX["ann"], below, Literal(7))]
    report = made.match(Publication.of("urn:p", triples))
    assert [match.subscription for match in report] == ["s"]
