"""What a graph itself states as a schema: ``rdfs:subClassOf`` and its kin.

Most graphs state none, which one look at their properties shows. Where there is some, its triples
and those that follow of the kind are gathered until nothing is new; then each of the graph's other
triples can be closed by itself.

Cost: a pass over the graph for each round, where anything is stated; two in most cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pyoxigraph import BlankNode

from graphmatch import _native
from graphmatch.spark.graph.batch import PLACES
from graphmatch.spark.graph.probing import TRIPLES, Probe
from graphmatch.spark.graph.tables import known_properties, mapped, with_properties
from graphmatch.spark.java import SparkError
from semantic.ontology.entailment import SCHEMA
from semantic.ontology.ontology import Ontology
from semantic.terms import Term, Triple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_STATED = 100_000
"""A graph may state so many triples of a schema, with what follows of the kind."""


def with_schema(triples: DataFrame, probe: Probe, most: int = MOST_STATED) -> Probe:
    """Return a probe that knows what the graph states as a schema.

    Raises
    ------
    SparkError
        When that is too much for every worker to know.
    """
    leading = frozenset(_leading(probe.ontology))
    if not with_properties(triples, leading, probe.ontology).limit(1).count():
        return probe
    while True:
        found = mapped(triples, probe, Probe.schema, TRIPLES).distinct().limit(most + 1).collect()
        if not found:
            return probe
        if len(probe.stated) + len(found) > most:
            what = f"the graph states a schema of more than {most:,} triples"
            remedy = "Put them into the ontology, and leave them out of the graph."
            raise SparkError(what, "<graph>", remedy)
        terms = [[_native.term(row[place]) for row in found] for place in PLACES]
        new: Iterator[Triple] = zip(*terms, strict=True)
        probe = replace(probe, stated=(*probe.stated, *new))


def _leading(ontology: Ontology) -> Iterator[Term]:
    """Yield the properties from whose triples some of a schema follow."""
    yield from SCHEMA
    x, y = BlankNode("x"), BlankNode("y")
    for property_ in known_properties(ontology):
        if any(t[1] in SCHEMA for t in ontology.schema.close([(x, property_, y)])):
            yield property_
