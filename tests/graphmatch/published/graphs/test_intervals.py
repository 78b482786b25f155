"""Ranges in a tree: what a scan finds, and nothing is left behind."""

from __future__ import annotations

from math import inf
from sys import getrecursionlimit

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


def test_that_a_tree_may_be_deeper_than_python_recurses() -> None:
    """Each divides the last part of the line: the tree is as deep as there are ranges."""
    tree, many = IntervalTree[int](), getrecursionlimit() + 50
    for item in range(many):
        tree.insert(item, item + 0.5, item)
    assert list(tree.at(many - 0.75)) == [many - 1]
    for item in range(many):
        tree.remove(item, item + 0.5, item)
    assert len(tree) == 1
