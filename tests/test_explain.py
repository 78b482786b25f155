"""Explanations agree with matches on generated cases."""

from __future__ import annotations

from typing import TypeAlias

import pytest
from hypothesis import event, given, settings
from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from graphmatch import Engine
from graphmatch.report import Match, MatchReport
from semantic import Ontology, Publication
from semantic.terms import Triple
from semantic.vocabulary import PREFIXES, XSD
from tests.oracle import World, to_sparql
from tests.strategies import FULL, Scenario, pairs_of, scenarios

FEW = settings(max_examples=settings().max_examples // 8)
"""Number of examples: each one builds an engine."""


def ontology_of(scenario: Scenario) -> Ontology:
    pairs = pairs_of(scenario.synonyms)
    return Ontology(scenario.ontology, pairs, on_problem=lambda _: None)


def engine_of(scenario: Scenario) -> Engine:
    return subscribed(Engine(ontology_of(scenario)), scenario)


def subscribed(engine: Engine, scenario: Scenario) -> Engine:
    for number, query in enumerate(scenario.queries):
        engine.subscribe(str(number), to_sparql(query))
    return engine


Solutions: TypeAlias = list[list[tuple[str, str]]]


def solutions_of(match: Match) -> Solutions:
    """Return a match's solutions without their order."""
    return sorted(sorted((n, str(t)) for n, t in solution.items()) for solution in match.solutions)


def triples_of(turtle: str) -> list[Triple]:
    quads = parse(turtle, format=RdfFormat.TURTLE)
    return [(quad.subject, quad.predicate, quad.object) for quad in quads]


def plain(report: MatchReport) -> list[tuple[str, Solutions]]:
    return [(match.subscription, solutions_of(match)) for match in report]


@FEW
@given(scenarios(FULL, publications=1, queries=3))
def test_that_explanations_go_with_the_matches(scenario: Scenario) -> None:
    engine = engine_of(scenario)
    (publication,) = scenario.publications
    report = engine.match(publication)
    matches = {match.subscription: match for match in report}
    world = World.of(scenario.ontology, publication.triples, list(scenario.synonyms)[:1])
    evidence = engine.evidence(report)
    for number in range(len(scenario.queries)):
        id = str(number)
        explanation = engine.explain(id, publication)
        text = str(explanation)
        assert ("does not match" in text) is (id not in matches)
        if id not in matches:
            assert explanation.match is None
            assert explanation.failure
            assert not explanation.evidence
            continue
        assert explanation.match is not None
        assert solutions_of(explanation.match) == solutions_of(matches[id])
        assert not explanation.failure
        assert bool(explanation.evidence) is bool(evidence[id])
        branches = engine.index_plan(id).subscription.branches
        event("branches: " + ("some" if any(b.patterns for b in branches) else "empty"))
        for piece in explanation.evidence:
            assert all(piece.reasons)
            if piece.triple is not None and len(scenario.synonyms) < 2:
                assert piece.triple in world.graph
        # The oracle's world supports one pair of synonyms.
        if engine.index_plan(id).exact and len(scenario.synonyms) < 2:
            assert any(piece.triple in world.news for piece in explanation.evidence)


@FEW
@given(scenarios(FULL, publications=2, queries=4), scenarios(FULL, publications=1, queries=1))
def test_that_an_ontology_can_be_replaced(scenario: Scenario, before: Scenario) -> None:
    engine = subscribed(Engine(ontology_of(before)), scenario)
    engine.match(scenario.publications[0])
    engine.replace_ontology(ontology_of(scenario))
    fresh = engine_of(scenario)
    for publication in scenario.publications:
        report, expected = engine.match(publication), fresh.match(publication)
        assert plain(report) == plain(expected)
        assert report.counters == expected.counters


@pytest.mark.parametrize(
    ("filter_", "value"),
    [
        ('CONTAINS(LCASE(STR(?x)), "lake")', '"The Sea"@en'),
        ('STRSTARTS(STR(?x), "1")', "01"),
        ('LANGMATCHES(LANG(?x), "de")', '"The Sea"@en'),
        ('?x != "The Sea"@en', '"The Sea"@en'),
        ("?x != 1", "01"),
        ('?x IN ("The Sea", 2)', '"The Sea"@en'),
        ('?x = "lake" || gm:childOf(?x, <urn:c>) || REGEX(?x, "lakes", "i")', '"The Sea"@en'),
    ],
)
def test_that_the_filter_that_fails_is_named(filter_: str, value: str) -> None:
    """A filter that holds for another value is not the reported failure."""
    text = f"SELECT * {{ ?s <urn:p> ?x FILTER({filter_}) }}"
    literals = {
        '"The Sea"@en': Literal("The Sea", language="en"),
        "01": Literal("01", datatype=XSD["integer"]),
    }
    engine = Engine()
    engine.subscribe("s", text)
    triple = (NamedNode("urn:s"), NamedNode("urn:p"), literals[value])
    explanation = str(engine.explain("s", Publication.of("urn:one", [triple])))
    assert f"FILTER({filter_}) is not true: ?x is {value}" in explanation
    good = (NamedNode("urn:s"), NamedNode("urn:q"), literals[value])
    missing = str(engine.explain("s", Publication.of("urn:one", [good])))
    assert "no triple matches" in missing


@pytest.mark.parametrize(
    "filter_",
    [
        'STRSTARTS(STR(?x), "0")',
        "?x IN (1, 2)",
        "?x != 2",
        'LANG(?x) = ""',
        '?x = "a" || STR(?x) = "01"',
    ],
)
def test_that_a_filter_that_holds_is_not_the_failure(filter_: str) -> None:
    engine = Engine()
    engine.subscribe("s", f"ASK {{ ?s <urn:p> ?x FILTER({filter_}) FILTER(?x > 7) }}")
    value = Literal("01", datatype=XSD["integer"])
    triple = (NamedNode("urn:s"), NamedNode("urn:p"), value)
    explanation = str(engine.explain("s", Publication.of("urn:one", [triple])))
    assert "✗ FILTER(?x > 7) is not true" in explanation


def test_that_a_branch_that_binds_a_literal_where_another_has_a_property_is_passed_over() -> None:
    engine = Engine()
    engine.subscribe(
        "s", "ASK { { ?s ?x <urn:c> } UNION { ?s <urn:p> ?x } UNION { ?x <urn:p> ?s } }"
    )
    triple = (NamedNode("urn:s"), NamedNode("urn:p"), Literal("5"))
    explanation = engine.explain("s", Publication.of("urn:one", [triple]))
    assert [piece.triple for piece in explanation.evidence] == [triple]


SCHEMA = {
    "subclass": (":Laptop rdfs:subClassOf :Computer", ":x a :Laptop", "?x a :Computer"),
    "domain": (":p rdfs:domain :C", ":x :p :y", "?x a :C"),
    "range": (":p rdfs:range :C", ":x :p :y", "?y a :C"),
    "subproperty": (":p rdfs:subPropertyOf :q", ":x :p :y", "?x :q ?y"),
    "inverse": (":p owl:inverseOf :q", ":x :p :y", "?y :q ?x"),
    "inverse, turned round": (":q owl:inverseOf :p", ":x :p :y", "?y :q ?x"),
    "topic": (":a skos:broader :b", ":x :p :a", "?x :p :b"),
    "class": (":L owl:equivalentClass :M", ":x a :L", "?x a :M"),
    "property": (":p owl:equivalentProperty :q", ":x :p :y", "?x :q ?y"),
    "the same, as subject": (":a owl:sameAs :b", ":a :p :y", ":b :p ?y"),
    "the same, as object": (":a owl:sameAs :b", ":y :p :a", "?y :p :b"),
}
"""Schema in a publication, its data, and a pattern that the derived triple matches."""


@pytest.mark.parametrize("case", SCHEMA)
@pytest.mark.parametrize("is_first", [True, False])
def test_that_reasons_lead_back_to_the_data(case: str, is_first: bool) -> None:
    """Reasons never lead to the schema, in any order of the triples."""
    names = "".join(f"PREFIX {n}: <{iri}> " for n, iri in {**PREFIXES, "": "urn:"}.items())
    schema, data, pattern = SCHEMA[case]
    texts = [schema, data] if is_first else [data, schema]
    publication = Publication.of("urn:one", triples_of(f"{names} {' . '.join(texts)} ."))
    engine = Engine()
    engine.subscribe("s", f"{names} ASK {{ {pattern} }}")
    (piece,) = engine.explain("s", publication).evidence
    assert piece.reasons
    assert f" {schema.split()[1]} " not in "".join(piece.reasons)
