"""One size of one workload, for a process of its own; see `graphmatch.bench.process`."""

from __future__ import annotations

import json

from graphmatch.bench.process import Row
from graphmatch.bench.runner import measure as measure_engines
from graphmatch.bench.subscribing import measure as measure_takers
from graphmatch.bench.workloads.workload import Size


def measure(asked: str) -> Row:
    """Measure what a JSON object asks for: the arguments of ``measure`` of a module.

    That is `graphmatch.bench.subscribing`, or for events `graphmatch.bench.runner`.
    """
    given = json.loads(asked)
    size, engines = Size(*given["size"]), given["engines"]
    if given["workload"] == "subscribe":
        return {"rows": measure_takers(engines, size, given["parameters"])}
    return {"rows": measure_engines(given["workload"], engines, size, given["parameters"])}
