"""`graphmatch bench ontology` at a small size: what it prints, and that its workload is right."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from graphmatch.bench import ontology, process, taxonomies
from graphmatch.bench.taxonomies import FLAVOURS, HEIGHT, Flavour, generate
from semantic.ontology.hierarchy import Hierarchy

TURTLE = (
    "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n<urn:%s> rdfs:subClassOf <urn:c> .\n"
)


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("classes", [HEIGHT + 1, 3000])
def test_a_taxonomy_is_as_it_is_said_to_be(flavour: Flavour, classes: int) -> None:
    made = generate(classes, flavour)
    assert made.size == classes
    assert (np.diff(made.levels) > 0).all()
    level = np.searchsorted(made.levels, np.arange(classes), side="right") - 1
    assert (level[made.children] == level[made.parents] + 1).all()
    hierarchy = Hierarchy(classes, made.children, made.parents)
    assert hierarchy.depth.max() == HEIGHT
    assert hierarchy.tops == [0]
    if classes > 1000:
        assert 1.9 < made.children.size / classes < 2.1
    again = generate(classes, flavour)
    assert (again.parents == made.parents).all()


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_pairs_and_the_reference(flavour: Flavour) -> None:
    made = generate(3000, flavour)
    hierarchy = Hierarchy(made.size, made.children, made.parents, small=0)
    pairs = taxonomies.half_true_pairs(made, 400)
    expected = [taxonomies.is_a(made, *pair) for pair in pairs.T.tolist()]
    assert 0.4 < np.mean(expected) < 0.7
    assert hierarchy.is_a_many(*pairs).tolist() == expected


def test_too_few_classes() -> None:
    with pytest.raises(ValueError, match="more than 20"):
        generate(HEIGHT, "near")


def test_what_is_printed_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        (tmp_path / f"{name}.ttl").write_text(TURTLE % name, encoding="utf-8")
    monkeypatch.setattr(ontology, "REPEATS", 1)
    both = Path(f"{tmp_path}/a.ttl+{tmp_path}/b.ttl")
    assert ontology.run([both], 0, json=True) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["taxonomies"] == []
    loaded = {row["by"]: row for row in report["ontologies"]}
    assert set(loaded) == {"graphmatch", "graphmatch, cached", "rdflib", "owlready2"}
    for row in loaded.values():
        assert row["ontology"] == "a.ttl+b.ttl"
        assert row["triples"] >= 2
        assert row["load_s"] > 0
        assert row["peak_mb"] >= row["before_mb"] > 1
    assert loaded["graphmatch"]["triples"] == loaded["rdflib"]["triples"] == 2
    assert loaded["graphmatch"]["ratio"] == 1


def test_a_measurement_of_a_taxonomy(tmp_path: Path) -> None:
    taxonomies.save(generate(2000, "near"), tmp_path)
    row = process.in_own_process("graphmatch.bench.generated", str(tmp_path), "near", "pairs")
    assert row["classes"] == 2000
    assert row["height"] == HEIGHT
    assert row["built_s"] == pytest.approx(row["terms_s"] + row["links_s"] + row["index_s"])
    assert row["peak_mb"] >= row["built_mb"] > 1
    assert row["is_a_random_ns"] > 0
    assert row["is_a_random_true"] < 0.4 < row["is_a_half_true_true"] < 0.7


def test_a_measurement_that_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = process.in_own_process("graphmatch.bench.loading", "rdflib", str(tmp_path), "no.ttl")
    assert set(row) == {"failed"}
    assert "no.ttl" in row["failed"]
    monkeypatch.setattr(ontology, "in_own_process", lambda *_, **__: row)
    (tmp_path / "a.ttl").write_text(TURTLE % "a", encoding="utf-8")
    assert ontology.run([tmp_path / "a.ttl"], 0) == 2
    assert "no.ttl" in capsys.readouterr().out


def test_a_file_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ontology, "REPEATS", 1)
    assert ontology.run([tmp_path / "none.ttl"], 0, json=True) == 2
    rows = json.loads(capsys.readouterr().out)["ontologies"]
    assert len(rows) == 4
    assert all("failed" in row for row in rows)
