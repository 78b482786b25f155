"""The same engine on Spark: publications in bulk, in streams, and one graph of any size.

`session` starts Spark, or takes one that runs; `match_publications` matches a table of
publications, `match_files` whatever files hold, `watch` what arrives, and `match_graph` patterns
that span one big graph. Spark is the extra ``spark``; nothing else imports it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmatch.spark.batch import Matched, match_files, match_publications, match_table
    from graphmatch.spark.start import session

__all__ = ["Matched", "match_files", "match_publications", "match_table", "session"]

_MODULES = {
    "Matched": "batch",
    "match_files": "batch",
    "match_publications": "batch",
    "match_table": "batch",
    "session": "start",
}


def __getattr__(name: str) -> object:
    """Import a public name from the module that has it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"graphmatch.spark.{_MODULES[name]}"), name)
