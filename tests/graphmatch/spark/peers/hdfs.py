"""HDFS for tests: a name node and a data node in one Java process, on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.graphmatch.spark.peers.jars import SPARK_JARS, minicluster
from tests.graphmatch.spark.peers.jvm import Jvm, temporary

_OPTIONS = ("-Xmx512m",)
_SETTINGS = {
    "dfs.permissions.enabled": "false",
    "dfs.replication": "1",
    "dfs.namenode.fs-limits.min-block-size": "1024",
    "dfs.datanode.directoryscan.interval": "-1",
}


@contextmanager
def hdfs() -> Iterator[str]:
    """Yield the URI of a file system: ``hdfs://127.0.0.1:…``, without a slash at its end."""
    with temporary("hdfs") as folder:
        jvm = Jvm([*minicluster(), SPARK_JARS / "*"], folder, options=_OPTIONS)
        try:
            conf = jvm.view.org.apache.hadoop.conf.Configuration()
            for key, value in {"hdfs.minidfs.basedir": str(folder), **_SETTINGS}.items():
                conf.set(key, value)
            builder = getattr(jvm.view.org.apache.hadoop.hdfs, "MiniDFSCluster$Builder")(conf)
            cluster = builder.numDataNodes(1).build()
            cluster.waitActive()
            yield f"hdfs://127.0.0.1:{cluster.getNameNodePort()}"
        finally:
            jvm.kill()
