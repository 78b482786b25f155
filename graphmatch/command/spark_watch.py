"""``graphmatch spark watch``: publications as they arrive, on Spark."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from graphmatch.command.console import plural
from graphmatch.command.options import Knowing
from graphmatch.command.session import REFUSED, Session, load
from graphmatch.command.spark import Running, Stream, settings
from graphmatch.spark.java import SparkError
from graphmatch.spark.start import connector
from graphmatch.spark.start import session as spark_session
from semantic.annotation.annotate import Annotator
from semantic.errors import OnProblem
from semantic.ontology.ontology import Ontology
from semantic.reading import Cut

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from graphmatch.spark.engine_files import EngineFiles
    from graphmatch.spark.sources import Source
    from graphmatch.spark.streaming import Watching


def run(stream: Stream, subscriptions: Sequence[Path], knowing: Knowing, running: Running) -> int:
    """Watch until the end, or until somebody stops it; sum up, and return the exit status."""
    session = Session()
    started = time.perf_counter()
    package = connector()
    source = _source(stream)
    conf = settings(running.conf or ())
    with session.waiting("Starting Spark"):
        packages = () if stream.kafka is None else (package,)
        spark = spark_session(master=running.master, packages=packages, settings=conf)
    try:
        files = _files(subscriptions, knowing)
        watching = _watch(session, spark, source, files, knowing, stream)
        total = _followed(session, watching)
    finally:
        spark.stop()
    seconds = time.perf_counter() - started
    session.err.print(
        f"{plural(total['batches'], 'batch', 'batches')}: {_counts(total)}, {seconds:.2f} s"
    )
    return REFUSED if total["refused"] else session.status


def _watch(
    session: Session,
    spark: SparkSession,
    source: Source,
    files: EngineFiles,
    knowing: Knowing,
    stream: Stream,
) -> Watching:
    from graphmatch.spark.streaming import watch
    from graphmatch.spark.units import How

    with session.waiting("Starting the stream"):
        return watch(
            source,
            stream.output,
            files,
            spark=spark,
            how=How(cut=Cut(stream.cut), format=stream.format, base=stream.base),
            checkpoint=stream.checkpoint,
            watermark=stream.watermark,
            every=stream.every,
            once=stream.once,
            now=knowing.now,
            on_problem=session.report,
        )


def _source(stream: Stream) -> Source:
    """Return what is watched.

    Raises
    ------
    GraphMatchError
        When the command line says nothing that can be.
    """
    from graphmatch.spark.sources import Folder, Kafka
    from graphmatch.spark.streaming import check

    where = "graphmatch spark watch"
    if stream.format != "parquet":
        stream.check()
    if stream.kafka is not None and stream.folder is not None:
        raise SparkError("a folder and --kafka are given together", where, "Leave one of them out.")
    source: Source
    if stream.kafka is not None:
        source = Kafka(stream.kafka, stream.kafka_topic or [])
    elif stream.folder is not None:
        source = Folder(stream.folder)
    else:
        raise SparkError("there is nothing to watch", where, "Name a folder, or --kafka.")
    check(source, stream.watermark, stream.every)
    return replace(source, at_once=stream.at_once or source.at_once)


def _files(subscriptions: Sequence[Path], knowing: Knowing) -> EngineFiles:
    from graphmatch.spark.engine_files import EngineFiles

    def loaded(files: Sequence[Path], on_problem: OnProblem) -> Ontology:
        return load(files, knowing.loading, on_problem)

    imports = knowing.loading.imports
    return EngineFiles(
        subscriptions,
        knowing.files or (),
        loaded,
        () if imports is None else (imports,),
        repr(knowing.loading),
        knowing.entailment,
        None if knowing.annotate else Annotator([]),
    )


def _followed(session: Session, watching: Watching) -> Counter[str]:
    """Say what each batch did; return the sums."""
    total: Counter[str] = Counter()
    with _stopped_by_signals(watching):
        for batch in watching:
            did = asdict(batch)
            number = did.pop("number")
            session.err.print(f"batch {number}: {_counts(did)}")
            total.update({"batches": 1, **did})
    return total


def _counts(did: dict[str, int] | Counter[str]) -> str:
    return (
        f"{plural(did['publications'], 'publication')}, "
        f"{plural(did['duplicates'], 'duplicate')}, {did['late']:,} late, "
        f"{plural(did['matches'], 'match', 'matches')}, {did['refused']:,} refused"
    )


@contextmanager
def _stopped_by_signals(watching: Watching) -> Iterator[None]:
    """Stop after the batch that runs when a signal says so; at once when it says so again."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        (watching.halt if watching.stopping else watching.stop)()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
