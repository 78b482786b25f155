"""The subscription linter: its warnings, and queries without warnings."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from pyoxigraph import Literal, NamedNode

from graphmatch import Engine, SubscriptionParser, read_subscriptions
from graphmatch.lint import CODES, Linter
from graphmatch.parse_tree import LONGEST
from semantic import Ontology, Publication
from semantic.errors import Severity, SubscriptionError
from semantic.units.quantities import BASE_UNIT, UNIT_ATTRIBUTE
from semantic.vocabulary import DC, LABEL, RANGE, RDF, RDFS, RSS, SUBCLASS, TYPE, XSD
from tests.graphmatch.sparql.test_query_analysis import queries
from tests.test_samples import ONTOLOGIES, ROOT

PARSER = SubscriptionParser()
SHOP = "PREFIX shop: <http://shop.example/> "


def shop(name: str) -> NamedNode:
    return NamedNode(f"http://shop.example/{name}")


SKOS_CONCEPT = NamedNode("http://www.w3.org/2004/02/skos/core#Concept")
ONTOLOGY = Ontology(
    [
        (shop("Laptop"), SUBCLASS, shop("Computer")),
        (shop("Computer"), TYPE, RDFS["Class"]),
        (shop("Computer"), LABEL, Literal("computer")),
        (shop("price"), TYPE, RDF["Property"]),
        (shop("price"), LABEL, Literal("price")),
        (shop("price"), RANGE, XSD["decimal"]),
        (shop("weight"), UNIT_ATTRIBUTE, shop("weightUnit")),
        (shop("size"), UNIT_ATTRIBUTE, shop("weightUnit")),
        (shop("size"), BASE_UNIT, Literal("kg")),
        *((shop(name), TYPE, RDF["Property"]) for name in ("weight", "size", "weightUnit")),
        (shop("Climate"), TYPE, SKOS_CONCEPT),
        (shop("Climate"), LABEL, Literal("climate")),
        # The term is not defined here.
        (NamedNode("http://other.example/Thing"), TYPE, RDFS["Class"]),
        (NamedNode("http://other.example/Thing"), SUBCLASS, shop("Thing")),
    ]
)

CASES = [
    # Each case: code, query with a warning, query without one.
    ("unknown-term", "?x a shop:Computr", "?x a shop:Computer"),
    ("unknown-term", "?x shop:prize ?p FILTER(?p > 4)", "?x shop:price ?p FILTER(?p > 4)"),
    ("unknown-term", "?x dcterms:subject shop:Climat", "?x dcterms:subject shop:Climate"),
    (
        "unknown-term",
        "?x dc:subject ?c . VALUES ?c { shop:Climat }",
        "?x dc:subject ?c . VALUES ?c { shop:Climate }",
    ),
    ("unknown-term", "?x a ?c FILTER(gm:descendantOf(?c, shop:Compute))", "?x ?p shop:Climate"),
    ("unknown-term", "?x a <http://shop.example/Phone>", "?x a <http://other.example/Phone>"),
    ("unknown-term", "?x a rss:Item", "?x a rss:item . ?x dc:subject 'x'"),
    ("unknown-term", "?x rss:pubDate ?d FILTER(?d > 4)", "?x <http://purl.org/x/pubDate> 4"),
    ("unknown-term", "?x dc:author 'Bob'", "?x dc:creator 'Bob'"),
    ("unknown-term", "?x foaf:knows/foaf:nam 'Bob'", "?x foaf:knows/foaf:name 'Bob'"),
    ("unknown-term", "?x shop:price '5'^^xsd:int, '6'^^xsd:intege", "?x rdf:_1 '5'^^xsd:int"),
    ("unbound-variable", "?x dc:title ?t FILTER(?y > 3)", "?x dc:title ?t FILTER(?t > 3)"),
    (
        "unbound-variable",
        "?x dc:title ?t { ?x dc:creator ?c FILTER(CONTAINS(?t, 'x')) }",
        "?x dc:title ?t OPTIONAL { ?x dc:creator ?c FILTER(CONTAINS(?t, ?c)) }",
    ),
    (
        "unbound-variable",
        "?x dc:title ?t FILTER EXISTS { ?x dc:creator ?c FILTER(?c = ?d) }",
        "?x dc:title ?t FILTER NOT EXISTS { ?x dc:creator ?c FILTER(?c = ?t) }",
    ),
    (
        "unbound-variable",
        "?x dc:title ?t MINUS { ?x dc:creator ?c FILTER(?c = ?t) }",
        "?x dc:title ?t MINUS { ?x dc:creator ?t FILTER(STRLEN(?t) > 3) }",
    ),
    (
        "unbound-variable",
        "BIND(STRLEN(?t) AS ?n) ?x dc:title ?t FILTER(?n > 3)",
        "?x dc:title ?t BIND(STRLEN(?t) AS ?n) FILTER(?n > 3)",
    ),
    (
        "never-comparable",
        '?x rss:title ?t ; dc:date ?d FILTER(?d > "2026-01-01"^^xsd:date)',
        '?x rss:title ?t ; dc:date ?d FILTER(?d > "2026-01-01T00:00:00Z"^^xsd:dateTime)',
    ),
    (
        "never-comparable",
        '?x dc:date ?d ; rss:title ?t FILTER("2026-01-01" < ?d)',
        '?x dc:date ?d FILTER("2026-01-01" < ?d)',
    ),
    ("never-comparable", '?x shop:price ?p FILTER(?p > "40")', "?x shop:price ?p FILTER(?p > 40)"),
    (
        "never-comparable",
        '?x dcterms:extent ?p FILTER(?p > "40")',
        '?x dcterms:extent ?p FILTER(?p > "a")',
    ),
    (
        "never-comparable",
        '?x dcterms:extent ?p FILTER("40" > ?p)',
        '?x dcterms:extent ?p FILTER(?p = "40")',
    ),
    ("never-comparable", "?x rss:title ?t FILTER(?t = 5)", 'FILTER(?t = "5") ?x rss:title ?t'),
    (
        "never-comparable",
        "?x shop:price ?p FILTER(STR(?x) = shop:Climate)",
        "?x shop:price ?p FILTER(?x = shop:Climate)",
    ),
    (
        "no-arithmetic",
        "?x dc:date ?d FILTER(?d > NOW() - 7)",
        '?x dc:date ?d FILTER(?d > NOW() - "P7D"^^xsd:dayTimeDuration)',
    ),
    (
        "no-arithmetic",
        "?x rss:title ?t BIND(?t + 1 AS ?n) FILTER(?n > 3)",
        "?x rss:title ?t BIND(STRLEN(?t) + 1 AS ?n) FILTER(?n > 3)",
    ),
    (
        "invalid-literal",
        '?x dc:date ?d FILTER(?d > "2026-01-01"^^xsd:dateTime)',
        '?x dcterms:valid ?d FILTER(?d > "2026-01-01"^^xsd:date)',
    ),
    (
        "invalid-literal",
        '?x dc:date "2026-01-31"^^xsd:dateTime',
        '?x dc:date "2026-01-31T00:00:00Z"^^xsd:dateTime',
    ),
    ("invalid-literal", "?x shop:price 'cheap'^^xsd:decimal", "?x shop:price 5.0"),
    ("invalid-literal", "?x shop:price '9e19'^^xsd:integer", "?x shop:price 99999999999999999999"),
    (
        "invalid-literal",
        "?x shop:price '1.5'^^xsd:integer",
        "?x shop:price '1.00000000000000000000005'^^xsd:decimal",
    ),
    ("invalid-regex", '?x dc:title ?t FILTER(REGEX(?t, "a("))', '?x dc:title ?t FILTER(?t = "a(")'),
    (
        "invalid-regex",
        '?x dc:title ?t FILTER(REGEX(?t, "a", "y"))',
        '?x dc:title ?t FILTER(REGEX(?t, "a|b", "i"))',
    ),
    (
        "not-examined",
        f"?x shop:price ?p FILTER({'ABS(' * 230}?p{')' * 230} > 3)",
        f"?x shop:price ?p FILTER({'(' * 230}?p > 3{')' * 230})",
    ),
    (
        "two-graphs",
        "GRAPH <urn:a> { ?x dc:title ?t } GRAPH <urn:b> { ?x dc:creator ?c }",
        "GRAPH <urn:a> { ?x dc:title ?t } GRAPH <urn:a> { ?x dc:creator ?c }",
    ),
    (
        "two-graphs",
        "GRAPH <urn:a> { ?x dc:title ?t GRAPH <urn:b> { ?x dc:creator ?c } }",
        "{ GRAPH <urn:a> { ?x dc:title ?t } } UNION { GRAPH <urn:b> { ?x dc:creator ?c } }",
    ),
    (
        "two-graphs",
        "GRAPH <urn:a> { ?x dc:title ?t OPTIONAL { ?x dc:date ?d } } "
        "{ GRAPH <urn:b> { ?x dc:creator ?c } } FILTER(?t > 'a')",
        "GRAPH <urn:a> { ?x dc:title ?t } OPTIONAL { GRAPH <urn:b> { ?x dc:creator ?c } } "
        "MINUS { GRAPH <urn:c> { ?x dc:date ?d } }",
    ),
    (
        "two-graphs",
        "GRAPH ?g { ?x dc:title ?t } GRAPH ?h { ?x dc:creator ?c } FILTER(?g != ?h)",
        "GRAPH ?g { ?x dc:title ?t } GRAPH ?h { ?x dc:creator ?c } FILTER(?g != ?c)",
    ),
    (
        "number-without-unit",
        "?q qudt:numericValue ?v FILTER(?v > 40)",
        "?q qudt:numericValue ?v ; qudt:unit unit:DEG_C FILTER(?v > 40)",
    ),
    (
        "number-without-unit",
        "?q qudt:value ?v FILTER(40 >= ?v)",
        "?q qudt:value ?v ; qudt:hasUnit ?unit FILTER(40 >= ?v && ?unit = unit:K)",
    ),
    (
        "number-without-unit",
        "?q qudt:value ?v ; qudt:unit ?u FILTER(?v > 40 && ?u IN (unit:K, unit:DEG_C))",
        "?q qudt:value ?v ; qudt:unit ?u FILTER(?v > 40 && ?u IN (unit:K))",
    ),
    (
        "number-without-unit",
        "?q qudt:value 40 ; qudt:unit ?u VALUES ?u { unit:K unit:DEG_C }",
        "?q qudt:value 40 ; qudt:unit ?u VALUES ?u { unit:K }",
    ),
    (
        "number-without-unit",
        "?q qudt:value ?v ; qudt:unit ?u FILTER(?v > 40)",
        "?q qudt:value ?v FILTER(?v > '4 K'^^cdt:ucum && ?v < 40)",
    ),
    ("number-without-unit", "?q qudt:numericValue 40", "?q qudt:numericValue ?v"),
    ("number-without-unit", "?q shop:weight 40", "?q shop:weight 40 ; shop:weightUnit 'kg'"),
    (
        "number-without-unit",
        "?q shop:weight ?w FILTER(?w IN (1, 2))",
        "?q shop:size ?s FILTER(?s IN (1, 2))",
    ),
]
"""Group graph patterns."""

WHOLE = [
    (
        "unbound-variable",
        "SELECT ?x ?titel { ?x dc:title ?title FILTER(?title > 'a') }",
        "SELECT ?x ?title { ?x dc:title ?title FILTER(?title > 'a') }",
    ),
    (
        "unbound-variable",
        "CONSTRUCT { ?x dc:title ?y } { ?x dc:creator 'Bob' }",
        "CONSTRUCT { ?x dc:title [] } { ?x dc:creator 'Bob' }",
    ),
    (
        "unbound-variable",
        "SELECT (COUNT(?c) AS ?n) { ?x dc:subject ?c } GROUP BY ?x HAVING (?n > 3)",
        "SELECT (COUNT(?c) AS ?n) { ?x dc:subject ?c } GROUP BY ?x HAVING (COUNT(?c) > 3)",
    ),
    (
        "unbound-variable",
        "SELECT ?x { ?x dc:creator 'Bob' } ORDER BY ?d",
        "SELECT ?x { ?x dc:creator 'Bob' OPTIONAL { ?x dc:date ?d } } ORDER BY ?d",
    ),
    (
        "aggregate-of-one-item",
        "SELECT ?s { ?i a rss:item ; dc:subject ?s } GROUP BY ?s HAVING (COUNT(?i) > 3)",
        "SELECT ?i { ?i a rss:item ; dc:subject ?s } GROUP BY ?i HAVING (COUNT(?s) > 3)",
    ),
    (
        "aggregate-of-one-item",
        "SELECT (MAX(?d) AS ?last) { ?i rss:title ?t ; dc:date ?d }",
        "SELECT (MAX(?d) AS ?last) { ?i shop:price ?t ; dc:date ?d }",
    ),
    (
        "not-examined",
        "ASK {" + " ?x <urn:p> ?y ." * (LONGEST // 15) + " ?x rss:Title ?z }",
        "ASK { ?x <urn:p> ?y }",
    ),
]
"""Complete queries."""


def codes(query: str, ontology: Ontology = ONTOLOGY) -> list[str]:
    return [found.code for found in Linter(ontology).lint(PARSER.parse("alice", SHOP + query))]


@pytest.mark.parametrize(
    ("code", "wrong", "right"),
    [*((c, f"SELECT * {{ {w} }}", f"SELECT * {{ {r} }}") for c, w, r in CASES), *WHOLE],
)
def test_each_warning(code: str, wrong: str, right: str) -> None:
    assert codes(wrong) == [code]
    assert codes(right) == []


def test_that_every_warning_has_a_case_and_is_described() -> None:
    assert {code for code, _, _ in (*CASES, *WHOLE)} | {"duplicate"} == set(CODES)
    page = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    assert [code for code in CODES if f"| `{code}` |" not in page] == []


@pytest.mark.parametrize("files", [ONTOLOGIES, ()])
def test_that_samples_are_left_alone(files: tuple[str, ...]) -> None:
    linter = Linter(Ontology.load(*(ROOT / file for file in files)) if files else Ontology())
    paths = (ROOT / "data" / name for name in ("subscriptions", "attributes.jsonl"))
    others = ROOT / "data/subscriptions.jsonl", ROOT / "tests/dbpedia"
    samples = [*read_subscriptions(*paths, *others)]
    assert len(samples) > 80
    assert [str(found) for sample in samples for found in linter.lint(sample)] == []


SAME = [
    (
        "SELECT ?x { ?x dc:title ?t ; dc:creator 'Bob' FILTER(?t > 'a ?t') FILTER(?t < 'f') }",
        "SELECT ?item { ?item dc:title ?n; dc:creator 'Bob' FILTER ( ?n>'a ?t')  FILTER(?n<'f') }",
    ),
    (
        "ASK { _:a dc:creator _:b . _:b foaf:name 'Bob' }",
        "ASK { _:x dc:creator _:y . _:y foaf:name 'Bob' }",
    ),
    ("ASK { <<?a dc:title 'x'>> dc:creator 'Bob' }", "ASK{<<?a dc:title 'x'>> dc:creator 'Bob'}"),
]
OTHER = [
    ("SELECT * { ?x foaf:knows ?y }", "SELECT * { ?x foaf:knows _:y }"),
    ("ASK { ?x dc:title '?x' }", "ASK { ?y dc:title '?y' }"),
    ("SELECT ?x ?y { ?x foaf:knows ?y }", "SELECT ?y ?x { ?x foaf:knows ?y }"),
    ("ASK { ?x foaf:knows ?y }", "SELECT * { ?x foaf:knows ?y }"),
    ("ASK { ?x foaf:knows ?x }", "ASK { ?x foaf:knows ?y }"),
    ("ASK { ?x dc:title 1, 2 ; dc:date 3 }", "ASK { ?x dc:title 1, 3 ; dc:date 2 }"),
    ("ASK { ?x foaf:knows+ ?y }", "ASK { ?x foaf:knows/foaf:knows* ?y }"),
    ("ASK { ?x foaf:knows+ ?y }", "ASK { ?x foaf:knows ?y }"),
    (
        "SELECT * { ?x dc:date ?d OPTIONAL { ?x dc:title ?t } ?x dc:creator ?t }",
        "SELECT * { ?x dc:date ?d . ?x dc:creator ?t OPTIONAL { ?x dc:title ?t } }",
    ),
    ("ASK { ?x !(^dc:date|dc:title) ?y }", "ASK { ?x !(^dc:title|dc:date) ?y }"),
    (
        "SELECT ?x { ?x dc:creator 'Bob' } ORDER BY ?x LIMIT 1",
        "SELECT ?x { ?x dc:creator 'Bob' } ORDER BY ?x OFFSET 1",
    ),
]


@pytest.mark.parametrize(
    ("one", "other", "same"), [*((*p, True) for p in SAME), *((*p, False) for p in OTHER)]
)
def test_duplicates(one: str, other: str, same: bool) -> None:
    linter = Linter(Ontology())
    assert linter.lint(PARSER.parse("first", one)) == ()
    for id in ("second", "third"):
        found = linter.lint(PARSER.parse(id, other))
        assert [warned.code for warned in found] == ["duplicate"] * (same or id == "third")
        if same:
            assert "first" in found[0].what


ODD = [
    "SELECT * { ?x ?y ?z FILTER(?x IN ()) }",
    "SELECT (1 AS ?n) { ?x ?y ?z VALUES () { () } }",
    "SELECT * { ?x <urn:p>? ?y ; (<urn:p>/<urn:q>?)* ?z ; !(<urn:q>|^<urn:r>) ?w ; <urn:r> () }",
    "SELECT ?x { ?x <urn:p> (1 [ <urn:q> (?y) ]) } GROUP BY ?x (?x + 1) (STR(?x) AS ?s) LIMIT 1",
    "SELECT (GROUP_CONCAT(?y;SEPARATOR=' * ') AS ?n) { ?x <urn:p> ?y } HAVING(SUM(?x)>1)",
    "SELECT * { { SELECT ?x { ?x <urn:p> ?y } } } VALUES (?x ?y) { (UNDEF 1) (<urn:a> 'b'@en) }",
    "SELECT * { GRAPH ?g { ?x ?p ?o } FILTER(BNODE() = ?x && +?o * -?o / 2 - 1 > 0 || !?g) }",
    "SELECT * { ?x ?p ?o FILTER(IF(?o, CONCAT(), COALESCE(?o, xsd:integer(?o))) && EXISTS {}) }",
    "CONSTRUCT WHERE { ?x <urn:p> [] }",
    "CONSTRUCT {} WHERE { ?x <urn:p> ?y }",
    "DESCRIBE * { ?x <urn:p> ?y }",
    "DESCRIBE ?x <urn:a> { { ?x <urn:p> ?y } UNION { SELECT ?x { ?y ?x ?y } ORDER BY DESC(?y) } }",
    "ASK { ?x <urn:p> ?y FILTER(REGEX(?y, ?x) || REPLACE(?y, '(', 'x', 'z') = 'y') }",
    "ASK { ?x <urn:p> ?y {| <urn:q> ?z |} FILTER(isTRIPLE(?x)) }",
    "ASK { ?x <urn:p> ?y FILTER(" + "(" * 60 + "?y" + ")" * 60 + " > 3) }",
    "ASK { ?x <urn:p> ?y FILTER(?y > 3 " + "|| ?y > 3" * 300 + ") }",
]


@pytest.mark.parametrize("query", ODD, ids=lambda query: query[:60])
def test_odd_queries_cause_no_error(query: str) -> None:
    Linter(ONTOLOGY).lint(PARSER.parse("odd", query))


@settings(max_examples=settings().max_examples // 8)
@given(queries())
def test_generated_queries_cause_no_error(query: str) -> None:
    linter = Linter(ONTOLOGY)
    try:
        subscriptions = [PARSER.parse(id, query) for id in ("first", "second")]
    except SubscriptionError:
        return  # The parser refuses it because nothing can match it.
    first, second = map(linter.lint, subscriptions)
    assert [found.code for found in second] == [*(found.code for found in first), "duplicate"]


ITEM = Publication.of(
    "http://e/item",
    [
        (NamedNode("http://e/item"), TYPE, RSS["item"]),
        (NamedNode("http://e/item"), RSS["title"], Literal("5 laptops")),
        (NamedNode("http://e/item"), shop("price"), Literal("45", datatype=XSD["decimal"])),
        (
            NamedNode("http://e/item"),
            DC["date"],
            Literal("2026-11-20T08:00:00Z", datatype=XSD["dateTime"]),
        ),
    ],
)
NEVER = [
    ("?d > '2025-01-01'^^xsd:date", "?d > '2025-01-01T00:00:00Z'^^xsd:dateTime"),
    ("?d > '2025-01-01'", "STR(?d) > '2025-01-01'"),
    ("?d > '2025-01-01'^^xsd:dateTime", "xsd:date(?d) > '2025-01-01'^^xsd:date"),
    ("?d > NOW() - 9999", "?d > NOW() - 'P9999D'^^xsd:dayTimeDuration"),
    ("YEAR(?d) = '2026'", "YEAR(?d) = 2026"),
    ("?p > '40'", "?p > 40"),
    ("?t > 4", "?t > '4'"),
    ("?t + 1 > 4", "STRLEN(?t) + 1 > 4"),
    ("STR(?x) = <http://e/item>", "?x = <http://e/item>"),
    ("REGEX(?t, '(5')", "REGEX(?t, '(5)')"),
    ("REGEX(?t, '5', 'g')", "REGEX(?t, '5', 'i')"),
    ("?p > ?minimum", "?p > 4"),
]


@pytest.mark.parametrize(("wrong", "right"), NEVER)
def test_subscriptions_with_a_warning_never_match(wrong: str, right: str) -> None:
    engine = Engine(ONTOLOGY)
    for id, condition in (("wrong", wrong), ("right", right)):
        query = f"{SHOP} ASK {{ ?x rss:title ?t ; dc:date ?d ; shop:price ?p FILTER({condition}) }}"
        engine.subscribe(id, query)
    assert [found.where.source for found in engine.lint()] == ["wrong"]
    assert list(engine.match(ITEM).subscriptions) == ["right"]


NEVER_IN_ONE = [
    (
        "ASK { GRAPH ?g { ?x rss:title ?t } GRAPH ?h { ?x shop:price ?p } FILTER(?g != ?h) }",
        "ASK { GRAPH ?g { ?x rss:title ?t } GRAPH ?h { ?x shop:price ?p } FILTER(?g = ?h) }",
    ),
    (
        "ASK { GRAPH <http://e/item> { ?x rss:title ?t } GRAPH <http://e/b> { ?x ?p ?o } }",
        "ASK { GRAPH <http://e/item> { ?x rss:title ?t } GRAPH <http://e/item> { ?x ?p ?o } }",
    ),
    (
        "SELECT ?t { ?x rss:title ?t } GROUP BY ?t HAVING (COUNT(?x) > 1)",
        "SELECT ?x { ?x rss:title ?t ; ?p ?o } GROUP BY ?x HAVING (COUNT(?o) > 1)",
    ),
]


@pytest.mark.parametrize(("wrong", "right"), NEVER_IN_ONE)
def test_subscriptions_to_several_publications_never_match(wrong: str, right: str) -> None:
    engine = Engine(ONTOLOGY)
    engine.subscribe("wrong", SHOP + wrong)
    engine.subscribe("right", SHOP + right)
    assert [found.where.source for found in engine.lint()] == ["wrong"]
    assert list(engine.match(ITEM).subscriptions) == ["right"]


def test_annotated_triples_are_examined() -> None:
    assert codes("ASK { ?x rss:Title ?y {| dc:creator 'Bob' |} }") == ["unknown-term"]


def test_what_a_warning_says() -> None:
    (warned,) = Linter(ONTOLOGY).lint(PARSER.parse("alice", SHOP + "ASK { ?x shop:prize 5 }"))
    assert warned.severity is Severity.WARNING
    assert warned.where.source == "alice"
    assert str(warned) == (
        "alice: <http://shop.example/prize>: the ontology has no such property. "
        "Did you mean <http://shop.example/price>?"
    )


def test_engine() -> None:
    engine = Engine(ONTOLOGY)
    query = "ASK { ?x rss:Title 'x' }"
    engine.subscribe("a", query)
    engine.subscribe("b", "ASK { ?x a <urn:C> }")
    engine.subscribe("c", query)
    found = [(warned.where.source, warned.code) for warned in engine.lint()]
    assert found == [("a", "unknown-term"), ("c", "unknown-term"), ("c", "duplicate")]
    assert [warned.code for warned in engine.lint("c", "b")] == ["unknown-term"]
