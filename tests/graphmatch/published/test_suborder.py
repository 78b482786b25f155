"""Sub-Order: the savings of two chains, by enumeration; and the order of chains."""

from __future__ import annotations

from itertools import product
from random import Random

from graphmatch.bench.operators import MATCHING, OperatorWorkload, Setting, counts
from graphmatch.published.sequential import Predicate, PredicateConjunction, PredicateResult
from graphmatch.published.suborder import Chain, SubOrder

Estimates = dict[Predicate, tuple[float, float]]


def cost(estimates: Estimates, *order: Chain) -> float:
    """Return the cost of evaluating chains in this order (section 4.2.2), over all events."""
    total = 0.0
    for truths in product((True, False), repeat=len(estimates)):
        truth = dict(zip(estimates, truths, strict=True))
        probability = 1.0
        for t, (p, _) in estimates.items():
            probability *= p if truth[t] else 1 - p
        known: set[Predicate] = set()
        for one in order:
            if any(not truth[t] for t in one.nodes if t in known):
                continue
            for t in one.nodes:
                if t not in known:
                    known.add(t)
                    total += probability * estimates[t][1]
                    if not truth[t]:
                        break
    return total


def test_the_savings_of_pairs_by_enumeration() -> None:
    """Sections 4.2.3, 4.2.4 and 4.3: 400 pairs with up to five links, half of them with costs."""
    random = Random(1)
    linked = 0
    for number in range(400):
        count = random.randint(2, 7)
        estimates = {
            Predicate(str(t)): (
                random.choice([0.0, 1.0, *[random.random() for _ in range(8)]]),
                random.expovariate(1) if number % 2 else 1.0,
            )
            for t in range(count)
        }
        one, two = (
            chain(estimates, random.sample([*estimates], random.randint(1, min(5, count))))
            for _ in range(2)
        )
        linked += len(set(one.nodes) & set(two.nodes)) > 1
        saved = cost(estimates, two, one) - cost(estimates, one, two)
        assert abs(saved - saving(one, two)) < 1e-12
        assert abs(saving(one, two) + saving(two, one)) < 1e-12
    assert linked > 100


def saving(first: Chain, second: Chain) -> float:
    """Return the expected saving of evaluating a chain before another."""
    return sum(first.saving(second, t) for t in first.nodes if t in second.nodes)


def chain(estimates: Estimates, predicates: list[Predicate]) -> Chain:
    """Make a chain, sorted by c / (1 - p) from the top, then by name."""
    nodes = sorted(predicates, key=lambda t: (rank(*estimates[t]), t.operator))
    return Chain(tuple(nodes), *zip(*(estimates[t] for t in nodes), strict=True))


def rank(p: float, cost: float) -> float:
    return cost / (1 - p) if p < 1 else float("inf")


A, B, C, D = map(Predicate, "ABCD")


def suborder(estimates: Estimates, *subscriptions: tuple[Predicate, ...]) -> SubOrder:
    order = SubOrder(estimates.__getitem__)
    for number, predicates in enumerate(subscriptions):
        order.subscribe(PredicateConjunction(str(number), predicates))
    return order


def test_that_chains_do_not_cross() -> None:
    """A and B are false equally often; both chains have them in one order."""
    order = suborder({A: (0.5, 1), B: (0.5, 1)}, (A, B), (B, A))
    evaluated = {
        order.decide(lambda t, false=t: PredicateResult(t != false)).evaluated for t in (A, B)
    }
    assert evaluated == {(A,), (A, B)}


def test_the_better_of_two_orders() -> None:
    """The chain with C is above the other one's end: going first, it saves the path to it."""
    estimates = {A: (0.2, 1.0), B: (0.5, 1.0), C: (0.9, 1.0)}
    assert suborder(estimates, (A, B), (B, C)).order == ("1", "0")


def test_that_costs_decide_where_probabilities_do_not() -> None:
    """Above D, (B, D) costs three times as much as (A, D), so A goes first in any order."""
    estimates = {A: (0.5, 1.0), B: (0.5, 3.0), D: (0.9, 9.0)}
    assert suborder(estimates, (A, D), (B, D)).order == ("0", "1")
    assert suborder(estimates, (B, D), (A, D)).order == ("1", "0")
    cheap_first = suborder({A: (0.1, 100.0), B: (0.2, 1.0)}, (A, B))
    assert cheap_first.decide(lambda _: PredicateResult(False)).evaluated == (B,)


def test_that_every_chain_is_in_the_order_once() -> None:
    workload = OperatorWorkload(Setting(300, 40), "iid", seed=3)
    order = SubOrder(lambda t: ((int(t.operator) % 9) / 10, 1.0), partners=4)
    for number, held in enumerate(workload.subscriptions):
        order.subscribe(PredicateConjunction(str(number), tuple(Predicate(str(t)) for t in held)))
    assert sorted(order.order, key=int) == [str(number) for number in range(300)]
    order.unsubscribe("7")
    assert len(order.order) == 299


def test_the_workload() -> None:
    """Section 5.2: lengths, no repetitions, and the share of matches, in both models."""
    setting = Setting(3000, 500, 1.0, 7)
    for model in ("planted", "iid"):
        workload = OperatorWorkload(setting, model, seed=5)
        lengths = [len(held) for held in workload.subscriptions]
        assert (min(lengths), max(lengths)) == (3, 7)
        assert all(len(set(held)) == len(held) for held in workload.subscriptions)
        events = [workload.event() for _ in range(60)]
        matching = sum(e.issuperset(s) for e in events for s in workload.subscriptions)
        share = matching / (60 * 3000)
        # Other subscriptions match, too.
        assert MATCHING / 2 < share < (2 if model == "iid" else 10) * MATCHING


def test_that_sharing_evaluates_less() -> None:
    """No order is below the packing bound; the fixed Sub-Order is below Sequential and naive."""
    counted = counts(Setting(2000, 1000), "iid", events=5, seed=1)
    assert counted["bound"] <= min(counted.values())
    assert counted["greedy"] < counted["suborder"] < counted["sequential"] < 0.6 * counted["naive"]
