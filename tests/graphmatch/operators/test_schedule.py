"""How many calls an order makes, beside the algorithms of the paper."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import accumulate
from time import process_time

import pytest

from graphmatch.operators.schedule import Rows, Schedule, Statistics


def sequential(subscriptions: Sequence[Sequence[int]], truth: Sequence[bool]) -> list[int]:
    """Algorithm 1 of Liu et al. 2007: one undecided subscription after the other."""
    holders: dict[int, list[int]] = {}
    for q, predicates in enumerate(subscriptions):
        for t in predicates:
            holders.setdefault(t, []).append(q)
    undecided, left = set(range(len(subscriptions))), [len(set(s)) for s in subscriptions]
    known: list[int] = []
    done: set[int] = set()
    for q, predicates in enumerate(subscriptions):
        if q not in undecided:
            continue
        for t in predicates:
            if t in done:
                continue
            done.add(t)
            if any(other in undecided for other in holders[t]):
                known.append(t)
                for other in holders[t]:
                    left[other] -= 1
                    if not truth[t] or not left[other]:
                        undecided.discard(other)
    return known


class Workload:
    """Subscriptions of 3 to 5 predicates, drawn by popularity; each is true with a p of its own."""

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

    def event(self) -> list[bool]:
        return [self.rng.random() < p for p in self.p]

    def cost(self, calls: Sequence[int]) -> float:
        return sum(self.costs[call] for call in calls)

    def ours(self, truth: Sequence[bool]) -> list[int]:
        count, several = len(self.subscriptions), self.statistics
        every = list(range(self.predicates))
        rows = Rows(
            self.predicates,
            every,
            list(range(count)),
            [False] * count,
            self.subscriptions,
            [False] * count,
        )
        names = [f"o\n{n}" for n in every]
        costs = [several.cost("o", name) for name in names]
        schedule = Schedule(rows, costs, [1 - several.true("o", name) for name in names])
        made: list[int] = []
        while taken := schedule.take():
            [call] = taken
            made.append(call)
            schedule.decide(call, {call: truth[call]})
            several.time("o", names[call], self.costs[call])
            several.note("o", names[call], truth[call])
        known = {call: truth[call] for call in made}
        for predicates in self.subscriptions:  # everything is decided
            values = [known.get(t) for t in predicates]
            assert False in values or None not in values
        return made


def compared(
    other: Callable[[Workload, list[bool]], Sequence[int]], events: int, warm: int, **options: bool
) -> float:
    """The cost of our calls by that of another algorithm's; three seeds."""
    ours = theirs = 0.0
    for seed in (1, 2, 3):
        workload = Workload(2000, 1000, seed, **options)
        for number in range(warm + events):
            truth = workload.event()
            made = workload.ours(truth)
            if number >= warm:
                ours += workload.cost(made)
                theirs += workload.cost(other(workload, truth))
    return ours / theirs


def by_sequential(workload: Workload, truth: list[bool]) -> list[int]:
    return sequential(workload.subscriptions, truth)


@pytest.mark.parametrize(
    ("zipf", "lognormal", "most"),
    [(True, False, 0.85), (False, False, 0.85), (True, True, 0.6), (False, True, 0.6)],
)
def test_that_calls_cost_less_than_in_sequential_order(
    zipf: bool, lognormal: bool, most: float
) -> None:
    assert compared(by_sequential, 5, 10, zipf=zipf, lognormal=lognormal) <= most


def test_that_nothing_learnt_is_no_worse_than_sequential() -> None:
    assert compared(by_sequential, 3, 0, zipf=True, lognormal=False) <= 1


@pytest.mark.long
def test_that_calls_cost_less_than_in_sub_order() -> None:
    suborder = pytest.importorskip("graphmatch.published.suborder")
    from graphmatch.published.sequential import Outcome, Predicate, Subscription

    orders: dict[int, object] = {}

    def printed(workload: Workload, truth: list[bool]) -> list[int]:
        order = orders.get(id(workload))
        if order is None:
            order = suborder.SubOrderPrinted(
                lambda one: (workload.p[one.arguments[0]], workload.costs[one.arguments[0]])
            )
            for n, several in enumerate(workload.subscriptions):
                predicates = tuple(Predicate("o", (t,)) for t in several)
                order.subscribe(Subscription(str(n), predicates))
            orders[id(workload)] = order
        decision = order.decide(lambda one: Outcome(truth[one.arguments[0]]))
        return [one.arguments[0] for one in decision.evaluated]

    assert compared(printed, 10, 30, zipf=True, lognormal=False) <= 0.85


@pytest.mark.long
def test_that_80_000_subscriptions_are_ordered_in_little_time() -> None:
    workload = Workload(80_000, 40_000, 1, zipf=False)
    workload.ours(workload.event())
    truth = workload.event()
    begin = process_time()
    made = workload.ours(truth)
    seconds = process_time() - begin
    saved = len(sequential(workload.subscriptions, truth)) - len(made)
    assert seconds / saved < 1e-3


def test_that_calls_made_together_need_each_other_not() -> None:
    rng = random.Random(2)
    for _ in range(50):
        calls = 12
        members = [rng.sample(range(calls), rng.randint(1, 4)) for _ in range(15)]
        once = [rng.random() < 0.5 for _ in range(6)]
        candidates = [rng.randrange(6) for _ in members]
        rows = Rows(calls, list(range(calls)), candidates, [False] * 15, members, once)
        schedule = Schedule(rows, [1.0] * calls, [0.5] * calls)
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
