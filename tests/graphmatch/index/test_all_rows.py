"""Rows of the arena and of tables together, against nested loops."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from graphmatch.index import all_rows, kernels, shape_table, tables
from graphmatch.index.all_rows import AllRows
from graphmatch.index.comparing import GE, LE, Values
from graphmatch.index.encoding import Encoded
from graphmatch.index.kernels import MATCH, Output, Work
from graphmatch.index.numbers import ASKED, DATE_TIME, NUMBER, scale_of
from graphmatch.index.plans import Program, compiled, filter_of
from graphmatch.index.tabled import Tabled
from graphmatch.index.terms import Ids, Terms
from semantic.decision import holds
from semantic.pattern import Branch, Comparison, Filter, TriplePattern
from semantic.terms import Node, Term, Triple
from semantic.values import Operator
from semantic.vocabulary import XSD

NODES = tuple(NamedNode(f"urn:n{n}") for n in range(3))
PROPERTIES = tuple(NamedNode(f"urn:p{n}") for n in range(3))
ROOT, *LEAVES = (Variable(name) for name in "rabcd")
BETWEEN = tuple(Variable(name) for name in "xyz")
INTEGERS = tuple(Literal(n) for n in range(5))
EXACT = (
    *INTEGERS,
    Literal("2.0", datatype=XSD["decimal"]),
    Literal("2.5", datatype=XSD["double"]),
    Literal("0.1", datatype=XSD["double"]),
    Literal("2026-01-01", datatype=XSD["date"]),
    Literal("2026-01-01T12:00:00Z", datatype=XSD["dateTime"]),
    Literal("2026-01-02T12:00:00Z", datatype=XSD["dateTime"]),
    Literal("climate"),
    Literal("weather"),
    Literal("climate", language="en"),
)
OFF = (
    Literal("0.1", datatype=XSD["decimal"]),
    Literal("2.1", datatype=XSD["decimal"]),
    Literal("2.10", datatype=XSD["decimal"]),
    Literal("0.1", datatype=XSD["float"]),
    Literal("9007199254740993", datatype=XSD["integer"]),
    Literal("NaN", datatype=XSD["double"]),
    Literal("INF", datatype=XSD["float"]),
    Literal("2026-01-01T12:00:00", datatype=XSD["dateTime"]),
    Literal("2026-01-03T12:00:00", datatype=XSD["dateTime"]),
    Literal("2026-01-01Z", datatype=XSD["date"]),
    Literal("2026-01-03T13:00:00.1Z", datatype=XSD["dateTime"]),
    Literal("true", datatype=XSD["boolean"]),
)
"""What no float holds exactly, and what compares with it in other ways than by floats."""
ALL = (*EXACT, *OFF)


def pools(values: Sequence[Literal]) -> tuple[tuple[Literal, ...], ...]:
    """By property, what its values are: numbers, numbers and times, anything."""
    numbers = tuple(v for v in values if scale_of(v).kind == NUMBER)
    times = tuple(v for v in values if DATE_TIME <= scale_of(v).kind < ASKED)
    return numbers, (*numbers[:2], *times, *times), tuple(values)


def some_star(random: Random, values: Sequence[Literal]) -> Branch:
    """A variable with some leaves; seldom, two of them are one, so that it is no star."""
    patterns: list[TriplePattern] = []
    filters: list[Filter] = []
    used = random.sample(PROPERTIES, 3)
    if random.random() < 0.3:
        used[0] = used[1]
    names = [LEAVES[0]] * 3 if random.random() < 0.05 else LEAVES
    for leaf, property_ in zip(names, used[: random.choice((1, 1, 2, 2, 3))], strict=False):
        pool = pools(values)[PROPERTIES.index(property_)]
        if random.random() < 0.15:
            end: Node = random.choice((leaf, *NODES))
            patterns.append(TriplePattern(end, property_, ROOT))
        elif random.random() < 0.15:
            end = random.choice((*NODES, *pool))
            patterns.append(TriplePattern(ROOT, property_, end))
        else:
            patterns.append(TriplePattern(ROOT, property_, leaf))
            filters += some_filters(random, leaf, pool)
    if random.random() < 0.05:
        filters.append(Comparison(ROOT, Operator.EQ, NODES[0]))
    if random.random() < 0.4:
        patterns, filters = with_chains(random, patterns, filters)
    return Branch(tuple(patterns), tuple(filters))


def with_chains(
    random: Random, patterns: list[TriplePattern], filters: list[Filter]
) -> tuple[list[TriplePattern], list[Filter]]:
    """Put variables between the root and some leaves; seldom one that is there, or has filters."""
    chained: list[TriplePattern] = []
    for pattern in patterns:
        steps = random.choice((0, 0, 1, 1, 1, 2))
        way: list[Variable] = random.sample(BETWEEN, steps)
        here: Node = ROOT
        for variable in way:
            onward: Node = random.choice((ROOT, *LEAVES)) if random.random() < 0.04 else variable
            ends = (here, onward) if random.random() < 0.8 else (onward, here)
            chained.append(TriplePattern(ends[0], random.choice(PROPERTIES), ends[1]))
            here = onward
            if isinstance(onward, Variable) and random.random() < 0.05:
                filters.append(Comparison(onward, Operator.EQ, random.choice(NODES)))
        s, p, o = pattern
        chained.append(TriplePattern(here if s == ROOT else s, p, here if o == ROOT else o))
    random.shuffle(chained)
    return chained, filters


def some_filters(random: Random, leaf: Variable, pool: Sequence[Literal]) -> list[Filter]:
    known = [v for v in pool if v.language is None and v.value not in {"NaN", "true"}]
    low, high = random.choice(known), random.choice(known)
    if scale_of(low).value > scale_of(high).value:
        low, high = high, low
    step = random.random()
    if step < 0.15:
        return []
    if step < 0.3:
        operator = random.choice(list(Operator))
        constant: NamedNode | Literal = random.choice((*known, NODES[0]))
        return [Comparison(leaf, operator, constant)]
    above = random.choice((Operator.GE, Operator.GE, Operator.GT))
    below = random.choice((Operator.LE, Operator.LE, Operator.LT))
    both: list[Filter] = [Comparison(leaf, above, low), Comparison(leaf, below, high)]
    return both if step < 0.8 else both[:1] if step < 0.9 else both[1:]


def some_publication(random: Random, values: Sequence[Literal]) -> list[Triple]:
    """Up to three roots, with no value, one, or several for each property."""
    triples: dict[Triple, None] = {}
    nodes: tuple[Term, ...] = (*NODES, BlankNode("b"))
    for root in random.sample(nodes, random.choice((1, 1, 2, 3))):
        for property_, pool in zip(PROPERTIES, pools(values), strict=True):
            for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
                end = random.choice((*pool, *pool, *nodes))
                triples[root, property_, end] = None
            if random.random() < 0.2:
                triples[random.choice(NODES), property_, root] = None
    for _ in range(random.choice((0, 0, 2, 5))):
        triples[random.choice(nodes), random.choice(PROPERTIES), random.choice(nodes)] = None
    return list(triples)


Answer = Counter[tuple[Term, ...]]


def solutions_of(branch: Branch, publication: Sequence[Triple]) -> Answer:
    """All ways of putting triples in the patterns' places, one after the other."""
    names = compiled(branch).names
    bindings: list[dict[Node, Term]] = [{}]
    for pattern in branch.patterns:
        found = []
        for binding, triple in product(bindings, publication):
            new = dict(binding)
            if all(
                new.setdefault(node, term) == term if isinstance(node, Variable) else node == term
                for node, term in zip(pattern, triple, strict=True)
            ):
                found.append(new)
        bindings = found
    return Counter(
        {
            tuple(binding[Variable(name)] for name in names)
            for binding in bindings
            if all(holds(f, binding[f.variable]) for f in branch.filters)
        }
    )


@dataclass
class Found:
    """What is found for a publication."""

    answers: dict[int, Answer]
    uncertain: set[int]
    tabled: Tabled


@dataclass
class Both:
    """Rows, and the branches that they are rows of."""

    any_will_do: bool = False
    terms: Terms = field(default_factory=Terms)
    asked: dict[int, Branch] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = AllRows(self.terms)

    def add(self, branch: Branch) -> int:
        made = compiled(branch)
        ids = self.terms.take(made.constants).reshape(1, -1)
        (row,) = self.rows.add_many(made.program, ids, any_will_do=self.any_will_do).tolist()
        self.asked[row] = branch
        assert self.rows.program(row) == made.program
        return int(row)

    def save(self) -> None:
        """Save the rows, and go on with what was saved."""
        arrays = {name: array.copy() for name, array in self.rows.arrays().items()}
        document = json.loads(json.dumps(self.rows.document()))
        self.rows = AllRows.of_saved(self.terms, document, arrays)

    def remove(self, row: int) -> bool:
        held = self.rows.held(row)
        gone = self.rows.remove(row)
        self.terms.release(held)
        if gone:
            del self.asked[row]
        return gone

    def find(self, publication: Sequence[Triple]) -> Found:
        encoded = Encoded(publication, self.terms, self.rows.kinds, compared=self.rows.compare)
        tabled = self.rows.match_tables(encoded)
        answers = self._arena(encoded)
        for place, row in enumerate(tabled.rows.tolist()):
            assert row not in answers
            answers[row] = Counter(
                tuple(map(encoded.terms.__getitem__, solution))
                for solution in tabled.solutions(place)
            )
        uncertain = set(tabled.uncertain.tolist())
        assert len(uncertain) == len(tabled.uncertain)
        assert not uncertain & answers.keys()
        return Found({row: found for row, found in answers.items() if found}, uncertain, tabled)

    def _arena(self, encoded: Encoded) -> dict[int, Answer]:
        arena = self.rows.arena
        out = Output(
            np.zeros(1 << 14, np.int32), np.zeros(1 << 16, np.int32), np.zeros(6, np.int64)
        )
        out.solutions[0] = 1
        work = Work(np.zeros(1 << 14, np.int32), np.zeros(1 << 12, np.int32))
        values = Values(self.terms.numbers, encoded.local)
        count = kernels.match(
            encoded.graph, arena.gates, arena.arena, arena.plans.code, values, work, out
        )
        assert count >= 0
        answers = {}
        for row, start, found, _, _ in out.matches[: MATCH * count].reshape(-1, MATCH).tolist():
            program, held = arena.program(row), arena.constants(row)
            width = program.variables + 1
            filters = [
                (v, filter_of(operator, self.terms.term(int(held[constant]))))
                for v, operator, constant in program.checks
            ]
            answers[2 * row] = Counter(
                bound
                for maybe, *ids in out.solutions[start : start + found * width]
                .reshape(-1, width)
                .tolist()
                if (bound := tuple(map(encoded.terms.__getitem__, ids)))
                and (not maybe or all(holds(filter_, bound[v]) for v, filter_ in filters))
            )
        return answers

    def check(self, publication: Sequence[Triple]) -> Found:
        found = self.find(publication)
        exact = all(is_exact(term) for triple in publication for term in triple)
        for row, branch in self.asked.items():
            expected = solutions_of(branch, publication)
            if row in found.uncertain:
                compared = [f.constant for f in branch.filters if isinstance(f, Comparison)]
                assert not (exact and all(map(is_exact, compared)))
            elif self.any_will_do:
                assert bool(expected) == (row in found.answers)
                assert not found.answers.get(row, Counter()) - expected
            else:
                assert found.answers.get(row, Counter()) == expected
        assert found.answers.keys() <= self.asked.keys()
        assert found.uncertain <= self.asked.keys()
        return found


def is_exact(term: object) -> bool:
    return term not in OFF and scale_of(term).error == 0


@pytest.fixture(params=[0, 1, 3], autouse=True)
def full(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """So many rows make a gate full; with 0, none is."""
    monkeypatch.setattr(all_rows, "FULL", request.param)
    monkeypatch.setattr(all_rows, "PAIRED", 1)
    return int(request.param)


seeds = st.integers(0, 2**32).map(Random)


@given(seeds)
def test_exact_numbers_are_certain(random: Random) -> None:
    both = Both()
    for _ in range(20):
        both.add(some_star(random, EXACT))
    for _ in range(3):
        both.check(some_publication(random, EXACT))


@given(seeds, st.booleans())
def test_what_is_certain_is_true(random: Random, any_will_do: bool) -> None:
    both = Both(any_will_do)
    for _ in range(20):
        both.add(some_star(random, ALL))
    for _ in range(3):
        both.check(some_publication(random, ALL))


@given(seeds)
def test_coming_and_going_leaves_no_trace(random: Random) -> None:
    both = Both()
    uses: Counter[int] = Counter()
    stars = [some_star(random, EXACT) for _ in range(12)]
    for _ in range(40):
        uses[both.add(random.choice(stars))] += 1
        if random.random() < 0.4:
            row = random.choice(sorted(uses))
            uses[row] -= 1
            assert both.remove(row) == (uses[row] == 0)
            uses += Counter()
        assert len(both.rows) == len(uses)
        if random.random() < 0.1:
            both.save()
    both.check(some_publication(random, EXACT))
    for row in uses.elements():
        both.remove(row)
    assert (len(both.rows), len(both.terms)) == (0, 0)
    assert both.find(some_publication(random, EXACT)).tabled.tables == 0


# -- chains ---------------------------------------------------------------------------------

CLASSES = tuple(NamedNode(f"urn:c{n}") for n in range(40))


def classified(number: int, random: Random) -> Branch:
    """What has a range, and parts of two classes, one of them by way of another part."""
    a, b, c, d = LEAVES
    low = random.randrange(80)
    return Branch(
        (
            TriplePattern(ROOT, PROPERTIES[0], a),
            TriplePattern(ROOT, PROPERTIES[1], b),
            TriplePattern(b, PROPERTIES[2], CLASSES[number % 4]),
            TriplePattern(c, PROPERTIES[1], ROOT),
            TriplePattern(c, PROPERTIES[0], d),
            TriplePattern(d, PROPERTIES[2], CLASSES[number % 7]),
        ),
        (
            Comparison(a, Operator.GE, Literal(low)),
            Comparison(a, Operator.LT, Literal(low + random.randrange(1, 20))),
        ),
    )


def parts(random: Random) -> list[Triple]:
    """Two roots, each with several parts, some of which are the same."""
    own = [BlankNode(f"i{n}") for n in range(5)]
    triples: dict[Triple, None] = {}
    for root in NODES[:2]:
        triples[root, PROPERTIES[0], Literal(random.randrange(100))] = None
        for part in random.sample(own, 3):
            triples[root, PROPERTIES[1], part] = None
            triples[part, PROPERTIES[1], root] = None
            triples[part, PROPERTIES[0], random.choice(own)] = None
    for part in own:
        for class_ in random.sample(CLASSES[:7], 3):
            triples[part, PROPERTIES[2], class_] = None
    return list(triples)


@pytest.mark.parametrize("any_will_do", [False, True])
@pytest.mark.parametrize("shared", [1, 10**6])
def test_chains_come_to_tables(
    monkeypatch: pytest.MonkeyPatch, full: int, shared: int, any_will_do: bool
) -> None:
    monkeypatch.setattr(tables, "SHARED", shared)
    random = Random(1)
    both = Both(any_will_do)
    branches = [classified(n, random) for n in range(200)]
    rows = [both.add(branch) for branch in branches]
    if full:
        assert both.rows.tabled > len(both.rows) - 2 * 7 * full
    met = 0
    for n in range(6):
        found = both.check(parts(random))
        met += len(found.answers)
        joined = sum(row % 2 == 0 for row in found.answers)
        if full:
            assert joined <= 2 * 7 * full  # rows in tables are not joined
            assert len(found.tabled.rows) <= found.tabled.candidates
            assert not found.uncertain
        if n == 2:
            both.save()
    assert met > 20
    for row in rows[::2]:
        both.remove(row)
    both.check(parts(random))
    for branch in branches[::2]:
        both.add(branch)
    both.check(parts(random))
    for row in list(both.asked):
        while not both.remove(row):
            pass
    assert (len(both.rows), len(both.terms)) == (0, 0)


def test_that_gates_share_a_table_and_ask_it_once_for_each_root(full: int) -> None:
    both = Both()
    random = Random(2)
    for n in range(200):
        both.add(classified(n, random))
    triples: list[Triple] = [
        (NODES[0], PROPERTIES[0], Literal(50)),
        (NODES[0], PROPERTIES[1], NODES[1]),
        (NODES[1], PROPERTIES[1], NODES[0]),
        (NODES[1], PROPERTIES[0], NODES[2]),
        *((node, PROPERTIES[2], class_) for node in NODES[1:] for class_ in CLASSES[:7]),
    ]
    found = both.check(triples)
    if full:
        assert found.tabled.tables > 1
        # every row is looked at once, in the tail of the only table
        assert found.tabled.candidates == both.rows.tabled == found.tabled.filed


def test_all_ways_to_come_to_an_end_are_solutions(full: int) -> None:
    both = Both()
    x, y = BETWEEN[:2]
    patterns = (TriplePattern(ROOT, PROPERTIES[0], x), TriplePattern(x, PROPERTIES[1], y))
    for n in range(20):
        low = Comparison(y, Operator.GE, Literal(n))
        rows = both.add(Branch(patterns, (low,)))
    publication: list[Triple] = [
        *((NODES[0], PROPERTIES[0], node) for node in NODES),
        *((node, PROPERTIES[1], Literal(n)) for node in NODES[1:] for n in (19, 30)),
        (NODES[1], PROPERTIES[1], Literal(3)),
    ]
    found = both.check(publication)
    assert rows & 1 == (full > 0)
    assert found.answers[rows].total() == 4


def test_a_long_walk_takes_each_triple_once(full: int) -> None:
    """There are 3**12 ways to the end."""
    both = Both(any_will_do=True)
    names = [Variable(f"v{n}") for n in range(13)]
    steps = [TriplePattern(names[n], PROPERTIES[0], names[n + 1]) for n in range(12)]
    for n in range(20):
        begin = TriplePattern(names[0], PROPERTIES[2], ROOT)
        end = TriplePattern(names[-1], PROPERTIES[1], LEAVES[0])
        low = Comparison(LEAVES[0], Operator.GE, Literal(n))
        row = both.add(Branch((begin, *steps, end), (low,)))
    nodes = [[NamedNode(f"urn:n{level}:{n}") for n in range(3)] for level in range(13)]
    publication: list[Triple] = [
        (s, PROPERTIES[0], o)
        for level in range(12)
        for s, o in product(nodes[level], nodes[level + 1])
    ]
    publication += [(node, PROPERTIES[1], Literal(19)) for node in nodes[-1]]
    publication.append((nodes[0][0], PROPERTIES[2], NODES[0]))
    if full:
        found = both.find(publication)
        assert row & 1
        assert row in found.answers


def test_that_rows_are_passed_over_by_their_rarest_constants() -> None:
    """All patterns seem alike; the constants that few mention tell the rows apart."""
    both = Both()
    for n in range(100):
        a = LEAVES[0]
        patterns = (
            TriplePattern(ROOT, PROPERTIES[0], a),
            TriplePattern(a, PROPERTIES[1], CLASSES[0]),
            TriplePattern(ROOT, PROPERTIES[2], Literal(n % 10)),
            TriplePattern(ROOT, PROPERTIES[1], Literal(n // 10)),
        )
        both.add(Branch(patterns))
    rare = {Literal(n) for n in range(10)}
    for row in list(both.asked)[1:]:  # when the first one came, each constant was said once
        if row & 1:
            continue  # in the table of a crowded gate
        gate = both.rows.gate(row)
        assert both.terms.term(int(gate[2])) in rare


# -- many at once --------------------------------------------------------------------------


COUNT = 3000
ATTRIBUTES = 6


def ranges(random: np.random.Generator, terms: Terms, absent: float) -> list[tuple[Program, Ids]]:
    """Rows of ranges over some attributes, a program for each number of them."""
    properties = terms.take([NamedNode(f"urn:a{n}") for n in range(ATTRIBUTES)])
    numbers = terms.take([Literal(n) for n in range(100)])
    there = random.random((COUNT, ATTRIBUTES)) >= absent
    there[:, 0] |= ~there.any(axis=1)
    many = []
    for count in np.unique(there.sum(axis=1)).tolist():
        own = np.nonzero(there[there.sum(axis=1) == count])[1].reshape(-1, count)
        low = random.integers(0, 60, own.shape)
        high = low + random.integers(0, 40, own.shape)
        bounds = np.stack([numbers[low], numbers[high]], axis=2).reshape(len(own), -1)
        checks = [(1 + n, op, count + 2 * n + (op == LE)) for n in range(count) for op in (GE, LE)]
        program = Program(tuple((0, -1, 1 + n) for n in range(count)), tuple(checks), count + 1)
        many.append((program, np.concatenate([properties[own], bounds], axis=1)))
    return many


def event(random: np.random.Generator) -> list[Triple]:
    return [
        (NODES[0], NamedNode(f"urn:a{n}"), Literal(int(random.integers(0, 100))))
        for n in range(ATTRIBUTES)
    ]


def meets(constants: Ids, terms: Terms, publication: list[Triple]) -> NDArray[np.bool_]:
    """Which rows of ranges a publication meets, by comparing all."""
    count = constants.shape[1] // 3
    value = np.zeros(len(terms.numbers))
    for _, p, o in publication:
        value[terms.ids[p]] = int(o.value)
    bounds = terms.numbers[constants[:, count:], 1]
    own = value[constants[:, :count]]
    return ((bounds[:, 0::2] <= own) & (own <= bounds[:, 1::2])).all(axis=1)


@pytest.mark.parametrize("absent", [0.0, 0.5])
def test_many_at_once(absent: float, full: int) -> None:
    random = np.random.default_rng(3)
    both = Both()
    added = []
    for program, constants in ranges(random, both.terms, absent):
        kept = constants.copy()
        for part in (constants[: len(constants) // 3], constants):
            both.terms.hold(part)
            rows = both.rows.add_many(program, part)
        assert len(np.unique(rows)) == len(np.unique(kept, axis=0))
        added.append((program, kept, rows))
    assert len(both.rows) == sum(len(np.unique(rows)) for _, _, rows in added)
    if full:
        assert both.rows.tabled >= len(both.rows) - full * ATTRIBUTES
    for _ in range(4):
        publication = event(random)
        found = both.find(publication)
        expected = [rows[meets(kept, both.terms, publication)] for _, kept, rows in added]
        assert set(found.answers) == set(np.concatenate(expected).tolist())
        if full:
            assert (found.tabled.tables > 0) & (found.tabled.filed > COUNT / 2)
            assert len(found.tabled.rows) <= found.tabled.candidates
    for program, kept, rows in added:
        for row, ids in list(zip(rows.tolist(), kept, strict=True))[::7]:
            assert both.rows.program(row) == program
            held = np.sort(both.rows.held(row)).tolist()
            whole = np.sort(ids).tolist()
            assert held == (np.sort(ids[: len(ids) // 3]).tolist() if row & 1 else whole)


def test_rows_come_together_at_few_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_rows, "FULL", 20)
    both = Both()
    for program, constants in ranges(np.random.default_rng(4), both.terms, 0.5):
        both.terms.hold(constants)
        both.rows.add_many(program, constants)
    found = both.find(event(np.random.default_rng(5)))
    assert found.tabled.tables <= ATTRIBUTES
    assert both.rows.tabled >= len(both.rows) - 20 * ATTRIBUTES
    assert found.tabled.filed == both.rows.tabled


def test_too_many_shapes_stay_in_the_arena(monkeypatch: pytest.MonkeyPatch, full: int) -> None:
    monkeypatch.setattr(shape_table, "MOST_SHAPES", 5)
    random = np.random.default_rng(6)
    both = Both()
    added = []
    for program, constants in ranges(random, both.terms, 0.5):
        both.terms.hold(constants)
        added.append((constants, both.rows.add_many(program, constants)))
    assert (0 < both.rows.tabled < len(both.rows) / 2) == (full > 0)
    publication = event(random)
    expected = [rows[meets(kept, both.terms, publication)] for kept, rows in added]
    assert set(both.find(publication).answers) == set(np.concatenate(expected).tolist())


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="takes long then")
def test_bytes_of_ten_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_rows, "FULL", 128)
    random = np.random.default_rng(8)
    terms = Terms()
    rows = AllRows(terms)
    properties = terms.take([NamedNode(f"urn:a{n}") for n in range(10)])
    numbers = terms.take([Literal(100_000 * n) for n in range(1000)])
    low = random.integers(0, 600, (60_000, 10))
    bounds = np.stack([numbers[low], numbers[low + 300]], axis=2).reshape(60_000, 20)
    constants = np.concatenate([np.broadcast_to(properties, (60_000, 10)), bounds], axis=1)
    checks = tuple((1 + n, op, 10 + 2 * n + (op == LE)) for n in range(10) for op in (GE, LE))
    terms.hold(constants)
    rows.add_many(Program(tuple((0, -1, 1 + n) for n in range(10)), checks, 11), constants)
    assert len(rows) == 60_000
    assert rows.tabled >= 60_000 - 128
    assert rows.nbytes < 145 * len(rows)  # of which 10 are room for the first few, 5 a block's tail


def test_a_match_outlives_the_rows() -> None:
    both = Both()
    x, y = ROOT, LEAVES[0]
    pattern = TriplePattern(x, PROPERTIES[0], y)
    filters = [(Comparison(y, Operator.GE, low),) for low in INTEGERS[:4]]
    rows = [both.add(Branch((pattern,), some)) for some in filters]
    publication = [(NODES[0], PROPERTIES[0], INTEGERS[n]) for n in (1, 2)]
    encoded = Encoded(publication, both.terms, both.rows.kinds, compared=both.rows.compare)
    tabled = both.rows.match_tables(encoded)
    expected = {
        row: {(NODES[0], INTEGERS[n]) for n in (1, 2) if n >= low} for low, row in enumerate(rows)
    }
    for row in rows:
        both.remove(row)
    for name in "abc":
        both.add(Branch((TriplePattern(x, NamedNode("urn:" + name), y), pattern), filters[0]))
    for place, row in enumerate(tabled.rows.tolist()):
        found = {tuple(map(encoded.terms.__getitem__, s)) for s in tabled.solutions(place)}
        assert found == expected[row]


def test_without_compiling() -> None:
    if os.environ.get("NUMBA_DISABLE_JIT"):
        pytest.skip("this is the run without compiling")
    name = f"{__file__}::test_what_is_certain_is_true"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
