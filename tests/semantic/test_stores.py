"""Stores for evaluation: nobody sees another's publication, and none grows without end."""

from __future__ import annotations

from threading import Event, Thread

import pytest
from pyoxigraph import Literal

from semantic import Ontology, Publication
from semantic.evaluation import Evaluator
from semantic.stores import BACKGROUND, Stores
from semantic.terms import Triple
from semantic.vocabulary import XSD, Namespace

EX = Namespace("http://example.org/")
SECONDS = 20.0


def known(count: int) -> list[Triple]:
    return [(EX[f"s{n}"], EX["p"], Literal(f"0{n}", datatype=XSD["integer"])) for n in range(count)]


@pytest.fixture
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semantic.stores.os.cpu_count", lambda: 2)


@pytest.mark.usefixtures("two_processors")
def test_that_each_has_its_own_publication() -> None:
    evaluator = Evaluator(Ontology(), known(2))
    here = Publication.of("urn:p", [(EX["a"], EX["q"], EX["b"])])
    there = Publication.of("urn:p", [(EX["a"], EX["q"], EX["c"])])
    question = "{ GRAPH ?g { ?x <http://example.org/q> ?y } }"
    with evaluator.publication(here) as one, evaluator.publication(there) as other:
        found = [[row["y"] for row in e.solutions(question)] for e in (one, other, one)]
        everything = [len(list(e.solutions("{ ?x ?p ?y }"))) for e in (one, other)]
    assert found == [[EX["b"]], [EX["c"]], [EX["b"]]]
    assert everything == [3, 3]
    with evaluator.publication(Publication.of("urn:p", [])) as none:
        assert list(none.solutions(question)) == []


@pytest.mark.usefixtures("two_processors")
def test_that_there_are_as_many_as_are_used_at_once() -> None:
    stores = Stores(known(3))
    for _ in range(3):
        with stores.one():
            pass
    assert stores.made == 1
    with stores.one() as one, stores.one() as other:
        assert one.store is not other.store
        assert set(one.store) == set(other.store)
    assert stores.made == 2


@pytest.mark.usefixtures("two_processors")
def test_that_one_waits_where_another_store_would_be_too_much() -> None:
    stores, came = Stores(known(3), together=5), Event()

    def ask() -> None:
        with stores.one():
            came.set()

    with stores.one():
        thread = Thread(target=ask, daemon=True)
        thread.start()
        assert not came.wait(0.05)
    assert came.wait(SECONDS)
    assert stores.made == 1


def test_that_a_worn_store_is_exchanged() -> None:
    stores = Stores(known(3), wear=10)
    seen = []
    for round_ in range(8):
        with stores.one() as kept:
            seen.append(kept)
            kept.load([(EX[f"x{round_}"], EX["q"], Literal(n)) for n in range(4)], EX["g"])
            assert len(kept.store) == 7
    assert len(set(map(id, seen))) == 3  # after 12 triples each
    with stores.one() as kept:
        assert {quad.graph_name for quad in kept.store} == {BACKGROUND}
        assert len(kept.store) == 3
    assert stores.meets(EX["s1"], EX["p"], Literal("01", datatype=XSD["integer"]))
    assert not stores.meets(EX["s1"], EX["p"], Literal("1", datatype=XSD["integer"]))


@pytest.mark.usefixtures("two_processors")
def test_that_all_stores_have_what_was_added() -> None:
    stores = Stores(known(1))
    with stores.one(), stores.one():
        pass
    stores.extend([(EX["late"], EX["p"], EX["o"])])
    with stores.one() as one, stores.one() as other:
        assert len(one.store) == len(other.store) == 2
    assert stores.meets(EX["late"], None, None)


@pytest.mark.usefixtures("two_processors")
def test_that_a_store_in_use_is_not_used_again_without_what_was_added() -> None:
    stores = Stores(known(1), wear=1)
    with stores.one() as first, stores.one() as other:
        for kept in (first, other):
            kept.load(known(3)[1:], EX["g"])
        stores.extend([(EX["late"], EX["p"], EX["o"])])
    with stores.one() as one, stores.one() as another:
        assert len(one.store) == len(another.store) == 2
        assert other not in (one, another)


def test_that_what_is_left_of_an_error_is_not_seen() -> None:
    stores = Stores([])

    def fail() -> None:
        with stores.one() as kept:
            kept.load([(EX["x"], EX["p"], EX["o"])], EX["g"])
            raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        fail()
    with stores.one() as kept:
        assert len(kept.store) == 0
