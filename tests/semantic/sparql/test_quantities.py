"""Quantities in queries: where they may stand, what they are written as, what they are used for."""

from __future__ import annotations

import pytest

from semantic.errors import SubscriptionError
from semantic.sparql.parse import SubscriptionParser
from semantic.units.vocabulary import CDT

PREFIXES = f"PREFIX e: <urn:> PREFIX cdt: <{CDT.iri}> "
Q = '"1 m"^^cdt:ucum'


def parse(pattern: str) -> SubscriptionParser:
    parser = SubscriptionParser()
    parser.parse("s", f"{PREFIXES} SELECT * {{ {pattern} }}")
    return parser


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
    with pytest.raises(SubscriptionError, match="can only be compared with a variable") as caught:
        parse(pattern)
    assert caught.value.problem.where.column == len(f"{PREFIXES} SELECT * {{ ") + (
        pattern.index(Q) + 1
    )


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
    assert parse(pattern).skeletons == 1


def test_that_a_quantity_has_a_skeleton_of_its_own() -> None:
    parser = SubscriptionParser()
    query = PREFIXES + "SELECT * {{ ?x e:a ?v FILTER(?v > {}) }}"
    for number, constant in enumerate([Q, '"2 kg"^^cdt:ucum', "5", "6.0", '"a"']):
        parser.parse(str(number), query.format(constant))
    assert parser.skeletons == 2


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
    ],
)
def test_whose_value_a_quantity_is(pattern: str, expected: list[str]) -> None:
    query = SubscriptionParser().parse("s", f"{PREFIXES} SELECT * {{ {pattern} }}").query
    (number,) = [n for n, term in enumerate(query.constants) if "ucum" in str(term)]
    uses = [use.filled(query.constants) for use in query.skeleton.uses.get(number, ())]
    assert sorted(str(use.attribute) for use in uses) == [f"<urn:{name}>" for name in expected]


def test_what_stands_beside_a_number() -> None:
    pattern = '?n e:v ?v ; e:u "MB" ; e:w ?w FILTER(?v > 5 && ?w = "x")'
    query = SubscriptionParser().parse("s", f"{PREFIXES} SELECT * {{ {pattern} }}").query
    number = next(n for n, term in enumerate(query.constants) if str(term).startswith('"5"'))
    (use,) = [use.filled(query.constants) for use in query.skeleton.uses[number]]
    beside = {str(predicate): object_ and str(object_) for predicate, object_ in use.siblings}
    assert beside == {"<urn:v>": None, "<urn:u>": '"MB"', "<urn:w>": '"x"'}
