"""The experiments of G-ToPSS.

Petrovic, Liu, Jacobsen: "G-ToPSS: Fast Filtering of Graph-based Metadata", WWW 2005, section 5 and
figure 9; the workload is `graphmatch.bench.workloads.graph`, where the parameters of table 1 are.
The text says what the figures show, but not the numbers on their axes, except for 4 to 8 edges.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphmatch.bench.paper.claims import (
    Below,
    Linear,
    Where,
    falling,
    proportional,
    rising,
    sublinear,
)
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
    Points,
    numbers,
    sweep,
)

PAPER = "G-ToPSS (WWW 2005)"

DEFAULT, SMALL = 30_000, 2000
"""How many subscriptions there are where that is not varied (table 1), and at a small scale."""

SIZES, SMALL_SIZES = (10_000, 20_000, 30_000, 60_000, 100_000), (1000, 2000, 4000)
FEW, SMALL_FEW = (1000, 3000, 10_000, 30_000), (100, 200, 400)
"""Of OPS and naive, which look at every subscription."""

EDGES, SMALL_EDGES = (4, 5, 6, 8, 10, 12), (4, 6, 8, 12)
OVERLAPS, SMALL_OVERLAPS = (10, 30, 50, 70, 90), (10, 50, 90)
"""Percent."""
RATIOS, SMALL_RATIOS = (0.1, 0.3, 1, 3, 10), (0.1, 1, 10)
"""Percent of the subscriptions that match."""

EFFORTS: Efforts = {"small": Effort(50, 0.8), "paper": Effort(200, 5.0)}

GTOPSS = Line("gtopss")
OPS, NAIVE = Line("ops"), Line("naive")
GRAPHMATCH, CORE = Line("graphmatch"), Line("core")
KEEPING = (GTOPSS, GRAPHMATCH)
MATCHING = (GTOPSS, Line("ibroker", most=10_000), GRAPHMATCH, CORE)

_BYTES, _MICROS = Where("bytes"), Where("median_microseconds")


def _overlapping(percent: float) -> Mapping[str, float]:
    return {"overlap": percent / 100}


def _sized(edges: float) -> Mapping[str, int]:
    return {"edges": int(edges)}


def _matching(percent: float) -> Mapping[str, float]:
    return {"matching": percent / 100}


_EDGES: Points = {
    "small": sweep(SMALL_EDGES, SMALL, _sized),
    "paper": sweep(EDGES, DEFAULT, _sized),
}
_NUMBERS: Points = {"small": numbers(SMALL_SIZES), "paper": numbers(SIZES)}
_FEW: Points = {"small": numbers(SMALL_FEW), "paper": numbers(FEW)}

_ALL = (
    Experiment(
        "gtopss-9a",
        PAPER,
        "figure 9(a)",
        "Memory grows linearly with the number of subscriptions.",
        "graph",
        KEEPING,
        (Panel(SUBSCRIPTIONS, MEMORY),),
        _NUMBERS,
        EFFORTS,
        (proportional("gtopss", _BYTES),),
    ),
    Experiment(
        "gtopss-9b",
        PAPER,
        "figure 9(b)",
        "Matching time grows by a constant amount with each subscription more, since a constant "
        "share of them matches.",
        "graph",
        MATCHING,
        (Panel(SUBSCRIPTIONS, TIME),),
        _NUMBERS,
        EFFORTS,
        (Linear("gtopss", _MICROS),),
    ),
    Experiment(
        "gtopss-9c",
        PAPER,
        "figure 9(c)",
        "The merged graph, and with it the whole memory, gets smaller as subscriptions overlap "
        "more.",
        "graph",
        KEEPING,
        (
            Panel(Axis("overlap, %"), Axis("bytes of the index", "index_bytes"), "merged graph"),
            Panel(Axis("overlap, %"), Axis("bytes of the process", "resident_bytes"), "whole"),
        ),
        {
            "small": sweep(SMALL_OVERLAPS, SMALL, _overlapping),
            "paper": sweep(OVERLAPS, DEFAULT, _overlapping),
        },
        {"small": Effort(20, 0.5), "paper": Effort(50, 10.0)},
        (falling("gtopss", Where("resident_bytes")),),
    ),
    Experiment(
        "gtopss-9d",
        PAPER,
        "figure 9(d)",
        "Memory grows with the size of subscriptions (the figure alone; the text says nothing of "
        "it).",
        "graph",
        KEEPING,
        (Panel(Axis("edges of a subscription"), MEMORY),),
        _EDGES,
        EFFORTS,
        (rising("gtopss", _BYTES),),
    ),
    Experiment(
        "gtopss-9e",
        PAPER,
        "figure 9(e)",
        "Matching time grows with the edges of a subscription: it nearly doubles from 4 to 8, and "
        "grows less where they are added more slowly.",
        "graph",
        MATCHING,
        (Panel(Axis("edges of a subscription"), TIME),),
        _EDGES,
        EFFORTS,
        (rising("gtopss", _MICROS),),
    ),
    Experiment(
        "gtopss-9f",
        PAPER,
        "figure 9(f)",
        "Matching time grows very quickly with the share of subscriptions that match, by the time "
        "of computing their bindings.",
        "graph",
        MATCHING,
        (Panel(Axis("matching subscriptions, %"), TIME),),
        {
            "small": sweep(SMALL_RATIOS, SMALL, _matching),
            "paper": sweep(RATIOS, DEFAULT, _matching),
        },
        EFFORTS,
        (rising("gtopss", _MICROS),),
    ),
    Experiment(
        "gtopss-9g",
        PAPER,
        "figure 9(g)",
        "The time of OPS, to which every node is a variable, grows very quickly with the number "
        "of subscriptions; G-ToPSS stays far below it.",
        "graph",
        (GTOPSS, OPS, Line("mic"), GRAPHMATCH),
        (Panel(SUBSCRIPTIONS, TIME),),
        _FEW,
        EFFORTS,
        (rising("ops", _MICROS), Below("gtopss", "ops", _MICROS)),
    ),
    Experiment(
        "gtopss-9h",
        PAPER,
        "figure 9(h)",
        "OPS is far better than checking all subscriptions one after the other.",
        "graph",
        (OPS, NAIVE, GTOPSS, GRAPHMATCH),
        (Panel(SUBSCRIPTIONS, TIME),),
        _FEW,
        EFFORTS,
        (
            Below("ops", "naive", _MICROS),
            Below("gtopss", "naive", _MICROS),
            Linear("naive", _MICROS),
            sublinear("graphmatch", _MICROS),
        ),
    ),
)

EXPERIMENTS: Mapping[str, Experiment] = {of.name: of for of in _ALL}
"""By name."""
