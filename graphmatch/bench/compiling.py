"""How long it takes to compile the loops that large taxonomies need."""

from __future__ import annotations

from time import perf_counter

from graphmatch.bench.process import Row
from graphmatch.bench.taxonomies import generate


def measure() -> Row:
    """Run each loop once on a small taxonomy; seconds, with the import of numba."""
    made = generate(1000, "near")
    started = perf_counter()
    from semantic.ontology.hierarchy import Hierarchy

    hierarchy = Hierarchy(made.size, made.children, made.parents, small=0)
    hierarchy.is_a_many([0], [0])
    hierarchy.ancestors(made.size - 1)
    return {"compiling_s": perf_counter() - started}
