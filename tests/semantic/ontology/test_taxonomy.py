from __future__ import annotations

from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from semantic.ontology.taxonomy import Taxonomy, shortest_path
from semantic.terms import Term

A, B, C, D, E = (NamedNode(f"urn:{name}") for name in "ABCDE")
DIAMOND = Taxonomy([(A, B), (A, C), (B, D), (C, D)], members=[E])

edges = st.lists(st.tuples(*[st.sampled_from((A, B, C, D, E))] * 2), max_size=12)


def test_a_diamond() -> None:
    assert DIAMOND.parents(A) == (B, C)
    assert DIAMOND.children(D) == (B, C)
    assert DIAMOND.ancestors(A) == (B, C, D)
    assert DIAMOND.descendants(D) == (B, C, A)
    assert list(DIAMOND) == [E, A, B, C, D]
    assert shortest_path(A, D, DIAMOND.parents) in ((A, B, D), (A, C, D))
    assert shortest_path(A, A, DIAMOND.parents) == (A,)
    assert shortest_path(D, A, DIAMOND.parents) == ()


def test_terms_that_it_does_not_have() -> None:
    unknown = NamedNode("urn:unknown")
    assert unknown not in DIAMOND
    for walk in (DIAMOND.parents, DIAMOND.children, DIAMOND.ancestors, DIAMOND.descendants):
        assert walk(unknown) == ()


def test_a_shortcut_is_the_shortest_path() -> None:
    taxonomy = Taxonomy([(A, B), (B, C), (C, D), (A, D)])
    assert shortest_path(A, D, taxonomy.parents) == (A, D)
    assert taxonomy.ancestors(A) == (B, D, C)


@given(edges)
def test_against_networkx(links: list[tuple[Term, Term]]) -> None:
    graph: nx.DiGraph[Term] = nx.DiGraph([(a, b) for a, b in links if a != b])
    taxonomy = Taxonomy(links)
    for term in graph:
        in_cycle = any(nx.has_path(graph, after, term) for after in graph.successors(term))
        itself = {term} if in_cycle else set()
        assert set(taxonomy.ancestors(term)) == nx.descendants(graph, term) | itself
        assert set(taxonomy.descendants(term)) == nx.ancestors(graph, term) | itself
        for other in graph:
            path = shortest_path(term, other, taxonomy.parents)
            assert bool(path) == nx.has_path(graph, term, other)
            assert not path or len(path) == nx.shortest_path_length(graph, term, other) + 1
    assert set(taxonomy.to_networkx().edges) == set(graph.edges)


@pytest.mark.parametrize(
    ("links", "cycles"),
    [
        ([], []),
        ([(A, A)], []),
        ([(B, A), (A, B), (B, C)], [(A, B)]),
        ([(D, E), (E, D), (C, B), (B, A), (A, C)], [(A, B, C), (D, E)]),
    ],
)
def test_cycles(links: list[tuple[Term, Term]], cycles: list[tuple[Term, ...]]) -> None:
    assert list(Taxonomy(links).cycles) == cycles


@pytest.mark.parametrize("turn", [False, True], ids=["chain", "circle"])
def test_that_height_costs_nothing(turn: bool) -> None:
    """Time is linear in the number of links; quadratic code would take hours."""
    names: list[Term] = [NamedNode(f"urn:{number}") for number in range(30_000)]
    taxonomy = Taxonomy([*pairwise(names), *([(names[-1], names[0])] if turn else [])])
    assert len(taxonomy.ancestors(names[0])) == len(names) - (not turn)
    assert [len(cycle) for cycle in taxonomy.cycles] == [len(names)] * turn
