"""``graphmatch spark watch`` as a process resumes at its position after any end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random
from shutil import copytree
from typing import TYPE_CHECKING

import pytest

from semantic import read_publications
from tests.graphmatch.spark.comparing import ROOT, asked, locally, on_spark, unheard
from tests.graphmatch.spark.watching import SECONDS, Watched, kill, killed_at_end, offers, wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

MAX_PER_TRIGGER = 2


def started(watched: Watched, *more: object) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """Start the command, and kill it at the end."""
    few = "spark.sql.shuffle.partitions=3"  # Each partition has its own state.
    options = ["--max-per-trigger", MAX_PER_TRIGGER, "--master", "local[2]", "--conf", few, *more]
    options += [] if "--once" in more else ["--every", "1 second"]
    command = [sys.executable, "-m", "graphmatch.cli", "spark", *watched.arguments(*options)]
    return killed_at_end(command, said(watched), {"PYTHONPATH": str(ROOT)})


def said(watched: Watched) -> Path:
    """Return the file of the command's standard error."""
    return watched.folder / "said.txt"


def batches_of(watched: Watched) -> int:
    return len(list((watched.folder / "output-checkpoint" / "commits").glob("[0-9]*")))


def filled(watched: Watched, files: int) -> None:
    """Add files: offers, duplicates, invalid lines."""
    random = Random(files)
    texts = [offers(random, range(40 * n, 40 * n + 40)) for n in range(files)]
    for number, text in enumerate(texts):
        again = texts[random.randrange(number)] if number % 3 == 2 else ""
        fault = "this is no line\n" if number % 4 == 0 else ""
        watched.drop(f"{number:03}.nq", fault + text)
        watched.drop(
            f"{number:03}-again.nq", again or f'<urn:x> <urn:price> "{number}" <urn:a> .\n'
        )


def same(spark: SparkSession, watched: Watched, files: int) -> None:
    """Compare the output with the local engine, each publication once."""
    rows = watched.written(spark)
    first = {}
    for file in sorted(watched.incoming.glob("*.nq")):
        for publication in read_publications(str(file), on_problem=unheard):
            first.setdefault(publication.id, publication)
    found = on_spark(rows.where("_corrupt IS NULL AND publication != 'urn:a'"))
    del first["urn:a"]  # Any of several simultaneous ones may win.
    assert found == locally(asked(**watched.queries), first.values())
    assert rows.where("publication = 'urn:a'").count() == len(watched.queries)
    refused = sorted(
        row[0] for row in rows.where("_corrupt IS NOT NULL").select("_corrupt").collect()
    )
    assert [Path(text.partition(":")[0]).name for text in refused] == [
        f"{number:03}.nq" for number in range(0, files, 4)
    ]


@pytest.mark.parametrize("seed", [1])
def test_a_stream_killed_three_times_writes_each_match_once(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    random, files = Random(seed), 10
    watched, undisturbed = Watched(tmp_path / "killed"), Watched(tmp_path / "undisturbed")
    filled(watched, files)
    copytree(watched.incoming, undisturbed.incoming, dirs_exist_ok=True)
    coming = sorted(watched.incoming.iterdir(), key=lambda file: file.stat().st_mtime)
    aside = tmp_path / "aside"
    watched.incoming.rename(aside)
    watched.incoming.mkdir()
    names = [file.name for file in coming]
    for _ in range(3):
        with started(watched) as process:
            before = batches_of(watched)
            for name in names[:6]:
                (aside / name).rename(watched.incoming / name)
                time.sleep(random.uniform(0, 0.5))
            del names[:6]
            wait_for(lambda before=before: batches_of(watched) > before, process)  # type: ignore[misc]
            time.sleep(random.uniform(0, 4))
            assert process.poll() is None, said(watched).read_text()
            kill(process)
        assert process.returncode == -signal.SIGKILL
    for name in names:
        (aside / name).rename(watched.incoming / name)
    for one in (watched, undisturbed):
        with started(one, "--once") as process:
            process.wait(timeout=SECONDS)
        assert process.returncode == 1, "lines were refused"
        assert "Traceback" not in said(one).read_text()
    same(spark, undisturbed, files)
    same(spark, watched, files)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_command(
    spark: SparkSession, tmp_path: Path, number: signal.Signals
) -> None:
    """The command stops soon, reports it, and resumes after a restart."""
    watched = Watched(tmp_path / "stopped")
    filled(watched, 4)
    with started(watched) as process:
        wait_for(lambda: batches_of(watched) > 0, process)
        os.kill(process.pid, number)
        begun = time.monotonic()
        process.wait(timeout=SECONDS)
    text = said(watched).read_text(encoding="utf-8")
    assert process.returncode in (0, 1), text
    assert time.monotonic() - begun < 60
    assert "Traceback" not in text
    assert text.splitlines()[-1].startswith(("total: ", "no input arrived"))
    with started(watched, "--once") as process:
        process.wait(timeout=SECONDS)
    same(spark, watched, 4)


def test_subscriptions_and_ontology_may_change_while_it_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    watched = Watched(tmp_path / "changing")
    ontology = watched.folder / "known.ttl"
    ontology.write_text(
        "<urn:p> <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> <urn:above> ."
    )
    watched.ask("above", "ASK { ?x <urn:above> ?y }")
    line = '<urn:x> <urn:p> "1" <urn:g{0}> .\n<urn:x> <urn:price> "{0}" <urn:g{0}> .\n'.format

    def text() -> str:
        return said(watched).read_text(encoding="utf-8")

    with started(watched, "-o", ontology) as process:

        def hear(words: str, times: int = 1) -> None:
            wait_for(lambda: text().count(words) >= times, process)

        def come(number: int) -> None:
            watched.drop(f"{number}.nq", line(number))
            hear("batch ", number + 1)  # Empty batches are not reported.

        come(0)
        watched.ask("more", "ASK { ?x <urn:p> ?y }")
        hear("reloaded the subscriptions and the ontology")
        come(1)
        ontology.write_text("this is no ontology")
        hear("the previous subscriptions and ontology stay in use")
        come(2)
        ontology.write_text("<urn:p> a <urn:q> .")
        hear("reloaded the subscriptions and the ontology", 2)
        come(3)
        for path in watched.asked.iterdir():
            path.unlink()
        hear("the previous subscriptions and ontology stay in use", 2)
        come(4)
        assert process.poll() is None, text()
        os.kill(process.pid, signal.SIGTERM)
        process.wait(timeout=SECONDS)
    assert "known.ttl" in text()
    found: dict[str, set[str]] = {}
    for row in watched.written(spark).collect():
        found.setdefault(row["publication"], set()).add(row["subscription"])
    plain = {"price", "anything"}
    assert found == {
        "urn:g0": plain | {"above"},
        "urn:g1": plain | {"above", "more"},
        "urn:g2": plain | {"above", "more"},
        "urn:g3": plain | {"more"},
        "urn:g4": plain | {"more"},
    }
