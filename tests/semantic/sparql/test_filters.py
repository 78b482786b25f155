from __future__ import annotations

import pytest

from semantic import SubscriptionParser

PARSER = SubscriptionParser()


@pytest.mark.parametrize(
    ("expression", "taken", "left"),
    [
        ("?x > 5", ["?x > 5"], []),
        ("5 > ?x", ["?x < 5"], []),
        ("5 <= ?x && ?x < 9", ["?x >= 5", "?x < 9"], []),
        ("((?x = 5) && ((?y = 'a')))", ["?x = 5", '?y = "a"'], []),
        ("?x = <urn:a>", ["?x = <urn:a>"], []),
        ("?x < <urn:a>", [], ["<"]),  # IRIs have no order
        ("?x = 'a'@en", [], ["="]),
        ("?x != 5", [], ["!="]),
        ("?x > -5", ["?x > -5"], []),
        ("?x -5 > 2", [], [">"]),
        ("?x = ?y", [], ["="]),
        ("?z > 5", [], [">"]),  # bound by an OPTIONAL only
        ("!?x = 5", [], ["="]),
        ("?x > 5 || ?y > 5", [], ["||"]),
        ("?x = 1 && ?x > 5 || ?y > 5", [], ["||"]),
        ("!(?x > 5)", [], ["!"]),
        ("?x", [], ["of a variable"]),
        ("?x IN (5)", [], ["IN"]),
        ("REGEX(?x, 'a')", [], ["REGEX"]),
        ("NOT EXISTS { ?x ?y 5 }", [], ["NOT EXISTS"]),
        ("gm:descendantOf(?x, <urn:c>)", ["gm:descendantOf(?x, <urn:c>)"], []),
        ("gm:childOf(<urn:c>, ?x)", [], ["<urn:graphmatch:childOf>"]),
        ("gm:ancestorOf(?x, ?y)", [], ["<urn:graphmatch:ancestorOf>"]),
        ("?x = 5 && REGEX(?y, 'a')", ["?x = 5"], ["REGEX"]),
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
    parser = SubscriptionParser()
    query = "SELECT * {{ ?x <urn:p> ?y FILTER(?y < {}) }}"
    assert parser.parse("a", query.format("5")).exact
    assert parser.parse("b", query.format("'a'@en")).remainder == ("FILTER <",)
    assert parser.parse("c", query.format("'NaN'^^xsd:double")).remainder == ("FILTER <",)
    assert parser.skeletons == 1


@pytest.mark.parametrize(
    "where",
    [
        "?x <urn:p> ?y { FILTER(?x > 5) }",  # ?x is another one's in there
        "?x <urn:p> ?y OPTIONAL { ?x <urn:q> ?z FILTER(?x > 5) }",
        "?x <urn:p> ?y MINUS { ?x <urn:q> ?z FILTER(?x > 5) }",
        "?x <urn:p> ?y FILTER EXISTS { ?x <urn:q> ?z FILTER(?x > 5) }",
        "{ ?x <urn:p> ?y } UNION { ?w <urn:p> ?y } FILTER(?x > 5)",
        "?y <urn:p> ?z BIND(?z + 1 AS ?x) FILTER(?x > 5)",
        "?y <urn:p> ?z VALUES ?x { 1 9 } FILTER(?x > 5)",
    ],
)
def test_that_filters_on_what_may_be_unbound_are_left(where: str) -> None:
    subscription = PARSER.parse("s", f"SELECT * {{ {where} }}")
    assert not any(branch.filters for branch in subscription.branches)
    assert subscription.remainder
