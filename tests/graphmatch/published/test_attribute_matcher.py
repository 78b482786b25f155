"""Subscriptions as constraints: interval ends, two ranges, and unsupported queries."""

from __future__ import annotations

from math import inf, nextafter
from operator import eq, ge, gt, le, lt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from graphmatch import SubscriptionParser
from graphmatch.matcher import UnsupportedError
from graphmatch.published import MATCHERS, make
from graphmatch.published.attribute_matcher import Below, Conjunction, Equal, Interval, Present
from semantic import Ontology, Publication
from semantic.values import ComparisonOperator

PARSER = SubscriptionParser()
P, Q = NamedNode("urn:p"), NamedNode("urn:q")
KINDS = {Interval, Equal, Below, Present}
ENDS = st.sampled_from([-inf, 0.0, 1.0, inf])


def read(where: str) -> Conjunction:
    return Conjunction.of(PARSER.parse("s", f"SELECT * {{ {where} }}"), KINDS)


@given(
    st.sampled_from(list(ComparisonOperator)),
    ENDS,
    st.sampled_from([-inf, -1.0, 0.0, 0.5, 1.0, inf]),
)
def test_a_range_holds_the_numbers_for_which_the_comparison_is_true(
    operator: ComparisonOperator, number: float, value: float
) -> None:
    true = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}[operator.value](value, number)
    assert Interval.of(operator, number).holds(value) is true


def test_a_range_without_some_numbers_becomes_several() -> None:
    """DEXIN, section 2.1: ``!=`` is two ranges."""
    (p,) = {
        tuple(row[P] for row in read("?e <urn:p> ?v FILTER(?v >= 1 && ?v != 2 && ?v != 3)").rows)
    }
    assert p == (
        Interval(1, nextafter(2, -inf)),
        Interval(nextafter(2, inf), nextafter(3, -inf)),
        Interval(nextafter(3, inf), inf),
    )


def test_that_two_attributes_with_two_ranges_are_four_conjunctions() -> None:
    where = "?e <urn:p> ?v ; <urn:q> ?w FILTER(?v > 1 && ?v != 2) FILTER(?w > 1 && ?w != 2)"
    assert len(read(where).rows) == 4


@pytest.mark.parametrize(
    "filter_", ["?v > 5 && ?v < 3", "?v > 5 && ?v <= 5", "?v = 2 && ?v != 2", "?v > 1e999"]
)
def test_contradictory_comparisons_give_no_conjunction(filter_: str) -> None:
    assert read(f"?e <urn:p> ?v FILTER({filter_})").rows == ()


def test_each_kind_of_constraint_is_read() -> None:
    found = read('?e <urn:p> ?v ; <urn:q> "HP" FILTER(gm:descendantOf(?v, <urn:Computer>))')
    assert [type(found.rows[0][attribute]) for attribute in (P, Q)] == [Below, Equal]
    assert read("?e <urn:p> ?v").rows == ({P: Present()},)


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("?e <urn:p> ?v . ?v <urn:q> 1", "patterns with several subjects"),
        ("?e ?p 1", "a variable in a property's place"),
        ("?e <urn:p> ?v ; <urn:q> ?v", "a variable in several places"),
        ("?e <urn:p> ?e", "a variable in several places"),
        ("?e <urn:p> 1 ; <urn:p> 2", "two patterns with one attribute"),
        ("?e <urn:p> ?v FILTER(?e = <urn:a>)", "a test of another term than a value"),
        ("?e <urn:p> ?v FILTER(?v != 1)", "FILTER != without another comparison with a number"),
        ('?e <urn:p> ?v FILTER(CONTAINS(?v, "a"))', "FILTER CONTAINS"),
        ("?e <urn:p> ?v OPTIONAL { ?e <urn:q> ?w }", "OPTIONAL"),
    ],
)
def test_other_queries_are_refused(where: str, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=f"not supported by this algorithm: {reason}"):
        read(where)


@pytest.mark.parametrize("name", sorted(MATCHERS.keys() - {"naive"}))
def test_unsubscribing_frees_the_memory(name: str) -> None:
    made: Any = make(name, Ontology())
    text = "?e <urn:p> 1" if name == "gryphon" else "?e <urn:p> ?v FILTER(?v > {0} && ?v < 90)"
    empty, sizes = made.nbytes, set[int]()
    for _ in range(2):
        for number in range(50):
            where = text.format(number)
            made.subscribe(PARSER.parse(str(number), f"SELECT ?e {{ {where} }}"))
        sizes.add(made.nbytes)
        for number in range(50):
            made.unsubscribe(str(number))
    assert len(sizes) == 1
    assert min(sizes) > made.nbytes == empty
    event = Publication.of("urn:publication", [(P, P, Literal(1)), (P, Q, Literal(1))])
    assert len(made.match(event)) == 0
