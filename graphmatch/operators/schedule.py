"""In which order calls are made, so that few of them decide all candidates.

Of a publication's candidates each solution is a conjunction of tests, and a test is asked of a
call; calls are shared. A call that fails a test decides every solution that has it. The next call
is the one with the greatest ``(1 - p) · n / c``: how likely a test fails, how many undecided
solutions have it, what it costs. This is the greedy algorithm for pipelined set cover, within a
factor of 4 of the best order that is fixed before, and adaptive.

The ``n`` only become less, so a heap is kept lazily: what is taken from it is looked at again.
Cost: some microseconds for each test of each solution, all in all.

Source: Munagala, Srivastava, Motwani, Widom, "The pipelined set cover problem", ICDT 2005; Liu,
Parthasarathy, Ranganathan, Yang, DEBS 2007, for sharing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from threading import Lock
from typing import Any

_KEPT = 50_000
"""So many predicates are measured."""
_MEMORY = 64
"""An average forgets what was so many measurements ago."""
_PRIOR = 3.0
"""So many measurements of a predicate weigh as much as its operator's average."""


@dataclass(slots=True)
class Average:
    """Moving averages of what calls cost, and of how often they were true."""

    cost: float
    true: float = 0.5
    costs: float = 0
    truths: float = 0

    def time(self, seconds: float) -> None:
        """Learn what a call cost."""
        self.costs = min(self.costs + 1, _MEMORY)
        self.cost += (seconds - self.cost) / self.costs

    def note(self, truth: bool) -> None:
        """Learn what a test gave."""
        self.truths = min(self.truths + 1, _MEMORY)
        self.true += (truth - self.true) / self.truths


class Statistics:
    """Costs and selectivities, by operator and by predicate: an operator with constants.

    Threads may share one.
    """

    def __init__(self) -> None:
        self._operators: dict[str, Average] = {}
        self._predicates: OrderedDict[str, Average] = OrderedDict()
        self._lock = Lock()

    def expect(self, operator: str, cost: float) -> None:
        """Say what an operator's calls cost, as long as nothing was measured."""
        self._operators.setdefault(operator, Average(cost))

    def cost(self, operator: str, predicate: str) -> float:
        """Return the expected cost of a call, in seconds."""
        general = self._operators[operator]
        own = self._predicates.get(predicate)
        if own is None:
            return max(general.cost, 1e-7)
        cost = own.cost * own.costs + general.cost * _PRIOR
        return max(cost / (own.costs + _PRIOR), 1e-7)

    def true(self, operator: str, predicate: str) -> float:
        """Return how likely a test is passed."""
        general = self._operators[operator]
        usual = (general.true * general.truths + 0.5) / (general.truths + 1)
        own = self._predicates.get(predicate)
        if own is None:
            return usual
        return (own.true * own.truths + usual * _PRIOR) / (own.truths + _PRIOR)

    def time(self, operator: str, predicate: str, seconds: float) -> None:
        """Learn what a call took."""
        with self._lock:
            self._operators[operator].time(seconds)
            self._of(operator, predicate).time(seconds)

    def note(self, operator: str, predicate: str, truth: bool) -> None:
        """Learn what a test of a candidate gave."""
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
        """Return all as JSON has it."""
        with self._lock:
            return {
                "operators": {name: _numbers(one) for name, one in self._operators.items()},
                "predicates": {name: _numbers(one) for name, one in self._predicates.items()},
            }

    def read(self, said: Mapping[str, Any], operators: Iterable[str]) -> None:
        """Learn what was written, of these operators.

        Raises
        ------
        ValueError, TypeError, KeyError
            When it was somebody else who wrote it.
        """
        known = set(operators)
        for name, numbers in said["operators"].items():
            if name in known:
                self._operators[str(name)] = _average(numbers)
        for name, numbers in list(said["predicates"].items())[:_KEPT]:
            if name.split("\n", 1)[0] in known:
                self._predicates[str(name)] = _average(numbers)


def _numbers(one: Average) -> list[float]:
    return [one.cost, one.true, one.costs, one.truths]


def _average(numbers: Sequence[float]) -> Average:
    cost, true, costs, truths = map(float, numbers)
    if not (cost >= 0 and 0 <= true <= 1 and 0 <= costs <= _MEMORY and 0 <= truths <= _MEMORY):
        raise ValueError("measurements that are none")
    return Average(cost, true, costs, truths)


@dataclass(slots=True)
class Rows:
    """Solutions that wait for calls, as the core gives them.

    Parameters
    ----------
    calls
        How many calls there are.
    tests
        For each test its call.
    candidates
        For each solution its candidate.
    members
        For each its tests, a conjunction.
    once
        For each whether one solution is enough for its candidate.
    """

    calls: int
    tests: Sequence[int]
    candidates: Sequence[int]
    members: Sequence[Sequence[int]]
    once: Sequence[bool]


@dataclass(slots=True)
class Schedule:
    """The calls that are still worth making for one publication, the best first.

    Parameters
    ----------
    rows
        What waits.
    costs
        Of each call, in seconds.
    fails
        Of each test, how likely it fails.

    Examples
    --------
    Two solutions share call 0; when that fails, nothing else has to be called.

    >>> rows = Rows(3, [0, 1, 2], [0, 1], [[0, 1], [0, 2]], [False, False])
    >>> schedule = Schedule(rows, [1.0, 1.0, 1.0], [0.5, 0.6, 0.6])
    >>> schedule.take()
    [0]
    >>> schedule.decide(0, {0: False})
    >>> schedule.take()
    []
    """

    rows: Rows
    costs: Sequence[float]
    fails: Sequence[float]
    _gains: list[float] = field(init=False)
    _live: list[bool] = field(init=False)
    _left: list[int] = field(init=False)
    _of: list[list[tuple[int, int]]] = field(init=False)
    _made: list[bool] = field(init=False)
    _heap: list[tuple[float, int]] = field(init=False)
    _siblings: dict[int, list[int]] = field(init=False)
    _unknown: set[int] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        rows, tests, fails = self.rows, self.rows.tests, self.fails
        self._gains = [0.0] * rows.calls
        self._of = [[] for _ in range(rows.calls)]
        self._made = [False] * rows.calls
        self._live = [True] * len(rows.members)
        self._left = [len(members) for members in rows.members]
        self._siblings = {}
        gains, of = self._gains, self._of
        for row, members in enumerate(rows.members):
            for test in members:
                call = tests[test]
                gains[call] += fails[test]
                of[call].append((row, test))
            candidate = rows.candidates[row]
            if rows.once[row]:
                self._siblings.setdefault(candidate, []).append(row)
        self._heap = [(-gain / self.costs[call], call) for call, gain in enumerate(gains)]
        heapify(self._heap)

    def take(
        self, most: Callable[[int], int] = lambda _: 1, alike: Sequence[object] = ()
    ) -> list[int]:
        """Return the best call, and others of which none can make another needless.

        Parameters
        ----------
        most
            How many may be made together with a call.
        alike
            Of each call what has to be the same for those that are made together.
        """
        taken: list[int] = []
        aside: list[tuple[float, int]] = []
        touched: set[int] = set()
        heap, gains, size = self._heap, self._gains, 1
        while heap and len(taken) < size and len(aside) < 4 * size + 16:
            score, call = heappop(heap)
            if self._made[call]:
                continue
            now = -gains[call] / self.costs[call]
            if now > score + 1e-12 and heap and now > heap[0][0]:
                heappush(heap, (now, call))
                continue
            live = [row for row, _ in self._of[call] if self._live[row]]
            if not live:
                continue
            once = {~self.rows.candidates[row] for row in live if self.rows.once[row]}
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
        """Learn what the tests of a call gave; ``None`` where it is unknown."""
        self._made[call] = True
        for row, test in self._of[call]:
            if not self._live[row]:
                continue
            if passed[test] is False:
                self._drop(row)
                continue
            if passed[test] is None:
                self._unknown.add(row)  # another test may still fail
            self._left[row] -= 1
            if not self._left[row]:
                self._live[row] = False
                if row not in self._unknown:
                    for other in self._siblings.get(self.rows.candidates[row], ()):
                        self._drop(other)

    def _drop(self, row: int) -> None:
        if self._live[row]:
            self._live[row] = False
            for test in self.rows.members[row]:
                self._gains[self.rows.tests[test]] -= self.fails[test]

    def left(self) -> list[int]:
        """Return the calls that undecided solutions have, and that nobody made."""
        return [
            call
            for call, rows in enumerate(self._of)
            if not self._made[call] and any(self._live[row] for row, _ in rows)
        ]
