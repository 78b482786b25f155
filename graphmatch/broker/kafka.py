"""Publications from Kafka, each once.

A consumer group shares the partitions of a topic among processes. Where each partition is read is
in the store, written in the transaction that takes the records into the log: so a process that is
killed, or that lost a partition to another one meanwhile, adds none twice and leaves none out.
Kafka's own offsets are written too, for those who watch how far the group is; nothing reads them.

Needs ``pip install "graphmatch[broker,kafka]"``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalGenerationError, KafkaError
from sqlalchemy import insert, select, update

from graphmatch.broker.service import ConflictError
from graphmatch.broker.tables import consumed
from semantic.errors import InputError, Place, Problem, Severity

if TYPE_CHECKING:
    from aiokafka import ConsumerRecord
    from sqlalchemy import Connection

    from graphmatch.broker.service import Broker
    from semantic.publication import Publication

RECORDS = 500
"""So many records of a partition are committed together, at most."""
_WAIT_MS = 500
_AGAIN_SECONDS = 5.0

log = logging.getLogger("graphmatch.broker")


class _ReadBeforeError(ConflictError):
    """Another process has read these records."""


class KafkaSource:
    """Reads a topic into the log.

    Parameters
    ----------
    broker
        Takes the publications.
    servers
        ``host:port``, parted by commas.
    topic
        What is read, from its beginning where the store does not know it.
    group
        The consumer group.
    format
        The media type or extension of the records' syntax; a record's header ``content-type`` goes
        before it, and without either the content tells.
    """

    def __init__(
        self,
        broker: Broker,
        servers: str,
        topic: str,
        group: str = "graphmatch",
        format: str | None = None,
    ) -> None:
        self._broker, self._servers, self._topic = broker, servers, topic
        self._group, self._format = group, format
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """End after the records at hand."""
        self._stop.set()

    async def run(self) -> None:
        """Read until `stop`; where Kafka is gone, try again."""
        while not self._stop.is_set():
            consumer = AIOKafkaConsumer(
                bootstrap_servers=self._servers,
                group_id=self._group,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
            )
            consumer.subscribe([self._topic], listener=_Begins(self._broker, consumer))
            try:
                await consumer.start()
                while not self._stop.is_set():
                    found = await consumer.getmany(timeout_ms=_WAIT_MS, max_records=RECORDS)
                    for partition, records in found.items():
                        await self._take_in(consumer, partition, records)
            except KafkaError as error:
                log.warning("Kafka (%s): %s", self._servers, error)
                await self._pause()
            finally:
                await consumer.stop()

    async def _pause(self) -> None:
        try:
            await asyncio.wait_for(self._stop.wait(), _AGAIN_SECONDS)
        except TimeoutError:
            return

    async def _take_in(
        self,
        consumer: AIOKafkaConsumer,
        partition: TopicPartition,
        records: Sequence[ConsumerRecord],
    ) -> None:
        """Commit some records of a partition, and that they were read."""
        read = await asyncio.to_thread(self._read, records)
        publications, problems = read
        first, end = records[0].offset, records[-1].offset + 1

        def also(db: Connection) -> None:
            table = consumed.c
            mine = (table.topic == partition.topic) & (table.partition == partition.partition)
            known = db.scalar(select(table.offset).where(mine).with_for_update())
            if known is not None and known > first:
                what = f"records before {known} were read by another process"
                raise _ReadBeforeError(Problem(what, Place(partition.topic), "Nothing to do."))
            if known is None:
                values = {"topic": partition.topic, "partition": partition.partition}
                db.execute(insert(consumed).values(**values, offset=end))
            else:
                db.execute(update(consumed).where(mine).values(offset=end))

        try:
            source = f"kafka:{partition.topic}"
            await self._broker.take_in(publications, problems, source=source, also=also)
        except _ReadBeforeError:
            await _Begins(self._broker, consumer).seek([partition])
            return
        for problem in problems:
            log.warning("%s", problem)
            await self._broker.note(f"refused: {problem.what}", str(problem.where), source)
        try:
            await consumer.commit({partition: end})
        except (CommitFailedError, IllegalGenerationError):
            log.info("partition %d was given to another process", partition.partition)

    def _read(
        self, records: Iterable[ConsumerRecord]
    ) -> tuple[list[Publication], tuple[Problem, ...]]:
        """Return the publications of records, and what was refused."""
        found: list[Publication] = []
        problems: list[Problem] = []
        for record in records:
            place = f"urn:kafka:{record.topic}:{record.partition}:{record.offset}"
            if not record.value:
                continue  # a tombstone
            given: dict[str, Any] = dict(record.headers)
            kind = given.get("content-type")
            name = record.key.decode("utf-8", "replace") if record.key else ""
            try:
                several, refused = self._broker.read(
                    record.value,
                    format=self._format if kind is None else bytes(kind).decode("latin-1"),
                    name=name if ":" in name and not any(map(str.isspace, name)) else place,
                )
            except InputError as error:
                several, refused = [], (error.problem,)
            found += several
            problems += refused
            if not several and not refused:
                what = "no publication in the record"
                problems.append(Problem(what, Place(place), "Send RDF.", Severity.REFUSED))
        return found, tuple(problems)


class _Begins(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """Has a consumer begin its partitions where the store says."""

    def __init__(self, broker: Broker, consumer: AIOKafkaConsumer) -> None:
        self._broker, self._consumer = broker, consumer

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Nothing is to be done: what was read is committed."""

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Begin where the log ends."""
        await self.seek(assigned)

    async def seek(self, partitions: Iterable[TopicPartition]) -> None:
        """Go on behind the last record that is in the log."""
        rows = await self._broker.store.read(lambda db: db.execute(select(consumed)).all())
        known = {(topic, partition): offset for topic, partition, offset in rows}
        for one in partitions:
            if (offset := known.get((one.topic, one.partition))) is not None:
                self._consumer.seek(one, offset)
