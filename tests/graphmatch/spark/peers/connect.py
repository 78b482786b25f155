"""A Spark Connect server for tests; as a program, the server.

A client needs a process without any other Spark session, so tests start programs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.graphmatch.spark.peers.jars import PeerError
from tests.graphmatch.spark.peers.jvm import spark_environment, temporary
from tests.graphmatch.spark.peers.programs import SETTINGS

ROOT = Path(__file__).parents[4]
_CONNECT = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.sql.artifact.isolation.enabled": "true",
    "spark.sql.artifact.isolation.alwaysApplyClassloader": "true",
}
"""Settings of Spark's own start script, and any free port."""


@contextmanager
def connect_server(
    master: str = "local[2]", settings: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield the URL of a server: ``sc://127.0.0.1:…``."""
    given = [f"{key}={value}" for key, value in {**SETTINGS, **(settings or {})}.items()]
    with temporary("connect") as folder:
        log = folder / "server.log"
        with log.open("wb") as said:
            server = subprocess.Popen(
                [sys.executable, "-m", __name__, master, *given],
                cwd=folder,
                env=os.environ | spark_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                start_new_session=True,
            )
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            port = server.stdout.readline().strip().decode()
            if not port.isdigit():
                raise PeerError(f"Spark Connect does not start:\n{log.read_text()[-2000:]}")
            yield f"sc://127.0.0.1:{port}"
        finally:
            server.stdin.close()  # The server ends when its input closes.
            server.wait()
            server.stdout.close()


def main() -> None:
    from pyspark.sql import SparkSession

    master, *given = sys.argv[1:]
    builder = SparkSession.builder.master(master).appName("connect")
    for key, value in (*_CONNECT.items(), *(text.split("=", 1) for text in given)):
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    java = spark.sparkContext._jvm
    assert java is not None
    package = java.org.apache.spark.sql.connect.service
    service = getattr(getattr(package, "SparkConnectService$"), "MODULE$")
    sys.stdout.write(f"{service.localPort()}\n")
    sys.stdout.flush()
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main()
