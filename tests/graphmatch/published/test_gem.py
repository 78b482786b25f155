"""GEM: the oracle's answers, the parts of the triangle, and space reclaimed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphmatch.published import make
from graphmatch.published.base import Conjunction, Event, Interval, Tally
from graphmatch.published.reconstructed.gem import Gem
from semantic import Ontology
from tests.graphmatch.published.conjunctions import DOMAIN, agree, conjunctions
from tests.strategies import Scenario

P = NamedNode("urn:p")


@pytest.mark.parametrize("boxes", [1, 4, 50])
@given(conjunctions([Interval]), st.data())
def test_that_it_agrees_with_the_oracle(
    boxes: int, scenario: Scenario, data: st.DataObject
) -> None:
    agree(lambda o: make("gem", o, domain=DOMAIN, boxes=boxes), scenario, data)


def gem(**rows: dict[NamedNode, Interval]) -> Gem:
    """Return the index of CTPS's example: Rm = 100, T = 5."""
    made = Gem(Ontology(), domain=(0, 100), boxes=5)
    for id, row in rows.items():
        made.add(Conjunction(id, P, (row,)))
    return made


def test_that_a_constraint_is_in_one_cell_of_the_triangle() -> None:
    """Section 4.2 has [0, 20] in cell (1, 0); rows of the triangle follow each other."""
    made = gem()
    assert made._number(made.box(0), made.box(20)) == 1
    assert [made._number(x, y) for y in range(5) for x in range(y + 1)] == list(range(15))


PARTS = {
    "A": [(0, 10), (0, 39), (25, 39)],
    "B": [(60, 70), (99, 100), (60, 100)],
    "C": [(0, 44), (39, 46), (20, 45)],
    "D": [(44, 60), (46, 100), (45, 80)],
    "E": [(44, 46), (41, 44), (46, 59), (45, 45)],
    "F": [(0, 60), (39, 100), (20, 70)],
}
"""Ranges of the paper's example, in which the value 45 is in box 2."""


@pytest.mark.parametrize("part", PARTS)
def test_that_each_part_is_decided_as_it_should(part: str) -> None:
    ends = PARTS[part]
    made = gem(**{str(n): {P: Interval(*pair)} for n, pair in enumerate(ends)})
    tally = Tally()
    matched = list(made.matched(Event({}, {P: 45.0}), tally))
    assert matched == [n for n, (lower, upper) in enumerate(ends) if lower <= 45 <= upper]
    looked = {"E": 2, "F": 0}.get(part, 1)
    assert tally.candidates == looked * len(ends)
    assert tally.probes == 3 + 3 + 2 + 2 + 2  # A, B, C, D, and E for both ends; F is skipped.
