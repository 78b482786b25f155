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
    event(operator.value)


@pytest.mark.parametrize(
    ("operator", "constant", "term", "distance"),
    [
        ("<=", Literal(400), Literal(412), 12),
        (">", Literal(5), Literal("4.25", datatype=XSD["double"]), Fraction(3, 4)),
        ("=", Literal(5), Literal(7), 2),
        ("<", Literal(5), Literal("INF", datatype=XSD["double"]), math.inf),
        ("<", Literal(5), Literal("six"), math.inf),
        ("<", Literal(5), NamedNode("urn:a"), math.inf),
        ("<", Literal("b"), Literal("c"), math.inf),
        ("=", NamedNode("urn:a"), NamedNode("urn:b"), math.inf),
    ],
)
def test_distances_of_values(
    operator: str, constant: NamedNode | Literal, term: Term, distance: float
) -> None:
    filter_ = Comparison(X, ComparisonOperator(operator), constant)
    assert not holds(filter_, term)
    assert PLAIN.miss(filter_, term).distance == distance


@pytest.mark.parametrize(
    ("bound", "value", "datatype", "seconds"),
    [
        ("2026-03-10", "2026-03-01", "date", 9 * 86_400),
        ("2026-01-02T01:00:00Z", "2026-01-01T02:00:00+02:00", "dateTime", 90_000),
        ("2026-01-02Z", "2026-01-02", "date", math.inf),  # Their order is unknown.
    ],
)
def test_times(bound: str, value: str, datatype: str, seconds: float) -> None:
    one, other = (Literal(text, datatype=XSD[datatype]) for text in (bound, value))
    assert PLAIN.miss(Comparison(X, ComparisonOperator.GE, one), other).distance == seconds


def test_of_alternatives_the_nearest_counts() -> None:
    tests = tuple(Comparison(X, ComparisonOperator.EQ, Literal(n)) for n in (90, 12, 50, 70))
    assert PLAIN.miss(AnyOf(X, tests, "IN"), Literal(60)).distance == 10
    assert PLAIN.miss(Unequal(X, Literal(5)), Literal(5)).distance == math.inf


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
