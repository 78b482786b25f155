"""Quantities in queries: their positions, lexical forms and uses."""

from __future__ import annotations

import pytest

from graphmatch.subscription import Query, SubscriptionParser
from semantic.errors import SubscriptionError
from semantic.units.quantities import CDT

PREFIXES = f"PREFIX e: <urn:> PREFIX cdt: <{CDT.iri}> "
Q = '"1 m"^^cdt:ucum'


def parse(pattern: str) -> Query:
    return SubscriptionParser().query("s", f"{PREFIXES} SELECT * {{ {pattern} }}")


def attributes(query: Query, text: str) -> list[str]:
    """Return the attributes whose values a constant is, or is compared with."""
    terms = [str(term) for term, _ in query.constants()]
    patterns = query.measurable()
    return sorted(terms[p] for _, p, all_ in patterns if any(text in terms[c] for c, _ in all_))


@pytest.mark.parametrize(
    "pattern",
    [
        f"?x e:a ?v FILTER(?v * 2 > {Q})",
        f"?x e:a ?v FILTER(2 + ?v > {Q})",
        f"?x e:a ?v FILTER(!?v = {Q})",
        f"?x e:a ?v FILTER(?v > {Q} + 1)",
        f"?x e:a ?v FILTER({Q} = {Q})",
        f"?x e:a ?v FILTER(?v NOT IN ({Q}))",
        f"?x e:a ?v FILTER(STR({Q}) = ?v)",
        f"?x e:a ?v FILTER(sameTerm(?v, {Q}))",
        f"?x e:a ?v BIND({Q} AS ?b)",
    ],
)
def test_where_a_quantity_is_refused(pattern: str) -> None:
    with pytest.raises(SubscriptionError, match=r'"1 m".* can only be compared with a variable'):
        parse(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        f"?x e:a {Q}",
        f"?x e:a ?v VALUES ?v {{ {Q} 5 }}",
        f"?x e:a ?v FILTER(?v IN (5, {Q}, <urn:b>, {Q}))",
        f"?x e:a ?v FILTER(?v > {Q} && {Q} < ?v || ?v = {Q})",
        f"?x e:a ?v FILTER(IF(?v > {Q}, true, false))",
        f"?x e:a ?v FILTER(!(?v = {Q}))",
        f"?x e:a ?v FILTER NOT EXISTS {{ ?x e:b ?w FILTER(?w >= {Q}) }}",
        f"?x e:a ?v BIND((?v = {Q}) AS ?b)",
    ],
)
def test_where_a_quantity_may_stand(pattern: str) -> None:
    assert any("ucum" in str(term) for term, _ in parse(pattern).constants())


def test_that_a_quantity_has_a_skeleton_of_its_own() -> None:
    constants = [Q, '"2 kg"^^cdt:ucum', "5", "6.0", '"a"']
    parsed = [parse(f"?x e:a ?v FILTER(?v > {constant})") for constant in constants]
    assert len({query.skeleton for query in parsed}) == 2


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (f"?x e:a {Q}", ["a"]),
        (f"?x e:a ?v ; e:b ?v FILTER(?v > {Q})", ["a", "b"]),
        (f"?x e:c/(e:a|e:b) ?v FILTER({Q} > ?v)", ["a", "b"]),
        (f"?x e:c/e:a+ ?v FILTER(?v IN ({Q}))", ["a"]),
        (f"?x e:a ?v OPTIONAL {{ ?x e:b ?w FILTER(?w > {Q}) }}", ["b"]),
        (f"?x e:a ?v FILTER EXISTS {{ ?x e:b ?w FILTER(?w > {Q}) }}", ["b"]),
        (f"?x e:a ?v MINUS {{ ?x e:b {Q} }}", ["b"]),
        (f"{{ SELECT ?x {{ ?x e:b ?w FILTER(?w > {Q}) }} }}", ["b"]),
        (f"?x e:a ?v VALUES ?v {{ {Q} }}", ["a"]),
        (f"?x e:a 5 FILTER NOT EXISTS {{ ?x e:b ?w FILTER(?w IN (5, {Q})) }}", ["b"]),
        (f"?x e:a 5 FILTER EXISTS {{ ?x e:b ?w VALUES ?w {{ {Q} }} }}", ["b"]),
        (f"?x ?p {Q} ; e:a 5", []),
        (f"?x e:a ?v BIND(?v AS ?w) FILTER(?w > {Q})", ["a"]),
        (f"{{ SELECT ?x {{ ?x e:a ?v }} GROUP BY ?x HAVING(MAX(?v) > {Q}) }}", ["a"]),
    ],
)
def test_whose_value_a_quantity_is(pattern: str, expected: list[str]) -> None:
    assert attributes(parse(pattern), "ucum") == [f"<urn:{name}>" for name in expected]


def test_patterns_that_name_a_unit() -> None:
    query = parse('?n e:v ?v ; e:u "MB" ; e:w ?w . e:n e:u ?o FILTER(?v > 5 && ?w = "x")')
    terms = [str(term) for term, _ in query.constants()]
    subjects, *_ = zip(*query.measurable(), strict=True)
    assert subjects[0] == subjects[1] == subjects[2] < 0
    assert terms[subjects[3]] == "<urn:n>"
    found = [
        (terms[p], [(terms[c], same) for c, same in all_]) for _, p, all_ in query.measurable()
    ]
    assert found[:3] == [
        ("<urn:v>", [('"5"^^<http://www.w3.org/2001/XMLSchema#integer>', False)]),
        ("<urn:u>", [('"MB"', True)]),
        ("<urn:w>", [('"x"', True)]),
    ]
    assert found[3] == ("<urn:u>", [])
