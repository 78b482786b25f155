from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.errors import Place, Problem, Severity
from semantic.ontology.ontology import Ontology
from semantic.ontology.synonyms import (
    Roots,
    SynonymOptions,
    SynonymPairs,
    SynonymRow,
    SynonymRows,
    merged,
    normalized,
    unambiguous,
)
from semantic.terms import Term
from semantic.vocabulary import LABEL, OWL, RDF, SUBCLASS, TYPE, XSD
from tests.oracle import Pair, roots
from tests.oracle import unambiguous as unambiguous_pairs

A, B, C, D = (NamedNode(f"urn:{name}") for name in "abcd")
NONE: frozenset[Term] = frozenset()
CASEFOLD = SynonymOptions(casefold=True)


def unexpected(problem: Problem) -> None:
    raise AssertionError(problem)


@pytest.mark.parametrize(
    ("groups", "terms", "declared", "root"),
    [
        ([(C, B), (B, A)], {}, NONE, A),  # The first in code point order wins.
        ([(C, B), (B, A)], {}, frozenset({B, C}), B),  # A declared name goes before it.
        ([(C, B), (B, A)], {A: C}, frozenset({B}), C),  # A root from a file goes before both.
        ([], {A: B, B: C}, frozenset({A}), C),  # The end of the chain is the root.
        ([], {A: D, B: C}, NONE, None),  # Two chains have two roots.
        # A leads to a cycle, so the cycle's first name wins.
        ([], {C: B, B: D, D: C, A: C}, NONE, B),
        ([(A, B)], {A: D, B: C}, frozenset({D}), C),  # The first of two chain ends wins.
        # A cycle in a file has no end, so it stays apart from A.
        ([(A, D)], {C: B, B: C}, frozenset({A}), B),
        ([(A, B)], {C: B, B: C}, frozenset({A}), B),  # A name in the cycle can still be the root.
        ([(A, TYPE)], {TYPE: A}, frozenset({A}), TYPE),  # Built-in terms win.
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

WIDE = "\uff35\uff33"  # It is "US" in full-width letters.
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
        # It is another spelling of the root.
        ("UNITED STATES", SynonymOptions(casefold=True), "United States"),
        ("STRASSE", SynonymOptions(casefold=True), "street"),
        # It has no synonym, so it stays unchanged.
        ("Us too", SynonymOptions(nfkc=True, casefold=True), "Us too"),
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
def test_folding_is_idempotent(text: str, options: SynonymOptions) -> None:
    folded = options.fold(text)
    assert options.fold(folded) == folded
    if options.nfkc:
        assert options.fold(unicodedata.normalize("NFKD", text)) == folded
    if options.casefold:
        assert options.fold(text.casefold()) == folded
    if not options.folds:
        assert folded == text


def test_that_texts_that_fold_together_are_not_guessed() -> None:
    pairs = SynonymPairs(texts={"Polish": "from Poland", "polish": "varnish", "POLISHED": "polish"})
    plain = Ontology((), pairs, on_problem=unexpected)
    assert plain.root(Literal("POLISHED")) == Literal("varnish")
    folded = Ontology((), pairs, options=CASEFOLD, on_problem=lambda _: None)
    assert folded.root(Literal("polished")) == Literal("polish")
    assert folded.root(Literal("from Poland")) == Literal("from Poland")


def test_that_the_first_spelling_of_a_root_holds() -> None:
    pairs = SynonymPairs(texts={"US": "usa", "us": "USA", "U.S.": "Us"})
    roots = Roots([], pairs, NONE, CASEFOLD)
    for text in ("US", "us", "U.S.", "u.s.", "Usa"):
        assert roots.root(Literal(text)) == Literal("USA")
    names = {"US", "us", "U.S.", "usa", "Us"}
    assert {name.value for name in roots.names(Literal("USA"))} == names
    assert len(roots) == len(names)


def test_many_names() -> None:
    """Chains of any length are joined without recursion and have one root."""
    names = [NamedNode(f"urn:{number:06}") for number in range(20_000)]
    roots = Roots(pairwise(reversed(names)), SynonymPairs(), NONE)
    assert {roots.root(name) for name in names} == {names[0]}
    assert len(roots.names(names[0])) == len(roots) == len(names) - 1


# --- Rows of files ------------------------------------------------------------------------------


def rows(*pairs: tuple[str, str], file: str = "a.csv") -> SynonymRows:
    several = (SynonymRow(a, b, Place(file, line=n)) for n, (a, b) in enumerate(pairs, start=2))
    return SynonymRows(texts=tuple(several))


def test_merging() -> None:
    here = Place("a.csv")
    first = SynonymRows((SynonymRow(A, B, here),), labels=(("x", A),))
    second = SynonymRows(
        (SynonymRow(B, C, here), SynonymRow(A, B, here), SynonymRow(D, D, here)),
        labels=(("x", A), ("x", B)),
    )
    found = merged([first, second], unexpected)
    assert found.terms == {A: B, B: C}
    assert found.labels == (("x", A), ("x", B))


def test_two_roots_in_two_files() -> None:
    problems: list[Problem] = []
    first = rows(("US", "United States"), ("U.S.", "US"))
    second = rows(("UK", "Britain"), ("US", "ultrasound"), file="b.csv")
    found = merged([first, second], problems.append)
    assert found.texts == {"U.S.": "US", "UK": "Britain"}
    assert list(map(str, problems)) == [
        "b.csv:3: US has two roots: United States (a.csv:2) and ultrasound. "
        "These rows were skipped. Keep those with one root."
    ]
    assert problems[0].severity is Severity.REFUSED


def test_two_roots_of_a_term() -> None:
    problems: list[Problem] = []
    pairs = (SynonymRow(A, root, Place("a.csv", line=n)) for n, root in enumerate((B, C), start=2))
    assert merged([SynonymRows(terms=tuple(pairs))], problems.append) == SynonymPairs()
    assert str(problems[0]).startswith("a.csv:3: urn:a has two roots: urn:b (a.csv:2) and urn:c.")


def test_that_chains_are_followed_after_that() -> None:
    """The two roots of a name conflict even if one is the other's root."""
    problems: list[Problem] = []
    held = rows(("US", "USA"), ("USA", "America"), ("US", "America"), ("U.S.", "US"))
    assert merged([held], problems.append).texts == {"USA": "America", "U.S.": "US"}
    assert "two roots: USA (a.csv:2) and America" in problems[0].what


def test_that_a_text_may_name_several_terms() -> None:
    held = SynonymRows(labels=(("jazz", A), ("jazz", B)))
    assert merged([held], unexpected).labels == (("jazz", A), ("jazz", B))


def test_names_that_fold_together() -> None:
    problems: list[Problem] = []
    held = rows(("Polish", "from Poland"), ("polish", "varnish"), ("US", "USA"), ("us", "Usa"))
    assert unambiguous(held.texts, problems.append, CASEFOLD.fold) == {"US": "USA", "us": "Usa"}
    assert list(map(str, problems)) == [
        "a.csv:3: Polish and polish are the same after folding and have two roots: "
        "from Poland (a.csv:2) and varnish. These rows were skipped. Keep those with one root."
    ]
    assert len(unambiguous(held.texts, unexpected)) == 4


NAMES = st.sampled_from("abcdef")
TABLES = st.lists(st.tuples(NAMES, NAMES), max_size=10)


@given(TABLES)
def test_roots_of_texts_against_the_oracle(table: list[tuple[str, str]]) -> None:
    pairs: list[Pair] = [(Literal(a), Literal(b)) for a, b in table]
    expected = roots((), pairs)
    found = merged([rows(*table)], lambda _: None).texts
    assert set(found) == {a.value for a, _ in unambiguous_pairs(pairs) if isinstance(a, Literal)}
    known = Roots([], SynonymPairs(texts=found), NONE)
    assert all(known.root(Literal(name)) == expected(Literal(name)) for name in "abcdef")


@given(TABLES, st.data())
def test_that_the_order_of_rows_says_nothing(
    table: list[tuple[str, str]], drawn: st.DataObject
) -> None:
    others = drawn.draw(st.permutations(table))
    one, other = (merged([rows(*each)], lambda _: None).texts for each in (table, others))
    assert one == other


def test_that_long_chains_need_no_stack() -> None:
    names = [f"{number}" for number in range(50_000)]
    chain = SynonymPairs(texts=dict(pairwise(names)))
    assert Roots([], chain, NONE).root(Literal("0")) == Literal("49999")


def test_that_only_ambiguous_texts_are_removed() -> None:
    problems: list[Problem] = []
    pairs = SynonymPairs(texts={"US": "United States", "us": "we", "UK": "Britain"})
    assert normalized(pairs, SynonymOptions(), unexpected) is pairs
    assert normalized(pairs, SynonymOptions(nfkc=True), unexpected) == pairs
    assert normalized(pairs, CASEFOLD, problems.append).texts == {"UK": "Britain"}
    assert len(problems) == 1
