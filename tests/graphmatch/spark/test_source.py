"""The source ``rdf``: files to tables and streams of triples, each file and line once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql.types import StringType, StructField, StructType

from graphmatch.spark import matches, register
from graphmatch.spark.java import SparkError
from graphmatch.spark.source import RdfSource
from graphmatch.spark.spark_session import explained
from semantic import read_publications
from semantic.errors import InputError, Problem
from tests.graphmatch.spark.comparing import (
    FILES,
    asked,
    locally,
    nquads,
    on_spark,
    plain_text,
    rows_of,
    small,
    unheard,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUAD = "<urn:a> <urn:p> <urn:{}> <urn:g> .\n"
SAME = {
    "nt": "<urn:a> <urn:p> _:x .\n<urn:a> <urn:q> <<( <urn:a> <urn:p> _:x )>> .\n",
    "nq": "<urn:a> <urn:p> _:x .\n<urn:a> <urn:q> <<( <urn:a> <urn:p> _:x )>> .\n",
    "ttl": "<urn:a> <urn:p> _:x ; <urn:q> <<( <urn:a> <urn:p> _:x )>> .",
    "trig": "<urn:a> <urn:p> _:x ; <urn:q> <<( <urn:a> <urn:p> _:x )>> .",
}
LINES = (
    "<urn:a> <urn:p> <urn:b> <urn:g%d> .",
    '<urn:a> <urn:p> "a <urn:x> . ü" <urn:g%d> .',
    "<urn:a>\t<urn:p>\t<urn:c>  <urn:g%d>  .  # <urn:h> .",
    "_:a <urn:p> _:b _:g%d .",
    "<urn:a> <urn:p> <urn:o%d> .",
    r"<urn:a> <urn:p> <urn:\u0041> <urn:g\u00%d> .",
    "# <urn:g%d> .",
    "no line %d",
    "",
)
"""N-Quads lines in various notations; their numbers are two hexadecimal digits."""

Rows = list[dict[str, Any]]


def source_of(options: dict[str, str]) -> tuple[RdfSource, StructType]:
    """Return the source and its columns, because only a running Spark can read a schema."""
    source = RdfSource(options)
    names = (column.split()[0] for column in source.schema().split(", "))
    return source, StructType([StructField(name, StringType()) for name in names])


def partitions(path: object = None, **options: str) -> tuple[Any, Any]:
    """Return a table's reader and its partitions."""
    source, schema = source_of(options if path is None else {"path": str(path), **options})
    reader = source.reader(schema)
    return reader, reader.partitions()


def read(path: object, **options: str) -> Rows:
    """Return rows as tasks read them, without Spark."""
    reader, parts = partitions(path, **options)
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def triples(rows: Rows) -> list[tuple[str, ...]]:
    return [tuple(row.values())[:-1] for row in rows if row["_corrupt"] is None]


def refused(rows: Rows) -> list[str]:
    return [row["_corrupt"] for row in rows if row["_corrupt"] is not None]


def named(rows: Rows, folder: Path) -> set[str]:
    return {row["publication"].removeprefix(f"{folder}/") for row in rows}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a name that needs escapes elsewhere."""
    made = tmp_path / "a [1] 50%25+ü"
    made.mkdir()
    return made


# --- Rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("extension", SAME)
def test_each_syntax_is_read(folder: Path, extension: str) -> None:
    path = folder / f"a.{extension}"
    path.write_text(SAME[extension])
    rows = read(path)
    (blank,) = {row["object"] for row in rows if row["predicate"] == "<urn:p>"}
    assert triples(rows) == [
        (str(path), "<urn:a>", "<urn:p>", blank),
        (str(path), "<urn:a>", "<urn:q>", f"<<( <urn:a> <urn:p> {blank} )>>"),
    ]
    (whole,) = read(path, rows="publications")
    assert whole == {
        "publication": str(path),
        "triples": SAME["nt"].replace("_:x", "_:b0"),
        "_corrupt": None,
    }


def test_samples_are_read_like_locally() -> None:
    for path in FILES:
        told: list[Problem] = []
        expected = rows_of(read_publications(path, on_problem=told.append))
        rows = read(path)
        assert sorted(tuple(map(plain_text, row)) for row in triples(rows)) == sorted(
            tuple(map(plain_text, row)) for row in expected
        )
        assert {row["publication"] for row in read(path, rows="publications")} == {
            row[0] for row in expected
        }


def test_options_decide_how_files_are_read(folder: Path) -> None:
    path = folder / "a"
    path.write_text("<a> <p> <b> . <c> <p> <b> .")
    (folder / "b").write_text("<a> <p> no .")
    options = {"syntax": "ttl", "split_by": "subject", "base": "http://x/"}
    rows = read(folder, **options)
    assert triples(rows) == [
        (f"http://x/{name}", f"<http://x/{name}>", "<http://x/p>", "<http://x/b>") for name in "ac"
    ]
    assert len(refused(rows)) == 1
    assert refused(rows)[0].startswith(f"{folder}/b:1:")
    assert refused(read(folder, **options, mode="dropmalformed")) == []
    assert read(folder, **options, mode="dropmalformed") == rows[:2]
    with pytest.raises(InputError, match=r"b:1:"):
        read(folder, **options, mode="FAILFAST")
    assert [*read(folder, **options, ROWS="publications")[0]] == [
        "publication",
        "triples",
        "_corrupt",
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"path": "x", "mod": "FAILFAST"}, "rdf: no option is called 'mod'. There are base, mode"),
        ({"path": "x", "rows": "quads"}, "rows: 'quads' is unknown. Use one of: triples"),
        ({}, r"rdf: there is no path. Name one: load\(path\)."),
        ({"path": "x", "base": "here"}, "the base 'here' is not an absolute IRI"),
        ({"path": "x", "syntax": "zip"}, "format: 'zip' is unknown"),
        ({"path": "x", "mode": "loud"}, "mode: 'loud' is unknown. Use one of: PERMISSIVE, DROP"),
        (
            {"path": "x", "split_by": "half"},
            "split_by: 'half' is unknown. Use one of: auto, document, graph",
        ),
        ({"path": "nowhere/x"}, "nowhere/x: cannot be read"),
        ({"path": "nowhere/*"}, r"nowhere/\*: cannot be read"),
        ({"path": "nowhere://x"}, "nowhere://x: cannot be read"),
        ({"path": "none-of-these*.nq"}, r"none-of-these\*.nq: there are no such files"),
    ],
)
def test_an_unknown_option_is_named(options: dict[str, str], said: str) -> None:
    with pytest.raises((InputError, SparkError), match=said):
        partitions(**options)


# --- File selection ------------------------------------------------------------------------------


def test_files_folders_and_patterns_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"a.nt", "b [2].nt", "sub/c.nt", "sub/d.ttl", "e+%20ü?.nt", "f:g.nt"}
    (folder / "sub").mkdir()
    (folder / "_temporary").mkdir()
    for name in (*names, ".hidden.nt", "_SUCCESS", "_temporary/x.nt", "sub/.y.nt"):
        (folder / name).write_text("<urn:a> <urn:p> <urn:b> .\n")
    assert named(read(folder), folder) == names
    assert named(read(f"{folder}/"), folder) == names
    assert [row["publication"] for row in read(folder)] == sorted(f"{folder}/{n}" for n in names)
    for name in ("b [2].nt", "e+%20ü?.nt", "_SUCCESS", ".hidden.nt", "f:g.nt"):
        assert named(read(folder / name), folder) == {name}
    other = folder.parent / "plain"
    folder.rename(other)
    assert named(read(f"{other}/*.nt"), other) == names - {"sub/d.ttl"}
    assert named(read(f"{other}/sub/?.t[st]l"), other) == {"sub/d.ttl"}
    (one,) = read(f"file://{other}/sub/*.nt")
    assert one["publication"] == f"file://{other}/sub/c.nt"
    assert {Path(row["publication"]).name for row in read(f"file://{other}/sub")} == {
        "c.nt",
        "d.ttl",
    }
    monkeypatch.chdir(other)
    assert named(read("*.ttl"), other) == {"sub/d.ttl"}
    assert named(read("a.nt"), other) == {"a.nt"}
    empty = other / "empty"
    empty.mkdir()
    assert read(empty) == []


def test_unreadable_files_are_refused(folder: Path) -> None:
    (folder / "a.nq").write_text(QUAD.format(1) * 9)
    (folder / "b.ttl").write_text("<urn:a> <urn:p> <urn:b> .")
    with patch("graphmatch.spark.source._RANGE", 100):
        reader, parts = partitions(folder)
    (folder / "a.nq").unlink()
    (folder / "b.ttl").unlink()
    # This loop is as unreadable as a forbidden file.
    (folder / "b.ttl").symlink_to(folder / "b.ttl")
    rows = [row for p in parts for b in reader.read(p) for row in b.to_pylist()]
    assert len(rows) == len(parts) > 2
    for name in ("a.nq", "b.ttl"):
        (said,) = {text for text in refused(rows) if name in text}
        assert said.startswith(f"{folder / name}: cannot be read: ")
        assert said.endswith("Check the address and the permissions.")


# -- Lines in ranges ------------------------------------------------------------------------------


@st.composite
def documents(draw: st.DrawFn) -> str:
    lines = draw(st.lists(st.tuples(st.sampled_from(LINES), st.integers(40, 44)), max_size=12))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = "".join((line % number if "%" in line else line) + end for line, number in lines)
    return text if draw(st.booleans()) else text.removesuffix(end)


@given(documents(), st.integers(1, 200))
def test_ranges_of_a_file_have_all_its_lines(text: str, size: int) -> None:
    with TemporaryDirectory() as made:
        path = Path(made) / "a.nq"
        path.write_bytes(text.encode())
        with patch("graphmatch.spark.source._RANGE", size):
            found = read(path)
        with patch("graphmatch.spark.source._RANGE", max(len(text.encode()) - 1, 1)):
            two = read(path)
        whole, again = read(path), read(path)
    assert whole == again
    if size >= len(text.encode()):
        return  # The file is not split.
    assert set(triples(found)) == set(triples(two))
    assert {tuple(map(plain_text, row)) for row in triples(found)} == {
        tuple(map(plain_text, row)) for row in triples(whole)
    }
    if text.strip():  # The reports on a blank file may differ.
        assert sorted(refused(found)) == sorted(refused(two)) == sorted(refused(whole))


def test_lines_are_counted_from_the_beginning(folder: Path) -> None:
    lines = [QUAD.format(n) for n in range(30)]
    lines[3], lines[17], lines[28] = "bad\r\n", "# c\n\nworse\n", "worst\n"
    (folder / "a.nq").write_text("".join(lines))
    with patch("graphmatch.spark.source._RANGE", 60), patch("graphmatch.spark.source._PIECE", 7):
        rows = read(folder)
    assert len(triples(rows)) == 27
    assert [text.split(":")[1] for text in refused(rows)] == ["4", "20", "31"]
    with patch("graphmatch.spark.source._RANGE", 60):
        # Documents are not split.
        assert len({row["publication"] for row in read(folder, split_by="document")}) == 2
        (folder / "a.nq").rename(folder / "a.ttl")
        assert refused(read(folder)) != []
        assert len(triples(read(folder, syntax="nq"))) == 27


# -- On Spark -------------------------------------------------------------------------------------


@pytest.fixture
def rdf(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


def test_tables_are_matched(rdf: SparkSession, folder: Path) -> None:
    engine, publications = small()
    iris = [row for row in rows_of(publications) if "_:" not in row[1] + row[3]]
    nquads(folder / "a.nq", iris[::2])
    nquads(folder / "b.nq", iris[1::2])
    (folder / "c.nq").write_text("bad\n")
    rows = rdf.read.format("rdf").load(str(folder))
    found = rows.transform(matches(engine)).cache()
    expected = locally(engine, read_publications(*_sorted(folder, iris), on_problem=unheard))
    assert on_spark(found.where("_corrupt IS NULL")) == expected
    assert [
        row[0].split(":")[1]
        for row in found.where("_corrupt IS NOT NULL").select("_corrupt").collect()
    ] == ["1"]
    found.unpersist()
    assert rows.where("_corrupt IS NULL").select("object").count() == len(iris)


def _sorted(folder: Path, rows: list[tuple[str, ...]]) -> list[str]:
    path = folder.parent / "sorted.nq"
    nquads(path, sorted(rows))
    return [str(path)]


@pytest.mark.long
def test_errors_arrive_at_the_driver(rdf: SparkSession, folder: Path) -> None:
    for options, said in (
        ({"mod": "x"}, "no option is called 'mod'"),
        ({"path": f"{folder.parent}/none"}, "cannot be read"),
        ({"path": f"{folder}/none"}, "there are no such files"),  # The folder's name has brackets.
    ):
        with pytest.raises(PySparkException) as caught:
            rdf.read.format("rdf").options(**{"path": str(folder), **options}).load().collect()
        assert said in str(explained(caught.value))
        assert ".." not in str(explained(caught.value))
    (folder / "bad.nq").write_text("bad\n")
    with pytest.raises(PySparkException) as caught:
        rdf.read.format("rdf").options(path=str(folder), mode="FAILFAST").load().collect()
    assert f"{folder}/bad.nq:1:" in str(explained(caught.value))


class Streamed:
    """A stream from folder to folder, which can stop and resume."""

    def __init__(self, spark: SparkSession, folder: Path, **options: str) -> None:
        self.spark, self.folder, self.options = spark, folder, options
        self.incoming, self.output = folder / "incoming", folder / "output"
        self.incoming.mkdir()

    def drop(self, name: str, text: str, time: float | None = None) -> None:
        made = self.incoming / f".{name}"
        made.write_text(text)
        if time is not None:
            os.utime(made, (time, time))
        made.rename(self.incoming / name)

    def frame(self) -> DataFrame:
        return self.spark.readStream.format("rdf").options(**self.options).load(str(self.incoming))

    def run(self, *later: tuple[str, str]) -> list[int]:
        """Run until all is read, and again after each file; return the row counts."""
        options = {"checkpointLocation": str(self.folder / "checkpoint"), "path": str(self.output)}
        query = self.frame().writeStream.format("parquet").options(**options).start()
        try:
            query.processAllAvailable()
            for name, text in later:
                self.drop(name, text)
                query.processAllAvailable()
            return [p.numInputRows for p in query.recentProgress if p.numInputRows]
        finally:
            query.stop()

    def objects(self) -> list[str]:
        rows = self.spark.read.parquet(str(self.output)).collect()
        return sorted(row["object"] or row["_corrupt"].split("/")[-1][:7] for row in rows)


@pytest.fixture
def streamed(rdf: SparkSession, folder: Path) -> Iterator[Streamed]:
    return iter([Streamed(rdf, folder)])


@pytest.mark.long
def test_a_stream_reads_each_file_once(streamed: Iterator[Streamed]) -> None:
    stream = next(streamed)
    stream.drop("b.nq", QUAD.format(1))
    stream.drop(".half.nq", QUAD.format(9))
    (stream.incoming / ".half.nq").rename(stream.incoming / "_half.nq")
    assert stream.run(("c.ttl", "<urn:a> <urn:p> <urn:2>, <urn:3> .")) == [1, 2]
    stream.drop("a.nq", QUAD.format(4) + "bad\n", time=1e9)  # It is old, and its name comes first.
    # Changing a file in place is not supported.
    (stream.incoming / "b.nq").write_text(QUAD.format(5))
    assert stream.run(("b2.nq", QUAD.format(6))) == [2, 1]
    (stream.incoming / "c.ttl").unlink()
    assert stream.run() == []
    assert stream.objects() == [*(f"<urn:{n}>" for n in (1, 2, 3, 4, 6)), "a.nq:2:"]


def test_a_stream_of_too_many_files_ends(folder: Path) -> None:
    source, schema = source_of({"path": str(folder)})
    reader = source.streamReader(schema)
    for number in range(3):
        (folder / f"{number}.nq").write_text(QUAD.format(number))
    nothing: Any = None
    with patch("graphmatch.spark.source._FILES", 3):
        offset = reader.latestOffset(reader.initialOffset(), nothing)
        (folder / "3.nq").write_text("")
        with pytest.raises(InputError, match=r"there are more than 3 files.*binaryFile"):
            reader.latestOffset(offset, nothing)
    parts = reader.partitions(reader.initialOffset(), offset)
    assert len(parts) == 3
    assert reader.partitions(offset, offset) == []


def test_blank_nodes_have_one_name_in_all_ranges_of_a_file(folder: Path) -> None:
    """A blank node has one name in all ranges of a file, and another in other files."""
    for name in "ab":
        text = "".join(f"_:x <urn:p> _:{name}{n} <urn:g> .\n" for n in range(9))
        (folder / f"{name}.nq").write_text(text)
    with patch("graphmatch.spark.source._RANGE", 50):
        rows, again = read(folder), read(folder)
    assert rows == again
    assert len({row["subject"] for row in rows}) == 2
    assert len({row["object"] for row in rows}) == 18
    lines = "".join(" ".join((*row[1:], ".\n")) for row in triples(rows))
    engine = asked(s="SELECT DISTINCT ?s { ?s <urn:p> ?o }")
    (report,) = engine.filter(lines.encode())
    assert len(report.matches[0].solutions) == 2
