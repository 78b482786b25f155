"""Names of new blank nodes depend only on their triples."""

from __future__ import annotations

import rdflib
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, NamedNode
from rdflib.compare import isomorphic

from graphmatch.mapping import named_by_content
from semantic import Publication
from semantic.terms import Term, Triple

NODES = [BlankNode(f"n{number}") for number in range(4)]
NAMES = [NamedNode("urn:x"), NamedNode("urn:y")]

triples = st.lists(
    st.tuples(
        st.sampled_from(NODES + NAMES), st.sampled_from(NAMES), st.sampled_from(NODES + NAMES)
    ),
    max_size=6,
    unique=True,
)


def nodes(several: object) -> set[Term]:
    assert isinstance(several, list | tuple)
    return {term for triple in several for term in triple if isinstance(term, BlankNode)}


def graph(several: list[Triple]) -> rdflib.Graph:
    text = "".join(f"{s} {p} {o} .\n" for s, p, o in Publication.of("p", several).triples)
    return rdflib.Graph().parse(data=text, format="nt11")


@given(triples)
def test_the_graph_stays_the_same_graph(several: list[Triple]) -> None:
    """The graph is smaller only if indistinguishable blank nodes merge."""
    named = named_by_content(several, lambda _: True)
    if len(nodes(named)) == len(nodes(several)):
        assert isomorphic(graph(list(named)), graph(several))
    else:
        assert len(named) < len(several)


@given(triples, st.permutations(NODES))
def test_other_names_and_another_order_give_the_same(
    several: list[Triple], others: list[BlankNode]
) -> None:
    renamed: dict[Term, Term] = dict(zip(NODES, others, strict=True))
    again = [(renamed.get(s, s), p, renamed.get(o, o)) for s, p, o in reversed(several)]
    one = set(named_by_content(several, lambda _: True))
    other = set(named_by_content(again, lambda _: True))
    if nodes(list(one)).isdisjoint(NODES):
        assert one == other


def test_equal_groups_become_one() -> None:
    one, other = NODES[:2]
    twice: list[Triple] = [(NAMES[0], NAMES[1], one), (NAMES[0], NAMES[1], other)]
    assert len(named_by_content(twice, lambda _: True)) == 1
