"""The same engine on Spark: publications in bulk and in streams.

`matches` transforms DataFrames: ``df.transform(matches(engine))``. `register` adds the format of
``spark.read.format("rdf")``. `publications` splits documents into publications. `session` starts
Spark if there is no session. Spark is the extra ``spark``; only this package imports it.
"""

from semantic.exports import lazy_exports

__getattr__, __all__ = lazy_exports(__name__, __file__)
