"""The same engine on Spark: publications in bulk and in streams.

`matches` transforms DataFrames: ``df.transform(matches(engine))``. `register` adds the format of
``spark.read.format("rdf")``. `publications` splits documents into publications. `session` starts
Spark if there is no session. Spark is the extra ``spark``; only this package imports it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmatch.spark.documents import publications
    from graphmatch.spark.graphs import connected_parts, frames_jars, match_motif, motif
    from graphmatch.spark.matching import matches
    from graphmatch.spark.source import register
    from graphmatch.spark.start import session

__all__ = [
    "connected_parts",
    "frames_jars",
    "match_motif",
    "matches",
    "motif",
    "publications",
    "register",
    "session",
]

_MODULES = {
    "connected_parts": "graphs",
    "frames_jars": "graphs",
    "match_motif": "graphs",
    "matches": "matching",
    "motif": "graphs",
    "publications": "documents",
    "register": "source",
    "session": "start",
}


def __getattr__(name: str) -> object:
    """Import a public name from its module."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"graphmatch.spark.{_MODULES[name]}"), name)
