"""Growing lists: they are what lists of Python are, and no larger than they were."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphmatch.published.graphs.lists import Lists

places = st.integers(0, 12)
batches = st.lists(st.lists(st.tuples(places, st.integers(0, 99)), max_size=20), max_size=12)


@given(batches, st.data())
def test_that_they_are_lists(batches: list[list[tuple[int, int]]], data: st.DataObject) -> None:
    lists, model = Lists(), defaultdict[int, list[int]](list)
    for batch in batches:
        lists.extend(np.array([p for p, _ in batch]), np.array([value for _, value in batch]))
        for place, value in batch:
            model[place].append(value)
        for place, value in data.draw(st.lists(st.sampled_from(batch or [(0, 0)]), max_size=3)):
            if value in model[place]:
                lists.discard(place, value)
                model[place].remove(value)
        for place, _ in data.draw(st.lists(st.sampled_from(batch), max_size=2)) if batch else ():
            lists.clear(place)
            model[place].clear()
        assert [sorted(lists[p].tolist()) for p in range(20)] == [
            sorted(model[p]) for p in range(20)
        ]
        assert len(lists) == sum(map(len, model.values()))


def test_that_what_is_appended_stays_in_order() -> None:
    lists = Lists()
    for value in range(100):
        lists.extend(np.array([7, 3]), np.array([value, value]))
    assert lists[7].tolist() == lists[3].tolist() == list(range(100))


def test_that_space_is_used_again() -> None:
    lists, sizes = Lists(), []
    for _ in range(6):
        for place in range(50):
            lists.extend(np.full(place, place), np.arange(place))
        sizes.append(lists.nbytes)
        for place in range(50):
            lists.clear(place)
    assert len(set(sizes[1:])) == 1
    assert sizes[-1] < 4 * 50 * 49 / 2 * 4
