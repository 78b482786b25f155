"""Publications from Kafka, each exactly once.

A consumer group shares the partitions of a topic among processes. The offset of each partition is
in the store. It is written in the transaction that adds the records to the log, so a process that
was killed or lost a partition neither repeats nor loses records. Offsets are also committed to
Kafka, where monitoring tools read them. Records without a readable publication are dead letters.

Needs the extras ``broker`` and ``kafka``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from sqlalchemy import insert, select, update

from graphmatch.broker.app.errors import ConflictError, InvalidRequestError
from graphmatch.broker.db.dead_letters import add_dead_letter
from graphmatch.broker.db.tables import kafka_offsets
from graphmatch.broker.models.times import millis
from semantic.errors import InputError, Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from graphmatch.broker.service.broker import Broker
    from semantic.publication import Publication

BATCH_SIZE = 500
"""Maximum number of records that are read at once."""
_WAIT_SECONDS = 0.5
_TASK = "kafka"

log = logging.getLogger("graphmatch.broker")


class _AlreadyReadError(ConflictError):
    """Another process has read these records."""


class KafkaSource:
    """Adds the records of a topic to the log.

    Parameters
    ----------
    broker
        The broker that takes the publications.
    servers
        Comma-separated pairs ``host:port``.
    topic
        The topic, which is read from its beginning if the store has no offset of it.
    group
        The consumer group.
    format
        Media type or extension of records without a header ``content-type``. Without both, the
        content identifies the syntax.
    """

    def __init__(
        self,
        broker: Broker,
        servers: str,
        topic: str,
        group: str = "graphmatch",
        format: str | None = None,
    ) -> None:
        self._broker, self._topic, self._format = broker, topic, format
        self._outage: str | None = None
        self._settings: dict[str, Any] = {
            "error_cb": self._note_outage,
            "bootstrap.servers": servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,  # Partitions of a dead reader move after this time.
        }
        self._stop = asyncio.Event()
        self._consumer: Consumer | None = None

    def stop(self) -> None:
        """End after the current records."""
        self._stop.set()

    async def run(self) -> None:
        """Read until `stop`; after a failure, continue at the offsets in the store."""
        reading = partial(asyncio.to_thread, self._read_batch, asyncio.get_running_loop())
        try:
            await self._broker.supervisor.repeat(_TASK, reading, self._stop)
        finally:
            await asyncio.to_thread(self._close)

    def _close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _note_outage(self, error: KafkaError) -> None:
        """Store the error if no server answers; `Consumer.consume` calls it."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._outage = error.str()

    def _read_batch(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._consumer is None:
            self._consumer = Consumer(self._settings)
            self._consumer.subscribe([self._topic], on_assign=self._assign)
        is_done = False
        try:
            self._outage = None
            messages = self._consumer.consume(BATCH_SIZE, _WAIT_SECONDS)
            if self._outage is not None and not messages:
                raise KafkaException(self._outage)
            by_partition: dict[int, list[Message]] = {}
            for message in messages:
                if (error := message.error()) is not None:
                    log.warning("Kafka: %s", error.str())
                elif (partition := message.partition()) is not None:
                    by_partition.setdefault(partition, []).append(message)
            for partition, records in by_partition.items():
                self._take_in(loop, self._consumer, partition, records)
            is_done = True
        except _AlreadyReadError as error:
            log.info("Kafka: %s", error)
        finally:
            if not is_done:  # The next consumer begins at the offsets in the store.
                self._close()

    def _assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Begin each partition at its offset in the store."""
        rows = self._broker.store.read_now(lambda db: db.execute(select(kafka_offsets)).all())
        known = {(row.topic, row.partition): row.offset for row in rows}
        for place in partitions:
            place.offset = known.get((place.topic, place.partition), OFFSET_BEGINNING)
        consumer.assign(partitions)

    def _take_in(
        self,
        loop: asyncio.AbstractEventLoop,
        consumer: Consumer,
        partition: int,
        records: Sequence[Message],
    ) -> None:
        """Commit the records of a partition together with their offset."""
        publications: list[Publication] = []
        refused: list[tuple[str, Problem]] = []
        for record in records:
            self._read(record, publications, refused)
        first, end = (records[0].offset() or 0), (records[-1].offset() or 0) + 1
        source = f"kafka:{self._topic}"
        here = (kafka_offsets.c.topic == self._topic) & (kafka_offsets.c.partition == partition)
        now = millis(self._broker.clock())

        def also(db: Connection) -> None:
            known = db.scalar(select(kafka_offsets.c.offset).where(here).with_for_update())
            if known is None:
                row = {"topic": self._topic, "partition": partition, "offset": end}
                db.execute(insert(kafka_offsets).values(row))
            elif known > first:
                what = f"records before {known} are in the log already"
                raise _AlreadyReadError(Problem(what, Place(source), "No action is needed."))
            else:
                db.execute(update(kafka_offsets).where(here).values(offset=end))
            for place, problem in refused:
                add_dead_letter(db, _TASK, place, str(problem), now)

        taking = self._broker.publications.take_in(
            publications, source=source, also=also, task=_TASK
        )
        asyncio.run_coroutine_threadsafe(taking, loop).result()
        with suppress(KafkaException):  # Only monitoring tools read these offsets.
            consumer.commit(offsets=[TopicPartition(self._topic, partition, end)])

    def _read(
        self,
        record: Message,
        publications: list[Publication],
        refused: list[tuple[str, Problem]],
    ) -> None:
        """Add the publications of a record, or the problems of a record without any."""
        place = f"urn:kafka:{record.topic()}:{record.partition()}:{record.offset()}"
        data = record.value()
        if not data:
            return  # The record is a tombstone.
        name = (record.key() or b"").decode("utf-8", "replace")
        is_iri = ":" in name and name.isprintable() and " " not in name
        format, id = _content_type(record) or self._format, name if is_iri else place

        def read() -> None:
            try:
                found, problems = self._broker.publications.read(data, format=format, name=id)
            except (InputError, InvalidRequestError) as error:
                found, problems = [], (error.problem,)
            if not found and not problems:
                problems = (Problem("no publication in it", Place(place), "Send RDF."),)
            publications.extend(found)
            refused.extend((place, problem) for problem in problems)

        self._broker.supervisor.try_record(_TASK, place, read)


def _content_type(record: Message) -> str | None:
    headers = record.headers() or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    for name, value in pairs:
        if name.lower() == "content-type" and value:
            return value.decode("latin-1") if isinstance(value, bytes) else value
    return None
