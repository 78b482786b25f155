"""Documents become publications before matching, and so do rows of one publication."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Observation
from pyspark.sql import functions as sql

from graphmatch.spark import matches, publications
from graphmatch.spark.documents import DocumentReader, LineReader, ReadOptions, merge_rows, together
from graphmatch.spark.tasks import DOCUMENT, ID, KEPT, SOURCE, Mode
from semantic.errors import InputError
from semantic.reading import SplitBy
from semantic.tables import COLUMNS
from tests.graphmatch.spark.comparing import (
    ROOT,
    asked,
    locally,
    nquads,
    on_spark,
    rows_of,
    shuffled,
    small,
    table,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEED = ROOT / "data" / "feeds" / "science.atom"
TTL = '<urn:a> <urn:p> [ <urn:q> "ä" ] .'
QUADS = "<urn:a> <urn:p> <urn:b> <urn:g> .\nbad\n<urn:a> <urn:p> <urn:c> <urn:h> .\n"
TRIG = "GRAPH <urn:t> { <urn:a> <urn:p> 1 } GRAPH <urn:u> { } GRAPH <urn:t> { <urn:a> <urn:p> 2 }"
GIVEN: list[tuple[str | None, str | None, str | None]] = [
    ("urn:mine", "1", TTL),
    ("urn:all", "2", QUADS),
    (None, "3", QUADS),
    (None, "4", FEED.read_text(encoding="utf-8")),
    (None, "5", TTL),
    ("urn:gone", "6", None),
    (None, None, TTL),
    ("urn:bad", "8", "<urn:a> <urn:p"),
    (None, "9", TRIG),
    (None, "10", ""),
]
"""Ids, sources and documents."""


def batch(rows: Iterable[tuple[Any, ...]], *names: str) -> pa.RecordBatch:
    columns = [list(column) for column in zip(*rows, strict=True)]
    arrays: Any = [pa.array(column) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def said(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for one in batches for row in one.to_pylist()]


def read(*rows: tuple[Any, ...], how: ReadOptions | None = None) -> list[dict[str, Any]]:
    """Read documents as tasks do: ids, sources, documents, and kept columns."""
    numbered = [(*row, number) for number, row in enumerate(rows)]
    given = batch(numbered, ID, SOURCE, DOCUMENT, f"{KEPT}0")
    return said(DocumentReader(how or ReadOptions(), 1)(iter([given])))


# -- Documents ------------------------------------------------------------------------------------


def test_documents_become_publications() -> None:
    rows = read(*GIVEN)
    found = [(row[f"{KEPT}0"], row[ID]) for row in rows if row[ID] is not None]
    assert found[:4] == [(0, "urn:mine"), (1, "urn:all"), (2, "urn:g"), (2, "urn:h")]
    feed = [id for number, id in found if number == 3]
    assert len(feed) > 3
    assert all(id.startswith("https://notebook.example/") for id in feed)
    assert [one for one in found if one[0] > 3] == [(4, "5"), (6, "<table>"), (8, "urn:t")]
    of = {(row[f"{KEPT}0"], row[ID]): row["triples"] for row in rows}
    assert of[0, "urn:mine"] == '<urn:a> <urn:p> _:b0 .\n_:b0 <urn:q> "ä" .\n'
    assert of[1, "urn:all"].count("\n") == 2
    assert of[8, "urn:t"].count("\n") == 2
    refused = {row[f"{KEPT}0"]: row["_corrupt"] for row in rows if row["_corrupt"]}
    assert {number: text.split(" ")[0] for number, text in refused.items()} == {
        1: "2:2:1:",
        2: "3:2:1:",
        5: "6:",
        7: "8:1:9:",
        9: "10:",
    }
    assert refused[5] == "6: there is no document. Leave out rows without one."
    assert all(row["triples"] is None for row in rows if row["_corrupt"])
    assert read(*GIVEN) == rows, "the same each time"


def test_options_decide_how_documents_are_read() -> None:
    relative = (None, "a", "<a> <p> <b> . <c> <p> 1 .")
    (row,) = read(relative)
    assert row["_corrupt"].startswith("a:1:")
    how = ReadOptions(SplitBy.SUBJECT, "ttl", "http://x/")
    assert [row[ID] for row in read(relative, how=how)] == ["http://x/a", "http://x/c"]
    assert [row[ID] for row in read(("urn:i", *relative[1:]), how=how)] == ["urn:i"]
    dropping, failing = ReadOptions(mode=Mode.DROPMALFORMED), ReadOptions(mode=Mode.FAILFAST)
    assert read(relative, how=dropping) == []
    with pytest.raises(InputError, match="a:1:"):
        read(relative, how=failing)


def test_a_document_may_have_very_many_publications() -> None:
    text = "".join(f"<urn:a> <urn:p> <urn:b> <urn:{n}> .\n" for n in range(3000))
    rows = read((None, "a.nq", text), (None, "b.nq", text))
    assert [row[ID] for row in rows] == [f"urn:{n}" for n in range(3000)] * 2
    assert [row[f"{KEPT}0"] for row in rows] == [0] * 3000 + [1] * 3000


# -- Lines, and rows of triples -------------------------------------------------------------------

LINES = [
    "<urn:a> <urn:p> _:x <urn:g> .",
    "_:x <urn:p> <<( <urn:a> <urn:p> _:x )>> <urn:g> .",
    "<urn:a> <urn:p> <urn:h> .",
    "# a comment",
    "no line",
    "",
    '<urn:a> <urn:p> "ü"@en <urn:h> .\r',
]


@given(st.lists(st.sampled_from("ab"), min_size=7, max_size=7), st.integers(0, 7))
def test_lines_may_be_in_any_batch(files: list[str], cut: int) -> None:
    rows = list(zip(LINES, files, strict=True))
    parts = [part for part in (rows[:cut], rows[cut:]) if part]
    read_ = LineReader(ReadOptions())
    found = said(read_(iter([batch(part, DOCUMENT, SOURCE) for part in parts])))
    whole: list[dict[str, Any]] = []
    for line, file in rows:
        whole += said(read_(iter([batch([(line, file)], DOCUMENT, SOURCE)])))

    def lines(found: list[dict[str, Any]]) -> set[tuple[str, str]]:
        return {(row[ID], line) for row in found if row[ID] for line in row["triples"].splitlines()}

    def refused(found: list[dict[str, Any]]) -> list[str]:
        return [row["_corrupt"] for row in found if row["_corrupt"]]

    assert lines(found) == lines(whole)
    assert refused(found) == refused(whole)
    assert refused(found)[0].startswith(f"{files[4]} ('no line'): ")
    assert {id for id, _ in lines(found)} == {"urn:g", "urn:h", files[2]}
    blank = {text for _, line in lines(found) for text in line.split() if text.startswith("_:")}
    assert len(blank) == len(set(files[:2])), "one name in a file, another in another"


def test_rows_of_a_publication_are_grouped() -> None:
    rows = [
        ("g", "<urn:a>", "<urn:p>", "_:x", 1),
        ("h", "<urn:a>", "<urn:p>", '"1"', 2),
        (None, "<urn:a>", "<urn:p>", '"1"', 3),
        ("g", "_:x", "<urn:p>", '"2"@en', 4),
        ("h", "<urn:a>", "<urn:p>", None, 5),
    ]
    batches = [batch(part, *COLUMNS, "k") for part in (rows[:2], rows[2:])]
    found = said(merge_rows(iter(batches)))
    assert [(row[ID], row["triples"], row["k"]) for row in found[:2]] == [
        ("g", '<urn:a> <urn:p> _:x .\n_:x <urn:p> "2"@en .\n', 1),
        ("h", '<urn:a> <urn:p> "1" .\n', 2),
    ]
    assert [(row["_corrupt"].split(".")[0], row["k"]) for row in found[2:]] == [
        ("<table>: no publication", None),
        ("h: no object", None),
    ]
    assert said(merge_rows(iter([]))) == []
    empty = batches[0].slice(0, 0)
    assert said(merge_rows(iter([empty]))) == []


# -- On Spark -------------------------------------------------------------------------------------


@pytest.mark.long
def test_documents_are_matched_on_spark(spark: SparkSession) -> None:
    """Spark gives the same rows with kept columns, and then matches them."""
    rows = [(*row, {"n": [number]}) for number, row in enumerate(GIVEN)]
    given = table(spark, rows, "id string, name string, doc string, about map<string, array<int>>")
    how = publications("doc", source="name", publication="id", keep=["about"])
    read_ = given.transform(how)
    assert read_.columns == ["publication", "triples", "_corrupt", "about"]
    did = Observation()
    found = read_.transform(
        matches(asked(s="ASK { ?s <urn:p> ?o }"), triples="triples", keep=["about"], metrics=did)
    )
    here = read(*GIVEN)
    wanted = [
        (row[ID], row["_corrupt"], row[f"{KEPT}0"])
        for row in here
        if row["_corrupt"] or "<urn:p>" in row["triples"]
    ]
    rows_ = [(r["publication"], r["_corrupt"], r["about"]["n"][0]) for r in found.collect()]
    assert sorted(rows_, key=str) == sorted(wanted, key=str)
    assert did.get["refused"] == sum(row["_corrupt"] is not None for row in here) == 5
    assert did.get["publications"] == len(here) - 5


def test_lines_are_matched_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    engine, made = small()
    rows = shuffled(rows_of(made))
    for number in range(3):  # Blank nodes differ between files.
        part = [r for r in rows if "_:" in r[1] + r[3]] if number == 0 else []
        nquads(
            tmp_path / f"{number}.nq",
            part + [r for r in rows if "_:" not in r[1] + r[3]][number::3],
        )
    lines = spark.read.text(str(tmp_path)).select("value", sql.col("_metadata.file_path"))
    read_ = publications("value", source="file_path", lines=True)
    did = Observation()
    found = (
        lines.repartition(5)
        .transform(read_)
        .transform(matches(engine, triples="triples", grouped=False, metrics=did))
    )
    assert on_spark(found) == locally(engine, made)
    assert did.get["publications"] == len(made)
    assert did.get["triples"] == len(rows)


@pytest.mark.long
def test_tables_are_grouped_before_matching(spark: SparkSession) -> None:
    engine, made = small()
    rows = [(*row, f"{row[0]}!") for row in shuffled(rows_of(made))]
    types = ", ".join(f"{name} string" for name in (*COLUMNS, "k"))
    given = table(spark, rows, types).repartition(4)
    whole = together(given, keep=["k"])
    found = whole.transform(matches(engine, triples="triples", keep=["k"]))
    assert on_spark(found.drop("k")) == locally(engine, made)
    assert found.where("k != concat(publication, '!')").count() == 0
    assert together(given.limit(0), keep=["k"]).count() == 0
