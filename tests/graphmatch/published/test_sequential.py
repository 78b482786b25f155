"""Orders of evaluating expensive predicates: all give the same answers, with few calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import TypeAlias

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from graphmatch.bench.operators import orders
from graphmatch.matcher import (
    DuplicateSubscriptionError,
    UnknownSubscriptionError,
    UnsupportedError,
)
from graphmatch.published import ORDERS
from graphmatch.published.sequential import (
    Bindings,
    Decision,
    EvaluationOrder,
    Predicate,
    PredicateConjunction,
    PredicateResult,
    Sequential,
    Variable,
)

X, Y, Z = map(Variable, "xyz")
VALUES = (0, 1, 2)

NAMES = ("naive", "sequential", "suborder", "greedy")

Relation: TypeAlias = frozenset[tuple[int, ...]] | None
"""Tuples for which an operator holds; ``None`` if its calls fail."""


@dataclass(frozen=True)
class World:
    """Operators, the subscriptions that use them, and the failing shapes."""

    relations: Mapping[str, Relation]
    subscriptions: tuple[PredicateConjunction, ...]
    failing: frozenset[Predicate]

    def evaluate(self, predicate: Predicate) -> PredicateResult:
        if predicate in self.failing:
            return PredicateResult(None)
        relation = self.relations[predicate.operator]
        if relation is None:
            return PredicateResult(None)
        found = [
            tuple(values[name] for name in predicate.variables)
            for values in assignments(predicate)
            if substituted(predicate, values) in relation
        ]
        return PredicateResult(bool(found), found)

    def truth(self, predicate: Predicate) -> bool | None:
        if predicate.shape in self.failing or self.relations[predicate.operator] is None:
            return None
        return any(self.holds(predicate, values) for values in assignments(predicate))

    def holds(self, predicate: Predicate, values: Mapping[str, int]) -> bool:
        if predicate.shape in self.failing:
            return False
        return substituted(predicate, values) in (self.relations[predicate.operator] or ())

    def answer(self) -> tuple[dict[str, set[frozenset[tuple[str, object]]]], set[str]]:
        """Return matches (section 2.1) and undecided ids by trying all substitutions."""
        matches, unknown = {}, set()
        for s in self.subscriptions:
            truths = {self.truth(t) for t in s.predicates}
            if None in truths and False not in truths:
                unknown.add(s.id)
            solutions = {
                frozenset(values.items())
                for values in assignments(*s.predicates)
                if all(self.holds(t, values) for t in s.predicates)
                and all(test(values) for test in s.constraints)
            }
            if solutions:
                matches[s.id] = solutions
        return matches, unknown


def assignments(*predicates: Predicate) -> list[dict[str, int]]:
    names = sorted({name for t in predicates for name in t.variables})
    return [dict(zip(names, values, strict=True)) for values in product(VALUES, repeat=len(names))]


def substituted(predicate: Predicate, values: Mapping[str, int]) -> tuple[object, ...]:
    return tuple(values[a.name] if isinstance(a, Variable) else a for a in predicate.arguments)


ARITY = {"a": 0, "b": 0, "c": 1, "d": 1, "e": 2}


def same(first: str, second: str) -> Callable[[Bindings], bool]:
    return lambda row: row.get(first) == row.get(second)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    relations: dict[str, Relation] = {}
    for name, arity in ARITY.items():
        tuples = list(product(VALUES, repeat=arity))
        held = st.sets(st.sampled_from(tuples)).map(frozenset)
        relations[name] = draw(st.one_of(held, held, held, st.none()))
    argument = st.sampled_from([X, Y, Z, X, Y, 0, 1])
    predicate = st.sampled_from(sorted(ARITY)).flatmap(
        lambda name: st.tuples(*[argument] * ARITY[name]).map(lambda a: Predicate(name, a))
    )
    constraint = st.sampled_from([same("x", "y"), lambda row: row.get("x") != 0])
    several = draw(
        st.lists(
            st.tuples(
                st.lists(predicate, min_size=1, max_size=4).map(tuple),
                st.lists(constraint, max_size=1).map(tuple),
            ),
            max_size=8,
        )
    )
    subscriptions = tuple(PredicateConjunction(str(n), *parts) for n, parts in enumerate(several))
    shapes = sorted({t.shape for s in subscriptions for t in s.predicates}, key=repr)
    failing = draw(st.sets(st.sampled_from(shapes), max_size=1)) if shapes else set()
    return World(relations, subscriptions, frozenset(failing))


def estimate(predicate: Predicate) -> tuple[float, float]:
    """Return any probability and cost, certainty and impossibility among them."""
    number = sum(map(ord, repr(predicate)))
    return (number % 11) / 10, 1.0 + number % 7


def solved(decision: Decision) -> dict[str, set[frozenset[tuple[str, object]]]]:
    for rows in decision.matches.values():
        assert len({frozenset(row.items()) for row in rows}) == len(rows)
    return {id: {frozenset(r.items()) for r in rows} for id, rows in decision.matches.items()}


def test_names_has_every_order() -> None:
    assert set(NAMES) == {*orders(estimate)} == {*ORDERS, "naive", "greedy"}


@pytest.mark.parametrize("name", NAMES)
@given(world=worlds(), data=st.data())
def test_that_every_order_finds_the_same(name: str, world: World, data: st.DataObject) -> None:
    order = orders(estimate)[name]
    for subscription in data.draw(st.permutations(world.subscriptions)):
        order.subscribe(subscription)
    matches, unknown = world.answer()
    event(f"matches: {min(len(matches), 2)}, open: {min(len(unknown), 2)}")
    for _ in range(2):  # The second run must not depend on the first.
        decision = order.decide(world.evaluate)
        assert solved(decision) == matches
        assert decision.open == unknown
        assert len(set(decision.evaluated)) == len(decision.evaluated)
    gone = [s for s in world.subscriptions if data.draw(st.booleans())]
    for subscription in gone:
        order.unsubscribe(subscription.id)
    left = matches.keys() - {s.id for s in gone}
    assert solved(order.decide(world.evaluate)) == {id: matches[id] for id in left}
    for subscription in gone:
        order.subscribe(subscription)
    assert solved(order.decide(world.evaluate)) == matches


def optimal(world: World, cost: Callable[[Predicate], float]) -> float:
    """Return the cost of the cheapest deciding predicates, by trying all sets."""
    held = {s.id: {t.shape for t in s.predicates} for s in world.subscriptions}
    truth = {t: world.truth(t) for shapes in held.values() for t in shapes}
    best = float("inf")
    for size in range(len(truth) + 1):
        for some in map(set, combinations(truth, size)):
            decided = all(
                shapes <= some or any(truth[t] is False for t in shapes & some)
                for shapes in held.values()
            )
            if decided:
                best = min(best, sum(map(cost, some)))
    return best


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("naive", "greedy")])
@given(world=worlds().filter(lambda w: len({t for s in w.subscriptions for t in s.predicates}) < 9))
def test_evaluations_keep_the_bound_of_theorem_2(name: str, world: World) -> None:
    """At most d · OPT evaluations; with costs d · Cmax / Cmin · OPT (section 4.3)."""
    order = orders(estimate)[name]
    for subscription in world.subscriptions:
        order.subscribe(subscription)
    evaluated = order.decide(world.evaluate).evaluated
    d = max((len(shapes) for shapes in order.predicates.values()), default=0)
    assert len(evaluated) <= d * optimal(world, lambda _: 1)
    costs = {t: estimate(t)[1] for t in order.subscribers}
    if costs:
        spread = max(costs.values()) / min(costs.values())
        total = sum(costs[t] for t in evaluated)
        assert total <= d * spread * optimal(world, costs.__getitem__) + 1e-9


@given(world=worlds())
def test_the_greedy_order_takes_the_best(world: World) -> None:
    """The next predicate always has the greatest current (1 - p) · n / c."""
    order = orders(estimate)["greedy"]
    for subscription in world.subscriptions:
        order.subscribe(subscription)
    open_ = {s.id: {t.shape for t in s.predicates} for s in world.subscriptions}
    for t in order.decide(world.evaluate).evaluated:
        live = {shape: 0 for shapes in open_.values() for shape in shapes}
        for shapes in open_.values():
            for shape in shapes:
                live[shape] += 1
        rate = {s: (1 - estimate(s)[0]) * n / estimate(s)[1] for s, n in live.items()}
        assert rate[t] >= max(rate.values()) * (1 - 1e-12)
        if world.truth(t) is False:
            open_ = {id: shapes for id, shapes in open_.items() if t not in shapes}
        else:
            open_ = {id: left for id, shapes in open_.items() if (left := shapes - {t})}
    assert not open_


P1, P2, P3, P4 = (Predicate(f"P{n}") for n in range(1, 5))


def filled(order: EvaluationOrder, **subscriptions: tuple[Predicate, ...]) -> EvaluationOrder:
    for id, predicates in subscriptions.items():
        order.subscribe(PredicateConjunction(id, predicates))
    return order


def test_sequential_decides_as_in_figure_2() -> None:
    """S2 comes first; P2 is false, so S1 is decided, too; S3 is left, and needs only P4."""
    order = filled(Sequential(), S2=(P2, P3), S1=(P1, P2), S3=(P3, P4))
    decision = order.decide(lambda t: PredicateResult(t != P2))
    assert decision.evaluated == (P2, P3, P4)
    assert list(decision.matches) == ["S3"]


def test_the_naive_order_evaluates_discarded_subscriptions() -> None:
    naive = filled(orders(estimate)["naive"], S1=(P1,), S2=(P2, P1))
    assert naive.decide(lambda t: PredicateResult(t != P1)).evaluated == (P1, P2)
    assert (
        len(filled(Sequential(), S1=(P1,), S2=(P2, P1)).decide(lambda _: PredicateResult(False))[2])
        == 1
    )


def test_that_bindings_are_renamed_and_shared() -> None:
    asked = []

    def near(predicate: Predicate) -> PredicateResult:
        asked.append(predicate)
        return PredicateResult(True, [(1, 2), (2, 2), (1, 2)])

    order = Sequential()
    order.subscribe(PredicateConjunction("there", (Predicate("near", (X, Y)),)))
    order.subscribe(
        PredicateConjunction("back", (Predicate("near", (X, Y)), Predicate("near", (Y, X))))
    )
    assert order.decide(near).matches == {
        "there": ({"x": 1, "y": 2}, {"x": 2, "y": 2}),
        "back": ({"x": 2, "y": 2},),
    }
    assert len(asked) == 1


def test_ids_are_unique() -> None:
    order = filled(Sequential(), s=(P1,))
    with pytest.raises(DuplicateSubscriptionError):
        order.subscribe(PredicateConjunction("s", (P2,)))
    with pytest.raises(UnsupportedError, match="without predicates"):
        order.subscribe(PredicateConjunction("t", ()))
    with pytest.raises(UnknownSubscriptionError):
        order.unsubscribe("t")
    order.unsubscribe("s")
    assert not order.subscribers
    assert order.decide(lambda _: PredicateResult(True)) == ({}, frozenset(), ())
