from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from semantic.ontology.taxonomy import Taxonomy, find_cycles
from semantic.terms import Term

A, B, C, D, E = (NamedNode(f"urn:{name}") for name in "ABCDE")
DIAMOND = Taxonomy([(A, B), (A, C), (B, D), (C, D)], members=[E])

edges = st.lists(st.tuples(*[st.sampled_from((A, B, C, D, E))] * 2), max_size=12)


def test_a_diamond() -> None:
    assert DIAMOND.parents(A) == (B, C)
    assert DIAMOND.children(D) == (B, C)
    assert DIAMOND.ancestors(A) == (B, C, D)
    assert DIAMOND.descendants(D) == (B, C, A)
    assert DIAMOND.tops == (E, D)
    assert list(DIAMOND) == [E, A, B, C, D]
    assert DIAMOND.path(A, D) in ((A, B, D), (A, C, D))
    assert DIAMOND.path(A, A) == (A,)
    assert DIAMOND.path(D, A) == ()


def test_terms_that_it_does_not_have() -> None:
    unknown = NamedNode("urn:unknown")
    assert unknown not in DIAMOND
    for walk in (DIAMOND.parents, DIAMOND.children, DIAMOND.ancestors, DIAMOND.descendants):
        assert walk(unknown) == ()
    assert DIAMOND.is_a(unknown, unknown)
    assert not DIAMOND.is_a(unknown, D)
    assert not DIAMOND.is_a(A, unknown)


def test_a_shortcut_is_the_shortest_path() -> None:
    taxonomy = Taxonomy([(A, B), (B, C), (C, D), (A, D)])
    assert taxonomy.path(A, D) == (A, D)
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
            assert taxonomy.is_a(term, other) == nx.has_path(graph, term, other)
            path = taxonomy.path(term, other)
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
    assert find_cycles(links) == cycles


def test_what_two_terms_share() -> None:
    unknown = NamedNode("urn:unknown")
    assert DIAMOND.lowest_common_ancestors(B, C) == (D,)
    assert DIAMOND.lowest_common_ancestors(A, B) == (B,)
    assert DIAMOND.lowest_common_ancestors(A, E) == ()
    assert DIAMOND.lowest_common_ancestors(unknown, unknown) == (unknown,)
    assert DIAMOND.lowest_common_ancestors(unknown, A) == ()
    two = Taxonomy([(A, C), (A, D), (B, C), (B, D), (C, E), (D, E)])
    assert set(two.lowest_common_ancestors(A, B)) == {C, D}


def test_that_no_more_is_remembered_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("semantic.ontology.taxonomy.CACHED", 3)
    taxonomy = Taxonomy([(A, B), (B, C), (C, D), (D, E)])
    for _ in range(2):
        assert taxonomy.ancestors(A) == (B, C, D, E)
        assert taxonomy.ancestors(B) == (C, D, E)
        assert taxonomy.ancestors(C) == (D, E)
        assert taxonomy.ancestors(D) == (E,)
        assert sum(map(len, taxonomy._ancestors.values())) <= 3
