"""Ranges in a tree: what a scan finds, and nothing is left behind."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from graphmatch.published.graphs.intervals import IntervalTree

numbers = st.integers(-5, 5).map(float)
ranges = st.lists(st.tuples(numbers | st.just(-inf), numbers | st.just(inf)), max_size=15)


@given(ranges, st.data())
def test_that_it_is_a_scan(given: list[tuple[float, float]], data: st.DataObject) -> None:
    tree = IntervalTree[int]()
    for item, (low, high) in enumerate(given):
        tree.insert(low, high, item)
    there = dict(enumerate(given))
    for item in data.draw(st.permutations(range(len(given)))):
        for number in (-inf, -6.0, -5.0, -0.5, 0.0, 2.0, 5.0, 6.0, inf):
            right = [i for i, (low, high) in there.items() if low <= number <= high]
            assert sorted(tree.at(number)) == sorted(right)
        tree.remove(*there.pop(item), item)
    assert len(tree) == 1
    assert not tree


def test_that_thousands_in_order_are_no_trouble() -> None:
    """Each divides the last part of the line: the tree is as deep as there are ranges."""
    tree = IntervalTree[int]()
    for item in range(3000):
        tree.insert(item, item + 0.5, item)
    assert list(tree.at(2999.25)) == [2999]
    for item in range(3000):
        tree.remove(item, item + 0.5, item)
    assert len(tree) == 1
