"""What is said of gates against plain counting: triples looked at one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Variable

from graphmatch.index.all_rows import FULL
from graphmatch.index.index import Index
from graphmatch.index.placing import GateFigures, Placed, is_row_of, placed
from graphmatch.index.plans import anybodys, compiled, texts_of
from semantic.decision import holds
from semantic.pattern import AnyOf, Branch, Comparison, Filter, TriplePattern
from semantic.terms import Term, Triple
from semantic.values import Operator
from tests.graphmatch.index.test_index import branches, publications

P, Q, A, B = (NamedNode(f"urn:{name}") for name in "pqab")
X, Y = Variable("x"), Variable("y")
GUESSES = {"": 1.0, "s": 1e-2, "p": 0.3, "o": 1e-2, "sp": 1e-3, "so": 1e-3, "po": 1e-3, "spo": 1e-6}
"""By the constants of a pattern: how probable it is as long as nothing is known."""


def key(pattern: TriplePattern | Filter) -> object:
    """Return the constants of a pattern; those of a test are the test, whatever its variable."""
    if isinstance(pattern, TriplePattern):
        return tuple(None if isinstance(node, Variable) else node for node in pattern)
    return anybodys(pattern)


def kind(pattern: TriplePattern | Filter) -> str:
    if not isinstance(pattern, TriplePattern):
        return "po"  # a term, that it passes, the test
    pairs = zip("spo", pattern, strict=True)
    return "".join(name for name, node in pairs if not isinstance(node, Variable))


def has(publication: Sequence[Triple], pattern: TriplePattern | Filter) -> bool:
    """Whether a publication has the constants of a pattern, or a term that passes a test."""
    if not isinstance(pattern, TriplePattern):
        return any(holds(pattern, term) for term in chain.from_iterable(publication))
    return any(
        all(isinstance(n, Variable) or n == t for n, t in zip(pattern, triple, strict=True))
        for triple in publication
    )


def asked_by(branch: Branch) -> set[TriplePattern | Filter]:
    """Return what a branch may be filed under; an alternative that is there twice counts once."""
    texts = (f for f in branch.filters if texts_of(f))
    once = (
        replace(f, tests=tuple(dict.fromkeys(f.tests))) if isinstance(f, AnyOf) else f
        for f in texts
    )
    return {*branch.patterns, *once}


def figures_of(said: Placed) -> tuple[GateFigures, ...]:
    return (said.gate, *said.others)


@given(st.lists(branches(), min_size=1, max_size=6), st.lists(publications, max_size=4))
def test_figures_are_what_is_counted(asked: list[Branch], published: list[list[Triple]]) -> None:
    index = Index()
    rows = {index.add(compiled(branch)): branch for branch in asked}
    fresh = {row: placed(index, row, compiled(branch)) for row, branch in rows.items()}
    for publication in published:
        index.match(publication)
    filed = Counter(key(said.gate.pattern) for said in fresh.values())
    for row, branch in rows.items():
        said = placed(index, row, compiled(branch))
        assert {figures.pattern for figures in figures_of(said)} == asked_by(branch)
        assert said.gate.pattern == fresh[row].gate.pattern
        assert said.counted == len(published)
        assert [o.probability for o in said.others] == sorted(o.probability for o in said.others)
        for figures in figures_of(said):
            assert figures.rows == filed[key(figures.pattern)]
            seen = sum(has(publication, figures.pattern) for publication in published)
            assert figures.seen == (seen if figures.rows else 0)
            guess = GUESSES[kind(figures.pattern)]
            expected = (figures.seen + 50 * guess) / (len(published) + 50)
            assert figures.probability == pytest.approx(expected, rel=1e-6)
        event(f"gates beside: {min(2, sum(other.rows > 0 for other in said.others))}")


@given(st.lists(branches(), min_size=1, max_size=6))
def test_that_the_gate_is_the_least_probable_pattern(asked: list[Branch]) -> None:
    """As long as no publication was seen; those that are as probable differ in rows only."""
    index = Index()
    for branch in asked:
        said = placed(index, index.add(compiled(branch)), compiled(branch))
        assert all(GUESSES[kind(said.gate.pattern)] <= o.probability for o in said.others)


def triples(*objects: Term) -> list[Triple]:
    return [(A, P, object_) for object_ in objects]


def test_that_what_was_seen_decides_and_what_is_seen_later_is_told() -> None:
    """The other pattern is rarer by the time that somebody asks, and the row stays."""
    index = Index()
    often = Branch((TriplePattern(X, P, B),))
    index.add(compiled(often))
    for _ in range(100):
        index.match(triples(B))
    both = Branch((TriplePattern(X, P, B), TriplePattern(X, P, Literal("s"))))
    row = index.add(compiled(both))
    said = placed(index, row, compiled(both))
    assert said.gate.pattern == TriplePattern(X, P, Literal("s"))
    assert [(o.pattern, o.rows, o.seen) for o in said.others] == [(often.patterns[0], 1, 100)]
    for _ in range(300):
        index.match(triples(Literal("s")))
    later = placed(index, row, compiled(both))
    assert later.gate.pattern == said.gate.pattern
    assert later.gate.seen == 300
    assert later.others[0].probability < later.gate.probability


@given(st.lists(branches(), min_size=1, max_size=8), st.data())
def test_rows_of_a_program(asked: list[Branch], drawn: st.DataObject) -> None:
    """Against a comparison of each row with each."""
    index = Index()
    added = [index.add(compiled(branch)) for branch in asked]
    gone = drawn.draw(st.sets(st.integers(0, len(asked) - 1)))
    for number in gone:
        index.remove(added[number])
    left = {row for number, row in enumerate(added) if number not in gone}
    for number, branch in enumerate(asked):
        program = compiled(branch).program
        expected = {row for row in left if index.rows.program(row) == program}
        found = index.rows.of(program).tolist()
        assert sorted(found) == sorted(expected)
        assert (added[number] in found) is (added[number] in left)


@pytest.mark.parametrize("shuffled", [False, True])
def test_rows_in_the_table_of_a_crowded_gate(shuffled: bool) -> None:
    """Against what each row says of itself."""
    many = [
        Branch(
            (TriplePattern(X, P, B), TriplePattern(X, Q, Y)),
            (Comparison(Y, Operator.LT, Literal(n)),),
        )
        for n in range(3 * FULL)
    ]
    if shuffled:
        many = many[::2] + many[1::2]
    index = Index()
    rows = [index.add(compiled(branch)) for branch in many]
    tabled = [row for row in rows if row & 1]
    assert len(tabled) == 2 * FULL
    program = compiled(many[0]).program
    assert sorted(index.rows.of(program).tolist()) == sorted(rows)
    for row, branch in zip(rows, many, strict=True):
        assert is_row_of(index, row, compiled(branch))
        said = placed(index, row, compiled(branch))
        assert said.tabled is bool(row & 1)
        assert said.gate.pattern == many[0].patterns[0]
        assert (said.gate.rows, said.gate.tabled) == (FULL, 2 * FULL)
        assert [(o.pattern, o.rows, o.tabled) for o in said.others] == [(branch.patterns[1], 0, 0)]
    for row in tabled[:FULL]:
        index.remove(row)
    assert sorted(index.rows.of(program).tolist()) == sorted(set(rows) - set(tabled[:FULL]))
    assert placed(index, rows[-1], compiled(many[-1])).gate.tabled == FULL
    other = Branch((TriplePattern(X, P, A), TriplePattern(X, Q, Y)), many[0].filters)
    assert not any(
        is_row_of(index, row, compiled(other)) for row in rows if row not in tabled[:FULL]
    )
