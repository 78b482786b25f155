"""Quantities in publications and queries, compared with exact fractions and a table of units."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from graphmatch import Engine, SubscriptionParser
from graphmatch.published.naive import Naive
from semantic import Ontology, Publication
from semantic.errors import Problem, SubscriptionError
from semantic.mapping import MappingFunction
from semantic.terms import Triple
from semantic.units.quantities import UCUM
from semantic.units.registry import Registry
from semantic.units.units import Units

TABLE: dict[str, dict[str, tuple[Fraction, Fraction]]] = {
    "information": {
        "B": (Fraction(1), Fraction(0)),
        "kB": (Fraction(10**3), Fraction(0)),
        "MB": (Fraction(10**6), Fraction(0)),
        "GBy": (Fraction(10**9), Fraction(0)),
        "TB": (Fraction(10**12), Fraction(0)),
        "KiB": (Fraction(2**10), Fraction(0)),
        "GiBy": (Fraction(2**30), Fraction(0)),
    },
    "length": {
        "m": (Fraction(1), Fraction(0)),
        "km": (Fraction(1000), Fraction(0)),
        "cm": (Fraction(1, 100), Fraction(0)),
        "[in_i]": (Fraction(254, 10000), Fraction(0)),
    },
    "time": {
        "s": (Fraction(1), Fraction(0)),
        "min": (Fraction(60), Fraction(0)),
        "h": (Fraction(3600), Fraction(0)),
    },
    "mass": {
        "kg": (Fraction(1), Fraction(0)),
        "g": (Fraction(1, 1000), Fraction(0)),
        "t": (Fraction(1000), Fraction(0)),
    },
    "temperature": {
        "K": (Fraction(1), Fraction(0)),
        "Cel": (Fraction(1), Fraction("273.15")),
        "[degF]": (Fraction(5, 9), Fraction("459.67") * Fraction(5, 9)),
    },
}
"""Factor and offset of each unit, by dimension."""

QUDT_NAMES = {
    "B": "BYTE", "kB": "KiloBYTE", "MB": "MegaBYTE", "GBy": "GigaBYTE", "TB": "TeraBYTE",
    "KiB": "KibiBYTE", "GiBy": "GibiBYTE", "m": "M", "km": "KiloM", "cm": "CentiM",
    "[in_i]": "IN", "s": "SEC", "min": "MIN", "h": "HR", "kg": "KiloGM", "g": "GM", "t": "TONNE",
    "K": "K", "Cel": "DEG_C", "[degF]": "DEG_F",
}  # fmt: skip
OPERATORS = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
PREFIXES = """
PREFIX e: <urn:> PREFIX gm: <urn:graphmatch:> PREFIX cdt: <https://w3id.org/cdt/>
PREFIX qudt: <http://qudt.org/schema/qudt/> PREFIX unit: <http://qudt.org/vocab/unit/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
"""
PARSER = SubscriptionParser()
REGISTRY = Registry()


@dataclass(frozen=True)
class Amount:
    """A number in its lexical form, and a unit."""

    number: str
    unit: str

    def in_base(self) -> Fraction:
        (units,) = (units for units in TABLE.values() if self.unit in units)
        factor, offset = units[self.unit]
        return Fraction(self.number) * factor + offset


def turtle(text: str) -> list[Triple]:
    quads = parse(PREFIXES + text, format=RdfFormat.TURTLE)
    return [(q.subject, q.predicate, q.object) for q in quads]


def declared(base: str | None) -> str:
    own = f'gm:baseUnit "{base}" ;' if base else ""
    return f"e:a {own} gm:unitAttribute e:u ."


STATED = {
    "literal": lambda a: f'e:x e:a "{a.number} {a.unit}"^^cdt:ucum .',
    "pair": lambda a: f'e:x e:a {a.number} ; e:u "{a.unit}" .',
    "node": lambda a: (
        f"e:x e:a [ qudt:numericValue {a.number} ; qudt:unit unit:{QUDT_NAMES[a.unit]} ] ."
    ),
}
ASKED = {
    "literal": lambda sign, a: f'?x e:a ?v FILTER(?v {sign} "{a.number} {a.unit}"^^cdt:ucum)',
    "mirrored": lambda sign, a: (
        f'?x e:a ?v FILTER("{a.number} {a.unit}"^^cdt:ucum {MIRRORED[sign]} ?v)'
    ),
    "negated": lambda sign, a: f'?x e:a ?v FILTER(!(?v {sign} "{a.number} {a.unit}"^^cdt:ucum))',
    "pair": lambda sign, a: f'?x e:a ?v ; e:u "{a.unit}" FILTER(?v {sign} {a.number})',
    "node": lambda sign, a: (
        f"?x e:a ?n . ?n qudt:numericValue ?v ; qudt:unit unit:{QUDT_NAMES[a.unit]} "
        f"FILTER(?v {sign} {a.number})"
    ),
}


def is_asked_of(stated: str, asked: str, base: str | None) -> bool:
    """Return whether a form of query can match a form of statement."""
    if stated == "literal":
        return asked in ("literal", "mirrored", "negated")
    if stated == "pair":
        return asked != "node"
    return asked == "node" or (base is not None and asked != "pair")


def matches(ontology_text: str, publication_text: str, pattern: str) -> bool:
    """Return whether a publication matches; index and evaluator must agree."""
    ontology = Ontology(turtle(ontology_text), registry=REGISTRY)
    engine = Engine(ontology, on_problem=raise_problem)
    engine.subscribe("s", f"{PREFIXES} SELECT * {{ {pattern} }}")
    publication = Publication.of("p", turtle(publication_text))
    naive = Naive(ontology)
    naive.subscribe(PARSER.parse("s", f"{PREFIXES} SELECT * {{ {pattern} }}"))
    found = bool(naive.match(publication).matches)
    assert bool(engine.match(publication).matches) is found
    return found


def raise_problem(problem: object) -> None:
    raise AssertionError(problem)


NUMBERS = st.decimals(-1000, 1000, places=3).map(lambda d: f"{d:f}") | st.integers(-9, 99).map(str)


@st.composite
def amounts(draw: st.DrawFn) -> tuple[Amount, Amount, str | None]:
    """Draw two amounts of a dimension, often equal ones, and a base unit."""
    units = TABLE[draw(st.sampled_from(sorted(TABLE)))]
    names = sorted(units)
    one = Amount(draw(NUMBERS), draw(st.sampled_from(names)))
    other = Amount(draw(NUMBERS), draw(st.sampled_from(names)))
    factor, offset = units[other.unit]
    same = (one.in_base() - offset) / factor
    if (same * 10**12).denominator == 1 and draw(st.booleans()):
        whole, rest = divmod(abs(same) * 10**12, 10**12)
        other = Amount(f"{'-' if same < 0 else ''}{int(whole)}.{int(rest):012d}", other.unit)
    return one, other, draw(st.none() | st.sampled_from(names))


@given(
    amounts(), st.sampled_from(sorted(STATED)), st.sampled_from(sorted(ASKED)),
    st.sampled_from(sorted(OPERATORS)),
)  # fmt: skip
@example((Amount("40", "GBy"), Amount("0.04", "TB"), "GBy"), "literal", "literal", "=")
@example((Amount("-40", "Cel"), Amount("-40", "[degF]"), None), "literal", "mirrored", "=")
@example((Amount("1", "[in_i]"), Amount("2.54", "cm"), "km"), "pair", "pair", ">=")
def test_comparison(
    drawn: tuple[Amount, Amount, str | None], stated: str, asked: str, sign: str
) -> None:
    one, other, base = drawn
    assume(is_asked_of(stated, asked, base))
    truth = OPERATORS[sign](one.in_base(), other.in_base())
    if asked == "negated":
        truth = not truth
    found = matches(declared(base), STATED[stated](one), ASKED[asked](sign, other))
    assert found is truth


@given(amounts())
def test_equal_quantities_are_equal_terms(drawn: tuple[Amount, Amount, str | None]) -> None:
    one, other, base = drawn
    pattern = f'?x e:a "{other.number} {other.unit}"^^cdt:ucum'
    equal = one.in_base() == other.in_base()
    assert matches(declared(base), STATED["literal"](one), pattern) is equal
    listed = f'?x e:a ?v FILTER(?v IN ("{other.number} {other.unit}"^^cdt:ucum))'
    assert matches(declared(base), STATED["literal"](one), listed) is equal


def test_other_dimensions_are_not_compared() -> None:
    for sign in OPERATORS:
        asked = ASKED["literal"](sign, Amount("1", "kg"))
        assert not matches(declared(None), STATED["literal"](Amount("1", "m")), asked)


def test_exactness_is_kept_where_terms_are_protected() -> None:
    publication = 'e:x e:a "0.04 TB"^^cdt:ucum ; e:b "007"^^xsd:int .'
    asked = '?x e:a ?v ; e:b ?w FILTER(?v != "39 GB"^^cdt:ucum)'
    assert matches(declared(None), publication, asked)
    assert not matches(declared(None), publication, asked.replace("39", "40"))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("?q qudt:numericValue ?v ; qudt:unit ?u FILTER(?v > 40)", False),
        ("?q qudt:numericValue ?v FILTER(?v > 40)", False),
        ("?q qudt:numericValue ?v ; qudt:unit ?u FILTER(?v = 33 && ?u = unit:DEG_C)", True),
        ("?q qudt:numericValue ?v ; qudt:unit ?u FILTER(?v = 33)", True),
        ("?q qudt:numericValue 33", True),
        ("?q ?p ?v FILTER(?v > 40)", False),
        ("?x e:t/qudt:numericValue ?v FILTER(?v > 40)", False),
        ("?q qudt:numericValue ?v OPTIONAL { ?q qudt:unit ?u } FILTER(?v > 40)", False),
        ("?q qudt:unit unit:DEG_C", True),
        ("?q qudt:unit unit:K", False),
        ("?q qudt:numericValue ?v ; qudt:unit unit:K FILTER(?v > 306)", True),
        ("?q qudt:numericValue ?v ; qudt:unit unit:DEG_F FILTER(?v > 91)", True),
        ("?q qudt:numericValue 306.15 ; qudt:unit unit:K", True),
        ("?q qudt:numericValue ?v ; qudt:unit unit:DEG_C FILTER(?v > 40)", False),
        ("?q qudt:unit unit:DEG_C OPTIONAL { ?q qudt:numericValue ?v } FILTER(?v > 30)", True),
    ],
)
def test_a_number_without_a_unit_is_the_number_as_stated(asked: str, expected: bool) -> None:
    """Only queries that name a unit see 33 °C as 306.15 K."""
    stated = "e:x e:t [ qudt:numericValue 33 ; qudt:unit unit:DEG_C ] ."
    engine = Engine(Ontology(registry=REGISTRY), on_problem=raise_problem)
    engine.subscribe("s", f"{PREFIXES} SELECT * {{ {asked} }}")
    assert bool(engine.match(Publication.of("p", turtle(stated)))) is expected
    if "?p" not in asked:
        assert matches("", stated, asked) is expected


GRAMS = """
e:a e:weight [ qudt:numericValue 1900 ; qudt:unit unit:GM ] .
e:b e:weight [ qudt:numericValue 0.5 ; qudt:hasUnit "kg" ] .
e:c e:weight [ qudt:numericValue 2 ; qudt:unit unit:LB ] .
e:d e:weight [ qudt:numericValue 9 ; qudt:unit unit:K ] .
e:e e:weight [ qudt:numericValue 7 ] .
"""
KILOS = "?x e:weight ?q . ?q qudt:unit unit:KiloGM ; qudt:numericValue ?v"
GRAM = "?x e:weight ?q . ?q qudt:unit unit:GM ; qudt:numericValue ?v"
QUERIES = [
    ("SELECT ?v { ?q qudt:numericValue ?v }", ["0.5", "1900", "2", "7", "9"]),
    (f"SELECT ?v {{ {KILOS} }}", ["0.5", "0.90718474", "1.9"]),
    (f"SELECT ?v {{ {GRAM} }}", ["1900", "500", "907.18474"]),
    (f"SELECT ?v {{ {KILOS} FILTER(?v > 1) }}", ["1.9"]),
    (f"SELECT ?v {{ {KILOS} FILTER(?v IN (1.90, 7)) }}", ["1.9"]),
    (f"SELECT ?v {{ {KILOS} VALUES ?v {{ 1.90 7 }} }}", ["1.9"]),
    (f"SELECT ?v {{ {KILOS} VALUES ?least {{ 1 }} FILTER(?v > ?least) }}", ["1.9"]),
    (f"SELECT ?d {{ {KILOS} BIND(?v * 10 AS ?d) }}", ["19", "5", "9.0718474"]),
    (f"SELECT ?d {{ {KILOS} BIND(?v AS ?d) FILTER(?d < 1.5) }}", ["0.5", "0.90718474"]),
    (f"SELECT (MAX(?v) AS ?m) {{ {KILOS} }} HAVING(MAX(?v) > 1)", ["1.9"]),
    (f"SELECT (MAX(?v) AS ?m) {{ {KILOS} }} HAVING(MAX(?v) > 2)", []),
    (f"SELECT ?v {{ {GRAM} }} ORDER BY ?v LIMIT 1", ["500"]),
    (f"SELECT ?v {{ {GRAM} }} ORDER BY DESC(?v) LIMIT 1", ["1900"]),
    (
        "SELECT ?v { ?q qudt:unit ?u ; qudt:numericValue ?v FILTER(?u = unit:GM) }",
        ["1900", "500", "907.18474"],
    ),
    (
        "SELECT ?v { VALUES ?u { unit:GM } ?q qudt:unit ?u ; qudt:numericValue ?v }",
        ["1900", "500", "907.18474"],
    ),
    (
        "SELECT ?v { ?q qudt:unit ?u ; qudt:numericValue ?v FILTER(?u IN (unit:GM, unit:K)) }",
        ["1900", "9"],
    ),
    ("SELECT ?v { ?q qudt:unit unit:LB ; qudt:numericValue ?v FILTER(?v = 2) }", ["2"]),
    ("SELECT ?v { ?q qudt:unit unit:GM ; qudt:numericValue 1900.0, ?v }", ["1900"]),
    ("SELECT ?v { ?q qudt:hasUnit unit:GM ; qudt:numericValue ?v }", ["1900", "500", "907.18474"]),
    ('SELECT ?v { ?q qudt:numericValue ?v FILTER(?v > "600 g"^^cdt:ucum) }', ["1900", "907.18474"]),
    ('SELECT ?v { ?q qudt:numericValue ?v FILTER("1 kg"^^cdt:ucum > ?v) }', ["0.5", "0.90718474"]),
    ('SELECT ?v { ?x e:weight/qudt:numericValue ?v FILTER(?v > "1 kg"^^cdt:ucum) }', ["1.9"]),
    ('SELECT ?v { ?q qudt:numericValue ?v VALUES ?v { "500 g"^^cdt:ucum } }', ["500"]),
    (
        'SELECT (SUM(?v) AS ?s) { ?q qudt:numericValue ?v } HAVING(SUM(?v) > "3300 g"^^cdt:ucum)',
        ["3307.18474"],
    ),
    ('SELECT (SUM(?v) AS ?s) { ?q qudt:numericValue ?v } HAVING(SUM(?v) > "4 kg"^^cdt:ucum)', []),
    ('SELECT ?v { ?q qudt:numericValue ?v BIND(?v AS ?w) FILTER(?w > "1 kg"^^cdt:ucum) }', ["1.9"]),
    (
        'SELECT ?v { ?q qudt:unit unit:LB ; qudt:numericValue ?v FILTER(?v < "1 kg"^^cdt:ucum) }',
        ["1.102311310924387904", "2"],
    ),
    (
        "SELECT ?v { { ?k qudt:unit unit:KiloGM ; qudt:numericValue ?v FILTER(?v > 1) } UNION"
        " { ?l qudt:unit unit:LB ; qudt:numericValue ?v FILTER(?v < 3) } }",
        ["1.102311310924387904", "1.9", "2"],
    ),
    ('SELECT ?v { ?q qudt:numericValue ?v FILTER(?v > "1 m"^^cdt:ucum) }', []),
]


@pytest.mark.parametrize(("query", "expected"), QUERIES)
def test_numbers_in_named_units(query: str, expected: list[str]) -> None:
    """A solution has the number in the unit that the query names, otherwise as stated."""
    engine = Engine(Ontology(registry=REGISTRY), on_problem=raise_problem)
    engine.subscribe("s", PREFIXES + query)
    report = engine.match(Publication.of("p", turtle(GRAMS)))
    assert (
        sorted(v.value for match in report for row in match.solutions for v in row.values())
        == expected
    )


def test_queries_with_different_units_side_by_side() -> None:
    engine = Engine(Ontology(registry=REGISTRY), on_problem=raise_problem)
    publication = Publication.of("p", turtle("e:n qudt:numericValue 2 ; qudt:unit unit:KiloGM ."))
    for number, (unit, value) in enumerate([("GM", "2000"), ("KiloGM", "2"), ("TONNE", "0.002")]):
        engine.subscribe(
            unit, f"{PREFIXES} SELECT ?v {{ ?n qudt:numericValue ?v ; qudt:unit unit:{unit} }}"
        )
        found = {m.subscription: m.solutions[0]["v"].value for m in engine.match(publication)}
        assert found[unit] == value
        assert len(found) == number + 1
    engine.unsubscribe("GM")
    copied = engine.copy(on_problem=raise_problem)
    assert [m.subscription for m in copied.match(publication)] == ["KiloGM", "TONNE"]
    copied.subscribe("GM", f"{PREFIXES} ASK {{ ?n qudt:numericValue 2000 ; qudt:unit unit:GM }}")
    copied.update_ontology(added=turtle("e:a rdfs:subClassOf e:b ."))
    assert [m.subscription for m in copied.match(publication)] == ["KiloGM", "TONNE", "GM"]


def test_a_quantity_of_the_ontology_in_a_named_unit() -> None:
    ontology = "e:crate e:weight e:n . e:n qudt:numericValue 2 ; qudt:unit unit:KiloGM ."
    engine = Engine(Ontology(turtle(ontology), registry=REGISTRY), on_problem=raise_problem)
    asked = "?box e:holds ?c . ?c e:weight ?n . ?n qudt:numericValue ?v ; qudt:unit unit:"
    publication = Publication.of("p", turtle("e:box e:holds e:crate ."))
    for unit in ("GM", "LB"):
        engine.subscribe(unit, f"{PREFIXES} SELECT ?v {{ {asked}{unit} }}")
    values = [match.solutions[0]["v"].value for match in engine.match(publication)]
    assert values == ["2000", "4.409245243697551614"]


def test_too_many_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphmatch.enrichment.MAX_NAMED_UNITS", 4)
    engine = Engine(Ontology(registry=REGISTRY), on_problem=raise_problem)
    text = PREFIXES + "ASK {{ ?n qudt:numericValue ?v ; qudt:unit unit:{} }}"
    engine.subscribe("GM", text.format("GM"))
    engine.subscribe("KiloGM", text.format("KiloGM"))
    with pytest.raises(SubscriptionError, match="name more than 4 units"):
        engine.subscribe("LB", text.format("LB"))
    engine.unsubscribe("GM")
    engine.subscribe("LB", text.format("LB"))


def test_a_number_with_two_units_is_refused() -> None:
    engine = Engine(Ontology(registry=REGISTRY))
    asked = "?n qudt:numericValue ?v ; qudt:unit unit:GM, unit:K"
    with pytest.raises(SubscriptionError, match="two units of a number, unit:GM and unit:K"):
        engine.subscribe("s", f"{PREFIXES} ASK {{ {asked} }}")


def test_a_unit_is_named_of_a_property_above() -> None:
    ontology = "e:a gm:unitAttribute e:u . e:b rdfs:subPropertyOf e:a ."
    asked = '?x e:a ?v ; e:u "m" FILTER(?v = 4000)'
    assert matches(ontology, 'e:x e:b 4 ; e:u "km" .', asked)


def test_a_mapping_function_may_name_a_unit() -> None:
    text = f"""{PREFIXES} CONSTRUCT {{ ?x a e:Hot }} {{
        ?x e:t ?n . ?n qudt:numericValue ?v ; qudt:unit unit:K FILTER(?v > 306) }}"""
    engine = Engine(Ontology(mapping=[MappingFunction("hot", text)], registry=REGISTRY))
    engine.subscribe("hot", f"{PREFIXES} ASK {{ ?x a e:Hot }}")
    engine.subscribe("large", f"{PREFIXES} ASK {{ ?x ?p ?v FILTER(?v > 40) }}")
    stated = "e:x e:t [ qudt:numericValue 33 ; qudt:unit unit:DEG_C ] ."
    assert list(engine.match(Publication.of("p", turtle(stated))).subscriptions) == ["hot"]


def test_the_example_of_ctps() -> None:
    """Match a disk of 40 G, written in three ways, and a price in dollars (section 4)."""
    ontology = 'e:size gm:baseUnit "GB" . e:price gm:unitAttribute e:currency .'
    price = 'e:pc e:price 450 ; e:currency "$" . '
    for disk in (
        "e:pc e:size 40 .",
        'e:pc e:size "0.04 TB"^^cdt:ucum .',
        "e:pc e:size [ qudt:value 40000 ; qudt:unit unit:MegaBYTE ] .",
    ):
        asked = '?pc e:size ?s ; e:price ?p ; e:currency "USD" '
        assert matches(ontology, price + disk, asked + "FILTER(?s >= 40 && ?p < 500)")
        larger = 'FILTER(?s > "40000 MB"^^cdt:ucum)'
        assert not matches(ontology, price + disk, asked + larger)
        assert not matches(ontology, price + disk, asked.replace("USD", "EUR"))


def test_what_a_solution_binds() -> None:
    units = Units(turtle(declared("GBy")), Ontology().properties, raise_problem)
    stated = Publication.of("p", turtle('e:x e:a "1 TB"^^cdt:ucum .'))
    assert units.normal(stated, raise_problem).triples[0][2] == Literal(
        "1000", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer")
    )


def test_an_engine_hears_all_three_spellings() -> None:
    text = 'e:size gm:baseUnit "GB" .'
    problems: list[Problem] = []
    engine = Engine(Ontology(turtle(text)), on_problem=problems.append)
    engine.subscribe(
        "large", PREFIXES + 'SELECT ?x { ?x e:size ?s FILTER(?s >= "0.03 TB"^^cdt:ucum) }'
    )
    for disk in ("40", '"0.04 TB"^^cdt:ucum', "[ qudt:value 40 ; qudt:unit unit:GigaBYTE ]"):
        report = engine.match(Publication.of("p", turtle(f"e:x e:size {disk} .")))
        assert [match.subscription for match in report] == ["large"]
    assert not problems
    assert not list(engine.match(Publication.of("p", turtle('e:x e:size "4 kg"^^cdt:ucum .'))))
    assert [problem.what for problem in problems] == ["<urn:size>: kg cannot be converted to GB"]
    with pytest.raises(SubscriptionError, match="kg cannot be converted to GB"):
        engine.subscribe("bad", PREFIXES + 'ASK { ?x e:size "4 kg"^^cdt:ucum }')


def test_that_huge_and_tiny_quantities_are_compared() -> None:
    size = NamedNode("urn:size")
    for text, sign in (("1e99 GB", ">"), ("1e-99 yB", "<")):
        engine = Engine(Ontology())
        engine.subscribe("s", f'ASK {{ ?x {size} ?s FILTER(?s {sign} "1 GB"^^cdt:ucum) }}')
        item = [(NamedNode("urn:x"), size, Literal(text, datatype=UCUM))]
        assert engine.match(Publication.of("p", item)).matches, text
