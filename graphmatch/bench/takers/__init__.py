"""Who takes subscriptions in, for ``graphmatch bench subscribe``; `TAKERS` names them all.

A module is imported when its taker is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name

from graphmatch.bench.takers.taker import Taker

TAKERS: Mapping[str, str] = {
    "graphmatch": "graphmatch.bench.takers.graphmatch:GraphMatchTaker",
    "naive": "graphmatch.bench.takers.others:NaiveTaker",
    "clips": "graphmatch.bench.takers.others:ClipsTaker",
    "pyoxigraph": "graphmatch.bench.takers.others:PyoxigraphTaker",
}
"""Name to where the class is."""


def taker_class(name: str) -> type[Taker]:
    """Return a taker's class by its name.

    Raises
    ------
    KeyError
        For a name that is not in `TAKERS`.

    Examples
    --------
    >>> taker_class("graphmatch").ways
    ('one', 'many')
    """
    found: type[Taker] = resolve_name(TAKERS[name])
    return found
