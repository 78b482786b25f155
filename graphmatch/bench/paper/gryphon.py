"""The simulations of the Gryphon matching tree.

Aguilera, Strom, Sturman, Astley, Chandra: "Matching events in a content-based subscription system",
PODC 1999, the sections on equality tests, optimizations and performance. The workload is
`graphmatch.bench.paper.workloads.equalities`.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphmatch.bench.paper.claims import Below, Where, beats, proportional, sublinear
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

EFFORTS: Efforts = {"small": Effort(100, 0.8), "paper": Effort(1000, 5.0)}

VISITED = Axis("nodes visited an event", "counters.probes")
BOUND = "bound (theorem)"
TREES = ("gryphon", "gryphon-general")
"""Whose look-ups are nodes."""


def _bound(point: Point) -> float:
    from graphmatch.published.gryphon import expected_bound  # imports what compiles

    return expected_bound(ATTRIBUTES, VALUES, point.subscriptions)


_POINTS: Points = {"small": numbers(SMALL_SIZES), "paper": numbers(SIZES)}
_VISITED, _MICROS = Where("counters.probes"), Where("median_microseconds")

PLAIN, ALL = "none", "all"
_OFF = {"collapse": False, "successors": False}
_POPULAR = {"index": ["urn:a:0", "urn:a:1"]}
"""The attributes that most subscriptions test."""

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
            Line("core"),
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
            proportional("gryphon", Where("bytes")),
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
            Line("gryphon", "factored", {**_OFF, **_POPULAR}),
            Line("gryphon", ALL, _POPULAR),
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
