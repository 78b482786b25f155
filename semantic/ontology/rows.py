"""The links of a graph in compressed sparse rows: two flat arrays of int32.

The neighbours of node *v* are ``ids[start[v]:start[v + 1]]``, each once, in the order in which
they were given. Cost: 4 bytes a node and 4 bytes a link; building is linear, or one sort where
the loop is not compiled.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[np.int32]
"""Node numbers, or places in an array of them."""


class Rows:
    """The neighbours of each node in one direction.

    Parameters
    ----------
    start
        Shape ``(nodes + 1,)``: where each row begins.
    ids
        Shape ``(links,)``: the neighbours, row by row.

    Examples
    --------
    >>> rows = compress(np.array([0, 2, 0, 0]), np.array([2, 1, 1, 2]), 3)
    >>> rows[0], rows[1], rows[2]
    ([2, 1], [], [1])
    """

    def __init__(self, start: Ids, ids: Ids) -> None:
        self.start = start
        self.ids = ids
        self._start = start.data  # gives plain integers, and fast ones
        self._ids = ids.data

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.start) - 1

    def __getitem__(self, node: int) -> list[int]:
        """Return the neighbours of a node."""
        return self._ids[self._start[node] : self._start[node + 1]].tolist()

    @property
    def degrees(self) -> Ids:
        """How many neighbours each node has."""
        return np.diff(self.start)

    def empty(self) -> Ids:
        """Return the nodes without neighbours."""
        return np.flatnonzero(self.start[1:] == self.start[:-1]).astype(np.int32)

    def walk(self, node: int) -> list[int]:
        """Return all nodes that can be reached in one step or more, nearest first."""
        seen = dict.fromkeys(self[node])
        queue = list(seen)
        for current in queue:
            for other in self[current]:
                if other not in seen:
                    seen[other] = None
                    queue.append(other)
        return queue


def compress(of: Ids, to: Ids, size: int, *, compiled: bool = False) -> Rows:
    """Return the rows of the links from ``of[i]`` to ``to[i]``, each link once.

    Raises
    ------
    ValueError
        When the arrays differ in length, or hold a number that is no node's.
    """
    if of.shape != to.shape or of.ndim != 1:
        raise ValueError(f"links are two arrays of one length, not of {of.shape} and {to.shape}")
    if of.size and (min(of.min(), to.min()) < 0 or max(of.max(), to.max()) >= size):
        raise ValueError(f"a link's end is not a node: nodes are 0 to {size - 1}")
    if compiled:
        from semantic.ontology import kernels

        return Rows(*kernels.rows(of, to, size))
    _, first = np.unique(of.astype(np.int64) * size + to, return_index=True)
    first.sort()
    of, to = of[first], to[first]
    start = np.zeros(size + 1, np.int32)
    np.cumsum(np.bincount(of, minlength=size), out=start[1:])
    return Rows(start, to[np.argsort(of, kind="stable")].astype(np.int32))


def peel(before: Rows, after: Rows) -> tuple[list[int], list[int]]:
    """Take away nodes with nothing before them, again and again (Kahn, CACM 5(11), 1962).

    Returns the nodes that could be taken away, in that order, and the longest way to each node.
    What is left over is on a cycle or after one.
    """
    left = before.degrees.tolist()
    depth = [0] * len(left)
    order = [node for node, count in enumerate(left) if not count]
    for node in order:
        for other in after[node]:
            depth[other] = max(depth[other], depth[node] + 1)
            left[other] -= 1
            if not left[other]:
                order.append(other)
    return order, depth
