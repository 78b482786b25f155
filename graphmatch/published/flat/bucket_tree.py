"""The tree of BE-Tree: buckets are objects, to be changed, and rows of an array, to be searched.

A bucket has halves (a c-directory goes down by them), a list of subscriptions (its l-node), and
p-nodes, each an attribute with a first bucket. Which subscription goes where, and when a bucket is
cut, is `graphmatch.published.reconstructed.betree`'s business.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from graphmatch.published.flat.buckets import Numbers, Values
from graphmatch.published.flat.pool import FIRST, NEXT, SIZE, Cells, Chains, Pool
from graphmatch.published.flat.rows import Ends, Table, passes
from graphmatch.published.jit import kernel

LEFT, RIGHT, SLOT, LIST, DIRECTORY, BESIDE, MIDDLE = 0, 1, 2, 3, 4, 5, 3
"""A bucket's columns: its halves, its attribute, its l-node, the first bucket of the last p-node of
its directory, that of the p-node before its own; among columns of doubles, where it is cut."""
_COLUMNS = 8
_OBJECT, _MEMBER = 370, 60
"""About how many bytes the objects of a bucket take, and knowing where a subscription is, measured
with 20,000 subscriptions on 64-bit Python 3.11."""


@dataclass(slots=True, eq=False)
class Bucket:
    """A bucket of a c-directory, with its c-node and l-node; the root is one without a slot."""

    row: int
    slot: int
    low: float
    high: float
    capacity: int
    parent: Bucket | PNode | None
    size: int = 0
    divided: bool = False
    halves: dict[int, Bucket] = field(default_factory=dict)
    directory: dict[int, PNode] = field(default_factory=dict)

    @property
    def middle(self) -> float:
        """Where it is cut."""
        return middle_of(self.low, self.high)

    @property
    def empty(self) -> bool:
        """Whether there is nothing at it, nor below."""
        return not (self.size or self.halves or self.directory)

    def half(self, ends: Ends) -> int | None:
        """Return the half that a constraint lies in, if it lies in one."""
        return half_of(ends, self.middle)


@dataclass(slots=True, eq=False)
class PNode:
    """A p-node: how many below ask for its attribute, and lie in neither half of the domain."""

    parent: Bucket
    first: Bucket = field(init=False)
    gain: int = 0
    loss: int = 0

    def count(self, ends: Ends, one: int) -> None:
        """Count a subscription that has come or, with -1, gone."""
        self.gain += one
        if self.first.half(ends) is None:
            self.loss += one


def middle_of(low: float, high: float) -> float:
    """Return where a bucket with these ends is cut."""
    return low + (high - low) / 2


def half_of(ends: Ends, middle: float) -> int | None:
    """Return the half that a constraint lies in, where a bucket is cut there."""
    return LEFT if ends[1] <= middle else RIGHT if ends[0] > middle else None


class BucketTree:
    """Buckets below a root, which has no attribute.

    Parameters
    ----------
    capacity
        How many subscriptions a bucket has, to begin with, before it is too full.

    Attributes
    ----------
    root
        The bucket that all ways begin with.
    home
        Which bucket each subscription is in.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._lists, self._buckets = Chains(), Pool(_COLUMNS)
        self.home: dict[int, Bucket] = {}
        self._found: Numbers = np.empty(0, np.int32)
        self._stack: Numbers = np.empty(0, np.int32)
        self.root = self.bucket(-1, (0.0, 0.0), None)

    @property
    def nbytes(self) -> int:
        """How large the arrays are, and about how large the objects beside them."""
        arrays = (self._lists, self._buckets, self._found, self._stack)
        objects = _OBJECT * len(self._buckets) + _MEMBER * len(self.home)
        return sum(array.nbytes for array in arrays) + objects

    def bucket(self, slot: int, span: Ends, parent: Bucket | PNode | None) -> Bucket:
        """Make a bucket that is empty; who asks for it puts it where it belongs."""
        bucket = Bucket(self._buckets.take(), slot, *span, self._capacity, parent)
        rows = self._buckets.rows
        rows[bucket.row, SLOT] = slot
        rows.view(np.float64)[bucket.row, MIDDLE] = bucket.middle
        return bucket

    def link(self, bucket: Bucket) -> None:
        """Write down the p-directory of a bucket."""
        rows, before = self._buckets.rows, 0
        for node in bucket.directory.values():
            rows[node.first.row, BESIDE] = before
            before = node.first.row
        rows[bucket.row, DIRECTORY] = before

    def smallest(self, bucket: Bucket, ends: Ends) -> Bucket:
        """Return the smallest bucket that a constraint lies in, at or below one."""
        while bucket.divided and (half := bucket.half(ends)) is not None:
            below = bucket.halves.get(half)
            if below is None:
                low, middle, high = bucket.low, bucket.middle, bucket.high
                span = (low, middle) if half == LEFT else (middle, high)
                below = bucket.halves[half] = self.bucket(bucket.slot, span, bucket)
                self._buckets.rows[bucket.row, half] = below.row
            bucket = below
        return bucket

    def of(self, bucket: Bucket) -> list[int]:
        """Return the subscriptions of a bucket."""
        return self._lists.of(int(self._buckets.rows[bucket.row, LIST]))

    def put(self, number: int, bucket: Bucket) -> None:
        """Write a subscription into a bucket's list."""
        head = self._lists.put(int(self._buckets.rows[bucket.row, LIST]), number)
        self._buckets.rows[bucket.row, LIST] = head
        bucket.size += 1
        self.home[number] = bucket

    def drop(self, number: int) -> Bucket:
        """Take a subscription out of its bucket's list; return the bucket."""
        bucket = self.home.pop(number)
        head = self._lists.drop(int(self._buckets.rows[bucket.row, LIST]), number)
        self._buckets.rows[bucket.row, LIST] = head
        bucket.size -= 1
        return bucket

    def cut_off(self, bucket: Bucket, above: Bucket) -> None:
        """Remove a bucket that is empty, from those above it."""
        if bucket.parent is above:
            half = LEFT if above.halves.get(LEFT) is bucket else RIGHT
            del above.halves[half]
            self._buckets.rows[above.row, half] = 0
        else:
            del above.directory[bucket.slot]
            self.link(above)
        self._buckets.give(bucket.row)

    def find(self, table: Table, values: Values, room: int) -> tuple[list[int], int, int, int]:
        """Return what matches, buckets, those with a list, and how many subscriptions were tested.

        Parameters
        ----------
        table, values
            What subscriptions ask for, and an event's values (`graphmatch.published.flat.rows`).
        room
            How many subscriptions there may be.
        """
        rows = self._buckets.rows
        if self._found.size < room:
            self._found = np.empty(room, np.int32)
        if self._stack.size < len(rows):
            self._stack = np.empty(len(rows), np.int32)
        index = rows, rows.view(np.float64), self._lists.rows, table
        place = self._stack, self._found
        count, probes, gates, candidates = _find(index, values, self.root.row, *place)
        numbers: list[int] = self._found[:count].tolist()
        return numbers, probes, gates, candidates


def way(bucket: Bucket) -> Iterator[Bucket | PNode]:
    """Yield a bucket and what is above it, up to the root."""
    above: Bucket | PNode | None = bucket
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
