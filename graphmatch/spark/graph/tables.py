"""Binding tables: for each atom the distinct terms that the graph gives its variables.

All tables are one DataFrame, a column saying whose row it is, which is kept while it is joined.

Cost: one pass over the graph in Python, of which rows are left out before whose property nobody
asks for, and one shuffle of what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sql

from graphmatch.spark.graph.batch import PLACES, Batch
from graphmatch.spark.graph.probing import BINDINGS, COLUMNS, FAULTY, UNUSABLE, Probe
from graphmatch.spark.java import SparkError
from semantic.errors import OnProblem, Place, Problem
from semantic.ontology.ontology import Ontology
from semantic.ontology.relevance import Relevance
from semantic.terms import Term, Triple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PLAIN_IRI = r"^<[^\\>]*>$"
_TOLD = 10
"""So many faulty rows are reported one by one."""
Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class BindingTables:
    """The tables of all atoms.

    Parameters
    ----------
    rows
        Columns ``atom``, ``v0`` to ``v2``, and ``news``: whether the graph gives the row, and not
        the ontology alone.
    counts
        How many rows each atom has; those that have none are left out.
    known
        Atoms that the ontology alone meets.
    """

    rows: DataFrame
    counts: Mapping[int, int]
    known: frozenset[int]


def mapped(
    triples: DataFrame,
    probe: Probe,
    run: Callable[[Probe, Batches], Iterator[pa.RecordBatch]],
    schema: str,
) -> DataFrame:
    """Return what a probe makes of a graph's triples; it is sent to each worker once."""
    known = triples.sparkSession.sparkContext.broadcast(probe)

    def work(batches: Batches) -> Iterator[pa.RecordBatch]:
        return run(known.value, batches)

    return triples.select(*PLACES).mapInArrow(work, schema)


def with_properties(
    triples: DataFrame, properties: Iterable[Term], ontology: Ontology
) -> DataFrame:
    """Return the triples that have some properties, under whatever name they have.

    Texts that may be another way of writing such a name are kept, too.
    """
    names = {name for p in properties for name in (p, *ontology.roots.names(p))}
    predicate = sql.col("predicate")
    texts = sorted(map(str, names))
    return triples.where(predicate.isNull() | ~predicate.rlike(_PLAIN_IRI) | predicate.isin(texts))


def known_properties(ontology: Ontology) -> frozenset[Term]:
    """Return the properties that rules of the ontology are about."""
    schema = ontology.schema
    return frozenset((*schema.properties, *schema.domains, *schema.ranges, *schema.inverses))


def _concerned(triples: DataFrame, probe: Probe) -> DataFrame:
    """Leave out the triples whose property nobody asks for, and from which nothing follows."""
    if probe.mentions.anything or probe.stated:
        return triples
    wanted = {atom.key[1] for atom in probe.atoms}
    ontology = probe.ontology
    if probe.entailment:
        rules = Relevance(ontology.schema, probe.mentions)
        wanted.update(p for p in known_properties(ontology) if rules.leads(p))
        wanted.update(ontology.units.declarations.unit_attributes)
    return with_properties(triples, [p for p in wanted if p is not None], ontology)


def binding_tables(
    triples: DataFrame, probe: Probe, background: Iterable[Triple], on_problem: OnProblem
) -> BindingTables:
    """Fill the tables.

    Parameters
    ----------
    background
        What follows from the ontology alone, as far as anybody asks.
    on_problem
        Told of rows that are no triples.

    Raises
    ------
    SparkError
        When the graph states units in triples of their own.
    """
    found = mapped(_concerned(triples, probe), probe, Probe.bindings, BINDINGS)
    columns = ("atom", *COLUMNS)
    batches = list(probe.met(Batch().extended(background)))
    known: frozenset[int] = frozenset()
    if batches:
        of_ontology = pa.Table.from_batches(batches)
        known = frozenset(of_ontology.column("atom").unique().to_numpy().tolist())
        both = found.withColumn("news", sql.lit(True)).unionByName(
            _local(triples.sparkSession, of_ontology).withColumn("news", sql.lit(False))
        )
        rows = both.groupBy(*columns).agg(sql.max("news").alias("news"))
    else:
        rows = found.dropDuplicates().withColumn("news", sql.lit(True))
    rows = rows.persist()
    counted = rows.groupBy("atom").count().collect()
    counts: dict[int, int] = {row["atom"]: row["count"] for row in counted}
    _tell(rows, counts, on_problem)
    return BindingTables(rows, {a: n for a, n in counts.items() if a >= 0}, known)


def _local(spark: SparkSession, table: pa.Table) -> DataFrame:
    return spark.createDataFrame(table)


def _tell(rows: DataFrame, counts: Mapping[int, int], on_problem: OnProblem) -> None:
    if UNUSABLE in counts:
        some = rows.where(sql.col("atom") == UNUSABLE).first()
        rows.unpersist()
        what = f"the graph states {some['v0'] if some else 'a number'} beside its unit"
        remedy = 'Write quantities as literals ("40 GB"^^cdt:ucum), or leave these triples out.'
        raise SparkError(what, "<graph>", remedy)
    if FAULTY in counts:
        where = Place("<graph>")
        remedy = "Write terms as N-Triples has them."
        for row in rows.where(sql.col("atom") == FAULTY).limit(_TOLD).collect():
            on_problem(Problem(row["v0"], where, remedy))
        if (more := counts[FAULTY] - _TOLD) > 0:
            on_problem(Problem(f"{more:,} more faults of this kind", where, remedy))
