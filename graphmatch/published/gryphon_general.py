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

Cost: no bound is known for tests that are not equalities ("theoretical analysis underway"). A test
is O(1), an event visits every node whose predicates hold. Subscribing takes as many steps as the
path is long.

Notes
-----
- Four elementary tests express the constraints: *value* (the result is the term), *number* (the
  result is the number), *less than c* (true or false, and neither for what is no number), and
  *present*. A range from 100 up to below 400 is "x < 100 is false" and "x < 400 is true"; ends are
  doubles, so x <= 5 is x < the next double.
- The fixed total order of predicates is that of the attributes (as they are first named), of the
  tests above, and of the constants. The tree depends on the order of subscribing; its answers do
  not.
- The listing of appendix A is lost but for its words. As those have it, a leaf that a longer
  subscription comes to is replaced by its test, and hangs on that one's ``*`` edge.
- Whether a test's result is implied is decided from all that a subscription asks of the attribute,
  rather than from one predicate: the same holds, and more of it is found.
- `Tally` counts as in `gryphon`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf, nextafter
from typing import ClassVar, NamedTuple, TypeAlias

from pyoxigraph import NamedNode

from graphmatch.published.base import (
    RANGES,
    Constraint,
    Equal,
    Event,
    FlatMatcher,
    Interval,
    Present,
    Row,
    Tally,
    number_of,
)
from semantic.ontology.ontology import Ontology
from semantic.terms import Term

VALUE, NUMBER, LESS, PRESENT = range(4)
"""The kinds of tests, in their order."""

Result: TypeAlias = Term | float | bool


class ElementaryTest(NamedTuple):
    """A test of the attribute with a place in their order (section 2); `constant` is of `LESS`."""

    attribute: int
    kind: int
    constant: float = 0.0

    def result(self, term: Term | None, number: float | None) -> Result | None:
        """Return what the test gives for a value; ``None`` where it cannot be made."""
        if self.kind == VALUE:
            return term
        if self.kind == PRESENT:
            return term is not None
        if self.kind == NUMBER or number is None:
            return number
        return number < self.constant

    def implied(self, constraint: Constraint) -> Result | None:
        """Return the result that all values of a constraint have; ``None`` if they differ."""
        if self.kind == PRESENT:
            return True
        if isinstance(constraint, Equal):
            if self.kind == VALUE:
                return constraint.term
            number = number_of(constraint.term)
            constraint = Present() if number is None else Interval(number, number)
        if isinstance(constraint, Interval):
            low, high = constraint
            if self.kind == NUMBER and low == high:
                return low
            if self.kind == LESS and (high < self.constant or low >= self.constant):
                return high < self.constant
        return None


def elementary_tests(attribute: int, constraint: Constraint) -> Iterator[ElementaryTest]:
    """Yield the tests whose results are equivalent to a constraint."""
    match constraint:
        case Equal():
            yield ElementaryTest(attribute, VALUE)
        case Present():
            yield ElementaryTest(attribute, PRESENT)
        case Interval(low, high) if low == high:
            yield ElementaryTest(attribute, NUMBER)
        case Interval(low, high):
            if low > -inf or high == inf:  # every number is not below -inf
                yield ElementaryTest(attribute, LESS, low)
            if high < inf:
                yield ElementaryTest(attribute, LESS, nextafter(high, inf))


@dataclass(eq=False, slots=True)
class Node:
    """A test with its edges, or a leaf with the numbers of conjunctions.

    An edge's key is the result that it stands for; ``None`` is ``*``.
    """

    test: ElementaryTest | None = None
    edges: dict[Result | None, Node] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)


class GryphonGeneral(FlatMatcher):
    """The matching tree of section 3; `attributes` are the first ones in the order of tests.

    Examples
    --------
    >>> from pyoxigraph import Literal
    >>> gryphon = GryphonGeneral(Ontology())
    >>> city, price = NamedNode("urn:city"), NamedNode("urn:price")
    >>> gryphon.insert(0, {city: Equal(Literal("New York")), price: Interval(high=399.0)})
    >>> event, tally = Event.of({city: Literal("New York"), price: Literal(399)}), Tally()
    >>> list(gryphon.matched(event, tally)), tally.probes
    ([0], 3)
    """

    capabilities: ClassVar = replace(RANGES, terms=True, presence=True)
    kinds: ClassVar = frozenset({Interval, Equal, Present})

    def __init__(self, ontology: Ontology, *, attributes: Sequence[NamedNode] = ()) -> None:
        self._attributes = tuple(attributes)
        super().__init__(ontology)

    def clear(self) -> None:
        self._order = {attribute: place for place, attribute in enumerate(self._attributes)}
        self._top = Node()
        """Above the root, which is on its ``*`` edge."""

    def insert(self, number: int, row: Row) -> None:
        """Follow the tree as far as it goes, and add the predicates that are left (appendix A)."""
        asked = {self._order.setdefault(a, len(self._order)): each for a, each in row.items()}
        open_ = sorted(test for a, each in asked.items() for test in elementary_tests(a, each))
        node, result = self._top, None
        while True:
            below = node.edges.setdefault(result, Node())
            if below.test is None and open_:
                if below.numbers:  # a leaf goes to the * edge of the test that replaces it
                    below = node.edges[result] = Node(edges={None: below})
                below.test = open_[0]
            node = below
            if node.test is None:
                break
            constraint = asked.get(node.test.attribute)
            result = None if constraint is None else node.test.implied(constraint)
            if node.test in open_:
                open_.remove(node.test)
        node.numbers.append(number)

    def matched(self, event: Event, tally: Tally) -> Iterable[int]:
        """Make the test of each node that is visited, and follow its result and ``*`` (match)."""
        values = [(event.terms.get(a), event.numbers.get(a)) for a in self._order]
        stack = list(self._top.edges.values())
        while stack:
            node = stack.pop()
            tally.probes += 1
            if node.test is None:
                tally.candidates += len(node.numbers)
                yield from node.numbers
                continue
            if None in node.edges:
                stack.append(node.edges[None])
            result = node.test.result(*values[node.test.attribute])
            if result is not None and result in node.edges:
                tally.gates += 1
                stack.append(node.edges[result])
