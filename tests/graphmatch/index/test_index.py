"""The index against nested loops: what it finds, after any coming and going."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from graphmatch.index import all_rows
from graphmatch.index.gates import LIVE
from graphmatch.index.index import Index, RowMatch
from graphmatch.index.plans import Compiled, Program, compiled
from graphmatch.index.rows import Rows
from semantic.decision import holds
from semantic.pattern import AnyOf, Branch, Comparison, Filter, TriplePattern
from semantic.terms import Node, Term, Triple
from semantic.text.tests import TextOperator, TextTest, View
from semantic.values import Operator
from semantic.vocabulary import XSD

NODES = tuple(NamedNode(f"urn:n{n}") for n in range(4))
PROPERTIES = tuple(NamedNode(f"urn:p{n}") for n in range(3))
LITERALS = (
    Literal("1", datatype=XSD["integer"]),
    Literal("1.0", datatype=XSD["decimal"]),
    Literal("2", datatype=XSD["double"]),
    Literal("0.1", datatype=XSD["decimal"]),
    Literal("0.1", datatype=XSD["float"]),
    Literal("0.1", datatype=XSD["double"]),
    Literal("9007199254740993", datatype=XSD["integer"]),
    Literal("9007199254740992", datatype=XSD["double"]),
    Literal("NaN", datatype=XSD["double"]),
    Literal("INF", datatype=XSD["float"]),
    Literal("2026-01-01", datatype=XSD["date"]),
    Literal("2026-01-01Z", datatype=XSD["date"]),
    Literal("2026-01-01T12:00:00", datatype=XSD["dateTime"]),
    Literal("2026-01-01T13:00:00Z", datatype=XSD["dateTime"]),
    Literal("2026-01-03T13:00:00.1Z", datatype=XSD["dateTime"]),
    Literal("true", datatype=XSD["boolean"]),
    Literal("1", datatype=XSD["boolean"]),
    Literal("climate"),
    Literal("weather"),
    Literal("climate", language="en"),
)
CONSTANTS = tuple(t for t in LITERALS if t.language is None and t.value != "NaN")
VARIABLES = tuple(Variable(name) for name in "xyz")

subjects = st.sampled_from((*NODES, BlankNode("b")))
objects = st.sampled_from((*NODES, BlankNode("b"), *LITERALS))
triples = st.tuples(subjects, st.sampled_from(PROPERTIES), objects)
publications = st.lists(triples, max_size=14, unique=True)


@st.composite
def branches(draw: st.DrawFn) -> Branch:
    variable = st.sampled_from(VARIABLES)
    patterns = draw(
        st.lists(
            st.builds(
                TriplePattern,
                st.one_of(st.sampled_from(NODES), variable),
                st.one_of(st.sampled_from(PROPERTIES), variable),
                st.one_of(st.sampled_from((*NODES, *LITERALS)), variable, variable),
            ),
            min_size=1,
            max_size=4,
        )
    )
    tests = st.builds(
        TextTest,
        variable,
        st.sampled_from([TextOperator.CONTAINS, TextOperator.STARTS, TextOperator.ENDS]),
        st.sampled_from([Literal("clim"), Literal("ate"), Literal("urn:n"), Literal("1")]),
        st.sampled_from([View.TERM, View.STR]),
    )
    bound = sorted({n.value for p in patterns for n in p if isinstance(n, Variable)})
    filters: list[Filter] = []
    if bound:
        comparisons = st.builds(
            Comparison,
            st.sampled_from([Variable(name) for name in bound]),
            st.sampled_from(Operator),
            st.sampled_from(CONSTANTS),
        )
        either = st.builds(
            lambda a, b: AnyOf(a.variable, (a, replace(b, variable=a.variable))), tests, tests
        )
        drawn = draw(st.lists(st.one_of(comparisons, tests, either), max_size=3))
        filters = [f for f in drawn if f.variable.value in bound]
    return Branch(tuple(patterns), tuple(f for f in filters if decides(f)))


def either_of(one: TextTest, other: TextTest) -> AnyOf:
    return AnyOf(one.variable, (one, replace(other, variable=one.variable)))


def decides(filter_: Filter) -> bool:
    if not isinstance(filter_, Comparison) or isinstance(filter_.constant, NamedNode):
        return True
    return filter_.operator is Operator.EQ or filter_.constant.datatype != XSD["boolean"]


def solutions_of(branch: Branch, publication: Sequence[Triple]) -> Counter[tuple[object, ...]]:
    """All ways of putting triples in the patterns' places, one after the other."""
    names = compiled(branch).names
    found: set[tuple[Term, ...]] = set()
    for chosen in product(publication, repeat=len(branch.patterns)):
        binding: dict[Node, Term] = {}
        pairs = [
            (node, term)
            for pattern, triple in zip(branch.patterns, chosen, strict=True)
            for node, term in zip(pattern, triple, strict=True)
        ]
        if all(
            binding.setdefault(node, term) == term if isinstance(node, Variable) else node == term
            for node, term in pairs
        ) and all(holds(f, binding[f.variable]) for f in branch.filters):
            found.add(tuple(binding[Variable(name)] for name in names))
    return Counter(found)


def found_by(
    index: Index, publication: Sequence[Triple], asked: Mapping[int, Branch] | None = None
) -> dict[int, Counter[tuple[object, ...]]]:
    """All solutions by row; where the index is uncertain, what was `asked` is evaluated."""
    matches, _ = index.match(publication)
    assert len({match.row for match in matches}) == len(matches)
    answers = {match.row: Counter(index.decided(match, holds)) for match in matches}
    uncertain = matches.uncertain.tolist()
    assert not set(uncertain) & answers.keys()
    answers |= {row: solutions_of((asked or {})[row], publication) for row in uncertain}
    return {row: answer for row, answer in answers.items() if answer}


@pytest.fixture(params=[all_rows.FULL, 1], ids=["arena", "tables"])
def full(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make gates send rows to tables when they have so many."""
    monkeypatch.setattr(all_rows, "FULL", request.param)


@pytest.mark.usefixtures("full")
@settings(deadline=None)
@given(st.lists(branches(), min_size=1, max_size=6), st.lists(publications, min_size=1, max_size=3))
def test_finds_what_nested_loops_find(asked: list[Branch], published: list[list[Triple]]) -> None:
    index = Index()
    rows = [index.add(compiled(branch)) for branch in asked]
    for publication in published:
        expected = {
            row: solutions
            for row, branch in zip(rows, asked, strict=True)
            if (solutions := solutions_of(branch, publication))
        }
        by_row = dict(zip(rows, asked, strict=True))
        assert found_by(index, publication, by_row) == expected


@pytest.mark.usefixtures("full")
@settings(deadline=None)
@given(
    st.lists(branches(), min_size=2, max_size=8), publications, st.randoms(use_true_random=False)
)
def test_coming_and_going_leaves_no_trace(
    asked: list[Branch], publication: list[Triple], random: object
) -> None:
    index, fresh = Index(), Index()
    first = [index.add(compiled(branch)) for branch in asked]
    gone = set(range(0, len(asked), 2))
    for number in sorted(gone):
        index.remove(first[number])
    kept = [n for n in range(len(asked)) if n not in gone]
    again = {n: index.add(compiled(asked[n])) for n in sorted(gone)[::2]}
    rows = {n: first[n] for n in kept} | again
    other = {n: fresh.add(compiled(asked[n])) for n in rows}
    mine = found_by(index, publication, {row: asked[n] for n, row in rows.items()})
    theirs = found_by(fresh, publication, {row: asked[n] for n, row in other.items()})
    assert {n for n, row in rows.items() if row in mine} == {
        n for n, row in other.items() if row in theirs
    }
    for n, row in rows.items():
        assert mine.get(row) == theirs.get(other[n])


@pytest.mark.usefixtures("full")
@given(st.lists(branches(), min_size=1, max_size=8))
def test_nothing_is_kept_of_what_has_gone(asked: list[Branch]) -> None:
    index = Index()
    rows = [index.add(compiled(branch)) for branch in asked]
    for row in rows:
        index.remove(row)
    assert (len(index), len(index.terms), int(index.rows.arena.gates.state[LIVE])) == (0, 0, 0)


@pytest.mark.usefixtures("full")
@given(branches(), branches(), publications)
def test_any_solution_will_do(one: Branch, other: Branch, publication: list[Triple]) -> None:
    index = Index()
    rows = {index.add(compiled(b), any_will_do=True): b for b in (one, other)}
    found = found_by(index, publication, rows)
    for row, branch in rows.items():
        assert bool(found.get(row)) == bool(solutions_of(branch, publication))


# -- what is shared, and what is not looked at -----------------------------------------------


def person(name: str, city: str) -> Branch:
    x, y = Variable(name), Variable("city")
    return Branch(
        (
            TriplePattern(x, NamedNode("urn:lives"), y),
            TriplePattern(y, NamedNode("urn:label"), Literal(city)),
        )
    )


def test_equal_up_to_names_of_variables_is_stored_once() -> None:
    index = Index()
    rows = [index.add(compiled(person(name, "Oslo"))) for name in ("a", "b", "c")]
    assert len(set(rows)) == 1
    assert len(index) == 1
    index.remove(rows[0])
    index.remove(rows[0])
    assert len(index) == 1
    index.remove(rows[0])
    assert len(index) == 0


def test_a_gate_that_is_not_met_costs_nothing() -> None:
    index = Index()
    for n in range(1000):
        index.add(compiled(person("x", f"city {n}")))
    oslo = (NODES[0], NamedNode("urn:label"), Literal("city 7"))
    _, counters = index.match([oslo])
    assert (counters.gates, counters.filed, counters.candidates) == (1, 1, 0)
    lives = (NODES[1], NamedNode("urn:lives"), NODES[0])
    matches, counters = index.match([oslo, lives])
    assert (counters.gates, counters.filed, counters.candidates, counters.joined) == (1, 1, 1, 1)
    assert [match.solutions for match in matches] == [((NODES[1], NODES[0]),)] or len(matches) == 1


def test_is_filed_under_what_publications_seldom_have() -> None:
    index = Index()
    common = (NODES[0], PROPERTIES[0], Literal("news"))
    tag = TriplePattern(Variable("x"), PROPERTIES[0], Literal("news"))
    index.add(compiled(Branch((tag,))))
    for _ in range(100):
        index.match([common])
    rare = TriplePattern(Variable("x"), PROPERTIES[1], Literal("rare"))
    for n in range(50):
        more = TriplePattern(Variable("x"), PROPERTIES[2], Literal(str(n)))
        index.add(compiled(Branch((tag, rare, more))))
    _, counters = index.match([common])
    assert counters.filed == 1


def test_a_word_in_a_text_is_a_gate() -> None:
    index = Index()
    title, x, t = NamedNode("urn:title"), Variable("x"), Variable("t")
    rows = []
    for n in range(300):
        word = TextTest(t, TextOperator.CONTAINS, Literal(f"word{n:03}"), View.STR)
        rows.append(index.add(compiled(Branch((TriplePattern(x, title, t),), (word,)))))
    matches, counters = index.match([(NODES[0], title, Literal("a word007 and a word123"))])
    assert (len(matches), counters.gates, counters.filed, counters.joined) == (2, 2, 2, 2)
    for row in rows:
        index.remove(row)
    assert len(index.terms) == 0


def test_a_variable_property_does_not_see_tests() -> None:
    index = Index()
    x, p, t = VARIABLES
    word = TextTest(t, TextOperator.CONTAINS, Literal("clim"))
    index.add(compiled(Branch((TriplePattern(x, PROPERTIES[0], t),), (word,))))
    every = index.add(compiled(Branch((TriplePattern(x, p, t),))))
    triple = (NODES[0], PROPERTIES[0], Literal("climate"))
    matches, _ = index.match([triple])
    (found,) = (match for match in matches if match.row == every)
    assert found.solutions == (triple,)


def test_a_text_is_compared_where_nothing_is_a_number() -> None:
    x, y = VARIABLES[:2]
    later = Comparison(y, Operator.GT, Literal("Acme"))
    index = Index()
    row = index.add(compiled(Branch((TriplePattern(x, PROPERTIES[0], y),), (later,))))
    for text, expected in (("acme", 1), ("Aaa", 0)):
        found = found_by(index, [(NODES[0], PROPERTIES[0], Literal(text))])
        assert len(found.get(row, ())) == expected


def test_many_solutions_find_room() -> None:
    index = Index()
    x, y = VARIABLES[:2]
    every = Branch(
        (TriplePattern(x, PROPERTIES[0], VARIABLES[2]), TriplePattern(y, PROPERTIES[0], NODES[0]))
    )
    row = index.add(compiled(every))
    publication = [(NamedNode(f"urn:s{n}"), PROPERTIES[0], NODES[0]) for n in range(80)]
    matches, _ = index.match(publication)
    assert [(m.row, len(m.solutions)) for m in matches] == [(row, 6400)]


def test_many_rows_at_once_are_those_one_by_one() -> None:
    random = np.random.default_rng(7)
    program = Program(((0, -1, -1), (0, -1, 1)), (), 2)
    constants = random.integers(0, 40, (3000, 3), dtype=np.int32)
    together, alone = Rows(), Rows()
    first = together.add_many(program, constants)
    second = np.concatenate([alone.add_many(program, row.reshape(1, -1)) for row in constants])
    assert len(together) == len(alone) == len({tuple(row) for row in constants.tolist()})
    assert np.array_equal(first, second)
    for row, ids in zip(first, constants, strict=True):
        assert np.array_equal(together.constants(int(row)), ids)
    while len(together):
        for row in first:
            together.remove(int(row))
    assert int(together.gates.state[LIVE]) == 0


def test_room_is_given_back() -> None:
    rows = Rows()
    program = Program(((0, -1, -1),), (), 1)
    random = np.random.default_rng(3)
    sizes = []
    for _ in range(6):
        constants = random.integers(0, 5000, (2000, 2), dtype=np.int32)
        for row in rows.add_many(program, constants):
            rows.remove(int(row))
        sizes.append(rows.nbytes)
    assert sizes[-1] == sizes[1]


def matches_of(index: Index, publication: Sequence[Triple]) -> Iterator[RowMatch]:
    yield from index.match(publication)[0]


def test_a_report_outlives_what_it_reports() -> None:
    index = Index()
    branch: Compiled = compiled(person("x", "Oslo"))
    row = index.add(branch)
    publication = [
        (NODES[0], NamedNode("urn:label"), Literal("Oslo")),
        (NODES[1], NamedNode("urn:lives"), NODES[0]),
    ]
    matches, _ = index.match(publication)
    index.remove(row)
    index.add(compiled(Branch((TriplePattern(NODES[3], PROPERTIES[1], LITERALS[0]),))))
    assert set(matches[0].solutions[0]) == {NODES[0], NODES[1]}


@pytest.mark.parametrize("name", ["test_finds_what_nested_loops_find"])
def test_without_compiling(name: str) -> None:
    if os.environ.get("NUMBA_DISABLE_JIT"):
        pytest.skip("this is the run without compiling")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::{name}"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
