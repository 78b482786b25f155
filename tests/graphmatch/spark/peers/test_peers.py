"""The peer servers work with Spark alone."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from tests.graphmatch.spark.peers.cluster import Cluster
from tests.graphmatch.spark.peers.jars import connector, delta, iceberg
from tests.graphmatch.spark.peers.kafka import Kafka
from tests.graphmatch.spark.peers.programs import run

pytestmark = pytest.mark.long

newest = pytest.mark.xfail(
    tuple(map(int, version("pyspark").split(".")[:2])) >= (4, 3),
    reason="no release that is served runs on Spark 4.3: Delta runs on 4.2",
)


def test_kafka(broker: Kafka, tmp_path: Path) -> None:
    broker.create("smoke", partitions=3)
    run("kafka", broker.servers, "smoke", str(tmp_path), *_joined(connector()))


@newest
def test_delta(tmp_path: Path) -> None:
    run("delta", str(tmp_path), *_joined(delta()))


@newest
def test_iceberg(tmp_path: Path) -> None:
    run("iceberg", str(tmp_path), *_joined(iceberg()))


def test_hdfs(file_system: str, cluster: Cluster) -> None:
    folders = run("hdfs", file_system, cluster.url).splitlines()
    found = {own for own in cluster.folders if any(Path(f).is_relative_to(own) for f in folders)}
    assert found == set(cluster.folders)


def test_connect(connect_server: str, tmp_path: Path) -> None:
    run("connect", connect_server, str(tmp_path))


def _joined(jars: list[Path]) -> tuple[str]:
    return (",".join(map(str, jars)),)
