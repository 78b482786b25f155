from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.ontology.synonyms import Roots, SynonymOptions, SynonymPairs
from semantic.terms import Term
from semantic.vocabulary import LABEL, OWL, RDF, SUBCLASS, TYPE, XSD

A, B, C, D = (NamedNode(f"urn:{name}") for name in "abcd")
NONE: frozenset[Term] = frozenset()


@pytest.mark.parametrize(
    ("groups", "terms", "declared", "root"),
    [
        ([(C, B), (B, A)], {}, NONE, A),  # the first in code point order
        ([(C, B), (B, A)], {}, frozenset({B, C}), B),  # the declared before it
        ([(C, B), (B, A)], {A: C}, frozenset({B}), C),  # a file's before that
        ([], {A: B, B: C}, frozenset({A}), C),  # the end of the chain
        ([], {A: D, B: C}, NONE, None),  # two chains, two roots
        ([(A, B)], {A: D, B: C}, frozenset({D}), C),  # of two ends of chains the first
        ([(A, D)], {C: B, B: C}, frozenset({A}), B),  # a circle of rows has no end: apart from A
        ([(A, B)], {C: B, B: C}, frozenset({A}), B),  # but what it names is a root all the same
        ([(A, TYPE)], {TYPE: A}, frozenset({A}), TYPE),  # what is built in
    ],
)
def test_which_name_is_the_root(
    groups: list[tuple[NamedNode, NamedNode]],
    terms: dict[NamedNode, NamedNode],
    declared: frozenset[Term],
    root: NamedNode | None,
) -> None:
    roots = Roots(groups, SynonymPairs(terms=terms), declared)
    names = {*terms, *terms.values(), *(term for pair in groups for term in pair)}
    if root is None:
        assert {roots.root(term) for term in names} == {C, D}
    elif root == B and (A, D) in groups:
        assert (roots.root(C), roots.root(D)) == (B, A)
    else:
        assert {roots.root(term) for term in names} == {root}
        assert set(roots.names(root)) == names - {root}
        assert len(roots) == len(names) - 1


def test_that_built_in_terms_are_never_merged() -> None:
    roots = Roots([(A, TYPE), (A, LABEL), (SUBCLASS, TYPE)], SynonymPairs(), frozenset({A}))
    assert [roots.root(term) for term in (TYPE, LABEL, SUBCLASS)] == [TYPE, LABEL, SUBCLASS]
    assert roots.root(A) in (TYPE, LABEL)


def test_texts() -> None:
    roots = Roots([], SynonymPairs(texts={"U.S.": "US", "US": "United States"}), NONE)
    assert roots.root(Literal("U.S.")) == Literal("United States")
    assert roots.root(Literal("US", language="en")) == Literal("United States")
    assert roots.root(Literal("United States", language="de")) == Literal("United States")
    assert roots.root(Literal("US army")) == Literal("US army")
    assert roots.root(NamedNode("urn:US")) == NamedNode("urn:US")
    token = Literal("US", datatype=XSD["token"])
    assert roots.root(token) == token
    assert set(roots.names(Literal("United States"))) == {Literal("US"), Literal("U.S.")}


def test_that_a_circle_of_texts_has_one_root() -> None:
    roots = Roots([], SynonymPairs(texts={"US": "USA", "USA": "US", "U.S.": "USA"}), NONE)
    assert {roots.root(Literal(text)) for text in ("US", "USA", "U.S.")} == {Literal("US")}


def test_that_rewriting_leaves_each_triple_once() -> None:
    roots = Roots([(A, B)], SynonymPairs(), NONE)
    assert roots.rewrite([(B, C, D), (A, C, D), (B, C, D)]) == [(A, C, D)]
    assert Roots([], SynonymPairs(), NONE).rewrite([(B, C, D)] * 2) == [(B, C, D)]


def test_vocabularies_that_are_built_in() -> None:
    for term in (RDF["first"], OWL["Thing"], XSD["integer"]):
        assert Roots([(term, A)], SynonymPairs(terms={term: A}), NONE).root(A) == term


# --- Folding --------------------------------------------------------------------------------------

WIDE = "\uff35\uff33"  # US in full-width letters
TABLE = {"US": "United States", "Stra\u00dfe": "street"}


@pytest.mark.parametrize(
    ("text", "options", "root"),
    [
        ("US", SynonymOptions(), "United States"),
        ("us", SynonymOptions(), "us"),
        ("us", SynonymOptions(nfkc=True), "us"),
        (WIDE, SynonymOptions(), WIDE),
        (WIDE, SynonymOptions(nfkc=True), "United States"),
        (WIDE, SynonymOptions(casefold=True), WIDE),
        (WIDE.lower(), SynonymOptions(nfkc=True), WIDE.lower()),
        (WIDE.lower(), SynonymOptions(nfkc=True, casefold=True), "United States"),
        ("us", SynonymOptions(casefold=True), "United States"),
        ("UNITED STATES", SynonymOptions(casefold=True), "United States"),  # a root's spelling
        ("STRASSE", SynonymOptions(casefold=True), "street"),
        ("Us too", SynonymOptions(nfkc=True, casefold=True), "Us too"),  # no synonym: as it is
    ],
)
def test_folding(text: str, options: SynonymOptions, root: str) -> None:
    roots = Roots([], SynonymPairs(texts=TABLE), NONE, options)
    assert roots.root(Literal(text)) == Literal(root)
    if text != root:
        assert roots.root(Literal(text, language="en")) == Literal(root)
    integer = Literal("1", datatype=XSD["integer"])
    assert [roots.root(t) for t in (A, BlankNode("b"), integer)] == [A, BlankNode("b"), integer]


@given(
    st.text(), st.sampled_from([SynonymOptions(n, c) for n in (False, True) for c in (False, True)])
)
def test_that_what_is_folded_stays(text: str, options: SynonymOptions) -> None:
    folded = options.fold(text)
    assert options.fold(folded) == folded
    if options.nfkc:
        assert options.fold(unicodedata.normalize("NFKD", text)) == folded
    if options.casefold:
        assert options.fold(text.casefold()) == folded
    if not options.folds:
        assert folded == text


def test_that_texts_that_fold_together_are_not_guessed() -> None:
    texts = {"Polish": "from Poland", "polish": "varnish", "POLISHED": "polish"}
    plain = Roots([], SynonymPairs(texts=texts), NONE)
    assert plain.root(Literal("POLISHED")) == Literal("varnish")
    folded = Roots([], SynonymPairs(texts=texts), NONE, SynonymOptions(casefold=True))
    assert folded.root(Literal("polished")) == Literal("polish")
    assert folded.root(Literal("from Poland")) == Literal("from Poland")


def test_that_the_first_spelling_of_a_root_holds() -> None:
    pairs = SynonymPairs(texts={"US": "usa", "us": "USA", "U.S.": "Us"})
    roots = Roots([], pairs, NONE, SynonymOptions(casefold=True))
    for text in ("US", "us", "U.S.", "u.s.", "Usa"):
        assert roots.root(Literal(text)) == Literal("USA")
    names = {"US", "us", "U.S.", "usa", "Us"}
    assert {name.value for name in roots.names(Literal("USA"))} == names
    assert len(roots) == len(names)


def test_many_names() -> None:
    """Chains of any length are joined without recursion, and all have one root."""
    names = [NamedNode(f"urn:{number:06}") for number in range(20_000)]
    roots = Roots(pairwise(reversed(names)), SynonymPairs(), NONE)
    assert {roots.root(name) for name in names} == {names[0]}
    assert len(roots.names(names[0])) == len(roots) == len(names) - 1
