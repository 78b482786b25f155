"""Lists of numbers: they have what was put into them, and rooms are used again."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphmatch.published.flat.postings import Postings

CHOSEN = st.sets(st.integers(0, 4), min_size=1)


@given(st.lists(CHOSEN, max_size=60), st.data())
def test_that_lists_have_what_was_put_in_and_not_taken_out(
    chosen: list[set[int]], data: st.DataObject
) -> None:
    postings = Postings(2)
    postings.extend(3)
    expected: list[set[int]] = [set() for _ in range(5)]
    for number, lists in enumerate(chosen):
        postings.append(np.array(sorted(lists)), number)
        for which in lists:
            expected[which].add(number)
        gone = data.draw(st.sampled_from(sorted(set().union(*expected))))
        if data.draw(st.booleans()):
            having = [which for which in range(5) if gone in expected[which]]
            postings.discard(np.array(having), gone)
            for which in having:
                expected[which].remove(gone)
    found = [postings.of(which).tolist() for which in range(len(postings))]
    assert [sorted(numbers) for numbers in found] == [sorted(numbers) for numbers in expected]


def test_that_rooms_are_used_again() -> None:
    """In any order of lists: those of every size are kept apart."""
    postings = Postings(3)
    sizes = []
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        for which, count in zip(order, (100, 20, 5), strict=True):
            for number in range(count):
                postings.append(np.array([which]), number)
        sizes.append(postings.nbytes)
        for which, count in zip(order, (100, 20, 5), strict=True):
            for number in range(count):
                postings.discard(np.array([which]), number)
        assert not postings.size.any()
    assert len(set(sizes)) == 1
