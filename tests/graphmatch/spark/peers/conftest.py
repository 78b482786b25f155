"""Servers for tests, started once for all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.graphmatch.spark.peers import cluster as clusters
from tests.graphmatch.spark.peers import connect, hdfs, kafka


@pytest.fixture(scope="session")
def broker() -> Iterator[kafka.Kafka]:
    with kafka.kafka() as started:
        yield started


@pytest.fixture(scope="session")
def file_system() -> Iterator[str]:
    with hdfs.hdfs() as uri:
        yield uri


@pytest.fixture(scope="session")
def cluster() -> Iterator[clusters.Cluster]:
    with clusters.cluster() as started:
        yield started


@pytest.fixture
def connect_server() -> Iterator[str]:
    with connect.connect_server() as url:
        yield url
