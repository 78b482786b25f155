"""DEXIN's planners, compared with brute force over all orders and methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphmatch.published.dexin import (
    SEARCHED,
    Method,
    Plan,
    Rates,
    cost,
    low_matching_rate_first_fit,
    only_exclusive,
    only_inclusive,
    optimal,
    price,
)

ATTRIBUTES = tuple(NamedNode(f"urn:{number}") for number in range(SEARCHED + 1))
RATES = st.lists(st.floats(0, 1), min_size=1, max_size=4).map(lambda rates: named(*rates))


def named(*rates: float) -> dict[NamedNode, float]:
    return dict(zip(ATTRIBUTES, rates, strict=False))


def everything(rates: Rates) -> Iterator[Plan]:
    for order in permutations(rates):
        for methods in product(Method, repeat=len(rates)):
            yield price(rates, order, methods)


def exclusive_first(plan: Plan) -> bool:
    return plan[0].method is Method.EXCLUSIVE


def two_parts(plan: Plan) -> bool:
    return [step.method for step in plan] == sorted(step.method for step in plan)


def inclusive_ascending(plan: Plan) -> bool:
    rates = [step.rate for step in plan if step.method is Method.INCLUSIVE]
    return rates == sorted(rates)


def test_that_a_plan_costs_what_formula_6_says() -> None:
    """The exclusive method costs the failed share, the inclusive one the remaining share."""
    rates = named(0.5, 0.25, 0.75, 0.5)
    methods = Method.INCLUSIVE, Method.EXCLUSIVE, Method.INCLUSIVE, Method.EXCLUSIVE
    plan = price(rates, rates, methods)
    assert [step.cost for step in plan] == [1, 0.75, 0.125, 0.5]
    assert cost(plan) == 2.375


@given(RATES)
def test_that_the_optimum_is_that_of_brute_force(rates: Rates) -> None:
    assert cost(optimal(rates)) == pytest.approx(min(map(cost, everything(rates))))


@pytest.mark.parametrize("observed", [exclusive_first, two_parts, inclusive_ascending])
@given(RATES)
def test_that_some_optimum_is_as_observed(observed: Callable[[Plan], bool], rates: Rates) -> None:
    """Check observations 1 to 3 separately."""
    plans = list(everything(rates))
    least = min(map(cost, plans))
    assert any(observed(plan) and cost(plan) == pytest.approx(least) for plan in plans)
    assert observed(optimal(rates))


@given(RATES)
def test_that_each_observation_is_kept_by_first_fit(rates: Rates) -> None:
    plan = low_matching_rate_first_fit(rates)
    assert exclusive_first(plan)
    assert two_parts(plan)
    assert [step.rate for step in plan] == sorted(rates.values())


@given(RATES)
def test_that_first_fit_takes_the_exclusive_method_while_it_is_cheaper(rates: Rates) -> None:
    """First fit stops at the first attribute with a cheaper inclusive method."""
    left, stopped = 1.0, False
    for number, step in enumerate(low_matching_rate_first_fit(rates)):
        stopped = stopped or (number > 0 and left <= 1 - step.rate)
        assert step.method is (Method.INCLUSIVE if stopped else Method.EXCLUSIVE)
        left *= step.rate


def test_that_first_fit_compares_with_what_does_not_match() -> None:
    """The matching rate, as in the text of section 3.5, would give a costlier plan."""
    rates = named(0.7, 0.8)
    plan = low_matching_rate_first_fit(rates)
    assert cost(plan) == pytest.approx(0.3 + 0.2)
    assert cost(price(rates, rates, [Method.EXCLUSIVE, Method.INCLUSIVE])) == pytest.approx(1.0)


def test_that_first_fit_is_not_always_optimal() -> None:
    """First fit stops before an attribute that the exclusive method would handle for free."""
    rates = named(0.5, 0.5, 1.0)
    assert cost(low_matching_rate_first_fit(rates)) == pytest.approx(0.5 + 0.5 + 0.25)
    assert cost(optimal(rates)) == pytest.approx(0.5 + 0.5)


@given(RATES)
def test_that_no_planner_is_cheaper_than_the_optimum(rates: Rates) -> None:
    least = cost(optimal(rates)) - 1e-9
    for planner in (low_matching_rate_first_fit, only_exclusive, only_inclusive):
        assert sorted(step.attribute.value for step in planner(rates)) == sorted(
            attribute.value for attribute in rates
        )
        assert cost(planner(rates)) >= least


def test_that_one_method_alone_costs_what_formulas_8_and_9_say() -> None:
    rates = named(0.75, 0.5, 0.5)
    assert cost(only_exclusive(rates)) == 0.25 + 0.5 + 0.5
    assert cost(only_inclusive(rates)) == 1 + 0.5 + 0.25  # The first step costs 1.


def test_that_too_many_attributes_are_not_searched() -> None:
    rates = named(*[0.5] * (SEARCHED + 1))
    assert optimal(rates) == low_matching_rate_first_fit(rates)


def test_that_nothing_has_an_empty_plan() -> None:
    planners = low_matching_rate_first_fit, optimal, only_exclusive, only_inclusive
    assert [planner({}) for planner in planners] == [()] * 4
