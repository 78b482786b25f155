"""Gryphon's matching tree for all elementary tests: a node is a test, an edge one of its results.

Aguilera, Strom, Sturman, Astley, Chandra: "Matching events in a content-based subscription
system", PODC 1999, sections 2 and 3 and appendix A.

A subscription is a conjunction of elementary predicates: a test of the event, and the result that
it must have. In the tree a node is a test and its edges are results; a ``*`` edge is for those who
do not care. What stands on the path to a leaf is equivalent to the leaf's subscriptions. An event
goes from the root down, at each node along the edge of the test's result and along the ``*`` edge.

Tests of one attribute are *related*: who asks for x < 400 need not ask whether x < 500 is true. So
at a node that tests x < 500 that subscription goes along the edge *true*, and one with x >= 600
along the edge *false*; neither is visited by an event that decides otherwise there.

Cost: no bound is known for tests that are not equalities ("theoretical analysis under way"). A test
is O(1), an event visits every node whose predicates hold. Plain Python.

Notes
-----
- Four elementary tests express the constraints: *value* (the result is the term), *number* (the
  result is the number), *less than c* (true or false, and neither for what is no number), and
  *present*. A range from 100 up to below 400 is "x < 100 is false" and "x < 400 is true"; ends are
  doubles, so x <= 5 is x < the next double.
- The fixed total order of predicates is that of the attributes (as they are first named), then that
  of the tests above, then that of the constants. It orders what is added; at a test of the tree
  that a subscription does not have, it goes on below, also where its own comes first in the order:
  so appendix A has it. The tree depends on the order of subscribing; its answers do not.
- The listing of appendix A is lost but for its words. As those have it, a leaf that a longer
  subscription comes to is replaced by its test, and hangs on that one's ``*`` edge.
- Whether a test's result is implied is decided from all that a subscription asks of the attribute,
  rather than from one predicate: the same holds, and more of it is found.
- Unsubscribing, which the paper leaves open, takes out nodes without edges; a test that is left
  with its ``*`` edge alone is replaced by what is below it.
- The collapsing of ``*`` chains (section 5) has nothing to do here: a node is made only where a
  subscription asks for its result. Successor sets and index attributes are for the tree of levels,
  `graphmatch.published.gryphon`.
- `Tally`: `probes` are nodes visited, `gates` edges of results that were followed, `candidates`
  conjunctions at leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from sys import getsizeof
from typing import ClassVar

from pyoxigraph import NamedNode

from graphmatch.matcher import Capabilities
from graphmatch.published.base import Equal, Event, FlatMatcher, Interval, Present, Row, Tally
from graphmatch.published.flat.elementary import ElementaryTest, Result, tests_of
from semantic.ontology.ontology import Ontology


@dataclass(eq=False, slots=True)
class _Node:
    """A test with its edges, or a leaf with the numbers of conjunctions.

    Parameters
    ----------
    label
        The result that leads here from the parent; ``None`` is ``*``.
    """

    parent: _Node | None = None
    label: Result | None = None
    test: ElementaryTest | None = None
    edges: dict[Result, _Node] = field(default_factory=dict)
    star: _Node | None = None
    numbers: dict[int, None] = field(default_factory=dict)

    def below(self, result: Result | None) -> _Node | None:
        return self.star if result is None else self.edges.get(result)

    def hang(self, label: Result | None, node: _Node) -> None:
        node.parent, node.label = self, label
        if label is None:
            self.star = node
        else:
            self.edges[label] = node


class GryphonGeneral(FlatMatcher):
    """The matching tree of section 3.

    Parameters
    ----------
    attributes
        The first ones in the order of tests.

    Examples
    --------
    >>> from pyoxigraph import Literal
    >>> from graphmatch.subscription import SubscriptionParser
    >>> gryphon = GryphonGeneral(Ontology())
    >>> text = 'SELECT ?e { ?e <urn:city> "New York" ; <urn:price> ?v FILTER(?v < 400) }'
    >>> gryphon.subscribe(SubscriptionParser().parse("s", text))
    >>> city, price = NamedNode("urn:city"), NamedNode("urn:price")
    >>> event, tally = Event.of({city: Literal("New York"), price: Literal(399)}), Tally()
    >>> list(gryphon.matched(event, tally)), tally.probes
    ([0], 3)
    """

    capabilities: ClassVar = Capabilities(
        property_variables=False, taxonomy=False, text=False, joins=False
    )
    kinds: ClassVar = frozenset({Interval, Equal, Present})

    def __init__(self, ontology: Ontology, *, attributes: Sequence[NamedNode] = ()) -> None:
        super().__init__(ontology)
        self._given = tuple(dict.fromkeys(attributes))
        self._order = {attribute: place for place, attribute in enumerate(self._given)}
        self._root = _Node()
        self._leaves: dict[int, _Node] = {}

    def __iter__(self) -> Iterator[_Node]:
        """Yield the nodes of the tree; none, if it is empty."""
        stack = [self._root] if self._leaves else []
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.edges.values())
            if node.star is not None:
                stack.append(node.star)

    @property
    def nodes(self) -> int:
        """How many nodes there are, with leaves."""
        return sum(1 for _ in self)

    @property
    def nbytes(self) -> int:
        """How large the objects of the tree are, without terms and numbers; it goes over them."""
        parts = ((node, node.edges, node.numbers, node.test) for node in self)
        return getsizeof(self._leaves) + sum(getsizeof(part) for of in parts for part in of)

    # --- The tree -----------------------------------------------------------------------------

    def insert(self, number: int, row: Row) -> None:
        """Follow the tree as far as it goes, and add the predicates that are left (appendix A)."""
        asked = {self._place(attribute): constraint for attribute, constraint in row.items()}
        open_ = sorted(
            test
            for attribute, constraint in asked.items()
            for test in tests_of(attribute, constraint)
        )
        node = self._root
        while open_ or node.test is not None:
            if node.test is None:
                node = self._with_test(node, open_[0])
            assert node.test is not None
            constraint = asked.get(node.test.attribute)
            result = None if constraint is None else node.test.implied(constraint)
            if node.test in open_:
                open_.remove(node.test)
            below = node.below(result)
            if below is None:
                below = _Node()
                node.hang(result, below)
            node = below
        node.numbers[number] = None
        self._leaves[number] = node

    def _place(self, attribute: NamedNode) -> int:
        return self._order.setdefault(attribute, len(self._order))

    def _with_test(self, leaf: _Node, test: ElementaryTest) -> _Node:
        """Make a leaf a test; one that has conjunctions goes to its ``*`` edge."""
        if not leaf.numbers:
            leaf.test = test
            return leaf
        made = _Node(test=test)
        self._replace(leaf, made)
        made.hang(None, leaf)
        return made

    def _replace(self, node: _Node, other: _Node) -> None:
        """Put another node into a node's place."""
        if node.parent is None:
            self._root, other.parent, other.label = other, None, None
        else:
            node.parent.hang(node.label, other)

    def remove(self, number: int, row: Row) -> None:  # noqa: ARG002 - its leaf is known
        """Take a conjunction out of its leaf, and nodes out that nobody needs."""
        node = self._leaves.pop(number)
        del node.numbers[number]
        while not (node.numbers or node.edges or node.star):
            if node.parent is None:
                self._root = _Node()
                self._order = {attribute: place for place, attribute in enumerate(self._given)}
                return
            if node.label is None:
                node.parent.star = None
            else:
                del node.parent.edges[node.label]
            node = node.parent
        if node.star is not None and not node.edges:
            self._replace(node, node.star)

    # --- Matching -----------------------------------------------------------------------------

    def matched(self, event: Event, tally: Tally) -> Iterable[int]:
        """Make the test of each node that is visited, and follow its result and ``*``."""
        values = [(event.terms.get(a), event.numbers.get(a)) for a in self._order]
        stack = [self._root]
        while stack:
            node = stack.pop()
            tally.probes += 1
            if node.test is None:
                tally.candidates += len(node.numbers)
                yield from node.numbers
                continue
            result = node.test.result(*values[node.test.attribute])
            if node.star is not None:
                stack.append(node.star)
            below = None if result is None else node.edges.get(result)
            if below is not None:
                tally.gates += 1
                stack.append(below)
