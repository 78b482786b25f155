"""Rows and lists of numbers: each has what was put in, and room is used again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graphmatch.published.flat.pool import BLOCK, FIRST, Chains, Pool


def test_that_a_row_has_one_owner() -> None:
    pool = Pool(3)
    taken = [pool.take() for _ in range(100)]
    assert len({0, *taken}) == 101
    for row in taken:
        pool.rows[row] = row
    assert all((pool.rows[row] == row).all() for row in taken)


def test_that_a_row_comes_back_empty_and_takes_no_more_room() -> None:
    pool = Pool(3)
    taken = [pool.take() for _ in range(100)]
    pool.rows[1:] = 7
    for row in taken:
        pool.give(row)
    size = pool.nbytes
    assert len(pool) == 0
    assert {pool.take() for _ in range(100)} == set(taken)
    assert not pool.rows[taken].any()
    assert pool.nbytes == size


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=150))
def test_that_lists_have_what_was_put_in(steps: list[tuple[int, bool]]) -> None:
    chains = Chains()
    heads, expected = [0, 0, 0], [set[int](), set[int](), set[int]()]
    for number, (which, away) in enumerate(steps):
        if away and expected[which]:
            gone = min(expected[which])
            expected[which].remove(gone)
            heads[which] = chains.drop(heads[which], gone)
        else:
            expected[which].add(number)
            heads[which] = chains.put(heads[which], number)
    for head, numbers in zip(heads, expected, strict=True):
        assert sorted(chains.of(head)) == sorted(numbers)
        assert bool(head) == bool(numbers)


def test_that_a_list_that_is_empty_has_no_blocks() -> None:
    chains, head = Chains(), 0
    count = 2 * (BLOCK - FIRST) + 1
    for number in range(count):
        head = chains.put(head, number)
    assert len(chains) == 3
    for number in range(count):
        head = chains.drop(head, number)
    assert (head, len(chains)) == (0, 0)


def test_that_dropping_what_is_not_there_changes_nothing() -> None:
    chains = Chains()
    head = chains.put(0, 1)
    assert chains.of(chains.drop(head, 2)) == [1]
