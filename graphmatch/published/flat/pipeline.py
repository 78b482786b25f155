"""In which order attributes are matched, and by which method: DEXIN's cost model and planners.

Fan, Liu, Tang (DEXIN), sections 3.4.2, 3.5 and 4.3. An event goes through attributes one after the
other. On each, the *exclusive* method walks over the constraints that do not hold, and the
*inclusive* method over the subscriptions that are left. Costs are parts of all subscriptions, and
attributes are taken to be independent of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from pyoxigraph import NamedNode

from graphmatch.published.flat.buckets import Values
from graphmatch.published.jit import kernel

SEARCHED = 22
"""The most attributes that `optimal` searches (the largest M in figure 15)."""


class Method(IntEnum):
    """How the subscriptions that do not match are found: the paper's d_k."""

    EXCLUSIVE = 0
    INCLUSIVE = 1


@dataclass(frozen=True, slots=True)
class Step:
    """One attribute's place in a plan.

    Parameters
    ----------
    rate
        What part of all subscriptions an event's value passes, as estimated.
    cost
        What the step is estimated to cost, as a part of all subscriptions.
    """

    attribute: NamedNode
    method: Method
    rate: float
    cost: float


Plan: TypeAlias = tuple[Step, ...]
"""The vectors Q and D, with what they were made from."""

Rates: TypeAlias = Mapping[NamedNode, float]
"""Attribute to its matching rate, from 0 to 1."""

Planner: TypeAlias = Callable[[Rates], Plan]


def price(rates: Rates, order: Iterable[NamedNode], methods: Iterable[Method]) -> Plan:
    """Return a plan with the cost of each step (formulas 4 and 5).

    Examples
    --------
    >>> p, q = NamedNode("urn:p"), NamedNode("urn:q")
    >>> plan = price({p: 0.25, q: 0.5}, [p, q], [Method.EXCLUSIVE, Method.INCLUSIVE])
    >>> [step.cost for step in plan]
    [0.75, 0.25]
    """
    plan, left = [], 1.0
    for attribute, method in zip(order, methods, strict=True):
        rate = rates[attribute]
        plan.append(Step(attribute, method, rate, 1 - rate if method is Method.EXCLUSIVE else left))
        left *= rate
    return tuple(plan)


def cost(plan: Plan) -> float:
    """Return mu, what a plan costs (formula 6)."""
    return sum(step.cost for step in plan)


def low_matching_rate_first_fit(rates: Rates) -> Plan:
    """Return a near-optimal plan in O(M log M) (algorithm 4).

    Attributes are in ascending order of their rates. The exclusive method is taken as long as it
    is cheaper than the inclusive one.

    Examples
    --------
    >>> p, q, r = (NamedNode(f"urn:{name}") for name in "pqr")
    >>> plan = low_matching_rate_first_fit({p: 0.5, q: 0.9, r: 0.6})
    >>> [(step.attribute.value, step.method.name) for step in plan]
    [('urn:p', 'EXCLUSIVE'), ('urn:r', 'EXCLUSIVE'), ('urn:q', 'EXCLUSIVE')]
    """
    order = _ascending(rates)
    methods = [Method.EXCLUSIVE for _ in order[:1]]
    left = 1.0
    for before, attribute in pairwise(order):
        left *= rates[before]
        cheaper = methods[-1] is Method.EXCLUSIVE and left > 1 - rates[attribute]
        methods.append(Method.EXCLUSIVE if cheaper else Method.INCLUSIVE)
    return price(rates, order, methods)


def optimal(rates: Rates) -> Plan:
    """Return the cheapest plan (section 4.3): a search through O(2^M).

    It is among those that keep to observations 1 to 3: the exclusive method comes first, and
    attributes of the inclusive one are in ascending order of their rates. With more than
    `SEARCHED` attributes the plan is that of `low_matching_rate_first_fit`.

    Examples
    --------
    >>> p, q = NamedNode("urn:p"), NamedNode("urn:q")
    >>> cost(optimal({p: 0.25, q: 0.5})), cost(optimal({}))
    (1.0, 0)
    """
    if not 0 < len(rates) <= SEARCHED:
        return low_matching_rate_first_fit(rates)
    order = _ascending(rates)
    chosen = _cheapest(np.array([rates[attribute] for attribute in order], np.float64))
    methods = [
        Method.EXCLUSIVE if chosen >> place & 1 else Method.INCLUSIVE for place in range(len(order))
    ]
    pipeline = sorted(zip(methods, order, strict=True), key=lambda step: step[0])
    return price(rates, [attribute for _, attribute in pipeline], sorted(methods))


def only_exclusive(rates: Rates) -> Plan:
    """Return the plan with the exclusive method alone (formula 8)."""
    return price(rates, _ascending(rates), [Method.EXCLUSIVE] * len(rates))


def only_inclusive(rates: Rates) -> Plan:
    """Return the cheapest plan with the inclusive method alone (formula 9)."""
    return price(rates, _ascending(rates), [Method.INCLUSIVE] * len(rates))


def _ascending(rates: Rates) -> Sequence[NamedNode]:
    return sorted(rates, key=rates.__getitem__)


@kernel
def _cheapest(rates: Values) -> int:
    """Return which attributes the exclusive method is best for, as bits; rates are ascending."""
    best, least = 0, np.inf
    for chosen in range(1, 1 << rates.size):
        total, left = 0.0, 1.0
        for place in range(rates.size):
            if chosen >> place & 1:
                total += 1 - rates[place]
                left *= rates[place]
        for place in range(rates.size):
            if not chosen >> place & 1:
                total += left
                left *= rates[place]
        if total < least:
            best, least = chosen, total
    return best
