"""Columns of a tree against naive nested loops over the publication."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Variable

from semantic.pattern import Branch, Comparison, TriplePattern
from semantic.sparql.parse import SubscriptionParser
from semantic.terms import Node, Term, Triple
from semantic.tree_pattern import Column, Path, Tree, constraints
from semantic.values import Operator
from semantic.vocabulary import XSD

PROPERTIES = tuple(NamedNode(f"urn:p{number}") for number in range(2))
NODES = tuple(NamedNode(f"urn:n{number}") for number in range(4))
NUMBERS = tuple(Literal(str(number), datatype=XSD["integer"]) for number in range(5))
ROOT = Variable("v0")
Binding = Mapping[Variable, Term]


# --- The reference ----------------------------------------------------------------------------


def number(term: Term) -> int | None:
    return int(term.value) if isinstance(term, Literal) else None


def holds(comparison: Comparison, term: Term) -> bool:
    left, right = number(term), number(comparison.constant)
    if left is None or right is None:
        return False
    match comparison.operator:
        case Operator.EQ:
            return left == right
        case Operator.LT:
            return left < right
        case Operator.LE:
            return left <= right
        case Operator.GT:
            return left > right
    return left >= right


def solutions(branch: Branch, triples: Sequence[Triple]) -> Iterator[Binding]:
    """Yield all solutions, by trying every triple for every pattern."""

    def extend(rest: Sequence[TriplePattern], bound: Binding) -> Iterator[Binding]:
        if not rest:
            yield bound
            return
        for triple in triples:
            new: dict[Variable, Term] | None = dict(bound)
            for node, term in zip(rest[0], triple, strict=True):
                if new is None:
                    break
                if isinstance(node, Variable):
                    new = new if new.setdefault(node, term) == term else None
                elif node != term:
                    new = None
            if new is not None:
                yield from extend(rest[1:], new)

    for binding in extend(branch.patterns, {}):
        if all(isinstance(f, Comparison) and holds(f, binding[f.variable]) for f in branch.filters):
            yield binding


def reached(triples: Sequence[Triple], start: Term, path: Path) -> set[Term]:
    found = {start}
    for step in path:
        ends = [(s, o) if step.forward else (o, s) for s, p, o in triples if p == step.property]
        found = {end for begin, end in ends if begin in found}
    return found


def passes(column: Column, value: Term) -> bool:
    if column.constant is not None and value != column.constant:
        return False
    if (interval := column.interval) is not None:
        here = number(value)
        if here is None:
            return False
        if interval.low is not None:
            low = int(interval.low.value)
            if here < low or (interval.low_open and here == low):
                return False
        if interval.high is not None:
            high = int(interval.high.value)
            if here > high or (interval.high_open and here == high):
                return False
    return all(isinstance(test, Comparison) and holds(test, value) for test in column.tests)


def satisfied(tree: Tree, triples: Sequence[Triple], start: Term) -> bool:
    return all(
        any(passes(column, value) for value in reached(triples, start, column.path))
        for column in tree.columns
    )


# --- What is generated ------------------------------------------------------------------------


@st.composite
def trees(draw: st.DrawFn) -> Branch:
    variables = [ROOT]
    patterns: list[TriplePattern] = []
    for _ in range(draw(st.integers(1, 5))):
        here = draw(st.sampled_from(variables))
        property_ = draw(st.sampled_from(PROPERTIES))
        forward = draw(st.integers(0, 3)) > 0
        there: Node
        if draw(st.booleans()):
            there = Variable(f"v{len(variables)}")
            variables.append(there)
        else:
            there = draw(st.sampled_from((*NODES, *NUMBERS) if forward else NODES))
        ends = (here, there) if forward else (there, here)
        patterns.append(TriplePattern(ends[0], property_, ends[1]))
    filters = [
        Comparison(
            draw(st.sampled_from(variables)),
            draw(st.sampled_from(Operator)),
            draw(st.sampled_from(NUMBERS)),
        )
        for _ in range(draw(st.integers(0, 3)))
    ]
    return Branch(tuple(draw(st.permutations(patterns))), tuple(filters))


TRIPLES = st.lists(
    st.tuples(
        st.sampled_from(NODES), st.sampled_from(PROPERTIES), st.sampled_from((*NODES, *NUMBERS))
    ),
    min_size=1,
    max_size=9,
    unique=True,
)


@given(trees(), TRIPLES)
def test_columns_are_necessary_and_sufficient_where_shared_nodes_have_one_value(
    branch: Branch, triples: list[Triple]
) -> None:
    tree = constraints(branch, ROOT)
    assert tree is not None
    found = {solution[ROOT] for solution in solutions(branch, triples)}
    for start in {term for s, _, o in triples for term in (s, o)}:
        if start in found:
            assert satisfied(tree, triples, start)
        elif satisfied(tree, triples, start):
            several = [p for p, _ in tree.shared if len(reached(triples, start, p)) > 1]
            event("columns alone are too few")
            assert several


@given(trees(), TRIPLES)
def test_any_variable_may_be_the_root(branch: Branch, triples: list[Triple]) -> None:
    found = list(solutions(branch, triples))
    for root in branch.variables:
        tree = constraints(branch, root)
        assert tree is not None
        for solution in found:
            assert satisfied(tree, triples, solution[root])


@given(trees())
def test_columns_say_everything_once(branch: Branch) -> None:
    tree = constraints(branch, ROOT)
    assert tree is not None
    constants = [n for p in branch.patterns for n in (p.subject, p.object) if not _open(n)]
    columns = tree.columns
    assert sorted(str(c.constant) for c in columns if c.constant) == sorted(map(str, constants))
    shorter = [len(path) for path, _ in tree.shared]
    assert all(a <= b for a, b in pairwise(shorter))
    for path, numbers in tree.shared:
        assert path
        assert len(numbers) > 1
        assert all(columns[number].path[: len(path)] == path for number in numbers)


def _open(node: Node) -> bool:
    return isinstance(node, Variable)


# --- Cases ------------------------------------------------------------------------------------


def branch_of(where: str) -> Branch:
    (branch,) = SubscriptionParser().parse("s", f"ASK {{ {where} }}").branches
    return branch


@pytest.mark.parametrize(
    "where",
    [
        pytest.param("?v0 <urn:p> ?a . ?a <urn:p> ?v0", id="circle"),
        pytest.param("?v0 <urn:p> ?a ; <urn:q> ?a", id="two ways to one variable"),
        pytest.param("?v0 <urn:p> ?v0", id="loop"),
        pytest.param("?v0 <urn:p> ?a . ?b <urn:p> ?c", id="two parts"),
        pytest.param("?v0 ?p ?a", id="variable property"),
        pytest.param("?v0 <urn:p> ?a . <urn:a> <urn:p> <urn:b>", id="pattern without variables"),
        pytest.param("?a <urn:p> ?b", id="without the root"),
    ],
)
def test_what_is_no_tree(where: str) -> None:
    assert constraints(branch_of(where), ROOT) is None


def test_ctps_figure_3() -> None:
    tree = constraints(
        branch_of(
            "?v0 <urn:target> ?t . ?t a <urn:Computer> . ?v0 <urn:price> ?p . "
            "?p <urn:currency> <urn:USD> ; <urn:value> ?a FILTER(?a >= 0 && ?a < 400)"
        ),
        ROOT,
    )
    assert tree is not None
    columns = {".".join(s.property.value[4:] for s in c.path[-1:]): c for c in tree.columns}
    interval = columns["value"].interval
    assert interval is not None
    assert interval.low is not None
    assert interval.high is not None
    assert (interval.low.value, interval.low_open) == ("0", False)
    assert (interval.high.value, interval.high_open) == ("400", True)
    assert columns["currency"].constant == NamedNode("urn:USD")
    ((path, shared),) = tree.shared
    assert [str(step) for step in path] == ["<urn:price>"]
    assert {tree.columns[number].path[-1].property.value for number in shared} == {
        "urn:currency",
        "urn:value",
    }


def test_ends_that_do_not_go_together_stay_tests() -> None:
    tree = constraints(
        branch_of('?v0 <urn:p> ?a FILTER(?a > 5 && ?a < "2026-01-01"^^xsd:date && ?a > 7)'), ROOT
    )
    assert tree is not None
    (column,) = tree.columns
    assert column.interval is not None
    assert column.interval.low is not None
    assert column.interval.high is None
    assert len(column.tests) == 2


def test_columns_are_too_few_where_a_shared_node_has_two_values() -> None:
    """One price is low enough, the other is in dollars."""
    branch = branch_of("?v0 <urn:p0> ?a . ?a <urn:p0> ?b ; <urn:p1> <urn:n3> FILTER(?b <= 2)")
    offer, cheap, dollars = NODES[:3]
    p0, p1 = PROPERTIES
    triples: list[Triple] = [
        (offer, p0, cheap),
        (offer, p0, dollars),
        (cheap, p0, NUMBERS[1]),
        (dollars, p0, NUMBERS[4]),
        (dollars, p1, NODES[3]),
    ]
    tree = constraints(branch, ROOT)
    assert tree is not None
    assert satisfied(tree, triples, offer)
    assert list(solutions(branch, triples)) == []
    ((path, _),) = tree.shared
    assert len(reached(triples, offer, path)) == 2
