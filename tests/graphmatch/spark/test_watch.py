"""Streams: what arrives is matched once, as the local engine matches it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from shutil import copyfile, rmtree
from time import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphmatch import Engine, read_subscriptions
from graphmatch.spark import watch
from graphmatch.spark.batches import Batch
from graphmatch.spark.engine_files import EngineFiles
from graphmatch.spark.java import SparkError
from graphmatch.spark.output import claimed
from graphmatch.spark.sources import Folder
from semantic import Ontology, read_publications
from semantic.errors import Problem
from semantic.tables import COLUMNS
from tests.graphmatch.spark.arrivals import NOON, QUERIES, Stream, locally, offers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
ONTOLOGY = [ROOT / "ontologies" / name for name in ("news.ttl", "synonyms.csv")]

Run = Callable[..., list[Batch]]


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    return Stream(tmp_path / "a stream [1] 50%25")


@pytest.fixture
def run(spark: SparkSession, stream: Stream) -> Run:
    def once(at_once: int = 100, **options: Any) -> list[Batch]:
        told: list[Problem] = []
        files = options.pop("files", EngineFiles([stream.subscriptions]))
        source = Folder(str(stream.incoming), at_once)
        options = {"spark": spark, "once": True, "on_problem": told.append, **options}
        return watch(source, stream.output, files, **options).wait()

    return once


def engine_of(queries: dict[str, str]) -> Engine:
    engine = Engine()
    for name in sorted(queries):
        engine.subscribe(name, queries[name])
    return engine


def test_what_is_there_and_what_comes_later(stream: Stream, run: Run) -> None:
    random = Random(1)
    named = [query for query in QUERIES if query != "sold-by"]  # its solutions have blank nodes
    (stream.subscriptions / "sold-by.rq").unlink()
    files = [
        stream.drop("a b.nq", offers(random, range(30))),
        stream.drop("50%25.nq", offers(random, range(20, 50))),
        stream.drop("broken.ttl", "<urn:a> <urn:price>"),
        stream.drop("turtle.ttl", "[] a <urn:Laptop> ; <urn:price> 5 ."),
    ]
    below = stream.incoming / "below"
    below.mkdir()
    rows = [("urn:row", "<urn:x>", "<urn:price>", '"7"'), ("urn:0", "<urn:x>", "<urn:y>", '"1"')]
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    pq.write_table(pa.table(columns), below / "table.parquet")
    first = run(at_once=2)
    assert [batch.number for batch in first] == list(range(len(first)))
    assert sum(batch.publications for batch in first) == 50 + 1 + 2
    assert sum(batch.duplicates for batch in first) == 10
    assert stream.refused() == ["broken.ttl: " + stream.refused()[0].removeprefix("broken.ttl: ")]

    engine = engine_of({name: QUERIES[name] for name in named})
    expected = locally(engine, read_publications(*files[:2]))
    expected["urn:row", "anything", frozenset()] += 1
    turtle = str(files[3])
    expected[turtle, "anything", frozenset()] += 1
    integer = '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'
    expected[turtle, "laptops", frozenset({("x", "_:b0"), ("price", integer)})] += 1
    assert stream.matches() == expected

    assert run() == []
    later = stream.drop("later.nq", offers(random, range(45, 60)))
    (batch,) = run()
    assert (batch.number, batch.publications, batch.duplicates) == (len(first), 10, 5)
    new = [p for p in read_publications(later) if int(p.id.rpartition(":")[2]) >= 50]
    assert stream.matches() == expected + locally(engine, new)


def test_feeds_match_as_they_do_here(stream: Stream, run: Run) -> None:
    feeds = sorted((ROOT / "data" / "feeds").iterdir())
    for second, feed in enumerate(feeds):
        copyfile(feed, stream.incoming / feed.name)
        os.utime(stream.incoming / feed.name, (NOON + second, NOON + second))
    again = stream.incoming / "science-again.atom"
    copyfile(ROOT / "data" / "feeds" / "science.atom", again)
    os.utime(again, (NOON + 9, NOON + 9))
    subscriptions = ROOT / "data" / "subscriptions"
    told: list[Problem] = []
    engine = Engine(Ontology.load(*ONTOLOGY, on_problem=told.append), on_problem=told.append)
    engine.subscribe_many(read_subscriptions(subscriptions))
    publications = list(read_publications(*feeds, on_problem=told.append))
    batches = run(at_once=4, files=EngineFiles([subscriptions], ONTOLOGY))
    assert sum(batch.publications for batch in batches) == len(publications)
    assert sum(batch.duplicates for batch in batches) == sum(
        "notebook.example" in publication.id for publication in publications
    )
    pairs = {(match[0], match[1]) for match in stream.matches()}
    assert pairs == {(match[0], match[1]) for match in locally(engine, publications)}
    assert max(stream.matches().values()) == 1


def test_the_first_by_time_stays_and_late_ones_are_counted(stream: Stream, run: Run) -> None:
    line = '<urn:x> <urn:price> "{}" <urn:{}> .\n'
    (stream.subscriptions / "laptops.rq").write_text("SELECT ?p WHERE { ?x <urn:price> ?p }")
    stream.drop("z.nq", line.format("first", "same"), hours=0)
    stream.drop("a.nq", line.format("second", "same"), hours=1)
    (batch,) = run()
    assert (batch.publications, batch.duplicates, batch.late) == (1, 1, 0)
    stream.drop("b.nq", line.format("third", "same") + line.format("third", "b"), hours=2)
    stream.drop("c.nq", line.format("far ahead", "c"), hours=240)
    stream.drop("d.nq", line.format("far ahead", "d"), hours=241)
    stream.drop("e.nq", line.format("forgotten", "same"), hours=242)
    did = [(1, 1, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0)]
    assert [(b.publications, b.duplicates, b.late) for b in run(at_once=1)] == did
    stream.drop("late.nq", line.format("late", "late") + "no line\n", hours=100)
    (batch,) = run()
    assert (batch.publications, batch.duplicates, batch.late, batch.refused) == (0, 0, 1, 1)
    assert len(stream.refused()) == 1, "what is refused is never late"

    now = (time() - NOON) / 3600
    stream.drop("f0.nq", line.format("from the future", "f0"), hours=now + 1_000_000)
    stream.drop("f1.nq", line.format("of today", "f1"), hours=now - 2)
    (batch,) = run()
    stream.drop("f2.nq", line.format("of today", "f2"), hours=now - 1)
    stream.drop("f3.nq", line.format("of today", "f3"), hours=now)
    assert [(b.publications, b.late) for b in run(at_once=1)] == [(1, 0), (1, 0)]
    prices = {dict(answer)["p"] for _, name, answer in stream.matches() if name == "laptops"}
    said = ("first", "third", "far ahead", "forgotten", "from the future", "of today")
    assert prices == {f'"{price}"' for price in said}


def test_a_publication_is_put_together_from_one_file(stream: Stream, run: Run) -> None:
    apart = '<urn:x> a <urn:Laptop> <urn:g> .\n<urn:y> <urn:price> "1" <urn:h> .\n'.replace(
        " a ", " <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
    )
    rest = '<urn:x> <urn:price> "2" <urn:g> .\n'
    stream.drop("apart.nq", apart + rest)
    stream.drop(
        "apart.trig",
        "GRAPH <urn:t> { <urn:x> a <urn:Laptop> } "
        "GRAPH <urn:u> { <urn:x> a <urn:Laptop> } "
        'GRAPH <urn:t> { <urn:x> <urn:price> "3" }',
    )
    (batch,) = run()
    assert (batch.publications, batch.duplicates) == (4, 0)
    laptops = {
        (id, dict(answer)["price"]) for id, name, answer in stream.matches() if name == "laptops"
    }
    assert laptops == {("urn:g", '"2"'), ("urn:t", '"3"')}


def test_a_batch_that_is_run_again_is_matched_as_before(stream: Stream, run: Run) -> None:
    random = Random(2)
    (stream.subscriptions / "broken.rq").write_text("SELECT")
    for number in range(3):
        stream.drop(f"{number}.nq", offers(random, range(10 * number, 10 * number + 15)))
    run(at_once=1)
    before, refused = stream.matches(), stream.refused()
    assert len(refused) == 1
    commits = stream.output / "checkpoint" / "spark" / "commits"
    for name in ("2", ".2.crc"):
        (commits / name).unlink()  # as if it had been killed before Spark knew
    rmtree(stream.output / "matches" / "batch=2")
    stream.subscribe("more", "ASK { ?x <urn:seller> ?y }")
    stream.drop("3.nq", offers(random, range(90, 95)))
    batches = run(at_once=1)
    assert [batch.number for batch in batches] == [2, 3]
    after = stream.matches()
    assert {m: n for m, n in after.items() if m[1] != "more" and m[0] < "urn:offer:9"} == {
        m: n for m, n in before.items() if m[0] < "urn:offer:9"
    }
    assert sum(match[1] == "more" for match in after) == 5, "only in batches that came after it"
    assert stream.refused() == refused * 2, "said again, for the subscriptions were read again"


def test_subscriptions_and_ontology_change_while_it_runs(
    spark: SparkSession, stream: Stream
) -> None:
    random, told = Random(3), list[Problem]()
    ontology = stream.folder / "ontology.ttl"
    said = "<urn:Laptop> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:Computer> ."
    ontology.write_text(said)
    stream.subscribe("computers", "ASK { ?x a <urn:Computer> }")
    stream.drop("0.nq", offers(random, range(10)))
    files = EngineFiles([stream.subscriptions], [ontology])
    watching = watch(
        stream.incoming, stream.output, files, spark=spark, every="1 second", on_problem=told.append
    )
    batches = iter(watching)
    assert next(batches).publications == 10
    (stream.subscriptions / "broken.rq").write_text("SELECT ?x WHERE {")
    stream.subscribe("tablets", "ASK { ?x a <urn:Tablet> }")
    ontology.write_text("this is no ontology")
    stream.drop("1.nq", offers(random, range(10, 20)))
    second = next(batches)
    assert (second.publications, second.refused) == (10, 2)
    assert [Path(p.where.source).name for p in told] == ["ontology.ttl", "broken.rq"]
    assert told[0].remedy.endswith("The one before stays in force.")
    for file in stream.subscriptions.iterdir():
        file.unlink()
    stream.drop("2.nq", offers(random, range(20, 30)))
    assert next(batches).refused == 3
    watching.stop()
    assert list(batches) == []
    by_batch = [
        {name for id, name, _ in stream.matches() if int(id.rpartition(":")[2]) // 10 == batch}
        for batch in range(3)
    ]
    assert by_batch == [
        {"computers", *QUERIES},
        {"computers", "tablets", *QUERIES},
        {"computers", "tablets", *QUERIES},
    ]
    kept = stream.output / "checkpoint" / "engines"
    assert len([path for path in kept.iterdir() if path.suffix != ".json"]) == 1
    assert sorted(path.name for path in kept.glob("*.json")) == ["batch-1.json", "batch-2.json"]
    assert len(stream.refused()) == 5


def test_what_is_wrong_is_said_before_it_starts(
    spark: SparkSession, stream: Stream, run: Run, tmp_path: Path
) -> None:
    stream.drop("0.nq", offers(Random(4), range(3)))

    def why(source: object = None, output: Path | None = None, **options: Any) -> str:
        files = options.pop("files", EngineFiles([stream.subscriptions]))
        with pytest.raises((SparkError, Exception)) as caught:
            watch(
                source or stream.incoming,
                output or stream.output,
                files,
                spark=spark,
                once=True,
                **options,
            )
        return str(caught.value)

    assert "there is no such folder to watch" in why(tmp_path / "nowhere")
    assert "'often' is no duration" in why(every="often")
    assert "there is no subscription to match" in why(files=EngineFiles([]))
    run()
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    assert "is there already, and `graphmatch spark watch` did not make it" in why(output=other)
    assert "its stream has the source" in why(tmp_path)
    assert "its stream has the watermark '1 day', not '2 days'" in why(watermark="2 days")
    assert "its checkpoint is not" in why(checkpoint=tmp_path / "new")
    mine = tmp_path / "mine"
    checkpoint = stream.output / "checkpoint"
    assert "it is the checkpoint of another output" not in why(output=mine, checkpoint=other)
    (mine / "graphmatch-watch.json").parent.mkdir(exist_ok=True)
    (mine / "graphmatch-watch.json").write_text(json.dumps({"stream": "another"}))
    assert "it is the checkpoint of another output" in why(output=mine, checkpoint=checkpoint)
    held = claimed(tmp_path / "held", tmp_path / "held" / "c", {})
    with pytest.raises(SparkError, match="another stream runs with it"):
        claimed(tmp_path / "held", tmp_path / "held" / "c", {})
    held.close()
    claimed(tmp_path / "held", tmp_path / "held" / "c", {}).close()


def test_a_module_that_workers_lack_ends_the_stream(
    spark: SparkSession, stream: Stream, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream.drop("0.nq", offers(Random(5), range(3)))

    def lacking(*_: object) -> None:
        from pyspark.errors import PythonException

        raise PythonException("ModuleNotFoundError: No module named 'pyoxigraph'", {})

    with monkeypatch.context() as patched:
        patched.setattr("graphmatch.spark.batches.Matched", lacking)
        with pytest.raises(SparkError, match="cannot import pyoxigraph"):
            run()
    (batch,) = run()
    assert batch.publications == 3
