"""Gryphon's matching tree for equality tests: a level for each attribute, an edge for each value.

Aguilera, Strom, Sturman, Astley, Chandra: "Matching events in a content-based subscription system",
PODC 1999, section 4, appendix B, and the optimizations of section 5. The general tree of section 3
is `graphmatch.published.gryphon_general`.

A node at a level tests an attribute. Its edges are the values in subscriptions, and ``*`` for
subscriptions that do not test the attribute. A subscription is at the leaf of its path. From the
root down, an event follows the edge of its value *and* the ``*`` edge. It matches the subscriptions
at the leaves that it reaches. The optimizations can be switched off:

- `collapse`: a node without edges of values is left out.
- `successors`: if the event's value has no edge, the search goes on at the nodes that the path
  implies, and does not look up values again.
- `index`: attributes have a subtree for each value. Subscriptions that do not test them are in all
  subtrees.

Cost: O(N^(1 - λ)) nodes on average for N subscriptions, λ = ln V / (ln V + ln K) with K attributes
of V values (section 4), all nodes at worst. Space is O(N K), subscribing O(K). The first event
after a change copies the tree into arrays, O(nodes + successors), which takes a second for 100,000
subscriptions. The search runs on these arrays, and is compiled if numba is installed.

Notes
-----
- Our copy of the paper has no formulas and no figures: `graphmatch.bench.experiments` derives the
  bound from its lemmas.
- Attributes are levels in the given order, `index` first. Other attributes follow below in the
  order in which subscriptions name them. Without `collapse` a path ends at the last level that
  existed when it was made; give all `attributes` for the paper's tree.
- Section 5 defines successor sets for a tree of levels ("replace non-``*`` segments at the end of
  the path") and for any tree ("implied, and no node between"). With `collapse` the second is used:
  a successor may test another attribute than the node.
- Index attributes that are absent, or have a value that no subscription names, share one subtree.
- `Tally`: `probes` are visited nodes (the paper's measure; one more for finding the subtree),
  `index_hits` followed edges of values, `candidates` conjunctions at leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode

from graphmatch.published.attribute_matcher import (
    RANGES,
    AttributeEvent,
    AttributeMatcher,
    Equal,
    Row,
    Tally,
)
from graphmatch.published.jit import kernel
from semantic.ontology.ontology import Ontology
from semantic.terms import Term

Records: TypeAlias = NDArray[np.int32]
Tests: TypeAlias = Mapping[int, int]
"""The value number that a subscription tests at each level."""

STAR, NONE, OTHER = -1, -2, -3
"""Value numbers: any; absent or unknown; and other values of an index attribute."""
TOP, LEAF = -1, 2**31 - 1
"""The levels above the root and below all attributes."""
LEVEL, FIRST, LAST, OTHERS, END = range(5)
"""The columns of `Arrays.nodes`."""


@dataclass(eq=False, slots=True)
class Node:
    """A node of the matching tree: it tests the attribute of its level, or is a leaf.

    `label` is the value number of the edge from `parent`, and `edges` has the child by value
    number. `numbers` are the conjunctions at a leaf. `place` is the row in `Arrays.nodes`.
    """

    level: int
    parent: Node | None = None
    label: int = STAR
    edges: dict[int, Node] = field(default_factory=dict)
    numbers: dict[int, None] = field(default_factory=dict)
    place: int = 0

    def hang(self, label: int, below: Node) -> None:
        """Make `below` the child at the edge `label`, in place of the former child."""
        self.edges[label], below.parent, below.label = below, self, label


class Arrays(NamedTuple):
    """The tree as arrays for the search.

    The columns of a node are its level, the range of its edges of values (in a leaf: of its numbers
    among the members), and the range of its ``*`` child and successors among the members. An edge
    has a value, ascending in each node, and the child's place. `stack` and `found` are buffers of a
    search.
    """

    nodes: Records
    edges: Records
    members: Records
    stack: Records
    found: Records


class Gryphon(AttributeMatcher):
    """Gryphon (Aguilera et al. 1999): the matching tree for equality tests of section 4.

    `attributes` is the order of levels, from the root down; the attributes that most subscriptions
    test come first. The attributes of `index` have a subtree for each value.
    `collapse` and `successors` switch these optimizations on (see the module).

    Examples
    --------
    >>> from pyoxigraph import Literal
    >>> gryphon, clear = Gryphon(Ontology()), Literal("clear")
    >>> city, sky = NamedNode("urn:city"), NamedNode("urn:sky")
    >>> gryphon.insert(0, {city: Equal(Literal("New York")), sky: Equal(clear)})
    >>> event, tally = AttributeEvent({city: Literal("New York"), sky: clear}), Tally()
    >>> list(gryphon.matched(event, tally)), tally.probes
    ([0], 3)
    """

    capabilities: ClassVar = replace(RANGES, comparisons=False, terms=True)
    kinds: ClassVar = frozenset({Equal})

    def __init__(
        self,
        ontology: Ontology,
        *,
        attributes: Sequence[NamedNode] = (),
        index: Sequence[NamedNode] = (),
        collapse: bool = True,
        successors: bool = True,
    ) -> None:
        self._order, self._index_size = tuple(dict.fromkeys((*index, *attributes))), len(set(index))
        self._collapse, self._successors = collapse, successors
        super().__init__(ontology)

    def clear(self) -> None:
        self._levels = {attribute: level for level, attribute in enumerate(self._order)}
        self._values: dict[Term, int] = {}
        self._trees: dict[tuple[int, ...], Node] = {}
        """The node above the root of each subtree, by the values of index attributes."""
        self._named: list[set[int]] = [set() for _ in range(self._index_size)]
        self._wide: dict[int, Tests] = {}
        """The tests of conjunctions that do not test every index attribute, by number."""
        self._arrays: Arrays | None = None

    def __iter__(self) -> Iterator[Node]:
        """Yield the nodes of the tree, parents first."""
        stack = [root for top in self._trees.values() for root in top.edges.values()]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.edges.values())

    # --- The tree (appendix B) ----------------------------------------------------------------

    def insert(self, number: int, row: Row) -> None:
        """Add a conjunction at the end of its path, in each subtree that it belongs to.

        If it is the first with a value of an index attribute, also add the earlier conjunctions
        that do not test the attribute to the new subtrees of this value.
        """
        tests, self._arrays = {}, None
        for attribute, constraint in row.items():
            assert isinstance(constraint, Equal)
            level = self._levels.setdefault(attribute, len(self._levels))
            tests[level] = self._values.setdefault(constraint.term, len(self._values))
        tests = dict(sorted(tests.items()))
        for level, named in enumerate(self._named):
            if level not in tests:
                self._wide[number] = tests
            elif tests[level] not in named:
                named.add(tests[level])
                for other, cares in self._wide.items():
                    if level not in cares:  # not tested: in each subtree
                        self._put(other, {**cares, level: tests[level]})
        self._put(number, tests)

    def _put(self, number: int, tests: Tests) -> None:
        levels = tests if self._collapse else range(len(self._levels))
        for key in self._keys(tests):
            node, value = self._trees.setdefault(key, Node(TOP)), STAR
            for level in levels:
                if level >= len(self._named):
                    node, value = _follow(node, value, level), tests.get(level, STAR)
            _follow(node, value, LEAF).numbers[number] = None

    def _keys(self, tests: Tests) -> Iterator[tuple[int, ...]]:
        """Return the keys in `_trees` of the subtrees that a conjunction belongs to (section 5)."""
        choices = ([tests[n]] if n in tests else [OTHER, *of] for n, of in enumerate(self._named))
        return product(*choices)

    # --- The tree in arrays, with successor sets (section 5) ----------------------------------

    @property
    def arrays(self) -> Arrays:
        """The tree as arrays, made on first use after a change; set `place` of all nodes."""
        if self._arrays is None:
            several = list(self)
            for place, node in enumerate(several):
                node.place = place
            sets: dict[Node, list[Node]] = {}
            nodes, edges, members = list[int](), list[tuple[int, int]](), list[int]()
            for node in several:
                into = members if node.level == LEAF else edges
                nodes += node.level, len(into)
                below = node.edges.items()
                edges += sorted((value, other.place) for value, other in below if value != STAR)
                members += node.numbers
                nodes += len(into), len(members)
                others = [node.edges[STAR]] if STAR in node.edges else []
                others += _successors(node, sets) if self._successors else []
                members += [other.place for other in others]
                nodes.append(len(members))
            self._arrays = Arrays(
                np.array(nodes, np.int32).reshape(-1, 5),
                np.array(edges, np.int32).reshape(-1, 2),
                np.array(members, np.int32),
                np.empty(len(several) + 1, np.int32),
                np.empty(len(members), np.int32),
            )
        return self._arrays

    # --- Matching -----------------------------------------------------------------------------

    def matched(self, event: AttributeEvent, tally: Tally) -> Iterable[int]:
        """Walk the tree, and return the conjunctions at the visited leaves."""
        values = np.full(len(self._levels), NONE, np.int32)
        for attribute, term in event.terms.items():
            if attribute in self._levels and term in self._values:
                values[self._levels[attribute]] = self._values[term]
        named = zip(self._named, values.tolist(), strict=False)
        top = self._trees.get(tuple(value if value in of else OTHER for of, value in named))
        if top is None:
            return []
        arrays = self.arrays
        root = top.edges[STAR].place
        visited, followed, count = _walk(arrays, root, values, self._successors)
        tally.probes += visited + bool(self._named)
        tally.index_hits += followed
        tally.candidates += count
        numbers: list[int] = arrays.found[:count].tolist()
        return numbers


def _follow(node: Node, value: int, level: int) -> Node:
    """Return the node of `level` on the path behind the edge `value`; insert it if missing.

    Pass nodes of smaller levels along their ``*`` edges, because only other conjunctions test them.
    """
    below = node.edges.get(value)
    while below is not None and below.level < level:
        node, value = below, STAR
        below = node.edges.get(STAR)
    if below is not None and below.level == level:
        return below
    made = Node(level)
    if below is not None:
        made.hang(STAR, below)
    node.hang(value, made)
    return made


def _successors(node: Node, sets: dict[Node, list[Node]]) -> list[Node]:
    """Return the nodes that the path to a node implies, without those below another of them.

    A node on a ``*`` edge has none. Otherwise they are the node on its parent's ``*`` edge and, for
    each successor of the parent, its child by the value. A successor without that child gives its
    own ``*`` child and successors instead. Results are cached in `sets`.
    """
    parent, value = node.parent, node.label
    if value == STAR or parent is None:
        return []
    if node not in sets:
        found = [parent.edges.get(STAR)]
        open_ = list(_successors(parent, sets))
        while open_:
            other = open_.pop()
            if other.level != parent.level:
                found.append(other)
            elif value in other.edges:
                found.append(other.edges[value])
            else:
                found.append(other.edges.get(STAR))
                open_ += _successors(other, sets)
        sets[node] = [other for other in found if other is not None]
    return sets[node]


@kernel
def _walk(tree: Arrays, root: int, values: Records, successors: bool) -> tuple[int, int, int]:
    """Write the conjunctions that an event reaches to `tree.found` (section 3: match).

    `root` is the place of the root, and `values` has the event's value number on each level. With
    `successors`, the ``*`` edge and successors of a node are visited only if the event's value has
    no edge there. Return the counts of visited nodes, followed edges of values, and conjunctions.
    """
    nodes, edges, members, stack, found = tree
    visited, followed, count, top = 0, 0, 0, 0
    stack[top] = root
    while top >= 0:
        node = stack[top]
        top -= 1
        visited += 1
        first, last, below = nodes[node, FIRST], nodes[node, LAST], -1
        if nodes[node, LEVEL] == LEAF:
            for place in range(first, last):
                found[count] = members[place]
                count += 1
        else:
            value = values[nodes[node, LEVEL]]
            while first < last:
                middle = (first + last) // 2
                if edges[middle, 0] < value:
                    first = middle + 1
                else:
                    last = middle
            if first < nodes[node, LAST] and edges[first, 0] == value:
                below = edges[first, 1]
        if below < 0 or not successors:
            for place in range(nodes[node, OTHERS], nodes[node, END]):
                top += 1
                stack[top] = members[place]
        if below >= 0:
            followed += 1
            top += 1
            stack[top] = below
    return visited, followed, count
