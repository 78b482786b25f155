"""REIN: the oracle's answers, its marks, and space reclaimed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphmatch.published import make
from graphmatch.published.base import Conjunction, Event, Interval, Tally
from graphmatch.published.reconstructed.rein import Rein
from semantic import Ontology
from tests.graphmatch.published.conjunctions import DOMAIN, agree, conjunctions
from tests.strategies import Scenario

P = NamedNode("urn:p")


@pytest.mark.parametrize("buckets", [1, 4, 1000])
@given(conjunctions([Interval]), st.data())
def test_that_it_agrees_with_the_oracle(
    buckets: int, scenario: Scenario, data: st.DataObject
) -> None:
    agree(lambda o: make("rein", o, domain=DOMAIN, buckets=buckets), scenario, data)


def rein(**rows: dict[NamedNode, Interval]) -> Rein:
    made = Rein(Ontology(), domain=(0, 10), buckets=10)
    for id, row in rows.items():
        made.add(Conjunction(id, P, (row,)))
    return made


def test_that_only_what_does_not_hold_is_marked() -> None:
    """Wide constraints cost only their ends in the value's own buckets."""
    made = rein(
        wide={P: Interval(0, 9.9)},
        near={P: Interval(5.5, 9.9)},
        above={P: Interval(8, 9.9)},
        below={P: Interval(0, 2)},
    )
    tally = Tally()
    assert list(made.matched(Event({}, {P: 5.4}), tally)) == [0]
    assert (tally.probes, tally.candidates) == (3, 1)
