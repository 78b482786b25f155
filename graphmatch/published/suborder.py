"""Sub-Order: chains of expensive predicates, in an order that shares the most.

Liu, Parthasarathy, Ranganathan, Yang: "Scalable Event Matching for Overlapping Subscriptions in
Pub/Sub Systems", DEBS 2007, sections 4.2 and 4.3. Each subscription is a chain of its predicates,
those that are false most often at the top; equal predicates of several chains are linked (4.2.1).
An event is matched chain by chain, each from top to bottom until a node is false. Results are
passed along the links, and a false node removes its linked chains (4.2.2). The expected saving of
each order of a pair decides which chain goes first (4.2.4).

Cost of ordering: O(nodes · partners) for chains of bounded length, at the first event after a
change. Matching makes at most d times as many calls as any algorithm must, as in Sequential.

Notes
-----
Corrected:

- 4.2.1 has "decreasing" selectivity from the top, 4.2 "increasing". Low probability first is meant.
  Equally probable predicates stay in order of arrival, so that chains never cross (4.2.4).
- The test P/C divides by zero if the shared node is on top. The difference that it stands for is
  used instead.
- k links: P is not defined. It is the product over all nodes above, shared ones included. C' leaves
  shared nodes out of the sum and of its products. This is exact; tests check it by enumeration.
- Costs (4.3): the paper multiplies the probability by the cost. Here each summand of C is weighted
  with the cost of its node, which is exact, and chains are ordered by c / (1 - p).
- The paper calls the order of chains (4.2.5) a travelling salesman problem, and adds the edges with
  the least savings first. But savings count for all pairs, not only for neighbours: it is linear
  ordering. Here each chain's worth is the sum of its savings before each linked chain. Greatest
  worth comes first.
- The complete graph of 80,000 chains has 3.2 · 10⁹ edges. Pairs without links have weight 0, and
  are not made. If many chains have a predicate, each chain is compared with the next `partners`
  chains and the same number before it. In the sum these stand for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

from graphmatch.published.sequential import (
    EvaluationOrder,
    MatchState,
    Predicate,
    PredicateConjunction,
)

Estimate: TypeAlias = Callable[[Predicate], tuple[float, float]]
"""A function that returns the probability (0 to 1) of a predicate, and the cost of a call."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A subscription's predicates from top to bottom.

    `p` and `cost` have, for each node, the probability that it is true and the cost of a call.
    """

    nodes: tuple[Predicate, ...]
    p: tuple[float, ...]
    cost: tuple[float, ...]

    def above(self, node: Predicate, other: Chain) -> tuple[float, float]:
        """Return P and C' of a node: the probability and the cost of reaching it.

        C' leaves out the nodes that the other chain shares.
        """
        reached, alone, cost = 1.0, 1.0, 0.0
        for t, p, c in zip(self.nodes, self.p, self.cost, strict=True):
            if t == node:
                break
            reached *= p
            if t not in other.nodes:
                cost += c * alone
                alone *= p
        return reached, cost

    def saving(self, other: Chain, node: Predicate) -> float:
        """Return how much the link at `node` saves if this chain goes before `other` (4.2.4).

        The sum over all links is C2 - C1: the expected cost of both with the other first, minus
        that with this one first.
        """
        p = self.p[self.nodes.index(node)]
        reached, cost = self.above(node, other)
        others_reached, others_cost = other.above(node, self)
        return (1 - p) * (reached * others_cost - others_reached * cost)


class SubOrder(EvaluationOrder):
    """Sub-Order (Liu et al. 2007), corrected: evaluate chains in the order that saves most calls.

    `estimate` gives each predicate's probability and cost. Each chain with a predicate is compared
    with `partners` others on either side. 4 partners give as few evaluations as all
    (docs/algorithms/suborder.md).

    Examples
    --------
    >>> from graphmatch.published.sequential import PredicateResult
    >>> boats, near, crowd = map(Predicate, ("boats", "near", "crowd"))
    >>> often = {boats: 0.2, near: 0.5, crowd: 0.9}
    >>> order = SubOrder(lambda predicate: (often[predicate], 1.0))
    >>> order.subscribe(PredicateConjunction("first", (boats, near)))
    >>> order.subscribe(PredicateConjunction("second", (crowd, near)))
    >>> order.order
    ('second', 'first')
    >>> decision = order.decide(lambda predicate: PredicateResult(predicate == crowd))
    >>> [predicate.operator for predicate in decision.evaluated]
    ['near']
    """

    def __init__(self, estimate: Estimate, *, partners: int = 4) -> None:
        super().__init__()
        self._estimate, self._partners = estimate, partners
        self._arranged: tuple[str, ...] | None = None
        self._chains: dict[str, Chain] = {}
        self._number: dict[Predicate, int] = {}

    def subscribe(self, subscription: PredicateConjunction) -> None:
        super().subscribe(subscription)
        self._arranged = None

    def unsubscribe(self, id: str) -> None:
        super().unsubscribe(id)
        self._arranged = None

    @property
    def order(self) -> tuple[str, ...]:
        """The ids of the subscriptions in evaluation order, computed again after a change."""
        if self._arranged is None:
            self._number = {t: number for number, t in enumerate(self.subscribers)}
            self._chains = {q: self.chain(shapes) for q, shapes in self.predicates.items()}
            self._arranged = self.arrange()
        return self._arranged

    def run(self, matching: MatchState) -> None:
        """Evaluate the undecided chains in `order`, each until a node is false (section 4.2.2)."""
        for q in self.order:
            if q not in matching.undecided:
                continue
            for t in self._chains[q].nodes:
                if t not in matching.known and matching.evaluate(t) is False:
                    break

    def chain(self, shapes: tuple[Predicate, ...]) -> Chain:
        """Return the chain of a subscription's predicates, in ascending order of c / (1 - p)."""
        given = {t: self._estimate(t) for t in shapes}

        def rank(t: Predicate) -> tuple[float, int]:
            p, cost = given[t]
            return cost / (1 - p) if p < 1 else inf, self._number[t]

        nodes = tuple(sorted(shapes, key=rank))
        return Chain(nodes, tuple(given[t][0] for t in nodes), tuple(given[t][1] for t in nodes))

    def arrange(self) -> tuple[str, ...]:
        """Return the subscription ids by the sum of their chain's savings, greatest first."""
        worth = dict.fromkeys(self._chains, 0.0)
        for t, u, v, stands_for in self._linked():
            saved = stands_for * self._chains[u].saving(self._chains[v], t)
            worth[u] += saved
            worth[v] -= saved
        return tuple(sorted(worth, key=lambda q: -worth[q]))

    def _linked(self) -> Iterator[tuple[Predicate, str, str, float]]:
        """Yield the links to compare: the predicate, both subscriptions, and a weight.

        The chains with a predicate form a circle, and each is linked to the next `partners` ones.
        The weight is the number of links that a link stands for. If there are few chains, all pairs
        are linked, with weight 1.
        """
        for t, held in self.subscribers.items():
            ids = list(held)
            all_, some = (len(ids) - 1) / 2, self._partners
            if all_ <= some:
                yield from ((t, u, v, 1.0) for n, u in enumerate(ids) for v in ids[n + 1 :])
                continue
            for n, u in enumerate(ids):
                for distance in range(1, some + 1):
                    yield t, u, ids[(n + distance) % len(ids)], all_ / some
