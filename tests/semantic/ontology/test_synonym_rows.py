from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.errors import Place, Problem, Severity
from semantic.ontology.synonym_rows import (
    SynonymRow,
    SynonymRows,
    label_synonyms,
    merge_pairs,
    settle,
)
from semantic.ontology.synonyms import Roots, SynonymOptions, SynonymPairs
from semantic.terms import Triple
from semantic.vocabulary import LABEL, SKOS

A, B, C, D = (NamedNode(f"urn:{name}") for name in "abcd")
PREFERRED, OTHER, HIDDEN = SKOS["prefLabel"], SKOS["altLabel"], SKOS["hiddenLabel"]
CASEFOLD = SynonymOptions(casefold=True)


def unexpected(problem: Problem) -> None:
    raise AssertionError(problem)


def rows(*pairs: tuple[str, str], file: str = "a.csv") -> SynonymRows:
    several = (SynonymRow(a, b, Place(file, line=n)) for n, (a, b) in enumerate(pairs, start=2))
    return SynonymRows(texts=tuple(several))


def test_merging() -> None:
    first = SynonymRows.of(SynonymPairs({A: B}, {"US": "USA"}, (("x", A),)))
    second = SynonymRows.of(SynonymPairs({B: C, D: C}, {"US": "USA"}, (("x", A), ("x", B))))
    merged = merge_pairs([first, second], unexpected)
    assert merged.terms == {A: C, B: C, D: C}
    assert merged.texts == {"US": "USA"}
    assert merged.labels == (("x", A), ("x", B))


def test_two_roots_in_two_files() -> None:
    problems: list[Problem] = []
    first = rows(("US", "United States"), ("U.S.", "US"))
    second = rows(("UK", "Britain"), ("US", "ultrasound"), file="b.csv")
    merged = merge_pairs([first, second], problems.append)
    assert merged.texts == {"U.S.": "US", "UK": "Britain"}
    assert list(map(str, problems)) == [
        "b.csv:3: US has two roots: United States (a.csv:2) and ultrasound. "
        "None of these rows is used: keep those with one root."
    ]
    assert problems[0].severity is Severity.REFUSED


def test_two_roots_of_a_term() -> None:
    problems: list[Problem] = []
    pairs = (SynonymRow(A, root, Place("a.csv", line=n)) for n, root in enumerate((B, C), start=2))
    assert merge_pairs([SynonymRows(terms=tuple(pairs))], problems.append) == SynonymPairs()
    assert str(problems[0]).startswith("a.csv:3: urn:a has two roots: urn:b (a.csv:2) and urn:c.")


def test_that_the_roots_that_are_named_differ_in_the_end() -> None:
    problems: list[Problem] = []
    held = rows(("US", "USA"), ("USA", "America"), ("US", "America"), ("US", "ultrasound"))
    assert merge_pairs([held], problems.append).texts == {"USA": "America"}
    assert "two roots: USA (a.csv:2) and ultrasound" in problems[0].what


def test_that_chains_may_meet_in_another_file() -> None:
    first = rows(("US", "USA"), ("US", "United States"))
    second = rows(("USA", "United States"), file="b.csv")
    expected = {"US": "United States", "USA": "United States"}
    assert merge_pairs([first, second], unexpected).texts == expected


def test_that_a_text_may_name_several_terms() -> None:
    held = SynonymRows(labels=(("jazz", A), ("jazz", B)))
    assert merge_pairs([held], unexpected).labels == (("jazz", A), ("jazz", B))


def test_names_that_fold_together() -> None:
    problems: list[Problem] = []
    held = rows(("Polish", "from Poland"), ("polish", "varnish"), ("US", "USA"), ("us", "Usa"))
    assert merge_pairs([held], problems.append, CASEFOLD).texts == {"US": "USA", "us": "USA"}
    assert list(map(str, problems)) == [
        "a.csv:3: Polish and polish are the same when folded, and have two roots: "
        "from Poland (a.csv:2) and varnish. None of these rows is used: keep those with one root."
    ]
    assert len(merge_pairs([held], unexpected).texts) == 4


SPELLINGS = st.sampled_from(("us", "US", "usa", "USA", "uk", "UK"))
TABLES = st.dictionaries(SPELLINGS, SPELLINGS, max_size=6)


@given(TABLES, st.sampled_from((SynonymOptions(), CASEFOLD)))
def test_that_merging_changes_no_root(table: dict[str, str], options: SynonymOptions) -> None:
    """Roots leave disputes out themselves; merging reports them, and shortens the chains."""
    pairs = SynonymPairs(texts=table)
    merged = merge_pairs([SynonymRows.of(pairs)], lambda _: None, options)
    assert merge_pairs([SynonymRows.of(merged)], unexpected, options) == merged
    one, other = (Roots([], p, frozenset(), options) for p in (pairs, merged))
    assert set(one.pairs()) == set(other.pairs())


# --- Labels ---------------------------------------------------------------------------------------

STATES: list[Triple] = [
    (A, PREFERRED, Literal("États-Unis", language="fr")),
    (A, PREFERRED, Literal("United States", language="en")),
    (A, OTHER, Literal("US")),
    (A, HIDDEN, Literal("Untied States", language="en")),
]


@pytest.mark.parametrize(
    ("more", "root"),
    [
        ([], "United States"),
        ([(A, PREFERRED, Literal("USA"))], "USA"),
        ([(A, PREFERRED, Literal("America", language="en-us"))], "United States"),
        ([(A, PREFERRED, Literal("The States", language="en"))], "The States"),
        ([(A, PREFERRED, Literal("Estados", language="es"))], "United States"),
    ],
)
def test_labels_have_the_preferred_one_as_root(more: list[Triple], root: str) -> None:
    texts = label_synonyms([*more, *STATES], unexpected).texts
    assert set(texts.values()) == {root}
    assert {"États-Unis", "United States", "US", "Untied States"} <= set(texts)


def test_labels_that_say_nothing() -> None:
    triples: list[Triple] = [
        (A, OTHER, Literal("no preferred label")),
        (B, LABEL, Literal("not a label of SKOS")),
        (B, PREFERRED, Literal("5", datatype=NamedNode("urn:number"))),
        (B, PREFERRED, C),
        (BlankNode("b"), PREFERRED, Literal("one", language="de")),
        (BlankNode("b"), PREFERRED, Literal("uno", language="it")),
    ]
    assert label_synonyms(triples, unexpected).texts == {"one": "one", "uno": "one"}


def test_a_label_of_two_concepts() -> None:
    problems: list[Problem] = []
    triples: list[Triple] = [
        *STATES,
        (B, PREFERRED, Literal("ultrasound")),
        (B, OTHER, Literal("US")),
        (B, OTHER, Literal("sonography")),
        (C, PREFERRED, Literal("United States", language="en")),  # the same text: no dispute
        (C, OTHER, Literal("U.S.")),
        (D, PREFERRED, Literal("States")),
        (D, OTHER, Literal("United States")),  # a root of others is nobody's synonym
    ]
    texts = label_synonyms(triples, problems.append).texts
    assert texts == {
        "États-Unis": "United States",
        "Untied States": "United States",
        "U.S.": "United States",
        "ultrasound": "ultrasound",
        "sonography": "ultrasound",
        "States": "States",
    }
    assert [problem.what for problem in problems] == [
        "'United States' is a label of <urn:a> and of <urn:d>, whose preferred labels differ",
        "'US' is a label of <urn:a> and of <urn:b>, whose preferred labels differ",
    ]
    assert {problem.severity for problem in problems} == {Severity.WARNING}


def test_labels_that_fold_together() -> None:
    problems: list[Problem] = []
    triples: list[Triple] = [
        (A, PREFERRED, Literal("Polish")),
        (B, PREFERRED, Literal("varnish")),
        (B, OTHER, Literal("polish")),
    ]
    assert len(label_synonyms(triples, unexpected).texts) == 3
    assert label_synonyms(triples, problems.append, CASEFOLD).texts == {"varnish": "varnish"}
    assert len(problems) == 1


def test_that_labels_have_to_be_asked_for() -> None:
    pairs = SynonymPairs(texts={"United States": "USA"})
    assert settle(pairs, SynonymOptions(), STATES, unexpected) is pairs
    assert settle(pairs, SynonymOptions(nfkc=True), STATES, unexpected) == pairs
    texts = settle(pairs, SynonymOptions(labels=True), STATES, unexpected).texts
    assert texts["US"] == texts["États-Unis"] == texts["United States"] == "USA"


def test_labels_against_a_synonym_file() -> None:
    problems: list[Problem] = []
    pairs = SynonymPairs(texts={"US": "ultrasound"})
    texts = settle(pairs, SynonymOptions(labels=True), STATES, problems.append).texts
    assert "US" not in texts
    assert texts["États-Unis"] == "United States"
    assert [problem.what for problem in problems] == [
        "US has two roots: ultrasound (synonyms) and United States"
    ]
