"""BE-Tree: subscriptions are parted by an attribute, then by its values, then by the next one.

Sadoghi, Jacobsen: "BE-Tree: an index structure to efficiently match Boolean expressions over
high-dimensional discrete space", SIGMOD 2011; compared with in Fan, Liu, Tang (DEXIN, sections 1.1
and 4).

A *c-node* has an *l-node*, a list of subscriptions, and a *p-directory* of *p-nodes*, each for an
attribute. A p-node has a *c-directory*: a tree of buckets, the first with the attribute's whole
domain, each with its half of the one above, and each with a c-node. A subscription is in the
smallest bucket there is that its constraint lies in. An l-node that has more than its
capacity is a bucket's first cause to be cut into halves (*space clustering*), and then to part what
is in neither by the attribute of the highest rank that is not in use on the way from the root
(*space partitioning*). An event goes into each p-node whose attribute it has, down the buckets of
its value, and tests the subscriptions of every l-node on its ways.

Cost: a test for each subscription whose buckets have the event's values, and a step for each bucket
on the way. One entry a subscription. What is wide stays in first buckets, where every event comes
by. Matching is compiled: buckets are rows of an array. The tree that is built and taken apart is
one of objects, in plain Python, beside it. Most of a test is fetching constraints from memory.

Notes
-----
The paper was not at hand: structure and algorithms (insertion, space partitioning, space
clustering, deletion) are from memory, and so are the names. What was decided:

- The rank of an attribute is (1 - a) Gain - a Loss with a = 0.5. Gain is how many subscriptions ask
  for it. The paper's Loss is what was tested in vain for the events of late; matching changes
  nothing here, so it is how many of them lie in neither half of the domain: these every event
  has to test. Of equal ranks the first in the subscription is taken. Likewise for the p-node that
  a new subscription is given to. Trees are not built anew as events change.
- Capacity is 20, from memory. An l-node without an attribute to part it by gets twice the capacity
  (there are multiples of the least in the paper), so that it is looked through seldom, and keeps
  it until it is empty.
- The paper's values are discrete. Here a bucket is cut until it is no wider than `atom`; the first
  and last have what is beyond the domain.
- A half is made when something goes into it, and a bucket without subscriptions is removed with its
  p-node. Deletion in the paper searches for the subscription; here it is known where it is. Buckets
  that have become small are not merged.
- An event's attributes are not looked up in a p-directory; each of its p-nodes is looked at.
- Equalities with terms and presence are constraints on attributes of their own: a term that a
  subscription names has a number, an event that has any value has every number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import ClassVar, TypeAlias

import numpy as np
from pyoxigraph import NamedNode

from graphmatch.matcher import Capabilities
from graphmatch.published.flat.buckets import Numbers, Values
from graphmatch.published.flat.constraints import Constraint, Equal, Interval, Present, Row
from graphmatch.published.flat.events import Event
from graphmatch.published.flat.matcher import FlatMatcher, Tally
from graphmatch.published.flat.pool import FIRST, NEXT, SIZE, Cells, Chains, Pool
from graphmatch.published.flat.ranges import DOMAIN
from graphmatch.published.flat.rows import Ends, Rows, Table, Terms, passes
from semantic.jit import kernel
from semantic.ontology.ontology import Ontology

Key: TypeAlias = tuple[NamedNode, type[Constraint]]
Slots: TypeAlias = dict[int, Ends]
Members: TypeAlias = list[tuple[int, Slots]]

ATOM = 1.0
CAPACITY = 20
ALPHA = 0.5
TERMS = (0.0, float(1 << 20))
"""Between what the numbers of terms are; those beyond are in the last bucket."""

LEFT, RIGHT, SLOT, LIST, DIRECTORY, BESIDE, MIDDLE = 0, 1, 2, 3, 4, 5, 3
"""A bucket's columns: its halves, its attribute, its l-node, the first bucket of the last p-node of
its directory, that of the p-node before its own; among columns of doubles, where it is cut."""
_COLUMNS = 8
_OBJECT, _MEMBER = 370, 60
"""About how many bytes the objects of a bucket take, and knowing where a subscription is, measured
with 20,000 subscriptions on 64-bit Python 3.11."""


@dataclass(slots=True, eq=False)
class _Bucket:
    """A bucket of a c-directory, with its c-node and l-node; the root is one without a slot."""

    row: int
    slot: int
    low: float
    high: float
    capacity: int
    parent: _Bucket | _PNode | None
    size: int = 0
    divided: bool = False
    halves: dict[int, _Bucket] = field(default_factory=dict)
    directory: dict[int, _PNode] = field(default_factory=dict)

    @property
    def middle(self) -> float:
        return _middle(self.low, self.high)

    @property
    def empty(self) -> bool:
        return not (self.size or self.halves or self.directory)

    def half(self, ends: Ends) -> int | None:
        """Return the half that a constraint lies in, if it lies in one."""
        return _half(ends, self.middle)


@dataclass(slots=True, eq=False)
class _PNode:
    """A p-node: how many below ask for its attribute, and lie in neither half of the domain."""

    parent: _Bucket
    first: _Bucket = field(init=False)
    gain: int = 0
    loss: int = 0

    def count(self, ends: Ends, one: int) -> None:
        """Count a subscription that has come or, with -1, gone."""
        self.gain += one
        if self.first.half(ends) is None:
            self.loss += one


def _middle(low: float, high: float) -> float:
    return low + (high - low) / 2


def _half(ends: Ends, middle: float) -> int | None:
    return LEFT if ends[1] <= middle else RIGHT if ends[0] > middle else None


def _rank(gain: int, loss: int) -> float:
    return (1 - ALPHA) * gain - ALPHA * loss


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
    >>> from semantic.sparql.parse import SubscriptionParser
    >>> tree = BETree(Ontology(), domain=(0, 1000))
    >>> text = "SELECT ?e { ?e <urn:price> ?v ; <urn:brand> 'HP' FILTER(?v >= 100 && ?v < 400) }"
    >>> tree.subscribe(SubscriptionParser().parse("s", text))
    >>> price, brand = NamedNode("urn:price"), NamedNode("urn:brand")
    >>> events = [Event.of({price: Literal(n), brand: Literal("HP")}) for n in (399, 400)]
    >>> [list(tree.matched(event, Tally())) for event in events]
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
        domain: Ends = DOMAIN,
        atom: float = ATOM,
        capacity: int = CAPACITY,
    ) -> None:
        super().__init__(ontology)
        self._domains = {Interval: domain, Equal: TERMS, Present: (0.0, 0.0)}
        self._atoms = {Interval: atom, Equal: 1.0, Present: 0.0}
        self._capacity = capacity
        self._rows, self._terms = Rows[Key](), Terms()
        self._lists, self._buckets = Chains(), Pool(_COLUMNS)
        self._root = self._bucket(-1, (0.0, 0.0), None)
        self._home: dict[int, _Bucket] = {}
        self._found: Numbers = np.empty(0, np.int32)
        self._stack: Numbers = np.empty(0, np.int32)

    @property
    def nbytes(self) -> int:
        """How large the arrays are, and about how large the objects beside them."""
        arrays = (self._rows, self._lists, self._buckets, self._found, self._stack)
        size = sum(array.nbytes for array in arrays)
        return size + _OBJECT * len(self._buckets) + _MEMBER * len(self._home)

    # --- Insertion --------------------------------------------------------------------------

    def insert(self, number: int, row: Row) -> None:
        """Put a subscription into the smallest bucket, and divide its l-node if it is too many."""
        ends = {(attribute, type(c)): self._ends(c) for attribute, c in row.items()}
        self._rows.insert(number, ends)
        slots, bucket = self._rows.of(number), self._root
        while (node := self._best(bucket, slots)) is not None:
            node.count(slots[node.first.slot], 1)
            bucket = self._smallest(node.first, slots[node.first.slot])
        self._put(number, bucket)
        waiting = [bucket]
        while waiting:
            bucket = waiting.pop()
            if bucket.size > bucket.capacity:
                if not (bucket.divided or self._is_atomic(bucket)):
                    waiting += self._cluster(bucket)
                waiting += self._partition(bucket)

    def _best(self, bucket: _Bucket, slots: Slots) -> _PNode | None:
        """Return the p-node of the highest rank of those that a subscription asks for."""
        nodes = [bucket.directory[slot] for slot in slots if slot in bucket.directory]
        return max(nodes, key=lambda node: _rank(node.gain, node.loss), default=None)

    def _smallest(self, bucket: _Bucket, ends: Ends) -> _Bucket:
        """Return the smallest bucket that a constraint lies in, at or below one."""
        while bucket.divided and (half := bucket.half(ends)) is not None:
            below = bucket.halves.get(half)
            if below is None:
                low, middle, high = bucket.low, bucket.middle, bucket.high
                span = (low, middle) if half == LEFT else (middle, high)
                below = bucket.halves[half] = self._bucket(bucket.slot, span, bucket)
                self._buckets.rows[bucket.row, half] = below.row
            bucket = below
        return bucket

    def _cluster(self, bucket: _Bucket) -> Iterable[_Bucket]:
        """Cut a bucket: what lies in a half goes there. Return the halves."""
        bucket.divided = True
        for number, slots in self._members(bucket):
            below = self._smallest(bucket, slots[bucket.slot])
            if below is not bucket:
                self._drop(number, bucket)
                self._put(number, below)
        return bucket.halves.values()

    def _partition(self, bucket: _Bucket) -> Iterator[_Bucket]:
        """Part a c-node's subscriptions by attributes, until they are few. Yield first buckets."""
        while bucket.size > bucket.capacity:
            members = self._members(bucket)
            slot = self._next_attribute(bucket, members)
            if slot is None:
                bucket.capacity *= 2
                continue
            node = bucket.directory[slot] = _PNode(bucket)
            node.first = self._bucket(slot, self._domains[self._rows.keys[slot][1]], node)
            for number, slots in members:
                if slot in slots:
                    self._drop(number, bucket)
                    self._put(number, node.first)
                    node.count(slots[slot], 1)
            self._link(bucket)
            yield node.first

    def _next_attribute(self, bucket: _Bucket, members: Members) -> int | None:
        """Return the attribute of the highest rank that is in use nowhere on the way here."""
        used = {above.slot for above in _way(bucket) if isinstance(above, _Bucket)}
        gain, loss = Counter[int](), Counter[int]()
        for _, slots in members:
            for slot, ends in slots.items():
                if slot not in used:
                    domain = self._domains[self._rows.keys[slot][1]]
                    gain[slot] += 1
                    loss[slot] += _half(ends, _middle(*domain)) is None
        return max(gain, key=lambda slot: _rank(gain[slot], loss[slot]), default=None)

    def _is_atomic(self, bucket: _Bucket) -> bool:
        if bucket is self._root:
            return True
        return bucket.high - bucket.low <= self._atoms[self._rows.keys[bucket.slot][1]]

    # --- Deletion ---------------------------------------------------------------------------

    def remove(self, number: int, row: Row) -> None:
        """Take a subscription out of its l-node, and remove what has become empty."""
        bucket: _Bucket = self._home.pop(number)
        slots = self._rows.of(number)
        self._drop(number, bucket)
        for above in list(_way(bucket))[1:]:
            if isinstance(above, _PNode):
                above.count(slots[bucket.slot], -1)
                continue
            if bucket.empty:
                self._cut_off(bucket, above)
            bucket = above
        self._rows.remove(number, [(attribute, type(c)) for attribute, c in row.items()])
        for constraint in row.values():
            if isinstance(constraint, Equal):
                self._terms.forget(constraint.term)

    def _cut_off(self, bucket: _Bucket, above: _Bucket) -> None:
        if bucket.parent is above:
            half = LEFT if above.halves.get(LEFT) is bucket else RIGHT
            del above.halves[half]
            self._buckets.rows[above.row, half] = 0
        else:
            del above.directory[bucket.slot]
            self._link(above)
        self._buckets.give(bucket.row)

    # --- Matching ---------------------------------------------------------------------------

    def matched(self, event: Event, tally: Tally) -> Iterable[int]:
        """Go into all buckets of an event's values, and test what is in their l-nodes."""
        rows = self._buckets.rows
        if self._found.size < self._rows.room:
            self._found = np.empty(self._rows.room, np.int32)
        if self._stack.size < len(rows):
            self._stack = np.empty(len(rows), np.int32)
        index = rows, rows.view(np.float64), self._lists.rows, self._rows.table
        values = self._rows.values(self._values(event))
        found, probes, gates, candidates = _find(
            index, values, self._root.row, self._stack, self._found
        )
        tally.probes += probes
        tally.gates += gates
        tally.candidates += candidates
        numbers: list[int] = self._found[:found].tolist()
        return numbers

    def _values(self, event: Event) -> Iterator[tuple[Key, float]]:
        for attribute, term in event.terms.items():
            yield (attribute, Present), 0.0
            if term in self._terms.numbers:
                yield (attribute, Equal), float(self._terms.numbers[term])
        for attribute, number in event.numbers.items():
            yield (attribute, Interval), number

    # --- Buckets and their rows ---------------------------------------------------------------

    def _ends(self, constraint: Constraint) -> Ends:
        if isinstance(constraint, Interval):
            return constraint.closed()
        if isinstance(constraint, Equal):
            number = float(self._terms.name(constraint.term))
            return number, number
        return -inf, inf

    def _bucket(self, slot: int, span: Ends, parent: _Bucket | _PNode | None) -> _Bucket:
        bucket = _Bucket(self._buckets.take(), slot, *span, self._capacity, parent)
        rows = self._buckets.rows
        rows[bucket.row, SLOT] = slot
        rows.view(np.float64)[bucket.row, MIDDLE] = bucket.middle
        return bucket

    def _link(self, bucket: _Bucket) -> None:
        """Write down the p-directory of a bucket."""
        rows, before = self._buckets.rows, 0
        for node in bucket.directory.values():
            rows[node.first.row, BESIDE] = before
            before = node.first.row
        rows[bucket.row, DIRECTORY] = before

    def _members(self, bucket: _Bucket) -> Members:
        numbers = self._lists.of(int(self._buckets.rows[bucket.row, LIST]))
        return [(number, self._rows.of(number)) for number in numbers]

    def _put(self, number: int, bucket: _Bucket) -> None:
        head = self._lists.put(int(self._buckets.rows[bucket.row, LIST]), number)
        self._buckets.rows[bucket.row, LIST] = head
        bucket.size += 1
        self._home[number] = bucket

    def _drop(self, number: int, bucket: _Bucket) -> None:
        head = self._lists.drop(int(self._buckets.rows[bucket.row, LIST]), number)
        self._buckets.rows[bucket.row, LIST] = head
        bucket.size -= 1


def _way(bucket: _Bucket) -> Iterator[_Bucket | _PNode]:
    """Yield a bucket and what is above it, up to the root."""
    above: _Bucket | _PNode | None = bucket
    while above is not None:
        yield above
        above = above.parent


@kernel
def _find(
    index: tuple[Cells, Values, Cells, Table],
    values: Values,
    root: int,
    stack: Numbers,
    found: Numbers,
) -> tuple[int, int, int, int]:
    """Find what matches: how many did, buckets, those with an l-node, and subscriptions tested."""
    buckets, middles, blocks, table = index
    count, probes, gates, candidates = 0, 0, 0, 0
    stack[0] = root
    top = 1
    while top:
        top -= 1
        bucket = stack[top]
        probes += 1
        block = buckets[bucket, LIST]
        gates += block != 0
        while block:
            candidates += blocks[block, SIZE]
            for place in range(FIRST, FIRST + blocks[block, SIZE]):
                if passes(table, blocks[block, place], values):
                    found[count] = blocks[block, place]
                    count += 1
            block = blocks[block, NEXT]
        first = buckets[bucket, DIRECTORY]
        while first:
            if not np.isnan(values[buckets[first, SLOT]]):
                stack[top] = first
                top += 1
            first = buckets[first, BESIDE]
        if buckets[bucket, LEFT] or buckets[bucket, RIGHT]:
            above = values[buckets[bucket, SLOT]] > middles[bucket, MIDDLE]
            half = buckets[bucket, RIGHT if above else LEFT]
            if half:
                stack[top] = half
                top += 1
    return count, probes, gates, candidates
