"""Paths between terms, and depths, compared with an exhaustive search."""

from __future__ import annotations

from itertools import product
from typing import Any

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphmatch.command.terms import WAYS, depth, upwards, ways

NODES = [NamedNode(f"urn:{n}") for n in range(9)]
EDGES = st.sets(
    st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda pair: pair[0] < pair[1]),
    max_size=20,
)
"""Edges from a child to a parent with a higher number, so without cycles."""


def graph_of(edges: set[tuple[int, int]]) -> nx.DiGraph[Any]:
    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_nodes_from(NODES)
    graph.add_edges_from((NODES[a], NODES[b]) for a, b in edges)
    return graph


@given(EDGES, st.integers(0, 8), st.integers(0, 8))
def test_ways_go_over_the_lowest_common_ancestors(
    edges: set[tuple[int, int]], one: int, other: int
) -> None:
    graph, start, end = graph_of(edges), NODES[one], NODES[other]
    common = {start, *nx.descendants(graph, start)} & {end, *nx.descendants(graph, end)}
    lowest = {c for c in common if not any(nx.has_path(graph, d, c) for d in common - {c})}
    expected = {
        (*up, *reversed(down[:-1]))
        for meet in lowest
        for up, down in product(
            nx.all_shortest_paths(graph, start, meet), nx.all_shortest_paths(graph, end, meet)
        )
    }
    found = list(ways(start, end, lambda term: tuple(graph.successors(term))))
    assert {way.terms for way in found} == expected
    assert len(found) == len(expected)
    assert {way.meet for way in found} == lowest


def test_a_cycle_does_not_stop_the_search() -> None:
    a, b, c = NODES[:3]
    above = {a: [b, a], b: [c], c: [b]}
    found = list(ways(a, c, lambda term: above[term]))
    assert (a, b, c) in {way.terms for way in found}


def test_the_number_of_ways_is_bounded() -> None:
    """20 diamonds in a row have a million paths."""
    above: dict[NamedNode, list[NamedNode]] = {}
    for n in range(20):
        left, right, top = (NamedNode(f"urn:{side}{n}") for side in ("l", "r", "t"))
        above[NamedNode(f"urn:t{n - 1}")] = [left, right]
        above[left] = above[right] = [top]
    start, end = NamedNode("urn:t-1"), NamedNode("urn:t19")
    found = list(ways(start, end, lambda term: above.get(term, [])))
    assert len({way.terms for way in found}) == WAYS


@given(EDGES)
def test_depths(edges: set[tuple[int, int]]) -> None:
    graph = graph_of(edges)
    longest = {
        node: max(len(p) for top in NODES for p in nx.all_simple_paths(graph, node, top)) - 1
        if list(graph.successors(node))
        else 0
        for node in NODES
    }
    for node in NODES:
        above = upwards([node], lambda term: tuple(graph.successors(term)))
        assert depth(above) == longest[node]
