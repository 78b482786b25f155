"""Gryphon's matching tree for all elementary tests: a node is a test, an edge one of its results.

Aguilera, Strom, Sturman, Astley, Chandra: "Matching events in a content-based subscription system",
PODC 1999, sections 2 and 3 and appendix A.

A subscription is a conjunction of elementary predicates: a test of the event, and the required
result. In the tree a node is a test and its edges are results. A ``*`` edge is for subscriptions
without the test. The path to a leaf is equivalent to the leaf's subscriptions. From the root down,
an event follows the edge of each test's result and the ``*`` edge.

Tests of one attribute are *related*: a subscription with x < 400 does not need the test x < 500. So
at a node that tests x < 500 that subscription follows the edge *true*, and one with x >= 600 the
edge *false*. There an event does not visit the subscription on the other edge.

Cost: no bound is known for tests that are not equalities ("theoretical analysis underway"). A test
is O(1), and an event visits every node whose predicates hold. Subscribing takes as many steps as
the path is long.

Notes
-----
- Four elementary tests express the constraints: *value* (the result is the term), *number* (the
  result is the number), *less than c* (true or false, and neither for a value that is not a
  number), and *present*. A range from 100 up to below 400 is "x < 100 is false" and "x < 400 is
  true". Ends are doubles, so x <= 5 is x < the next double.
- The fixed total order of predicates is by attribute (in order of first use), by the tests above,
  and by constant. The tree depends on the order of subscribing. Its results do not.
- Only the words of the listing of appendix A are legible. As they say, if a longer subscription
  reaches a leaf, its test replaces the leaf, which moves to the ``*`` edge of the test.
- All constraints of a subscription on an attribute, not one predicate, decide whether a test's
  result is implied. The results are the same, and more of them are implied.
- `Tally` counts as in `gryphon`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf, nextafter
from typing import ClassVar, NamedTuple, TypeAlias

from pyoxigraph import NamedNode

from graphmatch.published.attribute_matcher import (
    RANGES,
    AttributeEvent,
    AttributeMatcher,
    Constraint,
    Equal,
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
    """A test of one attribute of an event (section 2).

    `attribute` is the attribute's place in the order of attributes. The result depends on `kind`:
    the term (`VALUE`), the number (`NUMBER`), whether the number is less than `constant` (`LESS`),
    or whether there is a value (`PRESENT`).
    """

    attribute: int
    kind: int
    constant: float = 0.0

    def result(self, term: Term | None, number: float | None) -> Result | None:
        """Return the result for a value, as term and number; ``None`` if it does not apply."""
        if self.kind == VALUE:
            return term
        if self.kind == PRESENT:
            return term is not None
        if self.kind == NUMBER or number is None:
            return number
        return number < self.constant

    def implied(self, constraint: Constraint) -> Result | None:
        """Return the result that all values of a constraint have; ``None`` if they may differ."""
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
class GeneralNode:
    """A node of the tree: a test with its edges, or a leaf (no test) with conjunction numbers.

    The key of an edge is the test's result; ``None`` is the edge ``*``.
    """

    test: ElementaryTest | None = None
    edges: dict[Result | None, GeneralNode] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)


class GryphonGeneral(AttributeMatcher):
    """Gryphon (Aguilera et al. 1999): the matching tree for all elementary tests of section 3.

    `attributes` come first in the order of tests.

    Examples
    --------
    >>> from pyoxigraph import Literal
    >>> gryphon = GryphonGeneral(Ontology())
    >>> city, price = NamedNode("urn:city"), NamedNode("urn:price")
    >>> gryphon.insert(0, {city: Equal(Literal("New York")), price: Interval(high=399.0)})
    >>> event = AttributeEvent.of({city: Literal("New York"), price: Literal(399)})
    >>> tally = Tally()
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
        self._top = GeneralNode()
        """The node above the root, which is on its ``*`` edge."""

    def insert(self, number: int, row: Row) -> None:
        """Add a conjunction at a leaf (appendix A).

        Follow its path as far as it exists, and add a node for each of the remaining tests.
        """
        asked = {self._order.setdefault(a, len(self._order)): each for a, each in row.items()}
        open_ = sorted(test for a, each in asked.items() for test in elementary_tests(a, each))
        node, result = self._top, None
        while True:
            below = node.edges.setdefault(result, GeneralNode())
            if below.test is None and open_:
                if below.numbers:  # a leaf goes to the * edge of the test that replaces it
                    below = node.edges[result] = GeneralNode(edges={None: below})
                below.test = open_[0]
            node = below
            if node.test is None:
                break
            constraint = asked.get(node.test.attribute)
            result = None if constraint is None else node.test.implied(constraint)
            if node.test in open_:
                open_.remove(node.test)
        node.numbers.append(number)

    def matched(self, event: AttributeEvent, tally: Tally) -> Iterable[int]:
        """Yield the conjunctions at the leaves that an event reaches (match).

        At each node, follow the edge of the test's result and the edge ``*``.
        """
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
                tally.index_hits += 1
                stack.append(node.edges[result])
