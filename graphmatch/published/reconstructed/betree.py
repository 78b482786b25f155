"""BE-Tree: subscriptions are partitioned by an attribute, by its values, and by the next attribute.

Sadoghi, Jacobsen: "BE-Tree: an index structure to efficiently match Boolean expressions over
high-dimensional discrete space", SIGMOD 2011; reconstructed from memory (structure, insertion,
space partitioning, space clustering, and the names) and from the comparison in Fan, Liu, Tang
(DEXIN, sections 1.1 and 4).

A *c-node* has an *l-node*, a list of subscriptions, and a *p-directory* of *p-nodes*, each for an
attribute. A p-node has a *c-directory*: a tree of buckets. The first bucket has the attribute's
whole domain, each other one half of its parent's, and each bucket has a c-node::

    c-node   l-node: subscriptions without an attribute of the p-directory
      p-node price
        bucket 0 ... 1000     c-node   l-node: 400 ... 600 lies in neither half
          bucket 0 ... 500      c-node   l-node: 100 ... 400
            p-node weight ...
          bucket 500 ... 1000   c-node   l-node: 700 ... 750

1. Insertion: a subscription goes to the p-node of the highest rank among its attributes, there to
   the smallest existing bucket that contains its constraint, and on from that bucket's c-node.
2. If an l-node exceeds its capacity, its bucket is cut into halves (*space clustering*). The
   subscriptions in neither half are then partitioned by the attribute of the highest rank that is
   not used on the path from the root (*space partitioning*).
3. Matching: an event goes into each p-node whose attribute it has, down the buckets of its value,
   and tests the subscriptions of every l-node on its paths.

Cost: a test for each subscription whose buckets have the event's values, and a step for each bucket
on the path. One entry per subscription. Wide constraints stay in first buckets. Events read arrays,
which the first event after a change makes. Matching is compiled.

Notes
-----
- The rank of an attribute is (1 - a) Gain - a Loss with a = 0.5. Gain is the number of
  subscriptions with the attribute. The paper's Loss counts the failed tests of recent events. Here
  it is the number of subscriptions in neither half of the domain, which every event has to test.
- Capacity is 20, from memory. An l-node without an attribute left to partition by gets twice the
  capacity.
- The paper's values are discrete. Here a bucket is cut until it is no wider than `atom`. The first
  and last bucket also take the values beyond the domain.
- A half is made when it gets its first subscription. Deletion is left out.
- Equalities with terms and presence are constraints on separate attributes. Each term in a
  subscription has a number. An event with any value of an attribute passes its presence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf, nan
from typing import ClassVar, TypeAlias

import numpy as np
from pyoxigraph import NamedNode

from graphmatch.matcher import Capabilities
from graphmatch.published.attribute_matcher import (
    DOMAIN,
    AttributeEvent,
    AttributeMatcher,
    Constraint,
    Domain,
    Equal,
    Interval,
    Numbers,
    Present,
    Row,
    Tally,
    Values,
)
from graphmatch.published.jit import kernel
from semantic.ontology.ontology import Ontology
from semantic.terms import Term

Attribute: TypeAlias = tuple[NamedNode, type[Constraint]]
Packed: TypeAlias = tuple[Numbers, Values, Numbers, Numbers, Values]
"""The tree as five arrays.

1. The buckets, shape ``(buckets, 7)``, with the columns below.
2. The middle of each bucket.
3. The members of all l-nodes: numbers of conjunctions.
4. The start of each member's tests, and the end of the last.
5. The tests, shape ``(tests, 3)``: the slot of the attribute among an event's values, low, high.
"""

LEFT, RIGHT, FIRST, LAST, SLOT, BEGIN, END = range(7)
"""The columns of a bucket: both halves (0: none), the range of the p-nodes in its p-directory, the
slot of its attribute, and the range of its members."""

ALPHA = 0.5
TERMS = (0.0, float(1 << 20))
"""The range of the numbers of terms; the last bucket also takes those beyond it."""


@dataclass(slots=True, eq=False)
class Bucket:
    """A bucket with its c-node; the first of a c-directory also stands for its p-node.

    `above` is the bucket that has it as a half or in its p-directory; `members` is the l-node. In a
    p-node, `gain` counts the subscriptions in and below it, and `loss` those in neither half.
    """

    attribute: Attribute | None
    low: float
    high: float
    above: Bucket | None
    capacity: int
    members: dict[int, Row] = field(default_factory=dict)
    divided: bool = False
    halves: list[Bucket | None] = field(default_factory=lambda: [None, None])
    directory: dict[Attribute, Bucket] = field(default_factory=dict)
    gain: int = 0
    loss: int = 0

    @property
    def middle(self) -> float:
        """The value that separates the halves."""
        return self.low + (self.high - self.low) / 2

    def half(self, ends: Domain) -> int | None:
        """Return which half, 0 or 1, contains the range `ends`; ``None`` if neither does."""
        return 0 if ends[1] <= self.middle else 1 if ends[0] > self.middle else None

    def count(self, ends: Domain) -> None:
        """Update `gain` and `loss` of a p-node for a subscription with the range `ends`."""
        self.gain += 1
        self.loss += self.half(ends) is None

    def rank(self) -> float:
        """Return the rank of a p-node; the largest is preferred."""
        return (1 - ALPHA) * self.gain - ALPHA * self.loss


class BETree(AttributeMatcher):
    """BE-Tree (Sadoghi, Jacobsen 2011): subscriptions partitioned by attributes and values.

    A bucket as wide as `atom` is not cut. An l-node with more subscriptions than its `capacity`, at
    least 1, is divided.

    Examples
    --------
    >>> tree, price = BETree(Ontology()), NamedNode("urn:price")
    >>> tree.insert(0, {price: Interval(100.0, 400.0)})
    >>> [tree.matched(AttributeEvent({}, {price: v}), Tally()) for v in (400.0, 401.0)]
    [[0], []]
    """

    capabilities: ClassVar = Capabilities(
        property_variables=False, taxonomy=False, text=False, joins=False
    )
    kinds: ClassVar = frozenset({Interval, Equal, Present})

    def __init__(
        self, ontology: Ontology, *, domain: Domain = DOMAIN, atom: float = 1.0, capacity: int = 20
    ) -> None:
        self._domains = {Interval: domain, Equal: TERMS, Present: (0.0, 0.0)}
        self._atoms = {Interval: atom, Equal: 1.0, Present: 0.0}
        self._capacity = capacity
        super().__init__(ontology, domain)

    def clear(self) -> None:
        self._root = Bucket(None, 0.0, 0.0, None, self._capacity)
        self._terms: dict[Term, int] = {}
        self._slots: dict[Attribute, int] = {}
        self._packed: Packed | None = None

    def _ends(self, row: Row, attribute: Attribute) -> Domain:
        constraint = row[attribute[0]]
        if isinstance(constraint, Equal):
            number = self._terms.setdefault(constraint.term, len(self._terms))
            return number, number
        return constraint if isinstance(constraint, Interval) else (-inf, inf)

    def insert(self, number: int, row: Row) -> None:
        bucket, self._packed = self._root, None
        while there := [a for a in _attributes(row) if a in bucket.directory]:
            attribute = max(there, key=lambda a: bucket.directory[a].rank())
            node, ends = bucket.directory[attribute], self._ends(row, attribute)
            node.count(ends)
            bucket = self._smallest(node, ends)
        bucket.members[number] = row
        overfull = [bucket]
        while overfull:
            bucket = overfull.pop()
            if len(bucket.members) > bucket.capacity:
                overfull += self._cluster(bucket)
                overfull += self._partition(bucket)

    def _smallest(self, bucket: Bucket, ends: Domain) -> Bucket:
        """Return the smallest bucket in `bucket`'s tree that contains the range `ends`.

        Create it if its parent is divided and it is missing.
        """
        while bucket.divided and (half := bucket.half(ends)) is not None:
            below = bucket.halves[half]
            if below is None:
                low, high = (bucket.middle, bucket.high) if half else (bucket.low, bucket.middle)
                below = Bucket(bucket.attribute, low, high, bucket, self._capacity)
                bucket.halves[half] = below
            bucket = below
        return bucket

    def _cluster(self, bucket: Bucket) -> list[Bucket]:
        """Divide a bucket: move the members that fit into a half there (*space clustering*).

        Return its halves. Return none if it is the root, already divided, or as narrow as `atom`.
        """
        attribute = bucket.attribute
        if bucket.divided or attribute is None:
            return []
        if bucket.high - bucket.low <= self._atoms[attribute[1]]:
            return []
        bucket.divided = True
        members, bucket.members = bucket.members, {}
        for number, row in members.items():
            self._smallest(bucket, self._ends(row, attribute)).members[number] = row
        return [half for half in bucket.halves if half is not None]

    def _partition(self, bucket: Bucket) -> Iterator[Bucket]:
        """Move members of an l-node to new p-nodes until it is small enough (*space partitioning*).

        Yield the p-nodes. If no attribute is left, double the capacity of the l-node instead.
        """
        while len(bucket.members) > bucket.capacity:
            node = self._next_node(bucket)
            if node is None or node.attribute is None:
                bucket.capacity *= 2
                continue
            bucket.directory[node.attribute] = node
            members, bucket.members = bucket.members, {}
            for number, row in members.items():
                asks = isinstance(row.get(node.attribute[0]), node.attribute[1])
                (node if asks else bucket).members[number] = row
            yield node

    def _next_node(self, bucket: Bucket) -> Bucket | None:
        """Return a new p-node for the members' attribute of the highest rank.

        Ignore the attributes on the path from the root. Return ``None`` if no attribute is left.
        """
        used, above = {bucket.attribute}, bucket.above
        while above is not None:
            used.add(above.attribute)
            above = above.above
        nodes: dict[Attribute, Bucket] = {}
        for row in bucket.members.values():
            for attribute in _attributes(row):
                if attribute not in used:
                    if attribute not in nodes:
                        domain = self._domains[attribute[1]]
                        nodes[attribute] = Bucket(attribute, *domain, bucket, self._capacity)
                    nodes[attribute].count(self._ends(row, attribute))
        return max(nodes.values(), key=Bucket.rank, default=None)

    def matched(self, event: AttributeEvent, tally: Tally) -> list[int]:
        if self._packed is None:
            self._packed = self._pack()
        given: dict[Attribute, float] = {(a, Present): 0.0 for a in event.terms}
        given |= {(a, Equal): self._terms[t] for a, t in event.terms.items() if t in self._terms}
        given |= {(a, Interval): number for a, number in event.numbers.items()}
        values = np.array([given.get(attribute, nan) for attribute in self._slots], float)
        buckets, _, members, *_ = self._packed
        stack, found = np.empty(len(buckets), np.int64), np.empty(len(members), np.int64)
        count, probes, index_hits, candidates = _match(self._packed, values, stack, found)
        tally.probes += probes
        tally.index_hits += index_hits
        tally.candidates += candidates
        numbers: list[int] = found[:count].tolist()
        return numbers

    def _pack(self) -> Packed:
        """Return the tree as arrays, level by level; set `_slots`, the number of each attribute."""
        slots = self._slots = {}
        buckets, rows = [self._root], list[tuple[int, ...]]()
        members, begin, tests = list[int](), [0], list[float]()
        for bucket in buckets:  # the loop appends to it
            halves = []
            for half in bucket.halves:
                halves.append(0 if half is None else len(buckets))
                buckets += [] if half is None else [half]
            first, start = len(buckets), len(members)
            buckets += bucket.directory.values()
            for number, row in bucket.members.items():
                members.append(number)
                begin.append(begin[-1] + len(row))
                for attribute in _attributes(row):
                    slot = slots.setdefault(attribute, len(slots))
                    tests += slot, *self._ends(row, attribute)
            own = bucket.attribute  # the root has none
            slot = -1 if own is None else slots.setdefault(own, len(slots))
            rows.append((*halves, first, len(buckets), slot, start, len(members)))
        return (
            np.array(rows),
            np.array([bucket.middle for bucket in buckets]),
            np.array(members, np.int64),
            np.array(begin),
            np.array(tests, np.float64).reshape(-1, 3),
        )


def _attributes(row: Row) -> Iterator[Attribute]:
    return ((attribute, type(constraint)) for attribute, constraint in row.items())


@kernel
def _match(
    packed: Packed, values: Values, stack: Numbers, found: Numbers
) -> tuple[int, int, int, int]:
    """Write the numbers of the matching subscriptions to `found`; `stack` is scratch space.

    Return the counts of matches, visited buckets, visited buckets with an l-node, and tested
    subscriptions.
    """
    buckets, middles, members, begin, tests = packed
    count, probes, index_hits, candidates = 0, 0, 0, 0
    stack[0] = 0
    top = 1
    while top:
        top -= 1
        bucket = stack[top]
        probes += 1
        first, last = buckets[bucket, BEGIN], buckets[bucket, END]
        index_hits += first < last
        candidates += last - first
        for member in range(first, last):
            holds = True
            for test in range(begin[member], begin[member + 1]):
                value = values[int(tests[test, 0])]
                if not tests[test, 1] <= value <= tests[test, 2]:
                    holds = False
                    break
            if holds:
                found[count] = members[member]
                count += 1
        for below in range(buckets[bucket, FIRST], buckets[bucket, LAST]):
            if not np.isnan(values[buckets[below, SLOT]]):
                stack[top] = below
                top += 1
        if buckets[bucket, LEFT] or buckets[bucket, RIGHT]:
            above = values[buckets[bucket, SLOT]] > middles[bucket]
            half = buckets[bucket, RIGHT] if above else buckets[bucket, LEFT]
            if half:
                stack[top] = half
                top += 1
    return count, probes, index_hits, candidates
