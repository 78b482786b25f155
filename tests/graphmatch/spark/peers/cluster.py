"""A Spark cluster for tests: a master and workers, each a process with its own folder."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.graphmatch.spark.peers.jars import SPARK_JARS, PeerError
from tests.graphmatch.spark.peers.jvm import Jvm, spark_environment, temporary

_SECONDS = 60
_OPTIONS = ("-Xmx256m",)
_LOG = """\
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n
"""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster.

    Parameters
    ----------
    url
        Its master: ``spark://127.0.0.1:…``.
    folders
        The workers' folders; an executor's output is in ``app-…/0/stderr``.
    workers
        Processes that tests can kill; their executors end with them.
    """

    url: str
    folders: Sequence[Path]
    workers: Sequence[Jvm]


@contextmanager
def cluster(workers: int = 2, cores: int = 1, memory: str = "1g") -> Iterator[Cluster]:
    """Yield a cluster.

    Parameters
    ----------
    cores, memory
        Resources of each worker.
    """
    with temporary("cluster") as folder, ExitStack() as stack:
        log = folder / "log4j2.properties"
        log.write_text(_LOG, encoding="utf-8")
        options = (*_OPTIONS, f"-Dlog4j2.configurationFile={log.as_uri()}")
        (core,) = SPARK_JARS.glob("spark-core_*.jar")
        environment = {
            **spark_environment(),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SCALA_VERSION": core.name.split("_")[1].split("-")[0],
        }

        def started(name: str) -> Jvm:
            own = folder / name
            own.mkdir()
            local = {"SPARK_LOCAL_DIRS": str(own / "local")}
            jvm = Jvm([SPARK_JARS / "*"], own, options=options, environment=environment | local)
            stack.callback(jvm.kill)
            return jvm

        where = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        names = [f"worker{number}" for number in range(workers)]
        with ThreadPoolExecutor() as pool:
            master, *machines = pool.map(started, ("master", *names))
        master.run("org.apache.spark.deploy.master.Master", *where)
        url = _said(master, r"Starting Spark master at (spark://\S+)")
        folders = [folder / name / "work" for name in names]
        for machine, own in zip(machines, folders, strict=True):
            limits = ("--cores", str(cores), "--memory", memory, "--work-dir", str(own))
            machine.run("org.apache.spark.deploy.worker.Worker", *where, *limits, url)
        for machine in machines:
            _said(machine, r"Successfully registered with master (\S+)")
        yield Cluster(url, folders, machines)


def _said(jvm: Jvm, pattern: str) -> str:
    """Wait for output that matches a pattern, and return its first group."""
    ends = time.monotonic() + _SECONDS
    while (found := re.search(pattern, jvm.log())) is None:
        if time.monotonic() > ends or jvm.process.poll() is not None:
            raise PeerError(f"Spark's cluster does not start:\n{jvm.log()[-2000:]}")
        time.sleep(0.05)
    return found[1]
