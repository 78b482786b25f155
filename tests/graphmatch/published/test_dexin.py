"""DEXIN: the cost of each method, and its planners, compared with brute force."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphmatch.published import make
from graphmatch.published.attribute_matcher import AttributeEvent, Conjunction, Interval, Tally
from graphmatch.published.dexin import (
    SEARCHED,
    Dexin,
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
from semantic import Ontology

P, Q, R = NamedNode("urn:p"), NamedNode("urn:q"), NamedNode("urn:r")


def dexin(name: str, *rows: dict[NamedNode, Interval]) -> Dexin:
    made = make(name, Ontology(), domain=(0, 10), slots=10)
    assert isinstance(made, Dexin)
    for number, row in enumerate(rows):
        made.add(Conjunction(str(number), P, (row,)))
    return made


def crowd(name: str) -> Dexin:
    """Return 20 subscriptions; at 5.5, 8 of them pass P, 10 pass Q (3 of those 8), and all R."""
    inside, outside = Interval(0, 9), Interval(0, 3)
    return dexin(
        name,
        *(
            {
                P: inside if number < 8 else outside,
                Q: inside if 5 <= number < 15 else outside,
                R: inside,
            }
            for number in range(20)
        ),
    )


@pytest.mark.parametrize(
    ("name", "steps", "probes", "index_hits", "candidates"),
    [
        ("dexin", [(P, 0, 0.6), (Q, 1, 0.4), (R, 1, 0.2)], 12, 12, 8 + 3),
        ("dexin-optimal", [(P, 0, 0.6), (R, 0, 0.0), (Q, 1, 0.4)], 12, 12, 8),
        ("dexin-exclusive", [(P, 0, 0.6), (Q, 0, 0.5), (R, 0, 0.0)], 12 + 10, 17, 0),
        ("dexin-inclusive", [(P, 1, 1.0), (Q, 1, 0.4), (R, 1, 0.2)], 0, 0, 20 + 8 + 3),
    ],
)
def test_each_step_costs_what_its_plan_says(
    name: str,
    steps: list[tuple[NamedNode, int, float]],
    probes: int,
    index_hits: int,
    candidates: int,
) -> None:
    """An exclusive step visits failed constraints, an inclusive one the remaining candidates."""
    made, event, tally = crowd(name), AttributeEvent({}, {P: 5.5, Q: 5.5, R: 5.5}), Tally()
    plan = made.plan(event)
    assert [(step.attribute, step.method) for step in plan] == [step[:2] for step in steps]
    assert [step.cost for step in plan] == pytest.approx([cost for _, _, cost in steps])
    assert list(made.matched(event, tally)) == [5, 6, 7]
    assert (tally.probes, tally.index_hits, tally.candidates) == (probes, index_hits, candidates)


def test_rates_are_estimated_from_whole_slots() -> None:
    """Formula 3 counts the entries of the value's own slots, up to the total."""
    near = ({P: Interval(low, high)} for low, high in ((5.25, 5.75), (5.4, 5.6), (5.5, 5.5)))
    made = dexin("dexin", *near, {Q: Interval(5.25, 9)})
    rates = {step.attribute: step.rate for step in made.plan(AttributeEvent({}, {P: 5.5, Q: 5.5}))}
    assert rates == {P: 0, Q: 0.75}  # P has six entries of four subscriptions.


# --- Planners -------------------------------------------------------------------------------------

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


def test_a_plan_costs_the_sum_of_formula_6() -> None:
    """The exclusive method costs the failed share, the inclusive one the remaining share."""
    rates = named(0.5, 0.25, 0.75, 0.5)
    methods = Method.INCLUSIVE, Method.EXCLUSIVE, Method.INCLUSIVE, Method.EXCLUSIVE
    plan = price(rates, rates, methods)
    assert [step.cost for step in plan] == [1, 0.75, 0.125, 0.5]
    assert cost(plan) == 2.375
    assert cost(only_exclusive(rates)) == 0.5 + 0.75 + 0.25 + 0.5
    assert cost(only_inclusive(named(0.75, 0.5, 0.5))) == 1 + 0.5 + 0.25  # The first step costs 1.


@given(RATES)
def test_the_optimum_is_that_of_brute_force(rates: Rates) -> None:
    assert cost(optimal(rates)) == pytest.approx(min(map(cost, everything(rates))))


@pytest.mark.parametrize("observed", [exclusive_first, two_parts, inclusive_ascending])
@given(RATES)
def test_some_optimum_is_as_observed(observed: Callable[[Plan], bool], rates: Rates) -> None:
    """Check observations 1 to 3 separately."""
    plans = list(everything(rates))
    least = min(map(cost, plans))
    assert any(observed(plan) and cost(plan) == pytest.approx(least) for plan in plans)
    assert observed(optimal(rates))


@given(RATES)
def test_first_fit_takes_the_exclusive_method_while_it_is_cheaper(rates: Rates) -> None:
    """First fit stops at the first attribute with a cheaper inclusive method."""
    left, stopped = 1.0, False
    plan = low_matching_rate_first_fit(rates)
    assert [step.rate for step in plan] == sorted(rates.values())
    for number, step in enumerate(plan):
        stopped = stopped or (number > 0 and left <= 1 - step.rate)
        assert step.method is (Method.INCLUSIVE if stopped else Method.EXCLUSIVE)
        left *= step.rate


def test_first_fit_is_not_always_optimal() -> None:
    """First fit stops before an attribute that the exclusive method would handle for free."""
    rates = named(0.5, 0.5, 1.0)
    assert cost(low_matching_rate_first_fit(rates)) == pytest.approx(0.5 + 0.5 + 0.25)
    assert cost(optimal(rates)) == pytest.approx(0.5 + 0.5)


@given(RATES)
def test_no_planner_is_cheaper_than_the_optimum(rates: Rates) -> None:
    least = cost(optimal(rates)) - 1e-9
    for planner in (low_matching_rate_first_fit, only_exclusive, only_inclusive):
        assert sorted(step.attribute.value for step in planner(rates)) == sorted(
            attribute.value for attribute in rates
        )
        assert cost(planner(rates)) >= least


def test_too_many_attributes_are_not_searched() -> None:
    rates = named(*[0.5] * (SEARCHED + 1))
    assert optimal(rates) == low_matching_rate_first_fit(rates)
