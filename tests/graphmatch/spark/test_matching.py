"""Tables to matches, equal to the local engine's for every form of publications."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Observation
from pyspark.sql import functions as sql

from graphmatch import Engine
from graphmatch.spark import matches, publications, register
from graphmatch.spark.java import SparkError
from graphmatch.spark.matching import observed
from graphmatch.spark.snapshots import Worker
from graphmatch.spark.spark_session import explained
from graphmatch.spark.tasks import ID, NOW, TEXTS, MatchTask, Mode
from graphmatch.spark.tasks import KEPT as KEPTS
from semantic import read_publications
from semantic.errors import InputError
from semantic.limits import DEFAULT_LIMITS
from semantic.tables import COLUMNS
from tests.graphmatch.spark.comparing import (
    FILES,
    asked,
    locally,
    nquads,
    on_spark,
    parquet,
    rows_of,
    samples,
    shuffled,
    small,
    table,
    unheard,
)
from tests.graphmatch.spark.instances import Instances
from tests.test_real_feeds import FEEDS
from tests.test_real_feeds import engine as with_dbpedia

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Form = Callable[["DataFrame"], tuple["DataFrame", dict[str, Any]]]

P = "<urn:p>"
EVERY = "SELECT * { ?s <urn:p> ?o }"


# -- Equal to the local engine --------------------------------------------------------------------


def read_whole(spark: SparkSession, *paths: str) -> DataFrame:
    """Return documents with the names that a local engine uses."""
    listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    return listed.load(list(paths)).withColumn("path", sql.regexp_replace("path", "^file:", ""))


def test_samples_are_matched(spark: SparkSession) -> None:
    did = Observation()
    found = read_whole(spark, *FILES).transform(
        matches(samples(), document="content", source="path", metrics=did)
    )
    publications = list(read_publications(*FILES, on_problem=unheard))
    assert on_spark(found) == locally(samples(), publications)
    counts = did.get
    reports = [report for file in FILES for report in samples().filter(file)]
    assert counts["publications"] == len(publications) == len(reports) == 53
    assert counts["triples"] == sum(report.counters.triples for report in reports)
    assert counts["matches"] == sum(map(len, reports))
    assert counts["refused"] == 0
    assert counts["milliseconds"] > 0


@pytest.mark.long
@pytest.mark.data
def test_real_feeds_are_matched(spark: SparkSession) -> None:
    folder = str(Path(FEEDS[0]).parent.resolve())
    engine, did = with_dbpedia(), Observation()
    found = read_whole(spark, folder).transform(
        matches(engine, document="content", source="path", metrics=did)
    )
    publications = list(read_publications(folder, on_problem=unheard))
    assert on_spark(found) == locally(engine, publications)
    assert did.get["publications"] == len(publications) == 1437


@pytest.mark.long
@pytest.mark.data
def test_twenty_thousand_publications_are_matched(spark: SparkSession, tmp_path: Path) -> None:
    """Match 10,000 subscriptions; one publication has a million triples."""
    ontology = with_dbpedia().ontology
    made = Instances(ontology)
    engine = Engine(ontology)
    assert engine.subscribe_many(made.subscriptions(10_000)) == ()
    publications = [made.publication(number) for number in range(20_000)]
    publications[500] = made.publication(500, 250, 1_000_000)
    named = (row for row in rows_of(publications) if "_:" not in row[1] + row[3])
    rows = shuffled(list(named))
    nquads(tmp_path / "sorted.nq", sorted(rows))
    for name in ("lines", "tables"):
        (tmp_path / name).mkdir()
    part = len(rows) // 7 + 1
    for number, begin in enumerate(range(0, len(rows), part)):
        nquads(tmp_path / f"lines/{number}.nq", rows[begin : begin + part])
        parquet(tmp_path / f"tables/{number}.parquet", rows[begin : begin + part], 50_000)
    expected = locally(engine, read_publications(str(tmp_path / "sorted.nq")))
    register(spark)
    for frame in (
        spark.read.format("rdf").load(str(tmp_path / "lines")),
        spark.read.parquet(str(tmp_path / "tables")),
    ):
        did = Observation()
        assert on_spark(frame.transform(matches(engine, metrics=did))) == expected
        assert did.get["publications"] == len({row[0] for row in rows})
        assert did.get["triples"] == len(set(rows))


# -- Forms ----------------------------------------------------------------------------------------


def columns(triples: DataFrame) -> tuple[DataFrame, dict[str, Any]]:
    names = {"publication": "g", "subject": "s p", "predicate": "p", "object": "object"}
    return triples.withColumnsRenamed(names), names


def arrays(triples: DataFrame) -> tuple[DataFrame, dict[str, Any]]:
    struct = sql.struct(sql.col("object").alias("o"), "predicate", "subject")
    grouped = triples.groupBy("publication").agg(sql.collect_list(struct).alias("all"))
    return grouped, {"triples": "all", "object": "o"}


def lines(triples: DataFrame) -> DataFrame:
    return triples.select(
        "publication", sql.concat_ws(" ", "subject", "predicate", "object", sql.lit(".")).alias("l")
    )


def texts(triples: DataFrame) -> tuple[DataFrame, dict[str, Any]]:
    joined = sql.concat_ws("\n", sql.collect_list("l")).alias("text")
    return lines(triples).groupBy("publication").agg(joined), {"triples": "text"}


def parts(triples: DataFrame) -> tuple[DataFrame, dict[str, Any]]:
    return lines(triples), {"triples": "l", "grouped": False}


def documents(triples: DataFrame) -> tuple[DataFrame, dict[str, Any]]:
    """Return one document per publication, as bytes; its name is the publication's id."""
    grouped, _ = texts(triples)
    data = sql.col("text").cast("binary").alias("data")
    how = {"document": "data", "source": "publication", "format": "nt", "split_by": "document"}
    return grouped.select("publication", data), how


@pytest.mark.parametrize("form", [columns, arrays, texts, parts, documents])
def test_tables_of_each_form_are_matched(spark: SparkSession, form: Form) -> None:
    engine, publications = small()
    given, how = form(table(spark, shuffled(rows_of(publications))).repartition(3))
    did = Observation()
    assert on_spark(given.transform(matches(engine, **how, metrics=did))) == locally(
        engine, publications
    )
    assert did.get["publications"] == len(publications)
    assert did.get["triples"] == sum(len(p.triples) for p in publications)


def test_ids_are_given_without_solutions(spark: SparkSession) -> None:
    engine, publications = small()
    given = table(spark, rows_of(publications))
    rows = given.transform(matches(engine, solutions=False)).collect()
    expected = {(p.id, m.subscription) for p in publications for m in engine.match(p)}
    assert len(rows) == len(expected) > 0
    assert {(row["publication"], row["subscription"]) for row in rows} == expected
    assert {(row["solution"], row["graph"]) for row in rows} == {(None, None)}


def test_documents_of_text_are_matched(spark: SparkSession) -> None:
    rows = [
        ("a.ttl", "<urn:a> <urn:p> <#b> ."),
        ("b", '{"@id": "urn:a", "urn:p": {"@id": "c"}}'),
        (None, '@prefix u: <urn:> . u:a u:p [ u:q "ü" ] .'),
        ("none", None),
        ("d.nt", "no triple\n<urn:a> <urn:p> <urn:d> .\n<urn:d> <urn:p> <urn:e> .\n"),
    ]
    how = matches(
        asked(s=EVERY),
        document="doc",
        source="name",
        base="http://b/",
        split_by="document",
        keep=["n"],
    )
    given = table(
        spark, [(n, *row) for n, row in enumerate(rows)], "n int, name string, doc string"
    )
    found = given.transform(how).orderBy("n", "_corrupt").collect()
    said = [(row["n"], row["publication"], (row["solution"] or {}).get("o")) for row in found]
    assert said == [
        (0, "a.ttl", "<http://b/#b>"),
        (1, "b", "<http://b/c>"),
        (2, "<table>", "_:b0"),
        (3, None, None),
        (4, "d.nt", "<urn:d>"),
        (4, "d.nt", "<urn:e>"),
        (4, None, None),
    ]
    refused = [row["_corrupt"] for row in found if row["_corrupt"]]
    assert refused[0] == "none: there is no document. Leave out rows without one."
    assert refused[1].startswith("d.nt:1:")


# -- Queries --------------------------------------------------------------------------------------

TERMS = """
<urn:a> <urn:p> _:x .
_:x <urn:p> _:y .
<urn:a> <urn:says> <<( <urn:b> <urn:p> _:y )>> .
<urn:a> <urn:name> "ü \\" \\n"@en--ltr .
"""


def test_each_form_of_query_has_its_result(spark: SparkSession) -> None:
    engine = asked(
        ask="ASK { ?s <urn:p> ?o }",
        describe="DESCRIBE ?s { ?s <urn:says> ?t }",
        construct="CONSTRUCT { ?o <urn:of> ?s . [] <urn:in> ?o } WHERE { ?s <urn:p> ?o }",
        select="SELECT ?s ?o { ?s <urn:p> ?o }",
        triple="SELECT ?t { ?s <urn:says> ?t }",
        name="SELECT ?n { ?s <urn:name> ?n }",
    )
    given = table(spark, [("urn:g", TERMS)], "publication string, triples string")
    how = matches(engine, triples="triples")
    rows = [given.transform(how).collect() for _ in range(2)]
    assert sorted(map(str, rows[0])) == sorted(map(str, rows[1]))
    said: dict[str, list[Any]] = {}
    for row in rows[0]:
        said.setdefault(row["subscription"], []).append(row["graph"] or row["solution"])
    assert said["ask"] == [{}]
    assert said["triple"] == [{"t": "<<( <urn:b> <urn:p> _:y )>>"}]
    assert said["name"] == [{"n": '"ü \\" \\n"@en--ltr'}]
    assert sorted(map(str, said["select"])) == [
        str({"s": "<urn:a>", "o": "_:x"}),
        str({"s": "_:x", "o": "_:y"}),
    ]
    assert len(said["describe"]) == len(said["construct"]) == 1
    constructed = said["construct"][0].splitlines()
    assert len(constructed) == 4
    assert "_:x <urn:of> <urn:a> ." in constructed
    assert "_:y <urn:of> _:x ." in constructed
    new = {line.split()[0] for line in constructed if "<urn:in>" in line}
    assert len(new) == 2
    assert not new & {"_:x", "_:y"}


def test_now_is_the_time_of_the_query(spark: SparkSession) -> None:
    """The session's time zone is not UTC."""
    engine = asked(now="SELECT (NOW() AS ?now) { ?s ?p ?o }")
    given = table(spark, [("g", "<urn:a>", P, "<urn:b>")])

    def told(**options: Any) -> datetime:
        (row,) = given.transform(matches(engine, **options)).collect()
        text: str = row["solution"]["now"]
        assert text.endswith('"^^<http://www.w3.org/2001/XMLSchema#dateTime>')
        return datetime.fromisoformat(text.split('"')[1])

    before = datetime.now(UTC)
    assert before - timedelta(seconds=1) <= told() <= datetime.now(UTC)
    fixed = datetime(2020, 2, 29, 12, 30, tzinfo=UTC)
    assert told(now=fixed) == fixed


# -- Kept columns ---------------------------------------------------------------------------------

KEPT: dict[str, tuple[str, Any]] = {
    "a": ("boolean", True),
    "b": ("tinyint", -3),
    "c": ("bigint", 2**62),
    "d": ("double", 0.5),
    "e": ("decimal(38,3)", Decimal("12345678901234567890.125")),
    "f": ("date", date(2026, 2, 28)),
    "g": ("timestamp", datetime(2026, 2, 28, 1, 2, 3, 456789)),
    "h": ("timestamp_ntz", datetime(2026, 2, 28, 1, 2, 3, 456789)),
    "i": ("binary", bytearray(b"\0\xff")),
    "j": ("string", "ü"),
    "k": ("interval day to second", timedelta(days=3, seconds=5)),
    "l": ("array<struct<x: int, y: array<string>>>", [(1, ["a", None]), None, (None, [])]),
    "m": ("map<string, struct<z: date>>", {"a": (date(2026, 1, 1),), "b": None}),
    "n": ("struct<x: struct<y: map<int, binary>>, z: double>", (({1: bytearray(b"x")},), None)),
    "publications": ("int", 7),
    "subject": ("string", "mine"),
    "_now": ("int", 8),
    "_kept_0": ("int", 9),
    "source": ("int", 10),
}
"""Columns of all types, with a value; some names equal internal ones."""


@pytest.mark.parametrize("whole", [pytest.param(True, marks=pytest.mark.long), False])
def test_columns_of_every_type_are_kept(spark: SparkSession, whole: bool) -> None:
    """Documents stay in their partition, but triples do not."""
    types = ", ".join(f"`{name}` {kind}" for name, (kind, _) in KEPT.items())
    values = [value for _, value in KEPT.values()]
    said = {
        1: [(P, "<urn:b>"), (P, "<urn:c>")],
        2: [(P, "<urn:b>"), (P, "<urn:c>")],
        3: [("no", "<urn:b>")],
        4: [("<urn:q>", "<urn:b>")],
    }
    rows: list[tuple[Any, ...]] = []
    for id, pairs in said.items():
        kept = [None for _ in values] if id == 2 else values
        text = " . ".join(f"<urn:a> {p} {o}" for p, o in pairs) + " ."
        given = [(text,)] if whole else [("<urn:a>", *pair) for pair in pairs]
        rows += ((id, *terms, *kept, None) for terms in given)
    form = "text string" if whole else "s string, p string, o string"
    frame = table(spark, rows, f"id int, {form}, {types}, nothing void")
    names = [*KEPT, "nothing", "id"]
    how: dict[str, Any] = {"publication": "id", "subject": "s", "predicate": "p", "object": "o"}
    if whole:
        how = {"document": "text", "format": "ttl"}
    found = frame.transform(matches(asked(s=EVERY), **how, keep=names))
    assert [(f.name, f.dataType) for f in found.schema][5:] == [
        (name, frame.schema[name].dataType) for name in names
    ]
    kept_rows = found.select("solution.o", *names).orderBy("id", "o").collect()
    expected = {row["id"]: row for row in frame.select(*names).collect()}
    assert [(row["id"], row["o"]) for row in kept_rows] == [
        (1, "<urn:b>"),
        (1, "<urn:c>"),
        (2, "<urn:b>"),
        (2, "<urn:c>"),
        (3, None),
    ]
    for row in kept_rows:
        assert row[1:] == tuple(expected[row["id"]])


def test_columns_of_tables_and_arrays_are_kept(spark: SparkSession) -> None:
    """The publication's first row counts; arrays can share an id or lack one."""
    rows = [(f"g{n % 5}", f"<urn:{n}>", P, f'"{n}"', [n % 5]) for n in range(40)]
    rows += [("g9", "<urn:a>", "no IRI", "<urn:b>", [9]), (None, "<urn:a>", P, "<urn:b>", [8])]
    terms = "subject string, predicate string, object string"
    given = table(spark, rows, f"publication string, {terms}, k array<int>").repartition(4)
    how = matches(asked(s="ASK { ?s <urn:p> ?o }"), keep=["k"])
    found = given.transform(how).collect()
    assert {(row["publication"], *row["k"]) for row in found} == {
        *((f"g{n}", n) for n in range(5)),
        (None, 9),
        (None, 8),
    }
    refused = {row["k"][0]: row["_corrupt"] for row in found if row["_corrupt"]}
    assert refused[9].startswith("g9: the predicate 'no IRI' is not a term")
    assert refused[8] == "<table>: no publication. Give the publication an id."

    def triple(n: int, p: str = P) -> tuple[str, str, str]:
        return "<urn:a>", p, f'"{n}"'

    arrays_of = [
        ("same", [triple(1), triple(2)], 1),
        ("same", [triple(2)], 2),
        (None, [triple(3)], 3),
        (None, [triple(4), triple(5)], 4),
        ("none", None, 5),
        ("empty", [], 6),
        ("bad", [triple(7), triple(7, "no"), None], 7),
    ]
    schema = f"publication string, triples array<struct<{terms.replace(' string', ': string')}>>"
    given = table(spark, arrays_of, f"{schema}, k int")
    how = matches(asked(s="SELECT ?o { ?s <urn:p> ?o }"), triples="triples", keep=["k"])
    for one in (given.coalesce(1), given.where("k > 2").repartition(3)):
        said = sorted(
            (row["k"], row["publication"] or "", (row["solution"] or {"o": row["_corrupt"]})["o"])
            for row in one.transform(how).collect()
        )
        wanted = [
            (1, "same", '"1"'),
            (1, "same", '"2"'),
            (2, "same", '"2"'),
            (3, "", "<table>: no publication. Give the publication an id."),
            (4, "", "<table>: no publication. Give the publication an id."),
            (5, "", "none: a publication without triples. Leave out rows without any."),
            (6, "", "empty: a publication without triples. Leave out rows without any."),
            (7, "", "bad: no subject. A subject is an IRI or a blank node."),
            (7, "", said[-2][2]),
            (7, "bad", '"7"'),
        ]
        assert said == [row for row in wanted if row[0] in {k for k, *_ in said}]
        assert said[-2][2].startswith("bad: the predicate 'no' is not a term")
        assert len(said) in (7, 10)


def test_names_of_columns_are_resolved_as_in_spark(spark: SparkSession) -> None:
    """Names follow Spark: dots select fields, and case is ignored."""
    rows = [("g", "<urn:a> <urn:p> <urn:b> .", 1, 2, (3,))]
    given = table(spark, rows, "id string, Text string, `a.b` int, Day int, c struct<d: int>")
    keep = ["`a.b`", "day", "c.d"]
    how = matches(asked(s=EVERY), "ID", triples="text", keep=keep)
    (row,) = given.transform(how).collect()
    assert row[:2] == ("g", "s")
    assert row[-3:] == (1, 2, 3)


class Here:
    """A stand-in for Spark's files, with the engine in this process."""

    def __init__(self, path: Path) -> None:
        asked(s=EVERY).save(path)
        self._worker = Worker(path, 0, DEFAULT_LIMITS)

    def opened(self, now: datetime) -> Worker:
        return self._worker


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return Here(tmp_path_factory.mktemp("here") / "saved")


@given(st.lists(st.sampled_from([None, "a", "b", "c"]), max_size=12), st.lists(st.integers(0, 12)))
def test_rows_of_a_publication_may_be_in_any_batch(
    here: Any, ids: list[str | None], cuts: list[int]
) -> None:
    """Each publication is complete in a task of a stream."""
    rows = [
        {ID: id, TEXTS: f"<urn:a> <urn:p> <urn:{n}> .", NOW: datetime.now(UTC), f"{KEPTS}0": n}
        for n, id in enumerate(ids)
    ]
    schema = pa.schema(
        [(ID, pa.string()), (TEXTS, pa.string()), (NOW, pa.timestamp("us", "UTC"))]
    ).append(pa.field(f"{KEPTS}0", pa.int32()))
    places = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    batches = [pa.RecordBatch.from_pylist(rows[a:b], schema) for a, b in pairwise(places)]
    work = MatchTask(here, None, False, 1, True, Mode.PERMISSIVE)
    found = [row for batch in work(iter(batches)) for row in batch.to_pylist()]
    said = {
        (row["publication"], dict(row["solution"])["o"]): row[f"{KEPTS}0"]
        for row in found
        if row["solution"] is not None
    }
    assert said == {(id, f"<urn:{n}>"): ids.index(id) for n, id in enumerate(ids) if id is not None}
    refused = [row[f"{KEPTS}0"] for row in found if row["_corrupt"] is not None]
    assert refused == [n for n, id in enumerate(ids) if id is None]
    did = [row["_metrics"] for row in found if row["_metrics"]]
    assert [one["publications"] for one in did] == ([len({*ids} - {None})] if rows else [])


# -- Malformed rows -------------------------------------------------------------------------------

BAD = [
    ("g", "<urn:a>", P, "<urn:b>"),
    ("g", "<urn:a>", P, None),
    ("g", "a", P, "<urn:b>"),
    ("g", "<urn:a>", '"p"', "<urn:b>"),
    ("g", "<urn:a>", P, "<urn:b> . <urn:c> <urn:p> <urn:d>"),
    ("g", "<urn:a>", P, "<urn:b> . # c"),
    ("g", "<urn:a>", P, '"x"^^<no iri>'),
    ("g", "<urn:a>", P, '"x" . <urn:c> <urn:p> "d"'),
    ("g", "<urn:a>", P, '"x" <urn:g>'),
    ("g", "<urn:a>", P, '"x"@en .'),
    ("g", "_:x <urn:p>", P, "_:y ."),
    ("g", "<urn:a>", P, "_:y\n<urn:c> <urn:p> <urn:d>"),
    ("row x", "<urn:a>", P, "<urn:b c>"),
    ("row 99", "<urn:a>", P, '"ok"'),
    (None, "<urn:a>", P, "<urn:b>"),
]


def bad_texts(triples: DataFrame) -> tuple[DataFrame, dict[str, Any]]:
    return lines(triples), {"triples": "l"}


def _parts(row: Sequence[str | None]) -> set[str]:
    return {part for part in (" . ", "\n") if part in (row[3] or "")}


@pytest.mark.parametrize("form", [columns, arrays, bad_texts, parts])
def test_invalid_triples_are_refused(spark: SparkSession, form: Form) -> None:
    one_triple = form in (columns, arrays)  # A string may hold several triples.
    rows = [row for row in BAD if one_triple or not {" . ", "\n"} & _parts(row)]
    given, how = form(table(spark, rows))
    did = Observation()
    found = given.transform(matches(asked(s=EVERY), **how, metrics=did)).collect()
    said = sorted((r["publication"], r["solution"]["o"]) for r in found if r["solution"])
    assert said == [("g", "<urn:b>"), ("row 99", '"ok"')]
    refused = [row["_corrupt"] for row in found if row["_corrupt"]]
    assert did.get["refused"] == len(refused) == len(rows) - 2
    assert all(row["solution"] or row[:4] == (None,) * 4 for row in found)
    assert any("publication" in text for text in refused)


@pytest.mark.parametrize("form", [pytest.param(columns, marks=pytest.mark.long), documents])
def test_each_mode_treats_malformed_rows(spark: SparkSession, form: Form) -> None:
    given, how = form(table(spark, BAD[:-1]))

    def done(mode: str) -> tuple[list[Any], int]:
        did = Observation()
        found = given.transform(matches(asked(s=EVERY), **how, mode=mode, metrics=did)).collect()
        return found, did.get["refused"]

    permissive, refused = done("PERMISSIVE")
    dropped, also_refused = done("DROPMALFORMED")
    assert sum(row["_corrupt"] is not None for row in permissive) == refused == also_refused > 0
    assert [row for row in permissive if row["_corrupt"] is None] == dropped
    assert {row["publication"] for row in dropped} == {"g", "row 99"}
    with pytest.raises(PySparkException) as caught:
        done("FAILFAST")
    said = str(explained(caught.value))
    assert "g" in said.partition(":")[2]
    assert any(word in said for word in ("not a term", "no object", "cannot be", "expected", "IRI"))


def test_rows_that_were_refused_before_are_passed_on(spark: SparkSession) -> None:
    """Refused rows are counted and keep their columns, even alone in a partition."""
    rows = [("g", "<urn:a>", P, "<urn:b>", None, 1), (None, None, None, None, "a:1: bad. Mend.", 2)]
    terms = "publication string, subject string, predicate string, object string"
    given = table(spark, rows, f"{terms}, _corrupt string, k int")

    def done(which: str, mode: str = "PERMISSIVE") -> tuple[list[tuple[Any, ...]], Any]:
        did = Observation()
        how = matches(asked(s=EVERY), keep=["k"], mode=mode, metrics=did)
        found = given.where(which).transform(how).collect()
        return [(row["publication"], row["_corrupt"], row["k"]) for row in found], did.get

    good, bad = ("g", None, 1), (None, "a:1: bad. Mend.", 2)
    found, counts = done("true")
    assert sorted(found, key=lambda row: row[2]) == [good, bad]
    assert (counts["publications"], counts["refused"]) == (1, 1)
    assert done("k = 2")[0] == [bad]
    found, counts = done("true", "DROPMALFORMED")
    assert found == [good]
    assert counts["refused"] == 1
    with pytest.raises(PySparkException, match=r"a:1: bad\. Mend"):
        done("true", "FAILFAST")


@pytest.mark.long
def test_empty_tables_and_partitions_are_matched(spark: SparkSession) -> None:
    for frame, how in (form(table(spark, [])) for form in (columns, arrays, texts, documents)):
        did = Observation()
        assert frame.transform(matches(asked(s=EVERY), **how, metrics=did)).collect() == []
        assert did.get["publications"] in (0, None)
    rows = [("g", "<urn:a>", P, f"<urn:{n}>") for n in range(3)]
    apart: Any = spark.sparkContext.parallelize(rows, 9)
    sparse = spark.createDataFrame(apart, list(COLUMNS))
    assert sparse.transform(matches(asked(s=EVERY))).count() == 3


@pytest.mark.parametrize(
    ("transform", "options", "missing"),
    [
        (matches, {}, "publication"),
        (matches, {"publication": "id"}, "subject"),
        (matches, {"publication": "id", "triples": "all"}, "all"),
        (matches, {"document": "doc"}, "doc"),
        (matches, {"document": "id", "source": "path"}, "path"),
        (matches, {"document": "id", "keep": ["day"]}, "day"),
        (publications, {}, "content"),
        (publications, {"document": "id"}, "path"),
        (publications, {"document": "id", "source": None, "keep": ["day"]}, "day"),
    ],
)
def test_a_missing_column_is_named(
    spark: SparkSession, transform: Callable[..., Any], options: dict[str, Any], missing: str
) -> None:
    """The error comes before any job runs."""
    engine = [asked(s=EVERY)] if transform is matches else []
    with pytest.raises(AnalysisException) as caught:
        spark.range(1).transform(transform(*engine, **options))
    assert f"`{missing}`" in str(caught.value)


@pytest.mark.parametrize("transform", [partial(matches, asked(s=EVERY)), publications])
@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"format": "zip"}, InputError, "format: 'zip' is unknown"),
        ({"base": "x"}, InputError, "the base 'x' is not an absolute IRI"),
        (
            {"split_by": "half"},
            InputError,
            "split_by: 'half' is unknown. Use one of: auto, document",
        ),
        ({"mode": "LOUD"}, InputError, "mode: 'LOUD' is unknown. Use one of: PERMISSIVE"),
        ({"mode": None}, InputError, "mode: None is unknown. Use one of: PERMISSIVE"),
        ({"keep": ["day", "publication", "_corrupt"]}, SparkError, "_corrupt, publication"),
        ({"keep": ["day", "day"]}, SparkError, "day"),
    ],
)
def test_an_unknown_option_is_named(
    transform: Callable[..., Any], options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        transform(**options)


def test_columns_of_lines_cannot_be_kept() -> None:
    with pytest.raises(SparkError, match="of lines nothing is kept"):
        publications(lines=True, keep=["day"])


@pytest.mark.parametrize("mode", ["failfast", "FailFast", Mode.FAILFAST])
def test_mode_may_be_written_in_any_case(mode: Mode | str) -> None:
    """Case is ignored, like in Spark's own readers."""
    assert Mode(mode) is Mode.FAILFAST
    matches(asked(s=EVERY), mode=mode, split_by="Item")
    publications(mode=mode, split_by="ITEM")


# -- Metrics and changing engines -----------------------------------------------------------------


@pytest.mark.long
def test_metrics_may_have_a_name_or_be_omitted(spark: SparkSession) -> None:
    given = table(spark, [("g", "<urn:a>", P, "<urn:b>")])
    one = given.transform(matches(asked(s=EVERY), metrics="one"))
    two = given.transform(matches(asked(s=EVERY), metrics="two"))
    assert one.unionAll(two).count() == 2
    assert given.transform(matches(asked(s=EVERY), metrics=None)).count() == 1
    assert one.columns == ["publication", "subscription", "solution", "graph", "_corrupt"]


@pytest.mark.long
def test_a_replaced_engine_applies_to_the_next_query(spark: SparkSession, tmp_path: Path) -> None:
    given = table(spark, [("g", "<urn:a>", P, "<urn:b>")])
    how = matches(asked(first=EVERY))

    def names() -> list[str]:
        return sorted(row["subscription"] for row in given.transform(how).collect())

    assert names() == ["first"]
    saved = tmp_path / "saved"
    asked(second=EVERY).save(saved)
    how.replace(saved)
    assert names() == ["second"]
    how.replace(asked(third=EVERY, more=EVERY))
    assert names() == ["more", "third"]


def test_the_version_of_the_engine_is_observed(spark: SparkSession) -> None:
    given = table(spark, [("g", "<urn:a>", P, "<urn:b>")])
    how = matches(asked(first=EVERY), metrics=None)

    def version() -> datetime:
        did = Observation()
        observed(how.rows(given), did).collect()
        return datetime.fromisoformat(did.get["engine"])

    first = version()
    assert first == version() <= datetime.now(UTC)
    how.replace(asked(second=EVERY))
    assert first < version() <= datetime.now(UTC)
