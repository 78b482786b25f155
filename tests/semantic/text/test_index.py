# ruff: noqa: RUF001
"""Many tests at once, against one test of one term at a time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from semantic.decision import text_holds
from semantic.terms import Term
from semantic.text.index import TextIndex
from semantic.text.tests import Folding, TextOperator, TextTest, View
from semantic.vocabulary import XSD

T = Variable("t")
short = st.text(st.sampled_from("aAbßIıKé-*d"), max_size=3)
languages = st.sampled_from((None, None, "de", "en", "de-ch"))


def literal(text: str, language: str | None) -> Literal:
    return Literal(text, language=language) if language else Literal(text)


tests = st.builds(
    TextTest,
    st.just(T),
    st.sampled_from(TextOperator),
    st.builds(literal, short | st.sampled_from(("de", "d", "DE-ch", "*")), languages),
    st.sampled_from(View),
    st.sampled_from(Folding),
)
terms: st.SearchStrategy[Term] = st.one_of(
    st.builds(literal, st.text(st.sampled_from("aAbßIıKé-*dΣ"), max_size=6), languages),
    st.builds(literal, st.sampled_from(("de", "de-CH", "den", "")), languages),
    st.sampled_from((NamedNode("urn:aab"), BlankNode("a"), Literal("1", datatype=XSD["integer"]))),
)


def expected(kept: dict[tuple[TextTest, int], None], term: Term) -> list[int]:
    return sorted({number for test, number in kept if text_holds(test, term)})


@given(
    st.lists(st.tuples(tests, st.integers(0, 40)), max_size=60, unique=True),
    st.lists(st.tuples(tests, st.integers(0, 40)), max_size=20, unique=True),
    st.lists(terms, min_size=1, max_size=10),
    st.integers(0, 60),
)
def test_that_the_index_decides_as_one_test_does(
    first: list[tuple[TextTest, int]],
    later: list[tuple[TextTest, int]],
    asked: list[Term],
    removed: int,
) -> None:
    index, kept = TextIndex(), dict.fromkeys(first)
    for test, number in first:
        index.add(test, number)
    for term in asked:
        assert index.satisfied(term) == expected(kept, term)
    for test, number in first[:removed]:
        index.remove(test, number)
        del kept[test, number]
    for test, number in later:
        if (test, number) not in kept:
            index.add(test, number)
            kept[test, number] = None
    assert len(index) == len(kept)
    for term in asked:
        assert index.satisfied(term) == expected(kept, term)
    for test, number in kept:
        index.remove(test, number)
    assert len(index) == 0
    assert not any(index.satisfied(term) for term in asked)


def test_that_one_number_may_have_several_tests() -> None:
    index = TextIndex()
    words = [TextTest(T, TextOperator.CONTAINS, Literal(word)) for word in ("sea", "lake")]
    for word in words:
        index.add(word, 7)
        index.add(word, 8)
    assert index.satisfied(Literal("a lake by the sea")) == [7, 8]
    index.remove(words[0], 7)
    assert index.satisfied(Literal("the sea")) == [8]


def test_what_is_not_there() -> None:
    index, sea = TextIndex(), TextTest(T, TextOperator.CONTAINS, Literal("sea"))
    with pytest.raises(KeyError):
        index.remove(sea, 1)
    index.add(sea, 1)
    with pytest.raises(KeyError):
        index.remove(sea, 2)
    with pytest.raises(ValueError, match="sea"):
        index.add(sea, 1)
    index.add(sea, 2)
    with pytest.raises(ValueError, match="sea"):
        index.add(sea, 2)
    assert index.satisfied(Literal("sea")) == [1, 2]
    assert len(index) == 2


def test_that_a_term_without_text_passes_nothing() -> None:
    index = TextIndex()
    index.add(TextTest(T, TextOperator.CONTAINS, Literal(""), View.STR), 1)
    index.add(TextTest(T, TextOperator.CONTAINS, Literal("")), 2)
    assert index.satisfied(BlankNode("b")) == []
    assert index.satisfied(NamedNode("urn:a")) == [1]
    assert index.satisfied(Literal("")) == [1, 2]
