"""The commands ``graphmatch spark …``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import typer

from graphmatch.command.options import (
    Cutting,
    Json,
    Knowing,
    Subscribing,
    Subscriptions,
    Verbosity,
    argument,
    grouped,
    option,
)

app = typer.Typer(
    name="spark",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="The same on Spark: publications in bulk, and as they arrive.",
)

_OUTPUT = "The folder that results are written to."


@dataclass(frozen=True, slots=True)
class Running:
    """Where Spark runs, as the command line says it."""

    panel: ClassVar = "Spark"
    master: str | None = option(
        None, "Where Spark runs; in this process, or where spark-submit says, by default."
    )
    conf: list[str] | None = option(None, "A setting of Spark's; repeatable.", metavar="KEY=VALUE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk(Cutting):
    """What is read in bulk, and where matches are written."""

    publications: list[str] = argument(
        MISSING, "Parquet, RDF files, feeds, or folders of them; names or addresses."
    )
    output: Path = option(MISSING, _OUTPUT)
    columns: str | None = option(
        None,
        "What publication, subject, predicate and object are called in Parquet.",
        metavar="NAME=COLUMN,…",
    )
    overwrite: bool = option(False, "Replace what an earlier run wrote there.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream(Cutting):
    """What is watched, how often, and where matches are written."""

    output: Path = option(MISSING, _OUTPUT)
    folder: str | None = argument(None, "The folder in which files appear.")
    checkpoint: Path | None = option(
        None, "Where it keeps how far it came; in the output by default.", metavar="FOLDER"
    )
    once: bool = option(False, "Stop when all is done that is there.")
    every: str = option("10 seconds", "How often there is a batch.", metavar="DURATION")
    watermark: str = option("1 day", "How long ids are remembered.", metavar="DURATION")
    at_once: int | None = option(None, "How many files, or records, a batch has at most.", min=1)
    kafka: str | None = option(None, "Watch topics of Kafka, not a folder.", metavar="SERVERS")
    kafka_topic: list[str] | None = option(None, "A topic of Kafka; repeatable.", metavar="TOPIC")


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
@partial(grouped, without={"saved", "operators"})
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
@partial(grouped, without={"saved", "stem", "operators"})
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
