"""BE-Tree: subscriptions are parted by an attribute, then by its values, then by the next one.

Sadoghi, Jacobsen: "BE-Tree: an index structure to efficiently match Boolean expressions over
high-dimensional discrete space", SIGMOD 2011; reconstructed from memory (structure, insertion,
space partitioning, space clustering, deletion, and the names) and from the comparison in Fan, Liu,
Tang (DEXIN, sections 1.1 and 4).

A *c-node* has an *l-node*, a list of subscriptions, and a *p-directory* of *p-nodes*, each for an
attribute. A p-node has a *c-directory*: a tree of buckets, the first with the attribute's whole
domain, each with its half of the one above, and each with a c-node::

    c-node   l-node: those who ask for nothing that is in the p-directory
      p-node price
        bucket 0 ... 1000     c-node   l-node: 400 ... 600 lies in neither half
          bucket 0 ... 500      c-node   l-node: 100 ... 400
            p-node weight ...
          bucket 500 ... 1000   c-node   l-node: 700 ... 750

1. Insertion: a subscription goes to the p-node of the highest rank of those that it asks for, there
   to the smallest bucket there is that its constraint lies in, and on from that bucket's c-node.
2. An l-node that has more than its capacity is a bucket's first cause to be cut into halves (*space
   clustering*), and then to part what is in neither by the attribute of the highest rank that is
   not in use on the way from the root (*space partitioning*).
3. Deletion: buckets without subscriptions go, and p-nodes with them.
4. Matching: an event goes into each p-node whose attribute it has, down the buckets of its value,
   and tests the subscriptions of every l-node on its ways.

Cost: a test for each subscription whose buckets have the event's values, and a step for each bucket
on the way. One entry a subscription. What is wide stays in first buckets, where every event comes
by. Matching is compiled.

Notes
-----
- The rank of an attribute is (1 - a) Gain - a Loss with a = 0.5. Gain is how many subscriptions ask
  for it. The paper's Loss is what was tested in vain for the events of late; matching changes
  nothing here, so it is how many of them lie in neither half of the domain: these every event
  has to test. Of equal ranks the first in the subscription is taken. Trees are not built anew as
  events change.
- Capacity is 20, from memory. An l-node without an attribute to part it by gets twice the capacity
  (there are multiples of the least in the paper), so that it is looked through seldom, and keeps
  it until its bucket goes.
- The paper's values are discrete. Here a bucket is cut until it is no wider than `atom`; the first
  and last have what is beyond the domain.
- A half is made when something goes into it. Deletion in the paper searches for the subscription;
  here it is known where it is. Buckets that have become small are not merged.
- An event's attributes are not looked up in a p-directory; each of its p-nodes is looked at.
- Equalities with terms and presence are constraints on attributes of their own: a term that a
  subscription names has a number, an event that has any value has every number.
- The tree is one of objects. What events read are arrays, in which an l-node's constraints follow
  each other; they are made when the first event after a change comes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from pyoxigraph import NamedNode

from graphmatch.matcher import Capabilities
from graphmatch.published.base import (
    DOMAIN,
    Constraint,
    Domain,
    Equal,
    Event,
    FlatMatcher,
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

ATOM = 1.0
CAPACITY = 20
ALPHA = 0.5
TERMS = (0.0, float(1 << 20))
"""Between what the numbers of terms are; those beyond are in the last bucket."""


@dataclass(slots=True, eq=False)
class PNode:
    """A p-node: how many below it ask for its attribute, and lie in neither half of the domain."""

    attribute: Attribute
    first: Bucket = field(init=False)
    gain: int = 0
    loss: int = 0


@dataclass(slots=True, eq=False)
class Bucket:
    """A bucket of a p-node's c-directory, with its c-node: l-node, capacity, and p-directory.

    The root is a c-node without a p-node; the bucket above the first of a p-node is the one
    whose p-directory has it.
    """

    node: PNode | None
    low: float
    high: float
    above: Bucket | None
    capacity: int
    members: dict[int, Row] = field(default_factory=dict)
    divided: bool = False
    halves: list[Bucket | None] = field(default_factory=lambda: [None, None])
    directory: dict[Attribute, PNode] = field(default_factory=dict)

    @property
    def middle(self) -> float:
        """Where it is cut."""
        return self.low + (self.high - self.low) / 2

    def half(self, ends: Domain) -> int | None:
        """Return the half that a constraint lies in, if it lies in one."""
        return 0 if ends[1] <= self.middle else 1 if ends[0] > self.middle else None


class Packed(NamedTuple):
    """The tree in arrays.

    Parameters
    ----------
    nodes
        Shape ``(buckets, 8)``, its columns below; a bucket's p-nodes' first buckets follow
        each other. As doubles it has where each is cut.
    members, begin
        The subscriptions of all l-nodes, and where the tests of each begin.
    tests
        Shape ``(tests, 3)``: slot, low, and high.
    slots
        Attribute to its place among an event's values.
    """

    nodes: Numbers
    members: Numbers
    begin: Numbers
    tests: Values
    slots: dict[Attribute, int]


LEFT, RIGHT, FIRST, LAST, SLOT, BEGIN, END, MIDDLE = range(8)
"""Halves; first buckets of p-nodes; attribute; members; where it is cut."""


class BETree(FlatMatcher):
    """The BE-Tree index.

    Parameters
    ----------
    domain
        Between what most values of an attribute are.
    atom
        How wide a bucket is that is not cut.
    capacity
        How many subscriptions an l-node has before it is divided, at least 1.

    Examples
    --------
    >>> from pyoxigraph import Literal
    >>> from graphmatch.subscription import SubscriptionParser
    >>> tree = BETree(Ontology(), domain=(0, 1000))
    >>> text = "SELECT ?e { ?e <urn:price> ?v ; <urn:brand> 'HP' FILTER(?v >= 100 && ?v < 400) }"
    >>> tree.subscribe(SubscriptionParser().parse("s", text))
    >>> price, brand = NamedNode("urn:price"), NamedNode("urn:brand")
    >>> events = [Event.of({price: Literal(n), brand: Literal("HP")}) for n in (399, 400)]
    >>> [tree.matched(event, Tally()) for event in events]
    [[0], []]
    """

    capabilities: ClassVar = Capabilities(
        property_variables=False, taxonomy=False, text=False, joins=False
    )
    kinds: ClassVar = frozenset({Interval, Equal, Present})

    def __init__(
        self,
        ontology: Ontology,
        *,
        domain: Domain = DOMAIN,
        atom: float = ATOM,
        capacity: int = CAPACITY,
    ) -> None:
        super().__init__(ontology)
        self._domains = {Interval: domain, Equal: TERMS, Present: (0.0, 0.0)}
        self._atoms = {Interval: atom, Equal: 1.0, Present: 0.0}
        self._capacity = capacity
        self._root = Bucket(None, 0.0, 0.0, None, capacity)
        self._home: dict[int, Bucket] = {}
        self._terms: dict[Term, int] = {}
        self._named: Counter[Term] = Counter()
        self._serials = count()
        self._packed: Packed | None = None

    def _ends(self, constraint: Constraint) -> Domain:
        if isinstance(constraint, Interval):
            return constraint
        if isinstance(constraint, Equal):
            return self._terms[constraint.term], self._terms[constraint.term]
        return -inf, inf

    # --- Insertion --------------------------------------------------------------------------

    def insert(self, number: int, row: Row) -> None:
        """Put a subscription into the smallest bucket, and divide its l-node if it is too many."""
        self._packed = None
        for constraint in row.values():
            if isinstance(constraint, Equal):
                self._named[constraint.term] += 1
                if constraint.term not in self._terms:
                    self._terms[constraint.term] = next(self._serials)
        bucket = self._root
        while nodes := [n for a in _attributes(row) if (n := bucket.directory.get(a)) is not None]:
            node = max(nodes, key=lambda node: _rank(node.gain, node.loss))
            self._count(node, row, 1)
            bucket = self._smallest(node.first, row)
        self._put(number, row, bucket)
        overfull = [bucket]
        while overfull:
            bucket = overfull.pop()
            overfull += self._cluster(bucket)
            overfull += self._partition(bucket)

    def _put(self, number: int, row: Row, bucket: Bucket) -> None:
        bucket.members[number] = row
        self._home[number] = bucket

    def _count(self, node: PNode, row: Row, one: int) -> None:
        """Count a subscription that has come to a p-node or, with -1, gone."""
        node.gain += one
        if node.first.half(self._ends(row[node.attribute[0]])) is None:
            node.loss += one

    def _smallest(self, bucket: Bucket, row: Row) -> Bucket:
        """Return the smallest bucket that a constraint lies in, at or below one."""
        assert bucket.node is not None
        ends = self._ends(row[bucket.node.attribute[0]])
        while bucket.divided and (half := bucket.half(ends)) is not None:
            below = bucket.halves[half]
            if below is None:
                low, high = (bucket.middle, bucket.high) if half else (bucket.low, bucket.middle)
                below = Bucket(bucket.node, low, high, bucket, self._capacity)
                bucket.halves[half] = below
            bucket = below
        return bucket

    def _cluster(self, bucket: Bucket) -> Iterable[Bucket]:
        """Space clustering: what lies in a half of a bucket goes there. Return the halves."""
        if len(bucket.members) <= bucket.capacity or bucket.divided or bucket.node is None:
            return ()
        if bucket.high - bucket.low <= self._atoms[bucket.node.attribute[1]]:
            return ()
        bucket.divided = True
        members, bucket.members = bucket.members, {}
        for number, row in members.items():
            self._put(number, row, self._smallest(bucket, row))
        return [half for half in bucket.halves if half is not None]

    def _partition(self, bucket: Bucket) -> Iterator[Bucket]:
        """Space partitioning: by attributes, until an l-node is small. Yield first buckets."""
        while len(bucket.members) > bucket.capacity:
            attribute = self._next_attribute(bucket)
            if attribute is None:
                bucket.capacity *= 2
                continue
            node = bucket.directory[attribute] = PNode(attribute)
            domain = self._domains[attribute[1]]
            node.first = Bucket(node, *domain, bucket, self._capacity)
            members, bucket.members = bucket.members, {}
            for number, row in members.items():
                asks = isinstance(row.get(attribute[0]), attribute[1])
                self._put(number, row, node.first if asks else bucket)
                if asks:
                    self._count(node, row, 1)
            yield node.first

    def _next_attribute(self, bucket: Bucket) -> Attribute | None:
        """Return the attribute of the highest rank that is in use nowhere on the way here."""
        used = {above.node.attribute for above in _way(bucket) if above.node is not None}
        gain, loss = Counter[Attribute](), Counter[Attribute]()
        for row in bucket.members.values():
            for attribute in _attributes(row):
                if attribute not in used:
                    whole = Bucket(None, *self._domains[attribute[1]], None, 0)
                    gain[attribute] += 1
                    loss[attribute] += whole.half(self._ends(row[attribute[0]])) is None
        return max(gain, key=lambda a: _rank(gain[a], loss[a]), default=None)

    # --- Deletion ---------------------------------------------------------------------------

    def remove(self, number: int, row: Row) -> None:
        """Take a subscription out of its l-node, and remove what has become empty."""
        self._packed = None
        bucket = self._home.pop(number)
        del bucket.members[number]
        for below in _way(bucket):
            node, above = below.node, below.above
            if node is None or above is None:
                break
            empty = not (below.members or any(below.halves) or below.directory)
            if below is node.first:
                self._count(node, row, -1)
                if empty:
                    del above.directory[node.attribute]
            elif empty:
                above.halves[above.halves.index(below)] = None
        for constraint in row.values():
            if isinstance(constraint, Equal):
                self._named[constraint.term] -= 1
                if not self._named[constraint.term]:
                    del self._named[constraint.term], self._terms[constraint.term]

    # --- Matching ---------------------------------------------------------------------------

    def matched(self, event: Event, tally: Tally) -> list[int]:
        """Go into all buckets of an event's values, and test what is in their l-nodes."""
        if self._packed is None:
            self._packed = self._pack()
        nodes, members, begin, tests, slots = self._packed
        values = np.full(len(slots), np.nan)
        for attribute, value in self._values(event):
            if (slot := slots.get(attribute)) is not None:
                values[slot] = value
        stack, found = np.empty(len(nodes), np.int64), np.empty(len(members), np.int64)
        count, probes, gates, candidates = _match(
            nodes, nodes.view(np.float64), members, begin, tests, values, stack, found
        )
        tally.probes += probes
        tally.gates += gates
        tally.candidates += candidates
        numbers: list[int] = found[:count].tolist()
        return numbers

    def _values(self, event: Event) -> Iterator[tuple[Attribute, float]]:
        for attribute, term in event.terms.items():
            yield (attribute, Present), 0.0
            if term in self._terms:
                yield (attribute, Equal), self._terms[term]
        for attribute, number in event.numbers.items():
            yield (attribute, Interval), number

    def _pack(self) -> Packed:
        """Return the tree in arrays, level by level."""
        slots: dict[Attribute, int] = {}
        buckets, nodes = [self._root], list[tuple[int, ...]]()
        members, begin, tests = list[int](), [0], list[float]()
        for bucket in buckets:  # which grow
            halves = []
            for half in bucket.halves:
                halves.append(0 if half is None else len(buckets))
                buckets += [] if half is None else [half]
            first, start = len(buckets), len(members)
            buckets += [node.first for node in bucket.directory.values()]
            for number, row in bucket.members.items():
                members.append(number)
                begin.append(begin[-1] + len(row))
                for attribute, constraint in zip(_attributes(row), row.values(), strict=True):
                    tests += slots.setdefault(attribute, len(slots)), *self._ends(constraint)
            slot = (
                -1 if bucket.node is None else slots.setdefault(bucket.node.attribute, len(slots))
            )
            nodes.append((*halves, first, len(buckets), slot, start, len(members), 0))
        packed = np.array(nodes, np.int64)
        packed.view(np.float64)[:, MIDDLE] = [bucket.middle for bucket in buckets]
        table = np.array(tests, np.float64).reshape(-1, 3)
        return Packed(packed, np.array(members, np.int64), np.array(begin), table, slots)


def _rank(gain: int, loss: int) -> float:
    return (1 - ALPHA) * gain - ALPHA * loss


def _attributes(row: Row) -> Iterator[Attribute]:
    return ((attribute, type(constraint)) for attribute, constraint in row.items())


def _way(bucket: Bucket) -> Iterator[Bucket]:
    """Yield a bucket and what is above it, up to the root."""
    above: Bucket | None = bucket
    while above is not None:
        yield above
        above = above.above


@kernel
def _match(
    nodes: Numbers,
    middles: Values,
    members: Numbers,
    begin: Numbers,
    tests: Values,
    values: Values,
    stack: Numbers,
    found: Numbers,
) -> tuple[int, int, int, int]:
    """Find what matches: how many, buckets, those with an l-node, and subscriptions tested."""
    count, probes, gates, candidates = 0, 0, 0, 0
    stack[0] = 0
    top = 1
    while top:
        top -= 1
        bucket = stack[top]
        probes += 1
        first, last = nodes[bucket, BEGIN], nodes[bucket, END]
        gates += first < last
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
        for below in range(nodes[bucket, FIRST], nodes[bucket, LAST]):
            if not np.isnan(values[nodes[below, SLOT]]):
                stack[top] = below
                top += 1
        if nodes[bucket, LEFT] or nodes[bucket, RIGHT]:
            above = values[nodes[bucket, SLOT]] > middles[bucket, MIDDLE]
            half = nodes[bucket, RIGHT] if above else nodes[bucket, LEFT]
            if half:
                stack[top] = half
                top += 1
    return count, probes, gates, candidates
