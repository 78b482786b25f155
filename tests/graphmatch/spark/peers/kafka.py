"""A Kafka broker for tests: one node that is its own controller, on loopback."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.graphmatch.spark.peers.jars import BROKER, PeerError, resolved
from tests.graphmatch.spark.peers.jvm import Jvm, temporary

_OPTIONS = ("-Xmx512m", "-Xms256m")
_SECONDS = 30
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
log.dirs={logs}
auto.create.topics.enable=false
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=2000
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.cleaner.enable=false
"""


class Kafka:
    """A broker that can be killed and restarted with its data.

    Parameters
    ----------
    folder
        Its data folder.

    Attributes
    ----------
    servers
        Value of ``kafka.bootstrap.servers``; the same after each start.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port, controller = _free_ports(2)
        self.servers = f"127.0.0.1:{self._port}"
        self._properties = folder / "server.properties"
        text = _PROPERTIES.format(port=self._port, controller=controller, logs=folder / "logs")
        self._properties.write_text(text, encoding="utf-8")
        self._jvm: Jvm | None = None
        self._admin: Any = None

    def start(self) -> None:
        """Start it, and wait until it responds.

        Raises
        ------
        PeerError
            If it does not respond.
        """
        jvm = self._jvm = Jvm(resolved(BROKER), self._folder, options=_OPTIONS)
        file = str(self._properties)
        if not (self._folder / "logs" / "meta.properties").is_file():
            name = jvm.view.org.apache.kafka.common.Uuid.randomUuid().toString()
            given = jvm.strings("format", "--standalone", "-t", name, "-c", file)
            if jvm.view.kafka.tools.StorageTool.execute(given, jvm.view.java.lang.System.err):
                raise PeerError(f"Kafka's folder is not formatted:\n{jvm.log()[-2000:]}")
        jvm.run("kafka.Kafka", file)
        ends = time.monotonic() + _SECONDS
        while not _listens(self._port):
            if time.monotonic() > ends or jvm.process.poll() is not None:
                raise PeerError(f"Kafka does not start:\n{jvm.log()[-2000:]}")
            time.sleep(0.05)
        admin = jvm.view.org.apache.kafka.clients.admin
        self._admin = admin.Admin.create({"bootstrap.servers": self.servers})
        self._admin.describeCluster().nodes().get()

    def create(self, topic: str, partitions: int = 1) -> None:
        """Create a topic."""
        assert self._jvm is not None
        new = self._jvm.view.org.apache.kafka.clients.admin.NewTopic(topic, partitions, 1)
        self._admin.createTopics([new]).all().get()

    def kill(self) -> None:
        """Kill it as ``kill -9`` does."""
        if self._jvm is not None:
            self._jvm.kill()
            self._jvm = None


@contextmanager
def kafka() -> Iterator[Kafka]:
    """Yield a running broker."""
    with temporary("kafka") as folder:
        broker = Kafka(folder)
        try:
            broker.start()
            yield broker
        finally:
            broker.kill()  # Its data is deleted, too.


def _free_ports(number: int) -> list[int]:
    """Return unused ports."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _listens(port: int) -> bool:
    with closing(socket.socket()) as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
