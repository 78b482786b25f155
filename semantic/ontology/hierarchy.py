"""A hierarchy of integers: several parents, cycles allowed, flat arrays throughout.

Nodes are 0 to n - 1. Links are kept in both directions (`semantic.ontology.rows`).
The nodes of a cycle are all above each other, and above themselves: for depth and reachability
each cycle is folded into its least node first. What is left after taking away nodes that are on
no cycle (Kahn) is searched for them; mostly nothing is.

Cost: building is linear in the links. The order of nodes, their depth and the index for `is_a`
(`semantic.ontology.reach`) are made when they are first asked for. A hierarchy of more than
`SMALL` nodes is worked on by compiled loops; a smaller one does without, and gives the same.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from semantic.ontology.reach import ExactReach, Reach, SearchedReach
from semantic.ontology.rows import Ids, Rows, compress, peel

SMALL = 4096
"""Up to this many nodes nothing is compiled, and every pair of nodes has its own bit."""


class Hierarchy:
    """Nodes under nodes.

    Parameters
    ----------
    size
        How many nodes there are.
    children, parents
        Shape ``(links,)``, integers: node ``children[i]`` is directly below ``parents[i]``.
        Loops and repetitions are dropped.
    small
        From how many nodes on loops are compiled.

    Raises
    ------
    ValueError
        When the arrays differ in length, or hold a number that is no node's.

    Examples
    --------
    >>> hierarchy = Hierarchy(4, [0, 0, 1, 2], [1, 2, 3, 3])
    >>> hierarchy.depth.tolist()
    [2, 1, 1, 0]
    >>> hierarchy.is_a(0, 3), hierarchy.is_a(1, 2)
    (True, False)
    >>> hierarchy.lowest_common_ancestors(1, 2)
    [3]
    """

    def __init__(
        self, size: int, children: ArrayLike, parents: ArrayLike, *, small: int = SMALL
    ) -> None:
        below, above = np.asarray(children, np.int32), np.asarray(parents, np.int32)
        if below.shape == above.shape:
            linked = below != above
            if not linked.all():
                below, above = below[linked], above[linked]
        self._compiled = size > small
        self.parents: Rows = compress(below, above, size, compiled=self._compiled)
        self.children: Rows = compress(above, below, size, compiled=self._compiled)

    def __len__(self) -> int:
        """Return how many nodes there are."""
        return len(self.parents)

    @property
    def link_count(self) -> int:
        """How many links there are."""
        return self.parents.ids.size

    @property
    def tops(self) -> list[int]:
        """The nodes without parents."""
        found: list[int] = self.parents.empty().tolist()
        return found

    def ancestors(self, node: int) -> list[int]:
        """Return all nodes above, nearest first, without the node itself if it is in no cycle."""
        return self._walk(self.parents, node)

    def descendants(self, node: int) -> list[int]:
        """Return all nodes below, nearest first, without the node itself if it is in no cycle."""
        return self._walk(self.children, node)

    def _walk(self, rows: Rows, node: int) -> list[int]:
        if not self._compiled:
            return rows.walk(node)
        from semantic.ontology import kernels

        found: list[int] = kernels.walk(rows.start, rows.ids, node).tolist()
        return found

    @property
    def depth(self) -> Ids:
        """The longest way from a top to each node, shape ``(n,)``; a cycle is one node."""
        _, _, _, depth = self._folded
        return depth if self._folds is None else depth[self._folds]

    @cached_property
    def cycles(self) -> list[list[int]]:
        """The groups of nodes that are all above each other, each in ascending order."""
        taken, _ = self._peel(self.parents, self.children)
        if len(taken) == len(self):
            return []
        bottom, _ = self._peel(self.children, self.parents)
        left = np.ones(len(self), np.bool_)
        left[taken] = False
        left[bottom] = False
        import networkx as nx

        graph: nx.DiGraph[int] = nx.DiGraph()
        for node in np.flatnonzero(left).tolist():
            graph.add_edges_from((node, parent) for parent in self.parents[node] if left[parent])
        groups = nx.strongly_connected_components(graph)
        return sorted(sorted(group) for group in groups if len(group) > 1)

    @cached_property
    def _folds(self) -> Ids | None:
        """Which node stands for each: the least of its cycle, or itself; None without cycles."""
        if not self.cycles:
            return None
        folds = np.arange(len(self), dtype=np.int32)
        for cycle in self.cycles:
            folds[cycle] = cycle[0]
        return folds

    @cached_property
    def _folded(self) -> tuple[Rows, Rows, Ids, Ids]:
        """The links with cycles folded, the nodes in order, and their depths."""
        parents, children = self.parents, self.children
        if self._folds is not None:
            below = self._folds[np.repeat(np.arange(len(self)), parents.degrees)]
            folded = Hierarchy(
                len(self), below, self._folds[parents.ids], small=0 if self._compiled else len(self)
            )
            parents, children = folded.parents, folded.children
        return parents, children, *self._peel(parents, children)

    def _peel(self, before: Rows, after: Rows) -> tuple[Ids, Ids]:
        if not self._compiled:
            plain, ways = peel(before, after)
            return np.array(plain, np.int32), np.array(ways, np.int32)
        from semantic.ontology import kernels

        order, depth = np.empty(len(self), np.int32), np.zeros(len(self), np.int32)
        count = kernels.peel(before.degrees, after.start, after.ids, order, depth)
        return order[:count], depth

    @cached_property
    def _reach(self) -> Reach:
        parents, children, order, depth = self._folded
        if self._compiled:
            return SearchedReach(parents, children, order, depth)
        return ExactReach(parents, order.tolist())

    def prepare(self) -> None:
        """Make now what would be made when it is first asked for."""
        _ = self._reach

    def is_a(self, node: int, other: int) -> bool:
        """Whether `node` is `other` or below it."""
        if self._folds is not None:
            node, other = int(self._folds[node]), int(self._folds[other])
        return node == other or self._reach.is_above(node, other)

    def is_a_many(self, nodes: ArrayLike, others: ArrayLike) -> NDArray[np.bool_]:
        """Answer `is_a` for each pair of ``nodes[i]`` and ``others[i]``, shape ``(n,)`` each.

        Raises
        ------
        ValueError
            When the arrays differ in length, or hold a number that is no node's.
        """
        below, above = np.asarray(nodes), np.asarray(others)
        if below.shape != above.shape or below.ndim != 1:
            raise ValueError(f"pairs are arrays of one length, not of {below.shape}, {above.shape}")
        if not below.size:
            return np.zeros(0, np.bool_)
        if min(below.min(), above.min()) < 0 or max(below.max(), above.max()) >= len(self):
            raise ValueError(f"not a node: nodes are 0 to {len(self) - 1}")
        pairs = np.stack([below, above]).astype(np.int32)
        return self._reach.are_above(pairs if self._folds is None else self._folds[pairs])

    def lowest_common_ancestors(self, node: int, other: int) -> list[int]:
        """Return the common ancestors-or-self with no common ancestor-or-self below them.

        The nodes of a cycle count as one: all of them are returned, or none.
        """
        common = {node, *self.ancestors(node)} & {other, *self.ancestors(other)}
        above = {parent for shared in common for parent in self._outside(shared)}
        return sorted(common - above)

    def _outside(self, node: int) -> list[int]:
        """Return the parents that are in no cycle with a node, and what is in a cycle with them."""
        if self._folds is None:
            return self.parents[node]
        own = self._folds[node]
        roots = {self._folds[parent] for parent in self.parents[node]} - {own}
        if not roots:
            return []
        return [member for root in roots for member in self._members.get(int(root), [int(root)])]

    @cached_property
    def _members(self) -> dict[int, list[int]]:
        return {cycle[0]: cycle for cycle in self.cycles}
