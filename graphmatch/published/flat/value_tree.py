"""A tree of equality tests in arrays that grow, for compiled loops.

A node tests one attribute, its *level*; its edges are values, and `STAR` for those who do not care.
A path leads from the top to a leaf, which lists the conjunctions that end there. Nodes and edges
are `graphmatch.published.flat.value_nodes`. Free nodes and places of lists are chained in the
arrays. The top, node 0, is no test: its one edge is the tree. Inserting and removing takes
O(length of the path).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphmatch.published.flat.value_nodes import (
    ALSO,
    BEFORE,
    EDGES,
    END,
    FREE,
    FREE_PLACE,
    HEAD,
    LABEL,
    LEAF,
    LEVEL,
    LISTED,
    LIVE,
    MADE,
    NEXT,
    NONE,
    NUMBER,
    PARENT,
    PLACES,
    STAR,
    STARRED,
    VALUES,
    Records,
    Tree,
    child,
    fill,
    free_node,
    hang,
    new_node,
    unhang,
)
from graphmatch.published.jit import kernel, part

_SMALLEST = 16


class ValueTree:
    """Conjunctions by number, on paths of values.

    Parameters
    ----------
    collapse
        Whether a node whose only edge is `STAR` is taken out when others go.

    Examples
    --------
    >>> tree = ValueTree()
    >>> tree.insert(7, [(0, 1), (2, 3)])
    >>> tree.insert(8, [(0, 1)])
    >>> tree.nodes, tree.edges
    (4, 3)
    >>> tree.remove(7)
    >>> tree.nodes, tree.edges
    (2, 1)
    """

    def __init__(self, *, collapse: bool = True) -> None:
        self._collapse = collapse
        state = np.zeros(7, np.int64)
        state[FREE] = state[FREE_PLACE] = NONE
        nodes = np.full((_SMALLEST, 6), NONE, np.int32)
        nodes[0, EDGES] = 0
        state[MADE] = state[LIVE] = 1
        self.arrays = Tree(
            np.full(_SMALLEST, NONE, np.int32),
            nodes,
            np.zeros((_SMALLEST, 5), np.int32),
            np.full(_SMALLEST, NONE, np.int32),
            state,
        )

    @property
    def nodes(self) -> int:
        """How many nodes there are, with leaves, without the top."""
        return int(self.arrays.state[LIVE]) - 1

    @property
    def edges(self) -> int:
        """How many edges there are between nodes."""
        return max(self.nodes - 1, 0)

    @property
    def nbytes(self) -> int:
        """How large the arrays are."""
        return sum(array.nbytes for array in self.arrays)

    def insert(self, number: int, path: Sequence[tuple[int, int]]) -> None:
        """Put a conjunction at the end of a path.

        Parameters
        ----------
        path
            Levels, ascending, and the value or `STAR` of each.
        """
        self._make_room(number, len(path))
        steps = np.array(path, np.int32).reshape(-1, 2)
        _insert(self.arrays, number, steps)

    def remove(self, number: int) -> None:
        """Take a conjunction off all paths that it is on."""
        _remove(self.arrays, number, self._collapse)

    def _make_room(self, number: int, length: int) -> None:
        tree, state = self.arrays, self.arrays.state
        if 2 * (int(state[VALUES]) + length) > len(tree.cells):
            size = len(tree.cells)
            while 2 * (int(state[VALUES]) + length) > size:
                size *= 2
            cells = np.full(size, NONE, np.int32)
            fill(cells, tree.cells, tree.nodes)
            tree = tree._replace(cells=cells)
        self.arrays = tree._replace(
            nodes=_grown(tree.nodes, int(state[MADE]) + 2 * length + 2),
            places=_grown(tree.places, int(state[PLACES]) + 1),
            first=_grown(tree.first, number + 1),
        )


def _grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    """Return an array with room for so many rows, half as large again where there is too little."""
    if size <= len(array):
        return array
    larger = np.full((max(size, len(array) * 3 // 2), *array.shape[1:]), NONE, array.dtype)
    larger[: len(array)] = array
    return larger


@part
def _reached(tree: Tree, node: int, label: int, level: int) -> int:
    """Return the node for a level behind an edge: made, where there is none, above what is deeper.

    Nodes of levels above it are passed on their `STAR` edges.
    """
    below = int(tree.nodes[node, STARRED]) if label == STAR else child(tree, node, label)
    while below >= 0 and tree.nodes[below, LEVEL] < level:
        node, label = below, STAR
        below = int(tree.nodes[node, STARRED])
    if below >= 0 and tree.nodes[below, LEVEL] == level:
        return below
    made = new_node(tree, level)
    if below >= 0:
        unhang(tree, below)
        hang(tree, made, STAR, below)
    hang(tree, node, label, made)
    return made


@kernel
def _insert(tree: Tree, number: int, path: Records) -> None:
    node, label = 0, STAR
    for step in range(path.shape[0]):
        node = _reached(tree, node, label, path[step, 0])
        label = int(path[step, 1])
    leaf = _reached(tree, node, label, LEAF)
    place = int(tree.state[FREE_PLACE])
    if place >= 0:
        tree.state[FREE_PLACE] = tree.places[place, NEXT]
    else:
        place = int(tree.state[PLACES])
        tree.state[PLACES] += 1
    tree.state[LISTED] += 1
    after = tree.nodes[leaf, HEAD]
    tree.places[place, NUMBER], tree.places[place, END] = number, leaf
    tree.places[place, NEXT], tree.places[place, BEFORE] = after, NONE
    tree.places[place, ALSO] = tree.first[number]
    if after >= 0:
        tree.places[after, BEFORE] = place
    tree.nodes[leaf, HEAD] = tree.first[number] = place


@kernel
def _remove(tree: Tree, number: int, collapse: bool) -> None:
    place = int(tree.first[number])
    tree.first[number] = NONE
    while place >= 0:
        leaf, also = int(tree.places[place, END]), int(tree.places[place, ALSO])
        before, after = tree.places[place, BEFORE], tree.places[place, NEXT]
        if after >= 0:
            tree.places[after, BEFORE] = before
        if before >= 0:
            tree.places[before, NEXT] = after
        else:
            tree.nodes[leaf, HEAD] = after
        tree.places[place, NEXT] = tree.state[FREE_PLACE]
        tree.state[FREE_PLACE] = place
        tree.state[LISTED] -= 1
        if tree.nodes[leaf, HEAD] < 0:
            _prune(tree, leaf, collapse)
        place = also


@part
def _prune(tree: Tree, node: int, collapse: bool) -> None:
    """Take a leaf out, and nodes above it that have no edges left, or (collapsed) only `STAR`."""
    while node != 0 and tree.nodes[node, EDGES] == 0 and tree.nodes[node, STARRED] < 0:
        above = int(tree.nodes[node, PARENT])
        unhang(tree, node)
        free_node(tree, node)
        node = above
    if collapse and node != 0 and tree.nodes[node, EDGES] == 0:
        above, label = int(tree.nodes[node, PARENT]), int(tree.nodes[node, LABEL])
        below = int(tree.nodes[node, STARRED])
        unhang(tree, node)
        hang(tree, above, label, below)
        free_node(tree, node)
