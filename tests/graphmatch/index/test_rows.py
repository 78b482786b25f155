"""Rows and gates: what is kept, once, found again, and given back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphmatch.index.comparing import Values
from graphmatch.index.encoding import graph_of
from graphmatch.index.gates import LIVE, MADE, find, key_of
from graphmatch.index.joins import HEADER, SLOT
from graphmatch.index.kernels import FILED, GATES, MATCH, Output, Work, match
from graphmatch.index.plans import Places, PlanTable, Program
from graphmatch.index.rows import Rows
from graphmatch.index.terms import Ids

TREE = Program(((0, -1, -1), (0, -1, 1), (1, -1, -1)), (), 2)
NAMED = Program(((-1, -1, -1), (-1, -1, -1), (-1, -1, -1)), (), 0)


def ids(*rows: tuple[int, ...]) -> Ids:
    return np.array(rows, np.int32)


def matched(rows: Rows, triples: Ids, stated: int | None = None) -> tuple[dict[int, int], Output]:
    """How many solutions each row has."""
    room = 4096
    out = Output(np.zeros(room, np.int32), np.zeros(room, np.int32), np.zeros(6, np.int64))
    out.solutions[0] = 1
    work = Work(np.zeros(room, np.int32), np.zeros(room, np.int32))
    numbers = np.zeros((64, 3))
    graph = graph_of(triples, rows.plans.kinds, stated)
    values = Values(numbers, numbers)
    count = match(graph, rows.gates, rows.arena, rows.plans.code, values, work, out)
    found = out.matches[: MATCH * count].reshape(-1, MATCH)
    return {int(row): int(solutions) for row, _, solutions, *_ in found}, out


constants = st.integers(0, 3)
programs = st.sampled_from((TREE, NAMED, Program(((-1, -1, 0), (0, 1, 0), (1, 2, -1)), (), 3)))


@st.composite
def rows_asked(draw: st.DrawFn) -> tuple[Program, tuple[int, ...]]:
    program = draw(programs)
    width = sum(v < 0 for places in program.patterns for v in places)
    return program, tuple(draw(st.lists(constants, min_size=width, max_size=width)))


@settings(deadline=None)
@given(st.lists(rows_asked(), max_size=30), st.lists(st.tuples(*[constants] * 3), unique=True))
def test_repeated_constants_change_nothing(
    asked: list[tuple[Program, tuple[int, ...]]], triples: list[tuple[int, ...]]
) -> None:
    rows = Rows()
    numbers = [int(rows.add_many(program, ids(kept))[0]) for program, kept in asked]
    assert len(rows) == len(set(asked))
    for number, (program, kept) in zip(numbers, asked, strict=True):
        assert tuple(rows.constants(number).tolist()) == kept
        assert rows.program(number) == program
    found, _ = matched(rows, np.array(triples, np.int32).reshape(-1, 3))
    assert found == {
        number: solutions
        for number, (program, kept) in zip(numbers, asked, strict=True)
        if (solutions := solutions_of(program, kept, triples))
    }
    for number in numbers:
        rows.remove(number)
    assert (len(rows), int(rows.gates.state[LIVE])) == (0, 0)


def solutions_of(program: Program, kept: tuple[int, ...], triples: list[tuple[int, ...]]) -> int:
    """How many bindings there are, by trying all values of all variables."""
    rest = iter(kept)
    patterns = [tuple(next(rest) if v < 0 else -1 - v for v in ps) for ps in program.patterns]
    known = set(triples)
    every = np.array(list(np.ndindex(*[4] * program.variables)), int).reshape(
        4**program.variables, program.variables
    )
    return sum(
        all(tuple(n if n >= 0 else int(values[-1 - n]) for n in ps) in known for ps in patterns)
        for values in every
    )


def test_many_at_once_with_other_repetitions_are_those_one_by_one() -> None:
    random = np.random.default_rng(5)
    asked = random.integers(0, 4, (500, 9), dtype=np.int32)
    together, alone = Rows(), Rows()
    first = together.add_many(NAMED, asked)
    second = np.concatenate([alone.add_many(NAMED, row.reshape(1, -1)) for row in asked])
    assert len(together) == len(alone) == len(np.unique(asked, axis=0))
    for numbers, rows in ((first, together), (second, alone)):
        assert np.array_equal([rows.constants(n) for n in numbers.tolist()], asked)
    counts = Counter(first.tolist())
    assert {row for row, uses in counts.items() if uses > 1} == {
        row for row in set(first.tolist()) if not together.remove(row)
    }


def test_a_subject_that_is_there_twice_is_kept_once() -> None:
    rows = Rows()
    number = int(rows.add_many(NAMED, ids((7, 1, 8, 8, 1, 7, 7, 2, 8)))[0])
    begin = number * SLOT + HEADER
    assert rows.arena[begin : begin + 5].tolist() == [7, 1, 8, 1, 2]


def test_rows_of_two_slots_begin_at_a_line() -> None:
    rows = Rows()
    rows.add_many(Program(((0, -1, -1),), (), 1), ids((4, 5)))
    wide = rows.add_many(NAMED, np.arange(90, dtype=np.int32).reshape(10, 9))
    assert rows.arena.ctypes.data % 64 == 0
    assert set((wide % 2).tolist()) == {0}
    assert rows.add_many(Program(((0, -1, -1),), (), 1), ids((4, 6))).tolist() == [1]


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="takes half a minute then")
def test_eight_edges_take_150_bytes() -> None:
    random = np.random.default_rng(2)
    patterns: list[Places] = [(-1, -1, 0), (0, -1, 1), (1, -1, -1), *[(-1, -1, -1)] * 5]
    nodes = random.integers(0, 2000, (60_000, 3), dtype=np.int32)
    labels = random.integers(2000, 2050, (60_000, 8), dtype=np.int32)
    columns = [nodes[:, 0], labels[:, 0], labels[:, 1], labels[:, 2], nodes[:, 1]]
    for n, (s, o) in enumerate(((0, 1), (1, 2), (2, 0), (0, 2), (2, 1)), 3):
        columns += [nodes[:, s], labels[:, n], nodes[:, o]]
    rows = Rows()
    rows.add_many(Program(tuple(patterns), (), 2), np.stack(columns, axis=1))
    assert rows.nbytes < 150 * len(rows)


# -- gates -----------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 40)), max_size=80))
def test_gates_of_any_number_of_rows(steps: list[tuple[bool, int, int]]) -> None:
    program = Program(((0, -1, -1),), (), 1)
    twice = Program(((0, -1, -1), (0, -1, 1), (0, -1, -1)), (), 2)
    rows, kept = Rows(), set[tuple[int, int]]()
    numbers: dict[tuple[int, int], int] = {}
    for come, gate, other in steps:
        if come and (gate, other) not in kept:
            made = rows.add_many(twice, ids((1, gate, 9, 50, 60 + other)))
            numbers[gate, other] = int(made[0])
            kept.add((gate, other))
        elif not come and (gate, other) in kept:
            assert rows.remove(numbers[gate, other])
            kept.remove((gate, other))
    common = [(0, 1, gate) for gate in range(3)]
    rest = [(0, 9, 70), *((0, 50, 60 + other) for other in range(41))]
    found, _ = matched(rows, ids(*common, *rest))
    assert set(found) == {numbers[pair] for pair in kept}
    assert int(rows.gates.kinds.sum()) == int(rows.gates.state[LIVE])
    assert program not in {rows.program(row) for row in found}


def test_one_gate_grows_and_shrinks() -> None:
    program = Program(((0, -1, -1), (0, -1, 1)), (), 2)
    rows = Rows()
    for size in (1, 2, 3, 40, 3, 2, 1):
        numbers = [int(rows.add_many(program, ids((1, 2, n + 5)))[0]) for n in range(size)]
        assert (int(rows.gates.state[LIVE]), int(rows.gates.state[MADE])) == (1, 1)
        found, out = matched(rows, ids((0, 1, 2), *((0, n + 5, 3) for n in range(size))))
        assert sorted(found) == sorted(numbers)
        assert out.counters[FILED] == size
        for number in numbers[::-2] + numbers[-2::-2]:
            rows.remove(number)
        assert len(rows) == 0


ONE, OTHER = 221600, 522400


def test_gates_of_one_hash_are_told_apart() -> None:
    one, other = key_of(ONE, 1, 2), key_of(OTHER, 1, 2)
    assert (one >> 13, one & 15) == (other >> 13, other & 15)
    rows = Rows()
    (row,) = rows.add_many(Program(((-1, -1, -1),), (), 0), ids((ONE, 1, 2))).tolist()
    assert find(rows.gates.cells, rows.gates.records, OTHER, 1, 2) < 0
    found, out = matched(rows, ids((OTHER, 1, 2)))
    assert (found, int(out.counters[GATES])) == ({}, 0)
    (second,) = rows.add_many(Program(((-1, -1, -1),), (), 0), ids((OTHER, 1, 2))).tolist()
    assert matched(rows, ids((OTHER, 1, 2)))[0] == {second: 1}
    assert matched(rows, ids((ONE, 1, 2)))[0] == {row: 1}


def test_a_variable_property_does_not_see_tests() -> None:
    rows = Rows()
    (any_property,) = rows.add_many(Program(((0, 1, -1),), (), 2), ids((5,))).tolist()
    (named,) = rows.add_many(Program(((0, -1, -1),), (), 1), ids((9, 5))).tolist()
    triples = ids((1, 2, 5), (1, 9, 5))
    assert matched(rows, triples, stated=1)[0] == {any_property: 1, named: 1}
    assert matched(rows, triples)[0] == {any_property: 2, named: 1}


def test_no_room_is_said() -> None:
    rows = Rows()
    rows.add_many(Program(((0, -1, 1),), (), 2), ids((1,)))
    triples = np.array([(n, 1, n) for n in range(50)], np.int32)
    graph = graph_of(triples, rows.plans.kinds)
    numbers = np.zeros((64, 3))
    for candidates, matches, solutions in ((2, 99, 999), (999, 2, 999), (999, 99, 60)):
        out = Output(
            np.zeros(matches, np.int32), np.zeros(solutions, np.int32), np.zeros(6, np.int64)
        )
        out.solutions[0] = 1
        work = Work(np.zeros(candidates, np.int32), np.zeros(99, np.int32))
        values = Values(numbers, numbers)
        assert match(graph, rows.gates, rows.arena, rows.plans.code, values, work, out) == -1


def test_a_plan_for_each_layout() -> None:
    table = PlanTable()
    one, other = table.plan(NAMED), table.plan(NAMED, (0, 1, 2, 0, 3, 2, 4, 5, 6))
    assert one != other
    assert table.program(one) is table.program(other) is NAMED
    assert table.layout(one).tolist() == list(range(9))
    assert int(table.code[0]) == 3


def test_without_compiling() -> None:
    if os.environ.get("NUMBA_DISABLE_JIT"):
        pytest.skip("this is the run without compiling")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
