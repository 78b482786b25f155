"""Programs that can be tabled, against what remains of them without their root."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from graphmatch.index.comparing import ASK, EQ, GE
from graphmatch.index.plans import Place, Program
from graphmatch.index.stars import BACKWARD, FORWARD, SELF, WALK, star_of


def some_program(random: Random) -> Program:
    """Some patterns, most of which have a variable in common with those before."""
    places: list[tuple[Place, Place, Place]] = []
    for _ in range(random.randint(1, 6)):
        known = [v for s, _, o in places for v in (s, o) if v >= 0]
        new = max(known, default=-1) + 1
        here = random.choice(known) if known and random.random() < 0.95 else new
        new = max(new, here + 1)
        there = random.choice((-1, -1, new, new, new, random.choice((*known, new))))
        s, o = (here, there) if random.random() < 0.7 else (there, here)
        places.append((s, -1 if random.random() < 0.98 else new, o))
    patterns = tuple(dict.fromkeys(places))
    variables = max(max(three) for three in patterns) + 1
    constants = sum(v < 0 for three in patterns for v in three)
    checks = []
    for variable in range(variables):
        if random.random() < 0.2:
            operator = random.choice((EQ, GE, GE, GE, ASK))
            checks.append((variable, operator, constants + len(checks)))
    return Program(patterns, tuple(checks), variables)


def has_root(program: Program, root: int) -> bool:
    """Whether what is left without a variable are chains, each of which hangs on it once."""
    edges = [(s, o) for s, _, o in program.patterns]
    rest = set(range(program.variables)) - {root}
    checked = {variable for variable, _, _ in program.checks}
    while rest:
        part = {rest.pop()}
        while (
            more := {v for edge in edges if set(edge) & part for v in edge if v >= 0 and v != root}
            - part
        ):
            part |= more
        rest -= part
        own = [edge for edge in edges if set(edge) & part]
        inner = [edge for edge in own if set(edge) <= part]
        if sum(root in edge for edge in own) != 1 or len(inner) != len(part) - 1:
            return False
        for v in part:
            if sum(v in edge for edge in own) > (1 if v in checked else 2):
                return False
    return all(edge != (root, root) for edge in edges)


@given(st.integers(0, 2**32).map(Random))
def test_stars_are_what_chains_hang_on(random: Random) -> None:
    program = some_program(random)
    star = star_of(program)
    plain = all(p < 0 for _, p, _ in program.patterns)
    plain = plain and all(operator != ASK for _, operator, _ in program.checks)
    roots = {v for v in range(program.variables) if plain and has_root(program, v)}
    event(f"{len(program.patterns)} patterns: {star is not None}")
    if star is None:
        assert not roots
        return
    assert star.root in roots
    numbers = iter(range(100))
    written = [tuple(v if v >= 0 else 100 + next(numbers) for v in p) for p in program.patterns]
    walked = []
    for leaf in star.leaves:
        end = leaf.variable if leaf.variable >= 0 else 100 + leaf.constant
        nodes = (star.root, *leaf.between, end)
        for (property_, direction), here, there in zip(leaf.steps, nodes, nodes[1:], strict=False):
            ends = (here, there) if direction == FORWARD else (there, here)
            walked.append((ends[0], 100 + property_, ends[1]))
    assert sorted(walked) == sorted(written)
    for pattern, way in zip(written, star.ways, strict=True):
        here = pattern[0] if way.direction == FORWARD else pattern[2]
        for property_, direction in way.steps:
            (step,) = (p for p in written if p[1] == 100 + property_)
            assert step[0 if direction == FORWARD else 2] == here
            here = step[2 if direction == FORWARD else 0]
        assert here == star.root
    checks = {(leaf.variable, *check) for leaf in star.leaves for check in leaf.checks}
    assert checks == set(program.checks)


@pytest.mark.parametrize(
    ("patterns", "directions"),
    [
        (((0, -1, 1), (1, -1, -1)), [FORWARD, BACKWARD]),
        (((0, -1, 1), (2, -1, 0)), [FORWARD, BACKWARD]),
        (((0, -1, 1), (1, -1, -1), (0, -1, -1)), [WALK, FORWARD]),
        (((0, -1, 1), (0, -1, 2), (1, -1, 2)), None),
        (((0, -1, 1), (0, -1, 2), (0, -1, 3), (1, -1, 4), (1, -1, 5)), None),
        (((0, -1, 1), (2, -1, 3)), None),
        (((0, -1, 0),), None),
    ],
)
def test_forms(patterns: tuple[tuple[int, int, int], ...], directions: list[int] | None) -> None:
    variables = max(map(max, patterns)) + 1
    star = star_of(Program(patterns, (), variables))
    assert (star and sorted(leaf.direction for leaf in star.leaves)) == (
        directions and sorted(directions)
    )


def test_the_root_itself_is_a_leaf_when_it_is_compared() -> None:
    star = star_of(Program(((0, -1, 1), (0, -1, 2)), ((0, EQ, 2),), 3))
    assert star is not None
    assert [leaf.direction for leaf in star.leaves] == [FORWARD, FORWARD, SELF]
