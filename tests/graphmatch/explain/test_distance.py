"""Distances, compared with plain arithmetic and with shortest paths between all terms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Variable

from graphmatch.explain.near_miss import Distances
from semantic import Ontology
from semantic.branch import AnyOf, Comparison, TaxonomyOperator, TaxonomyTest, Unequal
from semantic.filter_evaluation import holds
from semantic.terms import Term
from semantic.values import ComparisonOperator
from semantic.vocabulary import BROADER, OWL, SKOS, SUBCLASS, TYPE, XSD

X = Variable("x")
CLASSES = tuple(NamedNode(f"urn:c{n}") for n in range(6))
PLAIN = Distances(Ontology(), {})


def decimal(text: str) -> Literal:
    return Literal(text, datatype=XSD["decimal"])


# --- Numbers -----------------------------------------------------------------------------------

numbers = st.decimals(-1000, 1000, places=3)


@given(st.sampled_from(ComparisonOperator), numbers, numbers)
def test_a_number_that_is_moved_by_its_distance_passes(
    operator: ComparisonOperator, value: Decimal, bound: Decimal
) -> None:
    term, constant = decimal(f"{value:f}"), decimal(f"{bound:f}")
    filter_ = Comparison(X, operator, constant)
    if holds(filter_, term):
        return
    miss = PLAIN.miss(filter_, term)
    assert miss.distance == abs(Fraction(value) - Fraction(bound))
    moves = [Decimal(sign) * abs(value - bound) for sign in (-1, 1)]
    inclusive = {
        ComparisonOperator.LT: ComparisonOperator.LE,
        ComparisonOperator.GT: ComparisonOperator.GE,
    }.get(operator, operator)
    reached = Comparison(X, inclusive, constant)
    assert any(holds(reached, decimal(f"{value + move:f}")) for move in moves)
    amount = miss.why.rpartition(" by ")[2]
    if value == bound:
        assert miss.why == f"{constant.value} itself is excluded"
    else:
        assert Fraction(amount) == miss.distance
    event(operator.value)


@pytest.mark.parametrize(
    ("operator", "constant", "term", "why"),
    [
        ("<=", Literal(400), Literal(412), "412 is above 400 by 12"),
        (">", Literal(5), Literal("4.25", datatype=XSD["double"]), "4.25 is below 5 by 0.75"),
        (">", Literal(1), Literal("0.9", datatype=XSD["float"]), "0.9 is below 1 by 0.1"),
        ("=", Literal(5), Literal(7), "7 differs from 5 by 2"),
        ("<", Literal(5), Literal("INF", datatype=XSD["double"]), "INF is not 5"),
        ("<", Literal(5), Literal("six"), '"six" cannot be compared with 5'),
        ("<", Literal(5), NamedNode("urn:a"), "<urn:a> is not 5"),
        ("<", Literal("b"), Literal("c"), '"c" comes after "b"'),
        (">", Literal("b"), Literal("a"), '"a" comes before "b"'),
        ("=", Literal("b"), Literal("a"), '"a" is not "b"'),
        ("=", NamedNode("urn:a"), NamedNode("urn:b"), "<urn:b> is not <urn:a>"),
    ],
)
def test_comparisons_in_words(
    operator: str, constant: NamedNode | Literal, term: Term, why: str
) -> None:
    filter_ = Comparison(X, ComparisonOperator(operator), constant)
    assert not holds(filter_, term)
    assert PLAIN.miss(filter_, term).why == why


@pytest.mark.parametrize(
    ("bound", "value", "datatype", "amount"),
    [
        ("2026-03-10", "2026-03-01", "date", "9 days"),
        ("2026-03-10", "2026-03-09", "date", "1 day"),
        ("2026-01-02T01:00:00Z", "2026-01-01T02:00:00+02:00", "dateTime", "1 d 1:00:00"),
        ("2026-01-02T01:00:00Z", "2026-01-02T00:30:30Z", "dateTime", "0:29:30"),
    ],
)
def test_times(bound: str, value: str, datatype: str, amount: str) -> None:
    one, other = (Literal(text, datatype=XSD[datatype]) for text in (bound, value))
    miss = PLAIN.miss(Comparison(X, ComparisonOperator.GE, one), other)
    assert miss.why == f"{value} is below {bound} by {amount}"


def test_times_of_unknown_order_have_no_distance() -> None:
    bound, value = (Literal(text, datatype=XSD["date"]) for text in ("2026-01-02Z", "2026-01-02"))
    assert PLAIN.miss(Comparison(X, ComparisonOperator.GE, bound), value).distance == math.inf


def test_misses_of_inequality_are_explained() -> None:
    five = Unequal(X, Literal(5))
    assert PLAIN.miss(five, Literal(5)).why == "it is 5"
    assert PLAIN.miss(five, decimal("5.0")).why == "5.0 may be equal to 5"


def test_of_alternatives_the_nearest_comes_first() -> None:
    tests = tuple(Comparison(X, ComparisonOperator.EQ, Literal(n)) for n in (90, 12, 50, 70))
    miss = PLAIN.miss(AnyOf(X, tests, "IN"), Literal(60))
    assert miss.distance == 10
    assert miss.why == (
        "60 differs from 50 by 10; 60 differs from 70 by 10; 60 differs from 90 by 30; and 1 more"
    )


# --- Taxonomies --------------------------------------------------------------------------------


def ways(edges: Sequence[tuple[int, int]]) -> list[list[float]]:
    """Return the length of the shortest upward path for each pair (Floyd and Warshall)."""
    size = range(len(CLASSES))
    steps = [[0.0 if a == b else math.inf for b in size] for a in size]
    for low, high in edges:
        steps[low][high] = 1
    for middle, low, high in product(size, size, size):
        steps[low][high] = min(steps[low][high], steps[low][middle] + steps[middle][high])
    return steps


@st.composite
def edges(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Draw upward links without a cycle."""
    pairs = [(a, b) for a in range(len(CLASSES)) for b in range(a)]
    return draw(st.lists(st.sampled_from(pairs), unique=True))


@given(edges(), st.sampled_from([SUBCLASS, BROADER]), st.sampled_from(TaxonomyOperator))
def test_distance_of_terms(
    links: list[tuple[int, int]], property_: NamedNode, operator: TaxonomyOperator
) -> None:
    ontology = Ontology([(CLASSES[a], property_, CLASSES[b]) for a, b in links])
    distances, steps = Distances(ontology, {}), ways(links)
    for low, high in product(range(len(CLASSES)), repeat=2):
        term, concept = low, high
        if operator is TaxonomyOperator.ANCESTOR:
            term, concept = high, low
        below = steps[low][high]
        if below < math.inf and (operator is not TaxonomyOperator.CHILD or below == 1):
            continue  # The test passes.
        miss = distances.miss(TaxonomyTest(X, operator, CLASSES[concept]), CLASSES[term])
        if math.inf > below > 1:
            assert miss.distance == below - 1
            assert miss.why.startswith(f"it is not directly below: {CLASSES[low]} ⊑ ")
            assert miss.why.count("⊑") == below
            continue
        over = [steps[low][n] + steps[high][n] for n in range(len(CLASSES))]
        assert miss.distance == min(over)
        says = f"{CLASSES[low]} is not below {CLASSES[high]}"
        if min(over) == math.inf:
            assert miss.why == f"{says}: they have no common ancestor"
        elif low != high and steps[high][low] < math.inf:
            assert miss.why == f"{says}: it is more general"
        elif low != high:
            prefix, _, common = miss.why.partition(": both are below ")
            assert prefix == says
            assert over[CLASSES.index(NamedNode(common[1:-1]))] == min(over)


def test_general_superclasses_do_not_reduce_the_distance() -> None:
    """Classes like owl:Thing are ignored, but a publication's links count."""
    one, other, third = CLASSES[:3]
    ontology = Ontology([(one, TYPE, SKOS["Concept"]), (other, TYPE, SKOS["Concept"])])
    assert Distances(ontology, {}).not_below(one, other).distance == math.inf
    ontology = Ontology([(one, SUBCLASS, OWL["Thing"]), (other, SUBCLASS, OWL["Thing"])])
    assert Distances(ontology, {}).not_below(one, other).distance == math.inf
    links = {one: (third,), other: (third,)}
    assert Distances(ontology, links, {}).not_below(one, other).distance == 2
