"""The number of evaluated expensive predicates: figures 4 to 8 of Sequential and Sub-Order.

Liu, Parthasarathy, Ranganathan, Yang, DEBS 2007, sections 5.2 and 5.3. The measure is the average
number of predicates that are evaluated for an event. The paper draws predicates for subscriptions
by popularity, and states that 0.2 % of the subscriptions match. It does not describe the events, so
there are two models:

- ``planted``: 0.2 % of the subscriptions are drawn. Their predicates are true, and no others.
- ``iid``: each predicate is true with one probability, at which 0.2 % of the subscriptions match.

The printed figures cannot be reproduced: docs/algorithms/suborder.md explains why. The printed
values are in experiments.toml, to be drawn next to the measured ones.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heapreplace
from typing import Literal, TypeAlias

import numpy as np

from graphmatch.bench.process import Row
from graphmatch.published.sequential import (
    EvaluationOrder,
    MatchState,
    NaiveOrder,
    Predicate,
    PredicateConjunction,
    PredicateResult,
    Sequential,
)
from graphmatch.published.suborder import Estimate, SubOrder

Model: TypeAlias = Literal["planted", "iid"]

MATCHING = 0.002
"""The share of subscriptions that match (table 1)."""
SHORTEST = 3
"""The minimum number of predicates of a subscription (table 1)."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A point of a figure (table 1).

    `alpha` is the exponent of Zipf's distribution of popularity, 0 for uniform weights in [0, 1].
    `longest` is the maximum number of predicates of a subscription.
    """

    subscriptions: int = 20_000
    predicates: int = 5_000
    alpha: float = 1.0
    longest: int = 5


class Greedy(EvaluationOrder):
    """The order that always evaluates the highest expected discard per cost: (1 - p) · n / c.

    n is the number of undecided subscriptions with the predicate. It is not in the paper; the
    engine orders operators like this.
    """

    def __init__(self, estimate: Estimate) -> None:
        super().__init__()
        self._estimate = estimate

    def run(self, matching: MatchState) -> None:
        """Evaluate predicates in this order until all subscriptions are decided.

        The entries of its heap may be out of date, because n only falls.
        """
        live = {t: len(ids) for t, ids in self.subscribers.items()}
        estimates = {t: self._estimate(t) for t in live}
        rate = {t: (1 - p) / cost for t, (p, cost) in estimates.items()}
        heap = [(-rate[t] * live[t], number, t) for number, t in enumerate(live)]
        heapify(heap)
        while matching.undecided:
            before, number, t = heap[0]
            now = -rate[t] * live[t]
            if now > before and live[t]:
                heapreplace(heap, (now, number, t))
                continue
            heappop(heap)
            if live[t]:
                undecided = [q for q in self.subscribers[t] if q in matching.undecided]
                matching.evaluate(t)
                for q in undecided:
                    if q not in matching.undecided:
                        for other in self.predicates[q]:
                            live[other] -= 1


class OperatorWorkload:
    """Subscriptions as lists of predicates, and events as sets of true predicates."""

    def __init__(self, setting: Setting, model: Model, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self._model = model
        self._predicates = setting.predicates
        weights = self._random.random(setting.predicates)
        if setting.alpha:
            weights[:] = np.arange(1.0, setting.predicates + 1) ** -setting.alpha
        lengths = self._random.integers(SHORTEST, setting.longest + 1, setting.subscriptions)
        self.subscriptions = self._drawn(weights, lengths)
        held = np.concatenate(self.subscriptions)
        self._held = np.bincount(held, minlength=setting.predicates).tolist()
        self._p = _probability(range(SHORTEST, setting.longest + 1))

    def _drawn(self, weights: np.ndarray, lengths: np.ndarray) -> list[list[int]]:
        """Draw the predicates of each subscription by weight; draw again if it already has one."""
        ends = np.cumsum(weights / weights.sum())[:-1]
        drawn = np.full((lengths.size, int(lengths.max())), -1)
        for place in range(drawn.shape[1]):
            left = np.flatnonzero(lengths > place)
            while left.size:
                new = np.searchsorted(ends, self._random.random(left.size), side="right")
                fresh = (drawn[left, :place] != new[:, None]).all(axis=1)
                drawn[left[fresh], place] = new[fresh]
                left = left[~fresh]
        return [row[:length].tolist() for row, length in zip(drawn, lengths, strict=True)]

    def estimate(self, predicate: Predicate) -> tuple[float, float]:
        """Return the probability that a predicate is true, and its cost, 1."""
        if self._model == "iid":
            return self._p, 1.0
        return 1 - (1 - MATCHING) ** self._held[int(predicate.operator)], 1.0

    def event(self) -> frozenset[int]:
        """Draw an event, and return its true predicates."""
        if self._model == "iid":
            true = np.flatnonzero(self._random.random(self._predicates) < self._p)
            return frozenset(true.tolist())
        count = len(self.subscriptions)
        planted = self._random.choice(count, max(1, round(MATCHING * count)), replace=False)
        return frozenset(t for number in planted for t in self.subscriptions[number])


def _probability(lengths: Sequence[int]) -> float:
    """Return the probability of a predicate at which `MATCHING` of the subscriptions match.

    `lengths` are their numbers of predicates, equally frequent.
    """
    polynomial = np.zeros(max(lengths) + 1)
    polynomial[[0, *lengths]] = [-MATCHING * len(lengths), *(1 for _ in lengths)]
    roots = np.roots(polynomial[::-1])
    return float(roots[np.isreal(roots) & (roots.real > 0)].real[0])  # the only one


def orders(estimate: Estimate) -> dict[str, EvaluationOrder]:
    """Return the measured orders, by their names in figures."""
    return {
        "naive": NaiveOrder(),
        "sequential": Sequential(),
        "suborder": SubOrder(estimate),
        "greedy": Greedy(estimate),
    }


def packing_bound(subscriptions: Sequence[Sequence[int]], true: frozenset[int]) -> int:
    """Return a lower bound of the predicates that any algorithm must evaluate.

    These are all predicates of matching subscriptions, and one false predicate of each other
    subscription. The latter are different predicates for subscriptions that share no false
    predicate. Such subscriptions are packed greedily, least sharing first.
    """
    false = [[t for t in held if t not in true] for held in subscriptions]
    needed = {t for held, none in zip(subscriptions, false, strict=True) if not none for t in held}
    holders = Counter(t for held in false for t in held)
    used: set[int] = set()
    apart = 0
    for held in sorted(filter(None, false), key=lambda held: sum(holders[t] for t in held)):
        if used.isdisjoint(held):
            used.update(held)
            apart += 1
    return len(needed) + apart


def counts(setting: Setting, model: Model, *, events: int = 10, seed: int = 0) -> dict[str, float]:
    """Return how many predicates each order evaluates per event on average, and the packing bound.

    Raise `ValueError` if an order finds other matches than the one before.
    """
    workload = OperatorWorkload(setting, model, seed)
    drawn = [workload.event() for _ in range(events)]
    counted = {"bound": sum(packing_bound(workload.subscriptions, e) for e in drawn) / events}
    predicates = [Predicate(str(number)) for number in range(setting.predicates)]
    matched: list[set[str]] = []
    for name, order in orders(workload.estimate).items():
        for number, held in enumerate(workload.subscriptions):
            order.subscribe(PredicateConjunction(str(number), tuple(predicates[t] for t in held)))
        decided = [order.decide(partial(_outcome, true)) for true in drawn]
        found = [set(decision.matches) for decision in decided]
        if matched and found != matched:
            raise ValueError(f"{name} finds other matches")
        matched = found
        counted[name] = sum(len(decision.evaluated) for decision in decided) / events
    return counted


def measure(request: str) -> Row:
    """Return the rows for a request of `graphmatch.bench.runner.asked`: counted evaluations."""
    _, columns, (subscriptions, events, seed), more = json.loads(request)
    given = dict(more["parameters"])
    model = given.pop("model")
    setting = Setting(**{"subscriptions": subscriptions, **given})
    counted = counts(setting, model, events=events, seed=seed)
    matching = max(1, round(MATCHING * setting.subscriptions))
    row: Row = {"agrees": True, "matches_per_event": matching}
    return {"rows": [{"column": c, "counters": {"evaluated": counted[c]}, **row} for c in columns]}


def _outcome(true: frozenset[int], predicate: Predicate) -> PredicateResult:
    return PredicateResult(int(predicate.operator) in true)
