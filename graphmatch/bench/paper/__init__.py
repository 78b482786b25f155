"""The papers' experiments: their figures, measured again with every algorithm that is here.

`EXPERIMENTS` names them all; a module is imported when one of its experiments is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name

from graphmatch.bench.paper.experiment import Experiment

_MODULES: Mapping[str, tuple[str, ...]] = {
    "gtopss": tuple(f"9{letter}" for letter in "abcdefgh"),
    "ctps": ("7a", "7b", "8a", "8b", "8c", "8d"),
    "dexin": (
        "subscriptions",
        "attributes",
        "width",
        "distribution",
        "cardinality",
        "points",
        "matching",
    ),
    "dexin_costs": ("subscribing", "memory", "planner", "methods"),
    "gryphon": ("visits", "options"),
}

EXPERIMENTS: Mapping[str, str] = {
    f"{module.partition('_')[0]}-{part}": f"graphmatch.bench.paper.{module}:EXPERIMENTS"
    for module, parts in _MODULES.items()
    for part in parts
}
"""Name to where the experiments of its paper are, by their names."""


def experiment(name: str) -> Experiment:
    """Return an experiment by its name.

    Raises
    ------
    KeyError
        For a name that is not in `EXPERIMENTS`.

    Examples
    --------
    >>> experiment("gtopss-9b").figure
    'figure 9(b)'
    """
    found: Mapping[str, Experiment] = resolve_name(EXPERIMENTS[name])
    return found[name]
