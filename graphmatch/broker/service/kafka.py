"""Publications from Kafka, each exactly once.

The offset of each partition is in the store. It is written in the transaction that adds the records
to the log, so a process that was killed or lost a partition neither repeats nor loses records.
Offsets are also committed to Kafka, where monitoring tools read them. Records without a readable
publication are dead letters.

Needs the extras ``broker`` and ``kafka``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from sqlalchemy import delete, insert, select

from graphmatch.broker.app.errors import ConflictError
from graphmatch.broker.db.dead_letters import add_dead_letter
from graphmatch.broker.db.tables import kafka_offsets
from graphmatch.broker.models.times import millis
from graphmatch.broker.service.publications import Addition, is_iri
from semantic.errors import Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from graphmatch.broker.service.broker import Broker
    from semantic.publication import Publication

BATCH_SIZE = 500
"""Maximum number of records that are read at once."""
_WAIT_SECONDS = 0.5
_TASK = "kafka"
_Refused: TypeAlias = tuple[str, Problem]
"""The id of a record, and the problem of a part of it."""

log = logging.getLogger("graphmatch.broker")


class KafkaSource:
    """Adds the records of a topic to the log.

    The header ``content-type`` of a record is its media type. Without it, the content identifies
    the syntax. The key of a record is the id of its publication, if it is an IRI.

    Parameters
    ----------
    broker
        The broker that takes the publications.
    servers
        Comma-separated pairs ``host:port``.
    topic
        The topic, which is read from its beginning if the store has no offset of it.
    """

    def __init__(self, broker: Broker, servers: str, topic: str) -> None:
        self._broker, self._servers, self._topic = broker, servers, topic

    async def run(self, stop: asyncio.Event) -> None:
        """Read until `stop` is set; after a failure, continue at the offsets in the store."""
        reading = partial(asyncio.to_thread, self._read, asyncio.get_running_loop(), stop)
        await self._broker.supervisor.repeat(_TASK, reading, stop)

    def _read(self, loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
        consumer = Consumer(
            {
                "error_cb": _raise_outage,
                "bootstrap.servers": self._servers,
                "group.id": "graphmatch",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6000,  # Partitions of a dead reader move after this time.
            }
        )
        try:
            consumer.subscribe([self._topic], on_assign=self._assign)
            while not stop.is_set():
                self._add(loop, consumer, consumer.consume(BATCH_SIZE, _WAIT_SECONDS))
                self._broker.supervisor.succeeded(_TASK)
        finally:
            consumer.close()

    def _assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Begin each partition at its offset in the store."""
        known = self._broker.store.read_now(self._offsets)
        for place in partitions:
            place.offset = known.get(place.partition, OFFSET_BEGINNING)
        consumer.assign(partitions)

    def _offsets(self, db: Connection) -> dict[int, int]:
        mine = select(kafka_offsets).where(kafka_offsets.c.topic == self._topic)
        return {row.partition: row.offset for row in db.execute(mine)}

    def _add(
        self, loop: asyncio.AbstractEventLoop, consumer: Consumer, messages: Sequence[Message]
    ) -> None:
        """Commit records together with the offsets after them."""
        publications: list[Publication] = []
        refused: list[_Refused] = []
        begins: dict[int, int] = {}
        ends: dict[int, int] = {}
        for message in messages:
            if (error := message.error()) is not None:
                log.warning("Kafka: %s", error.str())
                continue
            partition, offset = message.partition() or 0, message.offset() or 0
            begins.setdefault(partition, offset)
            ends[partition] = offset + 1
            record = f"urn:kafka:{self._topic}:{partition}:{offset}"
            reading = partial(self._read_record, message, record, publications, refused)
            self._broker.supervisor.try_record(_TASK, record, reading)
        if not ends:
            return
        now = millis(self._broker.clock())

        def within(db: Connection) -> None:
            for partition, known in self._offsets(db).items():
                if known > begins.get(partition, known):
                    what = f"partition {partition} was read up to {known} by another process"
                    raise ConflictError(Problem(what, Place(source), "No action is needed."))
            mine = kafka_offsets.c.topic == self._topic
            db.execute(delete(kafka_offsets).where(mine, kafka_offsets.c.partition.in_(ends)))
            rows = [
                {"topic": self._topic, "partition": partition, "offset": end}
                for partition, end in ends.items()
            ]
            db.execute(insert(kafka_offsets), rows)
            for record, problem in refused:
                add_dead_letter(db, _TASK, record, str(problem), now)

        source = f"kafka:{self._topic}"
        adding = self._broker.publications.add(Addition(publications, source, within=within))
        asyncio.run_coroutine_threadsafe(adding, loop).result()
        with suppress(KafkaException):  # Only monitoring tools read these offsets.
            consumer.commit(offsets=[TopicPartition(self._topic, *end) for end in ends.items()])

    def _read_record(
        self, message: Message, record: str, found: list[Publication], refused: list[_Refused]
    ) -> None:
        """Add the publications and the problems of a record. A tombstone has none."""
        key, data = (message.key() or b"").decode("utf-8", "replace"), message.value()
        if data:
            format, id = _content_type(message), key if is_iri(key) else record
            several, problems = self._broker.publications.read(data, format=format, name=id)
            found.extend(several)
            refused.extend((record, problem) for problem in problems)


def _content_type(message: Message) -> str | None:
    for name, value in dict(message.headers() or ()).items():
        if name.lower() == "content-type" and value:
            return value.decode("latin-1") if isinstance(value, bytes) else value
    return None


def _raise_outage(error: KafkaError) -> None:
    """Raise an error if no server answers; `Consumer.consume` calls this, and raises it, too."""
    if error.code() == KafkaError._ALL_BROKERS_DOWN:
        raise KafkaException(error)
