from __future__ import annotations

import pytest
from pyoxigraph import Literal

from graphmatch import SubscriptionParser
from semantic.branch import AnyOf
from semantic.vocabulary import PREFIXES

PARSER = SubscriptionParser()


@pytest.mark.parametrize(
    ("expression", "taken", "left"),
    [
        ("?x > 5", ["?x > 5"], []),
        ("5 > ?x", ["?x < 5"], []),
        ("5 <= ?x && ?x < 9", ["?x >= 5", "?x < 9"], []),
        ("((?x = 5) && ((?y = 'a')))", ["?x = 5", '?y = "a"'], []),
        ("?x = <urn:a>", ["?x = <urn:a>"], []),
        ("?x < <urn:a>", ["?x < <urn:a>"], []),  # IRIs have no order, so this is never true.
        ("?x = 'a'@en", ['?x = "a"@en'], []),
        ("?x < 'a'@en", ['?x < "a"@en'], []),
        ("?x != 'a'@en", ['?x != "a"@en'], []),
        ("?x != 5", ["?x != 5"], []),
        ("5 != ?x", ["?x != 5"], []),
        ("?x != 'P1D'^^xsd:duration", [], ["!="]),
        ("?x != '1'^^<urn:t>", [], ["!="]),
        ("!(?x = 5)", ["?x != 5"], []),
        ("!(?x != 5)", ["?x = 5"], []),
        ("?x > -5", ["?x > -5"], []),
        ("?x -5 > 2", [], [">"]),
        ("?x = ?y", [], ["="]),
        ("?z > 5", [], [">"]),  # Only an OPTIONAL binds ?z.
        ("!?x = 5", [], ["="]),
        ("?x > 5 || ?y > 5", [], ["||"]),
        ("?x > 5 || ?x = 'a'", ['?x > 5 || ?x = "a"'], []),
        ("?x > 5 || (?x = 1 || ?x IN (2))", ["?x > 5 || ?x = 1 || ?x = 2"], []),
        ("?x > 5 || ?x = 'P1D'^^xsd:duration", [], ["||"]),
        ("?x > 5 || ?x != '1'^^<urn:t>", [], ["||"]),
        ("?x > 5 || (?x = 'a' && ?y = 1)", ['?x > 5 || ?x = "a"'], ["||"]),
        ("?x > 5 || (?y = 1 && ?z = 1) || ?y = 2", [], ["||"]),
        ("?x = 1 && ?x > 5 || ?y > 5", [], ["||"]),
        ("!(?x > 5)", [], ["of another expression"]),
        ("?x", [], ["of another expression"]),
        ("?x IN (5)", ["?x IN (5)"], []),
        ("?x IN (5, 6)", ["?x IN (5, 6)"], []),
        ("?x IN (5, ?y)", [], ["IN"]),
        ("?x IN ()", [], ["IN"]),
        ("?x NOT IN ()", [], ["NOT IN"]),
        ("?x NOT IN (5, <urn:a>)", ["?x != 5", "?x != <urn:a>"], []),
        ("?x NOT IN (5, ?y)", ["?x != 5"], ["!="]),
        ("CONTAINS(?x, 'sea')", ['CONTAINS(?x, "sea")'], []),
        ("CONTAINS('sea', ?x)", [], ["CONTAINS"]),
        ("CONTAINS(?x, 5)", [], ["CONTAINS"]),
        ("CONTAINS(?x, 'a'@en--rtl)", [], ["CONTAINS"]),
        ("STRSTARTS(LCASE(STR(?x)), 'sea')", ['STRSTARTS(LCASE(STR(?x)), "sea")'], []),
        ("STRENDS(STR(LCASE(?x)), 'sea')", [], ["STRENDS"]),
        ("STRENDS(?x, UCASE('sea'@en))", ['STRENDS(?x, "SEA"@en)'], []),
        ("UCASE(?x) = 'SEA'", ['UCASE(?x) = "SEA"'], []),
        ("'http://a' = STR(?x)", ['STR(?x) = "http://a"'], []),
        ("STR(?x) < 'a'", [], ["<"]),
        ("STR(?x) != 'a'", [], ["!="]),
        ("LANG(?x) = 'de'", ['LANG(?x) = "de"'], []),
        ("langMatches(LANG(?x), 'de')", ['LANGMATCHES(LANG(?x), "de")'], []),
        ("!CONTAINS(?x, 'sea')", [], ["of another expression"]),
        ("REGEX(?x, 'a')", [], ["REGEX"]),
        ("REGEX(?x, 'seas?')", ['CONTAINS(?x, "sea")'], ["REGEX"]),
        (
            "REGEX(?x, 'Sea|c[+]l+', 'i')",
            [r'REGEX(?x, "sea", "i") || REGEX(?x, "c\\+l", "i")'],
            ["REGEX"],
        ),
        ("REGEX(?x, 'Sea', 'i')", ['REGEX(?x, "sea", "i")'], ["REGEX"]),
        ("REGEX(LCASE(?x), 'Sea', 'i')", [], ["REGEX"]),
        ("REGEX(?x, 'sea'@en)", [], ["REGEX"]),
        ("REGEX(?x, ?y)", [], ["REGEX"]),
        ("REGEX(?x, 'sea', ?y)", [], ["REGEX"]),
        (
            "REGEX(STR(?x), 'sea|lake')",
            ['CONTAINS(STR(?x), "sea") || CONTAINS(STR(?x), "lake")'],
            ["REGEX"],
        ),
        (
            "CONTAINS(?x, 'sea') || REGEX(?x, 'Lakes', 'i')",
            ['CONTAINS(?x, "sea") || REGEX(?x, "lakes", "i")'],
            ["||"],
        ),
        ("NOT EXISTS { ?x ?y 5 }", [], ["NOT EXISTS"]),
        ("EXISTS { ?x ?y 5 }", [], ["EXISTS"]),
        ("gm:descendantOf(?x, <urn:c>)", ["gm:descendantOf(?x, <urn:c>)"], []),
        ("gm:childOf(<urn:c>, ?x)", [], ["<urn:graphmatch:childOf>"]),
        ("gm:ancestorOf(?x, ?y)", [], ["<urn:graphmatch:ancestorOf>"]),
        ("?x = 5 && REGEX(?y, 'a')", ["?x = 5"], ["REGEX"]),
        ("?x = 5 && ?x = 5", ["?x = 5"], []),
        ("?x>5&&?y<9", ["?x > 5", "?y < 9"], []),
        ("?x<5&&?y>9", ["?x < 5", "?y > 9"], []),
        ("isTRIPLE(?x)", [], ["isTRIPLE"]),
        ("LANGDIR(?x) = 'ltr'", [], ["="]),
        ("xsd:boolean(?x)", [], ["<http://www.w3.org/2001/XMLSchema#boolean>"]),
        ("?x + 5 = 6 || true = FALSE", [], ["||"]),
        ("true", [], None),
    ],
)
def test_what_an_index_takes(expression: str, taken: list[str], left: list[str] | None) -> None:
    query = f"SELECT * {{ ?x <urn:p> ?y OPTIONAL {{ ?x <urn:q> ?z }} FILTER({expression}) }}"
    subscription = PARSER.parse("s", query)
    (branch,) = subscription.branches
    prefixes = {"gm": "urn:graphmatch:", "xsd": "http://www.w3.org/2001/XMLSchema#"}
    assert [filter_.write(prefixes) for filter_ in branch.filters] == taken
    reasons = [reason for reason in subscription.remainder if reason != "OPTIONAL"]
    if left is not None:
        assert reasons == [f"FILTER {name}" for name in left]
    assert bool(reasons) is (not taken or bool(left))


def test_that_one_skeleton_is_settled_for_each_constant() -> None:
    query = "SELECT * {{ ?x <urn:p> ?y FILTER(?y != {}) }}"
    constants = ("5", "'a'^^<urn:t>", "'five'^^xsd:integer")
    parsed = [PARSER.parse("s", query.format(constant)) for constant in constants]
    assert parsed[0].exact
    assert [subscription.remainder for subscription in parsed[1:]] == [("FILTER !=",)] * 2
    assert len({subscription.query.skeleton for subscription in parsed}) == 1


def test_that_a_skeleton_is_not_settled_by_its_first_constant() -> None:
    query = "SELECT * {{ ?x <urn:p> ?y FILTER(REGEX(?y, {}) || ?y = {}) }}"
    unknown = PARSER.parse("a", query.format("'.*'", "1"))
    known = PARSER.parse("b", query.format("'sea|lake'", "'x'@en"))
    assert unknown.query.skeleton == known.query.skeleton
    assert (unknown.branches[0].filters, unknown.remainder) == ((), ("FILTER ||",))
    (either,) = known.branches[0].filters
    assert isinstance(either, AnyOf)
    assert [test.write({}) for test in either.tests] == [
        'CONTAINS(?y, "sea")',
        'CONTAINS(?y, "lake")',
        '?y = "x"@en',
    ]


def test_that_synonyms_change_what_stands_beside_equality_only() -> None:
    """A string inside a function is only part of a string, not a name."""
    query = """SELECT * { ?x <urn:p> ?y FILTER(CONTAINS(?y, "US") && LCASE(?y) = "US")
        FILTER(?y != "US" && ?y IN ("US") && REGEX(?y, "US")) }"""
    rewritten = PARSER.parse("s", query).rewritten(
        lambda term: Literal("United States") if term == Literal("US") else term
    )
    assert [filter_.write(PREFIXES) for filter_ in rewritten.branches[0].filters] == [
        'CONTAINS(?y, "US")',
        'LCASE(?y) = "United States"',
        '?y != "United States"',
        '?y IN ("United States")',
    ]


@pytest.mark.parametrize(
    "where",
    [
        "?x <urn:p> ?y { FILTER(?x > 5) }",  # This ?x is local to the group.
        "?x <urn:p> ?y OPTIONAL { ?x <urn:q> ?z FILTER(?x > 5) }",
        "?x <urn:p> ?y MINUS { ?x <urn:q> ?z FILTER(?x > 5) }",
        "?x <urn:p> ?y FILTER EXISTS { ?x <urn:q> ?z FILTER(?x > 5) }",
        "{ ?x <urn:p> ?y } UNION { ?w <urn:p> ?y } FILTER(?x > 5)",
        "?y <urn:p> ?z BIND(?z + 1 AS ?x) FILTER(?x > 5)",
        "?y <urn:p> ?z VALUES ?x { 1 9 } FILTER(?x > 5)",
        "?y <urn:p> ?z FILTER(?t = 5) ?y <urn:q> <<( ?x <urn:p> ?t )>>",
    ],
)
def test_filters_on_optional_variables_are_left_to_evaluation(where: str) -> None:
    subscription = PARSER.parse("s", f"SELECT * {{ {where} }}")
    assert not any(branch.filters for branch in subscription.branches)
    assert subscription.remainder


def test_that_filters_of_groups_are_left() -> None:
    grouped = "SELECT ?s { ?s <urn:p> ?o } GROUP BY ?s HAVING (?s = <urn:a>)"
    assert not PARSER.parse("s", grouped).branches[0].filters
