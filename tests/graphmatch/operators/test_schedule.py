"""The number of calls in the engine's order, compared with the paper's algorithms."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate
from time import process_time

import pytest

from graphmatch.operators.schedule import Schedule, Statistics
from graphmatch.published.sequential import (
    EvaluationOrder,
    Predicate,
    PredicateConjunction,
    PredicateResult,
    Sequential,
)
from graphmatch.published.suborder import SubOrder


class Workload:
    """Subscriptions of 3 to 5 predicates, drawn by popularity; each predicate has its own p."""

    def __init__(
        self, subscriptions: int, predicates: int, seed: int, *, zipf: bool, lognormal: bool = False
    ) -> None:
        self.rng = rng = random.Random(seed)
        weights = [1 / (n + 1) if zipf else rng.random() for n in range(predicates)]
        self.predicates, all_ = predicates, range(predicates)
        cumulated = list(accumulate(weights))
        self.subscriptions: list[list[int]] = []
        for _ in range(subscriptions):
            drawn: dict[int, None] = {}
            length = rng.randint(3, 5)
            while len(drawn) < length:
                drawn[rng.choices(all_, cum_weights=cumulated)[0]] = None
            self.subscriptions.append(list(drawn))
        self.p = [rng.uniform(0, 0.4) for _ in all_]
        self.costs = [rng.lognormvariate(0, 1.5) if lognormal else 1.0 for _ in all_]
        self.statistics = Statistics()
        self.statistics.expect("o", 1.0)
        self._orders: dict[str, EvaluationOrder] = {}

    def event(self) -> list[bool]:
        return [self.rng.random() < p for p in self.p]

    def cost(self, calls: Sequence[int]) -> float:
        return sum(self.costs[call] for call in calls)

    def ours(self, truth: Sequence[bool]) -> list[int]:
        several, every = self.statistics, list(range(self.predicates))
        rows = [(number, tests, False) for number, tests in enumerate(self.subscriptions)]
        names = [f"o\n{n}" for n in every]
        costs = [several.cost("o", name) for name in names]
        fails = [1 - several.true("o", name) for name in names]
        schedule = Schedule(costs, every, fails, rows)
        made: list[int] = []
        while taken := schedule.take():
            [call] = taken
            made.append(call)
            schedule.decide(call, {call: truth[call]})
            several.time("o", names[call], self.costs[call])
            several.note("o", names[call], truth[call])
        known = {call: truth[call] for call in made}
        for predicates in self.subscriptions:  # All subscriptions are decided.
            values = [known.get(t) for t in predicates]
            assert False in values or None not in values
        return made

    def published(self, name: str, truth: Sequence[bool]) -> list[int]:
        """Return the calls of a paper's algorithm; Sub-Order gets each p and cost."""
        if name not in self._orders:
            order = Sequential() if name == "sequential" else SubOrder(self._estimate)
            self._orders[name] = order
            for number, several in enumerate(self.subscriptions):
                predicates = tuple(Predicate(str(t)) for t in several)
                order.subscribe(PredicateConjunction(str(number), predicates))
        decision = self._orders[name].decide(lambda t: PredicateResult(truth[int(t.operator)]))
        return [int(t.operator) for t in decision.evaluated]

    def _estimate(self, predicate: Predicate) -> tuple[float, float]:
        t = int(predicate.operator)
        return self.p[t], self.costs[t]


def compared(other: str, events: int, warm: int, **options: bool) -> float:
    """Return the engine's cost divided by that of a paper's algorithm, over three seeds."""
    ours = theirs = 0.0
    for seed in (1, 2, 3):
        workload = Workload(2000, 1000, seed, **options)
        for number in range(warm + events):
            truth = workload.event()
            made = workload.ours(truth)
            if number >= warm:
                ours += workload.cost(made)
                theirs += workload.cost(workload.published(other, truth))
    return ours / theirs


@pytest.mark.parametrize(
    ("zipf", "lognormal", "most"),
    [(True, False, 0.85), (False, False, 0.85), (True, True, 0.6), (False, True, 0.6)],
)
def test_that_calls_cost_less_than_in_sequential_order(
    zipf: bool, lognormal: bool, most: float
) -> None:
    assert compared("sequential", 5, 10, zipf=zipf, lognormal=lognormal) <= most


def test_without_estimates_the_order_costs_at_most_the_sequential_one() -> None:
    assert compared("sequential", 3, 0, zipf=True, lognormal=False) <= 1


@pytest.mark.long
def test_that_calls_cost_less_than_in_sub_order() -> None:
    assert compared("suborder", 10, 30, zipf=True, lognormal=False) <= 0.95


@pytest.mark.long
def test_that_80_000_subscriptions_are_ordered_in_little_time() -> None:
    workload = Workload(80_000, 40_000, 1, zipf=False)
    workload.ours(workload.event())
    truth = workload.event()
    begin = process_time()
    made = workload.ours(truth)
    seconds = process_time() - begin
    saved = len(workload.published("sequential", truth)) - len(made)
    assert seconds / saved < 1e-3


def test_that_calls_made_together_need_each_other_not() -> None:
    rng = random.Random(2)
    for _ in range(50):
        calls = 12
        members = [rng.sample(range(calls), rng.randint(1, 4)) for _ in range(15)]
        once = [rng.random() < 0.5 for _ in range(6)]
        candidates = [rng.randrange(6) for _ in members]
        rows = [(c, row, once[c]) for c, row in zip(candidates, members, strict=True)]
        schedule = Schedule([1.0] * calls, range(calls), [0.5] * calls, rows)
        truth = [rng.choice([True, False, None]) for _ in range(calls)]
        made: set[int] = set()
        while taken := schedule.take(lambda _: 4, [n % 2 for n in range(calls)]):
            assert len({call % 2 for call in taken}) == 1
            assert made.isdisjoint(taken)
            for row in members:
                assert (
                    len(set(row) & set(taken)) <= 1
                    or any(truth[t] is False for t in set(row) & made)
                    or any(once)
                )
            for call in taken:
                schedule.decide(call, {call: truth[call]})
            made.update(taken)
        assert schedule.left() == []
        for number, row in enumerate(members):
            values = [truth[t] for t in row if t in made]
            mates = [m for m, c in zip(members, candidates, strict=True) if c == candidates[number]]
            settled = once[candidates[number]] and any(
                all(t in made and truth[t] for t in mate) for mate in mates
            )
            assert settled or False in values or set(row) <= made
