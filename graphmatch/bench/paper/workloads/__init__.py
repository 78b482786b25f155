"""What the papers' experiments are measured on.

`graph` is that of `graphmatch.bench.workloads`; the others are conjunctions on attributes, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name

from graphmatch.bench.workloads.workload import Workload

WORKLOADS: Mapping[str, str] = {
    "graph": "graphmatch.bench.workloads.graph:GraphWorkload",
    "trees": "graphmatch.bench.paper.workloads.trees:TreeWorkload",
    "ranges": "graphmatch.bench.paper.workloads.ranges:RangeWorkload",
    "equalities": "graphmatch.bench.paper.workloads.equalities:EqualityWorkload",
}
"""Name to where the class is."""


def workload_class(name: str) -> type[Workload]:
    """Return a workload's class by its name.

    Raises
    ------
    KeyError
        For a name that is not in `WORKLOADS`.

    Examples
    --------
    >>> workload_class("ranges").name
    'ranges'
    """
    found: type[Workload] = resolve_name(WORKLOADS[name])
    return found
