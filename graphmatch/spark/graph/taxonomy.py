"""The taxonomy operators over a big graph: is-a links followed by joins.

``gm:descendantOf`` and its kin follow the links of the ontology and those that the graph states.
The terms for which a test holds are found from its concept: what the ontology has below it (or
above), then what the graph links to these, and so on until nothing is new. Binding tables of atoms
with such tests keep the rows of these terms.

Cost: a join a link in the longest chain that goes through the graph: two where its links are
``rdf:type``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from graphmatch.spark.graph.local import INT, TEXT, local
from graphmatch.spark.graph.probing import COLUMNS, LINKS, Probe
from graphmatch.spark.graph.tables import BindingTables, mapped, with_properties
from semantic.ontology.ontology import Ontology
from semantic.pattern import AnyOf, Filter, TaxonomyOperator, TaxonomyTest
from semantic.terms import Term

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def tests_of(filter_: Filter) -> tuple[TaxonomyTest, ...]:
    """Return the tests of which one has to hold."""
    tests = filter_.tests if isinstance(filter_, AnyOf) else (filter_,)
    return tuple(test for test in tests if isinstance(test, TaxonomyTest))


def is_mixed(filter_: Filter) -> bool:
    """Whether a filter is a taxonomy operator or something else."""
    return isinstance(filter_, AnyOf) and 0 < len(tests_of(filter_)) < len(filter_.tests)


def narrowed(tables: BindingTables, triples: DataFrame, probe: Probe) -> BindingTables:
    """Return binding tables with the rows for which taxonomy operators hold."""
    filters = {n: a.of_graph() for n, a in enumerate(probe.atoms) if n in tables.counts}
    concerned = {number: several for number, several in filters.items() if several}
    if not concerned:
        return tables
    tests = list(
        dict.fromkeys(t for several in concerned.values() for _, f in several for t in tests_of(f))
    )
    stated = with_properties(triples, probe.ontology.linking, probe.ontology)
    links = mapped(stated, probe, Probe.links, LINKS).distinct().persist()
    found = _Found(links, probe.ontology).of(tests).persist()
    rows = tables.rows
    for slot, column in enumerate(COLUMNS):
        rows = _kept(
            rows,
            found,
            column,
            tests,
            {
                (number, n): tests_of(f)
                for number, several in concerned.items()
                for n, (of_slot, f) in enumerate(several)
                if of_slot == slot
            },
        )
    rows = rows.persist()
    counts = {row["atom"]: row["count"] for row in rows.groupBy("atom").count().collect()}
    for table in (tables.rows, links, found):
        table.unpersist()
    return replace(tables, rows=rows, counts={a: n for a, n in counts.items() if a >= 0})


def _kept(
    rows: DataFrame,
    found: DataFrame,
    column: str,
    tests: Sequence[TaxonomyTest],
    wanted: Mapping[tuple[int, int], Sequence[TaxonomyTest]],
) -> DataFrame:
    """Keep rows of atoms whose term in a column passes each of the atom's filters.

    Parameters
    ----------
    wanted
        The tests of each filter, by atom and the filter's number among its own.
    """
    for number in sorted({n for _, n in wanted}):
        asked = [
            (atom, tests.index(test))
            for (atom, n), several in wanted.items()
            if n == number
            for test in several
        ]
        atoms = sorted({atom for atom, _ in asked})
        spark = rows.sparkSession
        passing = (
            sql.broadcast(local(spark, {"atom": INT, "test": INT}, list(zip(*asked, strict=True))))
            .join(found, "test")
            .select("atom", sql.col("term").alias(column))
            .distinct()
        )
        is_asked = sql.col("atom").isin(atoms)
        tested = rows.where(is_asked).join(passing, ["atom", column], "left_semi")
        rows = rows.where(~is_asked).unionByName(tested)
    return rows


@dataclass(frozen=True)
class _Way:
    """A direction along links: the columns of what they go from and to, and the ontology's own."""

    operator: TaxonomyOperator
    start: str
    end: str
    of_ontology: Callable[[Term], Iterable[Term]]


class _Found:
    """Finds the terms for which tests hold.

    Parameters
    ----------
    links
        Columns ``below`` and ``above``: what the graph states.
    ontology
        What is known.
    """

    def __init__(self, links: DataFrame, ontology: Ontology) -> None:
        self._links = links
        self._ontology = ontology
        self._spark: SparkSession = links.sparkSession
        instances = [i for c in ontology.classes for i in ontology.instances(c)]
        trees = (ontology.classes, ontology.properties, ontology.concepts)
        known = (*instances, *(term for tree in trees for term in tree))
        self._known = {str(term): term for term in known}

    def of(self, tests: Sequence[TaxonomyTest]) -> DataFrame:
        """Return rows of a test's number and a term for which it holds, under each of its names."""
        ontology = self._ontology
        ways = (
            _Way(TaxonomyOperator.DESCENDANT, "above", "below", ontology.descendants),
            _Way(TaxonomyOperator.ANCESTOR, "below", "above", ontology.ancestors),
        )
        found = self._children(tests)
        for way in ways:
            starts = {n: t.concept for n, t in enumerate(tests) if t.operator is way.operator}
            if starts:
                found = found.unionAll(self._reached(way, starts))
        return found.unionAll(self._other_names(found)).distinct()

    def _rows(self, rows: Iterable[tuple[int, Term]]) -> DataFrame:
        several = list(rows)
        numbers, terms = [n for n, _ in several], [str(term) for _, term in several]
        return local(self._spark, {"test": INT, "term": TEXT}, (numbers, terms))

    def _children(self, tests: Sequence[TaxonomyTest]) -> DataFrame:
        root = self._ontology.root
        asked = [
            (n, root(t.concept))
            for n, t in enumerate(tests)
            if t.operator is TaxonomyOperator.CHILD
        ]
        own = self._rows((n, c) for n, term in asked for c in self._ontology.children(term))
        concepts = self._rows(asked).withColumnRenamed("term", "above")
        stated = self._links.where("below != above").join(sql.broadcast(concepts), "above")
        return own.unionAll(stated.select("test", sql.col("below").alias("term")))

    def _reached(self, way: _Way, starts: Mapping[int, Term]) -> DataFrame:
        """Follow links from concepts until nothing is new."""
        root = self._ontology.root
        begin = [(n, root(term)) for n, term in starts.items()]
        beyond = [(n, t) for n, term in begin for t in way.of_ontology(term)]
        found = new = self._rows((*begin, *beyond)).distinct().localCheckpoint()
        while True:
            links = self._links.withColumnRenamed(way.start, "term")
            more = (
                links.join(new, "term")
                .select("test", sql.col(way.end).alias("term"))
                .distinct()
                .join(found, ["test", "term"], "left_anti")
                .localCheckpoint()
            )
            if not more.limit(1).count():
                return found
            new = more.unionAll(self._beyond(way, more)).distinct()
            new = new.join(found, ["test", "term"], "left_anti").localCheckpoint()
            found = found.unionAll(new).localCheckpoint()

    def _beyond(self, way: _Way, more: DataFrame) -> DataFrame:
        """Return what the ontology has beyond new terms."""
        terms = local(self._spark, {"term": TEXT}, (list(self._known),))
        rows = more.join(sql.broadcast(terms), "term", "left_semi").collect()
        known = ((row["test"], self._known[row["term"]]) for row in rows)
        return self._rows((test, t) for test, term in known for t in way.of_ontology(term))

    def _other_names(self, found: DataFrame) -> DataFrame:
        """Return the same for other names of terms, which graphs have as they are written."""
        roots = self._ontology.roots
        names = {
            (str(root), str(name)) for root in self._known.values() for name in roots.names(root)
        }
        named = self._spark.createDataFrame(sorted(names), "term string, name string")
        joined = found.join(sql.broadcast(named), "term")
        return joined.select("test", sql.col("name").alias("term"))
