"""The same engine on Spark: publications in bulk, in streams, and one graph of any size.

`session` starts Spark, or takes one that runs; `match_publications` matches a table of
publications, `match_files` whatever files hold, `watch` what arrives, and `match_graph` patterns
that span one big graph. Spark is the extra ``spark``; nothing else imports it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmatch.spark.batch import Matched, match_files, match_publications, match_table
    from graphmatch.spark.engine_files import EngineFiles
    from graphmatch.spark.frames.library import frames_jars
    from graphmatch.spark.frames.motifs import match_motif, motif
    from graphmatch.spark.frames.parts import connected_parts
    from graphmatch.spark.graph.plan import GraphPlan, explain_graph, match_graph, plan_graph
    from graphmatch.spark.start import session
    from graphmatch.spark.streaming import watch

__all__ = [
    "EngineFiles",
    "GraphPlan",
    "Matched",
    "connected_parts",
    "explain_graph",
    "frames_jars",
    "match_files",
    "match_graph",
    "match_motif",
    "match_publications",
    "match_table",
    "motif",
    "plan_graph",
    "session",
    "watch",
]

_MODULES = {
    "EngineFiles": "engine_files",
    "GraphPlan": "graph.plan",
    "Matched": "batch",
    "connected_parts": "frames.parts",
    "explain_graph": "graph.plan",
    "frames_jars": "frames.library",
    "match_files": "batch",
    "match_graph": "graph.plan",
    "match_motif": "frames.motifs",
    "match_publications": "batch",
    "match_table": "batch",
    "motif": "frames.motifs",
    "plan_graph": "graph.plan",
    "session": "start",
    "watch": "streaming",
}


def __getattr__(name: str) -> object:
    """Import a public name from the module that has it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"graphmatch.spark.{_MODULES[name]}"), name)
