"""OpIndex: subscriptions by their rarest attribute, predicates by attribute and operator; counting.

Zhang, Chan, Tan: "An efficient publish/subscribe index for e-commerce databases", PVLDB 7(8), 2014;
here as Fan, Liu, Tang (DEXIN, section 1.1) describe it.

A constraint is one or two predicates: ``=``, or ``>=`` and ``<=``. The index has two levels:

1. Subscription partitioning: a subscription belongs to the partition of its *pivot*, which of its
   attributes is the least frequent one among subscriptions. An event looks only into the
   partitions of the attributes that it has.
2. Predicate partitioning: in a partition, the predicates of each attribute and operator are a list
   in order of their constants. What holds is one run of it: for ``=`` the equal constants, for
   ``>=`` all up to the event's value, for ``<=`` all from it on.

A counter array begins with how many predicates each subscription has; each predicate that holds
takes one off, and a subscription that is at zero matches.

Cost: O(predicates that hold, in the partitions of the event's attributes), and a bisection for each
list; an entry for each predicate. Fastest where events have few of many attributes. Compiled.

Notes
-----
- The original is not at hand. What stands above is from DEXIN, and from memory: that the pivot is
  the least frequent attribute, and that counters are counted down.
- The frequency of an attribute is how many conjunctions ask for it when a subscription comes; the
  first of several that are as rare is taken. Subscriptions do not move when frequencies change.
- From memory, the original hashes attributes to a few segments of each operator's list, with a
  signature that says which are empty, and equal predicates by attribute and constant (DEXIN: "two
  hash maps"). Here a dictionary has each pivot and attribute, so nothing collides, and ``=`` is
  found by bisection.
- ``>`` and ``<`` are ``>=`` and ``<=`` of the next double. An end that is infinite is no predicate;
  a constraint without ends is ``>= -infinity``, for the value has to be there.
- A list is put in order when the first event after new predicates reads it: subscribing appends,
  and that event takes as long as sorting does.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode

from graphmatch.published.base import RANGES, Event, FlatMatcher, Interval, Row, Tally
from graphmatch.published.flat.buckets import Buckets, Numbers, Places, Values
from graphmatch.published.jit import kernel, part
from semantic.ontology.ontology import Ontology

Counts: TypeAlias = NDArray[np.int32]

EQUAL, AT_LEAST, AT_MOST = 0, 1, 2
"""The operators: which of an attribute's lists has their predicates."""
OPERATORS = 3


class OpIndex(FlatMatcher):
    """The OpIndex.

    Attributes
    ----------
    partitions
        Pivot to attribute to the first of its lists, one for each operator.

    Examples
    --------
    >>> from graphmatch.subscription import SubscriptionParser
    >>> index = OpIndex(Ontology())
    >>> text = "SELECT ?e { ?e <urn:price> ?v FILTER(?v >= 100 && ?v < 400) }"
    >>> index.subscribe(SubscriptionParser().parse("s", text))
    >>> price = NamedNode("urn:price")
    >>> [list(index.matched(Event({}, {price: value}), Tally())) for value in (399.0, 400.0)]
    [[0], []]
    """

    capabilities: ClassVar = RANGES

    def __init__(self, ontology: Ontology) -> None:
        super().__init__(ontology)
        self.partitions: dict[NamedNode, dict[NamedNode, int]] = {}
        self._pivots: dict[int, NamedNode] = {}
        self._lists = Buckets(0)
        self._free_lists: list[int] = []
        self._unordered: set[int] = set()
        self._counts: Counts = np.zeros(64, np.int32)
        self._found: Numbers = np.zeros(64, np.int32)

    @property
    def nbytes(self) -> int:
        """How large the index is: its arrays, and some 64 bytes for each entry of a dictionary."""
        arrays = self._lists.nbytes + self._counts.nbytes + self._found.nbytes
        return arrays + 64 * (len(self._pivots) + sum(map(len, self.partitions.values())))

    def insert(self, number: int, row: Row) -> None:
        """Put each predicate into the partition of the row's pivot."""
        if number >= self._counts.size:
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
            self._found = np.zeros_like(self._counts)
        pivot = min(row, key=self.asked.__getitem__)
        self._pivots[number] = pivot
        partition = self.partitions.setdefault(pivot, {})
        predicates = _predicates(row)
        self._counts[number] = len(predicates)
        for attribute, operator, constant in predicates:
            first = partition.get(attribute)
            if first is None:
                first = partition[attribute] = self._new_lists()
            self._lists.append(first + operator, number, constant)
            self._unordered.add(first + operator)

    def remove(self, number: int, row: Row) -> None:
        """Take each predicate out; lists of which nothing is left are used again."""
        pivot = self._pivots.pop(number)
        partition = self.partitions[pivot]
        for attribute, operator, constant in _predicates(row):
            first = partition[attribute]
            self._lists.discard(first + operator, number, constant)
            if not self._lists.size[first : first + OPERATORS].any():
                self._unordered.difference_update(range(first, first + OPERATORS))
                self._free_lists.append(partition.pop(attribute))
        if not partition:
            del self.partitions[pivot]

    def matched(self, event: Event, tally: Tally) -> Iterable[int]:
        """Count the predicates that hold in the partitions of the event's attributes."""
        chosen: list[tuple[int, float]] = []
        tally.probes += len(event.numbers)
        for pivot in event.numbers:
            partition = self.partitions.get(pivot)
            if partition is None:
                continue
            tally.probes += len(event.numbers)
            pairs = ((partition.get(a), value) for a, value in event.numbers.items())
            chosen += ((first, value) for first, value in pairs if first is not None)
        if not chosen:
            return ()
        self._order(first + operator for first, _ in chosen for operator in range(OPERATORS))
        lists = self._lists
        matched, read, held = _count(
            (lists.begin, lists.size, lists.numbers, lists.values),
            np.array([first for first, _ in chosen]),
            np.array([value for _, value in chosen]),
            self._counts.copy(),
            self._found,
        )
        tally.gates += read
        tally.candidates += held
        found: list[int] = self._found[:matched].tolist()
        return found

    def _new_lists(self) -> int:
        if self._free_lists:
            return self._free_lists.pop()
        self._lists.extend(OPERATORS)
        return self._lists.size.size - OPERATORS

    def _order(self, lists: Iterable[int]) -> None:
        for number in self._unordered.intersection(lists):
            numbers, values = self._lists.of(number)
            order = np.argsort(values, kind="stable")
            numbers[:], values[:] = numbers[order], values[order]
            self._unordered.remove(number)


def _predicates(row: Row) -> list[tuple[NamedNode, int, float]]:
    """Return attribute, operator, and constant of each predicate."""
    found: list[tuple[NamedNode, int, float]] = []
    for attribute, constraint in row.items():
        assert isinstance(constraint, Interval)
        low, high = constraint
        if low == high:
            found.append((attribute, EQUAL, low))
            continue
        if low > -inf or high == inf:
            found.append((attribute, AT_LEAST, low))
        if high < inf:
            found.append((attribute, AT_MOST, high))
    return found


@kernel
def _count(
    lists: tuple[Places, Places, Numbers, Values],
    first: Places,
    event: Values,
    left: Counts,
    found: Numbers,
) -> tuple[int, int, int]:
    """Take one off for each predicate that holds; what is at zero then is found.

    Returns how many are found, how many lists were read, and how many predicates held.
    """
    begin, size, numbers, values = lists
    matched, read, held = 0, 0, 0
    for place in range(first.size):
        for operator in range(OPERATORS):
            number = first[place] + operator
            if size[number] == 0:
                continue
            start, end = begin[number], begin[number] + size[number]
            if operator != AT_LEAST:
                start = _bisect(values, start, end, event[place], False)
            if operator != AT_MOST:
                end = _bisect(values, start, end, event[place], True)
            read += 1
            held += end - start
            for at in range(start, end):
                subscription = numbers[at]
                left[subscription] -= 1
                if left[subscription] == 0:
                    found[matched] = subscription
                    matched += 1
    return matched, read, held


@part
def _bisect(values: Values, start: int, end: int, value: float, after: bool) -> int:
    """Return where a value would be in ascending order, before or after those equal to it."""
    while start < end:
        middle = (start + end) // 2
        if values[middle] < value or (after and values[middle] == value):
            start = middle + 1
        else:
            end = middle
    return start
