"""What arrives as rows: one a publication, what is refused, and which of several comes first."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmatch.spark.arriving import ROW, ReadFiles, ReadRecords, first_of_each
from graphmatch.spark.rows import ARRIVED, FRAGMENT, REFUSED, problem_of
from graphmatch.spark.sources import of_records
from graphmatch.spark.units import How
from semantic.reading import Cut

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = datetime(2026, 1, 2, tzinfo=UTC)
FEED = Path(__file__).parents[3] / "data" / "feeds" / "science.atom"
TTL = b'<urn:a> <urn:p> [ <urn:q> "\xc3\xa4" ] .'
QUADS = b"<urn:a> <urn:p> <urn:b> <urn:g> .\nbad\n<urn:a> <urn:p> <urn:c> <urn:h> .\n"

RECORDS: list[dict[str, Any]] = [
    {"key": b"urn:mine", "value": TTL},
    {"key": b"urn:all", "value": QUADS},
    {"key": None, "value": QUADS},
    {"key": None, "value": FEED.read_bytes()},
    {"key": None, "value": TTL},
    {"key": b"urn:gone", "value": None},
    {"key": b"\xff", "value": TTL},
    {"key": b"urn:bad", "value": b"<urn:a> <urn:p"},
]


def records() -> list[dict[str, Any]]:
    return [
        {**record, "topic": "t", "partition": 1, "offset": number, "time": NOW}
        for number, record in enumerate(RECORDS)
    ]


def said(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def test_records_of_kafka() -> None:
    rows = said(ReadRecords(How())(iter([pa.RecordBatch.from_pylist(records())])))
    assert len({row["key"] for row in rows}) == len(rows)
    found = [(row["publication"], row["source"]) for row in rows if row["kind"] == FRAGMENT]
    place = "t/1/{:020}".format
    assert found[:4] == [
        ("urn:mine", place(0)),
        ("urn:all", place(1)),
        ("urn:g", place(2)),
        ("urn:h", place(2)),
    ]
    assert found[4][0].startswith("https://notebook.example/")
    assert found[-1] == (place(4), place(4))
    lines = {row["publication"]: row["lines"] for row in rows if row["kind"] == FRAGMENT}
    assert lines["urn:mine"] == '<urn:a> <urn:p> _:b0 .\n_:b0 <urn:q> "ä" .\n'.encode()
    assert lines["urn:all"].count(b"\n") == 2
    refused = [problem_of(row["detail"]) for row in rows if row["kind"] == REFUSED]
    assert {(problem.where.source, problem.where.line) for problem in refused} >= {
        (place(1), 2),
        (place(2), 2),
        (place(5), None),
        (place(6), None),
    }
    assert [row["number"] for row in rows if row["kind"] == ARRIVED] == [len(found)]


def test_records_of_kafka_on_spark(spark: SparkSession) -> None:
    types = (
        "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"
    )
    table = spark.createDataFrame([tuple(record.values()) for record in records()], types)
    rows = of_records(table, How(cut=Cut.AUTO)).collect()
    expected = said(ReadRecords(How())(iter([pa.RecordBatch.from_pylist(records())])))
    got = {(row["key"], bytes(row["lines"] or b"")) for row in rows if row["kind"] != ARRIVED}
    assert got == {(r["key"], r["lines"] or b"") for r in expected if r["kind"] != ARRIVED}
    assert sum(row["number"] for row in rows if row["kind"] == ARRIVED) == len(
        [row for row in expected if row["kind"] == FRAGMENT]
    )


def test_a_file_gives_the_same_each_time(tmp_path: Path) -> None:
    file = tmp_path / "a.ttl"
    file.write_bytes(TTL * 20)
    listed = [{"path": f"file:{file}", "time": NOW, "length": file.stat().st_size}]
    read = [said(ReadFiles(How())(iter([pa.RecordBatch.from_pylist(listed)]))) for _ in range(2)]
    assert read[0] == read[1]
    assert read[0][0]["publication"] == str(file)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    listed = [{"path": f"file:{tmp_path / name}", "time": NOW, "length": 5} for name in "ab"]
    rows = said(ReadFiles(How())(iter([pa.RecordBatch.from_pylist(listed)])))
    assert [row["kind"] for row in rows] == [REFUSED, REFUSED, ARRIVED]
    assert [row["time"] for row in rows] == [None, None, None]
    assert rows[-1]["number"] == 0


places = st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.integers(0, 3))


@given(st.lists(st.tuples(st.sampled_from("xyz"), places), max_size=12), st.randoms())
def test_the_first_of_each_stays_in_any_order(
    found: list[tuple[str, tuple[int, str, int]]], random: Random
) -> None:
    by_place = list(dict.fromkeys(found))
    random.shuffle(by_place)
    rows = [
        {
            "key": key,
            "time": NOW + timedelta(seconds=second),
            "source": source,
            "number": number,
            **dict.fromkeys(("kind", "publication", "lines", "detail")),
        }
        for key, (second, source, number) in by_place
    ]
    half = len(rows) // 2
    batches = [pa.RecordBatch.from_pylist(some, ROW) for some in (rows[:half], rows[half:])]
    kept = {
        (row["key"], (row["time"] - NOW).seconds, row["source"], row["number"])
        for row in said(first_of_each(iter(batches)))
    }
    expected = {key: min(place for k, place in found if k == key) for key, _ in found}
    assert kept == {(key, *place) for key, place in expected.items()}


def test_of_nothing_there_is_nothing() -> None:
    assert list(first_of_each(iter([]))) == []
    assert list(ReadFiles(How())(iter([]))) == []


@pytest.mark.parametrize("name", ["a b.ttl", "50%25.ttl", "ü#?.ttl"])
def test_names_are_as_they_are(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(TTL)
    listed = [{"path": f"file:{tmp_path / name}", "time": NOW, "length": len(TTL)}]
    rows = said(ReadFiles(How())(iter([pa.RecordBatch.from_pylist(listed)])))
    assert [row["kind"] for row in rows] == [FRAGMENT, ARRIVED]
