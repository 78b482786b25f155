from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.ontology.concept_trees import ConceptTrees, local_name
from semantic.ontology.taxonomy import Taxonomy
from semantic.terms import Term
from semantic.vocabulary import Namespace

EX = Namespace("http://example.org/")
PRODUCT, COMPUTER, LAPTOP, MONEY = (
    EX[n] for n in ("Product", "Computer", "LaptopPC", "MoneyValue")
)
CONTACT, EMAIL = EX["contact"], EX["email"]


def test_the_figure_of_the_paper() -> None:
    values = ConceptTrees([Taxonomy([(LAPTOP, COMPUTER), (COMPUTER, PRODUCT)], members=[MONEY])])
    assert values.root("Computer") == values.root(LAPTOP) == values.root("Product") == (PRODUCT,)
    assert values.root("MoneyValue") == (MONEY,)
    attributes = ConceptTrees([Taxonomy([(EMAIL, CONTACT)])], [("e-mail", EMAIL)])
    assert attributes.root("e-mail") == attributes.root("email") == (CONTACT,)
    assert set(attributes.tree(CONTACT).edges()) == {(EMAIL, CONTACT)}


def test_unknown_names_and_terms() -> None:
    trees = ConceptTrees([Taxonomy([(LAPTOP, COMPUTER)])])
    assert (trees.terms("x"), trees.root("x")) == ((), (Literal("x"),))
    assert trees.root(MONEY) == (MONEY,)
    assert list(trees.tree(MONEY)) == [MONEY]


def test_that_a_name_of_several_terms_gives_them_all() -> None:
    art, craft = EX["a/jazz"], EX["b/jazz"]
    trees = ConceptTrees(
        [Taxonomy([(art, EX["music"])]), Taxonomy([(craft, EX["dance"]), (art, EX["art"])])],
        [("jazz", art), ("Jazz", craft), ("Jazz", craft)],
    )
    assert trees.terms("jazz") == (art, craft)
    assert trees.terms("Jazz") == (craft,)
    assert trees.root("jazz") == (EX["music"], EX["art"], EX["dance"])


def test_that_a_term_may_be_a_top_in_one_tree_only() -> None:
    trees = ConceptTrees([Taxonomy([], [LAPTOP]), Taxonomy([(LAPTOP, COMPUTER)])])
    assert trees.root(LAPTOP) == (LAPTOP, COMPUTER)


def test_that_blank_nodes_are_no_roots() -> None:
    restriction = BlankNode("r")
    edges: list[tuple[Term, Term]] = [(LAPTOP, COMPUTER), (COMPUTER, restriction)]
    assert ConceptTrees([Taxonomy(edges)]).root(LAPTOP) == (COMPUTER,)
    assert ConceptTrees([Taxonomy([*edges, (restriction, PRODUCT)])]).root(LAPTOP) == (PRODUCT,)


def test_circles() -> None:
    trees = ConceptTrees([Taxonomy([(LAPTOP, COMPUTER), (COMPUTER, LAPTOP)])])
    assert trees.root(LAPTOP) == (LAPTOP,)
    assert len(trees.tree(LAPTOP).edges()) == 2


@pytest.mark.parametrize(
    ("iri", "name"),
    [
        ("http://example.org/shop#LaptopPC", "LaptopPC"),
        ("http://example.org/a/b", "b"),
        ("http://example.org/a/b/", "b"),
        ("urn:isbn:1", "1"),
        ("x:", "x:"),
    ],
)
def test_local_names(iri: str, name: str) -> None:
    assert local_name(NamedNode(iri)) == name


TERMS = tuple(EX[name] for name in "abcdef")
EDGES = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda e: e[0] < e[1]), max_size=9
)


@given(EDGES)
def test_roots_and_trees_against_all_walks(edges: list[tuple[int, int]]) -> None:
    pairs = {(TERMS[a], TERMS[b]) for a, b in edges}
    trees = ConceptTrees([Taxonomy(sorted(pairs, key=str), TERMS)])

    def walks(term: Term) -> set[tuple[Term, ...]]:
        above = [b for a, b in pairs if a == term]
        return {(term, *walk) for up in above for walk in walks(up)} if above else {(term,)}

    for term in TERMS:
        assert set(trees.root(term)) == {walk[-1] for walk in walks(term)}
        under = {a for a in TERMS for walk in walks(a) if term in walk}
        graph = trees.tree(term)
        assert set(graph) == under
        assert set(graph.edges()) == {(a, b) for a, b in pairs if b in under}
