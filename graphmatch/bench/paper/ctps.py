"""The experiments of CTPS.

Zhang, Wang, Huang, Yung: CTPS, section 6, figures 7 and 8. The workload is
`graphmatch.bench.paper.workloads.trees`; table 1 of the paper is not printed with its values, and
what is known of them stands there.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphmatch.bench.paper.claims import (
    Below,
    Shifts,
    Where,
    beats,
    proportional,
    steady,
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

PAPER = "CTPS"

LOW, HIGH = {"height": 1}, {"height": 5}
"""The trees of figures 7(a), 8(a) and 8(b), and those of 7(b) and 8(c)."""

SIZES, SMALL_SIZES = (500, 1000, 2000, 4000, 7000, 10_000), (500, 1000, 2000)
"""500 to 10,000 (section 6)."""
LARGER = (*SIZES, 30_000, 100_000)
"""Where no algorithm multiplies subscriptions, or looks at each."""

RATES, SMALL_RATES = (0.1, 0.5, 1, 2, 5, 10), (0.1, 1, 10)
"""Percent that match; the paper's own are not in its text."""

EFFORTS: Efforts = {"small": Effort(50, 0.7), "paper": Effort(1000, 5.0)}
"""1,000 events (section 6)."""

CTPS, PRINTED, GTOPSS = Line("ctps"), Line("ctps-printed"), Line("gtopss")
OPS, MIC = Line("ops", most=10_000), Line("mic", most=10_000)
STOPSS, GRAPHMATCH = Line("stopss"), Line("graphmatch")
IBROKER = Line("ibroker", most=10_000)
CORE = Line("core")

_BYTES, _MICROS = Where("bytes"), Where("median_microseconds")


def _matching(percent: float) -> Mapping[str, float]:
    return {"height": 5, "matching": percent / 100}


_LOW: Points = {"small": numbers(SMALL_SIZES, LOW), "paper": numbers(SIZES, LOW)}

_ALL = (
    Experiment(
        "ctps-7a",
        PAPER,
        "figure 7(a)",
        "With trees of height 1 MIC's memory grows sharply, for it multiplies subscriptions by "
        "27; that of CTPS and G-ToPSS grows slowly, and that of OPS does not depend on their "
        "number.",
        "trees",
        (CTPS, GTOPSS, OPS, MIC, STOPSS, GRAPHMATCH),
        (Panel(SUBSCRIPTIONS, MEMORY),),
        _LOW,
        EFFORTS,
        (
            *beats("ctps", ["gtopss", "mic"], _BYTES),
            Below("gtopss", "mic", _BYTES),
            steady("ops", _BYTES),
        ),
    ),
    Experiment(
        "ctps-7b",
        PAPER,
        "figure 7(b)",
        "With trees of height 5 the memory of both grows linearly; that of CTPS is smaller, below "
        "3 MB for 10,000 subscriptions.",
        "trees",
        (CTPS, GTOPSS, GRAPHMATCH),
        (Panel(SUBSCRIPTIONS, MEMORY),),
        {"small": numbers(SMALL_SIZES, HIGH), "paper": numbers(LARGER, HIGH)},
        EFFORTS,
        (
            proportional("ctps", _BYTES),
            proportional("gtopss", _BYTES),
            Below("ctps", "gtopss", _BYTES),
        ),
    ),
    Experiment(
        "ctps-8a",
        PAPER,
        "figure 8(a)",
        "OPS, which matches subscriptions one by one, takes so much longer that it needs a figure "
        "of its own.",
        "trees",
        (CTPS, GTOPSS, OPS, MIC, Line("naive"), GRAPHMATCH, CORE),
        (Panel(SUBSCRIPTIONS, TIME),),
        _LOW,
        {"small": Effort(20, 0.6), "paper": Effort(1000, 5.0)},
        (*(Below(name, "ops", _MICROS) for name in ("ctps", "gtopss", "mic")),),
    ),
    Experiment(
        "ctps-8b",
        PAPER,
        "figure 8(b)",
        "With trees of height 1 the time of MIC rises sharply beyond 7,000 subscriptions and that "
        "of G-ToPSS slowly, while CTPS changes little and is far below both.",
        "trees",
        (CTPS, PRINTED, GTOPSS, MIC, STOPSS, IBROKER, GRAPHMATCH, CORE),
        (Panel(SUBSCRIPTIONS, TIME),),
        _LOW,
        EFFORTS,
        (*beats("ctps", ["gtopss", "mic"], _MICROS), sublinear("ctps", _MICROS)),
    ),
    Experiment(
        "ctps-8c",
        PAPER,
        "figure 8(c)",
        "With trees of height 5 CTPS is about 70 times faster than G-ToPSS, whose time grows with "
        "the height of the trees, while that of CTPS does not.",
        "trees",
        (CTPS, PRINTED, GTOPSS, STOPSS, IBROKER, GRAPHMATCH, CORE),
        (Panel(SUBSCRIPTIONS, TIME),),
        {
            "small": (
                *numbers(SMALL_SIZES[1:], LOW, variant="height 1"),
                *numbers(SMALL_SIZES[1:], HIGH, variant="height 5"),
            ),
            "paper": (
                *numbers(SIZES, LOW, variant="height 1"),
                *numbers(LARGER, HIGH, variant="height 5"),
            ),
        },
        EFFORTS,
        (
            Below("ctps", "gtopss", Where("median_microseconds", variant="height 5"), 50),
            Shifts("ctps", "gtopss", Where("median_microseconds", variant="height 1"), "height 5"),
        ),
    ),
    Experiment(
        "ctps-8d",
        PAPER,
        "figure 8(d)",
        "The time of CTPS grows slowly with the share of subscriptions that match.",
        "trees",
        (CTPS, PRINTED, GRAPHMATCH, CORE),
        (Panel(Axis("matching subscriptions, %"), TIME),),
        {
            "small": sweep(SMALL_RATES, 2000, _matching),
            "paper": sweep(RATES, 10_000, _matching),
        },
        EFFORTS,
        (sublinear("ctps", _MICROS),),
    ),
)

EXPERIMENTS: Mapping[str, Experiment] = {of.name: of for of in _ALL}
"""By name."""
