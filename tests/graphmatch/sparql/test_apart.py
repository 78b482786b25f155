"""Derived attributes are visible to patterns that name them, not to variable properties."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from pyoxigraph import Literal

from graphmatch import SubscriptionParser, _native
from graphmatch.knowledge import Entailment, Knowledge
from semantic import Ontology, Publication
from semantic.terms import Solution, Triple
from semantic.vocabulary import ATTRIBUTE, XSD
from tests.oracle import to_sparql
from tests.strategies import EX, FULL, Scenario, scenarios

PARSER = SubscriptionParser()
P, Q, A = EX["p"], EX["q"], ATTRIBUTE["a"]
ONE = Literal("1", datatype=XSD["integer"])
STATED = Publication.of("http://example.org/g", [(EX["x"], P, ONE), (EX["x"], Q, EX["y"])])
FOUND = STATED.with_attributes([(EX["x"], A, EX["z"]), (EX["y"], A, EX["x"])])

QUERIES = (
    f"SELECT * {{ ?s {P} 1 ; ?p ?o }}",
    f"SELECT * {{ ?s !{P} ?o . ?s ?p ?o }}",
    f"SELECT * {{ ?s !a ?o . ?o !^{P} ?s . ?s !(a|^a|^{Q}) ?u }}",
    f"SELECT * {{ ?s !{P}* ?o . ?s {P}? ?u . ?s ({P}|!({Q}))+ ?w ; (!{Q})? 1 }}",
    f"SELECT * {{ ?s {P}|{Q} ?o FILTER(!BOUND(?none) && !(?o = 2)) }}",
    f"SELECT * {{ VALUES ?p {{ {P} {Q} }} {{ ?s ?p ?o }} OPTIONAL {{ ?o ?q ?s }} }}",
    f"SELECT * {{ VALUES (?p ?o) {{ ({P} UNDEF) }} ?s ?p ?o }}",
    f"SELECT ?p {{ ?s ?p ?o }} GROUP BY ?p HAVING(COUNT(*) > 0) VALUES ?p {{ {P} }}",
    f"SELECT * {{ {{ SELECT ?p {{ ?s ?p ?o }} }} {{ ?s ?p ?o }} UNION {{ ?s {P} ?p }} }}",
    f"SELECT * {{ ?s {P} ?o MINUS {{ ?s ?p [] }} }}",
    f"SELECT * {{ ?s {P} ?o FILTER NOT EXISTS {{ ?s ?p ?o FILTER(?p != {P}) }} }}",
    f"SELECT * {{ GRAPH ?g {{ ?s ?p ?o . [ {P} ?o ] }} BIND(STR(?p) AS ?text) }}",
    f"CONSTRUCT {{ ?s {P} ?o . ?s ?p 1 }} {{ ?s {P} ?o ; ?p ?w }}",
    f"CONSTRUCT WHERE {{ ?s {P} ?o ; ?p ?w }} LIMIT 9",
    f"DESCRIBE ?s WHERE {{ ?s {P} ?o ; ?p ?w }}",
    f"ASK {{ ?s ^{P}/{Q} ?o . ?s ?p ?o }}",
)


NOW = datetime(2026, 1, 2, tzinfo=UTC)
Answer = tuple[list[Solution], list[Triple] | None]


def evaluation(publication: Publication, background: Iterable[Triple] = ()) -> _native.Evaluation:
    knowledge = Knowledge(Ontology(background, on_problem=lambda _: None), Entailment.NONE)
    return knowledge.evaluation(publication, NOW)


def said(answer: Answer | None) -> object:
    if answer is None:
        return None
    solutions, graph = answer
    counted = Counter(frozenset(solution.items()) for solution in solutions)
    return counted, None if graph is None else frozenset(graph)


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("publication", [STATED, FOUND], ids=["stated", "found"])
@pytest.mark.parametrize("resting", [False, True])
def test_a_query_without_attributes_says_the_same(
    text: str, publication: Publication, resting: bool
) -> None:
    query = PARSER.query("s", text)
    expected = said(evaluation(STATED).answer(query, resting=resting))
    assert said(evaluation(publication).answer(query, resting=resting)) == expected


@given(scenarios(FULL, publications=1))
def test_a_generated_query_says_the_same(scenario: Scenario) -> None:
    (stated,) = scenario.publications
    found = stated.with_attributes([(EX["x"], A, EX["z"]), (EX["y"], A, EX["x"])])
    for query in (PARSER.query("s", to_sparql(query)) for query in scenario.queries):
        answers = [
            evaluation(publication, scenario.ontology).answer(query, resting=True)
            for publication in (stated, found)
        ]
        assert said(answers[0]) == said(answers[1])


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (f"?s {A} ?o", 2),
        (f"?s {A} ?o ; ?p ?w", 2),
        (f"?s {A}+ ?o", 3),
        (f"?s {A}+ ?o . ?o ?p 1", 1),
        (f"?s {A}* ?o", 6),  # A path of no steps starts at any node that every pattern sees.
        (f"?s {A}/({Q}|{A}) ?o . ?w ?p ?o", 1),
        (f"?s !{A} ?o", 2),
        (f"?s {A} ?a . ?s !{P} ?o", 1),
        (f"?s {A} ?a . ?s ^!{P} ?o", 1),
        (f"?s {A} ?a . ?s !(^{P}) ?o", 1),
        (f"?s {A} ?a . ?s (!{P})+ ?o", 1),
    ],
)
def test_attributes_are_seen_by_name_only(where: str, expected: int) -> None:
    """Attributes lead from x to z and from y to x; stated triples from x to 1 and to y."""
    query = PARSER.query("s", f"SELECT * {{ ?none {Q} ?other . {where} }}")
    answer = evaluation(FOUND).answer(query, resting=False)
    assert answer is not None
    assert len(answer[0]) == expected


def test_what_is_shown_changes_from_query_to_query() -> None:
    """The order of queries does not matter, even if the ontology states some of the triples."""
    texts = (f"?s {A} ?o", "?s ?p ?o", f"?s {A} ?o ; ?p ?w", "?s ?p ?o", f"?s {A} ?o")
    for background in ((), ((EX["x"], P, ONE),)):
        asked = evaluation(FOUND, background)
        counts = []
        for text in texts:
            answer = asked.answer(PARSER.query("s", f"SELECT * {{ {text} }}"), resting=True)
            assert answer is not None
            counts.append(len(answer[0]))
        assert counts == [2, 2, 2, 2, 2]


def test_what_is_described_is_not_hidden() -> None:
    query = PARSER.query("s", f"DESCRIBE ?s {{ ?s {A} ?o ; ?p ?w }}")
    answer = evaluation(FOUND).answer(query, resting=True)
    assert answer is not None
    assert frozenset(answer[1] or ()) == frozenset(STATED.triples)
