"""Which engine a batch gets, when files change and things are killed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from graphmatch.spark.engine_files import EngineFiles
from graphmatch.spark.engines import Engines
from graphmatch.spark.shipping import Shipped
from semantic.errors import GraphMatchError, OnProblem, Problem
from semantic.ontology.ontology import Ontology

NOW = datetime(2026, 1, 2, tzinfo=UTC)


class Files:
    """Subscriptions and an ontology in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked = folder / "asked"
        self.asked.mkdir()
        self.known = folder / "known.ttl"
        self.know("Laptop")
        self.ask("a", "ASK { ?x a <urn:Computer> }")
        self.told: list[Problem] = []
        self.loads = 0

    def ask(self, name: str, query: str) -> None:
        (self.asked / f"{name}.rq").write_text(query)

    def know(self, name: str) -> None:
        above = "<http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:Computer>"
        self.known.write_text(f"<urn:{name}> {above} .")

    def load(self, files: Sequence[Path], on_problem: OnProblem) -> Ontology:
        self.loads += 1
        return Ontology.load(*files, cache=False, on_problem=on_problem)

    def engines(self) -> Engines:
        """As a process makes them when it starts."""
        self.told.clear()
        files = EngineFiles([self.asked], [self.known], self.load)
        return Engines(self.folder / "kept", files, self.told.append, lambda: NOW)

    def ids(self, digest: str) -> list[str]:
        path = self.folder / "kept" / f"{digest}.snapshot"
        worker = Shipped(str(path), None, _version(), NOW).opened()
        return [subscription.id for subscription in worker.engine.subscriptions]


def _version() -> str:
    from importlib.metadata import version

    return version("graphmatch")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_a_batch_keeps_its_engine(files: Files) -> None:
    engines = files.engines()
    first = engines.of_batch(0)
    assert files.ids(first.engine) == ["a"]
    assert first.now == NOW.isoformat()
    files.ask("b", "ASK { ?x a <urn:B> }")
    second = engines.of_batch(1)
    assert files.ids(second.engine) == ["a", "b"]
    again = files.engines()
    assert again.of_batch(1) == second
    files.ask("c", "ASK { ?x a <urn:C> }")
    later = files.engines()
    assert later.of_batch(1) == second
    assert files.ids(later.of_batch(2).engine) == ["a", "b", "c"]


def test_what_has_not_changed_is_not_read(files: Files) -> None:
    engines = files.engines()
    for batch in range(3):
        engines.of_batch(batch)
    assert files.loads == 1
    files.known.write_text(files.known.read_text())  # another time, the same content
    assert engines.of_batch(3).engine == engines.of_batch(2).engine
    files.engines().of_batch(4)
    assert files.loads == 1


def test_old_engines_go(files: Files) -> None:
    engines, kept = files.engines(), files.folder / "kept"
    for batch in range(5):
        files.ask("b", f"ASK {{ ?x a <urn:B{batch}> }}")
        engines.of_batch(batch)
    records = sorted(path.name for path in kept.glob("*.json"))
    assert records == ["batch-3.json", "batch-4.json"]
    named = {json.loads((kept / name).read_text())["engine"] for name in records}
    assert {path.stem for path in kept.glob("*.snapshot")} == named
    (kept / ".half").touch()
    files.engines()
    assert not (kept / ".half").exists()


def test_a_broken_ontology_leaves_the_one_before(files: Files) -> None:
    engines = files.engines()
    before = engines.of_batch(0)
    files.known.write_text("nothing of the kind")
    files.ask("b", "ASK { ?x a <urn:B> }")
    files.ask("broken", "SELECT")
    record = engines.of_batch(1)
    assert record.known == before.known
    assert files.ids(record.engine) == ["a", "b"]
    assert [Path(problem.where.source).name for problem in files.told] == ["known.ttl", "broken.rq"]
    assert record.problems() == files.told
    assert record.fresh
    assert not engines.of_batch(2).fresh, "it is said once"
    assert files.loads == 2, "and not tried again"

    again = files.engines()  # a new process goes on so, and says what is wrong
    assert [Path(problem.where.source).name for problem in files.told] == ["known.ttl", "broken.rq"]
    assert again.of_batch(3).engine == record.engine
    files.know("Tablet")
    mended = again.of_batch(4)
    assert mended.known != before.known
    assert [Path(problem.where.source).name for problem in mended.problems()] == ["broken.rq"]


def test_with_no_subscription_left_those_before_stay(files: Files) -> None:
    engines = files.engines()
    before = engines.of_batch(0)
    (files.asked / "a.rq").unlink()
    record = engines.of_batch(1)
    assert record.engine == before.engine
    assert [problem.what for problem in record.problems()] == [
        "the folder has no .rq or .jsonl files",
        "there is no subscription to match",
    ]


def test_without_an_engine_before_there_is_none(files: Files) -> None:
    files.ask("a", "SELECT")
    with pytest.raises(GraphMatchError, match="there is no subscription to match"):
        files.engines()
    assert len(files.told) == 1
    files.known.write_text("nothing of the kind")
    with pytest.raises(GraphMatchError, match=r"known\.ttl"):
        files.engines()
