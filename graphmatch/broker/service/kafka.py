"""Publications from Kafka, each once.

A consumer group shares the partitions of a topic among processes. Where each partition is read is
in the store, written in the transaction that takes the records into the log: so a process that is
killed, or that lost a partition to another one meanwhile, adds none twice and leaves none out.
Kafka's own offsets are written too, for those who watch how far the group is; nothing reads them.

Needs the extras ``broker`` and ``kafka``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
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
from graphmatch.broker.db.tables import audit, kafka_offsets
from graphmatch.broker.models.times import millis
from semantic.errors import InputError, Place, Problem

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from graphmatch.broker.service.broker import Broker
    from semantic.publication import Publication

RECORDS = 500
"""So many records are taken at once, at most."""
_WAIT_SECONDS = 0.5
_TASK = "kafka"

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
        self._broker, self._topic, self._format = broker, topic, format
        self._down: str | None = None
        self._settings: dict[str, Any] = {
            "error_cb": self._failed,
            "bootstrap.servers": servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,  # of partitions whose reader died
        }
        self._stop = asyncio.Event()
        self._consumer: Consumer | None = None

    def stop(self) -> None:
        """End after the records at hand."""
        self._stop.set()

    async def run(self) -> None:
        """Read until `stop`; after a failure, go on behind what the store has."""
        loop = asyncio.get_running_loop()
        try:
            await self._broker.supervisor.repeat(
                _TASK, partial(asyncio.to_thread, self._read_some, loop), self._stop
            )
        finally:
            await asyncio.to_thread(self._leave)

    def _leave(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _failed(self, error: KafkaError) -> None:
        """Note that no server answers; called while records are consumed."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._down = error.str()

    def _messages(self, consumer: Consumer) -> Sequence[Message]:
        self._down = None
        found = consumer.consume(RECORDS, _WAIT_SECONDS)
        if self._down is not None and not found:
            raise KafkaException(self._down)
        return found

    def _read_some(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._consumer is None:
            self._consumer = Consumer(self._settings)
            self._consumer.subscribe([self._topic], on_assign=self._assigned)
        try:
            by_partition: dict[int, list[Message]] = {}
            for message in self._messages(self._consumer):
                if (error := message.error()) is not None:
                    log.warning("Kafka: %s", error.str())
                elif (partition := message.partition()) is not None:
                    by_partition.setdefault(partition, []).append(message)
            for partition, records in by_partition.items():
                self._take_in(loop, self._consumer, partition, records)
        except BaseException:  # The next consumer begins where the store ends.
            self._leave()
            raise

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Begin where the log ends."""
        known = self._broker.store.read_now(
            lambda db: {
                (row.topic, row.partition): row.offset for row in db.execute(select(kafka_offsets))
            }
        )
        for one in partitions:
            one.offset = known.get((one.topic, one.partition), OFFSET_BEGINNING)
        consumer.assign(partitions)

    def _take_in(
        self,
        loop: asyncio.AbstractEventLoop,
        consumer: Consumer,
        partition: int,
        records: Sequence[Message],
    ) -> None:
        """Commit some records of a partition, and that they were read."""
        publications, problems = self._read(records)
        first, end = (records[0].offset() or 0), (records[-1].offset() or 0) + 1
        source = f"kafka:{self._topic}"
        here = (kafka_offsets.c.topic == self._topic) & (kafka_offsets.c.partition == partition)
        now = millis(self._broker.clock())

        def also(db: Connection) -> None:
            known = db.scalar(select(kafka_offsets.c.offset).where(here).with_for_update())
            if known is not None and known > first:
                what = f"records before {known} are in the log already"
                raise _ReadBeforeError(Problem(what, Place(source), "No action is needed."))
            if known is None:
                values = {"topic": self._topic, "partition": partition, "offset": end}
                db.execute(insert(kafka_offsets).values(values))
            else:
                db.execute(update(kafka_offsets).where(here).values(offset=end))
            for one in problems:
                said = {"action": f"refused: {one.what}", "target": str(one.where), "actor": source}
                said = {key: text.replace("\0", "\ufffd") for key, text in said.items()}
                db.execute(insert(audit).values(at=now, **said))

        taking = self._broker.publications.take_in(
            publications, problems, source=source, also=also, task=_TASK
        )
        begin = TopicPartition(self._topic, partition, first)
        try:
            asyncio.run_coroutine_threadsafe(taking, loop).result()
        except _ReadBeforeError:
            self._sought(consumer, begin)
            return
        try:
            consumer.commit(offsets=[TopicPartition(self._topic, partition, end)])
        except KafkaException as error:
            log.info("Kafka: offsets of %s were not noted: %s", self._topic, error)

    def _sought(self, consumer: Consumer, begin: TopicPartition) -> None:
        """Go on behind the last record of a partition that is in the log."""
        here = (kafka_offsets.c.topic == begin.topic) & (
            kafka_offsets.c.partition == begin.partition
        )
        offset = self._broker.store.read_now(
            lambda db: db.scalar(select(kafka_offsets.c.offset).where(here))
        )
        try:
            consumer.seek(TopicPartition(begin.topic, begin.partition, offset or begin.offset))
        except KafkaException as error:  # it is another process's now
            log.info("Kafka: %s", error)

    def _read(self, records: Iterable[Message]) -> tuple[list[Publication], tuple[Problem, ...]]:
        """Return the publications of records, and what was refused."""
        found: list[Publication] = []
        problems: list[Problem] = []
        for record in records:
            place = f"urn:kafka:{record.topic()}:{record.partition()}:{record.offset()}"
            data = record.value()
            if not data:
                continue  # a tombstone
            name = (record.key() or b"").decode("utf-8", "replace")
            is_iri = ":" in name and name.isprintable() and " " not in name
            several: list[Publication] = []
            refused: tuple[Problem, ...] = ()
            with self._broker.supervisor.record(_TASK, place) as attempt:
                try:
                    several, refused = self._broker.publications.read(
                        data,
                        format=_content_type(record) or self._format,
                        name=name if is_iri else place,
                    )
                except (InputError, InvalidRequestError) as error:
                    refused = (error.problem,)
            if attempt.error is not None:
                refused = (Problem(attempt.error, Place(place), "The log says more."),)
            found += several
            problems += refused
            if not several and not refused:
                problems.append(Problem("no publication in it", Place(place), "Send RDF."))
        return found, tuple(problems)


def _content_type(record: Message) -> str | None:
    headers = record.headers() or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    for name, value in pairs:
        if name.lower() == "content-type" and value:
            return value.decode("latin-1") if isinstance(value, bytes) else value
    return None
