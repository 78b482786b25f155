"""Compiled loops over a large hierarchy: levels, labels, reachability, walks.

Every function gets flat arrays and gives flat arrays; `semantic.ontology.rows`, `reach` and
`hierarchy` check what goes in. A graph is compressed sparse rows, as in `semantic.ontology.rows`.
Importing this module imports numba; with ``NUMBA_DISABLE_JIT=1`` the functions run as plain
Python.

Sources: Kahn, Topological sorting of large networks, CACM 5(11), 1962; Yildirim, Chaoji, Zaki,
GRAIL, PVLDB 3(1), 2010 (the intervals); Seufert et al., FERRARI, ICDE 2013, section 3 (intervals
that are certain, and those that only may be); Pohl, Bi-directional search, Machine Intelligence 6,
1971 (the side with fewer links to follow goes first).
"""

from __future__ import annotations

from typing import TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[np.int32]
Bits: TypeAlias = NDArray[np.uint64]

DEPTH, POST, TREE, LOW, BACK_POST, BACK_TREE, BACK_LOW, RANK, UP, UPS, DOWN, DOWNS = range(12)
"""The columns of a node's record, which fits into a line of a processor's cache: its depth, the
labels of two walks, its bit among the widest classes (or -1), and where in the arrays of links
its own begin and how many they are."""


@numba.njit(cache=True)
def rows(of: Ids, to: Ids, size: int) -> tuple[Ids, Ids]:
    """Return the links in compressed sparse rows, each once, in their order: a counting sort."""
    start = np.zeros(size + 1, np.int32)
    for link in range(of.size):
        start[of[link] + 1] += 1
    for node in range(size):
        start[node + 1] += start[node]
    ids = np.empty(of.size, np.int32)
    free = start[:-1].copy()
    for link in range(of.size):
        ids[free[of[link]]] = to[link]
        free[of[link]] += 1
    seen = np.full(size, -1, np.int32)
    end = 0
    for node in range(size):
        begin, stop = start[node], free[node]
        start[node] = end
        for place in range(begin, stop):
            if seen[ids[place]] != node:
                seen[ids[place]] = node
                ids[end] = ids[place]
                end += 1
    start[size] = end
    return start, ids[:end].copy()


@numba.njit(cache=True)
def peel(before: Ids, next_start: Ids, next_ids: Ids, order: Ids, depth: Ids) -> int:
    """Take away nodes with nothing before them, again and again; return how many could be.

    `before` holds how many neighbours each node has on the side to start from, and is used up.
    `order` gets the nodes as they are taken, `depth` the longest way to each.
    """
    count = 0
    for node in range(before.size):
        if before[node] == 0:
            order[count] = node
            count += 1
    place = 0
    while place < count:
        node = order[place]
        place += 1
        for edge in range(next_start[node], next_start[node + 1]):
            other = next_ids[edge]
            depth[other] = max(depth[other], depth[node] + 1)
            before[other] -= 1
            if before[other] == 0:
                order[count] = other
                count += 1
    return count


@numba.njit(cache=True)
def label(start: Ids, ids: Ids, tops: Ids, records: Ids, first: int, step: int) -> None:
    """Walk the graph down from its tops, depth first, and number the nodes as they are left.

    Columns ``first`` to ``first + 2`` of `records` get a node's own number, the least number in
    its part of the tree of the walk, and the least number of all that is below it. `step` is 1
    or -1: the neighbours in their order, or the other way round.
    """
    size = start.size - 1
    edge = np.zeros(size, np.int32)
    stack = np.empty(size + 1, np.int32)
    post = first
    tree, low = first + 1, first + 2
    number = 0
    for index in range(tops.size):
        top = tops[index] if step > 0 else tops[tops.size - 1 - index]
        stack[0] = top
        height = 1
        records[top, tree] = number
        records[top, low] = number
        while height:
            node = stack[height - 1]
            degree = start[node + 1] - start[node]
            if edge[node] < degree:
                place = edge[node] if step > 0 else degree - 1 - edge[node]
                edge[node] += 1
                child = ids[start[node] + place]
                if records[child, post] >= 0:  # left already
                    records[node, low] = min(records[node, low], records[child, low])
                else:
                    records[child, tree] = number
                    records[child, low] = number
                    stack[height] = child
                    height += 1
            else:
                records[node, post] = number
                number += 1
                height -= 1
                if height:
                    above = stack[height - 1]
                    records[above, low] = min(records[above, low], records[node, low])


@numba.njit(cache=True)
def share(order: Ids, up_ids: Ids, records: Ids) -> NDArray[np.float64]:
    """Return about how much is below each node: a node's share is parted among its parents."""
    found = np.ones(order.size)
    for place in range(order.size - 1, -1, -1):
        node = order[place]
        begin, count = records[node, UP], records[node, UPS]
        for edge in range(begin, begin + count):
            found[up_ids[edge]] += found[node] / count
    return found


@numba.njit(cache=True)
def mark(order: Ids, up_ids: Ids, records: Ids, bits: Bits) -> None:
    """Set in row *v* of `bits` the bits of all ranked nodes above *v*."""
    for place in range(order.size):
        node = order[place]
        begin = records[node, UP]
        for edge in range(begin, begin + records[node, UPS]):
            above = up_ids[edge]
            for word in range(bits.shape[1]):
                bits[node, word] |= bits[above, word]
            rank = records[above, RANK]
            if rank >= 0:
                bits[node, rank >> 6] |= np.uint64(1) << np.uint64(rank & 63)


@numba.njit(cache=True, inline="always")
def decide(records: Ids, bits: Bits, low: int, high: int) -> int:
    """Say without a search whether `high` is above `low`: 1 yes, 0 no, -1 not known."""
    if records[low, DEPTH] <= records[high, DEPTH]:
        return 0
    rank = records[high, RANK]
    if rank >= 0:
        return 1 if bits[low, rank >> 6] >> np.uint64(rank & 63) & np.uint64(1) else 0
    own, other = records[low, POST], records[high, POST]
    if own > other or records[low, LOW] < records[high, LOW]:
        return 0
    if own >= records[high, TREE]:
        return 1
    own, other = records[low, BACK_POST], records[high, BACK_POST]
    if own > other or records[low, BACK_LOW] < records[high, BACK_LOW]:
        return 0
    if own >= records[high, BACK_TREE]:
        return 1
    return -1


@numba.njit(cache=True)
def search(
    up_ids: Ids,
    down_ids: Ids,
    records: Ids,
    bits: Bits,
    scratch: Ids,
    stamp: int,
    low: int,
    high: int,
) -> bool:
    """Look for a way from `low` up to `high` from both ends, where fewer links are to follow.

    `scratch` has three rows: what was seen (`stamp` from below, ``stamp + 1`` from above), and
    a queue for either side.
    """
    seen, up, down = scratch[0], scratch[1], scratch[2]
    seen[low], seen[high] = stamp, stamp + 1
    up[0], down[0] = low, high
    up_place, up_end, down_place, down_end = 0, 1, 0, 1
    up_links, down_links = records[low, UPS], records[high, DOWNS]
    while up_place < up_end and down_place < down_end:
        if up_links <= down_links:
            up_links, level = 0, up_end
            while up_place < level:
                node = up[up_place]
                up_place += 1
                begin = records[node, UP]
                for edge in range(begin, begin + records[node, UPS]):
                    above = up_ids[edge]
                    if seen[above] == stamp:
                        continue
                    if seen[above] == stamp + 1:
                        return True
                    known = decide(records, bits, above, high)
                    if known == 1:
                        return True
                    if known < 0:
                        seen[above] = stamp
                        up[up_end] = above
                        up_end += 1
                        up_links += records[above, UPS]
        else:
            down_links, level = 0, down_end
            while down_place < level:
                node = down[down_place]
                down_place += 1
                begin = records[node, DOWN]
                for edge in range(begin, begin + records[node, DOWNS]):
                    below = down_ids[edge]
                    if seen[below] == stamp + 1:
                        continue
                    if seen[below] == stamp:
                        return True
                    known = decide(records, bits, low, below)
                    if known == 1:
                        return True
                    if known < 0:
                        seen[below] = stamp + 1
                        down[down_end] = below
                        down_end += 1
                        down_links += records[below, DOWNS]
    return False


@numba.njit(cache=True, nogil=True)
def reaches(
    up_ids: Ids,
    down_ids: Ids,
    records: Ids,
    bits: Bits,
    scratch: Ids,
    pairs: Ids,
    found: NDArray[np.bool_],
) -> int:
    """Write into `found` whether ``pairs[1, i]`` is ``pairs[0, i]`` or above it.

    `scratch` is three rows of zeros, a place for each node. Returns how many pairs had to be
    searched.
    """
    stamp, searched = 1, 0
    for index in range(found.size):
        low, high = pairs[0, index], pairs[1, index]
        known = 1 if low == high else decide(records, bits, low, high)
        if known < 0:
            if stamp > 2**31 - 8:
                scratch[0, :] = 0
                stamp = 1
            found[index] = search(up_ids, down_ids, records, bits, scratch, stamp, low, high)
            stamp += 2
            searched += 1
        else:
            found[index] = known == 1
    return searched


@numba.njit(cache=True)
def walk(start: Ids, ids: Ids, node: int) -> Ids:
    """Return all nodes that can be reached in one step or more, nearest first."""
    size = start.size - 1
    seen = np.zeros(size, np.bool_)
    queue = np.empty(size, np.int32)
    place, end = -1, 0
    while place < end:
        current = node if place < 0 else queue[place]
        place += 1
        for edge in range(start[current], start[current + 1]):
            other = ids[edge]
            if not seen[other]:
                seen[other] = True
                queue[end] = other
                end += 1
    return queue[:end].copy()
