"""A stream that is killed ends with what one wrote that was left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from shutil import copytree
from typing import TYPE_CHECKING

import pytest

from graphmatch.command.options import Loading
from graphmatch.spark import watch
from graphmatch.spark.engine_files import EngineFiles
from graphmatch.spark.sources import Folder
from semantic.errors import Problem
from tests.graphmatch.spark.arrivals import Stream, offers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
FEEDS = ROOT / "data" / "feeds"
ONTOLOGY = ROOT / "ontologies" / "news.ttl"
AT_ONCE = 2
_SECONDS = 300
"""A stream that takes longer hangs."""


def filled(stream: Stream, files: int) -> None:
    """Put files of offers and feeds there, with duplicates and faults; a broken subscription."""
    random = Random(files)
    for query in (ROOT / "data" / "subscriptions").glob("feeds-*.rq"):
        stream.subscribe(query.stem, query.read_text(encoding="utf-8"))
    stream.subscribe("broken", "SELECT")
    feeds = sorted(FEEDS.iterdir())
    for number in range(files):
        if number % 3 == 2:
            feed = feeds[number % len(feeds)]
            stream.drop(f"{number:03}-{feed.name}", feed.read_bytes())
        else:
            ids = [random.randrange(20 * files) for _ in range(60)]
            fault = "this is no line\n" if number % 4 == 0 else ""
            stream.drop(f"{number:03}.nq", fault + offers(random, sorted(set(ids))))


def arguments(stream: Stream) -> list[str]:
    folders = [stream.incoming, "--output", stream.output, "-s", stream.subscriptions]
    options = ["-o", ONTOLOGY, "--at-once", AT_ONCE, "--master", "local[2]"]
    command = ["-m", "graphmatch.cli", "spark", "watch", *folders, *options]
    return [sys.executable, *map(str, command)]


@contextmanager
def started(stream: Stream, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start the command as the leader of a group of processes; at the end the group is killed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with said(stream).open("ab") as stderr:
        process = subprocess.Popen(
            [*arguments(stream), *more], env=environment, stderr=stderr, start_new_session=True
        )
    try:
        yield process
    finally:
        kill(process)


def said(stream: Stream) -> Path:
    """Return where the command's standard error goes."""
    return stream.folder / "said.txt"


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it started: Java, and Python's workers."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def batches_of(stream: Stream) -> int:
    return len(list((stream.output / "matches").glob("batch=*/_SUCCESS")))


def wait_for(stream: Stream, batches: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until so many batches are written."""
    deadline = time.monotonic() + _SECONDS
    while batches_of(stream) < batches and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def finished(spark: SparkSession, stream: Stream) -> list[str]:
    """Go on here until all is done; return what was said."""
    told: list[Problem] = []
    files = EngineFiles([stream.subscriptions], [ONTOLOGY], options=repr(Loading()))
    source = Folder(str(stream.incoming), AT_ONCE)
    watch(source, stream.output, files, spark=spark, once=True, on_problem=told.append).wait()
    return list(map(str, told))


def twin(stream: Stream, folder: Path) -> Stream:
    """Return a stream of the same files in another folder."""
    other = Stream(folder)
    for name in ("subscriptions", "incoming"):
        copytree(stream.folder / name, other.folder / name, dirs_exist_ok=True)
    return other


def same(spark: SparkSession, stream: Stream, tmp_path: Path) -> None:
    """Hold what a stream wrote against one that was left alone."""
    other = twin(stream, tmp_path / "undisturbed")
    finished(spark, other)
    expected = other.matches()
    assert stream.matches() == expected
    assert set(expected.values()) == {1}, "no row is there twice"
    assert len({name for _, name, _ in expected}) > 5
    assert stream.refused() == other.refused()
    assert {name.partition(":")[0] for name in stream.refused()} > {"broken.rq", "000.nq"}
    kept = {path.name for path in stream.output.iterdir()}
    assert kept == {"matches", "refused", "checkpoint", "graphmatch-watch.json"}


def test_killed_once(spark: SparkSession, tmp_path: Path) -> None:
    stream = Stream(tmp_path / "killed")
    filled(stream, 6)
    with started(stream, "--once") as process:
        wait_for(stream, 1, process)
        time.sleep(Random(1).uniform(0, 1))
        kill(process)
    assert process.returncode == -signal.SIGKILL
    assert batches_of(stream) >= 1
    finished(spark, stream)
    assert batches_of(stream) == 6 // AT_ONCE
    same(spark, stream, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_killed_three_times_while_files_come(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    stream = Stream(tmp_path / "killed")
    filled(stream, 24)
    coming = sorted(stream.incoming.iterdir(), key=lambda file: file.stat().st_mtime)
    aside = tmp_path / "aside"
    stream.incoming.rename(aside)
    stream.incoming.mkdir()
    names = [file.name for file in coming]
    for _ in range(3):
        with started(stream, "--every", "1 second") as process:
            before = batches_of(stream)
            for name in names[:6]:
                (aside / name).rename(stream.incoming / name)
                time.sleep(random.uniform(0, 0.5))
            del names[:6]
            wait_for(stream, before + 1, process)
            time.sleep(random.uniform(0, 4))
            kill(process)
        assert process.returncode == -signal.SIGKILL
    for name in names:
        (aside / name).rename(stream.incoming / name)
    finished(spark, stream)
    same(spark, stream, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_by_a_signal(spark: SparkSession, tmp_path: Path, number: signal.Signals) -> None:
    stream = Stream(tmp_path / "stopped")
    filled(stream, 6)
    with started(stream, "--every", "1 second") as process:
        wait_for(stream, 1, process)
        os.kill(process.pid, number)
        process.wait(timeout=_SECONDS)
    text = said(stream).read_text(encoding="utf-8")
    assert process.returncode == 1, "a subscription and lines were refused"
    lines = [line for line in text.splitlines() if line.startswith("batch ")]
    assert len(lines) == batches_of(stream) >= 1
    assert f"{len(lines)} batch" in text.splitlines()[-1]
    assert "Traceback" not in text
    finished(spark, stream)
    same(spark, stream, tmp_path)
