"""Queries that are written again to keep attributes from variable properties."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from pyoxigraph import Literal

from semantic import Ontology, Publication, SubscriptionParser
from semantic.evaluation import Answer, Evaluator
from semantic.sparql.apart import apart
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


def said(answer: Answer | None) -> object:
    if answer is None:
        return None
    solutions = Counter(frozenset(solution.items()) for solution in answer.solutions)
    return solutions, None if answer.graph is None else frozenset(answer.graph)


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("publication", [STATED, FOUND], ids=["stated", "found"])
@pytest.mark.parametrize("resting", [False, True])
def test_a_query_without_attributes_says_the_same(
    text: str, publication: Publication, resting: bool
) -> None:
    query = PARSER.parse("s", text).query
    with Evaluator(Ontology(), ()).publication(STATED) as evaluation:
        expected = said(evaluation.answer(query, resting=resting))
        assert said(evaluation.answer(apart(query), resting=resting)) == expected
    with Evaluator(Ontology(), ()).publication(publication) as evaluation:
        assert said(evaluation.answer(query, resting=resting)) == expected


@given(scenarios(FULL, publications=1))
def test_a_generated_query_says_the_same(scenario: Scenario) -> None:
    evaluator = Evaluator(Ontology(), scenario.ontology)
    for query in (PARSER.parse("s", to_sparql(query)).query for query in scenario.queries):
        with evaluator.publication(scenario.publications[0]) as evaluation:
            expected = said(evaluation.answer(query, resting=True))
            assert said(evaluation.answer(apart(query), resting=True)) == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (f"?s {A} ?o", 2),
        (f"?s {A} ?o ; ?p ?w", 2),
        (f"?s {A}+ ?o", 3),
        (f"?s {A}+ ?o . ?o ?p 1", 1),
        (f"?s {A}* ?o", 7),
        (f"?s {A}/({Q}|{A}) ?o . ?w ?p ?o", 1),
        (f"?s !{A} ?o", 2),
        (f"?s {A} ?a . ?s !{P} ?o", 1),
        (f"?s {A} ?a . ?s ^!{P} ?o", 1),
        (f"?s {A} ?a . ?s !(^{P}) ?o", 1),
        (f"?s {A} ?a . ?s (!{P})+ ?o", 1),
    ],
)
def test_attributes_are_seen_by_name_only(where: str, expected: int) -> None:
    """Attributes lead from x to z, and from y to x; what is stated, from x to 1 and to y."""
    query = PARSER.parse("s", f"SELECT * {{ ?none {Q} ?other . {where} }}").query
    with Evaluator(Ontology(), ()).publication(FOUND) as evaluation:
        answer = evaluation.answer(query, resting=False)
    assert answer is not None
    assert len(answer.solutions) == expected


def test_what_is_shown_changes_from_query_to_query() -> None:
    """Whoever asks before, and where the ontology states some of the publication, too."""
    texts = (f"?s {A} ?o", "?s ?p ?o", f"?s {A} ?o ; ?p ?w", "?s ?p ?o", f"?s {A} ?o")
    for background in ((), ((EX["x"], P, ONE),)):
        with Evaluator(Ontology(), background).publication(FOUND) as evaluation:
            counts = []
            for text in texts:
                query = PARSER.parse("s", f"SELECT * {{ {text} }}").query
                answer = evaluation.answer(query, resting=True)
                assert answer is not None
                counts.append(len(answer.solutions))
        assert counts == [2, 2, 2, 2, 2]


def test_what_is_described_is_not_hidden() -> None:
    query = PARSER.parse("s", f"DESCRIBE ?s {{ ?s {A} ?o ; ?p ?w }}").query
    with Evaluator(Ontology(), ()).publication(FOUND) as evaluation:
        answer = evaluation.answer(query, resting=True)
    assert answer is not None
    assert frozenset(answer.graph or ()) == frozenset(STATED.triples)
