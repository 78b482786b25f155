"""The experiments of DEXIN on what it costs: subscribing, memory, its planner, one method alone.

Fan, Liu, Tang (see `graphmatch.bench.paper.dexin`), sections 4.2 to 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphmatch.bench.paper.claims import Where, beats, falling, rising
from graphmatch.bench.paper.dexin import DEFAULT, EFFORTS, NUMBERS, OTHERS, PAPER, RATED, SIX, SMALL
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
    sweep,
)

PLANNED, SMALL_PLANNED = (2, 4, 6, 8, 10, 12, 14), (2, 4, 6, 8)
"""The paper goes to 22 attributes; the optimal plan takes exponentially long."""

KEEPING = (*SIX, Line("gem"), Line("graphmatch"))

_BRIEF: Efforts = {"small": Effort(5, 0.1), "paper": Effort(20, 2.0)}
"""Where matching is not what is measured."""

UNSUBSCRIBING = Axis("µs to unsubscribe one", "unsubscribe_microseconds")

_MICROS = Where("median_microseconds")


def _mixed(x: float) -> Mapping[str, float]:
    return {"attributes": int(x), "mixed": True}


_ALL = (
    Experiment(
        "dexin-subscribing",
        PAPER,
        "figure 13",
        "Subscribing takes DEXIN less time than TAMA, H-Tree, BE-Tree and OpIndex, and slightly "
        "more than REIN; unsubscribing is alike.",
        "ranges",
        KEEPING,
        (
            Panel(SUBSCRIPTIONS, Axis("s to subscribe all", "subscribe_seconds"), "figure 13"),
            Panel(
                SUBSCRIPTIONS, Axis("µs to unsubscribe one", "unsubscribe_microseconds"), "the text"
            ),
        ),
        NUMBERS,
        _BRIEF,
        (
            *beats("dexin", OTHERS[:-1], Where("subscribe_seconds")),
            *beats("rein", ["dexin"], Where("subscribe_seconds")),
        ),
        forgets=True,
    ),
    Experiment(
        "dexin-memory",
        PAPER,
        "figure 14",
        "DEXIN needs little memory, only slightly more than REIN.",
        "ranges",
        KEEPING,
        (Panel(SUBSCRIPTIONS, MEMORY),),
        NUMBERS,
        _BRIEF,
        (
            *beats("dexin", OTHERS[:-1], Where("bytes")),
            *beats("rein", ["dexin"], Where("bytes")),
        ),
    ),
    Experiment(
        "dexin-planner",
        PAPER,
        "figures 15 and 16",
        "From 10 attributes on the plan that is found quickly costs as much as the optimal one, "
        "which takes exponentially long to find.",
        "ranges",
        (Line("dexin"), Line("dexin-optimal")),
        (
            Panel(
                Axis("attributes"),
                Axis("steps a subscription", "steps_per_subscription"),
                "figure 15",
            ),
            Panel(Axis("attributes"), TIME, "figure 16"),
        ),
        {
            "small": sweep(SMALL_PLANNED, SMALL, _mixed),
            "paper": sweep(PLANNED, DEFAULT, _mixed),
        },
        EFFORTS,
        (
            *beats("dexin-optimal", ["dexin"], Where("steps_per_subscription")),
            *beats("dexin", ["dexin-optimal"], _MICROS),
        ),
    ),
    Experiment(
        "dexin-methods",
        PAPER,
        "figure 17",
        "As more subscriptions match, excluding alone takes less time and including alone more; "
        "DEXIN, which chooses, is below both.",
        "ranges",
        (
            Line("dexin"),
            Line("dexin-exclusive"),
            Line("dexin-inclusive"),
            Line("rein"),
            Line("core"),
        ),
        (Panel(Axis("matching subscriptions ξ, %"), TIME),),
        RATED,
        EFFORTS,
        (
            falling("dexin-exclusive", _MICROS),
            rising("dexin-inclusive", _MICROS),
            *beats("dexin", ["dexin-exclusive", "dexin-inclusive"], _MICROS),
        ),
    ),
)

EXPERIMENTS: Mapping[str, Experiment] = {of.name: of for of in _ALL}
"""By name."""
