"""Sequential: subscriptions over expensive operators, decided by few calls.

Liu, Parthasarathy, Ranganathan, Yang: "Scalable Event Matching for Overlapping Subscriptions in
Pub/Sub Systems", DEBS 2007, sections 2 to 4.1. A subscription is a set of predicates, each a call
of an operator on constants and variables, and value constraints on the variables (2.1). Calls are
expensive; joining their bindings and testing constraints are free (2.2). Equal predicates of
several subscriptions are evaluated once, and a false one discards all subscriptions with it (3).

`Sequential` picks any undecided subscription, and evaluates each of its predicates that an
undecided subscription has (Algorithm 1). `NaiveOrder` is the paper's baseline (5.2): subscriptions
one by one, each until a predicate is false, with cached results. Sub-Order is in `suborder`.

Cost: Sequential makes at most d times as many calls as any algorithm must, for subscriptions of at
most d predicates (Theorem 2); d · Cmax / Cmin times their cost (4.3). The rest is linear in the
predicates of all subscriptions.

Notes
-----
- Line 10 of Algorithm 1 is missing in print: t is evaluated there.
- Sequential goes on after a false predicate: it evaluates the others of q that another undecided
  subscription has.
- "Any" subscription is the earliest, and "any" predicate the first that was written.
- The paper has true and false. Here an operator may also return unknown. A subscription with an
  unknown predicate does not match if another is false, and stays open otherwise. So the order does
  not change the result.
- A predicate with variables is false if its operator returns true without bindings.
- In print, E also takes the predicates that are not evaluated, since line 15 stands outside of the
  test. `Decision.evaluated` has the evaluated ones.
- Renewing, validity and tickets (section 5.1) are not part of the order, and are left out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from graphmatch.matcher import (
    DuplicateSubscriptionError,
    UnknownSubscriptionError,
    UnsupportedError,
)

Bindings: TypeAlias = Mapping[str, Hashable]
"""The value of each variable of a subscription, by name."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable among a predicate's arguments."""

    name: str


class Predicate(NamedTuple):
    """A call of an operator on constants and variables.

    Examples
    --------
    >>> x, y, z = map(Variable, "xyz")
    >>> Predicate("near", (x, y)).shape == Predicate("near", (z, x)).shape
    True
    >>> Predicate("near", (x, y)).shape == Predicate("near", (x, x)).shape
    False
    """

    operator: str
    arguments: tuple[Hashable, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, distinct, in the order of the arguments."""
        return tuple(dict.fromkeys(a.name for a in self.arguments if isinstance(a, Variable)))

    @property
    def shape(self) -> Predicate:
        """The predicate with its variables numbered: equal if only names differ (section 3)."""
        number = {name: Variable(str(n)) for n, name in enumerate(self.variables)}
        arguments = (number[a.name] if isinstance(a, Variable) else a for a in self.arguments)
        return Predicate(self.operator, tuple(arguments))


@dataclass(frozen=True, slots=True)
class PredicateConjunction:
    """A subscription S(P, VC): predicates, and constraints on the values of their variables."""

    id: str
    predicates: tuple[Predicate, ...]
    constraints: tuple[Callable[[Bindings], bool], ...] = ()


class PredicateResult(NamedTuple):
    """The result of calling a predicate's operator.

    `truth` is ``None`` if it is unknown. If it is true, `bindings` are the values of
    `Predicate.variables` in each solution.
    """

    truth: bool | None
    bindings: Iterable[tuple[Hashable, ...]] = ()


Evaluate: TypeAlias = Callable[[Predicate], PredicateResult]
"""A function that calls the operator of a predicate, given as its `Predicate.shape`."""


class Decision(NamedTuple):
    """The result for an event: the subscriptions that match, with their solutions.

    A subscription in `open` has no false predicate, but an unknown one, so it is undecided.
    `evaluated` has the shapes of the evaluated predicates, in order.
    """

    matches: Mapping[str, tuple[Bindings, ...]]
    open: frozenset[str]
    evaluated: tuple[Predicate, ...]


class EvaluationOrder(ABC):
    """Base class of the algorithms: the subscriptions, and the order of evaluation (`run`).

    `predicates` has the distinct shapes T_q of each subscription q. `subscribers` has the
    subscriptions with each predicate. The paper's two hash tables (section 5.1) have only the
    undecided part of these, which is in `MatchState`.
    """

    def __init__(self) -> None:
        self.subscriptions: dict[str, PredicateConjunction] = {}
        self.predicates: dict[str, tuple[Predicate, ...]] = {}
        self.subscribers: dict[Predicate, dict[str, None]] = {}

    def subscribe(self, subscription: PredicateConjunction) -> None:
        """Add a subscription; raise `DuplicateSubscriptionError` if its id is taken."""
        id = subscription.id
        if id in self.subscriptions:
            raise DuplicateSubscriptionError(id)
        if not subscription.predicates:
            raise UnsupportedError(id, "a subscription without predicates")
        self.subscriptions[id] = subscription
        self.predicates[id] = tuple(dict.fromkeys(t.shape for t in subscription.predicates))
        for t in self.predicates[id]:
            self.subscribers.setdefault(t, {})[id] = None

    def unsubscribe(self, id: str) -> None:
        """Remove a subscription; raise `UnknownSubscriptionError` if the id is unknown."""
        if self.subscriptions.pop(id, None) is None:
            raise UnknownSubscriptionError(id)
        for t in self.predicates.pop(id):
            del self.subscribers[t][id]
            if not self.subscribers[t]:
                del self.subscribers[t]

    def decide(self, evaluate: Evaluate) -> Decision:
        """Return which subscriptions match an event; `evaluate` calls the operators."""
        matching = MatchState(self, evaluate)
        self.run(matching)
        return matching.decision()

    @abstractmethod
    def run(self, matching: MatchState) -> None:
        """Call `matching.evaluate` for predicates until all subscriptions are decided."""


class MatchState:
    """The state of matching one event.

    `undecided` is the set U of subscription ids. `known` has the results of evaluated shapes, which
    each subscription reads with its own variables.
    """

    def __init__(self, order: EvaluationOrder, evaluate: Evaluate) -> None:
        self.undecided = dict.fromkeys(order.subscriptions)
        self.known: dict[Predicate, PredicateResult] = {}
        self._order, self._evaluate = order, evaluate
        self._left = {q: len(shapes) for q, shapes in order.predicates.items()}

    def evaluate(self, t: Predicate) -> bool | None:
        """Evaluate a shape and store the result; return its truth, ``None`` if it is unknown.

        Remove from U each subscription that is now false or has no predicate left to evaluate.
        """
        truth, bindings = self._evaluate(t)
        rows = tuple(dict.fromkeys(bindings)) if t.variables else ((),)
        truth = truth and bool(rows)
        self.known[t] = PredicateResult(truth, rows)
        for q in self._order.subscribers[t]:
            self._left[q] -= 1
            if truth is False or not self._left[q]:
                self.undecided.pop(q, None)
        return truth

    def decision(self) -> Decision:
        """Return the decision: join the bindings of each subscription's shapes (section 2.2)."""
        matches, unknown = {}, set()
        for q, left in self._left.items():
            truths = set() if left else {self.known[t].truth for t in self._order.predicates[q]}
            if truths == {True} and (joined := self._join(self._order.subscriptions[q])):
                matches[q] = joined
            elif None in truths and False not in truths:
                unknown.add(q)
        return Decision(matches, frozenset(unknown), tuple(self.known))

    def _join(self, subscription: PredicateConjunction) -> tuple[Bindings, ...]:
        rows: list[dict[str, Hashable]] = [{}]
        for t in subscription.predicates:
            bound = [dict(zip(t.variables, b, strict=True)) for b in self.known[t.shape].bindings]
            rows = [
                row | more
                for row in rows
                for more in bound
                if all(row.get(name, value) == value for name, value in more.items())
            ]
        constraints = subscription.constraints
        return tuple(row for row in rows if all(test(row) for test in constraints))


class NaiveOrder(EvaluationOrder):
    """The paper's baseline: evaluate subscriptions one by one, until a predicate is false (5.2)."""

    def run(self, matching: MatchState) -> None:
        for shapes in self.predicates.values():
            for t in shapes:
                truth = matching.known[t].truth if t in matching.known else matching.evaluate(t)
                if truth is False:
                    break


class Sequential(EvaluationOrder):
    """Sequential (Liu et al. 2007): evaluate all open predicates of each undecided subscription.

    Examples
    --------
    >>> sequential = Sequential()
    >>> boat, near = Predicate("boats", (Variable("x"),)), Predicate("nearStatue")
    >>> sequential.subscribe(PredicateConjunction("many", (boat,), (lambda row: row["x"] > 3,)))
    >>> other = Predicate("boats", (Variable("n"),))
    >>> sequential.subscribe(PredicateConjunction("here", (other, near)))
    >>> says = {"boats": PredicateResult(True, [(5,)]), "nearStatue": PredicateResult(True)}
    >>> decision = sequential.decide(lambda predicate: says[predicate.operator])
    >>> decision.matches, len(decision.evaluated)
    ({'many': ({'x': 5},), 'here': ({'n': 5},)}, 2)
    """

    def run(self, matching: MatchState) -> None:
        """Evaluate predicates by Algorithm 1."""
        undecided = matching.undecided  # U
        done: set[Predicate] = set()  # E
        for q, shapes in self.predicates.items():
            if q not in undecided:
                continue
            for t in shapes:  # S, which is T_q without E
                if t in done:
                    continue
                if any(other in undecided for other in self.subscribers[t]):
                    matching.evaluate(t)
                done.add(t)
