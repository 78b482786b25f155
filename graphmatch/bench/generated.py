"""One generated taxonomy, built and asked; see `graphmatch.bench.taxonomies`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode

from graphmatch.bench.process import Row, peak_megabytes
from graphmatch.bench.taxonomies import (
    HEIGHT,
    Generated,
    half_true_pairs,
    is_a,
    random_pairs,
    restore,
)

if TYPE_CHECKING:
    from semantic.ontology.taxonomy import Taxonomy

PAIRS = 1_000_000
CHECKED = 200
SINGLE = 200
REPEATS = 5


def measure(folder: str, flavour: str, source: str) -> Row:
    """Build the taxonomy that is saved in a folder, and ask it.

    `source` is ``arrays`` or ``pairs``.

    ``pairs`` gives the edges as pairs of terms, as an RDF file does. Times are seconds,
    nanoseconds a pair or microseconds a call; what is generated beforehand is not in them.
    """
    made = restore(Path(folder))
    started = perf_counter()
    from semantic.ontology.taxonomy import Taxonomy

    names = (f"http://example.org/class/{number}" for number in range(made.size))
    terms = tuple(map(NamedNode, names))
    named = perf_counter()
    if source == "arrays":
        taxonomy = Taxonomy.from_arrays(terms, made.children, made.parents)
    else:
        links = zip(made.children.data, made.parents.data, strict=True)
        taxonomy = Taxonomy(((terms[child], terms[parent]) for child, parent in links), terms)
    linked = perf_counter()
    taxonomy.hierarchy.prepare()
    built = perf_counter()
    row: Row = {
        "classes": len(taxonomy),
        "edges": taxonomy.edge_count,
        "height": int(taxonomy.hierarchy.depth.max()),
        "flavour": flavour,
        "from": source,
        "terms_s": named - started,
        "links_s": linked - named,
        "index_s": built - linked,
        "built_s": built - started,
        "built_mb": peak_megabytes(),
    }
    if row["height"] != HEIGHT:
        raise ValueError(f"the taxonomy's height is {row['height']}, not {HEIGHT}")
    row |= _bulk(taxonomy, made) | _calls(taxonomy, made)
    return row


def _bulk(taxonomy: Taxonomy, made: Generated) -> Row:
    row: Row = {"pairs": PAIRS, "checked": 2 * CHECKED}
    for name, pairs in (
        ("random", random_pairs(made, PAIRS)),
        ("half_true", half_true_pairs(made, PAIRS)),
    ):
        times = []
        for _ in range(REPEATS):
            started = perf_counter()
            found = taxonomy.is_a_many(*pairs)
            times.append(perf_counter() - started)
        row[f"is_a_{name}_ns"] = median(times) / PAIRS * 1e9
        row[f"is_a_{name}_true"] = float(found.mean())
        _check(found, pairs, made)
    row["peak_mb"] = peak_megabytes()
    return row


def _check(found: NDArray[np.bool_], pairs: NDArray[np.int32], made: Generated) -> None:
    """Compare a part of the answers with a plain search.

    Raises
    ------
    ValueError
        When one is wrong.
    """
    for place in range(CHECKED):
        below, above = pairs[:, place].tolist()
        if found[place] != is_a(made, below, above):
            raise ValueError(f"is_a({below}, {above}) is {not found[place]}, not {found[place]}")


def _calls(taxonomy: Taxonomy, made: Generated) -> Row:
    """Time single calls with terms."""
    pairs = half_true_pairs(made, SINGLE, seed=4)
    terms = [(taxonomy.term(below), taxonomy.term(above)) for below, above in pairs.T.tolist()]
    calls: dict[str, Callable[[int], object]] = {
        "is_a": lambda n: taxonomy.is_a(*terms[n]),
        "ancestors": lambda n: taxonomy.ancestors(terms[n][0]),
        "descendants": lambda n: taxonomy.descendants(terms[n][1]),
        "lowest_common_ancestors": lambda n: taxonomy.lowest_common_ancestors(
            terms[n][0], terms[n - 1][0]
        ),
    }
    row: Row = {}
    for name, call in calls.items():
        times = []
        for number in range(SINGLE):
            started = perf_counter()
            call(number)
            times.append(perf_counter() - started)
        row[f"{name}_us"] = median(times) * 1e6
    return row
