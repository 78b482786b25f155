"""Publications as they arrive: files that appear in a folder, or records of Kafka, to matches.

Each batch goes the same way: what has arrived is read, one row a publication
(`graphmatch.spark.arriving`); those that came before are dropped, by Spark's state
(`graphmatch.spark.sources`); the others are matched by the engine on record for the batch
(`graphmatch.spark.engines`), and written under the batch's number (`graphmatch.spark.output`).

*Exactly once.* Spark runs a batch again when it does not know that it was done, with the same
input, state and number; all that follows depends on these and on the record alone.

Source: Structured Streaming's ``foreachBatch`` and ``dropDuplicatesWithinWatermark``,
https://spark.apache.org/docs/latest/streaming/.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from graphmatch.spark.batches import Batch, Batches, reason, stopped, worded
from graphmatch.spark.engine_files import EngineFiles
from graphmatch.spark.engines import Engines
from graphmatch.spark.java import SparkError
from graphmatch.spark.output import claimed
from graphmatch.spark.sources import Folder, Source, each_once
from graphmatch.spark.start import session
from graphmatch.spark.units import How
from semantic.clock import utc_now
from semantic.errors import GraphMatchError, OnProblem, warn_problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_DURATION = re.compile(r"\d+ (?:second|minute|hour|day|week)s?")
_LOOK_SECONDS = 0.2


class Watching:
    """A stream that runs: an iterator of its batches, as they are done.

    It ends when all is done that was there (``once``), or when somebody stops it.

    Parameters
    ----------
    query
        Spark's own handle.
    """

    def __init__(self, query: StreamingQuery, batches: Batches) -> None:
        self.query = query
        self._batches = batches
        self._halted = Event()

    def __iter__(self) -> Iterator[Batch]:
        """Yield batches; wait for the next one.

        Raises
        ------
        GraphMatchError
            When the stream cannot go on; what was not done is done when it is started again.
        """
        ended = False
        while not ended:
            try:
                ended = self._ended()
            except GraphMatchError:
                self._batches.close()
                raise
            yield from self._done(ended)
        self._batches.close()

    def wait(self) -> list[Batch]:
        """Wait for the stream's end, and return its batches."""
        return list(self)

    @property
    def stopping(self) -> bool:
        """Whether somebody wants it to end."""
        return self._batches.closed.is_set()

    def stop(self) -> None:
        """Have the iterator end when the batch that runs is done, whoever calls this."""
        self._batches.closed.set()

    def halt(self) -> None:
        """Have it end at once: the batch that runs is done when the stream is started again."""
        self._batches.closed.set()
        self._halted.set()

    def _ended(self) -> bool:
        """Wait a moment; return whether the stream has ended."""
        if self.query.isActive:
            closed = self._batches.closed.is_set()
            busy = not self._halted.is_set() and self.query.status["isTriggerActive"]
            if busy or not closed:
                time.sleep(_LOOK_SECONDS)
                return False
            self.query.stop()
        error = self.query.exception()
        if error is None or self._batches.closed.is_set():
            return True
        raise self._batches.error or stopped(reason(error)) from error

    def _done(self, ended: bool) -> Iterator[Batch]:
        """Yield batches whose counts Spark has told; at the end all that are done."""
        while done := self._batches.done:
            progress = self._progress(done[0].number)
            if progress is None and not ended:
                return
            batch = done.popleft()
            late = 0 if progress is None else _late(progress)
            yield replace(batch, duplicates=batch.duplicates - late, late=late)

    def _progress(self, number: int) -> Mapping[str, Any] | None:
        for progress in reversed(self.query.recentProgress):
            if progress["batchId"] == number and "addBatch" in progress["durationMs"]:
                return progress
        return None


def watch(
    source: str | Path | Source,
    output: str | Path,
    files: EngineFiles,
    *,
    spark: SparkSession | None = None,
    how: How | None = None,
    checkpoint: str | Path | None = None,
    watermark: str = "1 day",
    every: str = "10 seconds",
    once: bool = False,
    now: datetime | None = None,
    on_problem: OnProblem = warn_problem,
) -> Watching:
    """Match publications as they arrive, and write matches to a folder, batch by batch.

    Parameters
    ----------
    source
        A folder in which files appear; or `Folder`, or `Kafka`.
    output
        The folder of results: ``matches`` and ``refused``, in Parquet, by batch.
    files
        Subscriptions and ontology; they are read again when they change.
    spark
        A session that runs; one is started by default.
    how
        How files and records are read.
    checkpoint
        The folder that says how far the stream came; by default ``checkpoint`` in the output's.
    watermark
        So long an id is remembered.
    every
        How often there is a batch, if anything has arrived.
    once
        Stop when all is done that is there.
    now
        The time of ``NOW()`` and of mapping functions; each batch's own by default.
    on_problem
        Called with what is refused, and with warnings, from a thread of Spark's.

    Raises
    ------
    GraphMatchError
        When the stream cannot be started.
    """
    source = Folder(str(source)) if isinstance(source, str | Path) else source
    check(source, watermark, every)
    spark, how = session(spark), how or How()
    place = Path(output)
    beside = place / "checkpoint" if checkpoint is None else Path(checkpoint)
    written = claimed(place, beside, _lasting(source, how, watermark))
    clock = utc_now if now is None else lambda: now
    try:
        engines = Engines(beside / "engines", files, on_problem, clock)
        batches = Batches(how, engines, written, on_problem)
        with _settings(spark), worded():
            rows = each_once(source.arriving(spark, how), watermark)
            writer = rows.writeStream.foreachBatch(batches)
            writer = writer.option("checkpointLocation", f"file://{(beside / 'spark').absolute()}")
            often = {"availableNow": True} if once else {"processingTime": every}
            return Watching(writer.trigger(**often).start(), batches)
    except GraphMatchError:
        written.close()
        raise


def check(source: Source, watermark: str, every: str) -> None:
    """Raise `SparkError` for what no stream can be made of; Spark need not run."""
    source.check()
    for name, value in (("watermark", watermark), ("every", every)):
        if not _DURATION.fullmatch(value):
            raise SparkError(f"{value!r} is no duration", f"--{name}", 'Write it as "10 seconds".')


def _lasting(source: Source, how: How, watermark: str) -> dict[str, str]:
    """Return what may not change from one run of a stream to the next."""
    return {
        "source": source.said(),
        "cut": how.cut.value,
        "format": str(how.format),
        "base": str(how.base),
        "columns": ",".join(how.columns),
        "watermark": watermark,
    }


@contextmanager
def _settings(spark: SparkSession) -> Iterator[None]:
    """Set what a query takes over when it starts: as many parts of its state as there are cores."""
    wanted = {
        "spark.sql.shuffle.partitions": str(spark.sparkContext.defaultParallelism),
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    }
    before = {key: spark.conf.get(key) for key in wanted}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, earlier in before.items():
            spark.conf.set(key, str(earlier))


def _late(progress: Mapping[str, Any]) -> int:
    return sum(state["numRowsDroppedByWatermark"] for state in progress["stateOperators"])
