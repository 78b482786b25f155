"""A tree of equality tests in arrays that grow, for compiled loops.

A node tests one attribute, its *level*; its edges are values, and `STAR` for those who do not care.
A path leads from the top to a leaf, which lists the conjunctions that end there. A node knows its
parent and the value that leads to it, so an edge is found in a hash table that holds nothing but
nodes. Free nodes and places of lists are chained in the arrays. The top, node 0, is no test: its
one edge is the tree. Inserting and removing takes O(length of the path).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from semantic.jit import at, kernel, part

Records: TypeAlias = NDArray[np.int32]

STAR = -1
"""The edge that is followed whatever the value is."""
LEAF = 2**31 - 1
"""The level of leaves, below all others."""
NONE = -1

LEVEL, STARRED, EDGES, PARENT, LABEL, HEAD = range(6)
"""A node: its level, where its `STAR` edge leads, how many values have edges; its parent, and the
edge it hangs on; of a leaf where its list begins. A free node's parent is the next free one."""
NUMBER, END, NEXT, BEFORE, ALSO = range(5)
"""A place of a list: the conjunction and its leaf, the places after and before it, and another
place of the same conjunction."""
MADE, FREE, LIVE, VALUES, PLACES, FREE_PLACE, LISTED = range(7)
"""What `Tree.state` holds: nodes that were made, the first free one, how many are in use, and how
many hang on a value; the same of places."""
_SMALLEST = 16


class Tree(NamedTuple):
    """The arrays.

    Parameters
    ----------
    cells
        The hash table of edges: the node that an edge leads to, or -1; a power of two.
    nodes
        Shape ``(nodes, 6)``.
    places
        Shape ``(places, 5)``.
    first
        By conjunction: its first place, or -1.
    """

    cells: Records
    nodes: Records
    places: Records
    first: Records
    state: NDArray[np.int64]


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
            _fill(cells, tree.cells, tree.nodes)
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
def home(cells: Records, node: int, value: int) -> int:
    """Return the cell in which an edge should stand. No product is larger than 62 bits."""
    h = int(node) * 0x5E3779B1 + int(value) * 0x42B2AE3D
    return (h ^ (h >> 31)) & (cells.size - 1)


@part
def child(tree: Tree, node: int, value: int) -> int:
    """Return where a value's edge leads, or -1."""
    cell = home(tree.cells, node, value)
    while True:
        found = int(tree.cells[at(cell)])
        if found < 0:
            return NONE
        if tree.nodes[at(found), PARENT] == node and tree.nodes[at(found), LABEL] == value:
            return found
        cell = (cell + 1) & (tree.cells.size - 1)


@part
def _put(cells: Records, node: int, value: int, found: int) -> None:
    cell = home(cells, node, value)
    while cells[cell] >= 0:
        cell = (cell + 1) & (cells.size - 1)
    cells[cell] = found


@kernel
def _fill(cells: Records, old: Records, nodes: Records) -> None:
    """Put the edges of one hash table into an empty one."""
    for cell in range(old.size):
        found = old[cell]
        if found >= 0:
            _put(cells, nodes[found, PARENT], nodes[found, LABEL], found)


@part
def _unput(tree: Tree, gone: int) -> None:
    """Take an edge out; those that stand behind it because of it move up."""
    cells, nodes, mask = tree.cells, tree.nodes, tree.cells.size - 1
    hole = home(cells, nodes[gone, PARENT], nodes[gone, LABEL])
    while cells[hole] != gone:
        hole = (hole + 1) & mask
    cell = (hole + 1) & mask
    while cells[cell] >= 0:
        found = cells[cell]
        wanted = home(cells, nodes[found, PARENT], nodes[found, LABEL])
        if (cell - wanted) & mask >= (cell - hole) & mask:
            cells[hole] = found
            hole = cell
        cell = (cell + 1) & mask
    cells[hole] = NONE


@part
def _hang(tree: Tree, node: int, label: int, below: int) -> None:
    """Make an edge; there is none with this label."""
    tree.nodes[below, PARENT], tree.nodes[below, LABEL] = node, label
    if label == STAR:
        tree.nodes[node, STARRED] = below
    else:
        _put(tree.cells, node, label, below)
        tree.nodes[node, EDGES] += 1
        tree.state[VALUES] += 1


@part
def _unhang(tree: Tree, below: int) -> None:
    """Take the edge away that leads to a node."""
    node = tree.nodes[below, PARENT]
    if tree.nodes[below, LABEL] == STAR:
        tree.nodes[node, STARRED] = NONE
    else:
        _unput(tree, below)
        tree.nodes[node, EDGES] -= 1
        tree.state[VALUES] -= 1


@part
def _new_node(tree: Tree, level: int) -> int:
    made = int(tree.state[FREE])
    if made >= 0:
        tree.state[FREE] = tree.nodes[made, PARENT]
    else:
        made = int(tree.state[MADE])
        tree.state[MADE] += 1
    tree.state[LIVE] += 1
    tree.nodes[made, LEVEL], tree.nodes[made, STARRED] = level, NONE
    tree.nodes[made, EDGES], tree.nodes[made, HEAD] = 0, NONE
    return made


@part
def _free_node(tree: Tree, node: int) -> None:
    tree.nodes[node, LEVEL] = NONE
    tree.nodes[node, PARENT] = tree.state[FREE]
    tree.state[FREE] = node
    tree.state[LIVE] -= 1


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
    made = _new_node(tree, level)
    if below >= 0:
        _unhang(tree, below)
        _hang(tree, made, STAR, below)
    _hang(tree, node, label, made)
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
        _unhang(tree, node)
        _free_node(tree, node)
        node = above
    if collapse and node != 0 and tree.nodes[node, EDGES] == 0:
        above, label = int(tree.nodes[node, PARENT]), int(tree.nodes[node, LABEL])
        below = int(tree.nodes[node, STARRED])
        _unhang(tree, node)
        _hang(tree, above, label, below)
        _free_node(tree, node)
