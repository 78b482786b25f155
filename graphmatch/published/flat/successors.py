"""Successor sets of a tree of equality tests: where a search goes on when its path ends.

Aguilera and others (PODC 1999, section 5): when the edges of values are followed before those of
`STAR`, a search that has followed a value knows which other paths that value is on, too. A node's
*successor set* leads to them. It has the nodes that are implied by the tests on the path to it,
and that no other of them leads to:

- of a node that hangs on a `STAR` edge, none;
- of a node that hangs on a value: the node beside it, on the `STAR` edge of its parent; and for
  each successor of the parent the node that the same value leads to from there, or where there is
  none, that one's `STAR` edge and successors in its place. A successor that tests another
  attribute stays as it is.

So each path with `STAR` is in the set of one other path: of the one with a value in place of the
last `STAR`. A search takes a node's `STAR` edge and successors only where the event's value has no
edge, and comes to each node at most once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphmatch.published.flat.value_nodes import (
    LABEL,
    LEVEL,
    LIVE,
    MADE,
    PARENT,
    STAR,
    STARRED,
    Records,
    Tree,
    child,
)
from graphmatch.published.jit import kernel


class SuccessorSets(NamedTuple):
    """The sets of all nodes.

    Parameters
    ----------
    begin, size
        Shape ``(nodes,)``: where in `members` a node's set begins, and how large it is.
    members
        The nodes.
    """

    begin: NDArray[np.int64]
    size: Records
    members: Records

    def of(self, node: int) -> list[int]:
        """Return a node's successors."""
        begin = int(self.begin[node])
        found: list[int] = self.members[begin : begin + int(self.size[node])].tolist()
        return found


def no_sets() -> SuccessorSets:
    """Return what stands for no sets."""
    return SuccessorSets(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))


def successor_sets(tree: Tree) -> SuccessorSets:
    """Make the sets of a tree, from the top down.

    Cost: O(nodes * log nodes + what is in the sets).

    Examples
    --------
    The tree of <1, 2>, <1, *> and <*, 2>: the second is beside the first, and the third is implied.

    >>> from graphmatch.published.flat.value_tree import ValueTree
    >>> tree = ValueTree(collapse=False)
    >>> for number, path in enumerate([[(0, 1), (1, 2)], [(0, 1), (1, STAR)], [(0, STAR), (1, 2)]]):
    ...     tree.insert(number, path)
    >>> places = tree.arrays.places
    >>> leaf = {int(end): number for number, end, *_ in places[:3].tolist()}
    >>> sets = successor_sets(tree.arrays)
    >>> [sorted(leaf[node] for node in sets.of(own)) for own in leaf]
    [[1, 2], [], []]
    """
    made = int(tree.state[MADE])
    nodes = tree.nodes[:made]
    hanging = np.flatnonzero((nodes[:, LEVEL] >= 0) & (nodes[:, LABEL] != STAR))
    levels = nodes[nodes[hanging, PARENT], LEVEL]
    order = hanging[np.argsort(levels, kind="stable")].astype(np.int32)
    sets = SuccessorSets(
        np.zeros(made, np.int64), np.zeros(made, np.int32), np.empty(2 * made, np.int32)
    )
    stack = np.empty(int(tree.state[LIVE]), np.int32)
    done, used = 0, 0
    while True:
        done, used = _annotate(tree, sets, order, stack, done, used)
        if done == order.size:
            return sets._replace(members=sets.members[:used].copy())
        sets = sets._replace(members=np.concatenate([sets.members, sets.members]))


@kernel
def _annotate(
    tree: Tree, sets: SuccessorSets, order: Records, stack: Records, done: int, used: int
) -> tuple[int, int]:
    """Make the sets of nodes on edges of values, as far as there is room: how many, and its end."""
    nodes, members = tree.nodes, sets.members
    for n in range(done, order.size):
        own = order[n]
        parent, value = nodes[own, PARENT], nodes[own, LABEL]
        level = nodes[parent, LEVEL]
        start, top = used, -1
        if nodes[parent, STARRED] >= 0:
            if used == members.size:
                return n, start
            members[used] = nodes[parent, STARRED]
            used += 1
        for place in range(sets.begin[parent], sets.begin[parent] + sets.size[parent]):
            top += 1
            stack[top] = members[place]
        while top >= 0:
            node = stack[top]
            top -= 1
            found = node
            if nodes[node, LEVEL] == level:
                found = child(tree, node, value)
                if found < 0:
                    found = nodes[node, STARRED]
                    for place in range(sets.begin[node], sets.begin[node] + sets.size[node]):
                        top += 1
                        stack[top] = members[place]
            if found >= 0:
                if used == members.size:
                    return n, start
                members[used] = found
                used += 1
        sets.begin[own], sets.size[own] = start, used - start
    return order.size, used
