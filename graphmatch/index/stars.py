"""Programs that can be tabled: stars, whose arms have one step or several.

All predicates of a *star* are constant, and its patterns are arms that have one variable in
common, the *root*, and no other. An arm is a chain of patterns: its end is a constant or a
variable, with or without comparisons; the variables between are in two patterns and are compared
with nothing. So whether a publication meets an arm does not depend on the other arms: it does when
one of the terms at the end of such a walk from the root does.

Cost: some microseconds a program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from graphmatch.index.comparing import ASK
from graphmatch.index.plans import Program

FORWARD, BACKWARD, SELF, WALK = range(4)
"""How a leaf hangs on its root: the root is the subject, or the object; it is the root; or there
are several steps to it."""
MOST_LEAVES = 60

Steps: TypeAlias = tuple[tuple[int, int], ...]
"""Steps of a walk: which of the program's constants the property is, and `FORWARD` or `BACKWARD`.
"""


class Leaf(NamedTuple):
    """The end of an arm, or the root itself with its comparisons.

    Parameters
    ----------
    steps
        The way to it from the root; none if it is the root.
    between
        The variables on the way.
    constant
        Which of the program's constants it is; -1 for none.
    variable
        Its number; -1 for a constant.
    checks
        Operators, and which constants they compare with.
    """

    steps: Steps
    between: tuple[int, ...]
    constant: int
    variable: int
    checks: tuple[tuple[int, int], ...]

    @property
    def direction(self) -> int:
        """How it hangs on the root."""
        if len(self.steps) == 1:
            return self.steps[0][1]
        return WALK if self.steps else SELF


class Way(NamedTuple):
    """How to come from a pattern to the root.

    Parameters
    ----------
    direction
        Whether its subject or its object is nearer to the root.
    steps
        The way from there; none if that is the root.
    """

    direction: int
    steps: Steps


@dataclass(frozen=True, slots=True)
class Star:
    """A program that can be tabled.

    Parameters
    ----------
    root
        The variable that all arms share.
    variables
        How many there are.
    leaves
        In the order of the arms' first patterns; the root, if it has checks, comes last.
    ways
        By pattern.
    """

    root: int
    variables: int
    leaves: tuple[Leaf, ...]
    ways: tuple[Way, ...]


class _Edge(NamedTuple):
    """A pattern: its ends, variables or -1, and which constants these and the property are."""

    ends: tuple[int, int]
    constants: tuple[int, int]
    property: int


def star_of(program: Program) -> Star | None:
    """Return how a program can be tabled, or None.

    Of several variables that may be the root it is one without checks, if there is one, with the
    shortest longest arm.

    Examples
    --------
    >>> from graphmatch.index.comparing import GE
    >>> star = star_of(Program(((0, -1, 1), (0, -1, -1)), ((1, GE, 3),), 2))
    >>> star.root, star.leaves[0].checks, star.leaves[1].constant
    (0, ((4, 3),), 2)
    >>> star = star_of(Program(((0, -1, 1), (1, -1, -1), (0, -1, -1)), (), 2))
    >>> star.root, star.leaves[0].steps, star.ways[1]
    (0, ((0, 0), (1, 0)), Way(direction=0, steps=((0, 1),)))
    >>> star_of(Program(((0, -1, 1), (1, -1, 0)), (), 2))
    """
    if any(p >= 0 for _, p, _ in program.patterns) or not program.patterns:
        return None
    if any(operator == ASK for _, operator, _ in program.checks):
        return None
    edges = _edges(program)
    at: list[list[int]] = [[] for _ in range(program.variables)]
    for n, edge in enumerate(edges):
        for variable in set(edge.ends) - {-1}:
            at[variable].append(n)
    checked = {variable for variable, _, _ in program.checks}
    several = {v for v, own in enumerate(at) if len(own) > 2 or (len(own) == 2 and v in checked)}
    if len(several) > 1:
        return None
    stars = [_star(program, edges, at, root) for root in several or range(program.variables)]
    return min(
        (star for star in stars if star is not None),
        key=lambda star: (
            star.root in checked,
            max(len(leaf.steps) for leaf in star.leaves),
            star.root,
        ),
        default=None,
    )


def _edges(program: Program) -> list[_Edge]:
    edges, used = [], 0
    for s, _, o in program.patterns:
        numbers = []
        for place in (s, -1, o):
            numbers.append(used if place < 0 else -1)
            used += place < 0
        edges.append(_Edge((s, o), (numbers[0], numbers[2]), numbers[1]))
    return edges


def _star(program: Program, edges: list[_Edge], at: list[list[int]], root: int) -> Star | None:
    """Return the star of a root, or None: then its arms meet again, or leave a pattern out."""
    checks: dict[int, list[tuple[int, int]]] = {v: [] for v in range(program.variables)}
    for variable, operator, constant in program.checks:
        checks[variable].append((operator, constant))
    leaves: list[Leaf] = []
    ways: dict[int, Way] = {}
    met = {root}
    for first in at[root]:
        steps: list[tuple[int, int]] = []
        between: list[int] = []
        here, n = root, first
        while True:
            edge = edges[n]
            direction = FORWARD if edge.ends[0] == here else BACKWARD
            back = tuple((p, BACKWARD - d) for p, d in reversed(steps))
            ways[n] = Way(direction, back)
            steps.append((edge.property, direction))
            end, constant = edge.ends[1 - direction], edge.constants[1 - direction]
            if end >= 0:
                if end in met:
                    return None
                met.add(end)
                onward = [other for other in at[end] if other != n]
                if onward:
                    between.append(end)
                    here, n = end, onward[0]
                    continue
            own = tuple(checks[end]) if end >= 0 else ()
            leaves.append(Leaf(tuple(steps), tuple(between), constant, end, own))
            break
    if len(ways) < len(edges) or len(leaves) >= MOST_LEAVES:
        return None
    if checks[root]:
        leaves.append(Leaf((), (), -1, root, tuple(checks[root])))
    own_ways = tuple(ways[n] for n in range(len(edges)))
    return Star(root, program.variables, tuple(leaves), own_ways)
