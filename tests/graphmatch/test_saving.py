"""What is saved and opened is what there was, and goes on as it would have."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphmatch import Engine
from graphmatch.saving import SavedError
from graphmatch.matcher import MatchReport
from semantic import Ontology, Publication
from semantic.vocabulary import SUBCLASS, TYPE
from tests.graphmatch.test_intake import ontology_of, state, variants
from tests.strategies import FULL, Scenario, scenarios

LAPTOP, COMPUTER, ITEM = (NamedNode(f"urn:{name}") for name in ("laptop", "computer", "item"))


def said(report: MatchReport) -> list[tuple[str, list[str]]]:
    return [(m.subscription, sorted(map(repr, m.solutions))) for m in report]


@settings(max_examples=30)
@given(scenarios(FULL, publications=2), st.integers(0, 1000), st.integers(0, 8))
def test_opened_is_what_was_saved(scenario: Scenario, seed: int, gone: int) -> None:
    random = Random(seed)
    rows = list(variants(scenario, random))
    engine, other = Engine(ontology_of(scenario)), Engine(ontology_of(scenario))
    engine.subscribe_many(rows)
    for id, _ in rows[:gone]:
        engine.unsubscribe(id)
    with TemporaryDirectory() as folder:
        engine.save(f"{folder}/saved")
        other.open(f"{folder}/saved")
    assert state(other) == state(engine)
    for missing in (rows[:gone], []):
        for publication in scenario.publications:
            assert said(other.match(publication)) == said(engine.match(publication))
        for id, query in missing:
            engine.subscribe(id, query.text())
            other.subscribe(id, query.text())
        assert state(other) == state(engine)
    for id, _ in rows:
        other.unsubscribe(id)
    assert state(other) == state(Engine(ontology_of(scenario)))


def laptop() -> Publication:
    return Publication.of("p", [(ITEM, TYPE, LAPTOP)])


def test_with_another_ontology_they_are_filed_anew(tmp_path: Path) -> None:
    engine = Engine()
    engine.subscribe_many(
        (f"s{n}", f"ASK {{ ?x a <{c.value}> }}") for n, c in enumerate([COMPUTER, LAPTOP])
    )
    assert list(engine.match(laptop()).subscriptions) == ["s1"]
    engine.save(tmp_path / "saved")
    other = Engine(Ontology([(LAPTOP, SUBCLASS, COMPUTER)]))
    other.open(tmp_path / "saved")
    assert list(other.match(laptop()).subscriptions) == ["s0", "s1"]


def test_many_are_mapped_and_go_on_changing(tmp_path: Path) -> None:
    engine, other = Engine(), Engine()
    rows = [
        (f"s{n}", f"ASK {{ ?x <urn:p{n % 7}> <urn:o{n}> . ?x a <urn:c> }}") for n in range(9000)
    ]
    assert engine.subscribe_many(rows) == ()
    engine.save(tmp_path / "saved")
    before = {path.name: path.read_bytes() for path in (tmp_path / "saved").iterdir()}
    other.open(tmp_path / "saved")
    for changed in (engine, other):
        for id, _ in rows[::3]:
            changed.unsubscribe(id)
        changed.subscribe_many(rows[::6])
    assert state(other) == state(engine)
    item = NamedNode("urn:x")
    for number in (0, 3, 4, 8998):
        triples = [
            (item, NamedNode(f"urn:p{number % 7}"), NamedNode(f"urn:o{number}")),
            (item, TYPE, NamedNode("urn:c")),
        ]
        published = Publication.of("p", triples)
        assert said(other.match(published)) == said(engine.match(published))
    assert {path.name: path.read_bytes() for path in (tmp_path / "saved").iterdir()} == before
    other.save(tmp_path / "saved")
    again = Engine()
    again.open(tmp_path / "saved")
    assert state(again) == state(engine)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    engine = Engine()
    engine.subscribe("alice", 'ASK { ?x a <urn:c> ; <urn:t> ?t FILTER(CONTAINS(?t, "sea")) }')
    engine.save(tmp_path / "saved")
    return tmp_path / "saved"


def test_nothing_is_taken_in_beside_others(saved: Path) -> None:
    engine = Engine()
    engine.subscribe("bob", "ASK { ?x a <urn:c> }")
    with pytest.raises(ValueError, match="already"):
        engine.open(saved)


def test_something_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "one.txt").write_text("dear")
    with pytest.raises(SavedError, match="nothing was saved to it"):
        Engine().save(tmp_path / "letters")
    assert (tmp_path / "letters" / "one.txt").read_text() == "dear"


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SavedError, match="nothing was saved there"):
        Engine().open(tmp_path / "none")


def test_another_version_is_said(saved: Path) -> None:
    listed = json.loads((saved / "saved.json").read_text())
    (saved / "saved.json").write_text(json.dumps(listed | {"version": 0}))
    with pytest.raises(SavedError, match="another version: 0"):
        Engine().open(saved)


@pytest.mark.parametrize(
    "name", ["index.rows.arena.arena.npy", "index.terms.json", "store.ids.start.npy"]
)
def test_a_file_that_is_gone_is_said(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(SavedError, match="damaged"):
        Engine().open(saved)


def test_another_array_is_said(saved: Path) -> None:
    np.save(saved / "index.rows.arena.arena.npy", np.zeros(3, np.int32))
    with pytest.raises(SavedError, match=r"index\.rows\.arena\.arena\.npy is not the array"):
        Engine().open(saved)


@pytest.mark.parametrize(
    ("document", "content"),
    [
        ("index.terms", [["<", "no iri"]]),
        ("index.terms", [["os.system", "ls"]]),
        ("skeletons", [["", "SELECT", "nonsense"]]),
        ("index.rows", {"plans": [1], "shapes": []}),
    ],
)
def test_a_document_that_means_nothing_is_said(saved: Path, document: str, content: object) -> None:
    (saved / f"{document}.json").write_text(json.dumps(content))
    with pytest.raises(SavedError, match="damaged"):
        Engine().open(saved)
