"""Gryphon's matching tree for equality tests: a level for each attribute, an edge for each value.

Aguilera, Strom, Sturman, Astley, Chandra: "Matching events in a content-based subscription
system", PODC 1999, section 4, and the optimisations of section 5. The general tree of section 3 is
in `graphmatch.published.gryphon_general`.

A node at a level tests an attribute; its edges are the values that subscriptions ask for, and a
``*`` edge is for those who do not care. A subscription is a leaf at the end of its path. An event
follows the edge of its value *and* the ``*`` edge, from the root down; the leaves that it comes to
are what it matches. The optimisations, each of which can be switched off:

- `collapse`: a chain of ``*`` edges is one edge, so a node without edges of values is left out;
- `successors`: a node leads to what is implied by the tests on its path, so a value that has been
  followed is not looked up again on the parallel paths (`graphmatch.published.flat.successors`);
- `index`: attributes that have a subtree for each value. Who does not care is in all of them.

Cost: an event visits O(N^(1 - λ)) nodes for N subscriptions, λ = ln V / (ln V + ln K) with K
attributes of V values each (`graphmatch.published.flat.visits`); at worst all of them. Space and
building O(N K). A subscription's path is found, and taken away, in O(K) steps. Compiled.

Notes
-----
- Our text of the paper has no formulas and no figures. The theorem's bound is derived anew from the
  lemmas (`graphmatch.published.flat.visits`), which are also read from the words that are left.
  What is left of the theorem's formula, 1 - λ and logarithms, does not contradict ours; the
  constants are ours.
- Attributes are levels in the order given (`index` first, then `attributes`), others below them in
  the order in which subscriptions name them. Without `collapse` a path ends at the last level that
  there was when it was made; give all `attributes` for the paper's tree.
- Section 5 defines successor sets for a tree of levels ("replace non-``*`` segments at the end of
  the path") and for any tree ("implied, and no node between"). With `collapse` on, the second is
  taken: a successor may test another attribute than the node. What is implied by two tests that are
  not next to each other in the order of levels is not looked for.
- The paper does not say how successor sets change with the tree. Here all of them are made again at
  the first event after a change: that takes as long as there are nodes and members of sets. Who
  subscribes as often as publications come has `successors` off.
- Index attributes are the first levels, without ``*`` edges; each counts as a node visited. Values
  that no subscription names, and none, share one subtree. A subscription that does not care is
  copied when a value gets its subtree, and moved when one goes: O(those subscriptions).
- Identical subscriptions share a leaf; an event that lacks an attribute follows ``*`` edges.
- `Tally`: `probes` are nodes visited (the paper's measure), `gates` edges of values that were
  followed, `candidates` conjunctions at leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import ClassVar, TypeAlias

import numpy as np
from pyoxigraph import NamedNode

from graphmatch.matcher import Capabilities
from graphmatch.published.base import Equal, Event, FlatMatcher, Row, Tally
from graphmatch.published.flat.rows import Terms
from graphmatch.published.flat.successors import SuccessorSets, no_sets, successor_sets
from graphmatch.published.flat.value_nodes import (
    HEAD,
    LEAF,
    LEVEL,
    LISTED,
    LIVE,
    NEXT,
    NONE,
    NUMBER,
    STAR,
    STARRED,
    Records,
    Tree,
    child,
)
from graphmatch.published.flat.value_tree import ValueTree
from graphmatch.published.jit import at, kernel
from semantic.ontology.ontology import Ontology
from semantic.terms import Term

OTHER = 2**31 - 1
"""The edge of an index attribute for what no subscription names."""

Tests: TypeAlias = Mapping[int, int]
"""Level to value."""


class Gryphon(FlatMatcher):
    """The matching tree of section 4.

    Parameters
    ----------
    attributes
        The order of levels, from the root down; those that most subscriptions test come first.
    index
        Attributes that have a subtree for each value (section 5).
    collapse, successors
        Whether chains of ``*`` edges are one edge, and whether nodes have successor sets.

    Examples
    --------
    >>> from graphmatch.subscription import SubscriptionParser
    >>> gryphon = Gryphon(Ontology())
    >>> text = 'SELECT ?e { ?e <urn:city> "New York" ; <urn:sky> "clear" }'
    >>> gryphon.subscribe(SubscriptionParser().parse("s", text))
    >>> from pyoxigraph import Literal
    >>> city, sky = NamedNode("urn:city"), NamedNode("urn:sky")
    >>> event = Event({city: Literal("New York"), sky: Literal("clear")})
    >>> tally = Tally()
    >>> list(gryphon.matched(event, tally)), tally.probes
    ([0], 3)
    """

    capabilities: ClassVar = Capabilities(
        property_variables=False,
        comparisons=False,
        taxonomy=False,
        text=False,
        joins=False,
        presence=False,
    )
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
        super().__init__(ontology)
        self._given = tuple(dict.fromkeys((*index, *attributes)))
        self._collapse, self._successors = collapse, successors
        self._levels = {attribute: level for level, attribute in enumerate(self._given)}
        self._named = tuple(Counter[int]() for _ in dict.fromkeys(index))
        self._wide: dict[int, Tests] = {}
        self._values = Terms()
        self._sets: SuccessorSets | None = None
        self._stack: Records = np.empty(0, np.int32)
        self._found: Records = np.empty(0, np.int32)
        self.tree = ValueTree(collapse=collapse)

    @property
    def nbytes(self) -> int:
        """How large the arrays are, and the table of values: 100 bytes are counted for a value."""
        return self.tree.nbytes + sum(a.nbytes for a in self.sets) + 100 * len(self._values.numbers)

    @property
    def space(self) -> int:
        """The paper's measure (section 7): edges, and what is in successor sets."""
        return self.tree.edges + self.sets.members.size

    @property
    def sets(self) -> SuccessorSets:
        """The successor sets of the tree as it is now."""
        if self._sets is None:
            self._sets = successor_sets(self.tree.arrays) if self._successors else no_sets()
        return self._sets

    # --- The tree -----------------------------------------------------------------------------

    def insert(self, number: int, row: Row) -> None:
        """Put a conjunction on its path, with index attributes in each of its subtrees."""
        self._sets = None
        tests = {}
        for attribute, term in _terms(row):
            level = self._levels.setdefault(attribute, len(self._levels))
            tests[level] = self._values.name(term)
        for level, named in enumerate(self._named):
            if level not in tests:
                self._wide[number] = tests
                continue
            if tests[level] not in named:
                self._open(level, tests[level])
            named[tests[level]] += 1
        self._put(number, tests)

    def remove(self, number: int, row: Row) -> None:
        """Take a conjunction off all of its paths."""
        self._sets = None
        self.tree.remove(number)
        self._wide.pop(number, None)
        tests = {
            self._levels[attribute]: self._values.numbers[term] for attribute, term in _terms(row)
        }
        for level, named in enumerate(self._named):
            if level in tests:
                named[tests[level]] -= 1
                if not named[tests[level]]:
                    del named[tests[level]]
                    self._close(level)
        for _, term in _terms(row):
            self._values.forget(term)
        if not self.tree.nodes:
            self._levels = {attribute: level for level, attribute in enumerate(self._given)}

    def _open(self, level: int, value: int) -> None:
        """Make the subtrees for a value of an index attribute: all who do not care are in them."""
        for number, tests in self._wide.items():
            if level not in tests:
                self._put(number, {**tests, level: value})

    def _close(self, level: int) -> None:
        """Leave the subtrees of a value that nobody names any more."""
        for number, tests in self._wide.items():
            if level not in tests:
                self.tree.remove(number)
                self._put(number, tests)

    def _put(self, number: int, tests: Tests) -> None:
        choices = (
            [tests[level]] if level in tests else [OTHER, *named]
            for level, named in enumerate(self._named)
        )
        for chosen in product(*choices):
            self.tree.insert(number, self._path({**tests, **dict(enumerate(chosen))}))

    def _path(self, tests: Tests) -> Sequence[tuple[int, int]]:
        if self._collapse:
            return sorted(tests.items())
        return [(level, tests.get(level, STAR)) for level in range(len(self._levels))]

    # --- Matching -----------------------------------------------------------------------------

    def matched(self, event: Event, tally: Tally) -> Iterable[int]:
        """Walk the tree, and return what is at the leaves that are visited."""
        tree, sets, state = self.tree.arrays, self.sets, self.tree.arrays.state
        if state[LIVE] > self._stack.size:
            self._stack = np.empty(2 * int(state[LIVE]), np.int32)
        if state[LISTED] > self._found.size:
            self._found = np.empty(2 * int(state[LISTED]), np.int32)
        visited, followed, found = _walk(tree, sets, self._read(event), self._stack, self._found)
        tally.probes += visited
        tally.gates += followed
        tally.candidates += found
        return map(int, self._found[:found].tolist())

    def _read(self, event: Event) -> Records:
        """Return the event's value at each level."""
        values = [OTHER] * len(self._named) + [NONE] * (len(self._levels) - len(self._named))
        for attribute, term in event.terms.items():
            level, value = self._levels.get(attribute), self._values.numbers.get(term)
            if level is None or value is None:
                continue
            if level >= len(self._named) or value in self._named[level]:
                values[level] = value
        return np.array(values, np.int32)


def _terms(row: Row) -> Iterator[tuple[NamedNode, Term]]:
    for attribute, constraint in row.items():
        assert isinstance(constraint, Equal)
        yield attribute, constraint.term


@kernel
def _walk(
    tree: Tree, sets: SuccessorSets, values: Records, stack: Records, found: Records
) -> tuple[int, int, int]:
    """Visit the tree: how many nodes and edges of values, and how many conjunctions were found."""
    visited, followed, count = 0, 0, 0
    top = -1
    if tree.nodes[0, STARRED] >= 0:
        top = 0
        stack[0] = tree.nodes[0, STARRED]
    while top >= 0:
        node = int(stack[at(top)])
        top -= 1
        visited += 1
        below = NONE
        if tree.nodes[at(node), LEVEL] == LEAF:
            place = int(tree.nodes[at(node), HEAD])
            while place >= 0:
                found[count] = tree.places[at(place), NUMBER]
                count += 1
                place = int(tree.places[at(place), NEXT])
        else:
            value = values[tree.nodes[at(node), LEVEL]]
            if value >= 0:
                below = child(tree, node, value)
        if below < 0 or sets.size.size == 0:
            if tree.nodes[at(node), STARRED] >= 0:
                top += 1
                stack[at(top)] = tree.nodes[at(node), STARRED]
            if sets.size.size > 0:
                for place in range(sets.begin[node], sets.begin[node] + sets.size[node]):
                    top += 1
                    stack[at(top)] = sets.members[place]
        if below >= 0:
            followed += 1
            top += 1
            stack[at(top)] = below
    return visited, followed, count
