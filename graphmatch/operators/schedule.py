"""The order of calls, chosen so that few calls decide all candidates.

Each solution of a candidate is a conjunction of tests of calls. Solutions share calls. A failed
test rejects every solution with this test. The next call is the one with the greatest
``(1 - p) · n / c``. Here ``1 - p`` is the probability that the test fails, ``n`` the number of
undecided solutions with the test, and ``c`` the cost of the call. This is the greedy algorithm for
pipelined set cover. It is adaptive, and within a factor of 4 of the best fixed order.

``n`` only decreases, so the heap is lazy: the score of its top is computed again before use. Cost:
a few microseconds per test of a solution.

Source: Munagala, Srivastava, Motwani, Widom, "The pipelined set cover problem", ICDT 2005; Liu,
Parthasarathy, Ranganathan, Yang, DEBS 2007, for sharing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from heapq import heapify, heappop, heappush
from threading import Lock
from typing import Any, TypeAlias

_KEPT = 50_000
"""Maximum number of measured predicates."""
_MEMORY = 64
"""Number of measurements that a moving average covers."""
_PRIOR = 3.0
"""Weight of the operator's average, in measurements of a predicate."""


@dataclass(slots=True)
class Average:
    """Moving averages of the cost of calls (`cost`) and of the share of passed tests (`true`).

    `costs` and `truths` are the numbers of measurements that they cover.
    """

    cost: float
    true: float = 0.5
    costs: float = 0
    truths: float = 0

    def time(self, seconds: float) -> None:
        """Update the average cost with a call of some seconds."""
        self.costs = min(self.costs + 1, _MEMORY)
        self.cost += (seconds - self.cost) / self.costs

    def note(self, truth: bool) -> None:
        """Update the share of passed tests with the result of a test."""
        self.truths = min(self.truths + 1, _MEMORY)
        self.true += (truth - self.true) / self.truths


class Statistics:
    """Costs and selectivities by operator and by predicate (operator, constants and comparison).

    Several threads may use it.
    """

    def __init__(self) -> None:
        self._operators: dict[str, Average] = {}
        self._predicates: OrderedDict[str, Average] = OrderedDict()
        self._lock = Lock()

    def expect(self, operator: str, cost: float) -> None:
        """Set the expected seconds per call of an operator; the first measured call replaces it."""
        self._operators.setdefault(operator, Average(cost))

    def cost(self, operator: str, predicate: str) -> float:
        """Return the expected cost of a call for this predicate, in seconds."""
        general = self._operators[operator]
        own = self._predicates.get(predicate)
        if own is None:
            return max(general.cost, 1e-7)
        cost = own.cost * own.costs + general.cost * _PRIOR
        return max(cost / (own.costs + _PRIOR), 1e-7)

    def true(self, operator: str, predicate: str) -> float:
        """Return the expected probability that a test of this predicate is passed."""
        general = self._operators[operator]
        usual = (general.true * general.truths + 0.5) / (general.truths + 1)
        own = self._predicates.get(predicate)
        if own is None:
            return usual
        return (own.true * own.truths + usual * _PRIOR) / (own.truths + _PRIOR)

    def time(self, operator: str, predicate: str, seconds: float) -> None:
        """Add the seconds of a call to the averages of the operator and of the predicate."""
        with self._lock:
            self._operators[operator].time(seconds)
            self._of(operator, predicate).time(seconds)

    def note(self, operator: str, predicate: str, truth: bool) -> None:
        """Add the result of a test to the averages of the operator and of the predicate."""
        with self._lock:
            self._operators[operator].note(truth)
            self._of(operator, predicate).note(truth)

    def _of(self, operator: str, predicate: str) -> Average:
        found = self._predicates.get(predicate)
        if found is None:
            general = self._operators[operator]
            found = self._predicates[predicate] = Average(general.cost, general.true)
            if len(self._predicates) > _KEPT:
                self._predicates.popitem(last=False)
        return found

    def written(self) -> dict[str, Any]:
        """Return all averages as JSON values, for `read`."""
        with self._lock:
            return {
                "operators": {name: astuple(one) for name, one in self._operators.items()},
                "predicates": {name: astuple(one) for name, one in self._predicates.items()},
            }

    def read(self, said: Mapping[str, Any], operators: Iterable[str]) -> None:
        """Load the averages of `operators` from the result of `written`; skip other operators.

        Raises
        ------
        ValueError, TypeError, KeyError
            If they are damaged.
        """
        known = set(operators)
        for name, numbers in said["operators"].items():
            if name in known:
                self._operators[str(name)] = _average(numbers)
        for name, numbers in list(said["predicates"].items())[:_KEPT]:
            if name.split("\n", 1)[0] in known:
                self._predicates[str(name)] = _average(numbers)


def _average(numbers: Sequence[float]) -> Average:
    cost, true, costs, truths = map(float, numbers)
    if not (cost >= 0 and 0 <= true <= 1 and 0 <= costs <= _MEMORY and 0 <= truths <= _MEMORY):
        raise ValueError("invalid measurements")
    return Average(cost, true, costs, truths)


Solution: TypeAlias = tuple[int, Sequence[int], bool]
"""A solution: its candidate, its tests, and whether the candidate needs only one solution."""


class Schedule:
    """The calls of one publication that can still decide a candidate, the best first.

    Calls, tests, candidates and solutions have numbers.

    Parameters
    ----------
    costs
        The cost of each call, in seconds.
    tests
        The call that each test needs.
    fails
        The probability that a test fails, for each test.
    rows
        The solutions, each a conjunction of tests.

    Examples
    --------
    Two solutions share call 0. If it fails, no other call is needed.

    >>> rows = [(0, [0, 1], False), (1, [0, 2], False)]
    >>> schedule = Schedule([1.0, 1.0, 1.0], [0, 1, 2], [0.5, 0.6, 0.6], rows)
    >>> schedule.take()
    [0]
    >>> schedule.decide(0, {0: False})
    >>> schedule.take()
    []
    """

    def __init__(
        self,
        costs: Sequence[float],
        tests: Sequence[int],
        fails: Sequence[float],
        rows: Sequence[Solution],
    ) -> None:
        self._costs, self._tests, self._fails, self._rows = costs, tests, fails, rows
        self._gains = [0.0] * len(costs)
        self._of: list[list[tuple[int, int]]] = [[] for _ in costs]
        self._made = [False] * len(costs)
        self._live = [True] * len(rows)
        self._left = [len(members) for _, members, _ in rows]
        self._siblings: dict[int, list[int]] = {}
        self._unknown: set[int] = set()
        for row, (candidate, members, once) in enumerate(rows):
            for test in members:
                self._gains[tests[test]] += fails[test]
                self._of[tests[test]].append((row, test))
            if once:
                self._siblings.setdefault(candidate, []).append(row)
        self._heap = [(-gain / costs[call], call) for call, gain in enumerate(self._gains)]
        heapify(self._heap)

    def take(
        self, most: Callable[[int], int] = lambda _: 1, alike: Sequence[object] = ()
    ) -> list[int]:
        """Return the best call, and others to make together with it; empty if no call is needed.

        No result of one of these calls can make another one needless.

        Parameters
        ----------
        most
            Returns the maximum number of calls to make together, by the best call.
        alike
            A value for each call. Only calls with equal values are made together.
        """
        taken: list[int] = []
        aside: list[tuple[float, int]] = []
        touched: set[int] = set()
        heap, gains, size = self._heap, self._gains, 1
        while heap and len(taken) < size and len(aside) < 4 * size + 16:
            score, call = heappop(heap)
            if self._made[call]:
                continue
            now = -gains[call] / self._costs[call]
            if now > score + 1e-12 and heap and now > heap[0][0]:
                heappush(heap, (now, call))
                continue
            live = [row for row, _ in self._of[call] if self._live[row]]
            if not live:
                continue
            once = {~self._rows[row][0] for row in live if self._rows[row][2]}
            is_apart = touched.isdisjoint(live) and touched.isdisjoint(once)
            if taken and not (is_apart and alike[call] == alike[taken[0]]):
                aside.append((now, call))
                continue
            size = most(taken[0] if taken else call)
            touched.update(live)
            touched.update(once)
            taken.append(call)
        for one in aside:
            heappush(heap, one)
        return taken

    def decide(self, call: int, passed: Mapping[int, bool | None]) -> None:
        """Record the result of each test of a call; ``None`` if the call failed.

        Drop the solutions that are decided, so that calls for them alone are no longer returned.
        """
        self._made[call] = True
        for row, test in self._of[call]:
            if not self._live[row]:
                continue
            if passed[test] is False:
                self._drop(row)
                continue
            if passed[test] is None:
                self._unknown.add(row)  # Another test may still fail.
            self._left[row] -= 1
            if not self._left[row]:
                self._live[row] = False
                if row not in self._unknown:
                    for other in self._siblings.get(self._rows[row][0], ()):
                        self._drop(other)

    def _drop(self, row: int) -> None:
        if self._live[row]:
            self._live[row] = False
            for test in self._rows[row][1]:
                self._gains[self._tests[test]] -= self._fails[test]

    def left(self) -> list[int]:
        """Return the calls that undecided solutions still need."""
        return [
            call
            for call, rows in enumerate(self._of)
            if not self._made[call] and any(self._live[row] for row, _ in rows)
        ]
