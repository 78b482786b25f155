"""Unit declarations, and publications in base units."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from semantic.errors import Place, Problem
from semantic.ontology.taxonomy import Taxonomy
from semantic.publication import Publication
from semantic.terms import Term, Triple
from semantic.units.quantities import QUDT, UCUM, UNIT, UnitError, in_base
from semantic.units.units import ConstantUse, Units
from semantic.vocabulary import SUBPROPERTY

PREFIXES = """
@prefix e: <urn:> . @prefix gm: <urn:graphmatch:> . @prefix cdt: <https://w3id.org/cdt/> .
@prefix qudt: <http://qudt.org/schema/qudt/> . @prefix unit: <http://qudt.org/vocab/unit/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""


def turtle(text: str) -> tuple[Triple, ...]:
    quads = parse(PREFIXES + text + " .", format=RdfFormat.TURTLE)
    return tuple((q.subject, q.predicate, q.object) for q in quads)


def e(name: str) -> NamedNode:
    return NamedNode(f"urn:{name}")


def units_of(text: str, problems: list[Problem] | None = None) -> Units:
    triples = turtle(text)
    properties = Taxonomy((s, o) for s, p, o in triples if p == SUBPROPERTY)
    found: list[Problem] = []
    units = Units.of(triples, properties, found.append)
    if problems is None:
        assert not found
    else:
        problems += found
    return units


UNITS = units_of(
    """
    e:size gm:baseUnit "GB" . e:qsize gm:baseUnit unit:GigaBYTE .
    e:weight gm:baseUnit "kg" ; gm:unitAttribute e:unit .
    e:amount gm:unitAttribute e:unit . e:price gm:unitAttribute e:currency .
    e:gross rdfs:subPropertyOf e:weight . e:diskSize rdfs:subPropertyOf e:size
    """
)


def normal(text: str, problems: list[str] | None = None) -> tuple[Publication, Publication]:
    found: list[Problem] = []
    stated = Publication("p", turtle(text), source=Place("file.ttl"))
    changed = UNITS.normal(stated, found.append)
    assert all(problem.where == Place("file.ttl", item="p") for problem in found)
    assert [problem.what for problem in found] == (problems or [])
    return stated, changed


def same(publication: Publication, text: str) -> bool:
    return set(publication.visible_to_all) == set(turtle(text))


def says_in_base_units(publication: Publication, text: str) -> bool:
    """Return whether the triples are visible only to queries that name a unit."""
    hidden = publication.triples[len(publication.visible_to_all) :]
    assert publication.derived.issuperset(hidden)
    return set(hidden) == {(s, in_base(p), o) for s, p, o in turtle(text)}


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ('e:x e:size "0.04 TB"^^cdt:ucum', "e:x e:size 40"),
        ('e:x e:size "40 GB"^^cdt:ucum', "e:x e:size 40"),
        ('e:x e:diskSize "1 MB"^^cdt:ucum', "e:x e:diskSize 0.001"),
        ('e:x e:qsize "40 gigabyte"^^cdt:ucum', "e:x e:qsize 40"),
        ('e:x e:size "40e9 By"^^cdt:information', "e:x e:size 40"),
        ("e:x e:size 40.0", "e:x e:size 40.0"),
        ('e:x e:free "0.04 TB"^^cdt:ucum', 'e:x e:free "40000000000 By"^^cdt:ucum'),
        ('e:x e:temperature "20 Cel"^^cdt:ucum', 'e:x e:temperature "293.15 K"^^cdt:ucum'),
        ('e:x e:weight 4000 ; e:unit "g"', 'e:x e:weight 4 ; e:unit "kg"'),
        ("e:x e:weight 4000 ; e:unit unit:GM", 'e:x e:weight 4 ; e:unit "kg"'),
        ('e:x e:gross 1 ; e:unit "t"', 'e:x e:gross 1000 ; e:unit "kg"'),
        ("e:x e:amount 4", "e:x e:amount 4"),
    ],
)
def test_publication(stated: str, expected: str) -> None:
    before, after = normal(stated)
    assert same(after, expected)
    assert not after.derived
    assert same(before, stated)


@pytest.mark.parametrize(
    ("stated", "in_base_units"),
    [
        ('e:x e:amount 4 ; e:unit "km"', 'e:x e:amount 4000 ; e:unit "m"'),
        ("e:x e:amount 4 ; e:unit unit:KiloM", "e:x e:amount 4000 ; e:unit unit:M"),
        ('e:x e:price 450 ; e:currency "$"', 'e:x e:price 450 ; e:currency "USD"'),
        ('e:x e:amount 1 ; e:unit "km", "1000.m"', 'e:x e:amount 1000 ; e:unit "m"'),
        (
            "e:x e:other e:n . e:n qudt:numericValue 1 ; qudt:hasUnit unit:KiloM-PER-HR",
            "e:n qudt:numericValue 0.277777777777777778 ; qudt:hasUnit unit:M-PER-SEC",
        ),
    ],
)
def test_that_a_number_with_a_unit_stays_as_stated(stated: str, in_base_units: str) -> None:
    _, after = normal(stated)
    assert same(after, stated)
    assert says_in_base_units(after, in_base_units)


def test_that_a_unit_may_be_of_two_numbers() -> None:
    _, after = normal('e:x e:amount 1 ; e:weight 2 ; e:unit "g"')
    assert same(after, 'e:x e:amount 1 ; e:weight 0.002 ; e:unit "g", "kg"')
    assert says_in_base_units(after, 'e:x e:amount 0.001 ; e:unit "kg"')


def test_that_a_number_is_added_for_a_node() -> None:
    stated = "e:x e:size e:n . e:n qudt:numericValue 40000.0 ; qudt:unit unit:MegaBYTE"
    _, after = normal(stated)
    assert same(after, stated + " . e:x e:size 40")
    assert says_in_base_units(after, "e:n qudt:numericValue 40000000000 ; qudt:unit unit:BYTE")
    assert after.derived.issuperset(turtle("e:x e:size 40"))


def test_that_a_stated_number_is_not_derived() -> None:
    stated = "e:x e:size 1, e:n . e:n qudt:value 1000 ; qudt:unit unit:MegaBYTE"
    assert not normal(stated)[1].derived.intersection(turtle("e:x e:size 1"))


@pytest.mark.parametrize(
    ("stated", "problem"),
    [
        ('e:x e:size "4 kg"^^cdt:ucum', "kg cannot be converted to GB"),
        ('e:x e:size "4 frobs"^^cdt:ucum', "“frobs” is not a unit"),
        ('e:x e:size "four GB"^^cdt:ucum', "“four GB” is not a number and a unit"),
        ('e:x e:weight 4 ; e:unit "frobs"', "“frobs” is not a unit"),
        ('e:x e:weight "heavy" ; e:unit "kg"', "“heavy” has a unit but is not a number"),
        ('e:x e:weight 4 ; e:unit "kg", "g"', "a number has two units, g and kg"),
        ('e:x e:weight 4 ; e:unit "m"', "m cannot be converted to kg"),
        ("e:x e:weight 4 ; e:unit e:pound", "<urn:pound> is not a unit"),
    ],
)
def test_what_stays_and_is_reported(stated: str, problem: str) -> None:
    attribute = "size" if "e:size" in stated else "weight"
    good = ' . e:y e:size "1 TB"^^cdt:ucum'
    _, after = normal(stated + good, [f"<urn:{attribute}>: {problem}"])
    assert same(after, stated + " . e:y e:size 1000")


def test_a_node_of_another_dimension() -> None:
    stated = "e:x e:size e:n . e:n qudt:numericValue 4 ; qudt:unit unit:KiloGM"
    _, after = normal(stated, ["<urn:size>: its unit cannot be converted to GB"])
    assert same(after, stated)


def test_that_a_publication_without_quantities_is_itself() -> None:
    stated, after = normal('e:x e:size 40 ; e:unit "kg" ; e:title "40 GB"')
    assert after is stated


def test_what_changed_triples_were_made_of() -> None:
    triples = turtle(
        'e:x e:size "1 TB"^^cdt:ucum, e:n . e:n qudt:value 1 ; qudt:unit unit:TeraBYTE'
    )
    found = UNITS.normal_triples(triples, lambda *_: None)
    assert found is not None
    assert set(found.origins.values()) <= set(triples)
    assert {t for t in found.triples if t not in triples} == set(found.origins)


def test_that_unit_text_literals_are_let_alone() -> None:
    _, after = normal('e:x e:size "GB"^^cdt:ucumunit')
    assert same(after, 'e:x e:size "GB"^^cdt:ucumunit')


@pytest.mark.parametrize(
    ("ontology", "problem"),
    [
        ('e:a gm:baseUnit "frobs"', "the base unit of <urn:a>: “frobs” is not a unit"),
        ("e:a gm:unitAttribute 5", "the unit attribute of <urn:a> is not an IRI"),
        (
            'e:a gm:baseUnit "GB" . e:b gm:baseUnit "MB" ; rdfs:subPropertyOf e:a',
            '<urn:b> has several base units: "GB", "MB"; none is used',
        ),
        ('e:b gm:baseUnit "GB", "kg"', '<urn:b> has several base units: "GB", "kg"; none is used'),
    ],
)
def test_declaration_that_cannot_be_used(ontology: str, problem: str) -> None:
    problems: list[Problem] = []
    units = units_of(ontology, problems)
    assert [found.what for found in problems] == [problem]
    assert units.base_unit(e("b")) is None


def test_that_two_spellings_of_one_unit_agree() -> None:
    units = units_of('e:a gm:baseUnit "GB" . e:b gm:baseUnit "GBy" ; rdfs:subPropertyOf e:a')
    own = units.base_unit(e("b"))
    assert own is not None
    assert own.term == Literal("GBy")


def use(attribute: Term, *siblings: tuple[Term, Term | None]) -> ConstantUse:
    return ConstantUse(attribute, siblings)


@pytest.mark.parametrize(
    ("uses", "what"),
    [
        ([use(e("size"))], "kg cannot be converted to GB"),
        ([use(e("size")), use(e("weight"))], "is used with attributes of different base units"),
    ],
)
def test_constant_that_cannot_be(uses: list[ConstantUse], what: str) -> None:
    with pytest.raises(UnitError, match=what):
        UNITS.constant(Literal("4 kg", datatype=UCUM), uses)


def test_a_unit_alone_that_may_be_of_two() -> None:
    with pytest.raises(UnitError, match="different base units"):
        UNITS.constant(Literal("g"), [use(e("unit"))])
    beside = use(e("unit"), (e("weight"), None))
    assert UNITS.constant(Literal("g"), [beside]) == Literal("kg")
    assert UNITS.constant(UNIT["GM"], [use(QUDT["unit"])]) == UNIT["GM"]
    named = use(QUDT["unit"], (QUDT["numericValue"], None), (QUDT["unit"], UNIT["GM"]))
    assert UNITS.constant(UNIT["GM"], [named]) == UNIT["KiloGM"]


def test_a_number_with_two_units_beside_it() -> None:
    beside = use(e("weight"), (e("unit"), Literal("g")), (e("unit"), Literal("kg")))
    with pytest.raises(UnitError, match="a number has two units"):
        UNITS.constant(turtle("e:x e:y 5")[0][2], [beside])


def constants(terms: Iterable[Term], uses: list[ConstantUse]) -> list[Term]:
    return [UNITS.constant(term, uses) for term in terms]


def test_that_other_constants_stay() -> None:
    terms = [e("x"), Literal("heavy"), Literal("5")]
    assert constants(terms, []) == terms
    assert constants(terms, [use(e("weight"), (e("unit"), Literal("g")))]) == terms
