"""Killed streams from Kafka resume at their last position, and write each match once."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sql

from graphmatch import Engine
from semantic import Ontology, read_publications
from tests.graphmatch.spark.comparing import Said, locally, on_spark
from tests.graphmatch.spark.peers import matching
from tests.graphmatch.spark.peers.jars import connector
from tests.graphmatch.spark.peers.jvm import spark_environment
from tests.graphmatch.spark.peers.kafka import Kafka
from tests.graphmatch.spark.peers.programs import run
from tests.graphmatch.spark.watching import SECONDS, killed_at_end, wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

PUBLICATIONS, AGAIN, FAULTS = 100_000, 1_000, 100
MAX_PER_TRIGGER, UNDISTURBED = 4_000, 30_000
"""Number of records per micro-batch."""
KILLS = 3
ONTOLOGY = """\
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<urn:Laptop> rdfs:subClassOf <urn:Computer> .
<urn:Server> rdfs:subClassOf <urn:Computer> .
<urn:offeredBy> rdfs:subPropertyOf <urn:seller> .
"""
CLASSES = ("Laptop", "Server", "Phone", "Chair", "Desk", "Lamp", "Book")
QUERIES = {
    "computers": "SELECT ?x { ?x a <urn:Computer> }",
    "dear": "SELECT ?x ?p { ?x <urn:price> ?p FILTER(?p >= 700) }",
    "sellers": 'SELECT ?s { ?x <urn:seller> ?s . ?s <urn:name> "seller 5" }',
    "books": "ASK { ?x a <urn:Book> ; <urn:price> ?p FILTER(?p < 300) }",
}
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with publications, some of which are repeated, and invalid records.

    Parameters
    ----------
    engine
        Snapshot of the engine with the folder of queries and the ontology.
    once, again
        The local engine's matches of all publications, and of the repeated ones.
    """

    servers: str
    name: str
    jars: str
    engine: Path
    queries: Path
    ontology: Path
    once: Said
    again: Said


def offer(random: Random, number: int) -> str:
    """Return a publication of four triples, as N-Quads."""
    graph, thing, seller = f"<urn:offer:{number}>", f"<urn:thing:{number}>", f"_:s{number}"
    price = f'"{random.randrange(1000)}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return (
        f"{thing} a_ <urn:{random.choice(CLASSES)}> {graph} .\n"
        f"{thing} <urn:price> {price} {graph} .\n"
        f"{thing} <urn:offeredBy> {seller} {graph} .\n"
        f'{seller} <urn:name> "seller {random.randrange(20)}" {graph} .\n'
    ).replace("a_", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>")


@pytest.fixture(scope="module")
def topic(broker: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Topic:
    folder, random = tmp_path_factory.mktemp("topic"), Random(1)
    texts = [offer(random, number) for number in range(PUBLICATIONS)]
    again = sorted(random.sample(range(PUBLICATIONS), AGAIN))
    numbers = [*range(PUBLICATIONS), *again]
    rows = [(f"urn:offer:{number}", texts[number]) for number in numbers]
    rows += [(f"urn:fault:{number}", f"this is no line {number}\n") for number in range(FAULTS)]
    random.shuffle(rows)
    keys, values = map(list, zip(*rows, strict=True))
    pq.write_table(pa.table({"key": keys, "value": values}), folder / "records.parquet")
    jars = ",".join(map(str, connector()))
    broker.create("offers", partitions=3)
    arguments = broker.servers, "offers", str(folder / "records.parquet"), jars
    run("produce", *arguments, module=matching.__name__)

    ontology, queries, saved = folder / "known.ttl", folder / "queries", folder / "engine"
    ontology.write_text(ONTOLOGY)
    queries.mkdir()
    engine = Engine(Ontology.load(ontology))
    for name, query in QUERIES.items():
        (queries / f"{name}.rq").write_text(query)
        engine.subscribe(name, query)
    engine.save(saved)

    def said(name: str, chosen: Sequence[str]) -> Said:
        file = folder / f"{name}.nq"
        file.write_text("".join(chosen))
        return locally(engine, read_publications(str(file)))

    repeated = said("again", [texts[number] for number in again])
    once = said("once", texts)
    return Topic(broker.servers, "offers", jars, saved, queries, ontology, once, repeated)


def command(topic: Topic, folder: Path, at_once: int) -> list[str]:
    """Return the graphmatch command."""
    settings = {
        "spark.driver.memory": "1g",
        "spark.jars": topic.jars,
        # The jars are local, and the registry may serve another version.
        "spark.jars.packages": "",
        "spark.sql.shuffle.partitions": "2",
    }
    given = ["--kafka", topic.servers, "--kafka-topic", topic.name, "--format", "nq", "--once"]
    known = ["-s", str(topic.queries), "-o", str(topic.ontology), "--max-per-trigger", str(at_once)]
    said = ["--output", str(folder / "output"), "--master", "local[2]"]
    said += chain.from_iterable(("--conf", f"{name}={value}") for name, value in settings.items())
    return [sys.executable, "-m", "graphmatch.cli", "spark", "watch", *given, *known, *said]


def program(topic: Topic, folder: Path, at_once: int) -> list[str]:
    """Return a program that matches rows without a shuffle."""
    own = [topic.servers, topic.name, str(folder), str(topic.engine), str(at_once), topic.jars]
    return [sys.executable, "-m", matching.__name__, "stream", *own]


@pytest.mark.parametrize(("way", "status"), [(command, 1), (program, 0)])
def test_a_stream_killed_while_reading_writes_each_match_once(
    way: Callable[[Topic, Path, int], list[str]],
    status: int,
    topic: Topic,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """Test the command, which drops duplicates, and a program, which does not."""
    random, killed, undisturbed = Random(2), tmp_path / "killed", tmp_path / "undisturbed"
    killed.mkdir()
    undisturbed.mkdir()
    checkpoint = killed / "output-checkpoint"
    for number in range(KILLS):
        with started(way(topic, killed, MAX_PER_TRIGGER), killed) as process:
            wanted = count(checkpoint / "commits") + random.randint(1, 4)
            wait_for(lambda wanted=wanted: count(checkpoint / "commits") >= wanted, process)  # type: ignore[misc]
            since = time.monotonic()
            wait_for(lambda wanted=wanted: count(checkpoint / "commits") > wanted, process)  # type: ignore[misc]
            time.sleep(random.uniform(0, time.monotonic() - since))
            assert process.poll() is None, said(killed)
        at = {name: count(checkpoint / name) for name in ("offsets", "commits")}
        log.info("kill %s at %s", number, at)
    assert at["commits"] < PUBLICATIONS // MAX_PER_TRIGGER
    for folder, at_once in ((killed, MAX_PER_TRIGGER), (undisturbed, UNDISTURBED)):
        with started(way(topic, folder, at_once), folder) as process:
            assert process.wait(timeout=SECONDS) == status, said(folder)
        assert "Traceback" not in said(folder)
        log.info("%s: %s", folder.name, count(folder / "output-checkpoint" / "commits"))

    rows = {folder: spark.read.parquet(str(folder / "output")) for folder in (killed, undisturbed)}
    found = rows[killed].where("_corrupt IS NULL")
    assert on_spark(found) == (topic.once if way is command else topic.once + topic.again)
    texts = [Counter(map(as_text, table.collect())) for table in rows.values()]
    assert texts[0] == texts[1]
    refused = rows[killed].where(sql.col("_corrupt").isNotNull())
    assert refused.count() == refused.select("_corrupt").distinct().count() == FAULTS
    log.info("rows: %s", texts[0].total())


def as_text(row: Any) -> str:
    return json.dumps(row.asDict(), sort_keys=True)


def count(folder: Path) -> int:
    """Return the number of micro-batches."""
    return len(list(folder.glob("[0-9]*")))


def started(
    command: Sequence[str], folder: Path
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """Start a program, and kill it at the end."""
    return killed_at_end(command, folder / "said.txt", spark_environment())


def said(folder: Path) -> str:
    return (folder / "said.txt").read_text(encoding="utf-8")[-5000:]
