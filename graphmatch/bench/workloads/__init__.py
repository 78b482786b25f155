"""The workloads of `graphmatch bench`: seeded subscriptions and events, a module each.

`WORKLOADS` names them; the last three are those of the papers' experiments. A module is imported
when its workload is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name

from graphmatch.bench.workloads.workload import Workload

WORKLOADS: Mapping[str, str] = {
    "graph": "graphmatch.bench.workloads.graph:GraphWorkload",
    "attributes": "graphmatch.bench.workloads.attributes:AttributeWorkload",
    "concepts": "graphmatch.bench.workloads.concepts:ConceptWorkload",
    "keywords": "graphmatch.bench.workloads.keywords:KeywordWorkload",
    "ranges": "graphmatch.bench.paper.workloads.ranges:RangeWorkload",
    "trees": "graphmatch.bench.paper.workloads.trees:TreeWorkload",
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
    >>> workload_class("graph").name
    'graph'
    """
    found: type[Workload] = resolve_name(WORKLOADS[name])
    return found
