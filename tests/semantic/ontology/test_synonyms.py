from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode

from semantic.errors import OntologyError, Problem, Severity
from semantic.ontology.synonyms import Roots, SynonymPairs, merge_pairs, read_synonyms
from semantic.terms import Term
from semantic.vocabulary import LABEL, OWL, RDF, SUBCLASS, TYPE, XSD

A, B, C, D = (NamedNode(f"urn:{name}") for name in "abcd")
NONE: frozenset[Term] = frozenset()


def unexpected(problem: Problem) -> None:
    raise AssertionError(problem)


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


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_reading(tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.csv",
        "\ufeffterm,root,why\nUS,United States,short\nurn:a,urn:b,\n"
        'Jazz,urn:c,a label\nJazz,urn:d,another\n"a, b",ab,quoted\nhttp: a protocol,HTTP,text\n',
    )
    pairs = read_synonyms(file, unexpected)
    assert pairs.terms == {A: B}
    assert pairs.labels == (("Jazz", C), ("Jazz", D))
    assert pairs.texts == {
        "US": "United States",
        "a, b": "ab",
        "http: a protocol": "HTTP",
    }


def test_that_bad_rows_are_reported_and_passed_over(tmp_path: Path) -> None:
    problems: list[Problem] = []
    file = write(
        tmp_path / "a.csv",
        "term,root\nUS\nurn:a,text\nurn:a,urn:b\nurn:a,urn:c\nUS,USA\nUS,United States\n",
    )
    pairs = read_synonyms(file, problems.append)
    assert (pairs.terms, pairs.texts) == ({A: B}, {"US": "USA"})
    assert [problem.where.line for problem in problems] == [2, 3, 5, 7]
    assert all(str(file) in str(problem) for problem in problems)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "columns"),
        ("name,root\n", "columns"),
        (b"term,root\nB\xfccher,Buch\n", "not UTF-8"),
        ("term,root\n" + "x" * 200_000 + ",y\n", "not CSV: field larger"),
    ],
)
def test_files_that_cannot_be_read(text: str | bytes, what: str, tmp_path: Path) -> None:
    with pytest.raises(OntologyError, match=what):
        read_synonyms(write(tmp_path / "a.csv", text), unexpected)


def test_that_the_first_of_two_files_holds() -> None:
    problems: list[Problem] = []
    first = SynonymPairs({A: B}, {"US": "USA"}, (("x", A),))
    second = SynonymPairs({A: C, D: C}, {"US": "USA"}, (("x", A), ("x", B)))
    merged = merge_pairs([first, second], problems.append)
    assert merged.terms == {A: B, D: C}
    assert merged.texts == {"US": "USA"}
    assert merged.labels == (("x", A), ("x", B))
    assert [problem.severity for problem in problems] == [Severity.WARNING]
    assert "two roots" in problems[0].what


def test_vocabularies_that_are_built_in() -> None:
    for term in (RDF["first"], OWL["Thing"], XSD["integer"]):
        assert Roots([(term, A)], SynonymPairs(terms={term: A}), NONE).root(A) == term
