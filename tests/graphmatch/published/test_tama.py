"""TAMA: all of the oracle's answers, the false positives, and space reclaimed."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphmatch.published import make
from graphmatch.published.base import Conjunction, Event, Interval, Tally
from graphmatch.published.reconstructed.tama import Tama
from semantic import Ontology
from tests.graphmatch.published.conjunctions import DOMAIN, agree, conjunctions
from tests.strategies import Scenario

P, Q = NamedNode("urn:p"), NamedNode("urn:q")
FINITE = st.floats(-2, 10, allow_nan=False)


@pytest.mark.parametrize("layers", [1, 3, 13])
@given(conjunctions([Interval]), st.data())
def test_that_no_answer_of_the_oracle_is_missing(
    layers: int, scenario: Scenario, data: st.DataObject
) -> None:
    agree(lambda o: make("tama", o, domain=DOMAIN, layers=layers), scenario, data)


def tama(*rows: dict[NamedNode, Interval], layers: int = 4) -> Tama:
    """Return an index whose last layer has a cell for each number from 0 to 7."""
    made = Tama(Ontology(), domain=(0, 8), layers=layers)
    for number, row in enumerate(rows):
        made.add(Conjunction(str(number), P, (row,)))
    return made


@given(st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=20), FINITE)
def test_that_what_matches_is_what_meets_the_cell_of_the_value(
    ends: list[tuple[float, float]], value: float
) -> None:
    ranges = [(min(pair), max(pair)) for pair in ends]
    made = tama(*({P: Interval(low, high)} for low, high in ranges))

    def cell(number: float) -> int:
        return min(max(int(number // 1), 0), 7)

    expected = [n for n, (a, b) in enumerate(ranges) if cell(a) <= cell(value) <= cell(b)]
    assert sorted(made.matched(Event({}, {P: value}), Tally())) == expected


@pytest.mark.parametrize(
    ("interval", "cells"),
    [
        (Interval(0, 7.5), 1),  # The first layer covers all of it.
        (Interval(), 1),
        (Interval(-inf, 3.5), 1),
        (Interval(4, 5.5), 1),
        (Interval(3, 3), 1),
        (Interval(3, 4), 2),
        (Interval(1, 6), 4),  # 1, 2 and 3, 4 and 5, 6
        (Interval(1, 7), 3),  # 1, 2 and 3, 4 to 7
        (Interval(0.5, 6.5), 3),  # It is rounded to 0 to 6.
    ],
    ids=str,
)
def test_that_a_constraint_is_in_the_fewest_cells(interval: Interval, cells: int) -> None:
    made = tama({P: interval})
    assert len(made.cells[P]) == cells
    low, high = max(interval.low, 0) // 1, min(interval.high, 7) // 1
    for number in range(8):
        tally = Tally()
        found = list(made.matched(Event({}, {P: number + 0.25}), tally))
        assert len(found) == tally.candidates == (low <= number <= high)


def test_that_layers_make_it_more_exact() -> None:
    """4.5 is in the half of 3.5, in the quarter of 5.5, and finally in its own cell."""
    rows = {P: Interval(5.5, 8)}, {P: Interval(4.9, 8)}, {P: Interval(4.5, 8)}
    event = Event({}, {P: 4.5})
    found = [sorted(tama(*rows, layers=layers).matched(event, Tally())) for layers in (2, 4, 5, 6)]
    assert found == [[0, 1, 2], [1, 2], [1, 2], [2]]


def test_that_the_numbers_in_a_values_cells_are_counted() -> None:
    made = tama({P: Interval(0, 8), Q: Interval(0, 1)}, {P: Interval(5, 5)}, {P: Interval(0, 3)})
    tally = Tally()
    assert list(made.matched(Event({}, {P: 5.0}), tally)) == [1]
    assert (tally.probes, tally.gates, tally.candidates) == (4, 2, 2)
    assert list(made.matched(Event({}, {P: 5.0, Q: 0.5}), Tally())) in ([0, 1], [1, 0])
