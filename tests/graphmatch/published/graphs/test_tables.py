"""Hash tables and pools: what a dictionary and a set are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphmatch.published.graphs.tables import EMPTY, Pool, Table, TableView, joined, put, take
from graphmatch.published.jit import kernel

halves = st.one_of(st.integers(0, 5), st.sampled_from([2**20, 2**31 - 1]))
keys = st.builds(joined, halves, halves)


@kernel
def _put(key: int, value: int, table: TableView) -> None:
    put(key, value, *table)


@given(st.lists(st.tuples(st.booleans(), keys), max_size=60))
def test_that_a_table_is_a_dictionary(steps: list[tuple[bool, int]]) -> None:
    table, model = Table(), dict[int, int]()
    for number, (is_put, key) in enumerate(steps):
        if is_put and key not in model:
            table.reserve(len(model) + 1)
            _put(key, number, table.view)
            model[key] = number
        elif not is_put and key in model:
            table.discard(key)
            del model[key]
        assert {key: table[key] for _, key in steps} == {
            key: model.get(key, EMPTY) for _, key in steps
        }


def test_that_halves_of_keys_do_not_mix() -> None:
    assert len({joined(high, low) for high in (0, 1, 2**31 - 1) for low in (0, 1, 2**31 - 1)}) == 9
    assert joined(2**31 - 1, 2**31 - 1) < 2**62


def test_that_places_of_a_table_are_few() -> None:
    table = Table()
    for count in (10, 1000):
        table.reserve(count)
        assert 12 * 2 * count <= table.nbytes < 12 * 4 * count


@given(st.lists(st.integers(0, 9), max_size=40))
def test_that_a_pool_gives_each_number_once(steps: list[int]) -> None:
    pool, taken = Pool(), list[int]()
    for step in steps:
        if step < 5 or not taken:
            pool.reserve(1)
            number = take(*pool.view)
            assert number not in taken
            taken.append(number)
        else:
            pool.give(taken.pop(step % len(taken)))
        assert pool.taken == len(taken)
        assert all(0 <= number < pool.most for number in taken)
    assert pool.most <= 2 * max(len(steps), 1)
    assert np.unique(taken).size == len(taken)
