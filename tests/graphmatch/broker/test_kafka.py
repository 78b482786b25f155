"""Records of a real Kafka enter the log once, even if the reader is killed."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer
from sqlalchemy import func, select

from graphmatch import Engine
from graphmatch.broker.db.store import Store
from graphmatch.broker.db.tables import dead_letters, publications
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.kafka import KafkaSource
from tests.graphmatch.spark.peers.kafka import Kafka, kafka

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
TOPIC = "publications"
RECORDS, BAD = 40_000, 100
_SECONDS = 120
_READER = """
import asyncio, sys
from tests.graphmatch.broker.test_kafka import read
asyncio.run(read(sys.argv[1], sys.argv[2], None))
"""


@pytest.fixture(scope="module")
def served() -> Iterator[Kafka]:
    with kafka() as started:
        started.create(TOPIC, 2)
        producer = Producer({"bootstrap.servers": started.servers})
        for number in range(RECORDS):
            line = (
                "no RDF" if number % (RECORDS // BAD) == 7 else f"<urn:a> <urn:p> <urn:{number}> ."
            )
            producer.produce(
                TOPIC,
                line,
                key=f"urn:r:{number}",
                headers={"content-type": "application/n-triples"},
            )
            producer.poll(0)
        assert producer.flush(30) == 0
        yield started


async def read(path: str, servers: str, enough: int | None) -> None:
    """Read the topic into a store, until the log has that length."""
    store = Store(path)
    source, stop = KafkaSource(Broker(store, Engine()), servers, TOPIC), asyncio.Event()
    reading = asyncio.create_task(source.run(stop))
    ends = time.monotonic() + _SECONDS
    while time.monotonic() < ends and not reading.done():
        await asyncio.sleep(0.05)
        if enough is not None and length(store) >= enough:
            break
    stop.set()
    await reading
    store.close()


def length(store: Store) -> int:
    return store.read_now(lambda db: db.scalar(select(func.count()).select_from(publications))) or 0


def check(path: str) -> None:
    store = Store(path)
    ids = store.read_now(lambda db: db.scalars(select(publications.c.id)).all())
    assert len(ids) == RECORDS - BAD
    assert set(Counter(ids).values()) == {1}
    refused = store.read_now(lambda db: db.scalars(select(dead_letters.c.record)).all())
    assert len({one for one in refused if one is not None and TOPIC in one}) <= BAD
    store.close()


def test_each_record_is_stored_once(served: Kafka, tmp_path: Path) -> None:
    """Invalid records are refused and noted; reading again adds nothing."""
    path = str(tmp_path / "broker.db")
    asyncio.run(read(path, served.servers, RECORDS - BAD))
    check(path)
    store = Store(path)
    count = select(func.count()).select_from(dead_letters)
    assert store.read_now(lambda db: db.scalar(count)) == BAD
    store.close()


def test_each_record_is_stored_once_despite_kills(served: Kafka, tmp_path: Path) -> None:
    """No record is lost or repeated."""
    path = str(tmp_path / "broker.db")
    seed = random.randrange(1000)
    pauses = random.Random(seed)
    before = 0
    for _ in range(3):
        reader = subprocess.Popen(
            [sys.executable, "-c", _READER, path, served.servers], cwd=ROOT, env=dict(os.environ)
        )
        ends = time.monotonic() + _SECONDS
        while time.monotonic() < ends:  # Wait until it reads.
            time.sleep(0.02)
            if Path(path).is_file() and peeked(path) > before:
                break
        time.sleep(pauses.uniform(0, 0.1))
        reader.kill()
        reader.wait()
        before = peeked(path)
        assert before < RECORDS - BAD, "it was killed too late"
    asyncio.run(read(path, served.servers, RECORDS - BAD))
    check(path)


def peeked(path: str) -> int:
    """Return the length of a log that another process has open."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        try:
            return int(db.execute("SELECT count(*) FROM publications").fetchone()[0])
        except sqlite3.OperationalError:  # The tables do not exist yet.
            return 0
