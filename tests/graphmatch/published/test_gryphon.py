"""Gryphon's tree for equality tests: visited nodes, and the theorem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from graphmatch.bench.experiments import expected_bound
from graphmatch.published.attribute_matcher import AttributeEvent, Conjunction, Equal, Tally
from graphmatch.published.gryphon import STAR, Gryphon
from semantic import Ontology

A = tuple(NamedNode(f"urn:a{number}") for number in range(1, 5))
K, V = len(A), 3
VALUES = tuple(Literal(str(value)) for value in range(1, V + 1))

Asked = Mapping[int, int]
"""Attribute to value, by number."""

ASKED = st.dictionaries(st.integers(0, K - 1), st.integers(0, V - 2), min_size=1)
"""No subscription uses the last value."""


def row(asked: Asked) -> dict[NamedNode, Equal]:
    return {A[attribute]: Equal(VALUES[value]) for attribute, value in asked.items()}


def gryphon(
    *asked: Asked, index: int = 0, collapse: bool = True, successors: bool = True
) -> Gryphon:
    made = Gryphon(
        Ontology(), attributes=A, index=A[:index], collapse=collapse, successors=successors
    )
    for number, one in enumerate(asked):
        made.add(Conjunction(str(number), A[0], (row(one),)))
    return made


def matched(made: Gryphon, *values: int) -> tuple[list[int], Tally]:
    """Return the matches of an event; its values count from 1, and 0 is a missing value."""
    tally = Tally()
    terms = {A[n]: VALUES[value - 1] for n, value in enumerate(values) if value}
    return sorted(made.matched(AttributeEvent(terms), tally)), tally


def visits(made: Gryphon) -> float:
    """Return the mean number of visited nodes over all events."""
    events = list(product(range(1, V + 1), repeat=K))
    return sum(matched(made, *values)[1].probes for values in events) / len(events)


@given(st.lists(ASKED, min_size=1, max_size=12))
def test_the_theorem_holds_and_each_optimisation_saves_visits(asked: Sequence[Asked]) -> None:
    plain = gryphon(*asked, collapse=False, successors=False)
    expected = 0.0
    for node in plain:
        steps, above = 0, node
        while above.parent is not None:
            steps += above.label != STAR
            above = above.parent
        expected += 1 / V**steps
    assert visits(plain) == pytest.approx(expected)
    assert expected <= expected_bound(K, V, len(asked))
    collapsed = gryphon(*asked, successors=False)
    assert visits(collapsed) <= visits(plain)
    assert visits(gryphon(*asked, collapse=False)) <= visits(plain)
    assert visits(gryphon(*asked)) <= visits(collapsed)


def test_the_bound_is_right_for_small_numbers() -> None:
    """K = 2, V = 2, N = 3: of 7 nodes 3 are always visited, 4 by half of the events."""
    assert expected_bound(2, 2, 3) == 3 + 4 / 2
    assert expected_bound(2, 2, 1000) == 3 + 3 + 1  # These are all possible nodes.


def test_subscriptions_share_edges_as_in_section_4() -> None:
    """Each attribute has a level: <1, 2, 3, *> and <1, *, 3, *> share their first edge."""
    made = gryphon({0: 0, 1: 1, 2: 2}, {0: 0, 2: 2}, collapse=False, successors=False)
    assert len(list(made)) == 8
    found, tally = matched(made, 1, 2, 3, 1)
    assert (found, tally.probes, tally.index_hits, tally.candidates) == ([0, 1], 8, 4, 2)
    found, tally = matched(made, 1, 1, 3, 1)
    assert (found, tally.probes, tally.index_hits) == ([1], 5, 2)
    found, tally = matched(made, 2, 2, 3, 1)
    assert (found, tally.probes, tally.index_hits) == ([], 1, 0)


def test_successors_save_visits_as_in_section_5() -> None:
    """Blocked behind <1, 2>, a search goes to <1, *> and <*, 2>; from <*, 2, 3> to <*, *, 3>."""
    asked = [{0: 0, 1: 1, 2: 0}, {0: 0, 2: 2}, {1: 1, 2: 2}, {2: 2}]
    made = gryphon(*asked)
    found, tally = matched(made, 1, 2, 3, 1)
    assert (found, tally.probes, tally.index_hits) == ([1, 2, 3], 8, 4)
    assert matched(gryphon(*asked, successors=False), 1, 2, 3, 1)[1].probes == 10
    made.unsubscribe("2")  # Now <*, *> replaces <*, 2>.
    found, tally = matched(made, 1, 2, 3, 1)
    assert (found, tally.probes) == ([1, 2], 7)


def test_an_index_attribute_has_a_subtree_for_each_value() -> None:
    """Subscriptions without the attribute are in all subtrees, and in the one for other values."""
    asked = [{0: 0, 1: 0}, {0: 1, 1: 0}, {1: 0}]
    made = gryphon(*asked, index=1)
    assert [matched(made, value, 1)[0] for value in range(4)] == [[2], [0, 2], [1, 2], [2]]
    assert matched(made, 1, 1)[1].probes == 3
    assert matched(gryphon(*asked, successors=False), 1, 1)[1].probes == 5
    nodes = len(list(made))
    made.unsubscribe("1")
    assert [matched(made, value, 1)[0] for value in range(4)] == [[1], [0, 1], [1], [1]]
    assert len(list(made)) == nodes - 2
