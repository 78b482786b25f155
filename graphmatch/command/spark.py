"""The commands ``graphmatch spark …``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from graphmatch.command.options import (
    Cutting,
    Json,
    Knowing,
    Subscribing,
    Subscriptions,
    Verbosity,
    grouped,
)

app = typer.Typer(
    name="spark",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="The same on Spark: publications in bulk, and as they arrive.",
)

_SPARK = "Spark"

Output = Annotated[Path, typer.Option("--output", help="The folder that results are written to.")]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk(Cutting):
    """What is read in bulk, and where matches are written."""

    publications: Annotated[
        list[str],
        typer.Argument(help="Parquet, RDF files, feeds, or folders of them; names or addresses."),
    ]
    output: Output
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="NAME=COLUMN,…",
            help="What publication, subject, predicate and object are called in Parquet.",
        ),
    ] = None
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what an earlier run wrote there.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream(Cutting):
    """What is watched, how often, and where matches are written."""

    output: Output
    folder: Annotated[str | None, typer.Argument(help="The folder in which files appear.")] = None
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Where it keeps how far it came; in the output by default."
        ),
    ] = None
    once: Annotated[bool, typer.Option("--once", help="Stop when all is done that is there.")] = (
        False
    )
    every: Annotated[str, typer.Option(metavar="DURATION", help="How often there is a batch.")] = (
        "10 seconds"
    )
    watermark: Annotated[
        str, typer.Option(metavar="DURATION", help="How long ids are remembered.")
    ] = "1 day"
    at_once: Annotated[
        int | None, typer.Option(min=1, help="How many files, or records, a batch has at most.")
    ] = None
    kafka: Annotated[
        str | None, typer.Option(metavar="SERVERS", help="Watch topics of Kafka, not a folder.")
    ] = None
    kafka_topic: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC", help="A topic of Kafka; repeatable.")
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


@app.command()
@partial(grouped, without={"saved"})
def filter(
    bulk: Bulk,
    subscribing: Subscribing,
    knowing: Knowing,
    running: Running,
    verbosity: Verbosity,
    json: Json = False,
) -> int:
    """Match publications in bulk, and write the matches as Parquet.

    Example: `graphmatch spark filter data/feeds -o ontologies/news.ttl -s data/subscriptions
    --output matches`
    """
    from graphmatch.command.spark_filter import run

    return run(bulk, subscribing, knowing, running, verbosity, json=json)


@app.command()
@partial(grouped, without={"saved", "stem"})
def watch(
    stream: Stream,
    subscriptions: Subscriptions,
    knowing: Knowing,
    running: Running,
) -> int:
    """Match publications as they arrive in a folder or from Kafka, and write matches to a folder.

    Example: `graphmatch spark watch incoming --output matches -o ontologies/news.ttl
    -s data/subscriptions`
    """
    from graphmatch.command.spark_watch import run

    return run(stream, subscriptions, knowing, running)
