"""Records of a fake Kafka enter the log once, each partition from where the store ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaException, TopicPartition
from sqlalchemy import insert, select

from graphmatch import Engine
from graphmatch.broker.app import supervisor
from graphmatch.broker.db.dead_letters import newest_dead_letters
from graphmatch.broker.db.store import Store
from graphmatch.broker.db.tables import kafka_offsets, publications
from graphmatch.broker.service import kafka
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.kafka import KafkaSource
from tests.waiting import until

TOPIC = "t"
RDF = "<urn:a> a <urn:C> ."
LINES = "".join(f'{{"id": "urn:line:{n}", "data": "<urn:a> a <urn:C> ."}}\n' for n in (1, 2))


def record(
    partition: int,
    offset: int,
    key: str = "",
    text: str | None = RDF,
    headers: Sequence[tuple[str, bytes]] = (("Content-Type", b"text/turtle"),),
) -> Mock:
    """Return a Kafka record; a text of ``None`` is a tombstone."""
    answers = {"error": None, "topic": TOPIC, "partition": partition, "offset": offset}
    answers |= {"key": key.encode(), "value": text and text.encode(), "headers": list(headers)}
    return Mock(**{f"{name}.return_value": value for name, value in answers.items()})


def failure(text: str) -> Mock:
    """Return a message that says that something failed."""
    return Mock(**{"error.return_value": Mock(**{"str.return_value": text})})


@dataclass
class FakeConsumer:
    """A consumer of all partitions, which gives two records at a time."""

    records: list[Mock]
    at: dict[int, int] = field(default_factory=dict)
    committed: list[tuple[int, int]] = field(default_factory=list)
    problems: list[Mock] = field(default_factory=list)
    commits_fail: bool = False
    assigned: Any = None

    def __call__(self, _: object) -> FakeConsumer:
        return self

    def subscribe(self, _: object, on_assign: Any) -> None:
        self.assigned = on_assign

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        self.at = {one.partition: max(0, one.offset) for one in partitions}

    def left(self) -> list[Mock]:
        return [one for one in self.records if one.offset() >= self.at.get(one.partition(), 0)]

    def consume(self, *_: object) -> list[Mock]:
        if self.assigned is not None:
            assigned, self.assigned = self.assigned, None
            numbers = {one.partition() for one in self.records}
            assigned(self, [TopicPartition(TOPIC, number) for number in sorted(numbers)])
        some = self.left()[:2]
        self.at |= {one.partition(): one.offset() + 1 for one in some}
        told, self.problems = self.problems, []
        return told + some

    def commit(self, offsets: Sequence[TopicPartition]) -> None:
        if self.commits_fail:
            raise KafkaException("no luck")
        self.committed += [(one.partition, one.offset) for one in offsets]

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "FIRST_SECONDS", 0.01)


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> FakeConsumer:
    made = FakeConsumer([])
    monkeypatch.setattr(kafka, "Consumer", made)
    return made


async def read(store: Store, consumer: FakeConsumer) -> list[str]:
    """Read until nothing is left; return the publications of the log."""
    source, stop = KafkaSource(Broker(store, Engine()), "nowhere", TOPIC), asyncio.Event()
    reading = asyncio.create_task(source.run(stop))
    await until(lambda: bool(consumer.at) and not consumer.left())
    stop.set()  # It ends after the records at hand.
    await reading
    chosen = select(publications.c.id).order_by(publications.c.seq)
    return [str(id) for id in store.read_now(lambda db: db.scalars(chosen).all())]


def offsets(store: Store) -> dict[int, int]:
    rows = store.read_now(lambda db: db.execute(select(kafka_offsets)).all())
    return {row.partition: row.offset for row in rows}


async def test_each_partition_is_read_once_and_a_restart_continues(
    store: Store, consumer: FakeConsumer
) -> None:
    consumer.records = [record(n % 2, n // 2, f"urn:{n}") for n in range(10)]
    assert sorted(await read(store, consumer)) == [f"urn:{n}" for n in range(10)]
    assert offsets(store) == {0: 5, 1: 5}
    assert {max(one for one in consumer.committed if one[0] == n) for n in (0, 1)} == {
        (0, 5),
        (1, 5),
    }
    consumer.records += [record(1, 5, "urn:more")]
    consumer.at = {}
    assert len(await read(store, consumer)) == 11
    assert offsets(store) == {0: 5, 1: 6}


async def test_records_that_another_process_has_read_are_not_added(
    store: Store, consumer: FakeConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is ahead of the consumer after it has assigned the partition."""
    consumer.records = [record(0, n, f"urn:{n}") for n in range(6)]
    assign = consumer.assign

    def late(partitions: Sequence[TopicPartition]) -> None:
        assign(partitions)
        row = {"topic": TOPIC, "partition": 0, "offset": 4}
        if not offsets(store):
            store.write_now(lambda db: db.execute(insert(kafka_offsets).values(row)))

    monkeypatch.setattr(consumer, "assign", late)
    assert await read(store, consumer) == ["urn:4", "urn:5"]
    assert offsets(store) == {0: 6}


async def test_keys_headers_and_tombstones(store: Store, consumer: FakeConsumer) -> None:
    """A key that is an IRI is the id. A tombstone is nothing. Lines have several publications."""
    line = '{"@id": "urn:a", "@type": "urn:C"}'
    consumer.records = [
        record(0, 0, "urn:key"),
        record(0, 1, "no IRI"),
        record(0, 2, "urn:gone", None),
        record(0, 3, "urn:json", line, [("content-type", b"application/ld+json")]),
        record(0, 4, "urn:detected", RDF, []),
        record(0, 5, "urn:bad", "no RDF"),
        record(0, 6, "urn:empty", "# a comment"),
        record(0, 7, "", LINES, [("content-type", b"application/x-ndjson; charset=utf-8")]),
    ]
    found = await read(store, consumer)
    known = ["urn:key", "urn:kafka:t:0:1", "urn:json", "urn:detected"]
    assert found == [*known, "urn:line:1", "urn:line:2"]
    letters = store.read_now(newest_dead_letters)
    assert [row["record"] for row in letters] == ["urn:kafka:t:0:6", "urn:kafka:t:0:5"]
    assert letters[1]["error"].startswith("urn:bad")
    assert offsets(store) == {0: 8}


async def test_problems_of_kafka_do_not_stop_the_intake(
    store: Store, consumer: FakeConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka reports a problem with one partition, and takes no offsets."""
    caplog.set_level(logging.INFO, "graphmatch.broker")
    consumer.records = [record(0, n, f"urn:{n}") for n in range(3)]
    consumer.problems, consumer.commits_fail = [failure("a partition moves")], True
    assert await read(store, consumer) == ["urn:0", "urn:1", "urn:2"]
    assert "a partition moves" in caplog.text


async def test_a_lost_connection_is_opened_again(
    store: Store, consumer: FakeConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next consumer begins where the store ends."""
    consumer.records = [record(0, n, f"urn:{n}") for n in range(5)]
    consume, lost = consumer.consume, [KafkaException("gone")]

    def fails(*given: object) -> list[Mock]:
        if lost and consumer.at.get(0, 0) == 4:
            consumer.at = {0: 0}
            raise lost.pop()
        return consume(*given)

    monkeypatch.setattr(consumer, "consume", fails)
    assert await read(store, consumer) == [f"urn:{n}" for n in range(5)]
    assert not lost
