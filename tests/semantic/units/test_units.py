"""Unit declarations, and publications in base units."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

import pytest
from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from semantic.errors import Place, Problem
from semantic.ontology.taxonomy import Taxonomy
from semantic.publication import Publication
from semantic.terms import Term, Triple
from semantic.units.quantities import QUDT, UCUM, UNIT, UnitError, in_unit
from semantic.units.units import MeasurablePattern, Units
from semantic.vocabulary import SUBPROPERTY, XSD

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
    units = Units(triples, properties, found.append)
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


def normal(
    text: str, problems: list[str] | None = None, units: Units | None = None
) -> tuple[Publication, Publication]:
    found: list[Problem] = []
    stated = Publication("p", turtle(text), source=Place("file.ttl"))
    changed = (units or UNITS).normal(stated, found.append)
    assert all(problem.where == Place("file.ttl", item="p") for problem in found)
    assert [problem.what for problem in found] == (problems or [])
    return stated, changed


def same(publication: Publication, text: str) -> bool:
    return set(publication.visible_to_all) == set(turtle(text))


def naming(*names: tuple[Term, NamedNode | Literal]) -> Units:
    """Return units for subscriptions that name a unit of each property."""
    return UNITS.with_hidden(in_unit(*name) for name in names)


def hidden(publication: Publication) -> dict[str, str]:
    """Return the objects that only subscriptions with a named unit see, by property and unit."""
    triples = publication.triples[len(publication.visible_to_all) :]
    assert publication.derived.issuperset(triples)
    found = [(p, o) for _, p, o in triples if isinstance(p, NamedNode)]
    names = [unquote(p.value).partition("in-unit.")[2] for p, _ in found]
    values = [o.value for _, o in found if isinstance(o, NamedNode | Literal)]
    return dict(zip(names, values, strict=True))


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


AMOUNT, WEIGHT, OF = e("amount"), e("weight"), e("unit")
NUMBER, HAS_UNIT = QUDT["numericValue"], QUDT["hasUnit"]


@pytest.mark.parametrize(
    ("stated", "names", "expected"),
    [
        (
            'e:x e:amount 4 ; e:unit "km"',
            [(AMOUNT, Literal("m")), (OF, Literal("m")), (AMOUNT, UNIT["KiloM"])],
            {
                "<urn:amount> m": "4000",
                "<urn:unit> m": "m",
                "<urn:amount> <http://qudt.org/vocab/unit/KiloM>": "4",
            },
        ),
        (
            "e:x e:amount 4 ; e:unit unit:KiloM",
            [(AMOUNT, Literal("m"))],
            {"<urn:amount> m": "4000"},
        ),
        ('e:x e:amount 4 ; e:unit "km"', [(AMOUNT, Literal("kg"))], {}),
        ("e:x e:amount 4", [(AMOUNT, Literal("m"))], {}),
        ('e:x e:amount "4 km"^^cdt:ucum', [(AMOUNT, Literal("m"))], {"<urn:amount> m": "4000"}),
        (
            'e:x e:price 450 ; e:currency "$"',
            [(e("price"), Literal("USD"))],
            {"<urn:price> USD": "450"},
        ),
        ('e:x e:price 450 ; e:currency "$"', [(e("price"), Literal("EUR"))], {}),
        ('e:x e:weight 1900 ; e:unit "g"', [(WEIGHT, Literal("t"))], {"<urn:weight> t": "0.0019"}),
        ('e:x e:gross 1900 ; e:unit "g"', [(WEIGHT, Literal("t"))], {"<urn:weight> t": "0.0019"}),
        (
            "e:x e:other e:n . e:n qudt:numericValue 1 ; qudt:hasUnit unit:KiloM-PER-HR",
            [(NUMBER, Literal("m/s")), (HAS_UNIT, Literal("m/s"))],
            {
                "<http://qudt.org/schema/qudt/numericValue> m/s": "0.277777777777777778",
                "<http://qudt.org/schema/qudt/hasUnit> m/s": "m/s",
            },
        ),
    ],
)
def test_that_a_number_is_added_in_each_named_unit(
    stated: str, names: list[tuple[Term, NamedNode | Literal]], expected: dict[str, str]
) -> None:
    _, after = normal(stated, units=naming(*names))
    assert hidden(after) == expected
    assert normal(stated)[1].visible_to_all == after.visible_to_all


def test_that_a_number_without_a_base_unit_stays_as_stated() -> None:
    stated = 'e:x e:amount 4 ; e:unit "km"'
    assert same(normal(stated)[1], stated)


def test_properties_that_only_look_like_those_in_units() -> None:
    wrong = ["in-unit.", "in-unit.a%20b", "in-unit.%3Curn:a%3E%20frobs", "in-unit.%3Curn:a%3E"]
    names = [NamedNode(f"urn:graphmatch:attribute:{name}") for name in wrong]
    assert not hidden(normal('e:x e:amount 4 ; e:unit "km"', units=UNITS.with_hidden(names))[1])
    assert UNITS.with_hidden([e("x"), None]) is UNITS


def test_that_a_unit_may_be_of_two_numbers() -> None:
    _, after = normal('e:x e:amount 1 ; e:weight 2 ; e:unit "g"')
    assert same(after, 'e:x e:amount 1 ; e:weight 0.002 ; e:unit "g", "kg"')


def test_that_the_unit_of_a_number_that_stays_stays() -> None:
    stated = 'e:x e:weight 2 ; e:length 3 ; e:unit "g"'
    units = units_of(
        """e:weight gm:baseUnit "kg" ; gm:unitAttribute e:unit .
           e:length gm:baseUnit "m" ; gm:unitAttribute e:unit"""
    )
    problem = "<urn:length>: g cannot be converted to m"
    _, after = normal(stated, [problem], units)
    assert same(after, 'e:x e:weight 0.002 ; e:length 3 ; e:unit "g", "kg"')


def test_that_a_number_is_added_for_a_node() -> None:
    stated = "e:x e:size e:n . e:n qudt:numericValue 40000.0 ; qudt:unit unit:MegaBYTE"
    _, after = normal(stated)
    assert same(after, stated + " . e:x e:size 40")
    assert after.derived == set(turtle("e:x e:size 40"))


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
    _, after = normal(stated, ["<urn:size>: unit:KiloGM cannot be converted to GB"])
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
    assert set(found.values()) <= set(triples)
    literal, link = (t for t in triples if t[1] == e("size"))
    assert {found[t] for t in found if t not in triples} == {literal}
    assert found[link] == link


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


def converted(terms: Sequence[Term], *patterns: MeasurablePattern) -> list[Term]:
    return UNITS.constants(terms, patterns)


FIVE, KILOS = Literal("5.0", datatype=XSD["decimal"]), Literal("4 kg", datatype=UCUM)


@pytest.mark.parametrize(
    ("terms", "patterns", "what"),
    [
        ([e("size"), KILOS], [(-1, 0, [(1, False)])], "kg cannot be converted to GB"),
        ([e("weight"), OF, Literal("m")], [(-1, 0, []), (-1, 1, [(2, True)])], "m cannot be"),
        (
            [e("size"), e("weight"), KILOS],
            [(-1, 0, [(2, False)]), (-1, 1, [(2, False)])],
            "is used with attributes of different units",
        ),
        (
            [AMOUNT, OF, Literal("g"), OF, Literal("kg")],
            [(-1, 0, []), (-1, 1, [(2, True)]), (-1, 3, [(4, True)])],
            "names two units of a number, g and kg",
        ),
        ([AMOUNT, OF, Literal("frobs")], [(-1, 0, []), (-1, 1, [(2, True)])], "not a unit"),
        (
            [AMOUNT, OF, e("pound")],
            [(-1, 0, []), (-1, 1, [(2, True)])],
            "<urn:pound> is not a unit",
        ),
        ([e("free"), Literal("4 frobs", datatype=UCUM)], [(-1, 0, [(1, False)])], "not a unit"),
    ],
)
def test_constants_that_cannot_be(
    terms: list[Term], patterns: list[MeasurablePattern], what: str
) -> None:
    with pytest.raises(UnitError, match=what):
        converted(terms, *patterns)


def test_that_a_named_unit_gives_its_numbers_another_property() -> None:
    terms: list[Term] = [AMOUNT, FIVE, OF, Literal("g"), AMOUNT]
    found = converted(terms, (-1, 0, [(1, False)]), (-1, 2, [(3, True)]), (-2, 4, []))
    named = [in_unit(AMOUNT, Literal("g")), in_unit(OF, Literal("g"))]
    five = Literal("5", datatype=XSD["integer"])
    assert found == [named[0], five, named[1], Literal("g"), AMOUNT]


def test_that_a_subject_may_be_a_constant() -> None:
    terms: list[Term] = [e("x"), AMOUNT, e("x"), OF, Literal("g"), e("y"), AMOUNT]
    found = converted(terms, (0, 1, []), (2, 3, [(4, True)]), (5, 6, []))
    assert found[1] == in_unit(AMOUNT, Literal("g"))
    assert found[6] == AMOUNT


@pytest.mark.parametrize(
    "constants",
    [[(2, False)], [(2, True), (3, True)]],
    ids=["not for equality", "one of two"],
)
def test_units_that_name_none(constants: list[tuple[int, bool]]) -> None:
    terms: list[Term] = [AMOUNT, OF, Literal("g"), Literal("kg")]
    assert converted(terms, (-1, 0, []), (-1, 1, constants)) == terms


def test_that_a_unit_alone_is_the_stated_one() -> None:
    terms: list[Term] = [OF, Literal("g")]
    assert converted(terms, (-1, 0, [(1, True)])) == terms


def test_that_a_quantity_names_a_unit() -> None:
    grams = Literal("500 g", datatype=UCUM)
    found = converted([AMOUNT, KILOS, grams], (-1, 0, [(1, False), (2, False)]))
    assert found[0] == in_unit(AMOUNT, Literal("kg"))
    assert [term.value for term in found[1:] if isinstance(term, Literal)] == ["4", "0.5"]


def test_that_other_constants_stay() -> None:
    terms: list[Term] = [e("x"), Literal("heavy"), Literal("5")]
    assert converted(terms) == terms
    terms = [WEIGHT, Literal("heavy"), OF]
    assert converted(terms, (-1, 0, [(1, True)]), (-1, 2, [])) == terms
