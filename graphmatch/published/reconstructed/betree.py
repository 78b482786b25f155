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
by. Matching is compiled: buckets are rows of an array
(`graphmatch.published.flat.bucket_tree`). The tree that is built and taken apart is one of objects,
in plain Python, beside it. Most of a test is fetching constraints from memory.

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
from math import inf
from typing import ClassVar, TypeAlias

from pyoxigraph import NamedNode

from graphmatch.matcher import Capabilities
from graphmatch.published.base import (
    DOMAIN,
    Constraint,
    Equal,
    Event,
    FlatMatcher,
    Interval,
    Present,
    Row,
    Tally,
)
from graphmatch.published.flat.bucket_tree import (
    Bucket,
    BucketTree,
    PNode,
    half_of,
    middle_of,
    way,
)
from graphmatch.published.flat.rows import Ends, Rows, Terms
from semantic.ontology.ontology import Ontology

Key: TypeAlias = tuple[NamedNode, type[Constraint]]
Slots: TypeAlias = dict[int, Ends]
Members: TypeAlias = list[tuple[int, Slots]]

ATOM = 1.0
CAPACITY = 20
ALPHA = 0.5
TERMS = (0.0, float(1 << 20))
"""Between what the numbers of terms are; those beyond are in the last bucket."""


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
    >>> from graphmatch.subscription import SubscriptionParser
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
        self._rows, self._terms = Rows[Key](), Terms()
        self._tree = BucketTree(capacity)

    @property
    def nbytes(self) -> int:
        """How large the arrays are, and about how large the objects beside them."""
        return self._rows.nbytes + self._tree.nbytes

    # --- Insertion --------------------------------------------------------------------------

    def insert(self, number: int, row: Row) -> None:
        """Put a subscription into the smallest bucket, and divide its l-node if it is too many."""
        ends = {(attribute, type(c)): self._ends(c) for attribute, c in row.items()}
        self._rows.insert(number, ends)
        slots, bucket = self._rows.of(number), self._tree.root
        while (node := self._best(bucket, slots)) is not None:
            node.count(slots[node.first.slot], 1)
            bucket = self._tree.smallest(node.first, slots[node.first.slot])
        self._tree.put(number, bucket)
        waiting = [bucket]
        while waiting:
            bucket = waiting.pop()
            if bucket.size > bucket.capacity:
                if not (bucket.divided or self._is_atomic(bucket)):
                    waiting += self._cluster(bucket)
                waiting += self._partition(bucket)

    def _best(self, bucket: Bucket, slots: Slots) -> PNode | None:
        """Return the p-node of the highest rank of those that a subscription asks for."""
        nodes = [bucket.directory[slot] for slot in slots if slot in bucket.directory]
        return max(nodes, key=lambda node: _rank(node.gain, node.loss), default=None)

    def _cluster(self, bucket: Bucket) -> Iterable[Bucket]:
        """Cut a bucket: what lies in a half goes there. Return the halves."""
        bucket.divided = True
        for number, slots in self._members(bucket):
            below = self._tree.smallest(bucket, slots[bucket.slot])
            if below is not bucket:
                self._tree.drop(number)
                self._tree.put(number, below)
        return bucket.halves.values()

    def _partition(self, bucket: Bucket) -> Iterator[Bucket]:
        """Part a c-node's subscriptions by attributes, until they are few. Yield first buckets."""
        while bucket.size > bucket.capacity:
            members = self._members(bucket)
            slot = self._next_attribute(bucket, members)
            if slot is None:
                bucket.capacity *= 2
                continue
            node = bucket.directory[slot] = PNode(bucket)
            node.first = self._tree.bucket(slot, self._domains[self._rows.keys[slot][1]], node)
            for number, slots in members:
                if slot in slots:
                    self._tree.drop(number)
                    self._tree.put(number, node.first)
                    node.count(slots[slot], 1)
            self._tree.link(bucket)
            yield node.first

    def _members(self, bucket: Bucket) -> Members:
        return [(number, self._rows.of(number)) for number in self._tree.of(bucket)]

    def _next_attribute(self, bucket: Bucket, members: Members) -> int | None:
        """Return the attribute of the highest rank that is in use nowhere on the way here."""
        used = {above.slot for above in way(bucket) if isinstance(above, Bucket)}
        gain, loss = Counter[int](), Counter[int]()
        for _, slots in members:
            for slot, ends in slots.items():
                if slot not in used:
                    domain = self._domains[self._rows.keys[slot][1]]
                    gain[slot] += 1
                    loss[slot] += half_of(ends, middle_of(*domain)) is None
        return max(gain, key=lambda slot: _rank(gain[slot], loss[slot]), default=None)

    def _is_atomic(self, bucket: Bucket) -> bool:
        if bucket is self._tree.root:
            return True
        return bucket.high - bucket.low <= self._atoms[self._rows.keys[bucket.slot][1]]

    # --- Deletion ---------------------------------------------------------------------------

    def remove(self, number: int, row: Row) -> None:
        """Take a subscription out of its l-node, and remove what has become empty."""
        bucket, slots = self._tree.drop(number), self._rows.of(number)
        for above in list(way(bucket))[1:]:
            if isinstance(above, PNode):
                above.count(slots[bucket.slot], -1)
                continue
            if bucket.empty:
                self._tree.cut_off(bucket, above)
            bucket = above
        self._rows.remove(number, [(attribute, type(c)) for attribute, c in row.items()])
        for constraint in row.values():
            if isinstance(constraint, Equal):
                self._terms.forget(constraint.term)

    # --- Matching ---------------------------------------------------------------------------

    def matched(self, event: Event, tally: Tally) -> Iterable[int]:
        """Go into all buckets of an event's values, and test what is in their l-nodes."""
        values = self._rows.values(self._values(event))
        rows = self._rows
        found, probes, gates, candidates = self._tree.find(rows.table, values, rows.room)
        tally.probes += probes
        tally.gates += gates
        tally.candidates += candidates
        return found

    def _values(self, event: Event) -> Iterator[tuple[Key, float]]:
        for attribute, term in event.terms.items():
            yield (attribute, Present), 0.0
            if term in self._terms.numbers:
                yield (attribute, Equal), float(self._terms.numbers[term])
        for attribute, number in event.numbers.items():
            yield (attribute, Interval), number

    def _ends(self, constraint: Constraint) -> Ends:
        if isinstance(constraint, Interval):
            return constraint.low, constraint.high
        if isinstance(constraint, Equal):
            number = float(self._terms.name(constraint.term))
            return number, number
        return -inf, inf
