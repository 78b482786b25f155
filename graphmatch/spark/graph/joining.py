"""Stage 2: the joins of a tree of steps, as DataFrames.

A node's table has the columns ``prefix``, ``x0`` … for its variables, and ``news``: whether any of
the joined rows is the graph's, which a solution has to rest on. Tables that are read several times
are kept (`Joined.kept`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from graphmatch.spark.graph.asked import Question
from graphmatch.spark.graph.local import INT, INTS, TEXT, TEXTS, local
from graphmatch.spark.graph.steps import End, Node, Steps
from graphmatch.spark.graph.tables import BindingTables

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

SMALL = 20_000
"""Tables of so many rows are sent to wherever others are joined with them."""
ANSWERS = "subscription string, solution map<string,string>"


@dataclass(frozen=True)
class Joined:
    """The answers, and what is kept while they are made.

    Parameters
    ----------
    answers
        The columns ``subscription`` and ``solution``.
    kept
        Tables of nodes that are read several times.
    """

    answers: DataFrame
    kept: Sequence[DataFrame]


def joined(tables: BindingTables, steps: Steps, questions: Sequence[Question]) -> Joined:
    """Return the answers to questions."""
    spark = tables.rows.sparkSession
    of_node: dict[int, DataFrame] = {}
    kept: list[DataFrame] = []
    values: dict[bool, list[DataFrame]] = {False: [], True: []}
    for node in steps:
        table = _table(spark, tables, node, of_node)
        if node.depth > 1 and node.uses > 1:
            table = table.persist()
            kept.append(table)
        of_node[node.number] = table
        for is_once in sorted({end.is_once for end in node.ends}):
            ends = [end for end in node.ends if end.is_once is is_once]
            found = _ended(table, node.width, ends, resting=bool(tables.known))
            values[is_once].append(found)
    parts = [*values[False]]
    if values[True]:
        parts.append(reduce(DataFrame.unionAll, values[True]).dropDuplicates())
    if not parts:
        return Joined(spark.createDataFrame([], ANSWERS), ())
    return Joined(_answers(reduce(DataFrame.unionAll, parts), questions), kept)


def _table(
    spark: SparkSession, tables: BindingTables, node: Node, of_node: dict[int, DataFrame]
) -> DataFrame:
    """Join the table above with the rows of the atoms that follow on its prefixes."""
    follows = sql.broadcast(
        local(
            spark,
            {"above": INT, "atom": INT, "next": INT},
            (
                [above for above, _ in node.prefixes],
                [atom for _, atom in node.prefixes],
                list(node.prefixes.values()),
            ),
        )
    )
    names = [f"x{n}" for n in node.step]
    rows = tables.rows.select(
        "atom", *(sql.col(f"v{n}").alias(f"r{name}") for n, name in enumerate(names)), "news"
    )
    rows = rows.join(follows, "atom").withColumnRenamed("news", "more")
    if sum(tables.counts[atom] for _, atom in node.prefixes) <= SMALL:
        rows = sql.broadcast(rows)
    if node.above is None:
        columns = [sql.col(f"r{name}").alias(name) for name in names]
        return rows.select(sql.col("next").alias("prefix"), *columns, sql.col("more").alias("news"))
    above = of_node[node.above.number]
    condition = sql.col("prefix") == sql.col("above")
    for variable, name in zip(node.step, names, strict=True):
        if variable < node.known:
            condition &= sql.col(name) == sql.col(f"r{name}")
    new = [name for variable, name in zip(node.step, names, strict=True) if variable >= node.known]
    return above.join(rows, condition).select(
        sql.col("next").alias("prefix"),
        *(f"x{n}" for n in range(node.known)),
        *(sql.col(f"r{name}").alias(name) for name in new),
        (sql.col("news") | sql.col("more")).alias("news"),
    )


def _ended(table: DataFrame, width: int, ends: Sequence[End], *, resting: bool) -> DataFrame:
    """Return the solutions of branches that end at a node, as lists of terms."""
    ending = local(
        table.sparkSession,
        {"prefix": INT, "question": INT, "places": INTS, "visible": INTS},
        (
            [end.prefix for end in ends],
            [end.question for end in ends],
            [end.places for end in ends],
            [end.visible for end in ends],
        ),
    )
    rows = table.join(sql.broadcast(ending), "prefix")
    variables = [sql.col(f"x{n}") for n in range(width)]
    if resting:
        if any(len(end.visible) < width for end in ends):
            key = _picked(variables, "visible")
            same = Window.partitionBy("prefix", "question", key)
            rows = rows.withColumn("news", sql.max("news").over(same))
        rows = rows.where("news")
    return rows.select("question", _picked(variables, "places").alias("terms"))


def _picked(variables: Sequence[Column], places: str) -> Column:
    """Return the terms that stand at some places; null for what has none."""
    if not variables:
        return sql.transform(sql.col(places), lambda _: sql.lit(None).cast("string"))
    values = sql.array(*variables)
    return sql.transform(sql.col(places), lambda n: sql.when(n >= 0, sql.get(values, n)))


def _answers(values: DataFrame, questions: Sequence[Question]) -> DataFrame:
    """Return lists of terms as solutions."""
    named = local(
        values.sparkSession,
        {"question": INT, "subscription": TEXT, "names": TEXTS},
        (
            range(len(questions)),
            [question.id for question in questions],
            [question.names for question in questions],
        ),
    )
    bound = sql.map_from_arrays("names", "terms")
    return values.join(sql.broadcast(named), "question").select(
        "subscription",
        sql.map_filter(bound, lambda _, term: term.isNotNull()).alias("solution"),
    )
