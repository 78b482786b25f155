"""The hierarchy of integers, compiled and not, against plain walks over sets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semantic.ontology.hierarchy import Hierarchy
from semantic.ontology.reach import THREAD_PAIRS
from semantic.ontology.rows import Ids, compress

ROOT = Path(__file__).parents[3]
Links = list[tuple[int, int]]
PLAIN, COMPILED = 10**9, 0
"""Up to how many nodes nothing is compiled."""


def hierarchy(size: int, links: Links, small: int) -> Hierarchy:
    return Hierarchy(size, [c for c, _ in links], [p for _, p in links], small=small)


class Naive:
    """Sets of nodes, walked one link at a time."""

    def __init__(self, size: int, links: Links) -> None:
        self.parents = {n: [p for c, p in dict.fromkeys(links) if c == n != p] for n in range(size)}
        self.above = {node: self._above(node) for node in self.parents}

    def _above(self, node: int) -> set[int]:
        found: set[int] = set()
        agenda = [node]
        while agenda:
            for parent in self.parents[agenda.pop()]:
                if parent not in found:
                    found.add(parent)
                    agenda.append(parent)
        return found

    def is_a(self, node: int, other: int) -> bool:
        return node == other or other in self.above[node]

    def both_ways(self, node: int, other: int) -> bool:
        return self.is_a(node, other) and self.is_a(other, node)

    def depth(self, node: int) -> int:
        """Count the groups of nodes on the longest way down; those of a cycle are one."""
        steps = [
            self.depth(above) + 1 for above in self.above[node] if not self.both_ways(node, above)
        ]
        return max(steps, default=0)

    def lowest(self, node: int, other: int) -> set[int]:
        common = {n for n in self.parents if self.is_a(node, n) and self.is_a(other, n)}
        return {
            n for n in common if not any(self.is_a(m, n) and not self.is_a(n, m) for m in common)
        }


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Links]:
    """Draw links among a few nodes, mostly upwards so that there are not only cycles."""
    size = draw(st.integers(1, 12))
    node = st.integers(0, size - 1)
    links = draw(st.lists(st.tuples(node, node), max_size=30))
    if draw(st.booleans()):
        links = [(min(link), max(link)) for link in links]
    return size, links


def check(size: int, links: Links, small: int) -> None:
    found, expected = hierarchy(size, links, small), Naive(size, links)
    nodes = range(size)
    assert [found.parents[n] for n in nodes] == list(expected.parents.values())
    assert found.link_count == sum(map(len, expected.parents.values()))
    assert found.tops == [n for n in nodes if not expected.parents[n]]
    for node in nodes:
        assert set(found.children[node]) == {n for n in nodes if node in expected.parents[n]}
        assert set(found.ancestors(node)) == expected.above[node]
        assert set(found.descendants(node)) == {n for n in nodes if node in expected.above[n]}
        for other in nodes:
            lowest = found.lowest_common_ancestors(node, other)
            assert set(lowest) == expected.lowest(node, other)
            assert found.is_a(node, other) == expected.is_a(node, other)
    assert found.depth.tolist() == [expected.depth(node) for node in nodes]
    below, above = np.repeat(nodes, size), np.tile(nodes, size)
    answers = [expected.is_a(*pair) for pair in zip(below, above, strict=True)]
    assert found.is_a_many(below, above).tolist() == answers


@given(graphs())
def test_the_plain_way(graph: tuple[int, Links]) -> None:
    check(*graph, PLAIN)


@given(graphs())
def test_the_compiled_way(graph: tuple[int, Links]) -> None:
    check(*graph, COMPILED)


@given(graphs())
def test_that_nearest_comes_first_in_both_ways(graph: tuple[int, Links]) -> None:
    plain, compiled = hierarchy(*graph, PLAIN), hierarchy(*graph, COMPILED)
    for node in range(graph[0]):
        assert plain.ancestors(node) == compiled.ancestors(node)
        assert plain.descendants(node) == compiled.descendants(node)
        assert plain.parents[node] == compiled.parents[node]
        assert plain.children[node] == compiled.children[node]


def test_the_kernels_without_compiling_them() -> None:
    """numba's own switch: the same loops run as Python, where a bad index is an error."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "way"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert "3 passed" in ran.stdout, ran.stdout


@pytest.mark.parametrize("seed", range(3))
def test_a_graph_that_has_to_be_searched(seed: int) -> None:
    """Large enough that neither bits nor labels answer everything."""
    size, levels = 6000, 12
    random = np.random.default_rng(seed)
    level = np.sort(random.integers(0, levels, size))
    start = np.searchsorted(level, np.arange(levels))
    child = np.repeat(np.arange(start[1], size), 2)
    before = level[child] - 1
    parent = random.integers(start[before], start[before + 1])
    names = random.permutation(size)  # so that numbers tell nothing
    child, parent = names[child], names[parent]
    found = Hierarchy(size, child, parent, small=COMPILED)
    nodes = random.integers(0, size, 40)
    for node in nodes.tolist():
        above = {node, *found.ancestors(node)}
        assert above == _above(node, child, parent)
        expected = [other in above for other in range(size)]
        assert found.is_a_many(np.full(size, node), np.arange(size)).tolist() == expected


def _above(node: int, child: Ids, parent: Ids) -> set[int]:
    found = np.zeros(child.max() + parent.max() + 1, np.bool_)
    found[node] = True
    while True:
        more = found.copy()
        more[parent[found[child]]] = True
        if (more == found).all():
            return set(np.flatnonzero(found).tolist())
        found = more


def test_no_nodes_and_no_pairs() -> None:
    for small in (PLAIN, -1):
        empty = Hierarchy(0, [], [], small=small)
        assert (len(empty), empty.link_count, empty.tops, empty.cycles) == (0, 0, [], [])
        assert empty.depth.tolist() == empty.is_a_many([], []).tolist() == []


def test_a_long_chain_needs_no_deep_stack() -> None:
    size = 20_000
    chain = Hierarchy(size, np.arange(size - 1), np.arange(1, size))
    assert chain.depth[0] == size - 1
    assert chain.is_a(0, size - 1)
    assert not chain.is_a(size - 1, 0)


def test_a_long_cycle_is_folded() -> None:
    size = 10_000
    ring = Hierarchy(size, np.arange(size), np.roll(np.arange(size), -1))
    assert ring.cycles == [list(range(size))]
    assert ring.is_a(7, 3)
    assert ring.depth.max() == 0
    assert len(ring.ancestors(5)) == size


@pytest.mark.parametrize(
    ("children", "parents", "message"),
    [
        ([0], [3], "0 to 2"),
        ([-1], [0], "0 to 2"),
        ([0, 1], [1], "one length"),
    ],
)
def test_links_that_fit_nowhere(children: list[int], parents: list[int], message: str) -> None:
    for small in (PLAIN, COMPILED):
        with pytest.raises(ValueError, match=message):
            Hierarchy(3, children, parents, small=small)


@pytest.mark.parametrize("pair", [([0], [3]), ([-1], [0]), ([0], [2**32]), ([0, 1], [0])])
def test_pairs_that_fit_nowhere(pair: tuple[list[int], list[int]]) -> None:
    with pytest.raises(ValueError, match=r"not a node|one length"):
        Hierarchy(3, [0], [1]).is_a_many(*pair)


def test_rows_keep_the_order_of_links() -> None:
    of, to = np.array([2, 0, 2, 2, 0], np.int32), np.array([1, 2, 0, 1, 1], np.int32)
    for compiled in (False, True):
        rows = compress(of, to, 3, compiled=compiled)
        assert [rows[node] for node in range(3)] == [[2, 1], [], [1, 0]]


def test_that_a_small_hierarchy_does_without_numba() -> None:
    code = (
        "import sys; from semantic import Ontology; o = Ontology(); "
        "from semantic.ontology.hierarchy import Hierarchy; h = Hierarchy(3, [0, 1], [1, 2]); "
        "assert h.is_a(0, 2) and h.is_a_many([0], [2])[0] and not h.cycles; "
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_that_many_pairs_are_answered_as_few_are() -> None:
    """Many are shared among threads."""
    random = np.random.default_rng(5)
    size = 6_000
    children = np.arange(1, size, dtype=np.int32).repeat(2)
    parents = (random.random(children.size) * children).astype(np.int32)
    hierarchy = Hierarchy(size, children, parents)
    low, high = random.integers(0, size, (2, 2 * THREAD_PAIRS + 7), dtype=np.int32)
    whole = hierarchy.is_a_many(low, high)
    step = THREAD_PAIRS // 3
    few = [
        hierarchy.is_a_many(low[begin : begin + step], high[begin : begin + step])
        for begin in range(0, low.size, step)
    ]
    assert 0 < whole.sum() < whole.size
    assert (whole == np.concatenate(few)).all()
