"""The same engine on Spark: publications in bulk and in streams.

`matches` transforms DataFrames: ``df.transform(matches(engine))``. `register` adds the format of
``spark.read.format("rdf")``. `publications` splits documents into publications. `session` starts
Spark if there is no session. Spark is the extra ``spark``; only this package imports it.
"""

from typing import TYPE_CHECKING

from semantic.exports import lazy_exports

if TYPE_CHECKING:
    from graphmatch.spark.documents import publications as publications
    from graphmatch.spark.graphs import (
        connected_parts as connected_parts,
    )
    from graphmatch.spark.graphs import (
        frames_jars as frames_jars,
    )
    from graphmatch.spark.graphs import (
        match_motif as match_motif,
    )
    from graphmatch.spark.graphs import (
        motif as motif,
    )
    from graphmatch.spark.matching import matches as matches
    from graphmatch.spark.source import register as register
    from graphmatch.spark.start import session as session

_EXPORTS = {
    "graphmatch.spark.documents": ["publications"],
    "graphmatch.spark.graphs": ["connected_parts", "frames_jars", "match_motif", "motif"],
    "graphmatch.spark.matching": ["matches"],
    "graphmatch.spark.source": ["register"],
    "graphmatch.spark.start": ["session"],
}

__getattr__, __all__ = lazy_exports(__name__, _EXPORTS)
