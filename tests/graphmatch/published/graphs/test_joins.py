"""Natural joins: what a nested loop gives, however little room there is."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphmatch.published.graphs.joins import EMPTY, Joins

triples = st.lists(
    st.tuples(st.integers(0, 3), st.just(0), st.integers(0, 3)), max_size=6, unique=True
)
tables = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.sets(st.integers(0, 5), max_size=6)),
    min_size=1,
    max_size=4,
)


def looped(
    edges: list[tuple[int, int, set[int]]], published: list[tuple[int, int, int]]
) -> set[tuple[int, ...]]:
    """Try all choices of one row of each table."""
    found = set()
    for chosen in product(*(sorted(table) for _, _, table in edges)):
        bound: dict[int, int] = {}
        pairs = [
            (star, published[row][end])
            for (i, j, _), row in zip(edges, chosen, strict=True)
            for star, end in ((i, 0), (j, 2))
            if star
        ]
        if all(bound.setdefault(star, vertex) == vertex for star, vertex in pairs):
            found.add(tuple(bound.get(star, EMPTY) for star in (1, 2, 3)))
    return found


@given(triples, st.lists(tables, min_size=1, max_size=4))
def test_that_a_join_is_a_nested_loop(
    published: list[tuple[int, int, int]], several: list[list[tuple[int, int, set[int]]]]
) -> None:
    joins = Joins()
    joins.room = 1
    cut = [[(i, j, {r for r in t if r < len(published)}) for i, j, t in e] for e in several]
    flat = [(number, edge) for number, edges in enumerate(cut) for edge in edges]
    numbers = np.array([number for number, _ in flat])
    stars = np.array([[3, 0], *([i, j] for _, (i, j, _) in flat)], np.int32)
    joins.insert(numbers, np.arange(len(flat)), stars[1:])
    joins.insert(np.array([len(cut)]), np.array([len(flat)]), stars[:1])  # three stars in all
    rows = joins.bind([(e, row) for e, (_, (_, _, t)) in enumerate(flat) for row in sorted(t)])
    graph = np.array(published, np.int32).reshape(-1, 3)
    joined = dict(joins.join(np.arange(len(cut)), rows, graph))
    for number, edges in enumerate(cut):
        found = {tuple(row) for row in joined[number].tolist()} if number in joined else set()
        assert found == looped(edges, published)
    assert (joins.head == EMPTY).all()


def test_that_only_what_was_hit_is_joined() -> None:
    joins = Joins()
    both, ends = np.array([0, 0, 1, 1]), np.array([[0, 1], [1, 0], [0, 1], [1, 0]])
    joins.insert(both, np.array([0, 1, 0, 2]), ends)
    rows = joins.bind([(0, 0), (2, 0)])
    found = joins.join(np.array([0, 1]), rows, np.array([[5, 0, 5]], np.int32))
    assert [(number, rows.tolist()) for number, rows in found] == [(1, [[5]])]
    assert joins.made == 1
