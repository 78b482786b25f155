"""The nodes of a tree of equality tests, and the hash table of the edges between them, in arrays.

An edge is found by the node that it begins at and its value. As a node knows its parent and the
value that leads to it, the table holds nothing but nodes.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.published.jit import at, kernel, part

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
def fill(cells: Records, old: Records, nodes: Records) -> None:
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
def hang(tree: Tree, node: int, label: int, below: int) -> None:
    """Make an edge; there is none with this label."""
    tree.nodes[below, PARENT], tree.nodes[below, LABEL] = node, label
    if label == STAR:
        tree.nodes[node, STARRED] = below
    else:
        _put(tree.cells, node, label, below)
        tree.nodes[node, EDGES] += 1
        tree.state[VALUES] += 1


@part
def unhang(tree: Tree, below: int) -> None:
    """Take the edge away that leads to a node."""
    node = tree.nodes[below, PARENT]
    if tree.nodes[below, LABEL] == STAR:
        tree.nodes[node, STARRED] = NONE
    else:
        _unput(tree, below)
        tree.nodes[node, EDGES] -= 1
        tree.state[VALUES] -= 1


@part
def new_node(tree: Tree, level: int) -> int:
    """Make a node, or take a free one."""
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
def free_node(tree: Tree, node: int) -> None:
    """Give a node back."""
    tree.nodes[node, LEVEL] = NONE
    tree.nodes[node, PARENT] = tree.state[FREE]
    tree.state[FREE] = node
    tree.state[LIVE] -= 1
