"""Matching on workers that share only HDFS, with each other and with the driver."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.graphmatch.spark.comparing import ONTOLOGY, SUBSCRIPTIONS
from tests.graphmatch.spark.peers import matching
from tests.graphmatch.spark.peers.cluster import Cluster
from tests.graphmatch.spark.peers.jvm import spark_environment
from tests.graphmatch.spark.peers.programs import ROOT, SETTINGS, run

pytestmark = pytest.mark.long


def test_two_workers_match_on_hdfs(file_system: str, cluster: Cluster, tmp_path: Path) -> None:
    """A program and the command give complete matches; each worker gets the engine."""
    uri = f"{file_system}/matching"
    said = run("hdfs", uri, cluster.url, str(tmp_path), module=matching.__name__)
    sys.stdout.write(said)
    assert len(said.splitlines()) == 3

    output = f"{uri}/out/command"
    arguments = [f"{uri}/docs", "--output", output, "--master", cluster.url, "-s", SUBSCRIPTIONS]
    for path in ONTOLOGY:
        arguments += ["-o", path]
    for name, value in SETTINGS.items():
        arguments += ["--conf", f"{name}={value}"]
    done = subprocess.run(
        [sys.executable, "-m", "graphmatch.cli", "spark", "filter", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | spark_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    sys.stdout.write(done.stdout + done.stderr)
    assert done.returncode in (0, 1), done.stderr[-5000:]
    assert "Traceback" not in done.stderr
    sys.stdout.write(run("written", uri, output, module=matching.__name__))
    for own in cluster.folders:
        assert len(list(own.glob("app-*/*/stderr"))) >= 2, "both ran there"
        assert not list(own.rglob("part-*")), "nothing is written but to HDFS"
