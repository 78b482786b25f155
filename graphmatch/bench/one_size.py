"""One size of one workload, for a process of its own; see `graphmatch.bench.process`."""

from __future__ import annotations

import json

from graphmatch.bench.process import Row
from graphmatch.bench.runner import measure as measure_engines
from graphmatch.bench.workloads.workload import Size


def measure(asked: str) -> Row:
    """Measure what a JSON object asks for: the arguments of `graphmatch.bench.runner.measure`."""
    given = json.loads(asked)
    size = Size(*given["size"])
    rows = measure_engines(given["workload"], given["engines"], size, given["parameters"])
    return {"rows": rows}
