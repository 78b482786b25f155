"""The experiments of DEXIN on matching: seven criteria.

Fan, Liu, Tang: "DEXIN: A fast content-based multi-attribute event matching algorithm using dynamic
exclusive and inclusive methods", FGCS 2017, section 4; the workload is
`graphmatch.bench.paper.workloads.ranges`, where the parameters that are not varied are.

The paper has 1,000,000 subscriptions where their number is not varied, and up to 1,750,000 where it
is; 100,000 and 1,000,000 are what a machine with 20 GB builds seven indexes of in a few hours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from graphmatch.bench.paper.claims import Shifts, Where, beats, falling, rising, steady
from graphmatch.bench.paper.experiment import (
    DEVIATION,
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
    sweep,
)

PAPER = "DEXIN (FGCS 2017)"

DEFAULT, SMALL = 100_000, 1000
SIZES, SMALL_SIZES = (250_000, 500_000, 1_000_000), (500, 1000, 2000)

ATTRIBUTES, SMALL_ATTRIBUTES = (2, 6, 10, 14, 18, 22), (2, 6, 10, 22)
WIDTHS, SMALL_WIDTHS = (0.1, 0.3, 0.5, 0.7, 0.9), (0.1, 0.5, 0.9)
CARDINALITIES, SMALL_CARDINALITIES = (1e2, 1e3, 1e4, 1e5, 1e6), (1e2, 1e4, 1e6)
POINTS, SMALL_POINTS = (10, 30, 50, 70, 90), (10, 50, 90)
RATES, SMALL_RATES = (0.1, 0.5, 1, 5, 10, 20), (0.1, 1, 5, 20)
"""Percent (table 1)."""

EFFORTS: Efforts = {"small": Effort(60, 0.5), "paper": Effort(1000, 5.0)}
"""1,000 events (section 4.1)."""

OTHERS = ("tama", "htree", "betree", "opindex", "rein")
SIX = tuple(map(Line, (*OTHERS, "dexin")))
MORE = (Line("gem"), Line("gryphon-general", most=10_000), Line("scan"), Line("core"))
"""Beside the paper's six: what it cites, a scan, and the engine's core."""
MATCHING = (*SIX, *MORE)

_MICROS, _STEADY = Where("median_microseconds"), Where("deviation_microseconds")


def _attributes(x: float) -> Mapping[str, int]:
    return {"attributes": int(x)}


def _width(x: float) -> Mapping[str, float]:
    return {"width": x}


def _cardinality(x: float) -> Mapping[str, int]:
    return {"cardinality": int(x)}


def _points(x: float) -> Mapping[str, float]:
    return {"points": x / 100}


def _matching(x: float) -> Mapping[str, float]:
    return {"matching": x / 100}


NUMBERS: Points = {"small": numbers(SMALL_SIZES), "paper": numbers(SIZES)}

RATED: Points = {
    "small": sweep(SMALL_RATES, SMALL, _matching),
    "paper": sweep(RATES, DEFAULT, _matching),
}


def _spread(of: Callable[[float], Mapping[str, Any]], values: str, x: float) -> Mapping[str, Any]:
    return {**of(x), "values": values}


def _distributions(sizes: tuple[int, ...], count: int) -> tuple[Point, ...]:
    """Return the three criteria, each with both distributions."""
    found: list[Point] = []
    for values in ("uniform", "zipf"):
        found += numbers(sizes, {"values": values}, name="subscriptions", variant=values)
        for name, ends, of in (("attributes", (2, 22), _attributes), ("width", (0.1, 0.9), _width)):
            of_both = partial(_spread, of, values)
            found += sweep(ends, count, of_both, name=name, variant=values)
    return tuple(found)


_ALL = (
    Experiment(
        "dexin-subscriptions",
        PAPER,
        "figures 2 and 3",
        "DEXIN is the fastest of the six at every number of subscriptions, grows least with it, "
        "and its time varies least from event to event.",
        "ranges",
        MATCHING,
        (Panel(SUBSCRIPTIONS, TIME, "figure 2"), Panel(SUBSCRIPTIONS, DEVIATION, "figure 3")),
        NUMBERS,
        EFFORTS,
        (*beats("dexin", OTHERS, _MICROS), *beats("dexin", OTHERS, _STEADY)),
    ),
    Experiment(
        "dexin-attributes",
        PAPER,
        "figures 4 and 5",
        "The time of DEXIN hardly changes with the number of attributes; that of TAMA, BE-Tree, "
        "OpIndex and REIN keeps growing, and that of H-Tree falls and then grows.",
        "ranges",
        MATCHING,
        (
            Panel(Axis("attributes"), TIME, "figure 4"),
            Panel(Axis("attributes"), DEVIATION, "figure 5"),
        ),
        {
            "small": sweep(SMALL_ATTRIBUTES, SMALL, _attributes),
            "paper": sweep(ATTRIBUTES, DEFAULT, _attributes),
        },
        EFFORTS,
        (
            steady("dexin", _MICROS),
            *(rising(name, _MICROS) for name in ("tama", "betree", "opindex", "rein")),
        ),
    ),
    Experiment(
        "dexin-width",
        PAPER,
        "figure 6",
        "The time of DEXIN hardly changes with the width of ranges; that of TAMA and H-Tree grows "
        "quickly, that of BE-Tree and OpIndex slowly, and that of REIN falls.",
        "ranges",
        MATCHING,
        (Panel(Axis("width θ"), TIME),),
        {
            "small": sweep(SMALL_WIDTHS, SMALL, _width),
            "paper": sweep(WIDTHS, DEFAULT, _width),
        },
        EFFORTS,
        (
            steady("dexin", _MICROS),
            falling("rein", _MICROS),
            *(rising(name, _MICROS) for name in ("tama", "htree")),
        ),
    ),
    Experiment(
        "dexin-distribution",
        PAPER,
        "figures 7 to 9",
        "Under Zipf's law all take longer than under the uniform distribution, DEXIN by the least.",
        "ranges",
        MATCHING,
        (
            Panel(SUBSCRIPTIONS, TIME, "figure 7", "subscriptions"),
            Panel(Axis("attributes"), TIME, "figure 8", "attributes"),
            Panel(Axis("width θ"), TIME, "figure 9", "width"),
        ),
        {
            "small": _distributions((1000,), 500),
            "paper": _distributions((100_000, 250_000), DEFAULT),
        },
        {"small": Effort(40, 0.2), "paper": Effort(1000, 5.0)},
        tuple(
            Shifts("dexin", name, Where("median_microseconds", part, "uniform"), "zipf")
            for part in ("subscriptions", "attributes", "width")
            for name in OTHERS
        ),
    ),
    Experiment(
        "dexin-cardinality",
        PAPER,
        "figure 10",
        "The number of different values changes the time of none of the six by much.",
        "ranges",
        MATCHING,
        (Panel(Axis("different values η"), TIME),),
        {
            "small": sweep(SMALL_CARDINALITIES, SMALL, _cardinality),
            "paper": sweep(CARDINALITIES, DEFAULT, _cardinality),
        },
        EFFORTS,
        (*(steady(name, _MICROS) for name in (*OTHERS, "dexin")),),
    ),
    Experiment(
        "dexin-points",
        PAPER,
        "figure 11",
        "More points make TAMA, H-Tree, BE-Tree and OpIndex faster, and leave REIN and DEXIN as "
        "they are; DEXIN is the fastest up to 60 %.",
        "ranges",
        MATCHING,
        (Panel(Axis("points λ, %"), TIME),),
        {
            "small": sweep(SMALL_POINTS, SMALL, _points),
            "paper": sweep(POINTS, DEFAULT, _points),
        },
        EFFORTS,
        (
            *(falling(name, _MICROS) for name in ("tama", "htree", "betree", "opindex")),
            *(steady(name, _MICROS) for name in ("rein", "dexin")),
        ),
    ),
    Experiment(
        "dexin-matching",
        PAPER,
        "figure 12",
        "As more subscriptions match, TAMA, H-Tree, BE-Tree and OpIndex take longer, REIN less "
        "long, and DEXIN, the fastest, as long as before.",
        "ranges",
        MATCHING,
        (Panel(Axis("matching subscriptions ξ, %"), TIME),),
        RATED,
        EFFORTS,
        (
            *(rising(name, _MICROS) for name in ("tama", "htree", "betree", "opindex")),
            falling("rein", _MICROS),
            steady("dexin", _MICROS),
            *beats("dexin", OTHERS, _MICROS),
        ),
    ),
)

EXPERIMENTS: Mapping[str, Experiment] = {of.name: of for of in _ALL}
"""By name."""
