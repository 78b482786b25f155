"""Costs of the algorithms for attributes, by examples from their papers."""

from __future__ import annotations

import subprocess
import sys
from math import nextafter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from graphmatch.published import make
from graphmatch.published.attribute_matcher import (
    AttributeEvent,
    AttributeMatcher,
    Conjunction,
    Constraint,
    Equal,
    Interval,
    Present,
    Row,
    Tally,
)
from semantic import Ontology

P, Q, R, CITY, HEAT = (NamedNode(f"urn:{name}") for name in ("p", "q", "r", "city", "heat"))
WIDE, NARROW = Interval(0, 10), Interval(1, 2)


def index(name: str, *rows: Row, **options: Any) -> AttributeMatcher:
    made = make(name, Ontology(), **options)
    assert isinstance(made, AttributeMatcher)
    for number, row in enumerate(rows):
        made.add(Conjunction(str(number), P, (row,)))
    return made


def work(made: AttributeMatcher, **values: float | str) -> tuple[list[int], int, int, int]:
    """Return the matches of an event, and its numbers of probes, gates and candidates."""
    event = AttributeEvent.of({NamedNode(f"urn:{name}"): Literal(v) for name, v in values.items()})
    tally = Tally()
    return sorted(made.matched(event, tally)), tally.probes, tally.index_hits, tally.candidates


def candidates(made: AttributeMatcher, **values: float | str) -> int:
    return work(made, **values)[3]


# --- REIN and OpIndex -----------------------------------------------------------------------------


def test_rein_marks_failed_constraints_only() -> None:
    """Wide constraints cost only their ends in the value's own buckets."""
    rows = (Interval(0, 9.9), Interval(5.5, 9.9), Interval(8, 9.9), Interval(0, 2))
    made = index("rein", *({P: row} for row in rows), domain=(0, 10), buckets=10)
    assert work(made, p=5.4) == ([0], 3, 0, 1)


def test_opindex_reads_the_partitions_of_the_events_attributes() -> None:
    """Both attributes are pivots, and the partition of p has a list of p only."""
    made = index("opindex", {P: WIDE}, {P: WIDE, Q: WIDE})
    assert work(made, p=5, r=5) == ([0], 2 + 2, 2, 2)
    assert work(made, r=5) == ([], 1, 0, 0)


def test_opindex_reads_lists_by_bisection() -> None:
    """Late entries are sorted in, and the rest of a list is not counted."""
    made = index("opindex", *({P: Interval(low=float(low))} for low in (7, 1, 5, 3)))
    assert (work(made, p=4)[0], candidates(made, p=4)) == ([1, 3], 2)
    made.add(Conjunction("more", P, ({P: Interval(low=2)},)))
    assert (work(made, p=4)[0], candidates(made, p=4)) == ([1, 3, 4], 3)


# --- TAMA -----------------------------------------------------------------------------------------

FINITE = st.floats(-2, 10, allow_nan=False)


@given(st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=20), FINITE)
def test_tama_matches_constraints_that_touch_the_values_cell(
    ends: list[tuple[float, float]], value: float
) -> None:
    """The last layer has a cell for each number from 0 to 7."""
    ranges = [(min(pair), max(pair)) for pair in ends]
    rows = ({P: Interval(low, high)} for low, high in ranges)

    def cell(number: float) -> int:
        return min(max(int(number // 1), 0), 7)

    expected = [n for n, (a, b) in enumerate(ranges) if cell(a) <= cell(value) <= cell(b)]
    assert work(index("tama", *rows, domain=(0, 8), layers=4), p=value)[0] == expected


def test_tama_is_more_exact_with_more_layers() -> None:
    """4.5 is in the half of 3.5, in the quarter of 5.5, and finally in its own cell."""
    rows = [{P: Interval(low, 8)} for low in (5.5, 4.9, 4.5)]
    made = [index("tama", *rows, domain=(0, 8), layers=layers) for layers in (2, 4, 5, 6)]
    assert [work(one, p=4.5)[0] for one in made] == [[0, 1, 2], [1, 2], [1, 2], [2]]


def test_tama_counts_the_entries_of_the_values_cells() -> None:
    rows = {P: Interval(0, 8), Q: Interval(0, 1)}, {P: Interval(5, 5)}, {P: Interval(0, 3)}
    assert work(index("tama", *rows, domain=(0, 8), layers=4), p=5) == ([1], 4, 2, 2)


# --- H-Tree ---------------------------------------------------------------------------------------


def htree(*rows: Row, **options: Any) -> AttributeMatcher:
    return index("htree", *rows, **{"domain": (0, 10), "levels": 2, "cells": 10, **options})


@pytest.mark.parametrize(
    ("interval", "entries"),
    [
        # The cell of the centre reaches from 3.5 to 5.5.
        (Interval(3.8, 4.6), {3.4: 0, 3.6: 1, 4.0: 1, 5.4: 1, 5.6: 0}),
        # The constraint is split. It is in the cells of its parts' centres: 2.95, 3.85 and 4.75.
        (Interval(2.5, 5.2), {1.4: 0, 1.6: 1, 2.6: 2, 3.6: 2, 4.6: 1, 5.4: 1, 5.6: 0}),
    ],
    ids=str,
)
def test_htree_puts_constraints_into_the_cells_of_centres(
    interval: Interval, entries: dict[float, int]
) -> None:
    made = htree({P: interval})
    assert {value: candidates(made, p=value) for value in entries} == entries


def test_htree_multiplies_entries_up_to_a_bound() -> None:
    """The widest constraint is not split if that would exceed the bound."""
    row = {P: Interval(2.5, 5.5), Q: Interval(2.5, 6.5)}
    everything, bounded = htree(row, copies=12), htree(row, copies=11)
    assert [candidates(everything, p=4.2, q=q) for q in (4.2, 8)] == [4, 0]
    assert [candidates(bounded, p=4.2, q=q) for q in (4.2, 8)] == [2, 2]
    made = htree({P: WIDE, Q: WIDE}, copies=100)
    assert work(made, p=5, q=5) == ([0], 3 + 2 * 3, 2 + 2 * 2, 4)


def test_htree_keeps_events_away_by_indexed_attributes_only() -> None:
    row = {P: NARROW, Q: NARROW}
    assert [candidates(htree(row, indexed=[a]), p=5, q=5) for a in (Q, R)] == [0, 1]


def test_htree_refuses_more_levels_than_its_lists_have_numbers() -> None:
    with pytest.raises(ValueError, match="99 cells on 10 levels are too many: take fewer"):
        htree(levels=10, cells=99)


# --- BE-Tree --------------------------------------------------------------------------------------


def betree(*rows: Row, **options: Any) -> AttributeMatcher:
    return index("betree", *rows, **{"domain": (0, 16), "capacity": 2, **options})


def test_betree_splits_full_l_nodes() -> None:
    made = betree({P: Interval(0, 1)}, {P: Interval(9, 10)})
    assert work(made, p=0.5)[1:] == work(made, q=0.5)[1:] == (1, 1, 2)
    made.add(Conjunction("2", P, ({P: Interval(9, 10)},)))
    assert work(made, q=0.5)[1:] == (1, 0, 0)
    assert work(made, p=0.5)[1:] == (3, 1, 1)  # The root, the domain and its lower half.
    assert work(made, p=9.5)[1:] == (3, 1, 2)


def test_betree_divides_buckets_down_to_an_atom() -> None:
    """Five buckets lead from width 16 to 1, and the last one's p-directory has two more."""
    rows = [{P: Interval(0.2, 0.4)} for _ in range(9)]
    assert work(betree(*rows), p=0.3)[1:] == (1 + 5, 1, 9)
    assert work(betree(*rows), p=3)[1:] == (1 + 3, 0, 0)
    assert work(betree(*rows, atom=4), p=3)[1:] == (1 + 3, 1, 9)


def test_betree_splits_by_the_attribute_of_the_highest_rank() -> None:
    """All use p, but none fits a half; two of three use q, and fit one."""
    wide = Interval(1, 15)
    made = betree({P: wide, Q: NARROW}, {P: wide, Q: NARROW}, {P: wide})
    assert work(made, p=5)[1:] == (1, 1, 1)
    assert candidates(made, p=5, q=1.5) == 3


def test_betree_ranks_attributes_without_removed_subscriptions() -> None:
    """After two of three p subscriptions are removed, q has the higher rank."""
    made = betree(*[{P: NARROW}] * 3, *[{Q: NARROW}] * 3)
    assert [candidates(made, p=1.5), candidates(made, q=1.5)] == [3, 3]
    made.unsubscribe("0")
    made.unsubscribe("1")
    made.add(Conjunction("6", P, ({P: NARROW, Q: NARROW},)))
    assert [candidates(made, p=1.5), candidates(made, q=1.5)] == [1, 5]


def test_betree_indexes_terms_and_presence_as_attributes_of_their_own() -> None:
    kinds: list[Constraint] = [Equal(Literal("a")), Present(), NARROW]
    made = betree(*({P: kind} for kind in kinds for _ in range(2)), capacity=1)
    assert work(made, q="a")[1:] == (1, 0, 0)
    assert [candidates(made, p=value) for value in ("a", "b", 1.5)] == [4, 2, 4]


def test_betree_may_be_deep() -> None:
    row = {NamedNode(f"urn:{n}"): Interval(0.2, 0.4) for n in range(150)}
    made = betree(*[row] * 3, atom=0.01)
    assert list(made.matched(AttributeEvent({}, dict.fromkeys(row, 0.3)), Tally())) == [0, 1, 2]


@pytest.mark.parametrize("name", ["betree", "htree"])
def test_matchers_run_without_numba(name: str) -> None:
    program = f"""
import sys
sys.modules["numba"] = None
from tests.graphmatch.published.test_attribute_algorithms import *
rows = ({{P: Interval(n, n + 9), Q: Interval(0, n)}} for n in range(100))
print(work(index("{name}", *rows, domain=(0, 100)), p=50, q=45)[0])
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([45, 46, 47, 48, 49, 50])


# --- Gryphon for all elementary tests -------------------------------------------------------------

YORK, COLD = Equal(Literal("New York")), Interval(high=nextafter(40, -1))


def gryphon(*rows: Row) -> AttributeMatcher:
    return index("gryphon-general", *rows, attributes=[CITY, HEAT])


def test_gryphon_shares_tests_as_in_section_3() -> None:
    """Two subscriptions share the first test; the third one does not use it."""
    made = gryphon({CITY: YORK, HEAT: COLD}, {CITY: YORK}, {HEAT: COLD})
    assert work(made, city="New York", heat=30) == ([0, 1, 2], 6, 3, 3)
    assert work(made, city="New York")[:2] == ([1], 4)
    assert work(made, city="Ithaca", heat=50) == ([], 2, 0, 0)


def test_gryphon_skips_tests_with_known_results() -> None:
    """The test x < 40 is below "x < 50 is true", and x >= 60 below "false"."""
    below = Interval(high=nextafter(50, -1))
    made = gryphon({HEAT: below}, {HEAT: Interval(high=40)}, {HEAT: Interval(low=60)})
    assert work(made, heat=70)[:2] == ([2], 3)  # x < 50, x < 60, and its leaf
    assert work(made, heat=45)[:2] == ([0], 3)  # x < 50, x <= 40, and the leaf on its * edge
    assert work(made, heat="text") == ([], 1, 0, 0)
