"""BE-Tree: the oracle's answers, splitting, the tests made, and space reclaimed."""

from __future__ import annotations

from typing import Any

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
    Tally,
)
from graphmatch.published.reconstructed.betree import BETree
from semantic import Ontology
from tests.graphmatch.published.conjunctions import DOMAIN, agree, conjunctions
from tests.strategies import Scenario

P, Q, R = (NamedNode(f"urn:{name}") for name in "pqr")


@pytest.mark.parametrize(
    "options",
    [{}, {"capacity": 1, "atom": 0.25}, {"capacity": 2, "atom": 5}, {"capacity": 1, "atom": 100}],
    ids=str,
)
@given(conjunctions([Interval, Equal, Present]), st.data())
def test_that_it_agrees_with_the_oracle(
    options: dict[str, Any], scenario: Scenario, data: st.DataObject
) -> None:
    agree(lambda o: make("betree", o, domain=DOMAIN, **options), scenario, data)


def tree(*rows: dict[NamedNode, Constraint], **options: Any) -> BETree:
    made = BETree(Ontology(), **{"domain": (0, 16), "capacity": 2, **options})
    for number, row in enumerate(rows):
        made.add(Conjunction(str(number), P, (row,)))
    return made


def work(made: BETree, **values: float | str) -> tuple[int, int, int]:
    """Return the numbers of visited buckets, of l-nodes in them, and of tests."""
    event = Event.of({NamedNode(f"urn:{k}"): Literal(v) for k, v in values.items()})
    tally = Tally()
    list(made.matched(event, tally))
    return tally.probes, tally.gates, tally.candidates


def test_that_an_l_node_is_a_list_until_it_is_full() -> None:
    made = tree({P: Interval(0, 1)}, {P: Interval(9, 10)})
    assert work(made, p=0.5) == work(made, q=0.5) == (1, 1, 2)
    made.add(Conjunction("2", P, ({P: Interval(9, 10)},)))
    assert work(made, q=0.5) == (1, 0, 0)
    assert work(made, p=0.5) == (3, 1, 1)  # These are the root, the domain and its lower half.
    assert work(made, p=9.5) == (3, 1, 2)


def test_that_what_lies_in_neither_half_stays_above() -> None:
    made = tree({P: Interval(0, 1)}, {P: Interval(7, 9)}, {P: Interval(9, 10)})
    assert work(made, p=0.5) == (3, 2, 2)
    assert work(made, p=8.5) == (3, 2, 2)


def test_that_a_bucket_is_cut_down_to_an_atom_and_its_l_node_grows_then() -> None:
    """Five buckets lead from width 16 to 1, and the last one's p-directory has two more."""
    rows: list[dict[NamedNode, Constraint]] = [{P: Interval(0.2, 0.4)} for _ in range(9)]
    made = tree(*rows)
    assert work(made, p=0.3) == (1 + 5, 1, 9)
    assert work(made, p=3.0) == (1 + 3, 0, 0)
    assert work(tree(*rows, atom=4), p=3.0) == (1 + 3, 1, 9)


def test_that_values_beyond_the_domain_are_in_its_last_buckets() -> None:
    made = tree({P: Interval(-9, -8)}, {P: Interval(20, 30)}, {P: Interval(40, 50)})
    assert work(made, p=-8.5) == (3, 1, 1)
    assert list(made.matched(Event({}, {P: 45.0}), Tally())) == [2]


def test_that_subscriptions_are_parted_by_the_attribute_of_the_highest_rank() -> None:
    """All use p, but none fits a half; two of three use q, and fit one."""
    wide, narrow = Interval(1, 15), Interval(1, 2)
    made = tree({P: wide, Q: narrow}, {P: wide, Q: narrow}, {P: wide})
    assert work(made, p=5.0) == (1, 1, 1)
    assert work(made, p=5.0, q=1.5)[2] == 3


def test_that_a_new_subscription_goes_to_the_p_node_of_the_highest_rank() -> None:
    narrow = Interval(1, 2)
    by_p: list[dict[NamedNode, Constraint]] = [{P: narrow}] * 4
    made = tree({Q: narrow}, {Q: narrow}, *by_p)
    assert work(made, q=1.5) == (2, 1, 2)
    made.add(Conjunction("6", P, ({Q: narrow, P: Interval(14, 15)},)))
    assert work(made, q=1.5) == (2, 1, 2)
    assert work(made, p=14.5)[2] == 1


def test_that_what_is_gone_counts_no_more() -> None:
    """After two of three p subscriptions are removed, q has the higher rank."""
    narrow = Interval(1, 2)
    made = tree(*[{P: narrow}] * 3, *[{Q: narrow}] * 3)
    assert (work(made, p=1.5)[2], work(made, q=1.5)[2]) == (3, 3)
    made.unsubscribe("0")
    made.unsubscribe("1")
    made.add(Conjunction("6", P, ({P: narrow, Q: narrow},)))
    assert (work(made, p=1.5)[2], work(made, q=1.5)[2]) == (1, 5)


def test_that_a_p_node_without_subscriptions_is_removed() -> None:
    """Another p-node below still uses the attribute."""
    narrow = Interval(1, 2)
    made = tree({Q: narrow, P: narrow}, *[{Q: narrow}] * 3, *[{P: narrow}] * 3)
    assert work(made, p=1.5)[2] == 3
    for id in "456":
        made.unsubscribe(id)
    assert work(made, p=1.5) == (1, 0, 0)
    assert work(made, q=1.5)[2] >= 3


def test_that_terms_and_presence_are_attributes_of_their_own() -> None:
    made = tree(
        *[{P: Equal(Literal("a"))}] * 2,
        *[{P: Present()}] * 2,
        *[{P: Interval(1, 2)}] * 2,
        capacity=1,
    )
    assert work(made, q="a") == (1, 0, 0)
    assert work(made, p="a")[2] == 4
    assert work(made, p="b")[2] == 2
    assert work(made, p=1.5)[2] == 4


def test_that_a_tree_may_be_deep() -> None:
    row: dict[NamedNode, Constraint] = {
        NamedNode(f"urn:{n}"): Interval(0.2, 0.4) for n in range(150)
    }
    made = tree(*[row] * 3, atom=0.01)
    event = Event({}, dict.fromkeys(row, 0.3))
    assert list(made.matched(event, Tally())) == [0, 1, 2]
