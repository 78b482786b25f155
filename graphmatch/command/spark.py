"""The commands ``graphmatch spark …``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from graphmatch.command.ending import ended
from graphmatch.command.options import (
    AnnotateOption,
    BaseOption,
    CutOption,
    EntailmentOption,
    FormatOption,
    Json,
    Loading,
    NowOption,
    Ontologies,
    Subscriptions,
    grouped,
)

spark_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="The same on Spark: publications in bulk, and as they arrive.",
)

_SPARK = "Spark"

Output = Annotated[Path, typer.Option("--output", help="The folder that results are written to.")]
BulkPublications = Annotated[
    list[str],
    typer.Option(
        "--publications",
        "-p",
        help="Parquet, RDF files, feeds, or folders of them; names or addresses; repeatable.",
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAME=COLUMN,…",
        help="What publication, subject, predicate and object are called in Parquet.",
    ),
]


@dataclass(frozen=True, slots=True)
class Running:
    """Where Spark runs, as the command line says it."""

    master: Annotated[
        str | None,
        typer.Option(
            help="Where Spark runs; in this process, or where spark-submit says, by default.",
            rich_help_panel=_SPARK,
        ),
    ] = None
    conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="A setting of Spark's; repeatable.", rich_help_panel=_SPARK
        ),
    ] = None


@spark_app.command()
@grouped
def filter(
    publications: BulkPublications,
    subscriptions: Subscriptions,
    output: Output,
    loading: Loading,
    running: Running,
    ontology: Ontologies = None,
    columns: ColumnsOption = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what an earlier run wrote there.")
    ] = False,
    json: Json = False,
    cut: CutOption = "auto",
    format: FormatOption = None,
    base: BaseOption = None,
    entailment: EntailmentOption = "rdfs",
    annotate: AnnotateOption = True,
    now: NowOption = None,
) -> None:
    """Match publications in bulk, and write the matches as Parquet.

    Example: `graphmatch spark filter -p data/feeds -o ontologies/news.ttl -s data/subscriptions
    --output matches`
    """
    from graphmatch.command.session import Knowing
    from graphmatch.command.spark_filter import Bulk, run

    bulk = Bulk(publications, output, columns, cut, format, base, overwrite=overwrite)
    knowing = Knowing(ontology or [], loading, entailment, annotate=annotate, now=now)
    ended(lambda: run(bulk, subscriptions, knowing, running, json=json))
