"""A big graph cut into publications: its connected parts, found by GraphFrames.

As in `semantic.reading`, two triples belong together when they share a subject or object that is an
IRI or a blank node; the object of ``rdf:type`` is shared vocabulary and connects nothing.

Cost: connected components by rounds of joins, with local checkpoints, so that no folder is needed.
GraphFrames' `randomized_contraction` is not used: it gave wrong answers in a trial.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from graphmatch.spark.frames.library import frame_of
from semantic.vocabulary import TYPE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLACES = ("subject", "predicate", "object")


def connected_parts(triples: DataFrame) -> DataFrame:
    """Return triples with the connected part that each is in, as a column ``publication``.

    Parameters
    ----------
    triples
        Columns ``subject``, ``predicate`` and ``object``: terms as N-Triples writes them.

    Returns
    -------
    publications
        Distinct triples; a part is called by the first of its subjects in the order of texts.

    Raises
    ------
    SparkError
        When GraphFrames is not there.
    """
    distinct = triples.select(*PLACES).distinct()
    connecting = (sql.col("predicate") != str(TYPE)) & ~sql.col("object").startswith('"')
    edges = distinct.where(connecting).select(
        sql.col("subject").alias("src"), sql.col("object").alias("dst")
    )
    ids = distinct.select(sql.col("subject").alias("id"))
    vertices = ids.unionAll(edges.select(sql.col("dst").alias("id"))).distinct()
    found = frame_of(vertices, edges).connectedComponents(
        algorithm="graphframes", use_local_checkpoints=True
    )
    named = distinct.join(found, distinct["subject"] == found["id"])
    first = named.groupBy("component").agg(sql.min("subject").alias("publication"))
    return named.join(first, "component").select("publication", *PLACES)
