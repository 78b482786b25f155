from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Quad, QuerySolutions, Store

from graphmatch import Engine, SubscriptionParser
from semantic import Ontology, Publication
from semantic.errors import SubscriptionError

PARSER = SubscriptionParser()
TWICE = 16


@pytest.mark.parametrize(
    ("path", "branches", "left"),
    [
        ("e:p", ["?s p ?o"], ()),
        ("^e:p", ["?o p ?s"], ()),
        ("e:p/e:q", ["?s p ?0 . ?0 q ?o"], ()),
        ("^e:p/e:q", ["?0 p ?s . ?0 q ?o"], ()),
        ("^(e:p/e:q)", ["?o p ?0 . ?0 q ?s"], ()),
        ("e:p|e:q", ["?s p ?o", "?s q ?o"], ("path |",)),
        ("(e:p|^e:q)/e:p", ["?s p ?0 . ?0 p ?o", "?0 q ?s . ?0 p ?o"], ("path |",)),
        ("e:p+", ["?s p ?0"], ("path +",)),
        ("(e:p/e:q)+", ["?s p ?0 . ?0 q ?1"], ("path +",)),
        ("(e:p|e:q/e:r)+", ["?s p ?0", "?s q ?1 . ?1 r ?0"], ("path +", "path |")),
        ("e:p +", ["?s p ?0"], ("path +",)),
        ("e:p/e:q*", ["?s p ?0"], ("path *",)),
        ("e:p/e:q?", ["?s p ?0"], ("path ?",)),
        ("!e:p", [""], ("path !",)),
        ("!(e:p|^e:q)", ["", ""], ("path |", "path !")),
        ("!^a", [""], ("path !",)),
    ],
)
def test_branches(path: str, branches: list[str], left: tuple[str, ...]) -> None:
    query = f"PREFIX e: <urn:> SELECT * {{ ?s {path} ?o . }}"
    subscription = PARSER.parse("s", query)
    short = [
        " . ".join(map(str, branch.patterns)).replace("<urn:", "").replace(">", "")
        for branch in subscription.branches
    ]
    assert [text.replace("?_", "?") for text in short] == branches
    assert subscription.remainder == left


@pytest.mark.parametrize("path", ["e:p*", "e:p?", "(e:p|e:q*)", "e:p*/e:q?", "(e:p?)+", "^e:p*"])
def test_that_a_path_of_no_steps_is_refused(path: str) -> None:
    with pytest.raises(SubscriptionError, match="an empty graph"):
        PARSER.parse("s", f"PREFIX e: <urn:> SELECT * {{ ?s {path} ?o }}")
    assert PARSER.parse("s", f"PREFIX e: <urn:> SELECT * {{ ?s {path} ?o . ?s e:p ?z }}").remainder


def test_that_a_long_path_of_alternatives_is_bounded() -> None:
    path = "/".join(["(<urn:p>|<urn:q>)"] * 40)
    subscription = PARSER.parse("s", f"SELECT * {{ ?s {path} ?o }}")
    assert len(subscription.branches) <= TWICE
    assert "more branches than subscription_branches" in subscription.remainder


paths = st.recursive(
    st.sampled_from(("e:p", "e:q", "^e:p", "!e:p", "!(e:p|^e:q)", "!^e:q", "a", "!a")),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("/".join),
        st.tuples(inner, inner).map("|".join),
        inner.map("({})".format),
        inner.map("^({})".format),
        st.tuples(inner, st.sampled_from("*+?")).map(lambda pair: f"({pair[0]}){pair[1]}"),
    ),
    max_leaves=4,
)
nodes = st.sampled_from([NamedNode(f"urn:{name}") for name in "abc"])
A = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
edges = st.sets(
    st.tuples(nodes, st.sampled_from([NamedNode("urn:p"), NamedNode("urn:q"), A]), nodes),
    max_size=6,
)


@given(paths, edges)
def test_that_walks_with_a_step_are_found(
    path: str, graph: set[tuple[NamedNode, NamedNode, NamedNode]]
) -> None:
    """A path uses the publication if one of its steps does; an empty path never does."""
    store = Store()
    # It is not in the publication.
    known = NamedNode("urn:a"), NamedNode("urn:r"), NamedNode("urn:a")
    store.add(Quad(*known))
    for triple in graph:
        store.extend([Quad(*triple), Quad(*triple, NamedNode("urn:g"))])
    text = f"PREFIX e: <urn:> SELECT * {{ ?s {path} ?o . ?x e:r ?y }}"
    engine = Engine(Ontology([known]), entailment="none")
    engine.subscribe("s", text)
    matches = engine.match(Publication.of("urn:g", graph)).matches
    resting = {(row["s"], row["o"]) for match in matches for row in match.solutions}
    inside = pairs(store, f"PREFIX e: <urn:> SELECT * {{ GRAPH ?g {{ ?s {path} ?o }} }}")
    assert resting <= pairs(store, text)
    assert {(s, o) for s, o in inside if s != o} <= resting
    if not any(modifier in path for modifier in "*?"):
        assert inside <= resting
    if not graph:
        assert not resting


def pairs(store: Store, query: str) -> set[tuple[object, object]]:
    answer = store.query(query)
    assert isinstance(answer, QuerySolutions)
    return {(row["s"], row["o"]) for row in answer}
