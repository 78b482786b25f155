"""OpIndex: subscriptions by their rarest attribute, predicates by attribute and operator; counting.

Zhang, Chan, Tan: "An efficient publish/subscribe index for e-commerce databases", PVLDB 7(8), 2014;
reconstructed from Fan, Liu, Tang (DEXIN, section 1.1), and from memory: that the pivot is the least
frequent attribute, and that counters are counted down.

A constraint is one or two predicates: ``=``, or ``>=`` and ``<=``. The index has two levels:

1. Subscription partitioning: a subscription belongs to the partition of its *pivot*, the attribute
   that is least frequent among subscriptions. An event reads only the partitions of its attributes.
2. Predicate partitioning: in a partition, the predicates of each attribute and operator are a list
   in order of their constants. Those that hold are one run of it: for ``=`` the equal constants,
   for ``>=`` all up to the event's value, for ``<=`` all from it on.

The predicates that hold are counted. A subscription matches if all its predicates hold.

Cost: O(predicates that hold, in the partitions of the event's attributes), a bisection for each
list, and one read of each counter; an entry for each predicate. It is fastest if events have few of
many attributes.

Notes
-----
- The frequency of an attribute is the number of conjunctions with it when a subscription is added.
  The first of equally rare attributes is taken. Subscriptions do not move when frequencies change.
- From memory, the original hashes attributes to a few segments of each operator's list, with a
  signature of the empty ones. Here a dictionary has each pivot and attribute.
- Counters are counted up, and compared with the number of predicates of each subscription.
- ``>`` and ``<`` are ``>=`` and ``<=`` of the next double. An infinite end adds no predicate. A
  constraint without ends is ``>= -infinity``, because the value must be present.
- The first event after new predicates sorts the lists that it reads.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from enum import Enum
from math import inf

import numpy as np
from pyoxigraph import NamedNode

from graphmatch.published.attribute_matcher import (
    AttributeEvent,
    AttributeMatcher,
    Numbers,
    Row,
    Tally,
    Values,
    all_ends,
)


class PredicateOperator(Enum):
    """The comparison of a predicate with its constant."""

    EQUAL = "="
    AT_LEAST = ">="
    AT_MOST = "<="


class Predicates:
    """The predicates of one attribute and one operator: a constant for each conjunction number."""

    def __init__(self) -> None:
        self.constants: dict[int, float] = {}
        self._ordered: tuple[Numbers, Values] | None = None

    def put(self, number: int, constant: float) -> None:
        """Add the predicate of a conjunction, by number."""
        self.constants[number] = constant
        self._ordered = None

    def hold(self, operator: PredicateOperator, value: float) -> Numbers:
        """Return the numbers of the conjunctions whose predicate is true for a value.

        `operator` is that of all these predicates. Sort them first if some were added.
        """
        if self._ordered is None:
            numbers = np.fromiter(self.constants, np.int64)
            constants = np.fromiter(self.constants.values(), np.float64)
            order = np.argsort(constants, kind="stable")
            self._ordered = numbers[order], constants[order]
        numbers, constants = self._ordered
        first, last = 0, numbers.size
        if operator is not PredicateOperator.AT_LEAST:
            first = int(constants.searchsorted(value, "left"))
        if operator is not PredicateOperator.AT_MOST:
            last = int(constants.searchsorted(value, "right"))
        return numbers[first:last]


class OpIndex(AttributeMatcher):
    """OpIndex (Zhang et al. 2014): partitions by the rarest attribute, and counting of predicates.

    Examples
    --------
    >>> from graphmatch.published.attribute_matcher import Interval
    >>> from semantic import Ontology
    >>> index, price = OpIndex(Ontology()), NamedNode("urn:price")
    >>> index.insert(0, {price: Interval(100.0, 400.0)})
    >>> [index.matched(AttributeEvent({}, {price: v}), Tally()) for v in (400.0, 401.0)]
    [[0], []]
    """

    def clear(self) -> None:
        self.partitions: dict[NamedNode, dict[NamedNode, dict[PredicateOperator, Predicates]]] = {}
        """The list of predicates by pivot, attribute and operator."""
        self._predicates = array("q")
        """The number of predicates of each subscription."""

    def insert(self, number: int, row: Row) -> None:
        """Put each predicate into the partition of the least frequent attribute of the row."""
        partition = self.partitions.setdefault(min(row, key=self.asked.__getitem__), {})
        predicates = list(_predicates(row))
        self._predicates.append(len(predicates))
        for attribute, operator, constant in predicates:
            lists = partition.setdefault(attribute, {})
            lists.setdefault(operator, Predicates()).put(number, constant)

    def matched(self, event: AttributeEvent, tally: Tally) -> list[int]:
        held = [np.empty(0, np.int64)]
        tally.probes += len(event.numbers)
        for pivot in event.numbers.keys() & self.partitions.keys():
            partition = self.partitions[pivot]
            tally.probes += len(event.numbers)
            for attribute, value in event.numbers.items():
                for operator, predicates in partition.get(attribute, {}).items():
                    held.append(predicates.hold(operator, value))
        tally.index_hits += len(held) - 1
        tally.candidates += sum(map(len, held))
        counts = np.bincount(np.concatenate(held), minlength=len(self._predicates))
        found: list[int] = np.flatnonzero(counts == np.array(self._predicates)).tolist()
        return found


def _predicates(row: Row) -> Iterator[tuple[NamedNode, PredicateOperator, float]]:
    """Yield attribute, operator, and constant of each predicate of a conjunction."""
    for attribute, low, high in all_ends(row):
        if low == high:
            yield attribute, PredicateOperator.EQUAL, low
            continue
        if low > -inf or high == inf:
            yield attribute, PredicateOperator.AT_LEAST, low
        if high < inf:
            yield attribute, PredicateOperator.AT_MOST, high
