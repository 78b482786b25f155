"""Filters that are read without a parser, against what rdflib's parser leads to."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from semantic.attributes.constraints import taken_apart
from semantic.attributes.query import Writer
from semantic.attributes.subscription import AttributeParser
from semantic.sparql import parse
from semantic.sparql.basic import skeleton_of
from semantic.sparql.parse import SubscriptionParser
from tests.oracle import to_sparql
from tests.semantic.sparql.ways import pieces_of, taken_quickly
from tests.strategies import Case, cases

VARIABLES = ("?a", "?a", "?b", "?c", "?unbound")
TEXTS = ("'x'", '"y"@en')
CONSTANTS = (*TEXTS, "5", "-7.5", "true", "'1'^^xsd:int", "<urn:c>", "skos:a", "'4 m'^^cdt:ucum")
VIEWS = ("{}", "{}", "STR({})", "lcase({})", "UCASE(STR({}))", "LANG({})", "LCASE(LANG({}))")
TESTS = ("CONTAINS", "StrStarts", "STRENDS", "LANGMATCHES")
LEFT_ALONE = (
    *("BOUND(?a)", "?a + 1 > 5", "?a > -?b", "EXISTS { ?a <urn:p> ?b }", "?a IN ()", "!!?a"),
    *("LCASE(?a, ?b)", "CONTAINS(?a)", "REGEX(?a)", "?a = ?b = ?c", "DATATYPE(?a) = xsd:int"),
    *("gm:compare(?a, '<', 5)", "gm:childOf()", "a = ?a", "?a NOT 5", "?a IN 5", "COUNT(?a) > 5"),
    *("?a > NOW()", "xsd:integer(?a) < 5", "STRLEN(?a) > 5", "(?a, ?b)", "?größe > 5", "?a && "),
    *("sameTerm(?a, 5)", "?a > 5 ||", "?a < (5"),
)  # fmt: skip
TAKEN = (
    *("?a > 5", "5 >= ?a", "?a != <urn:c>", "?a = 'x' && ?b < 5.5", "?a > 5 || ?a < 3"),
    *("?a IN (5)", "?a in (5, 'x', <urn:c>)", "?a NOT IN (5, true)", "?a = ?b", "?a > ?unbound"),
    *("CONTAINS(?a, 'x')", "contains(LCASE(STR(?a)), lcase('X'))", "STRENDS(STR(?a), 'x')"),
    *("LCASE(?a) = 'x'", "REGEX(?a, 'x', 'i')", "LANGMATCHES(LANG(?a), 'en')", "?a", "5"),
    *("gm:descendantOf(?a, <urn:c>)", "gm:childOf(?a)", "?a >= '4 m'^^cdt:ucum", "((?a > (5)))"),
    *("?a != '4 m'^^cdt:ucum", "'4 m'^^cdt:ucum > ?a", "?a IN ('4 m'^^cdt:ucum)"),
    *("(?a = 5) = true", "!(?a = 5)", "<urn:c>"),
)  # fmt: skip
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> str:
    pick = lambda items: draw(st.sampled_from(items))  # noqa: E731
    inner = lambda: draw(expressions(depth - 1))  # noqa: E731
    kinds = ("compare", "compare", "list", "text", "equal", "regex", "taxonomy", "alone", "any")
    match pick((*kinds, "and", "or", "not", "brackets") if depth else kinds):
        case "and":
            return f"{inner()} && {inner()}"
        case "or":
            return f"{inner()} || {inner()}"
        case "not":
            return f"!({inner()})"
        case "brackets":
            return f"({inner()})"
        case "list":
            listed = draw(st.lists(st.sampled_from(CONSTANTS), min_size=1, max_size=3))
            return (
                f"{pick(VARIABLES)} {pick(('IN', 'in', 'NOT IN', 'not in'))} ({', '.join(listed)})"
            )
        case "text":
            text = pick(("{}", "{}", "LCASE({})")).format(pick((*TEXTS, *CONSTANTS)))
            return f"{pick(TESTS)}({pick(VIEWS).format(pick(VARIABLES))}, {text})"
        case "equal":
            return f"{pick(VIEWS).format(pick(VARIABLES))} {pick(OPERATORS)} {pick(CONSTANTS)}"
        case "regex":
            flags = pick(("", ", 'i'"))
            return f"REGEX({pick(VIEWS).format(pick(VARIABLES))}, {pick(TEXTS)}{flags})"
        case "taxonomy":
            name = pick(("descendantOf", "ancestorOf", "childOf"))
            return f"gm:{name}({pick(VARIABLES)}, {pick(CONSTANTS)})"
        case "alone":
            return str(pick((*LEFT_ALONE, *VARIABLES, *CONSTANTS)))
        case "any":
            both = (*VARIABLES, *CONSTANTS)
            return f"{pick(both)} {pick(OPERATORS)} {pick(both)}"
    return f"{pick(VARIABLES)} {pick(OPERATORS)} {pick(CONSTANTS)}"


@st.composite
def queries(draw: st.DrawFn) -> str:
    pick = lambda items: draw(st.sampled_from(items))  # noqa: E731
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            triple = (
                f"?{pick('ab')} {pick(('<urn:p>', '<urn:q>', 'a'))} {pick(('?a', '?b', '?c', '5'))}"
            )
            parts.append(triple + pick((".", ".", " ; <urn:r> ?c .", "")))
        else:
            parts.append(
                f"{pick(('FILTER', 'filter'))} ({draw(expressions())}){pick(('', '', '.'))}"
            )
    head = pick(("ASK", "SELECT *", "SELECT DISTINCT ?a ?unbound WHERE"))
    return f"{head} {{ ?a <urn:p> ?b {pick(('.', ''))} {' '.join(parts)} }}"


@settings(max_examples=150)
@given(queries())
def test_that_it_is_the_skeleton_of_the_general_way(text: str) -> None:
    event(f"taken: {taken_quickly(text)}")


@settings(max_examples=60)
@given(cases())
def test_generated_subscriptions(case: Case) -> None:
    event(f"taken: {taken_quickly(to_sparql(case.query))}")


@pytest.mark.parametrize("expression", TAKEN)
def test_what_is_taken(expression: str) -> None:
    assert taken_quickly(f"SELECT * {{ ?a <urn:p> ?b FILTER({expression}) }}")


@pytest.mark.parametrize("expression", LEFT_ALONE)
def test_what_is_left_to_the_general_way(expression: str) -> None:
    text = f"SELECT * {{ ?a <urn:p> ?b FILTER({expression}) }}"
    assert skeleton_of(pieces_of(text)) is None


@pytest.mark.parametrize(
    ("group", "taken"),
    [
        ("FILTER(?a > 5) ?a <urn:p> ?b", True),
        ("?a <urn:p> ?b . FILTER(?a > 5) . ?b <urn:p> ?c . FILTER(?c > 5)", True),
        ("?a <urn:p> ?b FILTER(?a > 5) ?b <urn:p> ?c ; <urn:q> 5 . filter(?c > 5) .", True),
        ("?a <urn:p> ?b FILTER CONTAINS(?b, 'x') FILTER gm:childOf(?b, <urn:c>)", True),
        ("FILTER(?a > 5)", False),
        (". FILTER(?a > 5) ?a <urn:p> ?b", False),
        ("?a <urn:p> ?b FILTER(?a > 5) . . ?b <urn:p> ?c", False),
        ("?a <urn:p> ?b ; FILTER(?a > 5)", False),
        ("?a <urn:p> FILTER(?a > 5) ?b", False),
        ("?a <urn:p> ?b FILTER ?a", False),
        ("?a <urn:p> ?b FILTER(?a > 5) && (?b > 5)", False),
        ("?a <urn:p> ?b FILTER(?a > 5", False),
        ("?a <urn:p> ?b FILTER", False),
        ("?a <urn:p> ?b FILTER(" + 9 * "(" + "?a > 5)" + 9 * ")", False),
        ("?a <urn:p> ?b FILTER(CONTAINS(?b, '4 m'^^cdt:ucum))", False),
    ],
)
def test_where_filters_stand(group: str, taken: bool) -> None:
    assert taken_quickly(f"SELECT ?a {{ {group} }}") is taken


# --- Attribute subscriptions ------------------------------------------------------------------

ATTRIBUTES = ("price", "price.value", "brand", "größe", "weight (kg)", "event")
VALUES: tuple[Any, ...] = ("Acme", "", 5, -5.5, 1e3, True, "2026-01-01")
QUANTITY = {"value": "40 GB", "datatype": "https://w3id.org/cdt/ucum"}
CONSTRAINTS: tuple[Any, ...] = (
    *(*VALUES, QUANTITY, {"iri": "urn:x"}, {"exists": True}, {"isa": "Computer"}),
    *({op: v} for op in ("=", "!=", "<", "<=", ">", ">=") for v in ("Acme", 5, QUANTITY)),
    *({op: {"iri": "urn:x"}} for op in ("=", "!=")),
    *({op: "Acme"} for op in ("contains", "starts", "ends")),
    *({op: "Acme", "ignore case": True} for op in ("=", "contains", "starts", "ends")),
    *({"in": list(VALUES)}, {"in": ["red"]}, {"=": True, "!=": False}),
    *({">": 5, "<=": 9.5}, {">=": "2026-01-01", "<": "2026-02-01"}, {"isa": "Computer", "!=": "x"}),
)


def written(where: dict[str, Any]) -> str:
    return Writer(*taken_apart(where)).text


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
def test_each_constraint_of_an_attribute_is_taken(constraint: Any) -> None:
    assert taken_quickly(written({"price": constraint, "brand": {"<": 5}}))


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.sampled_from(ATTRIBUTES), st.sampled_from(CONSTRAINTS), min_size=1, max_size=4
    )
)
def test_attribute_subscriptions_are_taken(where: dict[str, Any]) -> None:
    assert taken_quickly(written(where))


def test_ten_ranges_are_taken() -> None:
    names = random.Random(5).sample([f"attribute{n}" for n in range(22)], 10)
    assert taken_quickly(written({name: {">": 5, "<=": 9} for name in names}))


def test_that_rdflib_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "parseQuery", None)
    parser = SubscriptionParser()
    assert parser.parse("id", "ASK { ?x <urn:p> ?y FILTER(?y > 5) }").exact
    where = {"price": {">": 100, "<=": 400}, "brand": {"in": ["Acme", "Apex"]}}
    assert AttributeParser(parser).subscription("id", where).exact
    assert parser.skeletons == 2
