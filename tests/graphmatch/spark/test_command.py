"""The commands ``graphmatch spark filter`` and ``graphmatch spark watch``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import typer
from pyspark.errors import PySparkRuntimeError
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.readwriter import DataStreamReader
from typer.testing import CliRunner, Result

from graphmatch.cli import app
from semantic import read_publications
from semantic.errors import pip_install
from tests.graphmatch.spark.comparing import (
    FILES,
    ONTOLOGY,
    ROOT,
    SUBSCRIPTIONS,
    asked,
    locally,
    on_spark,
    parquet,
    samples,
    unheard,
)
from tests.graphmatch.spark.watching import Watched, offers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Run = Callable[..., Result]

EVERY = "SELECT * { ?s <urn:p> ?o }"
QUAD = "<urn:a> <urn:p> <urn:{}> <urn:g{}> .\n"


def invoke(*arguments: object, status: int | None = 0) -> Result:
    result = CliRunner().invoke(app, ["spark", *map(str, arguments)])
    assert result.exit_code == status, result.output
    return result


@pytest.fixture
def run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command in this session without stopping it."""
    monkeypatch.setattr("graphmatch.spark.spark_session.session", lambda **_: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    return invoke


@pytest.fixture
def subscriptions(tmp_path: Path) -> Path:
    path = tmp_path / "every.rq"
    path.write_text(EVERY)
    return path


def process(
    *arguments: object, status: int = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "graphmatch.cli", "spark", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | environment | {"PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done


# -- Errors before the start ----------------------------------------------------------------------


def test_help_has_an_example() -> None:
    group: Any = typer.main.get_command(app)
    for name in group.get_command(None, "spark").commands:
        text = CliRunner().invoke(app, ["spark", name, "--help"], env={"COLUMNS": "200"}).stdout
        assert f"Example: graphmatch spark {name} " in " ".join(text.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["filter", ".", "--conf", "x"], "--conf: 'x' is not a setting. Write KEY=VALUE."),
        (["filter", ".", "--format", "zip"], "format: 'zip' is unknown"),
        (["filter", ".", "--base", "x"], "the base 'x' is not an absolute IRI"),
        (["filter", ".", "--mode", "loud"], "'loud'"),
        (["filter", ".", "--as", "csv"], "'csv'"),
        (["filter", "."], "there is no subscription to match"),
        (["watch"], "there is nothing to watch. Name a folder, or --kafka."),
        (["watch", ".", "--every", "often"], "--every: 'often' is not a duration"),
        (
            ["watch", ".", "--watermark", "1"],
            "--watermark: '1' is not a duration. Write a number and",
        ),
        (
            ["watch", "--every", "1", "--watermark", "often"],
            "Name a folder, or --kafka. --every: '1' is not a duration. Write a number and "
            "seconds, minutes, hours, days or weeks. --watermark: 'often' is not a duration.",
        ),
        (["watch", ".", "--max-per-trigger", "0"], "0"),
        (["watch", ".", "--kafka", "h:1"], "a folder and --kafka are given together"),
        (["watch", "--kafka", "h:1"], "no topic is named. Name one with --kafka-topic."),
        (["watch", ".", "--format", "pdf"], "format: 'pdf' is unknown"),
        (["watch", ".", "--base", "here"], "the base 'here' is not an absolute IRI"),
        (["watch", ".", "--kafka-topic", "t"], "--kafka-topic is given without --kafka"),
        (["watch", "."], "there is no subscription to match"),
    ],
)
def test_an_unknown_option_is_named(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmatch.spark.spark_session.session", None)  # No session must start.
    output = tmp_path / "output"
    result = invoke(*arguments, "-s", tmp_path, "--output", output, status=2)
    assert said in " ".join(result.stderr.replace("│", " ").split())
    assert not output.exists()


# -- filter ---------------------------------------------------------------------------------------


def mixed(folder: Path) -> None:
    """Fill a folder with tables, lines, documents, and names that need escapes."""
    below = folder / "b [1] 50%25 +ü"
    below.mkdir(parents=True)
    parquet(folder / "a.parquet", [("urn:t", "<urn:a>", "<urn:p>", '"1"')])
    parquet(below / "b+%20{c}.PARQUET", [("urn:t", "<urn:a>", "<urn:p>", '"2"')])
    (folder / "a.nq").write_text(QUAD.format(1, 1) + "bad [line]\n")
    (below / "b *?\\.nq").write_text(QUAD.format(2, 1) + QUAD.format(3, 2))
    (below / "c%2B+ü.ttl").write_text("<urn:a> <urn:p> <urn:4> .")
    (folder / "d.trig").write_text("<urn:a> <urn:p> no .")
    (folder / "_hidden.nq").write_text(QUAD.format(9, 9))


def test_files_of_every_kind_are_matched(run: Run, subscriptions: Path, tmp_path: Path) -> None:
    folder, output = tmp_path / "a folder [x]", tmp_path / "out"
    mixed(folder)
    feed = ROOT / "data" / "feeds" / "podcast.json"
    also = ("--as", "json", "--json", "--now", "2026-01-02")
    arguments = ("filter", folder, feed, "-s", subscriptions, "--output", output, *also)
    result = run(*arguments, status=1)
    rows = [json.loads(x) for f in output.glob("part-*") for x in f.read_text().splitlines()]
    found = {(row["publication"], row["solution"]["o"]) for row in rows if "solution" in row}
    document = str(folder / "b [1] 50%25 +ü" / "c%2B+ü.ttl")
    assert found == {
        ("urn:t", '"1"'),
        ("urn:t", '"2"'),
        ("urn:g1", "<urn:1>"),
        ("urn:g1", "<urn:2>"),
        ("urn:g2", "<urn:3>"),
        (document, "<urn:4>"),
    }
    refused = sorted(row["_corrupt"] for row in rows if "_corrupt" in row)
    assert [text.split(": ")[0] for text in refused] == [
        f"{folder}/a.nq ('bad [line]')",
        f"{folder}/d.trig:1:17",
    ]
    for text in refused:
        assert f"refused  {text}" in result.stderr.splitlines()
    items = len(list(read_publications(feed, on_problem=unheard)))
    summary = json.loads(result.stdout)
    assert summary.pop("seconds") > 0
    assert summary.pop("triples") > 6
    assert summary == {
        "publications": 4 + items,
        "matches": 4,
        "refused": 2,
        "warnings": 0,
        "subscriptions": 1,
        "output": str(output),
    }
    assert re.search(
        rf"{4 + items} publications, 1 subscription: 4 matches, 2 refused, 0 warnings, .* s, in",
        " ".join(result.stderr.split()),
    )


def test_an_existing_output_is_refused(run: Run, subscriptions: Path, tmp_path: Path) -> None:
    (tmp_path / "a.nq").write_text(QUAD.format(1, 1))
    output = tmp_path / "out"
    common = ("filter", tmp_path / "a.nq", "-s", subscriptions, "--output", output)
    run(*common)
    again = run(*common, status=2)
    said = f"error    {output}: is there already. Pass --mode overwrite or --mode append."
    assert said.split() == again.stderr.split()


@pytest.mark.long
def test_an_existing_output_is_appended_to_or_overwritten(
    run: Run, subscriptions: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.nq").write_text(QUAD.format(1, 1))
    output = tmp_path / "out"
    common = ("filter", tmp_path / "a.nq", "-s", subscriptions, "--output", output)
    run(*common)

    def count() -> int:
        return len([f for f in output.glob("*.parquet") if f.stat().st_size])

    run(*common, "--mode", "append")
    twice = count()
    run(*common, "--mode", "overwrite")
    assert 0 < count() < twice


def test_missing_and_empty_folders_are_named(run: Run, subscriptions: Path, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "_SUCCESS").touch()
    output = tmp_path / "out"
    arguments = ("-s", subscriptions, "--output", output)
    result = run("filter", tmp_path / "none", tmp_path / "missing", *arguments, status=1)
    said = " ".join(result.stderr.split())
    assert "none: the folder has no files. Give a folder that has some." in said
    assert "missing: there is no such file or folder. Check the name or the address." in said
    assert not output.exists()


@pytest.mark.long
def test_tables_are_matched(
    run: Run, spark: SparkSession, subscriptions: Path, tmp_path: Path
) -> None:
    table = tmp_path / "table"  # The name has no extension.
    table.mkdir()
    spark.createDataFrame(
        [("g", "<urn:a>", "<urn:p>", f'"{n}"') for n in range(9)],
        "publication string, subject string, predicate string, object string",
    ).write.parquet(str(table / "t"))
    (table / "t" / "_SUCCESS").unlink()
    output = tmp_path / "out"
    common = ("-s", subscriptions, "--output", output)
    run("filter", table, *common, "--format", "parquet")
    assert spark.read.parquet(str(output)).count() == 9
    spark.createDataFrame([("g",)], "graph string").write.parquet(str(tmp_path / "other"))
    (tmp_path / "other" / "_SUCCESS").unlink()
    options = ("--format", "parquet", "--mode", "append")
    wrong = run("filter", tmp_path / "other", *common, *options, status=2)
    assert "publication" in wrong.stderr
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no table")
    wrong = run("filter", tmp_path / "bad.parquet", *common, "--mode", "append", status=2)
    said = " ".join(wrong.stderr.split())
    assert said.startswith("error spark: [")
    assert "bad.parquet" in wrong.stderr.replace("\n", "")


@pytest.mark.long
def test_options_decide_how_documents_are_read(
    run: Run, spark: SparkSession, subscriptions: Path, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("<a> <urn:p> <b> . <c> <urn:p> <d> .")
    common = ("filter", tmp_path / "a", "-s", subscriptions, "--mode", "overwrite")
    output = tmp_path / "out"
    how = ("--format", "ttl", "--base", "http://x/", "--split-by", "subject")
    run(*common, "--output", output, *how)
    rows = spark.read.parquet(str(output)).collect()
    assert {row["publication"] for row in rows} == {"http://x/a", "http://x/c"}
    (tmp_path / "a").write_text(QUAD.format(1, 1) + QUAD.format(2, 2) + QUAD.format(3, 1))
    for options, count in (
        (["--format", "nq"], 2),
        (["--format", "nq", "--split-by", "document"], 1),
    ):
        run(*common, "--output", output, *options)
        rows = spark.read.parquet(str(output)).collect()
        assert len({row["publication"] for row in rows}) == count
        assert len(rows) == 3


@pytest.mark.long
def test_samples_are_matched(spark: SparkSession, tmp_path: Path) -> None:
    """Run a process that starts Spark itself, and write Parquet."""
    bad, output = tmp_path / "bad.nq", tmp_path / "out"
    bad.write_text("no line\n<urn:a> <urn:b> <urn:c> <urn:g> .\n")
    ontology = [part for name in ONTOLOGY for part in ("-o", name)]
    options = ("-s", SUBSCRIPTIONS, "--output", output, "--json", "--master", "local[1]")
    done = process("filter", *FILES, bad, *ontology, *options, status=1)
    summary = json.loads(done.stdout)
    found = spark.read.parquet(str(output))
    publications = list(read_publications(*FILES, on_problem=unheard))
    expected = locally(samples(), publications)
    own = {key: count for key, count in expected.items() if key[1] != "construct"}
    assert on_spark(found.where("_corrupt IS NULL")) == own
    assert summary["publications"] == len(publications) + 1
    assert summary["matches"] == len({key[:2] for key in own})
    assert summary["refused"] == found.where("_corrupt IS NOT NULL").count() == 1
    assert f"refused  {bad} ('no line'):" in done.stderr


def test_a_missing_extra_is_named(subscriptions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyspark", "pyspark.errors"):
        monkeypatch.setitem(sys.modules, name, None)
    done = invoke("filter", FILES[0], "-s", subscriptions, "--output", "out", status=2)
    assert "Spark's Python package is not installed" in done.stderr
    assert pip_install("spark") in " ".join(done.stderr.split())


def test_an_unavailable_connector_is_named(
    tmp_path: Path, subscriptions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exits(_: object) -> None:
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr("pyspark.sql.SparkSession.Builder.getOrCreate", exits)
    stream = ("--kafka", "127.0.0.1:1", "--kafka-topic", "t", "--output", tmp_path / "out")
    for options, tried in (
        ((), f"spark-sql-kafka-0-10_2.13:{version('pyspark')}"),
        (("--conf", "spark.jars.packages=a:b:7"), "a:b:7"),
    ):
        done = invoke("watch", *stream, "-s", subscriptions, *options, status=2)
        said = " ".join(done.stderr.split())
        assert f"{tried}: [JAVA_GATEWAY_EXITED] " in said
        assert "set another version of it with --conf spark.jars.packages=GROUP:NAME:VER" in said
    files = ("--conf", "spark.jars.packages=", "--conf", "spark.jars=a.jar")
    done = invoke("watch", *stream, "-s", subscriptions, *files, status=2)
    assert "Spark does not start: [JAVA_GATEWAY_EXITED]" in " ".join(done.stderr.split())


@pytest.mark.long
def test_a_connector_in_no_repository_is_named(tmp_path: Path, subscriptions: Path) -> None:
    """The only repository is an empty folder."""
    settings = tmp_path / "ivy.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="none"/><resolvers><filesystem name="none">'
        f'<artifact pattern="{tmp_path}/none/[artifact].[ext]"/></filesystem></resolvers>'
        "</ivysettings>"
    )
    confs = (f"spark.jars.ivySettings={settings}", f"spark.jars.ivy={tmp_path / 'ivy'}")
    options = ("-s", subscriptions, "--output", tmp_path / "out", "--kafka-topic", "t")
    several = (part for conf in confs for part in ("--conf", conf))
    done = process("watch", "--kafka", "127.0.0.1:1", *options, *several, status=2)
    coordinate = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version('pyspark')}"
    assert f"Spark does not start with {coordinate}: [JAVA_GATEWAY_EXITED]" in done.stderr


@pytest.mark.long
def test_a_worker_without_the_package_is_named(tmp_path: Path) -> None:
    """The workers' Python hides the package, as if it were not installed."""
    hiding = tmp_path / "sitecustomize.py"
    hiding.write_text(
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'graphmatch':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    options = ("-s", SUBSCRIPTIONS, "--output", tmp_path / "out", "--master", "local[1]")
    done = process("filter", FILES[1], *options, status=2, PYSPARK_PYTHON=str(python))
    assert (
        "error    worker: a worker's Python cannot import graphmatch. Install graphmatch "
        "with its extra spark in the workers' Python, or name a Python that has it in "
        "PYSPARK_PYTHON." in done.stderr
    )


# -- watch ----------------------------------------------------------------------------------------


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "a stream [1] 50%25 +ü")


def test_duplicates_and_late_publications_are_skipped(
    run: Run, spark: SparkSession, watched: Watched
) -> None:
    """A publication is matched once while its id is remembered; invalid ones are never late."""
    line = '<urn:x> <urn:price> "{}" <urn:{}> .\n'
    watched.drop("z.nq", line.format("first", "same"), hours=0)
    watched.drop("a.nq", line.format("second", "same") + line.format("third", "b"), hours=1)
    watched.drop("c.nq", line.format("far ahead", "c"), hours=240)
    first = run(*watched.arguments("--once", "--max-per-trigger", 1))
    assert "total: 3 publications, 1 duplicate, 0 late, 6 matches, 0 refused" in first.stderr
    watched.drop("late.nq", line.format("late", "late") + "no line\n", hours=100)
    watched.drop("new.nq", line.format("new", "new"), hours=242)
    second = run(*watched.arguments("--once", "--max-per-trigger", 1), status=1)
    assert "total: 1 publication, 0 duplicates, 1 late, 2 matches, 1 refused" in second.stderr
    assert "no input arrived" in run(*watched.arguments("--once")).stderr
    rows = watched.written(spark).collect()
    prices = {row["publication"]: row["solution"].get("p") for row in rows if row["solution"]}
    assert prices == {
        "urn:same": '"first"',
        "urn:b": '"third"',
        "urn:c": '"far ahead"',
        "urn:new": '"new"',
    }
    (refused,) = (row["_corrupt"] for row in rows if row["_corrupt"])
    assert refused.startswith(f"{watched.incoming}/late.nq:2:")


@pytest.mark.long
def test_existing_and_later_files_are_matched(
    run: Run, spark: SparkSession, watched: Watched
) -> None:
    random = Random(1)
    watched.drop("a b.nq", offers(random, range(30)))
    watched.drop("50%25.nq", offers(random, range(30, 50)))
    watched.drop("sub/c+[d]ü.nq", offers(random, range(50, 60)))
    for name in ("science.atom", "podcast.json"):
        watched.drop(name, (ROOT / "data" / "feeds" / name).read_bytes())
    run(*watched.arguments("--once", "--max-per-trigger", 2))
    engine = asked(**watched.queries)

    def expected() -> Any:
        return locally(engine, read_publications(str(watched.incoming), on_problem=unheard))

    assert on_spark(watched.written(spark)) == expected()
    watched.drop("later.nq", offers(random, range(60, 70)))
    run(*watched.arguments("--once"))
    assert on_spark(watched.written(spark)) == expected()


@pytest.mark.long
def test_a_folder_of_tables_is_watched(run: Run, spark: SparkSession, watched: Watched) -> None:
    for number in range(2):
        rows = [(f"g{n}", "<urn:x>", "<urn:price>", f'"{n}"') for n in range(3 * number, 4)]
        parquet(watched.folder / "t.parquet", rows)
        watched.drop(f"{number}.parquet", (watched.folder / "t.parquet").read_bytes())
    done = run(
        *watched.arguments("--once", "--max-per-trigger", 1, "--format", "parquet", "--as", "json")
    )
    assert "4 publications, 1 duplicate, 0 late, 8 matches, 0 refused" in done.stderr
    same = watched.arguments("--once", "--format", "parquet", "--as", "json")
    other = ("--checkpoint", watched.folder / "other")
    said = run(*same, *other, status=2).stderr
    assert "output: has the matches of a stream whose checkpoint is not" in " ".join(said.split())
    watched.output = watched.folder / "another"
    subjects = {"g8": "<urn:x>", "g9": None}
    rows = [(id, subject, "<urn:price>", '"9"') for id, subject in subjects.items()]
    parquet(watched.folder / "t.parquet", rows)
    watched.drop("wrong.parquet", (watched.folder / "t.parquet").read_bytes())
    done = run(*watched.arguments("--once", "--format", "parquet"), *other, status=1)
    assert "5 publications, 0 duplicates, 0 late, 10 matches, 1 refused" in done.stderr
    refused = watched.written(spark).where("_corrupt IS NOT NULL").select("_corrupt").collect()
    assert [row[0] for row in refused] == ["g9: no subject. A subject is an IRI or a blank node."]


class FakeReader(SimpleDataSourceStreamReader):
    """A reader that gives four records once."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"at": 0}

    def read(self, start: dict[str, int]) -> Any:
        return iter(self.records() if start["at"] == 0 else []), {"at": 1}

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Any:  # noqa: N802
        return iter(self.records())

    @staticmethod
    def records() -> list[tuple[Any, ...]]:
        from datetime import UTC, datetime

        now = datetime.now(UTC)
        price = b"<urn:x> <urn:price> 1 ."
        quads = b'<urn:x> <urn:price> "2" <urn:g> .\n'
        given = [(b"urn:key", price), (b"urn:key", price), (None, quads), (None, price)]
        return [(k, v, "t", 1, n, now) for n, (k, v) in enumerate([*given, (b"urn:gone", None)])]


class FakeKafka(DataSource):
    """A stand-in for the Kafka source."""

    @classmethod
    def name(cls) -> str:
        return "records"

    def schema(self) -> str:
        types = "topic string, partition int, offset bigint, timestamp timestamp"
        return f"key binary, value binary, {types}"

    def simpleStreamReader(self, schema: Any) -> FakeReader:  # noqa: N802
        wanted = {
            "kafka.bootstrap.servers": "host:1",
            "subscribe": "t,u",
            "startingoffsets": "earliest",
            "maxoffsetspertrigger": "7",
        }
        given = {name.lower(): value for name, value in self.options.items()}
        assert given.items() >= wanted.items(), given
        return FakeReader()


@pytest.mark.long
def test_records_of_kafka_are_matched(
    run: Run, spark: SparkSession, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source is a stand-in, without a broker."""
    spark.dataSource.register(FakeKafka)
    format_ = DataStreamReader.format
    monkeypatch.setattr(
        DataStreamReader,
        "format",
        lambda self, name: format_(self, "records" if name == "kafka" else name),
    )
    topics = (
        "--kafka",
        "host:1",
        "--kafka-topic",
        "t",
        "--kafka-topic",
        "u",
        "--max-per-trigger",
        7,
    )
    arguments = [one for one in watched.arguments("--once", *topics) if one != watched.incoming]
    done = run(*arguments, status=1)
    assert "3 publications, 1 duplicate, 0 late, 6 matches, 1 refused" in done.stderr
    rows = watched.written(spark).collect()
    assert {row["publication"] for row in rows} == {"urn:key", "urn:g", "t/1/3", None}
    (refused,) = (row["_corrupt"] for row in rows if row["_corrupt"])
    assert refused == "t/1/4: there is no document. Leave out rows without one."
