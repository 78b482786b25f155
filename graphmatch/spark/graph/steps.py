"""In which order tables are joined, and which joins several subscriptions share.

A branch begins with its smallest table, and goes on with the smallest that shares a variable with
what is joined already. Constants taken out, what is left of an ordered branch is its *shape*: for
each step, which columns of the step's table are variables that are known by then. Shapes are kept
as a tree: those that begin alike share the nodes of their beginning, and each node is joined once,
for all branches that pass through it. The constants are parameters: a node's table has a row's
*prefix*, the number of a distinct sequence of atoms, so branches that begin with the same atoms
share these rows, too.

Cost: a join a node of the tree, however many subscriptions there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from graphmatch.spark.graph.atoms import Part


@dataclass(frozen=True, slots=True)
class Way:
    """One branch of a question, to be joined.

    Parameters
    ----------
    question
        The question's number.
    parts
        Its patterns.
    names
        The variables that a solution binds.
    visible
        Those that the query's text has.
    is_once
        Whether equal solutions count once.
    """

    question: int
    parts: tuple[Part, ...]
    names: tuple[str, ...]
    visible: frozenset[str]
    is_once: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """Where a branch ends: rows of a node's table that are its solutions.

    Parameters
    ----------
    prefix
        Which rows.
    question
        Whose solutions they are.
    places
        For each name that a solution binds its column; -1 where the branch has no such variable.
    visible
        The columns of variables that the query's text has.
    is_once
        Whether equal solutions count once.
    """

    prefix: int
    question: int
    places: tuple[int, ...]
    visible: tuple[int, ...]
    is_once: bool


@dataclass(slots=True)
class Node:
    """A join: the table of the node above and the tables of atoms.

    Parameters
    ----------
    above
        The node whose rows are joined; ``None`` for what begins with a table.
    step
        For each column of the atoms' tables the variable's number; those below `known` are joined.
    known
        How many variables the node above has.
    number
        The node's, in the order of the tree.
    """

    above: Node | None
    step: tuple[int, ...]
    known: int
    number: int
    nodes: dict[tuple[int, ...], Node] = field(default_factory=dict)
    prefixes: dict[tuple[int, int], int] = field(default_factory=dict)
    ends: list[End] = field(default_factory=list)

    @property
    def width(self) -> int:
        """How many variables the node's table has."""
        return max([self.known - 1, *self.step]) + 1

    @property
    def depth(self) -> int:
        """How many tables are joined."""
        return 1 if self.above is None else self.above.depth + 1

    @property
    def uses(self) -> int:
        """How many times the node's table is read."""
        return len(self.nodes) + len({end.is_once for end in self.ends})


class Steps:
    """The tree of all shapes.

    Parameters
    ----------
    ways
        Branches, none of which has an empty table.
    counts
        How many rows each atom's table has.

    Examples
    --------
    >>> parts = (Part(0, ("x", "y")), Part(1, ("y",)), Part(2, ("x", "z")))
    >>> steps = Steps([Way(0, parts, ("z",), frozenset("xyz"))], {0: 9, 1: 2, 2: 5})
    >>> [(node.step, list(node.prefixes)) for node in steps]
    [((0,), [(0, 1)]), ((1, 0), [(0, 0)]), ((1, 2), [(0, 2)])]
    """

    def __init__(self, ways: Iterable[Way], counts: Mapping[int, int]) -> None:
        self._root = Node(None, (), 0, -1)
        self._nodes: list[Node] = []
        for way in ways:
            self._add(way, ordered(way.parts, counts))

    def __iter__(self) -> Iterator[Node]:
        """Yield the nodes, each after the one above it."""
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def _add(self, way: Way, parts: Sequence[Part]) -> None:
        numbers: dict[str, int] = {}
        node, prefix = self._root, 0
        for part in parts:
            known = len(numbers)
            step = tuple(numbers.setdefault(name, len(numbers)) for name in part.variables)
            below = node.nodes.get(step)
            if below is None:
                above = None if node is self._root else node
                below = node.nodes[step] = Node(above, step, known, len(self._nodes))
                self._nodes.append(below)
            node = below
            prefix = node.prefixes.setdefault((prefix, part.atom), len(node.prefixes))
        places = tuple(numbers.get(name, -1) for name in way.names)
        visible = tuple(n for name, n in numbers.items() if name in way.visible)
        node.ends.append(End(prefix, way.question, places, visible, way.is_once))


def ordered(parts: Iterable[Part], counts: Mapping[int, int]) -> list[Part]:
    """Return patterns in the order in which their tables are joined.

    Examples
    --------
    >>> a, b, c = Part(0, ("x",)), Part(1, ("x", "y")), Part(2, ("z",))
    >>> [part.atom for part in ordered([a, b, c], {0: 5, 1: 4, 2: 4})]
    [1, 0, 2]
    """
    rest = sorted(parts, key=lambda part: (counts.get(part.atom, 0), part.atom, part.variables))
    found: list[Part] = []
    bound: set[str] = set()
    while rest:
        joined = (part for part in rest if not bound.isdisjoint(part.variables))
        part = next(joined, rest[0])
        rest.remove(part)
        found.append(part)
        bound.update(part.variables)
    return found
