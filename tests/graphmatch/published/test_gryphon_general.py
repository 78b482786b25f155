"""Gryphon's tree for all elementary tests: the oracle's answers, its form, and visited nodes."""

from __future__ import annotations

from math import inf, nextafter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from graphmatch.published import make
from graphmatch.published.base import (
    Conjunction,
    Constraint,
    Equal,
    Event,
    Interval,
    Present,
    Row,
    Tally,
)
from graphmatch.published.gryphon_general import (
    LESS,
    NUMBER,
    PRESENT,
    VALUE,
    ElementaryTest,
    GryphonGeneral,
    Result,
)
from semantic import Ontology
from semantic.terms import Term
from tests.graphmatch.published.conjunctions import ATTRIBUTES, agree, conjunctions

CITY, TEMPERATURE = NamedNode("urn:city"), NamedNode("urn:temperature")
YORK, ITHACA = Literal("New York"), Literal("Ithaca")


@pytest.mark.parametrize(
    "kinds", [[Interval], [Equal], [Interval, Interval, Equal, Present]], ids=["ranges", "=", "all"]
)
@given(st.booleans(), st.data())
def test_that_it_agrees_with_the_oracle(
    kinds: list[type], backwards: bool, data: st.DataObject
) -> None:
    attributes = ATTRIBUTES[::-1] if backwards else ()
    scenario = data.draw(conjunctions(kinds))
    agree(lambda o: make("gryphon-general", o, attributes=attributes), scenario, data)


def gryphon(*rows: Row) -> GryphonGeneral:
    made = GryphonGeneral(Ontology(), attributes=[CITY, TEMPERATURE])
    for number, row in enumerate(rows):
        made.add(Conjunction(str(number), CITY, (row,)))
    return made


def matched(made: GryphonGeneral, **values: Term) -> tuple[list[int], Tally]:
    tally = Tally()
    event = Event.of({NamedNode(f"urn:{name}"): value for name, value in values.items()})
    return sorted(made.matched(event, tally)), tally


def test_the_example_of_section_3() -> None:
    """Two subscriptions share the first test; the third one does not use it."""
    york = {CITY: Equal(YORK), TEMPERATURE: Interval(high=nextafter(40, -inf))}
    made = gryphon(york, {CITY: Equal(YORK)}, {TEMPERATURE: Interval(high=nextafter(40, -inf))})
    found, tally = matched(made, city=YORK, temperature=Literal(30))
    assert (found, tally.probes, tally.gates, tally.candidates) == ([0, 1, 2], 6, 3, 3)
    found, tally = matched(made, city=YORK)
    assert (found, tally.probes) == ([1], 4)
    found, tally = matched(made, city=ITHACA, temperature=Literal(50))
    assert (found, tally.probes, tally.gates) == ([], 2, 0)


def test_that_related_tests_are_not_made_twice() -> None:
    """The test x < 40 is below "x < 50 is true", and x >= 60 below "false"."""
    below, above = Interval(high=nextafter(50, -inf)), Interval(low=60)
    made = gryphon({TEMPERATURE: below}, {TEMPERATURE: Interval(high=40)}, {TEMPERATURE: above})
    found, tally = matched(made, temperature=Literal(70))
    assert (found, tally.probes) == ([2], 3)  # x < 50, x < 60, and its leaf
    found, tally = matched(made, temperature=Literal(45))
    assert (found, tally.probes) == ([0], 3)  # x < 50, x <= 40, and the leaf on its * edge
    assert matched(made, temperature=Literal("text")) == ([], Tally(probes=1))


@pytest.mark.parametrize(
    ("test", "constraint", "result"),
    [
        (ElementaryTest(0, VALUE), Equal(YORK), YORK),
        (ElementaryTest(0, VALUE), Interval(7, 7), None),
        (ElementaryTest(0, NUMBER), Equal(Literal(7)), 7.0),
        (ElementaryTest(0, NUMBER), Equal(YORK), None),
        (ElementaryTest(0, NUMBER), Interval(7, 8), None),
        (ElementaryTest(0, LESS, 8), Equal(Literal(7)), True),
        (ElementaryTest(0, LESS, 7), Interval(7, inf), False),
        (ElementaryTest(0, LESS, 7), Interval(-inf, nextafter(7, -inf)), True),
        (ElementaryTest(0, LESS, 7), Interval(-inf, 7), None),
        (ElementaryTest(0, LESS, -inf), Interval(), False),
        (ElementaryTest(0, LESS, 7), Present(), None),
        (ElementaryTest(0, PRESENT), Interval(), True),
    ],
)
def test_which_results_are_implied(
    test: ElementaryTest, constraint: Constraint, result: Result | None
) -> None:
    assert test.implied(constraint) == result


def test_that_a_leaf_is_replaced_by_a_longer_subscriptions_test() -> None:
    made = gryphon({CITY: Present()}, {CITY: Present(), TEMPERATURE: Present()})
    assert matched(made, city=YORK, temperature=Literal(1))[0] == [0, 1]
    made.unsubscribe("1")  # Undo the change.
    assert matched(made, city=YORK)[0] == [0]
