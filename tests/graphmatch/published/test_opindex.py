"""OpIndex: the oracle's answers, the partitions and lists read, and space reclaimed."""

from __future__ import annotations

from math import inf, nextafter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphmatch.published import make
from graphmatch.published.base import Conjunction, Event, Interval, Tally
from graphmatch.published.reconstructed.opindex import OpIndex
from semantic import Ontology
from tests.graphmatch.published.conjunctions import agree, conjunctions
from tests.strategies import Scenario

P, Q, R = NamedNode("urn:p"), NamedNode("urn:q"), NamedNode("urn:r")
WIDE = Interval(0, 10)


@given(conjunctions([Interval]), st.data())
def test_that_it_agrees_with_the_oracle(scenario: Scenario, data: st.DataObject) -> None:
    agree(lambda o: make("opindex", o), scenario, data)


def opindex(*rows: dict[NamedNode, Interval]) -> OpIndex:
    made = OpIndex(Ontology())
    for number, row in enumerate(rows):
        made.add(Conjunction(str(number), P, (row,)))
    return made


def test_that_the_pivot_is_the_least_frequent_attribute() -> None:
    made = opindex({P: WIDE}, {P: WIDE, Q: WIDE}, {P: WIDE, Q: WIDE, R: WIDE}, {Q: WIDE, R: WIDE})
    assert {pivot: set(lists) for pivot, lists in made.partitions.items()} == {
        P: {P},
        Q: {P, Q},
        R: {P, Q, R},
    }


def test_that_only_partitions_of_the_events_attributes_are_read() -> None:
    """The rare attribute is missing, so none of its subscriptions are counted."""
    made = opindex({P: WIDE}, {P: WIDE, Q: WIDE})
    tally = Tally()
    assert list(made.matched(Event({}, {P: 5.0, R: 5.0}), tally)) == [0]
    assert tally.probes == 2 + 2  # Both attributes, as pivots and in the one partition
    assert (tally.gates, tally.candidates) == (2, 2)
    assert list(made.matched(Event({}, {R: 5.0}), tally)) == []
    assert (tally.gates, tally.candidates) == (2, 2)


@pytest.mark.parametrize(
    ("interval", "counted"),
    [
        (Interval(5, 5), 1),
        (Interval(5, 5.5), 2),
        (Interval(4, 5), 2),
        (Interval(low=5), 1),
        (Interval(high=5), 1),
        (Interval(), 1),
        (Interval(low=inf), 0),
        (Interval(4, 4), 0),
        (Interval(6, 7), 1),  # Only its predicate <= 7 holds.
        (Interval(3, 4), 1),
        (Interval(low=nextafter(5, inf)), 0),
        (Interval(high=nextafter(5, -inf)), 0),
    ],
    ids=str,
)
def test_that_predicates_that_hold_are_counted(interval: Interval, counted: int) -> None:
    made = opindex({P: interval})
    tally = Tally()
    matched = list(made.matched(Event({}, {P: 5.0}), tally))
    assert matched == ([0] if interval.holds(5) else [])
    assert tally.candidates == counted


def test_that_lists_are_read_by_bisection() -> None:
    """Late entries are sorted in, and the rest of a list is not counted."""
    made = opindex(*({P: Interval(low=float(low))} for low in (7, 1, 5, 3)))
    tally = Tally()
    assert list(made.matched(Event({}, {P: 4.0}), tally)) == [1, 3]
    assert tally.candidates == 2
    made.add(Conjunction("more", P, ({P: Interval(low=2)},)))
    assert list(made.matched(Event({}, {P: 4.0}), tally)) == [1, 3, 4]
    assert tally.candidates == 2 + 3
