"""Subscriptions saved and opened again: the same answers, and no harm by what is damaged."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from pyoxigraph import NamedNode

from graphmatch import Engine
from graphmatch.saving import SavedError
from semantic import Ontology, Publication
from semantic.vocabulary import SUBCLASS, TYPE, Namespace
from tests.oracle import to_sparql
from tests.strategies import FULL, Scenario, scenarios
from tests.test_agreement import answers

EX = Namespace("http://example.org/")
FEW = settings(max_examples=settings().max_examples // 8)


@FEW
@given(scenarios(FULL, publications=2, queries=4))
def test_that_what_is_opened_answers_as_what_was_saved(
    tmp_path_factory: pytest.TempPathFactory, scenario: Scenario
) -> None:
    folder = tmp_path_factory.mktemp("saved") / "engine"
    ontology = Ontology(scenario.ontology, on_problem=lambda _: None)
    engine, other = Engine(ontology), Engine(ontology)
    for number, query in enumerate(scenario.queries):
        engine.subscribe(str(number), to_sparql(query))
    engine.save(folder)
    other.open(folder)
    assert [one.id for one in other.subscriptions] == [one.id for one in engine.subscriptions]
    for publication in scenario.publications:
        assert answers(other.match(publication)) == answers(engine.match(publication))


def saved(folder: Path) -> Engine:
    engine = Engine(Ontology([(EX["Laptop"], SUBCLASS, EX["Computer"])]))
    for number in range(50):
        engine.subscribe(str(number), f"ASK {{ ?x a {EX['Computer']} ; <urn:p> {number} }}")
    engine.save(folder)
    return engine


def test_that_another_ontology_files_them_anew(tmp_path: Path) -> None:
    saved(tmp_path / "s")
    other = Engine()
    other.open(tmp_path / "s")
    seven = NamedNode("urn:p")
    item = Publication.of("p", [(EX["x"], TYPE, EX["Laptop"]), (EX["x"], seven, EX["y"])])
    assert len(other) == 50
    assert not other.match(item).matches


def test_that_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "mine.txt").write_text("mine")
    with pytest.raises(SavedError, match="nothing was saved to it"):
        saved(tmp_path / "s")
    with pytest.raises(SavedError, match="nothing was saved there"):
        Engine().open(tmp_path / "s")
    assert (tmp_path / "s" / "mine.txt").read_text() == "mine"


def test_that_what_was_saved_before_is_replaced(tmp_path: Path) -> None:
    saved(tmp_path / "s")
    engine = Engine()
    engine.subscribe("alice", "ASK { ?x a <urn:Laptop> }")
    engine.save(tmp_path / "s")
    other = Engine()
    other.open(tmp_path / "s")
    assert [one.id for one in other.subscriptions] == ["alice"]
    with pytest.raises(ValueError, match="already"):
        other.open(tmp_path / "s")


def test_that_damaged_folders_are_refused(tmp_path: Path) -> None:
    saved(tmp_path / "s")
    chosen = random.Random(1)
    files = sorted((tmp_path / "s").iterdir())
    for file in files:
        whole = file.read_bytes()
        for _ in range(50):
            at = chosen.randrange(len(whole))
            other = bytes([(whole[at] + chosen.randrange(1, 256)) % 256])
            file.write_bytes(whole[:at] + other + whole[at + 1 :])
            opened = Engine()
            try:
                opened.open(tmp_path / "s")
            except SavedError:
                assert not len(opened)
            else:  # what was changed says nothing: the count
                assert len(opened) == 50
            file.write_bytes(whole[:at])
            with pytest.raises(SavedError):
                Engine().open(tmp_path / "s")
        file.write_bytes(whole)
