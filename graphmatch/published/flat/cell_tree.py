"""The tree of H-Tree in arrays: a node's cells lead to nodes, those of the last level to lists.

Nodes and lists are rows of pools (`graphmatch.published.flat.pool`). Which cells a constraint
is in is `graphmatch.published.reconstructed.htree`'s business.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.published.flat import pool
from graphmatch.published.flat.buckets import Numbers, Places, Values
from graphmatch.published.flat.pool import Cells, Free
from graphmatch.published.flat.rows import Marks, Table, passes
from graphmatch.published.jit import kernel

Spans: TypeAlias = NDArray[np.int64]
"""Shape ``(levels, 2)``: the first and the last cell."""

ROOT = 1

Taken: TypeAlias = tuple[Cells, Free]
"""Nodes: how many cells lead on, then where each does, the last for those who do not ask."""


@kernel
def insert(tree: Taken, lists: Taken, spans: Spans, copies: int, number: int) -> None:
    """Put a number into the lists of all combinations of cells; rows have to be free."""
    nodes, free = tree
    blocks, free_blocks = lists
    for copy in range(copies):
        node, rest = ROOT, copy
        for level in range(spans.shape[0]):
            first, last = spans[level, 0], spans[level, 1]
            width = last - first + 1
            column = 1 + first + rest % width
            rest //= width
            child = nodes[node, column]
            if child == 0:
                nodes[node, 0] += 1
            if level == spans.shape[0] - 1:
                nodes[node, column] = pool.put(blocks, free_blocks, child, number)
                break
            if child == 0:
                child = pool.take(nodes, free)
                nodes[node, column] = child
            node = child


@kernel
def remove(tree: Taken, lists: Taken, spans: Spans, copies: int, number: int, path: Places) -> None:
    """Take a number out of them."""
    nodes, free = tree
    blocks, free_blocks = lists
    depth = spans.shape[0]
    for copy in range(copies):
        node, rest = ROOT, copy
        for level in range(depth):
            width = spans[level, 1] - spans[level, 0] + 1
            column = 1 + spans[level, 0] + rest % width
            rest //= width
            path[level] = node * nodes.shape[1] + column
            if level < depth - 1:
                node = nodes[node, column]
        left = pool.drop(blocks, free_blocks, nodes[node, column], number)
        for level in range(depth - 1, -1, -1):
            node, column = path[level] // nodes.shape[1], path[level] % nodes.shape[1]
            nodes[node, column] = left
            if left != 0:
                break
            nodes[node, 0] -= 1
            if nodes[node, 0] != 0 or node == ROOT:
                break
            pool.give(nodes, free, node)


@kernel
def find(
    index: tuple[Cells, Cells, Table],
    values: Values,
    near: Spans,
    work: tuple[Spans, Marks, Numbers],
) -> tuple[int, int, int, int]:
    """Find what matches: how many did, cells that were looked up and led on, and entries tested."""
    nodes, blocks, table = index
    stack, marks, found = work
    count, probes, gates, candidates = 0, 0, 0, 0
    stack[0, 0], stack[0, 1] = ROOT, 0
    top = 1
    depth, anywhere = near.shape[0], nodes.shape[1] - 1
    while top:
        top -= 1
        node, level = stack[top, 0], stack[top, 1]
        for turn in range(near[level, 0], near[level, 1] + 2):
            column = anywhere if turn > near[level, 1] else 1 + turn
            child = nodes[node, column]
            probes += 1
            if child == 0:
                continue
            gates += 1
            if level < depth - 1:
                stack[top, 0], stack[top, 1] = child, level + 1
                top += 1
                continue
            while child:
                for place in range(pool.FIRST, pool.FIRST + blocks[child, pool.SIZE]):
                    number = blocks[child, place]
                    candidates += 1
                    if marks[number] == 0 and passes(table, number, values):
                        marks[number] = 1
                        found[count] = number
                        count += 1
                child = blocks[child, pool.NEXT]
    for place in range(count):
        marks[found[place]] = 0
    return count, probes, gates, candidates
