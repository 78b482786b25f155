"""Experiments made so small that a test runs them, in its own process."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import cache

from graphmatch.bench.paper import experiment
from graphmatch.bench.paper.experiment import Effort, Experiment, Point
from graphmatch.bench.paper.measuring import Asked, measure
from graphmatch.bench.paper.results import Results
from graphmatch.bench.paper.running import measured_by
from graphmatch.bench.process import Row

SUBSCRIPTIONS, EVENTS = 40, 4


def here(asked: Asked) -> Row:
    """Measure as a process of its own would."""
    row: Row = json.loads(json.dumps(measure(json.dumps(asdict(asked)))))
    return row


def shrunk(name: str) -> Experiment:
    """Return an experiment with the ends of each curve, few subscriptions, and few attributes."""
    of = experiment(name)
    points: list[Point] = []
    few = {"attributes": 2} if of.workload == "ranges" else {}
    for sweep, variant in dict.fromkeys((p.sweep, p.variant) for p in of.points["small"]):
        curve = [p for p in of.points["small"] if (p.sweep, p.variant) == (sweep, variant)]
        ends = dict.fromkeys([0, len(curve) - 1])
        for place, end in enumerate(ends):
            number = SUBSCRIPTIONS * (place + 1)
            x = number if curve[end].x == curve[end].subscriptions else curve[end].x
            parameters = {**few, **curve[end].parameters}
            points.append(replace(curve[end], x=x, subscriptions=number, parameters=parameters))
    return replace(of, points={"small": points}, efforts={"small": Effort(EVENTS, 0.02)})


@cache
def results(name: str) -> Results:
    """Return a tiny run; tests that look at the same one share it."""
    return measured_by(here, shrunk(name), "small")
