"""The same engine on Spark: publications in bulk and in streams.

`session` starts Spark, or takes one that runs; `match_publications` matches a table of
publications, `match_files` whatever files hold, `watch` what arrives. Spark is the extra
``spark``; nothing else imports it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmatch.spark.batch import Matched, match_files, match_publications, match_table
    from graphmatch.spark.engine_files import EngineFiles
    from graphmatch.spark.frames.library import frames_jars
    from graphmatch.spark.frames.motifs import match_motif, motif
    from graphmatch.spark.frames.parts import connected_parts
    from graphmatch.spark.start import session
    from graphmatch.spark.streaming import watch

__all__ = [
    "EngineFiles",
    "Matched",
    "connected_parts",
    "frames_jars",
    "match_files",
    "match_motif",
    "match_publications",
    "match_table",
    "motif",
    "session",
    "watch",
]

_MODULES = {
    "EngineFiles": "engine_files",
    "Matched": "batch",
    "connected_parts": "frames.parts",
    "frames_jars": "frames.library",
    "match_files": "batch",
    "match_motif": "frames.motifs",
    "match_publications": "batch",
    "match_table": "batch",
    "motif": "frames.motifs",
    "session": "start",
    "watch": "streaming",
}


def __getattr__(name: str) -> object:
    """Import a public name from the module that has it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"graphmatch.spark.{_MODULES[name]}"), name)
