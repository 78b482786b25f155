"""The matching algorithms of the papers, one per file.

The package `reconstructed` has the algorithms whose own paper was not available. Each names its
sources. `MATCHERS` lists the algorithms. `ORDERS` lists the orders of calling expensive operators
(`sequential`, `suborder`). Modules are imported on first use.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any

from graphmatch.matcher import Matcher
from semantic.errors import unknown_choice
from semantic.ontology.ontology import Ontology

MATCHERS: Mapping[str, str] = {
    "naive": "graphmatch.published.naive:Naive",
    "gtopss": "graphmatch.published.gtopss:GToPSS",
    "ops": "graphmatch.published.reconstructed.ops:Ops",
    "mic": "graphmatch.published.reconstructed.mic:Mic",
    "stopss": "graphmatch.published.reconstructed.stopss:SToPSS",
    "ctps": "graphmatch.published.ctps:Ctps",
    "rein": "graphmatch.published.reconstructed.rein:Rein",
    "tama": "graphmatch.published.reconstructed.tama:Tama",
    "htree": "graphmatch.published.reconstructed.htree:HTree",
    "betree": "graphmatch.published.reconstructed.betree:BETree",
    "opindex": "graphmatch.published.reconstructed.opindex:OpIndex",
    "dexin": "graphmatch.published.dexin:Dexin",
    "dexin-exclusive": "graphmatch.published.dexin:DexinExclusive",
    "dexin-inclusive": "graphmatch.published.dexin:DexinInclusive",
    "dexin-optimal": "graphmatch.published.dexin:DexinOptimal",
    "gryphon": "graphmatch.published.gryphon:Gryphon",
    "gryphon-general": "graphmatch.published.gryphon_general:GryphonGeneral",
}
"""The import path of each matcher's class, by the matcher's name."""

IMPLEMENTED_WITH: Mapping[str, frozenset[str]] = {
    "numba": frozenset({"htree", "betree", "gryphon"}),
    "NumPy": frozenset(
        {"gtopss", "stopss", "rein", "tama", "opindex"}
        | {"dexin", "dexin-exclusive", "dexin-inclusive", "dexin-optimal"}
    ),
    "bitarray": frozenset({"ctps"}),
    "Python": frozenset({"ops", "mic", "gryphon-general"}),
    "pyoxigraph": frozenset({"naive"}),
}
"""The matchers by the implementation of the work that they do for each subscription: loops that
numba compiles, operations on arrays or bit arrays, loops of the interpreter, or evaluation of the
query. The times of matchers of different kinds are not comparable."""

ORDERS: Mapping[str, str] = {
    "sequential": "graphmatch.published.sequential:Sequential",
    "suborder": "graphmatch.published.suborder:SubOrder",
}
"""The import path of each order of evaluating expensive predicates, by name. They are not
matchers: they take a `PredicateConjunction` instead of a `Subscription`."""


def make(name: str, ontology: Ontology, **options: Any) -> Matcher:
    """Create the matcher that `MATCHERS` lists under a name; `options` are arguments of its class.

    Raises
    ------
    InputError
        If the name is unknown.
    """
    if name not in MATCHERS:
        raise unknown_choice("matcher", name, MATCHERS)
    matcher: Matcher = resolve_name(MATCHERS[name])(ontology, **options)
    return matcher
