"""The simulations of the Gryphon matching tree.

Aguilera, Strom, Sturman, Astley, Chandra: "Matching events in a content-based subscription system",
PODC 1999, the sections on equality tests, optimizations and performance. The workload is
`graphmatch.bench.paper.workloads.equalities`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import comb

from graphmatch.bench.paper.claims import Below, Linear, Where, beats, sublinear
from graphmatch.bench.paper.experiment import (
    MEMORY,
    SUBSCRIPTIONS,
    TIME,
    Axis,
    Effort,
    Efforts,
    Experiment,
    Line,
    Panel,
    Point,
    Points,
    numbers,
)
from graphmatch.bench.paper.workloads.equalities import ATTRIBUTES, VALUES

PAPER = "Gryphon (PODC 1999)"

SIZES, SMALL_SIZES = (1000, 3000, 10_000, 25_000, 100_000), (100, 300, 1000, 3000)
"""25,000 are those of the paper's prototype."""

EFFORTS: Efforts = {"small": Effort(100, 0.8), "paper": Effort(1000, 20.0)}

VISITED = Axis("nodes visited an event", "counters.probes")
BOUND = "bound (theorem)"
TREES = ("gryphon", "gryphon-general")
"""Whose look-ups are nodes."""


def bound_of(subscriptions: int, attributes: int, values: int) -> float:
    """Return how many nodes of a tree of equality tests a random event visits at the most.

    The proof's own counts, not its closed form: among the nodes there are at most C(K + 1, j + 1)
    V^j on whose path are j edges that are no ``*``, for K attributes with V values; one of them is
    visited by V^-j of all events; and S subscriptions make at most S K nodes and the root. So the
    sum is largest when the tree has those nodes that are visited most.

    Examples
    --------
    >>> bound_of(1, 3, 2), round(bound_of(1000, 3, 2), 2)
    (4.0, 15.0)
    """
    left, visited = subscriptions * attributes + 1, 0.0
    for j in range(attributes + 1):
        nodes = min(left, comb(attributes + 1, j + 1) * values**j)
        visited += nodes / values**j
        left -= nodes
    return visited


def _bound(point: Point) -> float:
    return bound_of(point.subscriptions, ATTRIBUTES, VALUES)


_POINTS: Points = {"small": numbers(SMALL_SIZES), "paper": numbers(SIZES)}
_VISITED, _MICROS = Where("counters.probes"), Where("median_microseconds")

PLAIN, ALL = "none", "all"
_OFF = {"collapse": False, "successors": False, "factored": 0}
_ON = {"collapse": True, "successors": True, "factored": 2}

_ALL = (
    Experiment(
        "gryphon-visits",
        PAPER,
        "the theorem, and the section on performance",
        "The nodes that a random event visits grow less than linearly with the number of "
        "subscriptions, and stay below the theoretical bound; space grows linearly.",
        "equalities",
        (
            Line("gryphon"),
            Line("gryphon-general"),
            Line("betree"),
            Line("opindex"),
            Line("naive", most=1000),
            Line("index", most=3000),
        ),
        (
            Panel(SUBSCRIPTIONS, VISITED, bounds={BOUND: _bound}, labels=TREES),
            Panel(SUBSCRIPTIONS, TIME),
            Panel(SUBSCRIPTIONS, MEMORY),
        ),
        _POINTS,
        EFFORTS,
        (
            sublinear("gryphon", _VISITED),
            Below("gryphon", BOUND, _VISITED),
            sublinear("gryphon", _MICROS),
            Linear("gryphon", Where("bytes")),
        ),
    ),
    Experiment(
        "gryphon-options",
        PAPER,
        "the sections on optimizations and performance",
        "Collapsing chains of don't-care edges, successor sets that are computed before, and "
        "factoring out the most popular attributes each shorten the search; the last two for "
        "more space.",
        "equalities",
        (
            Line("gryphon", PLAIN, _OFF),
            Line("gryphon", "collapsed", {**_OFF, "collapse": True}),
            Line("gryphon", "successors", {**_OFF, "successors": True}),
            Line("gryphon", "factored", {**_OFF, "factored": 2}),
            Line("gryphon", ALL, _ON),
        ),
        (
            Panel(SUBSCRIPTIONS, VISITED),
            Panel(SUBSCRIPTIONS, TIME),
            Panel(SUBSCRIPTIONS, MEMORY),
        ),
        _POINTS,
        EFFORTS,
        (
            *(
                Below(name, PLAIN, _VISITED)
                for name in ("collapsed", "successors", "factored", ALL)
            ),
            *beats(PLAIN, ["successors", "factored"], Where("bytes")),
        ),
    ),
)

EXPERIMENTS: Mapping[str, Experiment] = {of.name: of for of in _ALL}
"""By name."""
