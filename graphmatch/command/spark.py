"""The commands ``graphmatch spark …``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from graphmatch.command.options import (
    AnnotateOption,
    BaseOption,
    CutOption,
    Delivering,
    EntailmentOption,
    FormatOption,
    Json,
    Loading,
    NowOption,
    Ontologies,
    Quiet,
    StemOption,
    Subscribing,
    Subscriptions,
    Verbose,
    ended,
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
    typer.Argument(help="Parquet, RDF files, feeds, or folders of them; names or addresses."),
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


def settings(conf: Sequence[str]) -> Mapping[str, str]:
    """Return settings of Spark's.

    Raises
    ------
    InputError
        When one is not a key and a value.
    """
    from semantic.errors import InputError, Place, Problem

    found = {}
    for pair in conf:
        key, equals, value = pair.partition("=")
        if not equals:
            what, remedy = f"{pair!r} is no setting", "Write KEY=VALUE."
            raise InputError(Problem(what, Place("--conf"), remedy))
        found[key] = value
    return found


@spark_app.command()
@grouped
def filter(
    publications: BulkPublications,
    subscribing: Subscribing,
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
    stem: StemOption = True,
    now: NowOption = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Match publications in bulk, and write the matches as Parquet.

    Example: `graphmatch spark filter data/feeds -o ontologies/news.ttl -s data/subscriptions
    --output matches`
    """
    from graphmatch.command.session import Knowing
    from graphmatch.command.spark_filter import Bulk, run

    bulk = Bulk(publications, output, columns, cut, format, base, overwrite=overwrite)
    knowing = Knowing(ontology or [], loading, entailment, annotate=annotate, stem=stem, now=now)
    delivering = Delivering(json=json, quiet=quiet, verbose=verbose)
    ended(lambda: run(bulk, subscribing, knowing, running, delivering))


@spark_app.command()
@grouped
def watch(
    subscriptions: Subscriptions,
    loading: Loading,
    output: Output,
    running: Running,
    folder: Annotated[str | None, typer.Argument(help="The folder in which files appear.")] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Where it keeps how far it came; in the output by default."
        ),
    ] = None,
    ontology: Ontologies = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop when all is done that is there.")
    ] = False,
    every: Annotated[
        str, typer.Option(metavar="DURATION", help="How often there is a batch.")
    ] = "10 seconds",
    watermark: Annotated[
        str, typer.Option(metavar="DURATION", help="How long ids are remembered.")
    ] = "1 day",
    at_once: Annotated[
        int | None, typer.Option(min=1, help="How many files, or records, a batch has at most.")
    ] = None,
    kafka: Annotated[
        str | None, typer.Option(metavar="SERVERS", help="Watch topics of Kafka, not a folder.")
    ] = None,
    kafka_topic: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC", help="A topic of Kafka; repeatable.")
    ] = None,
    cut: CutOption = "auto",
    format: FormatOption = None,
    base: BaseOption = None,
    entailment: EntailmentOption = "rdfs",
    annotate: AnnotateOption = True,
    now: NowOption = None,
) -> None:
    """Match publications as they arrive in a folder or from Kafka, and write matches to a folder.

    Example: `graphmatch spark watch incoming --output matches -o ontologies/news.ttl
    -s data/subscriptions`
    """
    from graphmatch.command.filter import Reading
    from graphmatch.command.session import Knowing
    from graphmatch.command.spark_watch import Stream, run

    reading = Reading([] if folder is None else [folder], cut, format, base)
    knowing = Knowing(ontology or [], loading, entailment, annotate=annotate, now=now)
    stream = Stream(
        output, checkpoint, watermark, every, once, at_once, kafka, kafka_topic or [], running
    )
    ended(lambda: run(reading, subscriptions, knowing, stream))
