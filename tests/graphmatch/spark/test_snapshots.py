"""Engines sent to workers: which one a task gets, and when it gets none."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyoxigraph import NamedNode
from pyspark import SparkFiles

from graphmatch import Engine
from graphmatch.operators import Operator
from graphmatch.snapshot import SavedError
from graphmatch.spark import matches
from graphmatch.spark.java import SparkError
from graphmatch.spark.snapshots import SnapshotHandle, open_worker, ship
from semantic import Limits, Ontology, Publication, read_publications
from semantic.annotation.annotate import Annotator
from semantic.vocabulary import SUBCLASS, TYPE
from tests.graphmatch.spark.comparing import FILES, asked, samples, table, unheard

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = datetime(2026, 1, 2, tzinfo=UTC)
LATER = datetime(2126, 1, 2, tzinfo=UTC)
OWN = version("graphmatch")
EVERY = "SELECT * { ?s <urn:p> ?o }"


class Root:
    """The folder for Spark's files, made by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.snapshots = SnapshotHandle("graphmatch-x", OWN)

    def put(self, micros: int, *ids: str) -> None:
        """Add an engine that is valid from a given time."""
        name = f"{self.snapshots.name}-{micros}"
        asked(**dict.fromkeys(ids, EVERY)).save(self.folder / name)
        (self.folder / f"{self.snapshots.name}@{micros:017d}").write_text(name)

    def ids(self, micros: int) -> list[str]:
        """Return the subscriptions of the engine at a given time."""
        worker = self.snapshots.opened(datetime.fromtimestamp(micros / 1e6, UTC))
        return [subscription.id for subscription in worker.engine.subscriptions]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    monkeypatch.setattr(SparkFiles, "getRootDirectory", lambda: str(tmp_path))
    return Root(tmp_path)


def test_a_task_gets_the_engine_of_its_time(root: Root) -> None:
    root.put(1000, "a")
    assert root.ids(999) == root.ids(1000) == root.ids(10**9) == ["a"]
    root.put(2000, "b")
    (root.folder / "graphmatch-xy@00000000000003000").write_text("another's")
    assert root.ids(1999) == ["a"]
    assert root.ids(2000) == root.ids(10**15) == ["b"]
    root.put(12_000, "c", "d")
    assert (root.ids(11_999), root.ids(12_000)) == (["b"], ["c", "d"])
    at = datetime.fromtimestamp(0.012, UTC)
    worker = root.snapshots.opened(at)
    assert worker is root.snapshots.opened(at), "it stays open"
    assert worker.version == "1970-01-01T00:00:00.012000+00:00"
    assert root.snapshots.opened(LATER).now == LATER
    assert open_worker.cache_info().currsize <= 2


def test_missing_old_and_damaged_snapshots_are_named(root: Root) -> None:
    with pytest.raises(SparkError, match=r"worker: there is no snapshot in .*Start Spark again"):
        root.snapshots.opened(NOW)
    old = SnapshotHandle("graphmatch-x", "0.0")
    with pytest.raises(SparkError) as caught:
        old.opened(NOW)
    assert str(caught.value) == (
        f"worker: the worker has graphmatch {OWN}, and the driver 0.0. "
        "Install one version everywhere."
    )
    root.put(1000, "a")
    (root.folder / "graphmatch-x-1000").write_bytes(b"no snapshot")
    with pytest.raises(SavedError, match="graphmatch-x-1000"):
        root.snapshots.opened(NOW)


def test_an_opened_engine_matches_the_same(spark: SparkSession) -> None:
    engine = samples()
    shipped = pickle.loads(pickle.dumps(ship(spark, engine)))
    worker = shipped.opened(datetime.now(UTC))
    for publication in read_publications(*FILES, on_problem=unheard):
        own, there = engine.match(publication), worker.engine.match(publication)
        assert there.subscriptions == own.subscriptions
        assert [match.solutions for match in there] == [match.solutions for match in own]


def test_options_of_an_engine_are_sent(spark: SparkSession) -> None:
    laptop, computer = NamedNode("urn:laptop"), NamedNode("urn:computer")
    limits = Limits(publication_triples=3)
    plain = Engine(
        Ontology([(laptop, SUBCLASS, computer)]),
        entailment="none",
        annotator=Annotator([]),
        limits=limits,
    )
    plain.subscribe("computer", "ASK { ?x a <urn:computer> }")
    plain.subscribe("now", "SELECT ?n { ?x a ?c BIND(YEAR(NOW()) AS ?n) }")
    worker = ship(spark, plain).opened(LATER)
    assert worker.engine.limits == limits
    thing = NamedNode("urn:x")
    (match,) = worker.engine.match(Publication.of("p", [(thing, TYPE, laptop)]))
    assert match.subscription == "now"
    assert match.solutions[0]["n"].value == "2126"
    assert worker.problems == []
    assert list(worker.engine.filter(b"<urn:a> <urn:p> 1, 2, 3, 4 .", "ttl")) == []
    assert len(worker.problems) == 1


def test_operators_are_refused_on_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    longer = Operator("urn:op:longer", lambda text, n: len(text.value) > int(n.value))
    engine = Engine(operators=[longer])
    nothing: SparkSession = None  # type: ignore[assignment]  # it is refused before Spark is asked
    with pytest.raises(SparkError, match=r"urn:op:longer.*Match without Spark"):
        ship(nothing, engine)
    given = table(spark, [("g", "<urn:a>", "<urn:p>", "<urn:b>")])
    with pytest.raises(SparkError, match=r"urn:op:longer"):
        given.transform(matches(engine))
    how = matches(asked(s=EVERY))
    assert given.transform(how).count() == 1
    with pytest.raises(SparkError, match=r"urn:op:longer"):
        how.replace(engine)
    (tmp_path / "damaged").write_bytes(b"no snapshot")
    with pytest.raises(SavedError, match="damaged"):
        how.replace(tmp_path / "damaged")
    with pytest.raises(SavedError, match="missing"):
        given.transform(matches(tmp_path / "missing"))
    assert given.transform(how).count() == 1, "the one before stays in force"


@pytest.mark.long
def test_a_transform_works_in_another_session(spark: SparkSession) -> None:
    how = matches(asked(s=EVERY))
    row = [("g", "<urn:a>", "<urn:p>", "<urn:b>")]
    for session in (spark, spark.newSession(), spark):
        assert table(session, row).transform(how).count() == 1
    before = datetime.now(UTC)
    how.replace(asked(s=EVERY, t=EVERY))
    assert table(spark, row).transform(how).count() == 2
    assert datetime.now(UTC) - before < timedelta(seconds=60)
