"""Ranges of numbers in a binary tree.

The line is divided where a range begins or ends; a node of the tree is a part of the line, and its
children are the two parts that it is divided into. A range is kept at the topmost nodes that lie in
it. Those that hold a number are at the nodes on the way down to it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from math import inf, nextafter
from sys import getsizeof
from typing import Generic, TypeAlias, TypeVar

Item = TypeVar("Item", bound=Hashable)


@dataclass(slots=True, eq=False)
class _Node(Generic[Item]):
    """A part of the line; below `split` is the left one, and the rest is the right one."""

    items: dict[Item, None] = field(default_factory=dict)
    split: float = inf
    children: tuple[_Node[Item], _Node[Item]] | None = None


class IntervalTree(Generic[Item]):
    """Items with closed ranges of numbers; a range that begins at infinity is empty.

    Cost: a look-up takes as many steps as the tree is deep, O(log n) where ranges come in random
    order; a range has O(log n) entries then.

    Examples
    --------
    >>> tree = IntervalTree[str]()
    >>> tree.insert(0, 5, "a")
    >>> tree.insert(4, 9, "b")
    >>> [sorted(tree.at(number)) for number in (0, 5, 6)]
    [['a'], ['a', 'b'], ['b']]
    >>> tree.remove(0, 5, "a")
    >>> list(tree.at(5)), len(tree)
    (['b'], 9)
    """

    def __init__(self) -> None:
        self._root = _Node[Item]()

    def __len__(self) -> int:
        """Return how many nodes there are."""
        return sum(1 for _ in self._all())

    def __bool__(self) -> bool:
        """Whether there are items."""
        return bool(self._root.items) or self._root.children is not None

    @property
    def nbytes(self) -> int:
        """How large nodes and their dictionaries are, without the items."""
        return sum(getsizeof(node) + getsizeof(node.items) for node in self._all())

    def insert(self, low: float, high: float, item: Item) -> None:
        """Put an item in; parts of the line are divided where they must be."""
        end = nextafter(high, inf)
        walk: _Walk[Item] = [(self._root, -inf, inf)] if low < end else []
        for node, first, last in walk:
            if low <= first and last <= end:
                node.items[item] = None
                continue
            if node.children is None:
                node.split = low if low > first else end
                node.children = _Node(), _Node()
            walk += _met(node, first, last, low, end)

    def remove(self, low: float, high: float, item: Item) -> None:
        """Take out what was put in; parts that nobody divides any more become one."""
        end = nextafter(high, inf)
        walk: _Walk[Item] = [(self._root, -inf, inf)] if low < end else []
        for node, first, last in walk:
            if low <= first and last <= end:
                del node.items[item]
            else:
                walk += _met(node, first, last, low, end)
        for node, _, _ in reversed(walk):
            if node.children and not any(c.items or c.children for c in node.children):
                node.children = None

    def at(self, number: float) -> Iterator[Item]:
        """Yield the items whose ranges hold a number, each once."""
        node = self._root
        while True:
            yield from node.items
            if node.children is None:
                return
            node = node.children[number >= node.split]

    def _all(self) -> Iterator[_Node[Item]]:
        queue = [self._root]
        for node in queue:
            yield node
            queue += node.children or ()


_Walk: TypeAlias = list[tuple[_Node[Item], float, float]]


def _met(
    node: _Node[Item], first: float, last: float, low: float, end: float
) -> Iterator[tuple[_Node[Item], float, float]]:
    """Yield the children that a range has a part of, with their ends."""
    assert node.children is not None
    if low < node.split:
        yield node.children[0], first, node.split
    if end > node.split:
        yield node.children[1], node.split, last
