"""H-Tree: the oracle's answers, the cells of subscriptions, the tests made, and space reclaimed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphmatch.published import make
from graphmatch.published.base import Conjunction, Event, Interval, Tally
from graphmatch.published.reconstructed.htree import HTree
from semantic import Ontology
from tests.graphmatch.published.conjunctions import ATTRIBUTES, DOMAIN, agree, conjunctions
from tests.strategies import Scenario

P, Q, R = (NamedNode(f"urn:{name}") for name in "pqr")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"levels": 1, "cells": 1},
        {"levels": 2, "cells": 5, "copies": 4},
        {"levels": 5, "cells": 13, "copies": 5000},
        {"indexed": ATTRIBUTES[3:], "cells": 4},
    ],
    ids=str,
)
@given(conjunctions([Interval]), st.data())
def test_that_it_agrees_with_the_oracle(
    options: dict[str, Any], scenario: Scenario, data: st.DataObject
) -> None:
    agree(lambda o: make("htree", o, domain=DOMAIN, **options), scenario, data)


def tree(rows: list[dict[NamedNode, Interval]], **options: Any) -> HTree:
    made = HTree(Ontology(), **{"domain": (0, 10), "levels": 2, "cells": 10, **options})
    for number, row in enumerate(rows):
        made.add(Conjunction(str(number), P, (row,)))
    return made


def entries(made: HTree, **values: float) -> int:
    """Return the number of entries that an event visits."""
    tally = Tally()
    list(made.matched(Event({}, {NamedNode(f"urn:{k}"): v for k, v in values.items()}), tally))
    return tally.candidates


def test_that_a_narrow_constraint_is_in_the_cell_of_its_centre() -> None:
    """The cell of 4 to 5 reaches from 3.5 to 5.5."""
    made = tree([{P: Interval(3.8, 4.6)}])
    assert [entries(made, p=p) for p in (3.4, 3.6, 4.0, 5.4, 5.6)] == [0, 1, 1, 1, 0]


def test_that_a_wide_constraint_is_split() -> None:
    """The constraint is in the cells of its parts' centres: 2.95, 3.85 and 4.75."""
    made = tree([{P: Interval(2.5, 5.2)}])
    found = [entries(made, p=p) for p in (1.4, 1.6, 2.6, 3.6, 4.6, 5.4, 5.6)]
    assert found == [0, 1, 2, 2, 1, 1, 0]


def test_that_levels_multiply_entries_up_to_a_bound() -> None:
    """The widest constraint is not split if that would exceed the bound."""
    row = {P: Interval(2.5, 5.5), Q: Interval(2.5, 6.5)}
    everything = tree([row], copies=12)
    assert entries(everything, p=4.2, q=4.2) == 4
    assert entries(everything, p=4.2, q=8.0) == 0
    bounded = tree([row], copies=11)
    assert entries(bounded, p=4.2, q=4.2) == entries(bounded, p=4.2, q=8.0) == 2
    assert entries(bounded, p=8.0, q=4.2) == 0


def test_that_a_subscription_in_several_lists_is_reported_once() -> None:
    made = tree([{P: Interval(0, 10), Q: Interval(0, 10)}], copies=100)
    tally = Tally()
    assert list(made.matched(Event({}, {P: 5.0, Q: 5.0}), tally)) == [0]
    assert (tally.probes, tally.gates, tally.candidates) == (3 + 2 * 3, 2 + 2 * 2, 4)


def test_that_only_indexed_attributes_keep_events_away() -> None:
    rows = [{P: Interval(1, 2), Q: Interval(1, 2)}]
    assert entries(tree(rows, indexed=[Q]), p=5.0, q=5.0) == 0
    assert entries(tree(rows, indexed=[R]), p=5.0, q=5.0) == 1


def test_that_so_many_levels_are_refused_as_lists_have_no_number() -> None:
    with pytest.raises(ValueError, match="99 cells on 10 levels are too many: take fewer"):
        HTree(Ontology(), levels=10, cells=99)
