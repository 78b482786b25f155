"""Counts of the axioms that an entailment ignores."""

from __future__ import annotations

import pytest
from pyoxigraph import RdfFormat, parse

from semantic import Ontology
from semantic.errors import InputError

PREFIXES = """
@prefix : <urn:axioms:> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix swrl: <http://www.w3.org/2003/11/swrl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
SOME, ALL = "[ owl:onProperty :p ; owl:someValuesFrom :B ]", "[ owl:allValuesFrom :B ]"
ONE, TWO = (f'"{n}"^^xsd:nonNegativeInteger' for n in (1, 2))


def unused(turtle: str, entailment: str = "rdfs") -> str:
    """Return the text about unused axioms of an ontology in Turtle."""
    quads = parse(f"{PREFIXES}{turtle} .", RdfFormat.TURTLE)
    triples = [(quad.subject, quad.predicate, quad.object) for quad in quads]
    return str(Ontology(triples).unused_axioms(entailment))


SIDES = [
    # Each case: a class expression, whether owl-rl uses it as a subclass, and as a superclass.
    (SOME, True, False),
    (ALL, False, True),
    ("[ owl:hasValue :i ]", True, True),
    ("[ owl:hasSelf true ]", False, False),
    ("[ owl:unionOf ( :B :C ) ]", True, False),
    ("[ owl:intersectionOf ( :B :C ) ]", True, True),
    ("[ owl:complementOf :B ]", False, True),
    ("[ owl:oneOf ( :i :j ) ]", True, False),
    (f"[ owl:maxCardinality {ONE} ]", False, True),
    (f"[ owl:maxCardinality {TWO} ]", False, False),
    ("[ owl:maxCardinality 1 ]", False, False),
    ("[ owl:intersectionOf () ]", False, False),
    ("[ owl:intersectionOf :B ]", False, False),
    ("[ owl:unionOf () ]", False, False),
    (f"[ owl:maxQualifiedCardinality {ONE} ; owl:onClass :B ]", False, True),
    (f"[ owl:minCardinality {ONE} ]", False, False),
    (f"[ owl:cardinality {ONE} ]", False, False),
    (f"[ owl:minQualifiedCardinality {ONE} ; owl:onClass :B ]", False, False),
    (f"[ owl:qualifiedCardinality {ONE} ; owl:onClass :B ]", False, False),
    ("[ owl:onDatatype xsd:integer ]", False, False),
]


@pytest.mark.parametrize(("expression", "as_subclass", "as_superclass"), SIDES)
def test_the_sides_of_class_expressions(
    expression: str, as_subclass: bool, as_superclass: bool
) -> None:
    used = {
        f"{expression} rdfs:subClassOf :A": as_subclass,
        f":A rdfs:subClassOf {expression}": as_superclass,
        f":A owl:equivalentClass {expression}": as_subclass or as_superclass,
        f"{expression} owl:equivalentClass :A": as_subclass or as_superclass,
        f":p rdfs:range {expression}": as_superclass,
        f":i a {expression}": as_superclass,
    }
    for turtle, is_used in used.items():
        assert ("no axioms:" in unused(turtle, "owl-rl")) is is_used, turtle
        assert f"{int(is_used)} of them" in unused(turtle), turtle


NESTED = [
    # Each case: an axiom, and the number of its expressions that owl-rl uses.
    (f":A rdfs:subClassOf [ owl:intersectionOf ( :B {SOME} ) ]", 1),
    (f":A owl:equivalentClass [ owl:intersectionOf ( :B {SOME} ) ]", 2),
    (f":A owl:intersectionOf ( :B {SOME} )", 2),
    (f":A rdfs:subClassOf [ owl:complementOf {SOME} ]", 2),
    (f":A rdfs:subClassOf [ owl:complementOf {ALL} ]", 1),
    (f"[ owl:someValuesFrom {SOME} ] rdfs:subClassOf :A", 2),
    (f"[ owl:someValuesFrom {ALL} ] rdfs:subClassOf :A", 1),
    (f":A rdfs:subClassOf [ owl:someValuesFrom {ALL} ]", 0),
    (f":A rdfs:subClassOf [ owl:allValuesFrom {ALL} ]", 2),
    (f":A rdfs:subClassOf [ owl:unionOf ( :B {ALL} ) ]", 0),
    (f":A rdfs:subClassOf [ owl:maxQualifiedCardinality {ONE} ; owl:onClass {SOME} ]", 2),
    (f":A rdfs:subClassOf [ owl:minQualifiedCardinality {ONE} ; owl:onClass {SOME} ]", 0),
    (f":A owl:disjointWith {SOME}", 2),
]


@pytest.mark.parametrize(("turtle", "number"), NESTED)
def test_nested_class_expressions(turtle: str, number: int) -> None:
    assert f"; {number} of them" in unused(turtle)


def test_a_circular_list_ends() -> None:
    turtle = f":A rdfs:subClassOf [ owl:intersectionOf _:l ] . _:l rdf:first {SOME} ; rdf:rest _:l"
    assert "1 of them" in unused(turtle)


def test_axioms_without_a_list_are_unused() -> None:
    turtle = ":p owl:propertyChainAxiom :q, (), ( :q ) . :A owl:hasKey :p . :B owl:hasKey ( :p )"
    assert unused(turtle, "owl-rl") == "2 property chains, 1 key axiom: not used by owl-rl"


def test_the_text() -> None:
    some = "".join(f":A{n} rdfs:subClassOf {SOME} . " for n in range(3))
    chains = ":p owl:propertyChainAxiom ( :p :q ) . :q a owl:TransitiveProperty"
    assert unused(some + chains) == (
        "3 existential restrictions, 1 transitive property, 1 property chain: not used by rdfs; "
        "2 of them are used by owl-rl"
    )
    assert unused(some + chains, "owl-rl") == "3 existential restrictions: not used by owl-rl"
    assert unused(":A rdfs:subClassOf :B", "none") == (
        "1 subclass axiom: not used by entailment none; 1 of them is used by rdfs or owl-rl"
    )


def test_mappings_and_rules_are_counted() -> None:
    turtle = ":S sh:rule [] . [] a swrl:Imp . :a skos:exactMatch :b . :c skos:closeMatch :d"
    text = "2 SKOS mappings, 1 SHACL rule, 1 SWRL rule: not used by "
    assert unused(turtle, "owl-rl") == f"{text}owl-rl"
    assert unused(turtle) == f"{text}rdfs; 0 of them are used by owl-rl"


def test_a_declared_taxonomy_is_used() -> None:
    declared = "skos:broadMatch a <urn:graphmatch:Taxonomy> . :a skos:broadMatch :b"
    assert unused(declared).startswith("no axioms:")
    assert not Ontology().unused_axioms("rdfs")


def test_an_unknown_entailment_is_an_error() -> None:
    with pytest.raises(InputError, match="Use one of: none, rdfs, owl-rl"):
        Ontology().unused_axioms("owl")
