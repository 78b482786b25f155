"""Walks over a publication's triples: from a term, by properties and directions, to other terms.

What is reached is found level by level. On each level the chain of a term and property is followed
once, however many walks come to it, so a walk takes no more than the publication's triples a step.
All ways to come to a term are found only for those who look at solutions (`walks`).

Cost: a look-up a step and term, and some nanoseconds a triple.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from graphmatch.index.chains import COUNT, TRIPLES, cell_of, nexts_of
from graphmatch.index.gates import ANY, OBJECT, PREDICATE, SUBJECT
from graphmatch.index.paths import Paths
from graphmatch.index.stars import FORWARD
from graphmatch.index.terms import Ids
from semantic.jit import at, kernel, part

LOOKUPS = 1 << (SUBJECT | PREDICATE) | 1 << (PREDICATE | OBJECT)
"""The kinds of look-up that walks need, a bit each."""

_S, _O = 0, 2
"""Places of a triple."""


class Ways(NamedTuple):
    """Paths as arrays (`graphmatch.index.paths`), and what walks write on.

    Parameters
    ----------
    starts, steps
        By path, where its steps begin; property and direction of each.
    levels
        The terms of one level and of the next, shape (2, triples + 1).
    marks
        By triple: the last step on which its chain was followed; after them the number of steps.
    """

    starts: Ids
    steps: Ids
    levels: Ids
    marks: Ids


def ways_of(graph: Ids, paths: Paths) -> Ways:
    """Return paths as walks over a publication use them; each thread has its own."""
    room = int(graph[COUNT]) + 1
    levels, marks = np.empty((2, room), np.int32), np.zeros(room, np.int32)
    return Ways(paths.starts, paths.walked, levels, marks)


@part
def first(graph: Ids, term: int, property_: int, direction: int) -> tuple[int, int]:
    """Return the first triple of a step's chain, or -1, and where the chain goes on."""
    if direction == FORWARD:
        kind = SUBJECT | PREDICATE
        return int(graph[at(cell_of(graph, kind, term, property_, ANY))]), nexts_of(graph, kind)
    kind = PREDICATE | OBJECT
    return int(graph[at(cell_of(graph, kind, ANY, property_, term))]), nexts_of(graph, kind)


@part
def end_of(graph: Ids, t: int, direction: int) -> int:
    """Return the term that a step along a triple leads to."""
    column = _O if direction == FORWARD else _S
    return int(graph[at(TRIPLES + column * graph[COUNT] + t)])


@part
def reached(graph: Ids, term: int, path: int, ways: Ways) -> tuple[int, int]:
    """Write the terms at the end of a path; some may be there twice.

    Returns
    -------
    side, count
        In which of the two levels they are, and how many.
    """
    last = int(graph[COUNT])
    side, count = 0, 1
    ways.levels[0, 0] = term
    for step in range(ways.starts[path], ways.starts[path + 1]):
        property_, direction = ways.steps[step, 0], ways.steps[step, 1]
        ways.marks[last] += 1
        found = 0
        for place in range(count):
            t, nexts = first(graph, ways.levels[side, place], property_, direction)
            if t < 0 or ways.marks[t] == ways.marks[last]:
                continue
            ways.marks[t] = ways.marks[last]
            while t >= 0:
                ways.levels[1 - side, found] = end_of(graph, t, direction)
                found += 1
                t = int(graph[at(nexts + t)])
        side, count = 1 - side, found
    return side, count


@kernel
def _ends(graph: Ids, term: int, property_: int, direction: int, found: Ids) -> int:
    """Write the terms that are one step from another; return how many."""
    t, nexts = first(graph, term, property_, direction)
    count = 0
    while t >= 0:
        found[count] = end_of(graph, t, direction)
        count += 1
        t = int(graph[at(nexts + t)])
    return count


def walks(graph: Ids, term: int, steps: tuple[tuple[int, int], ...]) -> Iterator[tuple[int, ...]]:
    """Yield all walks from a term: the terms that each comes to, without the first."""
    if not steps:
        yield ()
        return
    found = np.empty(int(graph[COUNT]), np.int32)
    for end in found[: _ends(graph, term, *steps[0], found)].tolist():
        for rest in walks(graph, end, steps[1:]):
            yield (end, *rest)
