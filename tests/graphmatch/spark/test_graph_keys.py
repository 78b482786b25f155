"""Keys of many triples looked up at once, and filters of many terms, are what plain loops say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Variable

from graphmatch.spark.graph.atoms import Atom, Atoms
from graphmatch.spark.graph.keys import AtomKeys, Decisions
from graphmatch.spark.graph.steps import Steps, Way
from semantic.decision import holds
from semantic.pattern import Branch, Comparison, TriplePattern, Unequal
from semantic.terms import Term
from semantic.values import Operator
from semantic.vocabulary import XSD

TERMS: Sequence[Term] = (
    *(NamedNode(f"urn:{n}") for n in range(4)),
    *(Literal(text, datatype=XSD["integer"]) for text in ("5", "05", "6", "9007199254740993")),
    *(Literal(text, datatype=XSD["double"]) for text in ("5", "9007199254740992", "NaN", "INF")),
    *(Literal(text, datatype=XSD["decimal"]) for text in ("5.0", "5.000000000000000001")),
    Literal("5", datatype=XSD["float"]),
    Literal("five"),
    Literal("5", datatype=XSD["string"]),
)
CONSTANTS = [term for term in TERMS if isinstance(term, Literal) and term.value not in ("NaN",)]
V = Variable("v")
FILTERS = [
    *(Comparison(V, op, c) for op in Operator for c in CONSTANTS if c.datatype != XSD["string"]),
    *(Unequal(V, constant) for constant in CONSTANTS),
]
NODES = st.one_of(st.none(), st.sampled_from(TERMS[:3]))
TRIPLES = st.lists(st.tuples(*[st.integers(0, len(TERMS) - 1)] * 3), min_size=1, max_size=12)


@st.composite
def atoms(draw: st.DrawFn) -> Atom:
    names = draw(st.tuples(*[st.sampled_from("xyz")] * 3))
    key = draw(st.tuples(NODES, NODES, NODES))
    nodes = [Variable(n) if term is None else term for n, term in zip(names, key, strict=True)]
    pattern = TriplePattern(*nodes)
    filters = ()
    if variables := sorted(pattern.variables, key=str):
        some = draw(st.lists(st.sampled_from(FILTERS), max_size=2))
        filters = tuple(type(f)(variables[0], *_rest(f)) for f in some)
    made = Atoms()
    made.parts(Branch((pattern,), filters))
    return made.all[0]


def _rest(filter_: Comparison | Unequal) -> tuple[object, ...]:
    both = isinstance(filter_, Comparison)
    return (filter_.operator, filter_.constant) if both else (filter_.constant,)


def meets(atom: Atom, triple: Sequence[Term]) -> bool:
    bound: dict[int, Term] = {}
    for term, wanted, slot in zip(triple, atom.key, atom.slots, strict=True):
        if wanted is not None and term != wanted:
            return False
        if wanted is None and bound.setdefault(slot, term) != term:
            return False
    return all(holds(filter_, bound[slot]) for slot, filter_ in atom.filters)


@given(st.lists(atoms(), min_size=1, max_size=8, unique=True), TRIPLES)
def test_keys(asked: list[Atom], triples: list[tuple[int, int, int]]) -> None:
    found = {n: rows.tolist() for n, rows in AtomKeys(asked).met(np.array(triples), TERMS)}
    expected = {}
    for number, atom in enumerate(asked):
        rows = [n for n, t in enumerate(triples) if meets(atom, [TERMS[place] for place in t])]
        if rows:
            expected[number] = rows
    assert {number: sorted(rows) for number, rows in found.items()} == expected


def test_decisions() -> None:
    decisions = Decisions(TERMS)
    numbers = np.arange(len(TERMS))
    for filter_ in FILTERS:
        held = [holds(filter_, term) for term in TERMS]
        assert decisions.of(filter_, numbers).tolist() == held, filter_
        assert decisions.of(filter_, numbers).tolist() == held  # remembered


def test_joins_are_shared_where_shapes_begin_alike() -> None:
    x, y, z = map(Variable, "xyz")
    p, q, r = (NamedNode(f"urn:{name}") for name in "pqr")
    branches = [
        Branch((TriplePattern(x, p, y), TriplePattern(y, q, z))),
        Branch((TriplePattern(x, p, y), TriplePattern(y, q, z), TriplePattern(z, r, x))),
        Branch((TriplePattern(z, p, x), TriplePattern(x, r, y))),
    ]
    made = Atoms()
    ways = [
        Way(n, made.parts(branch), branch.names, frozenset(branch.names))
        for n, branch in enumerate(branches)
    ]
    steps = Steps(ways, {0: 1, 1: 2, 2: 3})
    first, second, third = steps
    assert [node.step for node in steps] == [(0, 1), (1, 2), (2, 0)]
    assert (first.uses, second.uses, third.uses) == (1, 2, 1)
    assert second.prefixes == {(0, 1): 0, (0, 2): 1}  # one join, whatever the constants
    assert len(made) == 3
